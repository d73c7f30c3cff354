/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads: get, and get with terms.
 *
 * An item can ask to be made anew: it is stale (items_delete), it ends soon
 * (recaches), or the read itself made it, empty (vivifies). The first reader
 * who sees that has won, and the item remembers it; all others learn that
 * somebody has. */
#include "items/op.h"

#include "base/err.h"

static void
use(struct op *op, struct entry *entry)
{
    if (!op->terms->peeks && !op->terms->inspects) {
        entry->marks |= ITEMS__FETCHED;
        items__core_use(entry, op->now_s);
    }
}

static bool
ends_soon(const struct op *op, const struct items_found *found)
{
    uint64_t soon_s, expiry_s = found->expiry_s;

    if (op->terms->recaches_first) {
        expiry_s = found->old_expiry_s;
    }
    if (!op->terms->recaches || expiry_s == ITEMS_NEVER) {
        return false;
    }
    return __builtin_add_overflow(op->now_s, op->terms->recache_s, &soon_s) ||
        expiry_s < soon_s;
}

/* Describes the entry, which is live; decides who makes it anew. */
static void
describe(struct op *op, struct entry *entry)
{
    struct items_found *out = op->answer;

    out->expiry_s = entry->expiry_s;
    /* another thread may have used it a second later */
    out->idle_s = op->now_s > entry->used_s ? op->now_s - entry->used_s : 0;
    out->was_fetched = (entry->marks & ITEMS__FETCHED) != 0;
    out->is_stale = (entry->marks & ITEMS__STALE) != 0;
    out->was_won = (entry->marks & ITEMS__WON) != 0;
    out->has_won = !op->terms->inspects && !op->terms->yields &&
        (out->is_new ||
            (!out->was_won && (out->is_stale || ends_soon(op, out))));
    if (out->has_won) {
        entry->marks |= ITEMS__WON;
    }
}

static void
count_hit(struct stripe *stripe, const struct entry *entry, bool touches)
{
    unsigned class_ = items__stripe_class(stripe, entry);

    ITEMS__COUNT(stripe, class_, get_hits, 1);
    ITEMS__COUNT(stripe, class_, touch_hits, touches);
}

/* The miss becomes an empty item: 0 or an error. */
static int
vivify(struct op *op, struct stripe *stripe)
{
    if (!items__op_has_room(op, 0)) {
        return items__op_want(op, 0);
    }
    items__op_fill(op, NULL, 0, 0, op->terms->vivify_expiry_s);
    items__op_publish(op, stripe, NULL, ITEMS__BORN, op->terms->new_cas);
    return 0;
}

static int
step(struct op *op, struct stripe *stripe)
{
    struct items_found *out = op->answer;
    struct entry *entry =
        items__core_find(op->items, stripe, &op->key, op->now_s);

    if (entry == NULL) {
        int err = op->terms->vivifies ? vivify(op, stripe) : ERR_NOT_FOUND;

        if (err != 0) {
            return err;
        }
        entry = op->done;
        out->is_new = true;
    } else {
        out->old_expiry_s = entry->expiry_s;
        if (op->terms->touches) {
            items__core_expire(op->items, entry, op->terms->expiry_s);
        }
        count_hit(stripe, entry, op->terms->touches);
    }
    describe(op, entry);
    use(op, entry);
    out->item = items__core_pin(entry);
    return 0;
}

void
items_look(struct items *items, const char *key, size_t key_len,
    const struct items_terms *terms, uint64_t now_s, struct items_found *out)
{
    struct op op = items__op_of(items, key, key_len, terms, now_s);

    *out = (struct items_found){0};
    op.answer = out;
    (void)items__op_run(&op, step);
}

const struct item *
items_get(struct items *items, const char *key, size_t key_len, uint64_t now_s,
    bool touch, uint64_t expiry_s)
{
    struct items_key k = items__core_begin(items, key, key_len, now_s);
    struct stripe *stripe = items__core_stripe(items, &k);
    const struct item *item = NULL;
    struct entry *entry;

    items__stripe_lock(stripe);
    entry = items__core_find(items, stripe, &k, now_s);
    if (entry != NULL) {
        if (touch) {
            items__core_expire(items, entry, expiry_s);
        }
        count_hit(stripe, entry, touch);
        entry->marks |= ITEMS__FETCHED;
        items__core_use(entry, now_s);
        item = items__core_pin(entry);
    }
    items__stripe_unlock(stripe);
    return item;
}

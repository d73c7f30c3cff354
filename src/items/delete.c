/* SPDX-License-Identifier: BSD-3-Clause */
/* Deletes, and what a delete may do instead: leave an empty item, a stale one,
 * or both. A stale item is still read; its next reader has to make it anew,
 * whoever had to before. */
#include "items/op.h"

#include "base/err.h"

/* An empty item in place of old: 0 or an error. It keeps the old cas where
 * none is given: the value that belongs to it is gone, so nobody can mistake
 * the one for the other. */
static int
empty(struct op *op, struct stripe *stripe, struct entry *old)
{
    const struct items_terms *terms = op->terms;
    uint64_t expiry_s = terms->touches ? terms->expiry_s : ITEMS_NEVER;
    uint64_t cas = terms->new_cas == 0 ? old->item.cas : terms->new_cas;

    if (!items__op_has_room(op, 0)) {
        return items__op_want(op, 0);
    }
    items__op_fill(op, NULL, 0, terms->empty_flags, expiry_s);
    items__op_publish(op, stripe, old, ITEMS__HEIR, cas);
    return 0;
}

static void
mark_stale(struct op *op, struct entry *entry)
{
    if (op->terms->touches) {
        items__core_expire(op->items, entry, op->terms->expiry_s);
    }
    entry->marks |= ITEMS__STALE;
    entry->marks &= (uint8_t)~ITEMS__WON;
}

/* The same value with a new cas, stale: 0 or an error. */
static int
outdate(struct op *op, struct stripe *stripe, struct entry *old)
{
    uint64_t cas = op->terms->new_cas;
    uint8_t fetched = old->marks & ITEMS__FETCHED, heat = old->heat;

    if (items__core_is_alone(old)) {
        old->item.cas = cas == 0 ? items__core_next_cas(op->items) : cas;
        mark_stale(op, old);
        return 0;
    }
    if (!items__op_has_room(op, old->item.value_len)) {
        return items__op_want(op, old->item.value_len);
    }
    items__op_fill(op, old->item.value, old->item.value_len, old->item.flags,
        old->expiry_s);
    mark_stale(op, op->draft);
    items__op_publish(op, stripe, old, ITEMS__HEIR, cas);
    op->done->marks |= fetched;
    op->done->heat = heat;
    return 0;
}

/* As outdate, of the empty item that takes its place. */
static int
outdate_empty(struct op *op, struct stripe *stripe, struct entry *old)
{
    int err = empty(op, stripe, old);

    if (err == 0) {
        if (op->terms->new_cas == 0) {
            op->done->item.cas = items__core_next_cas(op->items);
        }
        mark_stale(op, op->done);
    }
    return err;
}

/* Whether the step only asks for a draft now. */
static bool
will_wait(const struct op *op)
{
    return op->terms->empties && op->draft == NULL;
}

static int
step(struct op *op, struct stripe *stripe)
{
    const struct items_terms *terms = op->terms;
    struct entry *entry =
        items__core_find(op->items, stripe, &op->key, op->now_s);

    if (entry == NULL) {
        return ERR_NOT_FOUND;
    }
    if (terms->compares && terms->cas != entry->item.cas) {
        return ERR_EXISTS;
    }
    if (!terms->outdates && !will_wait(op)) {
        ITEMS__COUNT(
            stripe, items__stripe_class(stripe, entry), delete_hits, 1);
    }
    if (terms->empties) {
        return terms->outdates ? outdate_empty(op, stripe, entry)
                               : empty(op, stripe, entry);
    }
    if (terms->outdates) {
        return outdate(op, stripe, entry);
    }
    items__stripe_unlink(stripe, entry);
    return 0;
}

int
items_delete(struct items *items, const char *key, size_t key_len,
    const struct items_terms *terms, uint64_t now_s)
{
    struct op op = items__op_of(items, key, key_len, terms, now_s);

    return items__op_run(&op, step);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores: set, add, replace, append, prepend and cas, with their terms.
 *
 * A cas that is lower than the item's is a mistake, unless the store outdates:
 * then the value comes from somebody who read the item before it was made
 * stale. It is stored, but it stays stale, keeps the item's expiry, and who
 * was to make it anew still is. */
#include "items/op.h"

#include "base/err.h"

static bool
joins(enum items_op op)
{
    return op == ITEMS_APPEND || op == ITEMS_PREPEND;
}

/* Whether the store is one that a cas decides. An add looks at nothing but
 * whether something is there. */
static bool
is_cas(const struct items_store *store)
{
    return store->op == ITEMS_CAS ||
        (store->terms.compares &&
            (store->op == ITEMS_SET || store->op == ITEMS_REPLACE));
}

static uint64_t
expected_cas(const struct items_store *store)
{
    return store->terms.compares ? store->terms.cas : store->cas;
}

static bool
is_late(const struct items_store *store, const struct entry *old)
{
    uint64_t cas = expected_cas(store);

    return is_cas(store) && old != NULL && store->terms.outdates && cas != 0 &&
        cas < old->item.cas;
}

static int
cas_condition(const struct items_store *store, const struct entry *old)
{
    if (old == NULL) {
        return ERR_NOT_FOUND;
    }
    if (old->item.cas == expected_cas(store) || is_late(store, old)) {
        return 0;
    }
    return ERR_EXISTS;
}

static int
join_condition(const struct items_store *store, const struct entry *old)
{
    if (old == NULL) {
        return store->terms.vivifies ? 0 : ERR_NOT_STORED;
    }
    if (store->terms.compares && store->terms.cas != 0 &&
        store->terms.cas != old->item.cas) {
        return ERR_EXISTS;
    }
    return 0;
}

/* Whether the store may be done where old (NULL: nothing) is. */
static int
condition(const struct items_store *store, const struct entry *old)
{
    if (is_cas(store)) {
        return cas_condition(store, old);
    }
    if (joins(store->op)) {
        return join_condition(store, old);
    }
    if (store->op == ITEMS_ADD) {
        return old == NULL ? 0 : ERR_NOT_STORED;
    }
    return store->op == ITEMS_SET || old != NULL ? 0 : ERR_NOT_STORED;
}

/* Puts the joined value into the draft; old is there. */
static int
join(struct op *op, const struct entry *old)
{
    const struct items_store *store = op->ask;
    const char *first = old->item.value, *second = store->value;
    size_t first_len = old->item.value_len, second_len = store->value_len;
    size_t len = first_len + second_len;

    if (len > items__op_value_len_max(op)) {
        return ERR_TOO_LARGE;
    }
    if (!items__op_has_room(op, len)) {
        return items__op_want(op, len);
    }
    if (store->op == ITEMS_PREPEND) {
        first = store->value;
        first_len = store->value_len;
        second = old->item.value;
        second_len = old->item.value_len;
    }
    items__op_fill(op, first, first_len, old->item.flags, old->expiry_s);
    items__op_add(op, second, second_len);
    return 0;
}

/* Puts the value as it came into the draft, which may have been made for
 * something else. */
static int
fill(struct op *op, uint64_t expiry_s)
{
    const struct items_store *store = op->ask;

    if (!items__op_has_room(op, store->value_len)) {
        return items__op_want(op, store->value_len);
    }
    items__op_fill(op, store->value, store->value_len, store->flags, expiry_s);
    return 0;
}

/* The draft of a late store goes on where old is. */
static void
stay_stale(struct op *op, const struct entry *old)
{
    op->draft->expiry_s = old->expiry_s;
    op->draft->is_stale = true;
    op->draft->is_won = old->is_won;
}

static int
step(struct op *op, struct stripe *stripe)
{
    const struct items_store *store = op->ask;
    struct items_stored *out = op->answer;
    struct entry *old =
        items__core_find(op->items, stripe, &op->key, op->now_s);
    bool owes = old != NULL && store->op != ITEMS_ADD &&
        (store->op != ITEMS_SET || is_cas(store));
    int err = condition(store, old);

    if (err == 0 && joins(store->op)) {
        err = old != NULL ? join(op, old)
                          : fill(op, store->terms.vivify_expiry_s);
    }
    if (err == 0) {
        if (is_late(store, old)) {
            stay_stale(op, old);
        }
        err = items__op_publish(op, stripe, old,
            owes ? ITEMS__HEIR : ITEMS__BORN, store->terms.new_cas);
    }
    if (err == 0) {
        out->cas = op->done->item.cas;
        out->value_len = op->done->item.value_len;
    } else if (err == ERR_NOT_STORED && old != NULL) {
        items__core_use(
            stripe, old, op->now_s); /* an add of what is there is a use */
    }
    return err;
}

/* The draft of a store whose value is known before the lock. */
static int
draft(struct op *op)
{
    const struct items_store *store = op->ask;
    int err;

    op->room_wanted = store->value_len;
    err = items__op_draft(op);
    return err == 0 ? fill(op, store->expiry_s) : err;
}

int
items_store_tell(struct items *items, const struct items_store *store,
    uint64_t now_s, struct items_stored *out)
{
    struct op op =
        items__op_of(items, store->key, store->key_len, &store->terms, now_s);
    int err = 0;

    op.ask = store;
    op.answer = out;
    *out = (struct items_stored){0};
    if (store->value_len > items__op_value_len_max(&op)) {
        err = ERR_TOO_LARGE;
    } else if (!joins(store->op)) {
        err = draft(&op);
    }
    if (err == 0) {
        err = items__op_run(&op, step);
    }
    if ((err == ERR_TOO_LARGE || err == ERR_NO_MEMORY) &&
        store->op == ITEMS_SET) {
        (void)items_delete(items, store->key, store->key_len, NULL, now_s);
    }
    return err;
}

int
items_store(struct items *items, const struct items_store *store,
    uint64_t now_s, uint64_t *cas_out)
{
    struct items_stored stored;
    int err = items_store_tell(items, store, now_s, &stored);

    if (err == 0 && cas_out != NULL) {
        *cas_out = stored.cas;
    }
    return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores: set, add, replace, append, prepend and cas, with their terms.
 *
 * A cas that is lower than the item's is a mistake, unless the store outdates:
 * then the value comes from somebody who read the item before it was made
 * stale. It is stored, but it stays stale, keeps the item's expiry, and who
 * was to make it anew still is. */
#include "items/op.h"

#include "base/err.h"

#include <string.h>

enum {
    OVER_SLACK = 32, /* bytes that a value may leave unused, at least */
    OVER_PART = 8    /* of its length: the same */
};

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

    if (len > items__op_value_len_max(op, old->item.flags)) {
        return ERR_NOT_STORED;
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

/* Whether the value may be written over old's, which leaves its memory where
 * it is; not where much of that would be for nothing. */
static bool
fits_over(struct entry *old, size_t value_len)
{
    return old != NULL && value_len <= old->room &&
        old->room - value_len <= OVER_SLACK + value_len / OVER_PART &&
        items__core_is_alone(old);
}

static void
write_over(struct op *op, struct stripe *stripe, struct entry *old, bool owes,
    uint64_t expiry_s)
{
    const struct items_store *store = op->ask;
    uint64_t cas = store->terms.new_cas;

    items__stripe_resize(stripe, old, store->value_len);
    if (store->value_len > 0) {
        memcpy(items__entry_value(old), store->value, store->value_len);
    }
    old->item.flags = store->flags;
    old->item.cas = cas == 0 ? items__core_next_cas(op->items) : cas;
    items__core_expire(op->items, old, expiry_s);
    if (!owes) {
        old->born = items__core_birth(op->items);
    }
    old->marks = ITEMS__LINKED;
    items__core_use(old, op->now_s);
    stripe->sums.total_items++;
    op->done = old;
}

static void
publish(struct op *op, struct stripe *stripe, struct entry *old, bool owes)
{
    const struct items_store *store = op->ask;
    uint8_t heat = old == NULL ? 0 : old->heat;

    items__op_publish(op, stripe, old, owes ? ITEMS__HEIR : ITEMS__BORN,
        store->terms.new_cas);
    op->done->heat = heat;
}

/* A value as it came, where old (NULL: nothing) is. */
static int
put(struct op *op, struct stripe *stripe, struct entry *old, bool owes)
{
    const struct items_store *store = op->ask;
    uint64_t expiry_s =
        joins(store->op) ? store->terms.vivify_expiry_s : store->expiry_s;

    if (store->terms.keeps_expiry && old != NULL) {
        expiry_s = old->expiry_s;
    }
    if (fits_over(old, store->value_len)) {
        write_over(op, stripe, old, owes, expiry_s);
        return 0;
    }
    if (!items__op_has_room(op, store->value_len)) {
        return items__op_want(op, store->value_len);
    }
    items__op_fill(op, store->value, store->value_len, store->flags, expiry_s);
    publish(op, stripe, old, owes);
    return 0;
}

/* A value that comes too late, where old is. */
static int
put_stale(struct op *op, struct stripe *stripe, struct entry *old)
{
    uint8_t won = old->marks & ITEMS__WON;
    uint64_t expiry_s = old->expiry_s;
    int err = put(op, stripe, old, true);

    if (err == 0) {
        items__core_expire(op->items, op->done, expiry_s);
        op->done->marks |= ITEMS__STALE | won;
    }
    return err;
}

static int
put_joined(struct op *op, struct stripe *stripe, struct entry *old)
{
    int err = join(op, old);

    if (err == 0) {
        publish(op, stripe, old, true);
    }
    return err;
}

static int
step(struct op *op, struct stripe *stripe)
{
    const struct items_store *store = op->ask;
    struct items_stored *out = op->answer;
    struct entry *old =
        items__core_find(op->items, stripe, &op->key, op->now_s);
    bool decides = is_cas(store) && old != NULL;
    unsigned class_ = decides ? items__stripe_class(stripe, old) : 0;
    int err = condition(store, old);

    if (err == ERR_NOT_STORED && old != NULL) {
        items__core_use(old, op->now_s); /* an add of what is there */
    }
    if (err == 0) {
        bool owes = old != NULL &&
            (is_cas(store) || joins(store->op) || store->op == ITEMS_REPLACE);

        if (old != NULL && joins(store->op)) {
            err = put_joined(op, stripe, old);
        } else if (is_late(store, old)) {
            err = put_stale(op, stripe, old);
        } else {
            err = put(op, stripe, old, owes);
        }
    }
    if (err == 0) {
        out->cas = op->done->item.cas;
        out->value_len = op->done->item.value_len;
    }
    if (decides) {
        ITEMS__COUNT(stripe, class_, cas_badval, err == ERR_EXISTS);
        ITEMS__COUNT(stripe, class_, cas_hits, err == 0);
    }
    return err;
}

int
items_store_and_report(struct items *items, const struct items_store *store,
    uint64_t now_s, struct items_stored *out)
{
    struct op op =
        items__op_of(items, store->key, store->key_len, &store->terms, now_s);
    struct stripe *stripe = items__core_stripe(items, &op.key);
    unsigned class_ =
        items__classes_of(&items->classes, op.key.len, store->value_len);
    int err = ERR_TOO_LARGE;

    op.ask = store;
    op.answer = out;
    *out = (struct items_stored){0};
    if (store->value_len <= items__op_value_len_max(&op, store->flags)) {
        err = items__op_run(&op, step);
        ITEMS__COUNT(stripe, class_, cmd_set, 1);
        ITEMS__COUNT(stripe, class_, outofmemory, err == ERR_NO_MEMORY);
    }
    if ((err == ERR_TOO_LARGE || err == ERR_NO_MEMORY) &&
        store->op == ITEMS_SET) {
        const struct items_terms terms = {.is_hidden = store->terms.is_hidden};

        (void)items_delete(items, store->key, store->key_len, &terms, now_s);
    }
    return err;
}

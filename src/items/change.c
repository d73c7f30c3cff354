/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores, incr and decr: the operations that give an item a new value.
 *
 * A linked value is immutable but for one case, a number that changes in
 * place while nobody has it pinned. Otherwise a new entry (the draft) is made
 * without any lock held: charge, make room, allocate. Then, under the
 * stripe's lock, the step looks at what is there, decides, and links the
 * draft in place of the old entry. A set brings its value with the draft. An
 * append and a number see only under the lock how much room they need; where
 * they have no draft, or one too small, the step answers ROOM_WANTED, and it
 * all begins again with a larger one. That ends: a number needs 20 bytes at
 * most, and each further draft for an append is at least twice the last, up
 * to the largest value.
 *
 * What can go wrong: memory is out (in the draft, or in the table when the
 * draft is linked). Then nothing has changed, but a set takes the old value
 * away. */
#include "items/core.h"
#include "items/items.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"

#include <stdatomic.h>
#include <string.h>

enum { ROOM_WANTED = -1 }; /* result of a step; no enum err is negative */

/* One operation on its way. The caller's thread only. */
struct op {
    struct items *items;
    struct items_key key;
    uint64_t now_s;
    const struct items_store *store; /* of items_store */
    bool negative;                   /* of items_arith, as the next two */
    uint64_t delta;
    uint64_t number;     /* out */
    struct entry *draft; /* owned; NULL: none */
    size_t room_wanted;  /* for the value in the next draft */
};

static size_t
value_len_max(const struct op *op)
{
    return (size_t)op->items->item_bytes_max - ITEMS_HEADER_BYTES -
        op->key.len;
}

static void
draft_drop(struct op *op)
{
    if (op->draft != NULL) {
        items__entry_release(&op->items->budget, op->draft);
        op->draft = NULL;
    }
}

static int
draft_make(struct op *op)
{
    struct budget *budget = &op->items->budget;
    struct stripe *stripe = items__core_stripe(op->items, &op->key);
    size_t bytes = items__entry_bytes(op->key.len, op->room_wanted);

    draft_drop(op);
    if (!items__budget_could_fit(budget, bytes)) {
        return ERR_NO_MEMORY;
    }
    items__budget_charge(budget, bytes);
    if (items__core_make_room(op->items, stripe, op->now_s)) {
        op->draft = items__entry_create(budget, &op->key, op->room_wanted);
    }
    if (op->draft == NULL) {
        items__budget_refund(budget, bytes);
        return ERR_NO_MEMORY;
    }
    return 0;
}

/* Says what the next draft must hold; room is at most value_len_max. */
static int
want_room(struct op *op, size_t room)
{
    size_t doubled = op->draft == NULL ? 0 : 2 * op->draft->room;
    size_t most = value_len_max(op);

    ASSERT(room <= most);
    op->room_wanted = doubled > room ? doubled : room;
    if (op->room_wanted > most) {
        op->room_wanted = most;
    }
    return ROOM_WANTED;
}

static bool
has_room(const struct op *op, size_t room)
{
    return op->draft != NULL && op->draft->room >= room;
}

static char *
entry_value(struct entry *entry)
{
    return entry->bytes + entry->key_len;
}

/* memcpy that takes NULL for no bytes. */
static void
copy(char *to, const char *from, size_t len)
{
    if (len > 0) {
        memcpy(to, from, len);
    }
}

/* Links the draft, complete but for cas and birth, in place of old. heir: it
 * could not be there but for old, and shares its birth (see core.c). */
static int
publish(struct op *op, struct stripe *stripe, struct entry *old, bool heir)
{
    struct entry *entry = op->draft;

    entry->item.cas = items__core_next_cas(op->items);
    entry->born = heir ? old->born : entry->item.cas;
    if (!items__stripe_link(stripe, &op->key, entry, old)) {
        return ERR_NO_MEMORY;
    }
    op->draft = NULL;
    return 0;
}

/* Runs step under the key's stripe's lock until it has the room it wants. */
static int
run(struct op *op, int (*step)(struct op *op, struct stripe *stripe))
{
    struct stripe *stripe = items__core_stripe(op->items, &op->key);
    int err;

    for (;;) {
        items__stripe_lock(stripe);
        err = step(op, stripe);
        items__stripe_unlock(stripe);
        if (err != ROOM_WANTED) {
            break;
        }
        err = draft_make(op);
        if (err != 0) {
            break;
        }
    }
    draft_drop(op);
    /* for a table that has grown; elsewhere first, to keep what is new */
    (void)items__core_make_room(op->items, stripe + 1, op->now_s);
    return err;
}

static bool
joins(enum items_op op)
{
    return op == ITEMS_APPEND || op == ITEMS_PREPEND;
}

/* Whether the store may be done where old (NULL: nothing) is. */
static int
store_condition(const struct items_store *store, const struct entry *old)
{
    if (store->op == ITEMS_SET) {
        return 0;
    }
    if (store->op == ITEMS_ADD) {
        return old == NULL ? 0 : ERR_NOT_STORED;
    }
    if (store->op != ITEMS_CAS) {
        return old != NULL ? 0 : ERR_NOT_STORED;
    }
    if (old == NULL) {
        return ERR_NOT_FOUND;
    }
    return old->item.cas == store->cas ? 0 : ERR_EXISTS;
}

/* Puts the joined value into the draft. */
static int
join(struct op *op, const struct entry *old)
{
    const struct items_store *store = op->store;
    size_t old_len = old->item.value_len, len = old_len + store->value_len;
    bool at_end = store->op == ITEMS_APPEND;
    char *value;

    if (len > value_len_max(op)) {
        return ERR_TOO_LARGE;
    }
    if (!has_room(op, len)) {
        return want_room(op, len);
    }
    value = entry_value(op->draft);
    copy(at_end ? value : value + store->value_len, old->item.value, old_len);
    copy(at_end ? value + old_len : value, store->value, store->value_len);
    op->draft->item.value_len = (uint32_t)len;
    op->draft->item.flags = old->item.flags;
    op->draft->expiry_s = old->expiry_s;
    return 0;
}

static int
store_step(struct op *op, struct stripe *stripe)
{
    const struct items_store *store = op->store;
    struct entry *old =
        items__core_find(op->items, stripe, &op->key, op->now_s);
    int err = store_condition(store, old);
    bool heir = store->op != ITEMS_SET && store->op != ITEMS_ADD;

    if (err == 0 && joins(store->op)) {
        err = join(op, old);
    }
    if (err == 0) {
        err = publish(op, stripe, old, heir);
    }
    if (err == 0) {
        stripe->sums.total_items++;
        op->number = stripe->newest->item.cas;
    }
    return err;
}

/* The draft of a store whose value is known before the lock. */
static int
store_draft(struct op *op)
{
    const struct items_store *store = op->store;
    int err;

    op->room_wanted = store->value_len;
    err = draft_make(op);
    if (err == 0) {
        copy(entry_value(op->draft), store->value, store->value_len);
        op->draft->item.value_len = (uint32_t)store->value_len;
        op->draft->item.flags = store->flags;
        op->draft->expiry_s = store->expiry_s;
    }
    return err;
}

int
items_store(struct items *items, const struct items_store *store,
    uint64_t now_s, uint64_t *cas_out)
{
    struct op op = {.items = items, .now_s = now_s, .store = store};
    int err = 0;

    op.key = items__core_begin(items, store->key, store->key_len, now_s);
    if (store->value_len > value_len_max(&op)) {
        err = ERR_TOO_LARGE;
    } else if (!joins(store->op)) {
        err = store_draft(&op);
    }
    if (err == 0) {
        err = run(&op, store_step);
    }
    if (err != 0 && store->op == ITEMS_SET) {
        (void)items_delete(items, store->key, store->key_len, now_s);
    }
    if (err == 0 && cas_out != NULL) {
        *cas_out = op.number;
    }
    return err;
}

static uint64_t
arith(const struct op *op, uint64_t number)
{
    if (!op->negative) {
        return number + op->delta;
    }
    return number < op->delta ? 0 : number - op->delta;
}

/* Writes the number over the value, where nobody else can see it. */
static void
arith_in_place(struct op *op, struct stripe *stripe, struct entry *entry,
    const char *digits, size_t len)
{
    memcpy(entry_value(entry), digits, len);
    entry->item.value_len = (uint32_t)len;
    entry->item.cas = items__core_next_cas(op->items);
    items__stripe_use(stripe, entry);
}

static int
arith_step(struct op *op, struct stripe *stripe)
{
    struct entry *old =
        items__core_find(op->items, stripe, &op->key, op->now_s);
    char digits[NUM_U64_DIGITS_MAX];
    uint64_t number;
    size_t len;

    if (old == NULL) {
        return ERR_NOT_FOUND;
    }
    if (!num_parse_lenient_u64(
            old->item.value, old->item.value_len, &number)) {
        return ERR_NOT_NUMERIC;
    }
    op->number = arith(op, number);
    len = num_format_u64(op->number, digits);
    /* acquire: the reads of whoever unpinned it last are over */
    if (len <= old->room &&
        atomic_load_explicit(&old->refs, memory_order_acquire) == 1) {
        arith_in_place(op, stripe, old, digits, len);
        return 0;
    }
    if (!has_room(op, NUM_U64_DIGITS_MAX)) {
        return want_room(op, NUM_U64_DIGITS_MAX);
    }
    memcpy(entry_value(op->draft), digits, len);
    op->draft->item.value_len = (uint32_t)len;
    op->draft->item.flags = old->item.flags;
    op->draft->expiry_s = old->expiry_s;
    return publish(op, stripe, old, true);
}

int
items_arith(struct items *items, const char *key, size_t key_len,
    bool negative, uint64_t delta, uint64_t now_s, uint64_t *value_out)
{
    struct op op = {
        .items = items,
        .now_s = now_s,
        .negative = negative,
        .delta = delta,
    };
    int err;

    op.key = items__core_begin(items, key, key_len, now_s);
    err = run(&op, arith_step);
    if (err == 0) {
        *value_out = op.number;
    }
    return err;
}

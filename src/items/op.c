/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that give a key a new entry.
 *
 * An operation's step runs under the stripe's lock: it looks at the old entry
 * and decides. If it needs memory and has no draft, or one too small, it
 * answers ITEMS__ROOM_WANTED. Then the lock is left, room is made, the pool
 * gives a draft, and the step begins again. That ends: each further draft is at
 * least twice the last, up to the largest value. A linked value is immutable,
 * unless nobody has it pinned: then it may be written over.
 *
 * What can go wrong: there is no memory for the draft. Then nothing has
 * changed. */
#include "items/op.h"

#include "base/assert.h"
#include "base/err.h"

#include <string.h>

enum {
    GENTLE_LEAST = 16, /* segments that are cleaned with care for one store */
    GENTLE_TIMES = 8,  /* and for each that it asks for */
    OVER_CLEANINGS = 4
};

static const struct items_terms no_terms;

struct op
items__op_of(struct items *items, const char *key, size_t key_len,
    const struct items_terms *terms, uint64_t now_s)
{
    struct op op = {
        .items = items,
        .key = items__core_begin(items, key, key_len, now_s),
        .now_s = now_s,
        .terms = terms == NULL ? &no_terms : terms,
    };

    op.key.is_hidden = op.terms->is_hidden;
    return op;
}

size_t
items__op_value_len_max(const struct op *op, uint32_t flags)
{
    return (size_t)op->items->item_bytes_max - ITEMS_HEADER_BYTES -
        (flags == 0 ? 0 : ITEMS_FLAGS_BYTES) - op->key.len;
}

static void
drop_draft(struct op *op)
{
    if (op->draft != NULL) {
        items__pool_release(&op->items->pool, op->draft);
        op->draft = NULL;
    }
}

/* The limit has been lowered: a store brings it a little nearer. */
static void
clean_a_little(struct op *op)
{
    struct items_effort effort = {.n_gentle = OVER_CLEANINGS};

    while (effort.n < OVER_CLEANINGS &&
        items__room_make(op->items, &effort, op->now_s)) {
    }
}

/* Makes the draft with room_wanted bytes for the value: 0 or ERR_NO_MEMORY.
 * Wants no lock. */
static int
make_draft(struct op *op)
{
    struct pool *pool = &op->items->pool;
    struct stripe *stripe = items__core_stripe(op->items, &op->key);
    struct items_take take = {.key_len = op->key.len,
        .room = op->room_wanted,
        .stripe = stripe->number,
        .class_ = items__classes_of(
            &op->items->classes, op->key.len, op->room_wanted),
        .now_s = op->now_s,
        .is_hidden = op->key.is_hidden,
        .queue = ITEMS__FRESH};
    struct items_effort effort = {.n_gentle = GENTLE_LEAST +
            (unsigned)(GENTLE_TIMES * op->room_wanted / pool->segment_bytes)};

    mutex_assert_not_held(&stripe->lock);
    drop_draft(op);
    if (!items__pool_could_fit(pool, op->key.len, op->room_wanted)) {
        return ERR_NO_MEMORY;
    }
    op->draft = items__pool_take(pool, &take);
    while (op->draft == NULL) {
        if (!items__room_make(op->items, &effort, op->now_s)) {
            return ERR_NO_MEMORY;
        }
        op->draft = items__pool_take(pool, &take);
    }
    ASSERT(op->draft->key_len == op->key.len &&
        op->draft->room >= op->room_wanted);
    memcpy(op->draft->bytes, op->key.text, op->key.len);
    if (take.is_over_out) {
        clean_a_little(op);
    }
    return 0;
}

int
items__op_want(struct op *op, size_t room)
{
    size_t doubled = op->draft == NULL ? 0 : 2 * op->draft->room;
    size_t most = items__op_value_len_max(op, 0);

    ASSERT(room <= most);
    op->room_wanted = doubled > room ? doubled : room;
    if (op->room_wanted > most) {
        op->room_wanted = most;
    }
    return ITEMS__ROOM_WANTED;
}

bool
items__op_has_room(const struct op *op, size_t room)
{
    return op->draft != NULL && op->draft->room >= room;
}

void
items__op_fill(struct op *op, const char *value, size_t value_len,
    uint32_t flags, uint64_t expiry_s)
{
    struct entry *draft = op->draft;

    ASSERT(items__op_has_room(op, value_len));
    if (value_len > 0) {
        memcpy(items__entry_value(draft), value, value_len);
    }
    draft->item.value_len = (uint32_t)value_len;
    draft->item.flags = flags;
    items__core_expire(op->items, draft, expiry_s);
}

void
items__op_add(struct op *op, const char *value, size_t value_len)
{
    struct entry *draft = op->draft;
    size_t at = draft->item.value_len;

    ASSERT(items__op_has_room(op, at + value_len));
    if (value_len > 0) {
        memcpy(items__entry_value(draft) + at, value, value_len);
    }
    draft->item.value_len = (uint32_t)(at + value_len);
}

void
items__op_publish(struct op *op, struct stripe *stripe, struct entry *old,
    enum items_birth birth, uint64_t cas)
{
    struct entry *entry = op->draft;

    mutex_assert_held(&stripe->lock);
    ASSERT(entry->item.value_len <= entry->room);
    ASSERT(old != NULL || birth == ITEMS__BORN);
    entry->item.cas = cas == 0 ? items__core_next_cas(op->items) : cas;
    entry->born =
        birth == ITEMS__HEIR ? old->born : items__core_birth(op->items);
    entry->used_s = (uint32_t)op->now_s;
    items__stripe_link(stripe, &op->key, entry, old);
    /* once more: a pass of items_tend may have begun since */
    items__core_expire(op->items, entry, entry->expiry_s);
    stripe->sums.total_items++;
    op->done = entry;
    op->draft = NULL;
}

int
items__op_run(struct op *op, int (*step)(struct op *op, struct stripe *stripe))
{
    struct stripe *stripe = items__core_stripe(op->items, &op->key);
    int err;

    for (;;) {
        items__stripe_lock(stripe);
        err = step(op, stripe);
        items__stripe_unlock(stripe);
        if (err != ITEMS__ROOM_WANTED) {
            break;
        }
        err = make_draft(op);
        if (err != 0) {
            break;
        }
    }
    drop_draft(op);
    return err;
}

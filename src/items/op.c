/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that give a key a new entry.
 *
 * A linked value is immutable but for one case, a number that changes in
 * place while nobody has it pinned (arith.c). Otherwise a new entry (the
 * draft) is made without any lock held: charge, make room, allocate. Then,
 * under the stripe's lock, the step looks at what is there, decides, and
 * links the draft in place of the old entry. A set brings its value with the
 * draft. Other steps see only under the lock how much room they need; where
 * they have no draft, or one too small, the step answers ITEMS__ROOM_WANTED,
 * and it all begins again with a larger one. That ends: each further draft is
 * at least twice the last, up to the largest value.
 *
 * What can go wrong: memory is out (in the draft, or in the table when the
 * draft is linked). Then nothing has changed. */
#include "items/op.h"

#include "base/assert.h"
#include "base/err.h"

#include <string.h>

static const struct items_terms no_terms;

struct op
items__op_of(struct items *items, const char *key, size_t key_len,
    const struct items_terms *terms, uint64_t now_s)
{
    return (struct op){
        .items = items,
        .key = items__core_begin(items, key, key_len, now_s),
        .now_s = now_s,
        .terms = terms == NULL ? &no_terms : terms,
    };
}

size_t
items__op_value_len_max(const struct op *op)
{
    return (size_t)op->items->item_bytes_max - ITEMS_HEADER_BYTES -
        op->key.len;
}

void
items__op_drop(struct op *op)
{
    if (op->draft != NULL) {
        items__entry_release(&op->items->budget, op->draft);
        op->draft = NULL;
    }
}

int
items__op_draft(struct op *op)
{
    struct budget *budget = &op->items->budget;
    struct stripe *stripe = items__core_stripe(op->items, &op->key);
    size_t bytes = items__entry_bytes(op->key.len, op->room_wanted);

    items__op_drop(op);
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

int
items__op_want(struct op *op, size_t room)
{
    size_t doubled = op->draft == NULL ? 0 : 2 * op->draft->room;
    size_t most = items__op_value_len_max(op);

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
    draft->expiry_s = expiry_s;
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

int
items__op_publish(struct op *op, struct stripe *stripe, struct entry *old,
    enum items_birth birth, uint64_t cas)
{
    struct entry *entry = op->draft;
    uint64_t next = items__core_next_cas(op->items);

    entry->item.cas = cas == 0 ? next : cas;
    entry->born = birth == ITEMS__HEIR ? old->born : next;
    entry->used_s = op->now_s;
    if (!items__stripe_link(stripe, &op->key, entry, old)) {
        return ERR_NO_MEMORY;
    }
    stripe->sums.total_items++;
    op->done = entry;
    op->draft = NULL;
    return 0;
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
        err = items__op_draft(op);
        if (err != 0) {
            break;
        }
    }
    items__op_drop(op);
    /* for a table that has grown; elsewhere first, to keep what is new */
    (void)items__core_make_room(op->items, stripe + 1, op->now_s);
    return err;
}

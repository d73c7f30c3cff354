/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_SORTED_HELP_H
#define UNIT_SORTED_HELP_H

/* What the tests of arrays of members share. */

#include "engine/sorted.h"
#include "unit/member_help.h"

/* Reads members from the engine; hook_fn is called before each piece. */
struct walk {
    struct sorted_walk walk;
    struct rig *rig;
    unsigned n_calls;
    void (*hook_fn)(struct walk *walk);
    int err; /* what it says instead; 0: nothing */
};

static inline int
walk_next(const struct sorted_walk *walk, const struct sorted_key *key,
    uint64_t from, size_t n, uint64_t *member, size_t *n_found)
{
    struct walk *it = (struct walk *)walk;
    uint64_t value[512];
    ck_assert_uint_le(n, COUNT_OF(value));
    if (it->hook_fn != NULL) {
        it->hook_fn(it);
    }
    it->n_calls++;
    *n_found = engine_members(it->rig->engine, key->pairs, key->id,
        key->number, key->bits, from, n, member, value);
    return it->err;
}

static inline struct walk
walk_of(struct rig *rig)
{
    return (struct walk){.walk = {.next_fn = walk_next}, .rig = rig};
}

static inline struct sorted_key
sorted_key_of(struct rig *rig, uint64_t id)
{
    return (struct sorted_key){.id = id,
        .number = number_of(rig, id),
        .serial = rig->pairs.column[0].serial,
        .pairs = PAIRS,
        .bits = (uint8_t)rig->bits};
}

/* As the store does: what is there at once, else made. */
static inline int
pin_of(struct rig *rig, struct walk *walk, uint64_t id, struct sorted_pin *pin)
{
    struct sorted_key key = sorted_key_of(rig, id);
    return engine_pin(rig->engine, &key, pin)
        ? 0
        : engine_make_sorted(rig->engine, &key, &walk->walk, pin);
}

#endif

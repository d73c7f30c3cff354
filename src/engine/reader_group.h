/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_GROUP_H
#define ENGINE_READER_GROUP_H

/* A group of records that are asked for, and how keys become one, for the
 * instruction set that the including file has chosen; included for
 * reader_body.h only. */
#include "engine/engine_priv.h"
#include "engine/line_look.h"
#include "engine/line_read.h"
#include "engine/reader_plain.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

enum { READ_GROUP = LINE_LOOKS /* records under way together */ };
_Static_assert(READ_GROUP < 64, "a bit of a number for each");

/* The part of a request that is answered in one go. */
struct part {
    struct engine *engine;
    const struct cell_key *key;
    uint64_t *value;
    uint8_t *state;
    uint32_t n;
    uint32_t at; /* keys that are in groups already */
    struct plain plain;
};

/* Records that are asked for, array by array. In a row are those of one
 * counter with one key each, side by side: the first keys, ends, counters and
 * views of these are not spelled out; see keys_of. */
struct group {
    uint32_t n;
    bool is_row;
    bool is_single;                              /* one key a record */
    bool is_plain;                               /* all of part->plain */
    uint32_t first[READ_GROUP], end[READ_GROUP]; /* keys first..end-1 */
    const struct counter *counter[READ_GROUP];   /* NULL: none */
    const struct view *view[READ_GROUP];         /* no_view: no counter */
    uint64_t id[READ_GROUP];
    uint64_t row[READ_GROUP];
    uint64_t shard[READ_GROUP];
    const struct table *table[READ_GROUP]; /* no_table: none */
    uint64_t number[READ_GROUP];           /* of the line */
    uint64_t in_piece[READ_GROUP];         /* where in its piece, in bytes */
    uint64_t piece[READ_GROUP];
    struct line_looks looks;
};

/* The keys of a record. */
struct keys {
    uint32_t first, end;
    const struct view *view;
};

static inline struct keys
keys_of(const struct group *group, uint32_t i)
{
    if (group->is_row) {
        uint32_t first = group->first[0] + i;
        return (struct keys){first, first + 1, group->view[0]};
    }
    return (struct keys){group->first[i], group->end[i], group->view[i]};
}

/* Takes the keys that are next into the group, until it is full; cells of one
 * record that stand side by side are one. */
static inline void
take_keys(struct part *part, struct group *group)
{
    const struct cell_key *key = &part->key[part->at];
    const struct cell_key *end = &part->key[part->n];
    uint32_t n = 0;
    struct common common = look_at_counter(part->engine, key->counter);
    bool is_plain = true;
    do {
        uint64_t id = key->id;
        if (key->counter != common.slot) {
            common = look_at_counter(part->engine, key->counter);
        }
        is_plain &= common.view == part->plain.view;
        group->id[n] = id;
        group->first[n] = (uint32_t)(key - part->key);
        group->view[n] = common.view;
        group->counter[n] = common.counter;
        do {
            key++;
        } while (key != end && key->id == id && key->counter == common.slot);
        group->end[n++] = (uint32_t)(key - part->key);
    } while (n != READ_GROUP && key != end);
    part->at = (uint32_t)(key - part->key);
    group->n = n;
    group->is_row = false;
    group->is_single = false;
    group->is_plain = is_plain;
}

static inline uint64_t
id_of(const struct cell_key *key, unsigned i)
{
    return key[i].id;
}

/* Takes the ids of LANES keys. Not 0 where one of them is not of the counter in
 * slot, or has the same id as the next one of them. */
static inline lanes
take_ids(const struct cell_key *key, uint64_t slot, uint64_t *to)
{
    const lanes last = LANES_LAST;
    lanes rest = LANES_EACH(rest_of, key);
    lanes id = LANES_EACH(id_of, key);
    lanes_store(to, id);
    return ((rest ^ slot) & rest_made(0, UINT8_MAX, 0)) |
        ((lanes)(id == LANES_NEXT(id)) & ~last);
}

/* The same for the usual case, keys of one counter, each of another record:
 * false where it is not. A record that has the last key of a vector and the
 * first of the next one may count as two, which costs a lookup more. */
static inline bool
take_single_keys(struct part *part, struct group *group)
{
    const struct cell_key *key = &part->key[part->at];
    uint32_t at = part->at;
    uint32_t left = part->n - at;
    uint32_t n = left < READ_GROUP ? left : READ_GROUP;
    uint64_t slot = rest_made(0, key->counter, 0);
    lanes differ = {0};
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        differ |= take_ids(&key[i], slot, &group->id[i]);
    }
    bool is_other = lanes_any(differ);
    for (; i < n; i++) {
        group->id[i] = key[i].id;
        is_other |= key[i].counter != key->counter ||
            (i > 0 && key[i].id == key[i - 1].id);
    }
    if (is_other) {
        return false;
    }
    struct common common = look_at_counter(part->engine, key->counter);
    group->first[0] = at;
    group->view[0] = common.view;
    group->counter[0] = common.counter;
    group->n = n;
    group->is_row = true;
    group->is_single = true;
    group->is_plain = common.view == part->plain.view;
    part->at = at + n;
    return true;
}

/* engine__row for all of the group. */
static inline void
find_shards(const struct engine *engine, struct group *group)
{
    for (uint32_t i = 0; i < group->n; i += LANES) {
        lanes id = lanes_load(&group->id[i]);
        lanes row = id >> engine->shard_bits;
        lanes mix = row * engine->shard_odd >> ENGINE_MIX_SHIFT;
        lanes_store(&group->row[i], row);
        lanes_store(&group->shard[i], (id ^ mix) & (engine->n_shards - 1));
    }
}

LINE_TARGET_END

#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_GROUP_H
#define ENGINE_READER_GROUP_H

/* A group of records that are asked for, for the instruction set that the
 * including file has chosen; included for reader_body.h only. */
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
 * counter with the same columns each, side by side: the first keys, ends,
 * counters and views of these are not spelled out; see keys_of. */
struct group {
    uint32_t n;
    bool is_row;
    bool is_single;                              /* one key a record */
    bool is_plain;                               /* all of part->plain */
    uint32_t stride;                             /* in a row: keys a record */
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
        uint32_t first = group->first[0] + i * group->stride;
        return (struct keys){first, first + group->stride, group->view[0]};
    }
    return (struct keys){group->first[i], group->end[i], group->view[i]};
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

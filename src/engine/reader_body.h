/* SPDX-License-Identifier: BSD-3-Clause */

/* The batch read, for the one instruction set that the including file has
 * chosen (LINE_READ_... and READER_NAME); included once by each.
 *
 * Three rounds over each group of records, none of which waits for memory but
 * what the round before has asked for: (1) which table (directory), and ask
 * for its head; (2) which line, and ask for it; (3) look into it. Groups
 * overlap: lines of one group are on their way while the next one goes through
 * (1) and (2). Records that are not in their first lines are gathered from
 * group to group and go through (3) once more with their second ones. */
#include "engine/reader_locate.h"
#include "engine/reader_look.h"
#include "engine/reader_priv.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

enum {
    READ_PART = 1 << 20, /* keys of a request at a time */
    READ_KEYS = 512      /* of these, asked for before the first is read */
};

/* Round 3. */
static inline void
settle(const struct part *part, struct group *group, struct seconds *seconds)
{
    uint64_t open = look(part, group, false);
    for (; open != 0; open &= open - 1) {
        look_further(part, group, (uint32_t)__builtin_ctzll(open), seconds);
    }
}

/* A request for one record, of a few keys at most: there are no others to hide
 * what it waits for, so it goes the way with the fewest steps. False where it
 * is another request. */
static inline bool
get_one(struct part *part)
{
    const struct cell_key *first = part->key;
    const struct cell_key *last = &part->key[part->n - 1];
    struct group group;
    if (part->n > SHAPES_COLUMNS_MAX || last->id != first->id) {
        return false;
    }
    take_keys(part, &group);
    if (group.n != 1) {
        part->at = 0;
        return false;
    }
    struct engine_row row = engine__row(part->engine, first->id);
    group.row[0] = row.row;
    group.shard[0] = row.shard;
    group.table[0] = table_of(group.counter[0], row.shard, row.row);
    if (!table_covers(group.table[0], row.row)) {
        group.table[0] = &no_table;
    }
    look_everywhere(part, &group, 0);
    return true;
}

/* Asks for the first keys of a request, which may have been put together long
 * ago. */
static inline void
ask_keys(const struct part *part)
{
    uint32_t n = part->n < READ_KEYS ? part->n : READ_KEYS;
    for (uint32_t i = 0; i < n; i += LINE_BYTES / sizeof part->key[0]) {
        __builtin_prefetch(&part->key[i], 0, 2);
    }
}

static void
get_part(struct part *part)
{
    if (get_one(part)) {
        return;
    }
    struct group group[2];
    struct seconds seconds;
    ask_keys(part);
    group[1].n = 0;
    group[1].is_single = true;
    group[1].is_plain = true;
    seconds.group.n = 0;
    seconds.n_asked = 0;
    seconds.group.is_row = false;
    seconds.group.is_single = true;
    seconds.group.is_plain = true;
    learn_plain(part->engine, part->key->counter, &part->plain);
    for (unsigned side = 0; part->at < part->n || group[side ^ 1].n > 0;
         side ^= 1) {
        resolve(part, &group[side]);
        locate(part->engine, &group[side]);
        ask_seconds(&seconds);
        ENGINE_HOOK("located");
        settle(part, &group[side ^ 1], &seconds);
    }
    look_at_seconds(part, &seconds);
}

static void
get(struct engine *engine, const struct cell_key *key, size_t n,
    uint64_t *value, uint8_t *state)
{
    while (n > 0) {
        struct part part;
        part.engine = engine;
        part.key = key;
        part.value = value;
        part.state = state;
        part.n = n < READ_PART ? (uint32_t)n : READ_PART;
        part.at = 0;
        part.plain.view = NULL;
        get_part(&part);
        key += part.n;
        value += part.n;
        state += part.n;
        n -= part.n;
    }
}

LINE_TARGET_END

reader_get_fn *
READER_NAME(void)
{
    return LINE_TARGET_RUNS ? get : NULL;
}

#else

reader_get_fn *
READER_NAME(void)
{
    return NULL;
}

#endif

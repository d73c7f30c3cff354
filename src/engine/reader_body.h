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
#include "engine/reader_further.h"
#include "engine/reader_group.h"
#include "engine/reader_locate.h"
#include "engine/reader_look.h"
#include "engine/reader_priv.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

enum { READ_PART = 1 << 20 /* keys of a request at a time */ };

/* Round 3. */
static inline void
settle(const struct part *part, struct group *group, struct seconds *seconds)
{
    uint8_t open[READ_GROUP + 1];
    uint32_t n_open = look(part, group, false, open);
    for (uint32_t i = 0; i < n_open; i++) {
        look_further(part, group, open[i], seconds);
    }
}

static void
get_part(struct part *part)
{
    struct group group[2];
    struct seconds seconds;
    group[1].n = 0;
    seconds.group.n = 0;
    for (unsigned side = 0; part->at < part->n || group[side ^ 1].n > 0;
         side ^= 1) {
        resolve(part, &group[side]);
        locate(part->engine, &group[side]);
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
        struct part part = {.engine = engine,
            .key = key,
            .value = value,
            .state = state,
            .n = n < READ_PART ? (uint32_t)n : READ_PART};
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

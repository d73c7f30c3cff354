/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of what looks have found, oldest first. Two neighbours that become one
 * have the earlier moment and the later end: who lacks only what is in the
 * second one is then told of the moment of the first. What that adds to its age
 * is least, in proportion, for those chosen, so old ones are far apart and new
 * ones are close together. */
#include "repl/lag.h"

#include "base/assert.h"

#include <string.h>

enum { LAG_SCALE = 10 /* bits of a proportion */ };

void
lag_begin(struct lag *lag, uint64_t seq, uint64_t bytes, uint64_t now_us)
{
    lag->begin_seq = seq;
    lag->begin_bytes = bytes;
    lag->looked_us = now_us;
    lag->n = 0;
}

/* The second one becomes a part of the first. */
static void
join(struct lag *lag, unsigned i)
{
    struct lag_found *at = &lag->at[i];

    ASSERT(i + 1 < lag->n);
    ASSERT(at[0].last < at[1].last && at[0].from_us <= at[1].from_us);
    at[0].last = at[1].last;
    at[0].bytes = at[1].bytes;
    lag->n--;
    memmove(&at[1], &at[2], (lag->n - i - 1) * sizeof at[0]);
}

/* Makes room for one more. */
static void
thin_out(struct lag *lag, uint64_t now_us)
{
    uint64_t least = UINT64_MAX;
    unsigned best = 0;

    for (unsigned i = 0; i + 1 < lag->n; i++) {
        const struct lag_found *at = &lag->at[i];
        uint64_t more_us = at[1].from_us - at[0].from_us;
        uint64_t age_us = now_us - at[1].from_us;
        uint64_t cost = (more_us << LAG_SCALE) / (age_us + 1);

        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    join(lag, best);
}

void
lag_look(struct lag *lag, uint64_t last, uint64_t bytes, uint64_t now_us)
{
    uint64_t from_us = lag->looked_us;
    struct lag_found *newest = lag->n == 0 ? NULL : &lag->at[lag->n - 1];
    uint64_t before = newest == NULL ? lag->begin_seq : newest->last;

    ASSERT(last >= before && now_us >= from_us);
    lag->looked_us = now_us;
    if (last == before) {
        return;
    }
    if (newest != NULL && from_us - newest->from_us < LAG_STEP_US) {
        newest->last = last;
        newest->bytes = bytes;
        return;
    }
    if (lag->n == LAG_KEPT) {
        thin_out(lag, now_us);
    }
    lag->at[lag->n++] =
        (struct lag_found){.from_us = from_us, .last = last, .bytes = bytes};
}

bool
lag_of(const struct lag *lag, uint64_t seq, uint64_t *from_us, uint64_t *bytes)
{
    unsigned low = 0, high = lag->n; /* the first whose last is above seq */

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (lag->at[middle].last > seq) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *from_us = *bytes = 0;
    if (seq < lag->begin_seq) {
        return false;
    }
    if (low < lag->n) {
        *from_us = lag->at[low].from_us;
        *bytes = lag->at[lag->n - 1].bytes -
            (low == 0 ? lag->begin_bytes : lag->at[low - 1].bytes);
    }
    return true;
}

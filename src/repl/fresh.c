/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of frames, oldest first, of which the beginning goes when it has been
 * applied. Frames that tell of the same batch are one: the newest. */
#include "repl/fresh.h"

#include "base/assert.h"

#include <string.h>

uint64_t
fresh_way_us(struct fresh_way *way, uint64_t clock_us, uint64_t came_us,
    uint64_t rtt_us)
{
    uint64_t shift_us = came_us - clock_us, longer_us;

    if (way->is_known) {
        uint64_t drift_us = (came_us - way->at_us) / FRESH_DRIFT;

        way->shift_us += drift_us;
        way->at_us += drift_us * FRESH_DRIFT;
    }
    if (!way->is_known || shift_us - way->shift_us > UINT64_MAX / 2) {
        way->is_known = true;
        way->shift_us = shift_us; /* none was faster */
        way->at_us = came_us;
    }
    if (rtt_us != 0 && (way->rtt_us == 0 || rtt_us < way->rtt_us)) {
        way->rtt_us = rtt_us;
    }
    if (way->rtt_us == 0) {
        return UINT64_MAX;
    }
    longer_us = shift_us - way->shift_us + way->rtt_us;
    return longer_us > rtt_us ? longer_us : rtt_us;
}

void
fresh_add(
    struct fresh *fresh, uint64_t last, uint64_t came_us, uint64_t way_us)
{
    uint64_t left_us = came_us > way_us ? came_us - way_us : 1;
    unsigned n = fresh->n;

    ASSERT(n <= FRESH_KEPT);
    ASSERT(n == 0 || fresh->at[n - 1].last <= last);
    if (way_us == UINT64_MAX) {
        return;
    }
    if (n > 0 && fresh->at[n - 1].last == last) {
        if (fresh->at[n - 1].left_us < left_us) {
            fresh->at[n - 1].left_us = left_us;
        }
    } else if (n < FRESH_KEPT) {
        fresh->at[n].last = last;
        fresh->at[n].left_us = left_us;
        fresh->n++;
    }
}

uint64_t
fresh_age_us(struct fresh *fresh, uint64_t applied, uint64_t now_us)
{
    unsigned n = 0;

    while (n < fresh->n && fresh->at[n].last <= applied) {
        if (fresh->at[n].left_us > fresh->left_us) {
            fresh->left_us = fresh->at[n].left_us;
        }
        n++;
    }
    if (n > 0) {
        fresh->n -= n;
        memmove(fresh->at, fresh->at + n, fresh->n * sizeof fresh->at[0]);
    }
    if (fresh->left_us == 0) {
        return UINT64_MAX;
    }
    return now_us > fresh->left_us ? now_us - fresh->left_us : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_STATES_H
#define TIER_STATES_H

#include "base/assert.h"

#include <stdbool.h>

/* The states of the cold tier's pieces of work, and which step may follow
 * which. A step that the table does not have aborts: it would publish a part of
 * a range, or end the same work twice. Part of the store; nobody else calls
 * it. */

/* A seal (seal.c, which draws it). Until it is COLD nothing has changed. */
enum seal_state {
    SEAL_HOT,     /* nothing is copied, or it was given up */
    SEAL_COPIED,  /* what the engine has; records are being merged */
    SEAL_MERGED,  /* all records are with the writer */
    SEAL_WRITTEN, /* the file is whole, synced and open; or nothing is left */
    SEAL_COLD,    /* all shards have the new map */
    SEAL_STATES_N
};

/* A range that becomes hot (reheat.c, which draws it). */
enum reheat_state {
    REHEAT_COLD, /* records are being brought in */
    REHEAT_FULL, /* the engine has all of the range */
    REHEAT_HOT,  /* nothing covers it any more */
    REHEAT_STATES_N
};

/* What the tidier is at (tidier.c, which draws it). */
enum tidier_state {
    TIDIER_IDLE,
    TIDIER_SEALING,  /* a join, a merge, or what a file saves */
    TIDIER_HEATING,  /* a range that becomes hot */
    TIDIER_SETTLING, /* a manifest is to have what was done last */
    TIDIER_STATES_N
};

#define STATE_BIT(state) (1U << (state))

static const unsigned seal_next[SEAL_STATES_N] = {
    [SEAL_HOT] = STATE_BIT(SEAL_HOT) | STATE_BIT(SEAL_COPIED),
    [SEAL_COPIED] = STATE_BIT(SEAL_HOT) | STATE_BIT(SEAL_MERGED),
    [SEAL_MERGED] = STATE_BIT(SEAL_HOT) | STATE_BIT(SEAL_WRITTEN),
    [SEAL_WRITTEN] = STATE_BIT(SEAL_HOT) | STATE_BIT(SEAL_COLD),
};

static const unsigned reheat_next[REHEAT_STATES_N] = {
    [REHEAT_COLD] = STATE_BIT(REHEAT_FULL),
    [REHEAT_FULL] = STATE_BIT(REHEAT_HOT),
};

static const unsigned tidier_next[TIDIER_STATES_N] = {
    [TIDIER_IDLE] = STATE_BIT(TIDIER_SEALING) | STATE_BIT(TIDIER_HEATING),
    [TIDIER_SEALING] = STATE_BIT(TIDIER_IDLE) | STATE_BIT(TIDIER_SETTLING),
    [TIDIER_HEATING] = STATE_BIT(TIDIER_IDLE) | STATE_BIT(TIDIER_SETTLING),
    [TIDIER_SETTLING] = STATE_BIT(TIDIER_IDLE),
};

/* Each returns the new state. */
static inline enum seal_state
seal__step(enum seal_state from, enum seal_state to)
{
    ASSERT(from < SEAL_STATES_N && to < SEAL_STATES_N);
    ASSERT((seal_next[from] & STATE_BIT(to)) != 0);
    return to;
}

static inline enum reheat_state
reheat__step(enum reheat_state from, enum reheat_state to)
{
    ASSERT(from < REHEAT_STATES_N && to < REHEAT_STATES_N);
    ASSERT((reheat_next[from] & STATE_BIT(to)) != 0);
    return to;
}

static inline enum tidier_state
tidier__step(enum tidier_state from, enum tidier_state to)
{
    ASSERT(from < TIDIER_STATES_N && to < TIDIER_STATES_N);
    ASSERT((tidier_next[from] & STATE_BIT(to)) != 0);
    return to;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_STATES_H
#define TIER_STATES_H

#include "base/steps.h"

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

static const unsigned seal_steps[SEAL_STATES_N] = {
    [SEAL_HOT] = STEP_TO(SEAL_HOT) | STEP_TO(SEAL_COPIED),
    [SEAL_COPIED] = STEP_TO(SEAL_HOT) | STEP_TO(SEAL_MERGED),
    [SEAL_MERGED] = STEP_TO(SEAL_HOT) | STEP_TO(SEAL_WRITTEN),
    [SEAL_WRITTEN] = STEP_TO(SEAL_HOT) | STEP_TO(SEAL_COLD),
};

static const unsigned reheat_steps[REHEAT_STATES_N] = {
    [REHEAT_COLD] = STEP_TO(REHEAT_FULL),
    [REHEAT_FULL] = STEP_TO(REHEAT_HOT),
};

static const unsigned tidier_steps[TIDIER_STATES_N] = {
    [TIDIER_IDLE] = STEP_TO(TIDIER_SEALING) | STEP_TO(TIDIER_HEATING),
    [TIDIER_SEALING] = STEP_TO(TIDIER_IDLE) | STEP_TO(TIDIER_SETTLING),
    [TIDIER_HEATING] = STEP_TO(TIDIER_IDLE) | STEP_TO(TIDIER_SETTLING),
    [TIDIER_SETTLING] = STEP_TO(TIDIER_IDLE),
};

/* Each returns the new state. */
static inline enum seal_state
seal__step(enum seal_state from, enum seal_state to)
{
    ASSERT_STEP(seal_steps, from, to);
    return to;
}

static inline enum reheat_state
reheat__step(enum reheat_state from, enum reheat_state to)
{
    ASSERT_STEP(reheat_steps, from, to);
    return to;
}

static inline enum tidier_state
tidier__step(enum tidier_state from, enum tidier_state to)
{
    ASSERT_STEP(tidier_steps, from, to);
    return to;
}

#endif

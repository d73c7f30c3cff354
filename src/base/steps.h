/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_STEPS_H
#define BASE_STEPS_H

#include "base/assert.h"

#include <stdbool.h>
#include <stddef.h>

/* A state machine's table of legal steps: an array of unsigned, by the state
 * that is left; in each the bits of those that may follow. At most 32 states,
 * from 0 on. */

#define STEP_TO(state) (1U << (state))

/* Pure. */
static inline bool
steps_have(const unsigned *table, size_t n, unsigned from, unsigned to)
{
    return from < n && to < n && (table[from] & STEP_TO(to)) != 0;
}

/* The table, an array, has that step. */
#define ASSERT_STEP(table, from, to)                                          \
    ASSERT(steps_have((table), sizeof(table) / sizeof *(table),               \
        (unsigned)(from), (unsigned)(to)))

#endif

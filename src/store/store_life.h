/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_LIFE_H
#define STORE_STORE_LIFE_H

#include "base/steps.h"

#include <stdatomic.h>

/* The life of a store. Inside store.c, and for its test.
 *
 *   LOADING --> OPEN --> ENDING
 *      |                   ^
 *      +-------------------+
 *
 * Counters that live in memory only have nothing to load: they begin OPEN. */
enum store_life {
    STORE_LOADING, /* clients' calls are refused (ERR_LOADING) */
    STORE_OPEN,    /* all is loaded, and edits of the schema are taken */
    STORE_ENDING   /* no seal, no dump and no checkpoint begins any more, or it
                    * is being destroyed */
};

/* Takes a step, which must be a legal one. Whoever makes and destroys the store
 * takes them all; any thread reads life. */
static inline void
store_life_move(_Atomic int *life, enum store_life to)
{
    static const unsigned steps[] = {
        [STORE_LOADING] = STEP_TO(STORE_OPEN) | STEP_TO(STORE_ENDING),
        [STORE_OPEN] = STEP_TO(STORE_ENDING),
        [STORE_ENDING] = 0,
    };
    /* relaxed: this thread has written it */
    int from = atomic_load_explicit(life, memory_order_relaxed);
    ASSERT_STEP(steps, from, to);
    /* seq_cst: see real_fault, and store_want_checkpoint */
    atomic_store_explicit(life, to, memory_order_seq_cst);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_STEPS_HELP_H
#define UNIT_STEPS_HELP_H

/* Steps from one state to another: what is not drawn aborts. */

#include "unit/survives.h"

#include <stdbool.h>

/* Both are numbers: one may be no state at all. */
struct step {
    unsigned from, to;
};

struct steps__try {
    void (*step_fn)(struct step step);
    struct step step;
};

static inline void
steps__take(void *context)
{
    const struct steps__try *it = context;
    it->step_fn(it->step);
}

/* Takes each step between two of n states, or what stands for one, in a process
 * of its own: may[from * n + to] says whether it is a legal one. */
static inline void
expect_steps(void (*step_fn)(struct step step), const bool *may, unsigned n)
{
    struct steps__try it = {.step_fn = step_fn};
    for (unsigned i = 0; i < n * n; i++) {
        it.step = (struct step){i / n, i % n};
        ck_assert_msg(survives(steps__take, &it) == may[i],
            "from %u to %u: %s", it.step.from, it.step.to,
            may[i] ? "it aborts" : "it is taken");
    }
}

#endif

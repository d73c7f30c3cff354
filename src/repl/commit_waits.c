/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of moments, each with the last batch that was written then. */
#include "repl/commit_waits.h"

#include "base/assert.h"

#include <string.h>

static void
count(struct commit_figures *figures, uint64_t us)
{
    unsigned power = 0;

    while (power < COMMIT_WAITS_POWERS - 1 && us >> power != 0) {
        power++;
    }
    figures->us[power]++;
}

/* Takes those away that are committed. */
static void
end_waits(struct commit_waits *waits, struct commit_figures *figures,
    uint64_t committed, uint64_t now_us)
{
    unsigned n = 0;

    while (n < waits->n && waits->at[n].seq <= committed) {
        ASSERT(waits->at[n].from_us <= now_us);
        count(figures, now_us - waits->at[n].from_us);
        n++;
    }
    waits->n -= n;
    memmove(waits->at, waits->at + n, waits->n * sizeof waits->at[0]);
}

void
commit_waits_look(struct commit_waits *waits, struct commit_figures *figures,
    uint64_t written, uint64_t committed, uint64_t limit_us, uint64_t now_us)
{
    ASSERT(waits->n <= COMMIT_WAITS_KEPT);
    for (unsigned i = 0; i < waits->n; i++) {
        if (!waits->at[i].is_late &&
            now_us - waits->at[i].from_us >= limit_us) {
            waits->at[i].is_late = true;
            figures->late++;
        }
    }
    end_waits(waits, figures, committed, now_us);
    if (written > waits->seen && waits->n < COMMIT_WAITS_KEPT) {
        waits->at[waits->n].seq = written;
        waits->at[waits->n].from_us = now_us;
        waits->at[waits->n].is_late = false;
        waits->n++;
    }
    if (written > waits->seen) {
        waits->seen = written;
    }
}

void
commit_waits_begin(struct commit_waits *waits, uint64_t written)
{
    waits->n = 0;
    waits->seen = written;
}

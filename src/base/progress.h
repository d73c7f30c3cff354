/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include "base/clock.h"
#include "base/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Tells how far a long piece of work is: on a terminal one line that is
 * written over, else a line of the log now and then. Any thread may add. */
struct progress {
    struct logger *logger;
    const struct clock *clock;
    const char *what; /* "checkpoints", "log" */
    const char *unit; /* "records", "changes" */
    bool is_tty;
    _Atomic uint64_t all_bytes;
    uint64_t began_ns;
    _Atomic uint64_t bytes, units, next_ns;
};

/* clock: of when something is told. */
void progress_begin(struct progress *progress, struct logger *logger,
    const struct clock *clock, const char *what, const char *unit,
    uint64_t all_bytes);
void progress_add(struct progress *progress, uint64_t bytes, uint64_t units);

/* Ends the terminal's line; says what was done where that was anything. */
void progress_end(struct progress *progress);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_COMMIT_WAITS_H
#define REPL_COMMIT_WAITS_H

#include <stdbool.h>
#include <stdint.h>

/* For how long what a primary has written waits until enough replicas have it;
 * or, at a replica, what it has heard of until that is applied there. All that
 * is found to be written by one look counts as one. Pure; one thread
 * at a time; all zero at first. Times in microseconds of a clock that does not
 * go back. */

enum {
    COMMIT_WAITS_KEPT = 64,  /* that are not over; more are not measured */
    COMMIT_WAITS_POWERS = 32 /* of two, microseconds */
};

struct commit_waits {
    unsigned n;
    struct {
        uint64_t seq, from_us;
        bool is_late;        /* it has been counted */
    } at[COMMIT_WAITS_KEPT]; /* oldest first */
    uint64_t seen;           /* batches up to here have been seen */
};

/* What has come of them. */
struct commit_figures {
    uint64_t us[COMMIT_WAITS_POWERS]; /* waits below 2^i us, and not below
                                       * 2^(i-1); the last: all above */
    uint64_t late; /* that took longer than the limit, or do so now */
};

/* The log is written up to one batch and committed up to another. */
void commit_waits_look(struct commit_waits *waits,
    struct commit_figures *figures, uint64_t written, uint64_t committed,
    uint64_t limit_us, uint64_t now_us);

/* None is under way; of a log that is written up to that batch. */
void commit_waits_begin(struct commit_waits *waits, uint64_t written);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LAG_H
#define REPL_LAG_H

#include <stdbool.h>
#include <stdint.h>

/* How far behind the end of a log somebody is who has it up to some batch:
 * since when it lacks something, and how many bytes. The log's end is looked at
 * now and then; each look that finds more is kept, and where there are too many
 * of them neighbours become one, those first whose age that changes least. So
 * what is told is never less than what is so, and more by an eighth at most, or
 * by the time between two looks. Pure; one thread at a time. Times in
 * microseconds of a clock that does not go back. */

enum {
    LAG_KEPT = 512,
    LAG_STEP_US = 1000 /* what came within so long is one from the start */
};

/* What one look, or several, have found. */
struct lag_found {
    uint64_t from_us; /* its first batch was not there yet */
    uint64_t last;    /* its last batch */
    uint64_t bytes;   /* of the log, up to the end of that */
};

struct lag {
    uint64_t begin_seq, begin_bytes; /* what is before is not known */
    uint64_t looked_us;              /* the last look */
    unsigned n;
    struct lag_found at[LAG_KEPT]; /* last, bytes and from_us ascend */
};

/* Begins with a log that ends with batch seq, after so many bytes, counted from
 * anywhere. */
void lag_begin(struct lag *lag, uint64_t seq, uint64_t bytes, uint64_t now_us);

/* The log ends with that batch now; neither it nor bytes ever goes back. now_us
 * was read before that was looked at. */
void lag_look(struct lag *lag, uint64_t last, uint64_t bytes, uint64_t now_us);

/* Who has all up to batch seq: *from_us is a moment when it lacked nothing yet
 * of what it lacks now (0: it lacks nothing), *bytes what that comes to. False:
 * not known, since it lacks something of before lag_begin. */
bool lag_of(
    const struct lag *lag, uint64_t seq, uint64_t *from_us, uint64_t *bytes);

#endif

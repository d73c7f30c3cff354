/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEAL_TIDY_H
#define TIER_SEAL_TIDY_H

#include "tier/seal.h"

/* What is worth doing with ranges that are cold already, while nothing presses
 * (doc/adr/0018-life-of-segments.md). Part of the store; nobody else calls it.
 */

/* How far that goes. */
struct seal_tidy_bounds {
    uint64_t look_ms;       /* between looks for something to do */
    uint64_t slice_ms;      /* of work before others have their turn, and as
                             * long as that for them; 0: a step */
    uint64_t step_records;  /* between looks at the clock */
    unsigned fan_in;        /* 2..: how many ranges make one */
    uint64_t join_blocks;   /* of what is made of several, at most; 2 x
                             * fan_in.. */
    uint64_t least_records; /* in memory that are worth writing a range anew;
                             * in a gap that is closed, at most */
};

/* What a server does. */
struct seal_tidy_bounds seal_tidy_usual(void);

/* A cold range as it is now. Figures are estimates. */
struct seal_tidy_range {
    uint64_t first_id, last_id;
    uint64_t blocks;      /* of its file, that it has; 0: none */
    uint64_t records;     /* in these */
    uint64_t file;        /* number of the file */
    uint64_t file_blocks; /* that the file has */
    uint64_t file_live;   /* of these, in ranges of the list */
    uint64_t n_hot;       /* records of it in memory: the overlay */
    uint64_t n_gap;       /* records in memory between the one before and it */
    bool is_quiet;        /* none of the overlay has changed since the last
                           * checkpoint */
};

enum seal_tidy_kind {
    SEAL_TIDY_NOTHING,
    SEAL_TIDY_HEAT,  /* the range is to be hot again */
    SEAL_TIDY_MERGE, /* with its overlay */
    SEAL_TIDY_SAVE,  /* writing it anew gives back what is dead in its file */
    SEAL_TIDY_JOIN   /* the ranges become one */
};

struct seal_tidy_choice {
    enum seal_tidy_kind kind;
    size_t first, last; /* of the list */
};

/* What can be had. */
struct seal_tidy_room {
    uint64_t copy_records; /* from memory into one segment, at most */
    uint64_t heat_records; /* that may become hot, at most */
};

/* What to do first with n ranges of a counter, by id. Pure. */
struct seal_tidy_choice seal_tidy_choose(const struct seal_tidy_bounds *bounds,
    const struct seal_tidy_room *room, const struct seal_tidy_range *range,
    size_t n);

/* What is cold of a counter: *out is from the heap, the caller's; NULL where
 * *n is 0. 0 or ERR_NO_MEMORY. The thread that seals. */
int seal_tidy_list(const struct seal *seal, unsigned slot,
    struct seal_tidy_range **out, size_t *n);

/* Makes n_hot of a range what it is. The thread that seals. */
void seal_tidy_measure(
    const struct seal *seal, unsigned slot, struct seal_tidy_range *range);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEAL_PICK_H
#define TIER_SEAL_PICK_H

#include "tier/seal_aside.h"
#include "tier/seal_choose.h"

/* Which range is sealed next. Part of the store; nobody else calls it. */

/* Records that are copied for one range of a counter with so many columns, at
 * most, about. Any thread. */
uint64_t seal_pick__chunk(const struct seal *seal, unsigned n_columns);

/* The next range of a counter from id `from` on that has hot records, of so
 * many that a seal can hold them; false where there is none. n_cold and heat
 * are left 0. Any thread. 0 in n_hot never. */
bool seal_pick_next(const struct seal *seal, unsigned slot, uint64_t from,
    struct seal_candidate *out);

/* The best range of all counters to make room, as their cold= says; false where
 * nothing is in memory, but in ranges that are set aside and of counters with
 * cold=never. It has a hot record
 * for sure, if no other thread removes that. With cold=oldest the newest range
 * of a counter only where others would free less for what they write. Takes
 * edit_lock. The thread that seals. */
bool seal_pick__best(
    struct seal *seal, const struct seal_aside *aside, struct seal_range *out);

/* What is left of the range that seal_pick__soon takes in parts; all 0:
 * nothing. The thread that seals. */
struct seal_rest {
    bool is_open;
    unsigned slot;
    uint64_t first_id, last_id;
    double least;  /* seal_score of a part that is worth it */
    uint64_t most; /* records written for a part */
};

/* The same where writers are about to wait: what frees most for what it
 * writes, wherever it is, in parts of at most 524,288 records to be written, or
 * of 1/1,024 of the cold ones if that is more (seal->chunk where that is set),
 * about. Each part is behind the last one until *rest has no more that frees
 * about as much; then the best range is looked for again. Of those that free
 * alike the lowest goes first, but one that is written much, and the newest one
 * of cold=oldest, last. False, its record, lock and thread as above. */
bool seal_pick__soon(struct seal *seal, const struct seal_aside *aside,
    struct seal_rest *rest, struct seal_range *out);

/* A range that is due by its counter's cold_after=: of ids that are more than
 * that below the largest one, with 32,768 hot records (half of seal->chunk
 * where that is set), not written much at present, and not set aside. False
 * where there is none. Locks and thread as above. */
bool seal_pick__due(const struct seal *seal, const struct seal_aside *aside,
    struct seal_range *out);

/* Candidates by state, of all counters. */
#define SEAL_STATES(X)                                                        \
    X(ranges_hot,                                                             \
        "ranges as they would be sealed, with nothing in a segment")          \
    X(ranges_overlaid, "ranges with hot records over a segment")              \
    X(ranges_written, "of these and those, the ones written lately")

struct seal_states {
#define X(name, text) uint64_t name;
    SEAL_STATES(X)
#undef X
};

/* Counts them now; some hundred nanoseconds a table. Any thread. */
void seal_pick__states(const struct seal *seal, struct seal_states *states);

#endif

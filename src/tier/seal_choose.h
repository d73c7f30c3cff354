/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEAL_CHOOSE_H
#define TIER_SEAL_CHOOSE_H

#include "tier/seal.h"

/* Which of some candidates is sealed. Pure. Part of the store; nobody else
 * calls it. */

/* A range of ids that could be sealed, and what is known of it. */
struct seal_candidate {
    struct seal_range range;
    uint64_t n_hot;     /* records in hot tables, about */
    uint64_t hot_bytes; /* of memory that these take, about */
    uint64_t n_cold;    /* in the segments that cover it, about */
    double heat;        /* how much a table of it is written, on average by
                      * records: engine_extent's */
    bool is_last;       /* the newest ids of the counter are in it */
};

/* Hot records that are worth a file, or what they take: some are wide. */
enum { SEAL_LEAST_RECORDS = 4096, SEAL_LEAST_BYTES = 128 * 1024 };

/* Records that are rewritten for one that goes out of memory, where a range is
 * fair. */
enum { SEAL_COLD_SHARE_MAX = 8 };

/* What may be looked at of a counter, for cold=oldest: its lowest candidates,
 * which are all of nearly the same age. */
enum {
    SEAL_PEERS_MIN = 2,
    SEAL_PEERS_MAX = 16,
    SEAL_PEERS_SHARE = 8 /* as many as have that part of the hot records */
};

/* True where what is hot of it is worth a file. */
bool seal_is_worth(const struct seal_candidate *it);

/* What its seal would free for each record that it would write, a file counted
 * as SEAL_LEAST_RECORDS of them: to compare candidates where none is fair.
 * is_newest: where new ids go; then an eighth. 0 only where nothing is hot. */
double seal_score(const struct seal_candidate *it, bool is_newest);

/* True where so much of it is hot that it is worth writing what is cold of it
 * anew, and that it is worth a file. */
bool seal_is_fair(const struct seal_candidate *it);

/* True where it is written much more than the quietest of its peers, whose
 * heat is `least`. */
bool seal_is_heavy(const struct seal_candidate *it, double least);

/* The first of n >= 1 candidates that is not heavy beside the quietest. */
size_t seal_choose(const struct seal_candidate *peer, size_t n);

/* True where it is written so much that to seal it by itself, with memory to
 * spare, would be in vain: much of it would be hot again soon. */
bool seal_is_busy(const struct seal_candidate *it);

/* A row between two, up to which about `wanted` records are written, if they
 * lie evenly: n_low (below that) up to the lower one, n_high (above n_low) up
 * to the other, which is more than one above. */
uint64_t seal_guess_row(uint64_t low, uint64_t high, uint64_t n_low,
    uint64_t n_high, uint64_t wanted);

#endif

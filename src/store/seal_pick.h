/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_SEAL_PICK_H
#define STORE_SEAL_PICK_H

#include "store/seal.h"

/* Which range is sealed next. Part of the store; nobody else calls it. */

/* Records that are copied for one range of a counter with so many columns, at
 * most, about. Any thread. */
uint64_t seal_pick_chunk(const struct seal *seal, unsigned n_columns);

/* The next range of a counter from id `from` on that has hot records, of so
 * many that a seal can hold them; false where there is none. is_last: the
 * newest ids of the counter are in it. Any thread. 0 in *n_hot never. */
struct seal_candidate {
    struct seal_range range;
    uint64_t n_hot;  /* records in hot tables, about */
    uint64_t n_cold; /* in the segments that cover it, about */
    bool is_last;
};
bool seal_pick_next(const struct seal *seal, unsigned slot, uint64_t from,
    struct seal_candidate *out);

/* The best range of all counters to make room; false where there is none. The
 * newest range of a counter only where there is no other. tried: a range in
 * which the engine had nothing (n_rows = 0), which is passed over with all that
 * the counter has before it; or all 0. The thread that seals. */
bool seal_pick_best(const struct seal *seal, const struct seal_range *tried,
    struct seal_range *out);

#endif

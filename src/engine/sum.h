/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_SUM_H
#define ENGINE_SUM_H

#include <stdint.h>

/* What the engine holds of one counter, in one shard or in all. Figures of
 * moments that may be one change apart. */
#define ENGINE_SUMS(X)                                                        \
    X(tables, "range tables")                                                 \
    X(records, "records, those in stashes included")                          \
    X(lines, "lines of 64 bytes")                                             \
    X(used_bits, "bits of lines taken by records")                            \
    X(usable_bits, "bits of lines that records can take")                     \
    X(line_bytes, "memory of lines")                                          \
    X(stash_records, "records in stashes")                                    \
    X(stash_wide, "of these, too wide for any shape of their table")          \
    X(stash_bytes, "memory of stashes")                                       \
    X(other_bytes, "memory of table heads, shapes and directories")           \
    X(far_records, "records in their second line")                            \
    X(mask_bits, "bits set in overflow masks")                                \
    X(moves, "records moved to their other line to make room")                \
    X(rebuilds, "tables made anew, all reasons")                              \
    X(splits, "tables cut in two or more")                                    \
    X(merges, "tables joined")                                                \
    X(tightened, "tables packed after they stopped growing")

struct engine_sum {
#define X(name, text) uint64_t name;
    ENGINE_SUMS(X)
#undef X
};

enum { ENGINE_WIDTHS = 65 };

/* Of counters of pairs (engine_numbers). */
struct engine_numbers {
    uint64_t given; /* numbers that no record gets any more */
    uint64_t marks; /* records that are no members: they reserve numbers; of
                     * covered ones about so many, or fewer */
    uint64_t
        counting; /* 1 while their number is not exact (engine_count_rows) */
    /* of the whole engine, see struct engine_given_up; over several calls the
     * most that waited, and whether it was looking in any: with 0 of both what
     * was counted meanwhile has nothing that was given up */
    uint64_t waiting, lost, unread, taken_out, looking;
};

#endif

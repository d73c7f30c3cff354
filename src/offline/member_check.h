/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_MEMBER_CHECK_H
#define OFFLINE_MEMBER_CHECK_H

#include "base/buf.h"
#include "offline/member_ids.h"

/* The part of --check that is about members. */

struct member_check {
    const struct member_ids *members; /* with_counts; all columns are known,
                                       * and sorted */
    const struct schema *schema;      /* as it is at the end of the log */
    struct recover_reader *reader;    /* of the manifest's images */
    struct disk *disk;                /* with its segments */
    struct logger *logger;
};

/* What a check has found of a column. */
struct member_check_figures {
    uint64_t members;     /* of records */
    uint64_t unreachable; /* pairs of numbers that no record has */
    uint64_t twice;       /* records that have the number of another one */
    uint64_t miscounted;  /* records whose count is another than theirs */
};

/* Reads the segments and images of all counters of pairs, and compares. Logs
 * what is wrong, a column's first ones by their ids, and the pairs that nobody
 * can reach; appends how many members and such pairs there are to out.
 * miscount_fn (or NULL) is told each record whose count is another, and how
 * many members it has: 0, or an ERR_ that ends it. 0; ERR_CORRUPT: two records
 * have one number, or a count is wrong; or an error of recover_read or
 * recover_each_segment. */
int member_check(const struct member_check *check, struct buf *out,
    int (*miscount_fn)(
        void *context, uint32_t serial, uint64_t id, uint64_t n_members),
    void *context);

#endif

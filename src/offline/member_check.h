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
    uint64_t wrong;       /* notes that the number of a record is given up */
};

/* Who is told what is to be made right; each returns 0, or an ERR_ that ends
 * the check. */
struct member_check_mender {
    void *context;
    /* A record has another number of members than the column of that serial
     * says. */
    int (*miscount_fn)(
        void *context, uint32_t serial, uint64_t id, uint64_t n_members);
    /* A pair of the counter whose one column that is, is such a note. */
    int (*wrong_fn)(void *context, uint32_t serial, uint64_t pair_id);
};

/* Reads the segments and images of all counters of pairs, and compares. Logs
 * what is wrong, a column's first ones by their ids, and the pairs that nobody
 * can reach; appends how many members and such pairs there are to out.
 * The mender may be NULL. 0; ERR_CORRUPT: two records have one number, a count
 * is wrong, or a number is said to be given up that a record has; or an error
 * of recover_read or recover_each_segment. */
int member_check(const struct member_check *check, struct buf *out,
    const struct member_check_mender *mender);

#endif

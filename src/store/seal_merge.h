/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_SEAL_MERGE_H
#define STORE_SEAL_MERGE_H

#include "cold/segment_scan.h"
#include "cold/segment_write.h"
#include "engine/engine_copy.h"
#include "store/covers.h"

/* The records of a range in order of their ids, those that the engine has in
 * front of those that segments have. Part of the store; nobody else calls it.
 * One thread at a time. */

struct seal_merge_shard {
    unsigned shard;
    uint32_t at; /* in its rows */
    uint64_t id; /* of that row */
};

struct seal_merge {
    struct engine *engine;           /* not owned, like rows and list */
    const struct engine_rows *rows;  /* n_shards */
    const struct covers_map *list;   /* NULL: no segments */
    const struct segment_head *head; /* its columns are those of the codes */
    struct seal_merge_shard *heap;   /* owned; the lowest id first */
    size_t n_heap;
    size_t at_entry;                /* of list */
    struct segment_scan *scan;      /* owned; of that entry */
    struct segment_records records; /* of scan */
    size_t at_record;
    uint64_t n_hot; /* records that came from the engine */
};

/* The caller fills what is not owned. 0 or ERR_NO_MEMORY. */
int seal_merge_init(struct seal_merge *merge, unsigned n_shards);
void seal_merge_fini(struct seal_merge *merge);

/* The next record; *is_end where there is none. Those with no number in any
 * column of head are left out. 0, or an error of segment_scan_next. */
int seal_merge_next(struct seal_merge *merge, uint64_t *id,
    uint64_t code[SCHEMA_COLUMNS_MAX], bool *is_end);

#endif

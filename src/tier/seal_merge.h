/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEAL_MERGE_H
#define TIER_SEAL_MERGE_H

#include "cold/segment_scan.h"
#include "cold/segment_write.h"
#include "engine/engine_copy.h"
#include "tier/segment_map.h"

/* The records of a range in order of their ids, those that the engine has in
 * front of those that segments have. Part of the store; nobody else calls it.
 * One thread at a time. */

/* Rows of one shard that are still to come, one at least. */
struct seal_merge_shard {
    unsigned shard;
    uint32_t at, n;                           /* in its rows; of them */
    uint64_t id, next_id;                     /* of that row, the next one */
    const uint64_t *row;                      /* n, like each code */
    const uint64_t *code[SCHEMA_COLUMNS_MAX]; /* by the head's columns; NULL:
                                                 * the shard has none */
};

/* Who came there, of those who compete for the lowest id. */
struct seal_merge_node {
    uint64_t id;
    uint64_t live; /* its place in seal_merge.live */
};

struct seal_merge {
    struct engine *engine;               /* not owned, like rows and list */
    const struct engine_rows *rows;      /* n_shards */
    const struct segment_map_list *list; /* NULL: no segments */
    const struct segment_head *head; /* its columns are those of the codes */
    bool is_narrow;                  /* segments are read block by block */
    struct seal_merge_shard *live;   /* owned; of n_live shards */
    struct seal_merge_node *node;    /* owned; the lowest id first */
    size_t n_live;
    size_t at_entry;                  /* of list */
    struct segment_scan *scan;        /* owned; of that entry */
    struct segment_records records;   /* of scan */
    uint8_t from[SCHEMA_COLUMNS_MAX]; /* by the head's columns: which one of
                                       * that segment; or n_columns of it */
    size_t at_record;
    /* What has come so far: see seal_merge__check. */
    uint64_t n_hot;    /* records that came from the engine */
    uint64_t n_out;    /* all that were given out */
    uint64_t n_cold;   /* read from segments, of their entries' ids */
    uint64_t n_hidden; /* of these, those that the engine has too */
    uint64_t n_empty;  /* without a number, and so left out */
};

/* The caller fills what is not owned. 0 or ERR_NO_MEMORY. */
int seal_merge_init(struct seal_merge *merge, unsigned n_shards);
void seal_merge_fini(struct seal_merge *merge);

/* At its end: asserts that what was given out is all that the engine has and
 * all that segments have, but what is hidden and what is empty. */
void seal_merge__check(const struct seal_merge *merge, uint64_t n_rows);

/* The next record; *is_end where there is none. Those with no number in any
 * column of head are left out. 0, or an error of segment_scan_next. */
int seal_merge_next(struct seal_merge *merge, uint64_t *id,
    uint64_t code[SCHEMA_COLUMNS_MAX], bool *is_end);

#endif

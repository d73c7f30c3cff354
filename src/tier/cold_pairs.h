/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_COLD_PAIRS_H
#define TIER_COLD_PAIRS_H

#include "cold/segment_scan.h"
#include "tier/segment_map.h"

/* The records of a counter of pairs (schema.h) that segments have, by id,
 * whatever the engine has. Part of the store; nobody else calls it. Calls wait
 * for the disk; one thread at a time. */

struct cold_pair {
    uint64_t id, code; /* code: not 0 */
    uint64_t version;  /* of what covers it (engine/cover.h) */
};

struct cold_pairs {
    struct segment_map_list *list; /* owned; NULL: nothing is covered */
    size_t at_entry;
    uint64_t from_id; /* those below have been, or are not wanted */
    bool is_over;
    struct segment_scan *scan; /* owned; of that entry */
    uint32_t next_block;       /* of it */
    struct segment_records records;
    size_t at; /* the next one of records */
    uint64_t bad_last_id;
};

/* Begins with ids first_id..last_id of the counter in a slot, in what covers
 * them now; that stays readable until the end. serial is of its one column. 0;
 * ERR_NO_MEMORY; ERR_GONE where the slot is not that counter's any more, and
 * what was read of it before this call is void, too. In each case
 * cold_pairs_fini is to be called. */
int cold_pairs_init(struct cold_pairs *it, struct segment_map *segment_map,
    unsigned slot, uint32_t serial, uint64_t first_id, uint64_t last_id);
void cold_pairs_fini(struct cold_pairs *it);

/* Goes on at that id, which is not below those that have come. Blocks in
 * between are not read, but for a few. */
void cold_pairs_seek(struct cold_pairs *it, uint64_t id);

/* The next one; *is_end where there is none, and *out is void. 0;
 * ERR_NO_MEMORY, and the same is looked for again; ERR_CORRUPT,
 * ERR_NEWER_FORMAT, ERR_DISK: what there is up to bad_last_id cannot be read,
 * and the next call goes on behind it. */
int cold_pairs_next(
    struct cold_pairs *it, struct cold_pair *out, bool *is_end);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_COLD_MEMBERS_H
#define TIER_COLD_MEMBERS_H

#include "tier/segment_map.h"

/* The members of a record where pairs of them may be in segments
 * (engine/members.h has those of the engine alone). */

struct cold_record {
    uint64_t id, number; /* of the record, and its number: not 0 */
    uint32_t serial;     /* of the one column of pairs */
    unsigned pairs;      /* slot of their counter */
    unsigned bits;       /* members are below 2^bits */
};

/* The members of a record that are >= from: writes the first n (> 0) of them,
 * ascending, to member[], and what they have, never 0, to value[]; *n_found is
 * how many there are. *next is the member to go on from for the others; 2^bits
 * where there are no more. What the engine has counts, whatever a segment says.
 * What changes meanwhile may be in it or not.
 *
 * 0; ERR_NO_MEMORY; ERR_GONE where these are no pairs any more, and what was
 * written is void, by this call and those before it; ERR_CORRUPT,
 * ERR_NEWER_FORMAT, ERR_DISK: what a segment has of the members before *next
 * cannot be read, so that some may be missing there; those that were found are
 * written, and *next is further on than from.
 *
 * Holds edit_lock while it looks into the engine (through whole tables, one
 * under each hold of the shard's lock: some 0.3 ms), and then reads some blocks
 * of segments; takes some 300 KB. Any thread that may wait for both and does
 * not hold edit_lock. */
int cold_members(struct segment_map *segment_map,
    const struct cold_record *record, uint64_t from, size_t n,
    uint64_t *member, uint64_t *value, size_t *n_found, uint64_t *next);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_ENTRY_MEMBERS_H
#define WAL_ENTRY_MEMBERS_H

#include "base/assert.h"
#include "base/bytes.h"
#include "schema/schema.h"

#include <stddef.h>
#include <stdint.h>

/* Changes of members as one entry. A member that comes or goes changes two
 * records: the one that has it, where it is counted, and its pair. Changes
 * that have the same columns, and leave the same value in their pairs, have
 * these once, in the entry's head. What they have become is told, nothing of
 * before. entry_next gives each as two entries of cells, record and pair. The
 * layout (doc/format-log.md):
 *
 *   1 byte: kind in bits 0..2, number of changes (1..15) in bits 3..6, and in
 *           bit 7 whether the pairs' serial is written
 *   1 byte: number of a record's cells - 1 in bits 0..3, bytes of a pair's
 *           id - 1 in bits 4..6, and in bit 7 whether the pairs' value is
 *           written
 *   varint for each of a record's cells: the serial of its column
 *   varint: the serial of the pairs' column; where it is not written, it is
 *           that of the first cell + ENTRY_MEMBERS_STEP
 *   varint: the value of the pairs; where it is not written, 1
 *   then for each change:
 *   varint: the id of the record; from the second change on, the zigzag of its
 *           distance from the one before
 *   varint for each of its cells: the value
 *   the id of the pair, in as many bytes as the head says, the lowest first
 *
 * Pure; any thread. */

enum {
    ENTRY_MEMBERS_MAX = 15, /* changes of an entry */
    /* From a number to the pairs of the column of members behind it: theirs,
     * that of their counter, that of their column (schema/pairs.c). */
    ENTRY_MEMBERS_STEP = 3,
    ENTRY_MEMBERS_HEAD_BYTES_MAX = 2 + (SCHEMA_COLUMNS_MAX + 1) * 5 + 10,
    ENTRY_MEMBER_BYTES_MAX = (1 + SCHEMA_COLUMNS_MAX) * 10 + 8
};

/* What the changes of an entry have in common. */
struct entry_members {
    unsigned n_changes;  /* 1..15 */
    unsigned n;          /* cells of each record, 1..16, whose columns' serials
                          * are the same, too, and stand beside this */
    unsigned pair_bytes; /* 1..8 */
    uint32_t pair_serial;
    uint64_t pair_value;
};

/* Bytes that an id takes in this entry. */
static inline unsigned
entry_members_bytes(uint64_t pair_id)
{
    return (71 - (unsigned)__builtin_clzll(pair_id | 1)) / 8;
}

/* Writes the head to out, and returns its length: at most 2 and 5 a serial,
 * and 10 where the pairs' value is not 1. serial: of members->n cells, none of
 * them 0, nor is that of the pairs. */
size_t entry_put_members(
    uint8_t *out, const struct entry_members *members, const uint32_t *serial);

/* Writes one of the changes behind the head to out (10 bytes for the id and
 * for each value, and 8, all of which may be written to) and returns the
 * length. value: of members->n cells. id_before: of the change before, NULL for
 * the first. The pair's id is below 2^(8 x pair_bytes). */
static inline size_t
entry_put_member(uint8_t *out, const struct entry_members *members,
    uint64_t id, const uint64_t *value, uint64_t pair_id,
    const uint64_t *id_before)
{
    size_t len = bytes_put_varint_wide(
        out, id_before == NULL ? id : bytes_zigzag(id - *id_before));
    ASSERT(entry_members_bytes(pair_id) <= members->pair_bytes);
    for (unsigned i = 0; i < members->n; i++) {
        len += bytes_put_varint_wide(out + len, value[i]);
    }
    bytes_put_u64(out + len, pair_id);
    return len + members->pair_bytes;
}

#endif

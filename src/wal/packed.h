/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_PACKED_H
#define WAL_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that are mostly small, as bits (doc/format-checkpoint.md), a group
 * of at most PACKED_GROUP at a time. Pure; any thread. */

enum {
    PACKED_GROUP = 128,
    PACKED_GROUP_BYTES_MIN = 2, /* of a group of any length */
    /* no group is longer than all its numbers with 64 bits each */
    PACKED_GROUP_BYTES_MAX = PACKED_GROUP_BYTES_MIN + 8 * PACKED_GROUP,
    /* Packing writes and unpacking reads (but does not use) up to so many
     * bytes behind a group. */
    PACKED_SLACK = 8
};

/* Writes n numbers (1..PACKED_GROUP) to out (room for PACKED_GROUP_BYTES_MAX
 * + PACKED_SLACK); returns the length. */
size_t packed_put(uint8_t *out, const uint64_t *value, size_t n);

/* Reads a group of n numbers at *in, which ends at or before end, and moves
 * *in behind it. PACKED_SLACK bytes behind end can be read. False where bytes
 * do not make one; value may have been written to then. */
bool packed_get(
    const uint8_t **in, const uint8_t *end, uint64_t *value, size_t n);

#endif

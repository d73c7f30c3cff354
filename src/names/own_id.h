/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_OWN_ID_H
#define NAMES_OWN_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which bytes are a name, and names that are short enough to be an id by
 * themselves: they need no dictionary, and their id gives them back. Pure; any
 * thread. */

enum {
    NAME_BYTES_MAX = 200,
    OWN_LOWER_MAX = 12, /* longest of a-z 0-9 _ */
    OWN_MIXED_MAX = 10, /* longest of A-Z a-z 0-9 _ - */
    OWN_DIGITS_MAX = 17 /* longest of 0-9 */
};

/* All own ids are below this; those that a dictionary gives are not. */
#define OWN_ID_END (UINT64_C(1) << 63)

/* True of 1 to NAME_BYTES_MAX bytes, none of which is white space or a control
 * byte: 0 to 32 and 127. Bytes from 128 on are allowed, whatever they be. */
bool name_is_valid(const void *bytes, size_t len);

/* True where that name has an id of its own, *id. No two names have the same
 * one. */
bool own_id_of(const void *bytes, size_t len, uint64_t *id);

/* The length of the name whose own id that is, which is written to out; 0: it
 * is no name's. */
size_t own_id_name(uint64_t id, char out[OWN_DIGITS_MAX]);

/* The row of a dictionary's number, for a server that cuts shard_bits (0..31)
 * off an id: the row's top bit, and so the id's, says that it is not a name's
 * own. Which id of that row is in the dictionary's shard is for the engine to
 * say. */
static inline uint64_t
own_id_row_of(uint32_t number, unsigned shard_bits)
{
    return OWN_ID_END >> shard_bits | number;
}

/* The other way round; false where no number has that row. */
static inline bool
own_id_number_of(uint64_t row, unsigned shard_bits, uint32_t *number)
{
    uint64_t above = row ^ (OWN_ID_END >> shard_bits);
    *number = (uint32_t)above;
    return above <= UINT32_MAX;
}

#endif

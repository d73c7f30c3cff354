/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of members to bytes; entry.c has the way back, and the layout is in
 * entry_members.h. Called under the lock of a shard.
 *
 * The pair's id has a fixed length in an entry, not one of its own: ids of
 * pairs are as long as the number of the record makes them, and a store of
 * eight bytes writes any of them. */
#include "wal/entry_members.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "wal/entry.h"

_Static_assert((int)ENTRY_MEMBERS_MAX ==
        (int)ENTRY_MEMBERS_HAS_SERIAL / (1 << ENTRY_KIND_BITS) - 1,
    "the number of changes has the bits between");
_Static_assert(SCHEMA_COLUMNS_MAX <= 1 << ENTRY_MEMBERS_CELL_BITS,
    "the number of cells has its bits");

size_t
entry_put_members(
    uint8_t *out, const struct entry_members *members, const uint32_t *serial)
{
    bool has_serial = members->pair_serial != serial[0] + ENTRY_MEMBERS_STEP;
    bool has_value = members->pair_value != 1;
    size_t len = 2;
    ASSERT(members->n >= 1 && members->n <= SCHEMA_COLUMNS_MAX);
    ASSERT(members->n_changes >= 1 && members->n_changes <= ENTRY_MEMBERS_MAX);
    ASSERT(members->pair_bytes >= 1 && members->pair_bytes <= 8);
    out[0] = (uint8_t)((unsigned)ENTRY_MEMBERS |
        members->n_changes << ENTRY_KIND_BITS |
        (has_serial ? ENTRY_MEMBERS_HAS_SERIAL : 0));
    out[1] = (uint8_t)((members->n - 1) |
        (members->pair_bytes - 1) << ENTRY_MEMBERS_CELL_BITS |
        (has_value ? ENTRY_MEMBERS_HAS_VALUE : 0));
    for (unsigned i = 0; i < members->n; i++) {
        len += bytes_put_varint(out + len, serial[i]);
    }
    if (has_serial) {
        len += bytes_put_varint(out + len, members->pair_serial);
    }
    if (has_value) {
        len += bytes_put_varint(out + len, members->pair_value);
    }
    return len;
}

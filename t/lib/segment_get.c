/* SPDX-License-Identifier: BSD-3-Clause */
/* One block after the other, read by the calling thread. */
#include "lib/segment_get.h"

#include "base/err.h"

int
segment_read_block(const struct segment *segment, uint32_t block,
    uint8_t *bytes, struct block *out)
{
    struct segment_fault fault;
    int err = segment__try_block(segment, block, bytes, out, &fault);

    if (err != 0) {
        segment__log_fault(segment, &fault);
    }
    return err;
}

int
segment_get(const struct segment *segment, struct segment_room *room,
    const uint64_t *id, size_t n, uint64_t (*code)[SCHEMA_COLUMNS_MAX],
    bool *found)
{
    uint32_t there = UINT32_MAX; /* the block that is in room */
    struct block block;
    int err = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t number;

        found[i] = false;
        if (!segment_find(segment, id[i], &number)) {
            continue;
        }
        if (number != there) {
            err = segment_read_block(segment, number, room->bytes, &block);
        }
        if (err != 0) {
            return err;
        }
        there = number;
        err = block_find(&block, &room->room, id[i], code[i], &found[i]);
        if (err == ERR_CORRUPT) {
            return segment__log_block(
                segment, number, err, "the block is damaged");
        }
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

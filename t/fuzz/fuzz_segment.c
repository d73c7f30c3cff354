/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of segment files. The first byte says how the rest is read:
 *
 *   bit 0  the checksums of head, index and blocks are made right before, and
 *          magic, version, epoch and number, so that what is behind them is
 *          reached
 *   bit 1  and the length that the head says, as far as the file goes
 *
 * What opens keeps the promises of the contract: blocks ascend, and each id is
 * looked for in one of them; a scan ascends and ends with an error or with as
 * many records as the head has, and what it gives out is found. The kept corpus
 * began with the golden files behind such a byte. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "cold/segment_scan.h"
#include "lib/segment_get.h"
#include "lib/still_disk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    EPOCH = 77,
    NUMBER = 5,
    SIGNED = 1,
    SIZED = 2,
    HEAD_SUM_AT = SEGMENT_HEAD_BYTES - SEGMENT_SUM_BYTES,
    FINDS = 16
};

/* The seed of what is no block (doc/format-segment.md). */
static uint64_t
seed_of(uint64_t place)
{
    uint8_t bytes[24];

    bytes_put_u64(bytes, EPOCH);
    bytes_put_u64(bytes + 8, NUMBER);
    bytes_put_u64(bytes + 16, place);
    return checksum64(bytes, sizeof bytes, 0);
}

static void
sign(uint8_t *bytes, size_t len, uint64_t seed)
{
    bytes_put_u64(bytes + len, checksum64(bytes, len, seed));
}

/* Makes blocks and index of the file right that the head says it has. */
static void
sign_parts(uint8_t *file, size_t len, bool is_sized)
{
    struct segment_head head = {.epoch = EPOCH, .number = NUMBER};
    size_t pages = (len - SEGMENT_HEAD_BYTES) / BLOCK_BYTES_MAX;
    size_t rest = (len - SEGMENT_HEAD_BYTES) % BLOCK_BYTES_MAX;

    if (is_sized) {
        bytes_put_u32(file + 64, (uint32_t)pages);
        bytes_put_u32(file + 68, (uint32_t)rest);
    }
    for (uint32_t i = 0; i < pages; i++) {
        uint8_t *block = file + segment_block_at(i);
        size_t block_len = bytes_get_u16(block + 2);

        block[0] = BLOCK_VERSION;
        block[1] %= BLOCK_CODEC_COUNT;
        if (block_len >= BLOCK_HEAD_BYTES + BLOCK_SUM_BYTES &&
            block_len <= BLOCK_BYTES_MAX) {
            sign(block, block_len - BLOCK_SUM_BYTES,
                segment_seed_block(&head, i));
        }
    }
    if (rest >= SEGMENT_SUM_BYTES) {
        sign(file + segment_block_at((uint32_t)pages),
            rest - SEGMENT_SUM_BYTES, seed_of(UINT64_MAX - 1));
    }
    memcpy(file, "TALLYSEG", 8);
    bytes_put_u32(file + 8, SEGMENT_VERSION);
    bytes_put_u32(file + 12, 0);
    bytes_put_u64(file + 16, EPOCH);
    bytes_put_u64(file + 24, NUMBER);
    sign(file, HEAD_SUM_AT, seed_of(UINT64_MAX));
}

/* Some of the records of a block that is right are found, and what lies between
 * them is not. */
static void
check_gets(const struct segment *segment, struct segment_room *room,
    const struct segment_records *batch)
{
    uint64_t code[1][SCHEMA_COLUMNS_MAX];
    bool found;

    for (size_t i = 0; i < batch->n; i += 1 + batch->n / FINDS) {
        uint64_t id = batch->id[i];

        ASSERT(segment_get(segment, room, &id, 1, code, &found) == 0 && found);
        for (unsigned c = 0; c < segment_head(segment)->n_columns; c++) {
            ASSERT(code[0][c] == batch->code[c][i]);
        }
        if (i + 1 < batch->n && batch->id[i + 1] - id > 1) {
            id++;
            ASSERT(segment_get(segment, room, &id, 1, code, &found) == 0);
            ASSERT(!found);
        }
    }
}

/* Reads all; the error. */
static int
read_all(const struct segment *segment, struct segment_room *room)
{
    struct segment_scan *scan;
    struct segment_records batch;
    uint64_t n = 0, last = 0;
    int err;

    ASSERT(segment_scan_create(segment, 0, NULL, &scan) == 0);
    while ((err = segment_scan_next(scan, &batch)) == 0 && batch.n > 0) {
        for (size_t i = 0; i < batch.n; i++) {
            ASSERT(n + i == 0 || batch.id[i] > last);
            last = batch.id[i];
        }
        check_gets(segment, room, &batch);
        n += batch.n;
    }
    ASSERT(err == 0 || err == ERR_CORRUPT || err == ERR_NEWER_FORMAT);
    ASSERT(err != 0 || n == segment_head(segment)->records);
    ASSERT(err != 0 || last == segment_head(segment)->last_id);
    segment_scan_destroy(&scan);
    return err;
}

static void
check_index(const struct segment *segment)
{
    const struct segment_head *head = segment_head(segment);

    for (uint32_t i = 0; i < head->n_blocks; i++) {
        uint64_t first = segment_first_id(segment, i);
        uint32_t block;

        ASSERT(segment_find(segment, first, &block) && block == i);
        ASSERT(i == 0 ||
            (segment_find(segment, first - 1, &block) && block == i - 1));
    }
}

static void
read_file(const uint8_t *bytes, size_t len)
{
    static struct segment_room room;
    struct still_disk still;
    struct segment_config config = {.disk = &still.disk};
    struct segment *segment;
    char name[SEGMENT_NAME_BYTES];

    segment_name(name, NUMBER, false);
    still_disk_init(&still);
    still_disk_add(&still, name, bytes, len);
    int err = segment_open(&config, EPOCH, NUMBER, &segment);
    ASSERT(err == 0 || err == ERR_CORRUPT || err == ERR_NEWER_FORMAT);
    if (err == 0) {
        ASSERT(segment_memory(segment) <= 1024 + len);
        check_index(segment);
        err = read_all(segment, &room);
        int checked = segment_check(segment, NULL);
        /* it also looks at what is between blocks, which nobody reads */
        ASSERT(checked == err || checked == ERR_CORRUPT);
    }
    segment_close(&segment);
    ASSERT(still.n_open == 0);
    block_room_fini(&room.room);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t *copy;

    if (len < 2) {
        return 0;
    }
    /* in a block of its own, so that a read past its end is seen */
    copy = malloc(len - 1);
    ASSERT(copy != NULL);
    memcpy(copy, bytes + 1, len - 1);
    if ((bytes[0] & SIGNED) != 0 && len - 1 >= SEGMENT_HEAD_BYTES) {
        sign_parts(copy, len - 1, (bytes[0] & SIZED) != 0);
    }
    read_file(copy, len - 1);
    free(copy);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of checkpoint blocks. The bytes are read as they are, and
 * once more with magic, version, length and checksum made right, so that what
 * is behind them is reached. What is read at all keeps the promises of the
 * contract, and encoded and read again it is the same. */
#include "base/assert.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "wal/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUM_BYTES = 8 };

static void
check_promises(const struct image *image)
{
    uint64_t before = 0;
    ASSERT(image->n <= IMAGE_RECORDS_MAX);
    ASSERT(image->n_columns <= SCHEMA_COLUMNS_MAX);
    ASSERT(image->first_row <= image->last_row);
    for (uint32_t i = 0; i < image->n; i++) {
        ASSERT(image->row[i] >= image->first_row);
        ASSERT(image->row[i] <= image->last_row);
        ASSERT(i == 0 || image->row[i] > before);
        before = image->row[i];
    }
}

static void
check_equal(const struct image *a, const struct image *b)
{
    size_t bytes = a->n * sizeof *a->row;
    ASSERT(a->counter == b->counter && a->shard == b->shard);
    ASSERT(a->counter_serial == b->counter_serial && a->seq == b->seq);
    ASSERT(a->first_row == b->first_row && a->last_row == b->last_row);
    ASSERT(a->n == b->n && a->n_columns == b->n_columns);
    ASSERT(memcmp(a->row, b->row, bytes) == 0);
    for (unsigned i = 0; i < a->n_columns; i++) {
        ASSERT(a->column[i] == b->column[i] && a->serial[i] == b->serial[i]);
        ASSERT(memcmp(a->code[i], b->code[i], bytes) == 0);
    }
}

static void
read_block(const uint8_t *bytes, size_t len)
{
    struct image_room room = {0};
    struct image_room room_again = {0};
    struct buf block = {0};
    struct image image, again;
    int err = image_decode(bytes, len, &room, &image);
    ASSERT(err == 0 || err == ERR_CORRUPT || err == ERR_NEWER_FORMAT);
    if (err == 0) {
        check_promises(&image);
        ASSERT(image_encode(&image, &block) == 0);
        ASSERT(image_decode((uint8_t *)block.data, block.len, &room_again,
                   &again) == 0);
        check_equal(&image, &again);
    }
    buf_fini(&block);
    image_room_fini(&room_again);
    image_room_fini(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t *copy;
    read_block(bytes, len);
    if (len < IMAGE_HEAD_BYTES) {
        return 0;
    }
    copy = malloc(len + SUM_BYTES);
    ASSERT(copy != NULL);
    memcpy(copy, bytes, len);
    memcpy(copy, "TLYI", 4);
    bytes_put_u32(copy + 4, IMAGE_VERSION);
    bytes_put_u32(copy + 8, (uint32_t)(len + SUM_BYTES));
    memset(copy + 48, 0, 16);
    bytes_put_u64(copy + len, checksum64(copy, len, 0));
    read_block(copy, len + SUM_BYTES);
    free(copy);
    return 0;
}

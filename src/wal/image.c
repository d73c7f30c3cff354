/* SPDX-License-Identifier: BSD-3-Clause */
/* One image: a block that is complete in itself (doc/format-checkpoint.md).
 *
 *   OFFSET SIZE
 *        0    4 "TLYI"
 *        4    4 version, 1
 *        8    4 bytes of the block, all of them
 *       12    4 records n
 *       16    8 sequence number
 *       24    8 first row
 *       32    8 last row
 *       40    4 serial of the counter
 *       44    2 shard
 *       46    1 slot of the counter
 *       47    1 columns c
 *       48    8 history
 *       56    8 0
 *       64   8c for each column: serial (4), slot (1), 0 (3)
 *               rows, then column after column, each in groups of 128
 *               numbers (wal/packed.h); rows as distances
 *   len-8    8 checksum of 0..len-9
 *
 * The distance of the first row is that to the first row of the range, the
 * others are what is left out between two rows. So rows that are decoded
 * ascend by themselves, and only that they do not wrap and stay in their range
 * is to be checked.
 *
 * Magic, version and checksum are those of wal/envelope.h. The checksum stands
 * last, so that the loads of eight bytes that unpack the last group stay
 * inside the block.
 *
 * What can go wrong: memory; a block that is damaged, or was made by who knows
 * how to make checksums (then nothing is believed but what the length bears
 * out: each group has two bytes at least, which bounds n). */
#include "wal/image.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/give_way.h"
#include "wal/envelope.h"
#include "wal/packed.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHECKSUM_BYTES = ENVELOPE_CHECKSUM_BYTES,
    LENGTH_AT = 8,
    HISTORY_AT = 48,
    NUMBERS_AT_ONCE = 64 * PACKED_GROUP /* packed before others get the core
                                         */
};

static const struct envelope envelope = {
    4, {'T', 'L', 'Y', 'I'}, IMAGE_VERSION};

_Static_assert(
    (int)CHECKSUM_BYTES >= (int)PACKED_SLACK, "what loads reach into");

static uint64_t
groups_of(uint64_t n)
{
    return (n + PACKED_GROUP - 1) / PACKED_GROUP;
}

uint64_t
image_bytes_max(void)
{
    return IMAGE_HEAD_BYTES + SCHEMA_COLUMNS_MAX * IMAGE_COLUMN_BYTES +
        (1 + SCHEMA_COLUMNS_MAX) * groups_of(IMAGE_RECORDS_MAX) *
        PACKED_GROUP_BYTES_MAX +
        CHECKSUM_BYTES;
}

/* What the contract says of an image; of one that was read, too. */
static bool
is_sound(const struct image *image)
{
    if (image->n > IMAGE_RECORDS_MAX ||
        image->n_columns > SCHEMA_COLUMNS_MAX ||
        image->first_row > image->last_row || image->counter_serial == 0) {
        return false;
    }
    for (unsigned i = 0; i < image->n_columns; i++) {
        if (image->column[i] >= SCHEMA_COLUMNS_MAX || image->serial[i] == 0 ||
            (i > 0 && image->column[i] <= image->column[i - 1])) {
            return false;
        }
    }
    return true;
}

static size_t
head_bytes(const struct image *image)
{
    return IMAGE_HEAD_BYTES + (size_t)image->n_columns * IMAGE_COLUMN_BYTES;
}

/* Writes all but the length, which is not known yet. */
static void
put_head(const struct image *image, uint8_t *out)
{
    memset(out, 0, head_bytes(image));
    envelope_begin(&envelope, out);
    bytes_put_u32(out + 12, image->n);
    bytes_put_u64(out + 16, image->seq);
    bytes_put_u64(out + 24, image->first_row);
    bytes_put_u64(out + 32, image->last_row);
    bytes_put_u32(out + 40, image->counter_serial);
    bytes_put_u16(out + 44, image->shard);
    out[46] = image->counter;
    out[47] = (uint8_t)image->n_columns;
    bytes_put_u64(out + HISTORY_AT, image->history);
    out += IMAGE_HEAD_BYTES;
    for (unsigned i = 0; i < image->n_columns; i++) {
        bytes_put_u32(out, image->serial[i]);
        out[4] = image->column[i];
        out += IMAGE_COLUMN_BYTES;
    }
}

/* Packs n numbers (1..PACKED_GROUP) at the end of out. */
static bool
put_group(struct buf *out, const uint64_t *value, size_t n)
{
    char *at = buf_reserve(out, PACKED_GROUP_BYTES_MAX + PACKED_SLACK);
    if (at == NULL) {
        return false;
    }
    out->len += packed_put((uint8_t *)at, value, n);
    return true;
}

static size_t
group_at(const struct image *image, size_t at)
{
    size_t left = image->n - at;
    return left < PACKED_GROUP ? left : PACKED_GROUP;
}

static bool
put_rows(const struct image *image, struct buf *out)
{
    uint64_t distance[PACKED_GROUP];
    uint64_t next = image->first_row; /* the first that may come */

    ASSERT(image->n == 0 || image->row[image->n - 1] <= image->last_row);
    for (size_t at = 0; at < image->n; at += PACKED_GROUP) {
        size_t n = group_at(image, at);

        for (size_t i = 0; i < n; i++) {
            uint64_t row = image->row[at + i];

            /* behind 2^64-1 there is nothing: next is 0 then */
            ASSERT(row >= next && (next > 0 || at + i == 0));
            distance[i] = row - next;
            next = row + 1;
        }
        if (!put_group(out, distance, n)) {
            return false;
        }
        if (at % NUMBERS_AT_ONCE == 0) {
            give_way();
        }
    }
    return true;
}

static bool
put_columns(const struct image *image, struct buf *out)
{
    for (unsigned i = 0; i < image->n_columns; i++) {
        for (size_t at = 0; at < image->n; at += PACKED_GROUP) {
            if (!put_group(out, image->code[i] + at, group_at(image, at))) {
                return false;
            }
            if (at % NUMBERS_AT_ONCE == 0) {
                give_way();
            }
        }
    }
    return true;
}

int
image_encode(const struct image *image, struct buf *out)
{
    size_t start = out->len;
    size_t len;
    char *head, *end;

    ASSERT(is_sound(image));
    head = buf_reserve(out, head_bytes(image));
    if (head == NULL) {
        return ERR_NO_MEMORY;
    }
    put_head(image, (uint8_t *)head);
    out->len += head_bytes(image);
    if (!put_rows(image, out) || !put_columns(image, out)) {
        out->len = start;
        return ERR_NO_MEMORY;
    }
    end = buf_reserve(out, CHECKSUM_BYTES);
    if (end == NULL) {
        out->len = start;
        return ERR_NO_MEMORY;
    }
    len = out->len - start;
    head = out->data + start;
    ASSERT(len + CHECKSUM_BYTES <= image_bytes_max());
    bytes_put_u32(
        (uint8_t *)head + LENGTH_AT, (uint32_t)(len + CHECKSUM_BYTES));
    envelope_end((uint8_t *)head, len);
    out->len += CHECKSUM_BYTES;
    ASSERT(bytes_get_u32((uint8_t *)head + LENGTH_AT) == out->len - start);
    return 0;
}

void
image_room_fini(struct image_room *room)
{
    free(room->numbers);
    *room = (struct image_room){0};
}

static bool
make_room(struct image_room *room, size_t n)
{
    uint64_t *numbers;

    if (n <= room->capacity) {
        return true;
    }
    numbers = malloc(n * sizeof *numbers);
    if (numbers == NULL) {
        return false;
    }
    free(room->numbers);
    *room = (struct image_room){numbers, n};
    return true;
}

static bool
is_zero(const uint8_t *bytes, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

/* False where there is no such head. */
static bool
get_head(const uint8_t *in, size_t len, struct image *out)
{
    if (len < IMAGE_HEAD_BYTES + CHECKSUM_BYTES || len > image_bytes_max() ||
        bytes_get_u32(in + 8) != len || !is_zero(in + 56, 8)) {
        return false;
    }
    *out = (struct image){.counter = in[46],
        .history = bytes_get_u64(in + HISTORY_AT),
        .shard = bytes_get_u16(in + 44),
        .counter_serial = bytes_get_u32(in + 40),
        .seq = bytes_get_u64(in + 16),
        .first_row = bytes_get_u64(in + 24),
        .last_row = bytes_get_u64(in + 32),
        .n_columns = in[47],
        .n = bytes_get_u32(in + 12)};
    if (out->n_columns > SCHEMA_COLUMNS_MAX ||
        len < head_bytes(out) + CHECKSUM_BYTES) {
        return false;
    }
    in += IMAGE_HEAD_BYTES;
    for (unsigned i = 0; i < out->n_columns; i++) {
        out->serial[i] = bytes_get_u32(in);
        out->column[i] = in[4];
        if (!is_zero(in + 5, 3)) {
            return false;
        }
        in += IMAGE_COLUMN_BYTES;
    }
    return is_sound(out);
}

/* Makes rows of distances, in place; false where they leave their range. */
static bool
sum_rows(const struct image *image, uint64_t *row)
{
    uint64_t next = image->first_row;
    bool wrapped = false;

    if (image->n == 0) {
        return true;
    }
    for (size_t i = 0; i < image->n; i++) {
        uint64_t at = next + row[i];

        /* next is 0 where the row before was the last of all */
        wrapped |= at < next || (next == 0 && i > 0);
        row[i] = at;
        next = at + 1;
    }
    return !wrapped && row[image->n - 1] <= image->last_row;
}

static bool
get_numbers(const uint8_t **in, const uint8_t *end, uint64_t *out, size_t n)
{
    for (size_t at = 0; at < n; at += PACKED_GROUP) {
        size_t left = n - at;
        if (!packed_get(in, end, out + at,
                left < PACKED_GROUP ? left : PACKED_GROUP)) {
            return false;
        }
    }
    return true;
}

/* Unpacks what is behind the head into numbers. */
static bool
get_body(const uint8_t *in, const uint8_t *end, uint64_t *numbers,
    struct image *out)
{
    if (!get_numbers(&in, end, numbers, out->n) || !sum_rows(out, numbers)) {
        return false;
    }
    out->row = numbers;
    for (unsigned i = 0; i < out->n_columns; i++) {
        numbers += out->n;
        if (!get_numbers(&in, end, numbers, out->n)) {
            return false;
        }
        out->code[i] = numbers;
    }
    return in == end;
}

bool
image_peek(const uint8_t *head, uint32_t *len, uint64_t *history)
{
    *len = bytes_get_u32(head + LENGTH_AT);
    *history = bytes_get_u64(head + HISTORY_AT);
    return memcmp(head, envelope.magic, envelope.magic_bytes) == 0;
}

bool
image_head(const uint8_t *block, size_t len, struct image *out)
{
    return len >= IMAGE_HEAD_BYTES &&
        memcmp(block, envelope.magic, envelope.magic_bytes) == 0 &&
        get_head(block, len, out);
}

bool
image_put_history(uint8_t *block, size_t len, uint64_t from, uint64_t to)
{
    if (len < IMAGE_HEAD_BYTES + CHECKSUM_BYTES ||
        envelope_check(&envelope, block, len) != 0 ||
        bytes_get_u64(block + HISTORY_AT) != from) {
        return false;
    }
    ASSERT(to != 0);
    bytes_put_u64(block + HISTORY_AT, to);
    envelope_end(block, len - CHECKSUM_BYTES);
    return true;
}

int
image_decode(const uint8_t *bytes, size_t len, struct image_room *room,
    struct image *out)
{
    const uint8_t *end;
    uint64_t n_arrays;
    int err = envelope_check(&envelope, bytes, len);

    if (err != 0) {
        return err;
    }
    end = bytes + len - CHECKSUM_BYTES;
    if (!get_head(bytes, len, out)) {
        return ERR_CORRUPT;
    }
    bytes += head_bytes(out);
    n_arrays = 1 + out->n_columns;
    if (n_arrays * groups_of(out->n) * PACKED_GROUP_BYTES_MIN >
        (uint64_t)(end - bytes)) {
        return ERR_CORRUPT;
    }
    /* one more, so that there is an array of none, too */
    if (!make_room(room, (size_t)(n_arrays * out->n) + 1)) {
        return ERR_NO_MEMORY;
    }
    ASSERT(n_arrays * out->n < room->capacity);
    return get_body(bytes, end, room->numbers, out) ? 0 : ERR_CORRUPT;
}

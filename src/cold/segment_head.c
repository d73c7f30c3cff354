/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and decodes the head, the index and the name of a segment file.
 *
 *   OFFSET  SIZE
 *        0  4096 head
 *     4096  4096 block 0
 *        :
 *             x index: for each block from the second on its first id less that
 *               of the one before, less one, as a varint
 *             8 checksum of the index
 *
 * and the head
 *
 *   OFFSET SIZE
 *        0    8 "TALLYSEG"
 *        8    4 version, 1
 *       12    4 features that a reader must know; none so far
 *       16    8 history, or epoch
 *       24    8 number of the file
 *       32    8 sequence number
 *       40    8 records
 *       48    8 first id
 *       56    8 last id
 *       64    4 blocks
 *       68    4 bytes of the index, its checksum included
 *       72    4 serial number of the counter
 *       76    1 slot of the counter
 *       77    1 columns
 *       80+16i  column i: 4 serial, 1 slot, 3 of 0, 8 default
 *     4088    8 checksum of 0..4087
 *
 * All checksums have a seed made of epoch, number and place: a page that was
 * written for another file, or for another place of this one, is damage like
 * any other. Only what has its checksum is believed to have a version; what is
 * read must then be what would be written, byte for byte. */
#include "cold/segment_head.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MAGIC_BYTES = 8,
    COLUMNS_AT = 80,
    COLUMN_BYTES = 16,
    SUM_AT = SEGMENT_HEAD_BYTES - SEGMENT_SUM_BYTES
};

_Static_assert(
    COLUMNS_AT + SCHEMA_COLUMNS_MAX * COLUMN_BYTES <= SUM_AT, "columns fit");

static const char magic[MAGIC_BYTES + 1] = "TALLYSEG";
static const char name_before[] = "segment-";
static const char name_behind[] = ".seg";
static const char name_behind_new[] = ".seg.new";

/* Places that are no block. */
#define PLACE_HEAD UINT64_MAX
#define PLACE_INDEX (UINT64_MAX - 1)

static uint64_t
seed_of(uint64_t epoch, uint64_t number, uint64_t place)
{
    uint8_t bytes[24];

    bytes_put_u64(bytes, epoch);
    bytes_put_u64(bytes + 8, number);
    bytes_put_u64(bytes + 16, place);
    return checksum64(bytes, sizeof bytes, 0);
}

uint64_t
segment_seed_block(const struct segment_head *head, uint32_t block)
{
    return seed_of(head->epoch, head->number, block);
}

uint64_t
segment_block_at(uint32_t block)
{
    return SEGMENT_HEAD_BYTES + (uint64_t)block * BLOCK_BYTES_MAX;
}

uint64_t
segment_file_bytes(const struct segment_head *head)
{
    ASSERT(head->n_blocks >= 1 && head->index_bytes >= SEGMENT_SUM_BYTES);
    return segment_block_at(head->n_blocks) + head->index_bytes;
}

bool
segment_head__is_sound(const struct segment_head *head)
{
    if (head->epoch == 0 || head->counter_serial == 0 ||
        head->n_columns == 0 || head->n_columns > SCHEMA_COLUMNS_MAX) {
        return false;
    }
    for (unsigned i = 0; i < head->n_columns; i++) {
        const struct segment_column *column = &head->column[i];

        if (column->serial == 0 || column->slot >= SCHEMA_COLUMNS_MAX ||
            (i > 0 && column->slot <= column[-1].slot)) {
            return false;
        }
    }
    return true;
}

/* Most bytes that the index of so many blocks (>= 1) has. */
static uint64_t
index_bytes_max(uint32_t n_blocks)
{
    ASSERT(n_blocks >= 1 && n_blocks <= SEGMENT_BLOCKS_MAX);
    return (uint64_t)(n_blocks - 1) * BYTES_VARINT_MAX + SEGMENT_SUM_BYTES;
}

/* Whether blocks, records, ids and index can be those of one file. */
static bool
is_complete(const struct segment_head *head)
{
    return head->n_blocks >= 1 && head->n_blocks <= SEGMENT_BLOCKS_MAX &&
        head->records >= head->n_blocks &&
        head->records <= (uint64_t)head->n_blocks * BLOCK_RECORDS_MAX &&
        head->first_id <= head->last_id &&
        head->last_id - head->first_id >= head->records - 1 &&
        head->index_bytes >= head->n_blocks - 1 + SEGMENT_SUM_BYTES &&
        head->index_bytes <= index_bytes_max(head->n_blocks);
}

/* All but the checksum. */
static void
put_fields(const struct segment_head *head, uint8_t *out)
{
    memset(out, 0, SEGMENT_HEAD_BYTES);
    memcpy(out, magic, MAGIC_BYTES);
    bytes_put_u32(out + 8, SEGMENT_VERSION);
    bytes_put_u64(out + 16, head->epoch);
    bytes_put_u64(out + 24, head->number);
    bytes_put_u64(out + 32, head->seq);
    bytes_put_u64(out + 40, head->records);
    bytes_put_u64(out + 48, head->first_id);
    bytes_put_u64(out + 56, head->last_id);
    bytes_put_u32(out + 64, head->n_blocks);
    bytes_put_u32(out + 68, head->index_bytes);
    bytes_put_u32(out + 72, head->counter_serial);
    out[76] = head->counter;
    out[77] = head->n_columns;
    for (unsigned i = 0; i < head->n_columns; i++) {
        uint8_t *column = out + COLUMNS_AT + COLUMN_BYTES * i;

        bytes_put_u32(column, head->column[i].serial);
        column[4] = head->column[i].slot;
        bytes_put_u64(column + 8, head->column[i].default_value);
    }
}

void
segment_head__put(const struct segment_head *head, uint8_t *out)
{
    ASSERT(segment_head__is_sound(head) && is_complete(head));
    put_fields(head, out);
    bytes_put_u64(out + SUM_AT,
        checksum64(
            out, SUM_AT, seed_of(head->epoch, head->number, PLACE_HEAD)));
}

static bool
has_checksum(const uint8_t *in, uint64_t epoch, uint64_t number)
{
    return memcmp(in, magic, MAGIC_BYTES) == 0 &&
        checksum64(in, SUM_AT, seed_of(epoch, number, PLACE_HEAD)) ==
        bytes_get_u64(in + SUM_AT);
}

bool
segment_head_is_foreign(const uint8_t *in, uint64_t epoch, uint64_t number)
{
    uint64_t its_epoch = bytes_get_u64(in + 16);
    uint64_t its_number = bytes_get_u64(in + 24);

    return (its_epoch != epoch || its_number != number) &&
        has_checksum(in, its_epoch, its_number);
}

int
segment_head_get(const uint8_t *in, uint64_t epoch, uint64_t number,
    struct segment_head *out)
{
    uint8_t again[SEGMENT_HEAD_BYTES];

    if (!has_checksum(in, epoch, number)) {
        return ERR_CORRUPT;
    }
    if (bytes_get_u32(in + 8) > SEGMENT_VERSION ||
        bytes_get_u32(in + 12) != 0) {
        return ERR_NEWER_FORMAT;
    }
    *out = (struct segment_head){.epoch = bytes_get_u64(in + 16),
        .number = bytes_get_u64(in + 24),
        .seq = bytes_get_u64(in + 32),
        .records = bytes_get_u64(in + 40),
        .first_id = bytes_get_u64(in + 48),
        .last_id = bytes_get_u64(in + 56),
        .n_blocks = bytes_get_u32(in + 64),
        .index_bytes = bytes_get_u32(in + 68),
        .counter_serial = bytes_get_u32(in + 72),
        .counter = in[76],
        .n_columns = in[77]};
    for (unsigned i = 0; i < out->n_columns && i < SCHEMA_COLUMNS_MAX; i++) {
        const uint8_t *column = in + COLUMNS_AT + COLUMN_BYTES * i;

        out->column[i] =
            (struct segment_column){.serial = bytes_get_u32(column),
                .slot = column[4],
                .default_value = bytes_get_u64(column + 8)};
    }
    if (out->epoch != epoch || out->number != number ||
        !segment_head__is_sound(out) || !is_complete(out)) {
        return ERR_CORRUPT;
    }
    put_fields(out, again);
    return memcmp(in, again, SUM_AT) == 0 ? 0 : ERR_CORRUPT;
}

size_t
segment__index_put(uint8_t *out, uint64_t before, uint64_t id)
{
    ASSERT(id > before);
    return bytes_put_varint(out, id - before - 1);
}

void
segment__index_end(const struct segment_head *head, uint8_t *index, size_t len)
{
    ASSERT(head->index_bytes == len + SEGMENT_SUM_BYTES);
    ASSERT(len >= head->n_blocks - 1); /* a byte each, at least */
    bytes_put_u64(index + len,
        checksum64(
            index, len, seed_of(head->epoch, head->number, PLACE_INDEX)));
}

int
segment_index_get(
    const struct segment_head *head, const uint8_t *in, uint64_t *first)
{
    size_t len = head->index_bytes - SEGMENT_SUM_BYTES;
    const uint8_t *end = in + len;
    uint64_t distance;

    ASSERT(is_complete(head));
    if (checksum64(in, len, seed_of(head->epoch, head->number, PLACE_INDEX)) !=
        bytes_get_u64(end)) {
        return ERR_CORRUPT;
    }
    first[0] = head->first_id;
    for (uint32_t i = 1; i < head->n_blocks; i++) {
        if (!bytes_get_varint(&in, end, &distance) ||
            distance >= head->last_id - first[i - 1]) {
            return ERR_CORRUPT;
        }
        first[i] = first[i - 1] + distance + 1;
    }
    return in == end ? 0 : ERR_CORRUPT;
}

void
segment_name(char out[SEGMENT_NAME_BYTES], uint64_t number, bool is_new)
{
    int len = snprintf(out, SEGMENT_NAME_BYTES, "%s%020" PRIu64 "%s",
        name_before, number, is_new ? name_behind_new : name_behind);
    ASSERT(len > 0 && len < SEGMENT_NAME_BYTES);
}

bool
segment_name_parse(const char *name, uint64_t *number, bool *is_new)
{
    const size_t before = sizeof name_before - 1;
    const char *behind;

    if (strlen(name) < before + NUM_U64_DIGITS_MAX ||
        memcmp(name, name_before, before) != 0 ||
        !num_parse_u64(name + before, NUM_U64_DIGITS_MAX, number)) {
        return false;
    }
    behind = name + before + NUM_U64_DIGITS_MAX;
    *is_new = strcmp(behind, name_behind_new) == 0;
    return *is_new || strcmp(behind, name_behind) == 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a block.
 *
 *   OFFSET SIZE
 *        0    1 version, 1
 *        1    1 codec
 *        2    2 length len of the block
 *        4    2 records, less one
 *        6    1 columns c
 *        7    1 0
 *        8    8 first id
 *       16      shape of the ids (ids.c)
 *               packed: 2c bytes, at which bit each column begins; then bits:
 *               the gaps of the ids (series.c), column after column
 *               else: 1 + c widths in bytes; then, compressed or not, the gaps
 *               and the columns as bytes (planes.c)
 *    len-8    8 checksum of 0..len-9
 *
 * The checksum comes first: what does not have it is damaged; only then is the
 * version believed, and sizes never. All that is read is inside of the block or
 * of what zstd has made of it, whose size follows from the widths and is
 * bounded before there is room for it. The checksum stands last so that loads
 * of eight bytes from the last bits end inside the block.
 *
 * The seed is where the block belongs; the segment gives it. So a block that is
 * read from the wrong place is found out, too. */
#include "cold/block.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "cold/block_priv.h"
#include "cold/planes.h"
#include "cold/rice.h"

#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

_Static_assert((int)BLOCK_SUM_BYTES >= (int)BITS_SLACK, "what loads reach");
_Static_assert(BLOCK_BYTES_MAX * 8 <= 1 << 16, "a bit has 16 bits");

const char *
block_codec_name(enum block_codec codec)
{
    static const char *const name[] = {
#define X(name, word, text) word,
        BLOCK_CODECS(X)
#undef X
            "auto"};

    ASSERT(codec <= BLOCK_AUTO);
    return name[codec];
}

int
block_open(const uint8_t *bytes, size_t len, uint64_t seed, struct block *out)
{
    const uint8_t *at = bytes + BLOCK_HEAD_BYTES;
    size_t end;

    if (len < BLOCK_HEAD_BYTES + BLOCK_SUM_BYTES) {
        return ERR_CORRUPT;
    }
    out->bytes = bytes;
    out->len = bytes_get_u16(bytes + 2);
    if (out->len < BLOCK_HEAD_BYTES + BLOCK_SUM_BYTES || out->len > len ||
        out->len > BLOCK_BYTES_MAX) {
        return ERR_CORRUPT;
    }
    end = out->len - BLOCK_SUM_BYTES;
    if (checksum64(bytes, end, seed) != bytes_get_u64(bytes + end)) {
        return ERR_CORRUPT;
    }
    if (bytes[0] > BLOCK_VERSION) {
        return ERR_NEWER_FORMAT;
    }
    out->n = (size_t)bytes_get_u16(bytes + 4) + 1;
    out->n_columns = bytes[6];
    out->first_id = bytes_get_u64(bytes + 8);
    if (bytes[0] != BLOCK_VERSION || bytes[1] >= BLOCK_CODEC_COUNT ||
        bytes[7] != 0 || out->n > BLOCK_RECORDS_MAX || out->n_columns == 0 ||
        out->n_columns > SCHEMA_COLUMNS_MAX ||
        !ids_get_shape(&at, bytes + end, &out->shape)) {
        return ERR_CORRUPT;
    }
    out->codec = (enum block_codec)bytes[1];
    out->payload = (size_t)(at - bytes);
    out->end = end;
    ASSERT(out->payload >= BLOCK_HEAD_BYTES && out->payload <= out->end);
    return 0;
}

void
block_room_fini(struct block_room *room)
{
    ZSTD_freeDCtx(room->zstd);
    alloc_free(room->alloc, room->raw, room->raw_bytes);
    alloc_free(room->alloc, room->spare, room->n_spare * sizeof *room->spare);
    *room = (struct block_room){.alloc = room->alloc};
}

static bool
make_spare(struct block_room *room, size_t n)
{
    ASSERT(n > 0 && n <= 2 * BLOCK_RECORDS_MAX);
    if (n <= room->n_spare) {
        return true;
    }
    alloc_free(room->alloc, room->spare, room->n_spare * sizeof *room->spare);
    room->n_spare = 0;
    room->spare = alloc_zeroed(room->alloc, n * sizeof *room->spare);
    room->n_spare = room->spare == NULL ? 0 : n;
    return room->spare != NULL;
}

static bool
make_raw(struct block_room *room, size_t bytes)
{
    ASSERT(
        bytes <= 8 * (size_t)BLOCK_RECORDS_MAX * (1 + SCHEMA_COLUMNS_MAX) + 1);
    if (bytes <= room->raw_bytes) {
        return true;
    }
    alloc_free(room->alloc, room->raw, room->raw_bytes);
    room->raw_bytes = 0;
    room->raw = alloc_zeroed(room->alloc, bytes);
    room->raw_bytes = room->raw == NULL ? 0 : bytes;
    return room->raw != NULL;
}

/* The packed codec. */

bool
block__bits(const struct block *block, struct bits_in *in)
{
    size_t begin = block->payload + 2 * (size_t)block->n_columns;

    ASSERT(block->codec == BLOCK_PACKED);
    if (begin > block->end) {
        return false;
    }
    *in = (struct bits_in){block->bytes + begin, 0, 8 * (block->end - begin)};
    return true;
}

size_t
block__column(const struct block *block, const struct bits_in *in, unsigned c)
{
    ASSERT(c <= block->n_columns);
    return c == block->n_columns
        ? in->end
        : bytes_get_u16(block->bytes + block->payload + 2 * (size_t)c);
}

/* Whether the series that ends at bit at is followed by that of column c. */
static bool
packed_joins(const struct block *block, const struct bits_in *in, unsigned c)
{
    size_t next = block__column(block, in, c);

    return c == block->n_columns ? next - in->at < 8 : next == in->at;
}

static int
packed_decode(const struct block *block, struct block_room *room, uint64_t *id,
    uint64_t *const *code)
{
    struct bits_in in;

    if (!make_spare(room, block->n)) {
        return ERR_NO_MEMORY;
    }
    if (!block__bits(block, &in) ||
        !series_get(&in, id + 1, room->spare, block->n - 1) ||
        !packed_joins(block, &in, 0)) {
        return ERR_CORRUPT;
    }
    for (unsigned c = 0; c < block->n_columns; c++) {
        if (!series_get(&in, code[c], room->spare, block->n) ||
            !packed_joins(block, &in, c + 1)) {
            return ERR_CORRUPT;
        }
    }
    return ids_of_gaps(&block->shape, block->first_id, block->n, id + 1, id)
        ? 0
        : ERR_CORRUPT;
}

/* The place among the gaps whose sum, each one more, is strides; n_gaps where
 * it is none. */
static size_t
find_sum(const uint64_t *gap, size_t n_gaps, uint64_t strides)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n_gaps; i++) {
        if (gap[i] >= strides - sum) {
            return n_gaps;
        }
        sum += gap[i] + 1;
        if (sum == strides) {
            return i;
        }
    }
    return n_gaps;
}

/* Finds the record that is so many strides (>= 1) behind the first; *place is
 * block->n where there is none. */
static int
packed_place(const struct block *block, struct block_room *room,
    struct bits_in in, uint64_t strides, size_t *place)
{
    size_t n_gaps = block->n - 1;
    uint64_t sum;
    unsigned k;

    *place = block->n;
    if (n_gaps == 0) {
        return 0;
    }
    if (series_is_rice(&in, &k)) {
        size_t i;

        if (!rice_seek(&in, n_gaps, k, strides, &i, &sum)) {
            return ERR_CORRUPT;
        }
        *place = i < n_gaps && sum == strides ? i + 1 : block->n;
        return 0;
    }
    if (!make_spare(room, 2 * block->n)) {
        return ERR_NO_MEMORY;
    }
    if (!series_get(&in, room->spare, room->spare + block->n, n_gaps)) {
        return ERR_CORRUPT;
    }
    *place = find_sum(room->spare, n_gaps, strides) + 1;
    return 0;
}

static int
packed_find(const struct block *block, struct block_room *room,
    uint64_t strides, uint64_t *code, bool *found)
{
    struct bits_in in;
    size_t place = 0;

    if (!block__bits(block, &in)) {
        return ERR_CORRUPT;
    }
    if (strides > 0) {
        int err = packed_place(block, room, in, strides, &place);
        if (err != 0 || place == block->n) {
            return err;
        }
    }
    for (unsigned c = 0; c < block->n_columns; c++) {
        struct bits_in column = {in.in, block__column(block, &in, c), in.end};

        if (column.at > in.end ||
            !series_at(&column, block->n, place, &code[c])) {
            return ERR_CORRUPT;
        }
    }
    *found = true;
    return 0;
}

/* The codecs of bytes. */

/* Has zstd make bytes of the frame at block->bytes[from]. */
static int
expand(const struct block *block, struct block_room *room, size_t from,
    size_t bytes)
{
    size_t made;

    ASSERT(from <= block->end);
    /* one more, so that there is room where there are no bytes */
    if (!make_raw(room, bytes + 1)) {
        return ERR_NO_MEMORY;
    }
    if (room->zstd == NULL) {
        room->zstd = ZSTD_createDCtx();
        if (room->zstd == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    made = ZSTD_decompressDCtx(
        room->zstd, room->raw, bytes, block->bytes + from, block->end - from);
    if (ZSTD_isError(made)) {
        return ZSTD_getErrorCode(made) == ZSTD_error_memory_allocation
            ? ERR_NO_MEMORY
            : ERR_CORRUPT;
    }
    return made == bytes ? 0 : ERR_CORRUPT;
}

static int
open_planes(const struct block *block, struct block_room *room,
    struct block__planes *planes)
{
    size_t from = block->payload + 1 + block->n_columns;
    size_t bytes = 0;

    ASSERT(block->codec != BLOCK_PACKED);
    if (from > block->end) {
        return ERR_CORRUPT;
    }
    for (unsigned i = 0; i <= block->n_columns; i++) {
        planes->width[i] = block->bytes[block->payload + i];
        if (planes->width[i] > 8) {
            return ERR_CORRUPT;
        }
        bytes += planes->width[i] * (block->n - (i == 0));
    }
    if (block->codec == BLOCK_ZSTD) {
        int err = expand(block, room, from, bytes);

        planes->at = room->raw;
        return err;
    }
    planes->at = block->bytes + from;
    return block->end - from == bytes ? 0 : ERR_CORRUPT;
}

static int
bytes_decode(const struct block *block, struct block_room *room, uint64_t *id,
    uint64_t *const *code)
{
    struct block__planes planes;
    int err = open_planes(block, room, &planes);
    size_t n = block->n;

    if (err != 0) {
        return err;
    }
    planes_get(planes.at, id + 1, n - 1, planes.width[0]);
    planes.at += planes.width[0] * (n - 1);
    for (unsigned c = 0; c < block->n_columns; c++) {
        planes_get(planes.at, code[c], n, planes.width[c + 1]);
        planes.at += planes.width[c + 1] * n;
    }
    return ids_of_gaps(&block->shape, block->first_id, n, id + 1, id)
        ? 0
        : ERR_CORRUPT;
}

static int
bytes_find(const struct block *block, struct block_room *room,
    uint64_t strides, uint64_t *code, bool *found)
{
    struct block__planes planes;
    size_t n_gaps = block->n - 1;
    size_t place = 0;
    int err = open_planes(block, room, &planes);

    if (err != 0) {
        return err;
    }
    if (strides > 0) {
        if (!make_spare(room, block->n)) {
            return ERR_NO_MEMORY;
        }
        planes_get(planes.at, room->spare, n_gaps, planes.width[0]);
        place = find_sum(room->spare, n_gaps, strides) + 1;
        if (place == block->n) {
            return 0;
        }
    }
    planes.at += planes.width[0] * n_gaps;
    for (unsigned c = 0; c < block->n_columns; c++) {
        unsigned width = planes.width[c + 1];

        code[c] = planes_at(planes.at, block->n, width, place);
        planes.at += width * block->n;
    }
    *found = true;
    return 0;
}

int
block__gaps(const struct block *block, struct block_room *room, uint64_t **gap,
    struct block__planes *planes)
{
    size_t n_gaps = block->n - 1;
    struct bits_in in;
    int err;

    if (!make_spare(room, 2 * block->n)) {
        return ERR_NO_MEMORY;
    }
    *gap = room->spare;
    if (block->codec == BLOCK_PACKED) {
        return block__bits(block, &in) &&
                series_get(&in, *gap, *gap + block->n, n_gaps)
            ? 0
            : ERR_CORRUPT;
    }
    err = open_planes(block, room, planes);
    if (err == 0) {
        planes_get(planes->at, *gap, n_gaps, planes->width[0]);
    }
    return err;
}

int
block_decode(const struct block *block, struct block_room *room, uint64_t *id,
    uint64_t *const *code)
{
    ASSERT(block->n >= 1 && block->n <= BLOCK_RECORDS_MAX);
    ASSERT(block->n_columns >= 1 && block->n_columns <= SCHEMA_COLUMNS_MAX);
    return block->codec == BLOCK_PACKED ? packed_decode(block, room, id, code)
                                        : bytes_decode(block, room, id, code);
}

int
block_find(const struct block *block, struct block_room *room, uint64_t id,
    uint64_t *code, bool *found)
{
    uint64_t strides;

    *found = false;
    if (id < block->first_id ||
        !ids_distance(&block->shape, block->first_id, id, &strides)) {
        return 0;
    }
    return block->codec == BLOCK_PACKED
        ? packed_find(block, room, strides, code, found)
        : bytes_find(block, room, strides, code, found);
}

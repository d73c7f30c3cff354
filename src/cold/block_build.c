/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes blocks.
 *
 *   block_builder_add -> ids_plan -> encode, try by try -> block_builder_cut
 *
 * How many records fit is not known before they are encoded. So the builder
 * takes some more than went into the block before, encodes as many as those
 * were, and from the length follows how many to try next; a try that fits and
 * one that does not draw together until they are neighbours, or until what fits
 * leaves SLACK_BYTES at most. Between one block and the next little changes, so
 * that takes two tries; to find the very last record that fits took 3.4.
 *
 * Auto packs first. zstd and plain get their chance where, for the same
 * records, they are shorter; the codec that holds most records wins. One that
 * is far longer rests for a number of blocks, twice as many each time that it
 * is far longer again, and PAUSE_MAX at most.
 *
 * The shape of the ids is found once for all records that wait. With more
 * records than go into the block it is no better and hardly worse.
 *
 * Between calls: id and code hold n records, ascending; want is how many there
 * should be for a try. A block that goes out is opened as a reader opens it
 * (check_out): its head says what went in, and its gaps lead to the last id.
 *
 * What can go wrong: memory. Nothing is dropped then. */
#include "cold/block_build.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "cold/planes.h"

#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    DRAFT_BYTES = 2 * BLOCK_BYTES_MAX, /* so that it shows by how much one is
                                        * too long */
    WANT_FIRST = 512,                  /* records, before there was a block */
    WANT_MORE = 32, /* than were in the last one, and a sixteenth */
    TRIES_MAX = 24,
    SLACK_BYTES = 8, /* two in a thousand, and half of it on average */
    PAUSE_MAX = 63,  /* blocks */
    FAR_SHARE = 16,  /* longer by one in so many is far longer */
    /* percent of the ids: a lookup then takes a fifth of the time */
    RICE_FAVOUR = 3
};

/* A block that may or may not fit. */
struct draft {
    size_t n, len;
    enum block_codec codec;
    uint8_t bytes[DRAFT_BYTES];
};

struct block_builder {
    const struct alloc *alloc;
    struct block_options options;
    size_t n, want;
    size_t expect[BLOCK_CODEC_COUNT];  /* records in the last block of it */
    unsigned pause[BLOCK_CODEC_COUNT]; /* blocks without a try of it */
    unsigned last[BLOCK_CODEC_COUNT]; /* what that was at first; 0: no pause */
    uint64_t *id, *gap;               /* owned: BLOCK_RECORDS_MAX */
    uint64_t *code[SCHEMA_COLUMNS_MAX];
    struct ids_shape shape;
    struct ids_work ids;
    struct series_work series;
    ZSTD_CCtx *zstd; /* owned; where the codec may want it */
    uint8_t *raw;    /* owned: raw_bytes; what zstd compresses */
    size_t raw_bytes;
    struct draft draft, best, other;
};

enum { ARRAY_BYTES = BLOCK_RECORDS_MAX * (int)sizeof(uint64_t) };

static bool
may_be(const struct block_builder *builder, enum block_codec codec)
{
    return builder->options.codec == codec ||
        builder->options.codec == BLOCK_AUTO;
}

static bool
make_zstd(struct block_builder *builder)
{
    if (!may_be(builder, BLOCK_ZSTD)) {
        return true;
    }
    ASSERT(builder->zstd == NULL);
    builder->zstd = ZSTD_createCCtx();
    if (builder->zstd == NULL) {
        return false;
    }
    /* the size follows from the block's head */
    return !ZSTD_isError(ZSTD_CCtx_setParameter(builder->zstd,
               ZSTD_c_compressionLevel, builder->options.level)) &&
        !ZSTD_isError(
            ZSTD_CCtx_setParameter(builder->zstd, ZSTD_c_contentSizeFlag, 0));
}

int
block_builder_create(const struct block_options *options,
    const struct alloc *alloc, struct block_builder **out)
{
    struct block_builder *builder = alloc_zeroed(alloc, sizeof *builder);
    bool good;

    ASSERT(options->n_columns >= 1 &&
        options->n_columns <= SCHEMA_COLUMNS_MAX &&
        options->codec <= BLOCK_AUTO);
    if (builder == NULL) {
        return ERR_NO_MEMORY;
    }
    builder->alloc = alloc;
    builder->options = *options;
    builder->want = WANT_FIRST;
    builder->ids.series = &builder->series;
    builder->id = alloc_zeroed(alloc, ARRAY_BYTES);
    builder->gap = alloc_zeroed(alloc, ARRAY_BYTES);
    good = builder->id != NULL && builder->gap != NULL && make_zstd(builder);
    for (unsigned c = 0; c < options->n_columns; c++) {
        builder->code[c] = good ? alloc_zeroed(alloc, ARRAY_BYTES) : NULL;
        good = builder->code[c] != NULL;
    }
    *out = builder;
    if (!good) {
        block_builder_destroy(out);
        return ERR_NO_MEMORY;
    }
    return 0;
}

void
block_builder_destroy(struct block_builder **builder)
{
    struct block_builder *old = *builder;

    if (old == NULL) {
        return;
    }
    ZSTD_freeCCtx(old->zstd);
    alloc_free(old->alloc, old->id, ARRAY_BYTES);
    alloc_free(old->alloc, old->gap, ARRAY_BYTES);
    for (unsigned c = 0; c < SCHEMA_COLUMNS_MAX; c++) {
        alloc_free(old->alloc, old->code[c], ARRAY_BYTES);
    }
    alloc_free(old->alloc, old->raw, old->raw_bytes);
    alloc_free(old->alloc, old, sizeof *old);
    *builder = NULL;
}

bool
block_builder_is_full(const struct block_builder *builder)
{
    return builder->n >= builder->want;
}

size_t
block_builder_count(const struct block_builder *builder)
{
    return builder->n;
}

uint64_t
block_builder_first_id(const struct block_builder *builder)
{
    ASSERT(builder->n > 0);
    return builder->id[0];
}

void
block_builder_add(
    struct block_builder *builder, uint64_t id, const uint64_t *code)
{
    size_t n = builder->n;

    ASSERT(n < builder->want && n < BLOCK_RECORDS_MAX);
    ASSERT(n == 0 || id > builder->id[n - 1]);
    builder->id[n] = id;
    for (unsigned c = 0; c < builder->options.n_columns; c++) {
        builder->code[c][n] = code[c];
    }
    builder->n = n + 1;
}

/* Writes what all codecs begin with, but for the length; how long it is. */
static size_t
put_head(const struct block_builder *builder, struct draft *draft)
{
    uint8_t *out = draft->bytes;

    ASSERT(draft->n > 0 && draft->n <= builder->n);
    memset(out, 0, BLOCK_HEAD_BYTES);
    out[0] = BLOCK_VERSION;
    out[1] = (uint8_t)draft->codec;
    bytes_put_u16(out + 4, (uint16_t)(draft->n - 1));
    out[6] = (uint8_t)builder->options.n_columns;
    bytes_put_u64(out + 8, builder->id[0]);
    return BLOCK_HEAD_BYTES +
        ids_put_shape(&builder->shape, out + BLOCK_HEAD_BYTES);
}

_Static_assert(
    BLOCK_HEAD_BYTES + IDS_HEAD_BYTES_MAX + 3 * SCHEMA_COLUMNS_MAX + 64 <
        DRAFT_BYTES,
    "heads fit into a draft");

static void
pack(struct block_builder *builder, struct draft *draft)
{
    size_t begin = put_head(builder, draft);
    uint8_t *column = draft->bytes + begin;
    struct bits_out out;

    begin += 2 * (size_t)builder->options.n_columns;
    ASSERT(begin < DRAFT_BYTES);
    bits_out_init(&out, draft->bytes + begin, DRAFT_BYTES - begin);
    series_put(
        &builder->series, &out, builder->gap, draft->n - 1, RICE_FAVOUR);
    for (unsigned c = 0; c < builder->options.n_columns; c++) {
        bytes_put_u16(column + 2 * (size_t)c, (uint16_t)out.at);
        series_put(&builder->series, &out, builder->code[c], draft->n, 0);
    }
    draft->len = begin + bits_out_end(&out) + BLOCK_SUM_BYTES;
}

/* Puts widths at out; what the numbers take with them. */
static size_t
put_widths(const struct block_builder *builder, const struct draft *draft,
    uint8_t *out)
{
    size_t bytes;

    out[0] = (uint8_t)planes_width(builder->gap, draft->n - 1);
    bytes = out[0] * (draft->n - 1);
    for (unsigned c = 0; c < builder->options.n_columns; c++) {
        out[1 + c] = (uint8_t)planes_width(builder->code[c], draft->n);
        bytes += out[1 + c] * draft->n;
    }
    return bytes;
}

static void
put_planes(const struct block_builder *builder, const struct draft *draft,
    const uint8_t *width, uint8_t *out)
{
    planes_put(out, builder->gap, draft->n - 1, width[0]);
    out += width[0] * (draft->n - 1);
    for (unsigned c = 0; c < builder->options.n_columns; c++) {
        planes_put(out, builder->code[c], draft->n, width[1 + c]);
        out += width[1 + c] * draft->n;
    }
}

static void
lay_out(struct block_builder *builder, struct draft *draft)
{
    size_t begin = put_head(builder, draft);
    uint8_t *width = draft->bytes + begin;
    size_t bytes = put_widths(builder, draft, width);

    begin += 1 + builder->options.n_columns;
    draft->len = begin + bytes + BLOCK_SUM_BYTES;
    ASSERT(draft->len > begin);
    if (draft->len <= BLOCK_BYTES_MAX) {
        put_planes(builder, draft, width, draft->bytes + begin);
    }
}

static bool
make_raw(struct block_builder *builder, size_t bytes)
{
    if (bytes <= builder->raw_bytes) {
        return true;
    }
    alloc_free(builder->alloc, builder->raw, builder->raw_bytes);
    builder->raw_bytes = 0;
    builder->raw = alloc_zeroed(builder->alloc, bytes);
    builder->raw_bytes = builder->raw == NULL ? 0 : bytes;
    return builder->raw != NULL;
}

/* What is longer than a draft counts as that long. */
static int
compress(struct block_builder *builder, struct draft *draft)
{
    size_t begin = put_head(builder, draft);
    uint8_t *width = draft->bytes + begin;
    size_t bytes = put_widths(builder, draft, width);
    size_t room, made;

    begin += 1 + builder->options.n_columns;
    ASSERT(builder->zstd != NULL && begin + BLOCK_SUM_BYTES < DRAFT_BYTES);
    room = DRAFT_BYTES - BLOCK_SUM_BYTES - begin;
    if (!make_raw(builder, bytes + 1)) {
        return ERR_NO_MEMORY;
    }
    put_planes(builder, draft, width, builder->raw);
    made = ZSTD_compress2(
        builder->zstd, draft->bytes + begin, room, builder->raw, bytes);
    if (!ZSTD_isError(made)) {
        draft->len = begin + made + BLOCK_SUM_BYTES;
        return 0;
    }
    if (ZSTD_getErrorCode(made) != ZSTD_error_dstSize_tooSmall) {
        return ERR_NO_MEMORY;
    }
    draft->len = DRAFT_BYTES;
    return 0;
}

/* Encodes the first n records; draft->len is what that takes. */
static int
encode(struct block_builder *builder, enum block_codec codec, size_t n,
    struct draft *draft)
{
    ASSERT(may_be(builder, codec) && n > 0 && n <= builder->n);
    draft->codec = codec;
    draft->n = n;
    switch (codec) {
    case BLOCK_ZSTD:
        return compress(builder, draft);
    case BLOCK_PACKED:
        pack(builder, draft);
        return 0;
    default:
        lay_out(builder, draft);
        return 0;
    }
}

/* How many to try after a try of n that took len: so many as are likely to
 * leave half of the slack. */
static size_t
next_try(const struct draft *draft, size_t fits, size_t too_many)
{
    ASSERT(fits < too_many && draft->len > 0);
    size_t n = draft->n * (BLOCK_BYTES_MAX - SLACK_BYTES / 2) / draft->len;

    if (n <= fits) {
        n = fits + 1;
    }
    return n < too_many ? n : too_many - 1;
}

/* True where so few bytes are left that no more records are looked for. */
static bool
is_filled(const struct draft *draft)
{
    return draft->len + SLACK_BYTES >= BLOCK_BYTES_MAX;
}

/* Finds about how many records fit, 1 at least, into *best. */
static int
fit(struct block_builder *builder, enum block_codec codec, struct draft *best)
{
    size_t fits = 0, too_many = builder->n + 1;
    size_t n = builder->expect[codec];

    if (n == 0 || n > builder->n) {
        n = builder->n;
    }
    for (unsigned tries = 0; fits + 1 < too_many; tries++) {
        struct draft *draft = &builder->draft;
        int err = encode(builder, codec, n, draft);

        if (err != 0) {
            return err;
        }
        if (draft->len <= BLOCK_BYTES_MAX) {
            fits = n;
            *best = *draft;
            if (is_filled(draft)) {
                break;
            }
        } else {
            too_many = n;
        }
        if (tries >= TRIES_MAX && fits > 0) {
            break;
        }
        /* where lengths mislead, the middle is found at last */
        n = tries > 8 && too_many - fits > 2 ? fits + (too_many - fits) / 2
                                             : next_try(draft, fits, too_many);
    }
    ASSERT(fits > 0);
    builder->expect[codec] = fits;
    return 0;
}

/* How long the codec is not tried now: longer each time, or not at all. */
static void
rest(struct block_builder *builder, enum block_codec codec, bool is_far)
{
    unsigned pause = is_far ? 2 * builder->last[codec] + 1 : 0;

    builder->last[codec] = pause < PAUSE_MAX ? pause : PAUSE_MAX;
    builder->pause[codec] = builder->last[codec];
}

/* Puts the codec's block into best if it is better for as many records. */
static int
try_other(struct block_builder *builder, enum block_codec codec)
{
    struct draft *best = &builder->best;
    int err;

    if (builder->pause[codec] > 0) {
        builder->pause[codec]--;
        return 0;
    }
    err = encode(builder, codec, best->n, &builder->draft);
    if (err != 0 || builder->draft.len >= best->len) {
        bool is_far = builder->draft.len > best->len + best->len / FAR_SHARE;

        rest(builder, codec, err == 0 && is_far);
        return err;
    }
    rest(builder, codec, false);
    builder->expect[codec] = best->n;
    err = fit(builder, codec, &builder->other);
    if (err == 0 &&
        (builder->other.n > best->n ||
            (builder->other.n == best->n && builder->other.len < best->len))) {
        *best = builder->other;
    }
    return err;
}

static int
choose(struct block_builder *builder)
{
    int err;

    if (builder->options.codec != BLOCK_AUTO) {
        return fit(builder, builder->options.codec, &builder->best);
    }
    err = fit(builder, BLOCK_PACKED, &builder->best);
    if (err == 0) {
        err = try_other(builder, BLOCK_ZSTD);
    }
    return err == 0 ? try_other(builder, BLOCK_PLAIN) : err;
}

static void
drop(struct block_builder *builder, size_t n)
{
    size_t left = builder->n - n;

    ASSERT(n > 0 && n <= builder->n);
    memmove(builder->id, builder->id + n, left * sizeof *builder->id);
    for (unsigned c = 0; c < builder->options.n_columns; c++) {
        memmove(builder->code[c], builder->code[c] + n,
            left * sizeof *builder->id);
    }
    builder->n = left;
}

/* What goes out, seen as a reader will see it. */
static void
check_out(const struct block_builder *builder, const uint8_t *out, size_t len,
    uint64_t seed)
{
    const struct draft *best = &builder->best;
    uint64_t strides = 0, sum = 0;
    struct block block;

    ASSERT(block_open(out, len, seed, &block) == 0);
    ASSERT(block.len == len && block.codec == best->codec);
    ASSERT(block.n == best->n && block.first_id == builder->id[0]);
    ASSERT(block.n_columns == builder->options.n_columns);
    for (size_t i = 0; i + 1 < best->n; i++) {
        sum += builder->gap[i] + 1;
    }
    ASSERT(ids_distance(&block.shape, block.first_id, builder->id[best->n - 1],
               &strides) &&
        strides == sum);
}

static size_t
at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

int
block_builder_cut(struct block_builder *builder, bool is_end, uint64_t seed,
    uint8_t *out, size_t *len, size_t *n)
{
    struct draft *best = &builder->best;
    int err;

    *len = 0;
    *n = 0;
    if (builder->n == 0) {
        return 0;
    }
    ids_plan(
        &builder->ids, builder->id, builder->n, &builder->shape, builder->gap);
    err = choose(builder);
    if (err != 0) {
        return err;
    }
    if (!is_end && best->n == builder->n && best->n < BLOCK_RECORDS_MAX) {
        size_t may_fit = best->n * BLOCK_BYTES_MAX / best->len;

        builder->want =
            at_most(may_fit + may_fit / 16 + WANT_MORE, BLOCK_RECORDS_MAX);
        return 0;
    }
    ASSERT(best->len <= BLOCK_BYTES_MAX);
    bytes_put_u16(best->bytes + 2, (uint16_t)best->len);
    bytes_put_u64(best->bytes + best->len - BLOCK_SUM_BYTES,
        checksum64(best->bytes, best->len - BLOCK_SUM_BYTES, seed));
    memcpy(out, best->bytes, best->len);
    memset(out + best->len, 0, BLOCK_BYTES_MAX - best->len);
    *len = best->len;
    *n = best->n;
    check_out(builder, out, *len, seed);
    drop(builder, best->n);
    builder->want =
        at_most(best->n + best->n / 16 + WANT_MORE, BLOCK_RECORDS_MAX);
    /* what is left over may be more than that */
    builder->want = builder->want > builder->n ? builder->want : builder->n;
    ASSERT(builder->want > 0 && builder->want <= BLOCK_RECORDS_MAX);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a block that is kept in memory, and looks ids up in it.
 *
 *   struct warm | shape of the ids | marks | body
 *   body: gaps, columns, 8 bytes that loads may reach
 *
 * A lookup in a block as it is read adds up all gaps before the id: 1 us where
 * they are in Rice's code, and some 10 us where they are a tree, as dense ids
 * have it, or compressed by zstd. So there is a mark for each 64 gaps: the sum
 * until there, and where they stand. Gaps in Rice's code stay as they are;
 * others are written anew, each 64 of them with as many bits as the largest
 * needs. Columns are as in the block, or the bytes that zstd has made: in a
 * packed one, which nearly all are, each number is found in its planes without
 * decoding others. That takes an eighth more memory than the block has. Ids and
 * columns decoded, in as many bytes as they need, would take two and a half
 * times as much, and a cache would hold two fifths of the blocks.
 *
 * Most cold blocks are looked into once and then dropped, and to mark all gaps
 * in Rice's code takes longer than to add up half of them once. So the second
 * lookup that needs these marks makes them:
 *
 *   MARKS_NONE -> MARKS_WANTED -> MARKS_UNDER_WAY -> MARKS_MADE or MARKS_BAD
 *         the first      the second
 *
 * A lookup that comes before they are made goes without. Gaps that are not
 * sound behind a checksum that is right are found by the second lookup; the
 * first one may find no record there. Nothing else of a block changes once it
 * is there.
 *
 * Nothing is trusted: whatever the bits are, no lookup reads outside of the
 * body. */
#include "cold/warm.h"

#include "base/assert.h"
#include "base/err.h"
#include "cold/block_priv.h"
#include "cold/planes.h"
#include "cold/rice.h"

#include <stdatomic.h>
#include <string.h>

/* Gaps written anew: so many of them. */
enum { GROUP = 64 };

/* What is asked for ahead: marks of 2,000 records, which is most blocks. */
enum { LINE_BYTES = 64, MARK_LINES = 8 };

struct group {
    uint64_t sum; /* of the gaps before, and one each */
    uint32_t at;  /* bit of the body */
    uint8_t width;
};

enum marks_state {
    MARKS_NONE,
    MARKS_WANTED,
    MARKS_UNDER_WAY,
    MARKS_MADE,
    MARKS_BAD /* the gaps are not sound */
};

struct marks {
    _Atomic uint8_t state;   /* enum marks_state: only ever the next one */
    struct rice_mark mark[]; /* of the thread that has them under way, then
                              * immutable */
};

struct warm {
    uint64_t first_id;
    const struct ids_shape *shape; /* cut off behind its lows */
    struct marks *marks;           /* of gaps that stay; else NULL */
    const struct group *group;     /* of gaps written anew */
    const uint8_t *body;
    uint32_t n;                             /* records */
    uint32_t gaps_at, end;                  /* bits of body */
    uint32_t column_at[SCHEMA_COLUMNS_MAX]; /* bits; else bytes */
    uint8_t width[SCHEMA_COLUMNS_MAX];      /* bytes of a number; not packed */
    uint8_t n_columns, k;
    bool is_packed;
};

_Static_assert(sizeof(struct warm) % 8 == 0, "the shape stands behind it");

/* What goes into a body. */
struct parts {
    struct block__planes planes; /* of a block that is not packed */
    const uint64_t *gap;         /* to be written anew; NULL: they stay */
    size_t gap_bytes;            /* a multiple of 8 */
    size_t mark_bytes;
    const uint8_t *columns; /* with the gaps where these stay */
    size_t column_bytes;
};

/* How many gaps are in the group that begins with gap i. */
static size_t
group_size(size_t n_gaps, size_t i)
{
    return n_gaps - i < GROUP ? n_gaps - i : GROUP;
}

static unsigned
group_width(const uint64_t *gap, size_t n)
{
    uint64_t any = 0;

    for (size_t i = 0; i < n; i++) {
        any |= gap[i];
    }
    return bits_width(any);
}

static void
measure_gaps(struct parts *parts, size_t n_gaps)
{
    size_t bits = 0;

    if (parts->gap == NULL) {
        parts->mark_bytes = sizeof(struct marks) +
            n_gaps / RICE_MARK * sizeof(struct rice_mark);
        return;
    }
    for (size_t i = 0; i < n_gaps; i += GROUP) {
        size_t n = group_size(n_gaps, i);

        bits += n * group_width(parts->gap + i, n);
        parts->mark_bytes += sizeof(struct group);
    }
    parts->gap_bytes = (bits + 63) / 64 * 8;
}

/* Writes groups and bits; false where the sum passes 2^64-1. */
static bool
put_gaps(const struct parts *parts, size_t n_gaps, struct group *group,
    uint8_t *body)
{
    struct bits_out out;
    uint64_t sum = 0;

    ASSERT(parts->gap_bytes % 8 == 0);
    bits_out_init(&out, body, parts->gap_bytes);
    for (size_t i = 0; i < n_gaps; i += GROUP, group++) {
        const uint64_t *gap = parts->gap + i;
        size_t n = group_size(n_gaps, i);

        *group = (struct group){
            sum, (uint32_t)out.at, (uint8_t)group_width(gap, n)};
        for (size_t j = 0; j < n; j++) {
            bits_put(&out, gap[j], group->width);
            if (__builtin_add_overflow(sum, gap[j], &sum) ||
                __builtin_add_overflow(sum, 1, &sum)) {
                return false;
            }
        }
    }
    return bits_out_end(&out) <= parts->gap_bytes;
}

/* A packed block: where its series are, *in at the first of them. */
static int
find_series(const struct block *block, struct block_room *room,
    struct parts *parts, struct warm *warm, struct bits_in *in)
{
    unsigned k;
    size_t from = 0;

    if (!block__bits(block, in)) {
        return ERR_CORRUPT;
    }
    warm->is_packed = true;
    if (block->n > 1 && series_is_rice(in, &k)) {
        warm->k = (uint8_t)k;
        warm->gaps_at = (uint32_t)in->at;
    } else {
        uint64_t *gap;
        int err = block__gaps(block, room, &gap, &parts->planes);

        if (err != 0) {
            return err;
        }
        parts->gap = gap;
        from = block__column(block, in, 0) / 8;
    }
    if (from > in->end / 8) {
        return ERR_CORRUPT;
    }
    parts->columns = in->in + from;
    parts->column_bytes = in->end / 8 - from;
    return 0;
}

static int
find_planes(const struct block *block, struct block_room *room,
    struct parts *parts, struct warm *warm)
{
    uint64_t *gap;
    int err = block__gaps(block, room, &gap, &parts->planes);

    if (err != 0) {
        return err;
    }
    parts->gap = gap;
    parts->columns =
        parts->planes.at + parts->planes.width[0] * (block->n - 1);
    for (unsigned c = 0; c < block->n_columns; c++) {
        warm->width[c] = (uint8_t)parts->planes.width[c + 1];
        warm->column_at[c] = (uint32_t)parts->column_bytes;
        parts->column_bytes += warm->width[c] * block->n;
    }
    return 0;
}

/* All of the head but its pointers, and what is to be written. */
static int
plan(const struct block *block, struct block_room *room, struct parts *parts,
    struct warm *warm)
{
    struct bits_in in;
    int err;

    *warm = (struct warm){.first_id = block->first_id,
        .n = (uint32_t)block->n,
        .n_columns = (uint8_t)block->n_columns};
    *parts = (struct parts){0};
    err = block->codec == BLOCK_PACKED
        ? find_series(block, room, parts, warm, &in)
        : find_planes(block, room, parts, warm);
    if (err != 0) {
        return err;
    }
    measure_gaps(parts, block->n - 1);
    for (unsigned c = 0; c < block->n_columns; c++) {
        if (warm->is_packed) {
            size_t at = block__column(block, &in, c);
            size_t moved = 8 * (size_t)(parts->columns - in.in);

            if (at < moved || at > in.end) {
                return ERR_CORRUPT;
            }
            warm->column_at[c] = (uint32_t)(at - moved);
        }
        warm->column_at[c] +=
            (uint32_t)parts->gap_bytes * (warm->is_packed ? 8 : 1);
    }
    ASSERT(parts->gap_bytes + parts->column_bytes <= UINT32_MAX / 8);
    warm->end = (uint32_t)(8 * (parts->gap_bytes + parts->column_bytes));
    return 0;
}

/* The head is in warm; the rest follows it. */
static int
fill(struct warm *warm, const struct block *block, const struct parts *parts)
{
    uint8_t *shape = (uint8_t *)(warm + 1);
    uint8_t *marks = shape + ids_shape_bytes(&block->shape);
    uint8_t *body = marks + parts->mark_bytes;
    uint8_t *columns = body + parts->gap_bytes;

    ASSERT((uintptr_t)marks % 8 == 0 && parts->mark_bytes % 8 == 0);
    memcpy(shape, &block->shape, (size_t)(marks - shape));
    memcpy(columns, parts->columns, parts->column_bytes);
    memset(columns + parts->column_bytes, 0, BITS_SLACK);
    warm->shape = (const struct ids_shape *)(const void *)shape;
    warm->body = body;
    if (parts->gap == NULL) {
        warm->marks = (struct marks *)(void *)marks;
        atomic_init(&warm->marks->state, MARKS_NONE);
        return 0;
    }
    struct group *group = (struct group *)(void *)marks;

    warm->group = group;
    return put_gaps(parts, block->n - 1, group, body) ? 0 : ERR_CORRUPT;
}

int
warm_make(const struct block *block, struct block_room *room,
    void *(*take_fn)(void *context, size_t bytes), void *context,
    struct warm **out)
{
    struct parts parts;
    struct warm head;
    struct warm *warm;
    int err = plan(block, room, &parts, &head);

    if (err != 0) {
        return err;
    }
    warm = take_fn(context,
        sizeof head + ids_shape_bytes(&block->shape) + parts.mark_bytes +
            parts.gap_bytes + parts.column_bytes + BITS_SLACK);
    if (warm == NULL) {
        return ERR_NO_MEMORY;
    }
    *warm = head;
    *out = warm;
    return fill(warm, block, &parts);
}

/* The place among the gaps written anew whose sum is strides (>= 1); their
 * number where it is none. */
static size_t
find_in_groups(const struct warm *warm, size_t n_gaps, uint64_t strides)
{
    const struct group *group = warm->group;
    uint64_t sum;
    size_t i, end;

    /* it is in one of n groups from there on, before which are less */
    for (size_t n = (n_gaps + GROUP - 1) / GROUP; n > 1;) {
        size_t half = n / 2;

        group += group[half].sum < strides ? half : 0;
        n -= half;
    }
    sum = group->sum;
    i = (size_t)(group - warm->group) * GROUP;
    ASSERT(i < n_gaps);
    end = i + group_size(n_gaps, i);
    for (size_t at = group->at; i < end && sum < strides; i++) {
        sum += bits_number(warm->body, at, group->width, 0) + 1;
        at += group->width;
        if (sum == strides) {
            return i;
        }
    }
    return n_gaps;
}

/* Goes on to the next state from this one; false where somebody else has. */
static bool
take_step(struct marks *marks, enum marks_state from)
{
    uint8_t state = (uint8_t)from;

    ASSERT(from == MARKS_NONE || from == MARKS_WANTED);
    /* relaxed: a state is entered by one thread, once, and says nothing of
     * other memory but where marks are made */
    return atomic_compare_exchange_strong_explicit(&marks->state, &state,
        (uint8_t)(from + 1), memory_order_relaxed, memory_order_relaxed);
}

/* The state of the marks, which this lookup may change: the first one has the
 * second make them. */
static enum marks_state
marks_of(const struct warm *warm, const struct bits_in *in)
{
    struct marks *marks = warm->marks;
    /* acquire: the marks that are made are read after it */
    uint8_t state = atomic_load_explicit(&marks->state, memory_order_acquire);

    ASSERT(state <= MARKS_BAD);
    if (state == MARKS_NONE) {
        (void)take_step(marks, MARKS_NONE);
        return MARKS_NONE;
    }
    if (state != MARKS_WANTED || !take_step(marks, MARKS_WANTED)) {
        return state;
    }
    state = rice_marks(in, warm->n - 1, warm->k, marks->mark) ? MARKS_MADE
                                                              : MARKS_BAD;
    /* release: the marks come before */
    atomic_store_explicit(&marks->state, state, memory_order_release);
    return state;
}

/* rice_seek among the block's gaps. */
static bool
seek_rice(const struct warm *warm, uint64_t strides, size_t *i, uint64_t *sum)
{
    struct bits_in in = {warm->body, warm->gaps_at, warm->end};
    size_t n_gaps = warm->n - 1;

    switch (marks_of(warm, &in)) {
    case MARKS_MADE:
        return rice_seek_marked(
            &in, n_gaps, warm->k, warm->marks->mark, strides, i, sum);
    case MARKS_BAD:
        return false;
    default:
        return rice_seek(&in, n_gaps, warm->k, strides, i, sum);
    }
}

/* Finds the record so many strides behind the first; warm->n where there is
 * none. */
static int
find_place(const struct warm *warm, uint64_t strides, size_t *place)
{
    size_t n_gaps = warm->n - 1;
    size_t i = n_gaps;
    uint64_t sum;

    *place = 0;
    if (strides == 0) {
        return 0;
    }
    if (warm->marks != NULL) {
        if (!seek_rice(warm, strides, &i, &sum)) {
            return ERR_CORRUPT;
        }
        i = i < n_gaps && sum == strides ? i : n_gaps;
    } else if (n_gaps > 0) {
        i = find_in_groups(warm, n_gaps, strides);
    }
    *place = i + 1;
    return 0;
}

void
warm_prefetch_parts(const struct warm *warm, unsigned columns)
{
    const uint8_t *marks = warm->marks != NULL ? (const uint8_t *)warm->marks
                                               : (const uint8_t *)warm->group;
    size_t mark_bytes = (size_t)(warm->body - marks);

    if (mark_bytes > MARK_LINES * LINE_BYTES) {
        mark_bytes = MARK_LINES * LINE_BYTES;
    }
    for (size_t at = 0; at < mark_bytes; at += LINE_BYTES) {
        __builtin_prefetch(marks + at);
    }
    for (unsigned c = 0; c < warm->n_columns; c++) {
        if ((columns >> c & 1) != 0) {
            const uint8_t *column = warm->body +
                (warm->is_packed ? warm->column_at[c] / 8
                                 : warm->column_at[c]);

            __builtin_prefetch(column);
            __builtin_prefetch(column + LINE_BYTES);
        }
    }
}

int
warm_find(const struct warm *warm, uint64_t id, unsigned columns,
    uint64_t *code, bool *found)
{
    uint64_t strides;
    size_t place;
    int err;

    *found = false;
    if (id < warm->first_id ||
        !ids_distance(warm->shape, warm->first_id, id, &strides)) {
        return 0;
    }
    err = find_place(warm, strides, &place);
    if (err != 0 || place == warm->n) {
        return err;
    }
    for (unsigned c = 0; c < warm->n_columns; c++) {
        struct bits_in in = {warm->body, warm->column_at[c], warm->end};

        if ((columns >> c & 1) == 0) {
            continue;
        }
        if (!warm->is_packed) {
            code[c] = planes_at(warm->body + warm->column_at[c], warm->n,
                warm->width[c], place);
        } else if (!series_at(&in, warm->n, place, &code[c])) {
            return ERR_CORRUPT;
        }
    }
    *found = true;
    return 0;
}

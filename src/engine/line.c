/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/line: what is done to one line, on a private copy.
 *
 * The layout is drawn in line.h. Invariants, asserted by line_verify:
 * - far <= n <= 23, far <= 7, and tags, shapes and payloads take <= 488 bits;
 * - what lies between the shapes and the payloads is zero, so that lines with
 *   the same records in the same order are equal;
 * - no remainder twice among the home records, nor among the far ones.
 *
 * The happy path of an increment needs no copy, see line_seek.c. Another shape
 * moves the payloads below it, an insertion of a home record those of the far
 * ones; such moves go by whole words.
 *
 * What can go wrong: a line is full (false, nothing has changed). Everything
 * else is a caller's mistake and asserted: an index that is not there, a code
 * wider than its shape, a remainder wider than the form. */
#include "engine/line.h"

#include "base/assert.h"
#include "engine/line_bits.h"

#include <string.h>

enum { RECORDS_SHIFT = LINE_COUNTS_SHIFT, FAR_SHIFT = LINE_COUNTS_SHIFT + 5 };

/* The shapes of all records, record i's in nibble i. */
struct nibbles {
    uint64_t low, high;
};

void
line_load(const struct line *line, struct line_copy *copy)
{
#pragma GCC unroll 8
    for (unsigned i = 0; i < LINE_WORDS; i++) {
        /* relaxed: only the owner of the lock writes. */
        copy->word[i] =
            atomic_load_explicit(&line->word[i], memory_order_relaxed);
    }
}

void
line_store(struct line *line, const struct line_copy *copy)
{
#pragma GCC unroll 8
    for (unsigned i = 0; i < LINE_WORDS; i++) {
        /* relaxed: only the owner of the lock writes. */
        if (atomic_load_explicit(&line->word[i], memory_order_relaxed) !=
            copy->word[i]) {
            /* release: a reader whose acquire load sees this word also sees
             * that the sequence counter had become odd before. Source:
             * line_read.h. */
            atomic_store_explicit(
                &line->word[i], copy->word[i], memory_order_release);
        }
    }
}

static unsigned
tag_at(unsigned index)
{
    return LINE_MASK_BITS + LINE_TAG_BITS * index;
}

/* width (0..64) bits from bit at (0..511) on. */
static inline uint64_t
get_bits(const struct line_copy *copy, unsigned at, unsigned width)
{
    uint64_t low = copy->word[at / 64];
    uint64_t high = copy->word[(at / 64 + 1) % LINE_WORDS];
    return line_bits_join(low, high, at % 64) & line_bits_mask(width);
}

/* Flips the bits of value from bit at on; those that would lie outside the
 * line are zero. Where the line has zeros this sets them. */
static void
flip_bits(struct line_copy *copy, unsigned at, uint64_t value)
{
    unsigned shift = at % 64;
    copy->word[at / 64] ^= value << shift;
    copy->word[(at / 64 + 1) % LINE_WORDS] ^= value >> 1 >> (63 - shift);
}

/* Replaces width (0..64) bits from bit at on by value, which is no wider. */
static inline void
put_bits(struct line_copy *copy, unsigned at, unsigned width, uint64_t value)
{
    uint64_t *low = &copy->word[at / 64];
    uint64_t *high = &copy->word[(at / 64 + 1) % LINE_WORDS];
    uint64_t mask = line_bits_mask(width);
    unsigned shift = at % 64;
    *low = (*low & ~(mask << shift)) | value << shift;
    *high =
        (*high & ~(mask >> 1 >> (63 - shift))) | value >> 1 >> (63 - shift);
}

/* Where bits [from, to) of a line are, and what lies beside them in the first
 * and the last word, to be put back after all words have been written. */
struct span {
    unsigned first, last;             /* words */
    uint64_t inner_first, inner_last; /* bits of [from, to) in them */
    uint64_t outer_first, outer_last; /* what lies beside */
};

/* from < to. */
static inline struct span
span_open(const struct line_copy *copy, unsigned from, unsigned to)
{
    struct span span = {.first = from / 64, .last = (to - 1) / 64};
    span.inner_first = UINT64_MAX << from % 64;
    span.inner_last = UINT64_MAX >> (63 - (to - 1) % 64);
    span.outer_first = copy->word[span.first] & ~span.inner_first;
    span.outer_last = copy->word[span.last] & ~span.inner_last;
    return span;
}

static inline void
span_close(struct line_copy *copy, const struct span *span)
{
    uint64_t *first = &copy->word[span->first];
    uint64_t *last = &copy->word[span->last];
    *first = (*first & span->inner_first) | span->outer_first;
    *last = (*last & span->inner_last) | span->outer_last;
}

static void
clear_bits(struct line_copy *copy, unsigned from, unsigned to)
{
    if (from == to) {
        return;
    }
    struct span span = span_open(copy, from, to);
    for (unsigned i = span.first; i <= span.last; i++) {
        copy->word[i] = 0;
    }
    span_close(copy, &span);
}

/* Copies bits [from, to) to [from - by, to - by). */
static void
move_down(struct line_copy *copy, unsigned from, unsigned to, unsigned by)
{
    if (from == to) {
        return;
    }
    uint64_t *word = copy->word;
    struct span span = span_open(copy, from - by, to - by);
    unsigned next = span.first + by / 64;
    uint64_t low = word[next];
    for (unsigned i = span.first; i <= span.last; i++) {
        uint64_t high = word[++next % LINE_WORDS];
        word[i] = line_bits_join(low, high, by % 64);
        low = high;
    }
    span_close(copy, &span);
}

/* Copies bits [from, to) to [from + by, to + by). */
static void
move_up(struct line_copy *copy, unsigned from, unsigned to, unsigned by)
{
    if (from == to) {
        return;
    }
    uint64_t *word = copy->word;
    struct span span = span_open(copy, from + by, to + by);
    unsigned next = span.last - by / 64;
    uint64_t high = word[next];
    for (unsigned i = span.last + 1; i-- > span.first;) {
        uint64_t low = word[--next % LINE_WORDS];
        word[i] = high << by % 64 | low >> 1 >> (63 - by % 64);
        high = low;
    }
    span_close(copy, &span);
}

static inline struct nibbles
load_shapes(const struct line_copy *copy, unsigned n)
{
    unsigned at = tag_at(n); /* in word[6] at most */
    uint64_t a = copy->word[at / 64];
    uint64_t b = copy->word[at / 64 + 1];
    uint64_t c = copy->word[(at / 64 + 2) % LINE_WORDS];
    /* Without a branch on n, which would often be foretold wrong. */
    uint64_t over = 0 - (uint64_t)(n >> 4);
    uint64_t mask = (UINT64_C(1) << 4 * (n & 15)) - 1;
    return (struct nibbles){
        .low = line_bits_join(a, b, at % 64) & (mask | over),
        .high = line_bits_join(b, c, at % 64) & mask & over};
}

static uint64_t
tag_of(const struct line_copy *copy, unsigned index)
{
    unsigned at = tag_at(index);
    return copy->word[at / 64] >> at % 64 & 0xffff;
}

static unsigned
shape_of(struct nibbles shapes, unsigned index)
{
    uint64_t word = index < 16 ? shapes.low : shapes.high;
    return (unsigned)(word >> index % 16 * 4) & 15;
}

#if defined __x86_64__
__attribute__((target("ssse3"), noinline)) static unsigned
total_ssse3(
    const uint8_t total[SHAPES_N], uint64_t low, uint64_t high, unsigned n)
{
    __m128i nibbles = _mm_unpacklo_epi64(
        _mm_cvtsi64_si128((long long)low), _mm_cvtsi64_si128((long long)high));
    return line_bits_total_ssse3(total, nibbles, n);
}
#endif

/* Payload bits of the first n records. */
static inline unsigned
total_of(struct nibbles shapes, const struct line_form *form, unsigned n)
{
    if (form->single != 0) {
        return n * form->total[0];
    }
#if defined __x86_64__
    /* No loop, whose end would often be foretold wrong. */
    if (__builtin_cpu_supports("ssse3")) {
        return total_ssse3(form->total, shapes.low, shapes.high, n);
    }
#endif
    return line_bits_total(form->total, shapes.low, shapes.high, n);
}

static uint64_t
nibble_insert(uint64_t word, unsigned index, unsigned shape)
{
    uint64_t below = line_bits_mask(4 * index);
    return (word & below) | (word & ~below) << 4 |
        (uint64_t)shape << 4 * index;
}

static uint64_t
nibble_remove(uint64_t word, unsigned index)
{
    uint64_t below = line_bits_mask(4 * index);
    return (word & below) | (word >> 4 & ~below);
}

static struct nibbles
shapes_insert(struct nibbles shapes, unsigned index, unsigned shape)
{
    if (index >= 16) {
        shapes.high = nibble_insert(shapes.high, index - 16, shape);
        return shapes;
    }
    shapes.high = shapes.high << 4 | shapes.low >> 60;
    shapes.low = nibble_insert(shapes.low, index, shape);
    return shapes;
}

static struct nibbles
shapes_remove(struct nibbles shapes, unsigned index)
{
    if (index >= 16) {
        shapes.high = nibble_remove(shapes.high, index - 16);
        return shapes;
    }
    shapes.low = nibble_remove(shapes.low, index) | shapes.high << 60;
    shapes.high >>= 4;
    return shapes;
}

static void
flip_shapes(struct line_copy *copy, unsigned at, struct nibbles shapes)
{
    flip_bits(copy, at, shapes.low);
    flip_bits(copy, at + 64, shapes.high);
}

/* Writes codes over whatever lies from bit at on, behind the extra bits. */
static void
put_codes(struct line_copy *copy, const struct line_form *form, unsigned at,
    unsigned shape, const uint64_t *code)
{
    const struct shapes *shapes = form->shapes;
    bool is_short = shapes->total[shape] < 64;
    uint64_t joined = 0;
    for (unsigned left = shapes->columns; left != 0; left &= left - 1) {
        unsigned column = (unsigned)__builtin_ctz(left);
        struct shapes_field field = shapes->field[column][shape];
        if (is_short) {
            ASSERT(code[column] >> field.width == 0);
            joined |= code[column] << field.start;
        } else {
            ASSERT((code[column] & ~line_bits_mask(field.width)) == 0);
            put_bits(copy, at + field.start, field.width, code[column]);
        }
    }
    if (is_short) {
        put_bits(copy, at, shapes->total[shape], joined);
    }
}

static uint64_t
get_extra(
    const struct line_copy *copy, const struct line_form *form, unsigned at)
{
    return get_bits(copy, at, form->extra_bits);
}

static void
put_extra(struct line_copy *copy, const struct line_form *form, unsigned at,
    uint64_t extra)
{
    put_bits(copy, at, form->extra_bits, extra);
}

unsigned
line_used_bits(const struct line_copy *copy, const struct line_form *form)
{
    unsigned n = line_count(copy);
    return form->single != 0
        ? n * (LINE_RECORD_BITS + form->total[0])
        : LINE_RECORD_BITS * n + total_of(load_shapes(copy, n), form, n);
}

bool
line_has_room(const struct line_copy *copy, const struct line_form *form,
    unsigned shape, bool is_far)
{
    ASSERT(shape < SHAPES_N);
    if (line_count(copy) == LINE_RECORDS_MAX ||
        (is_far && line_far(copy) == LINE_FAR_MAX)) {
        return false;
    }
    return line_used_bits(copy, form) + LINE_RECORD_BITS +
        form->total[shape] <=
        LINE_USABLE_BITS;
}

bool
line_has_room_in(const struct line *line, const struct line_form *form,
    unsigned shape, bool is_far)
{
    struct line_copy copy;
    if (form->single != 0) { /* the counts say it */
        /* relaxed: as line_load */
        copy.word[7] =
            atomic_load_explicit(&line->word[7], memory_order_relaxed);
    } else {
        line_load(line, &copy);
    }
    return line_has_room(&copy, form, shape, is_far);
}

/* Bit i + 1 is set for each record i among home or far whose tag it is. */
static uint32_t
match_tags(const struct line_copy *copy, uint16_t tag, bool is_far)
{
    unsigned n = line_count(copy);
    unsigned home = n - line_far(copy);
    uint32_t match = line_bits_match(copy->word, tag);
    uint32_t homes = (UINT32_C(2) << home) - 2;
    uint32_t all = (UINT32_C(2) << n) - 2;
    return match & (is_far ? all & ~homes : homes);
}

/* The index (0..n-1) of the record, or -1; *at is then where its payload
 * begins. */
static inline int
find(const struct line_copy *copy, const struct line_form *form,
    struct nibbles shapes, uint32_t match, uint64_t remainder, unsigned *at)
{
    uint64_t extra = line_extra(form, remainder);
    for (; match != 0; match &= match - 1) {
        unsigned end = (unsigned)__builtin_ctz(match);
        *at = LINE_PAYLOADS_END - total_of(shapes, form, end);
        if (get_extra(copy, form, *at) == extra &&
            line_may_be(form, remainder, shape_of(shapes, end - 1))) {
            return (int)end - 1;
        }
    }
    return -1;
}

/* Reads the codes of a record of that shape whose payload begins at bit at. */
static inline void
get_codes(const struct line_copy *copy, const struct line_form *form,
    unsigned shape, unsigned at, struct line_record *out)
{
    const struct shapes *shapes = form->shapes;
    /* In two halves: gcc makes a slow string instruction of the whole. */
    memset(out->code, 0, sizeof out->code / 2);
    memset(out->code + SHAPES_COLUMNS_MAX / 2, 0, sizeof out->code / 2);
    out->shape = (uint8_t)shape;
    out->at = (uint16_t)(at + form->extra_bits);
    bool is_short = form->total[shape] < 64;
    uint64_t bits = get_bits(copy, at, 64) >> form->extra_bits;
    for (unsigned left = shapes->columns; left != 0; left &= left - 1) {
        unsigned column = (unsigned)__builtin_ctz(left);
        struct shapes_field field = shapes->field[column][shape];
        out->code[column] = is_short
            ? bits >> field.start & ((UINT64_C(1) << field.width) - 1)
            : get_bits(copy, out->at + field.start, field.width);
    }
}

int
line_fetch(const struct line_copy *copy, const struct line_form *form,
    uint64_t remainder, bool is_far, struct line_record *out)
{
    unsigned at;
    uint32_t match = match_tags(copy, (uint16_t)remainder, is_far);
    if (match == 0) {
        return -1;
    }
    struct nibbles shapes = load_shapes(copy, line_count(copy));
    int index = find(copy, form, shapes, match, remainder, &at);
    if (index >= 0) {
        out->remainder = remainder;
        out->is_far = is_far;
        get_codes(copy, form, shape_of(shapes, (unsigned)index), at, out);
    }
    return index;
}

unsigned
line_heads(const struct line_copy *copy, const struct line_form *form,
    struct line_head head[LINE_RECORDS_MAX])
{
    unsigned n = line_count(copy);
    unsigned home = n - line_far(copy);
    unsigned at = LINE_PAYLOADS_END;
    struct nibbles shapes = load_shapes(copy, n);
    for (unsigned i = 0; i < n; i++) {
        unsigned shape = shape_of(shapes, i);
        uint64_t extra = 0;
        if (form->extra_bits > 0) {
            at -= form->total[shape];
            extra = get_extra(copy, form, at);
        }
        head[i] = (struct line_head){
            .remainder = line_remainder(form, extra, shape, tag_of(copy, i)),
            .shape = (uint8_t)shape,
            .is_far = i >= home};
    }
    return n;
}

void
line_get(const struct line_copy *copy, const struct line_form *form,
    unsigned index, struct line_record *out)
{
    unsigned n = line_count(copy);
    ASSERT(index < n);
    struct nibbles shapes = load_shapes(copy, n);
    unsigned at = LINE_PAYLOADS_END - total_of(shapes, form, index + 1);
    unsigned shape = shape_of(shapes, index);
    out->remainder = line_remainder(
        form, get_extra(copy, form, at), shape, tag_of(copy, index));
    out->is_far = index >= n - line_far(copy);
    get_codes(copy, form, shape, at, out);
}

/* Makes room for tag index and puts it and the shapes of n + 1 records in. */
static void
insert_tag(struct line_copy *copy, unsigned n, unsigned index, uint16_t tag,
    struct nibbles before, struct nibbles after)
{
    flip_shapes(copy, tag_at(n), before);
    move_up(copy, tag_at(index), tag_at(n), LINE_TAG_BITS);
    put_bits(copy, tag_at(index), LINE_TAG_BITS, tag);
    flip_shapes(copy, tag_at(n + 1), after);
}

bool
line_insert(struct line_copy *copy, const struct line_form *form,
    const struct line_record *record)
{
    unsigned n = line_count(copy);
    unsigned far = line_far(copy);
    unsigned shape = record->shape;
    uint64_t extra = line_extra(form, record->remainder);
    ASSERT(shape < SHAPES_N);
    ASSERT(extra >> form->extra_bits == 0);
    ASSERT(line_may_be(form, record->remainder, shape));
    if (n == LINE_RECORDS_MAX || (record->is_far && far == LINE_FAR_MAX)) {
        return false;
    }
    struct nibbles shapes = load_shapes(copy, n);
    unsigned width = form->total[shape];
    unsigned used = total_of(shapes, form, n);
    if (LINE_RECORD_BITS * (n + 1) + used + width > LINE_USABLE_BITS) {
        return false;
    }
    unsigned index = record->is_far ? n : n - far;
    unsigned end = LINE_PAYLOADS_END -
        (index == n ? used : total_of(shapes, form, index));
    move_down(copy, LINE_PAYLOADS_END - used, end, width);
    insert_tag(copy, n, index, (uint16_t)record->remainder, shapes,
        shapes_insert(shapes, index, shape));
    put_extra(copy, form, end - width, extra);
    put_codes(copy, form, end - width + form->extra_bits, shape, record->code);
    copy->word[7] += UINT64_C(1) << RECORDS_SHIFT;
    if (record->is_far) {
        copy->word[7] += UINT64_C(1) << FAR_SHIFT;
    }
    return true;
}

void
line_remove(
    struct line_copy *copy, const struct line_form *form, unsigned index)
{
    unsigned n = line_count(copy);
    ASSERT(index < n);
    struct nibbles shapes = load_shapes(copy, n);
    unsigned width = form->total[shape_of(shapes, index)];
    unsigned start = LINE_PAYLOADS_END - total_of(shapes, form, n);
    unsigned end = LINE_PAYLOADS_END - total_of(shapes, form, index + 1);
    move_up(copy, start, end, width);
    clear_bits(copy, start, start + width);
    flip_shapes(copy, tag_at(n), shapes);
    move_down(copy, tag_at(index + 1), tag_at(n), LINE_TAG_BITS);
    put_bits(copy, tag_at(n - 1), LINE_TAG_BITS, 0);
    flip_shapes(copy, tag_at(n - 1), shapes_remove(shapes, index));
    if (index >= n - line_far(copy)) {
        copy->word[7] -= UINT64_C(1) << FAR_SHIFT;
    }
    copy->word[7] -= UINT64_C(1) << RECORDS_SHIFT;
}

/* line_rewrite with a shape of another width or other fields. end is where the
 * payload of the record before begins. */
static bool
reshape(struct line_copy *copy, const struct line_form *form,
    struct nibbles shapes, unsigned index, unsigned end, unsigned shape)
{
    unsigned n = line_count(copy);
    unsigned was = shape_of(shapes, index);
    unsigned width_was = form->total[was];
    unsigned width = form->total[shape];
    unsigned used = total_of(shapes, form, n);
    if (LINE_RECORD_BITS * n + used - width_was + width > LINE_USABLE_BITS) {
        return false;
    }
    unsigned start = LINE_PAYLOADS_END - used;
    uint64_t extra = get_extra(copy, form, end - width_was);
    if (width >= width_was) {
        move_down(copy, start, end - width_was, width - width_was);
    } else {
        move_up(copy, start, end - width_was, width_was - width);
        clear_bits(copy, start, start + width_was - width);
    }
    put_extra(copy, form, end - width, extra);
    flip_bits(copy, tag_at(n) + 4 * index, was ^ shape);
    return true;
}

bool
line_rewrite(struct line_copy *copy, const struct line_form *form,
    unsigned index, unsigned shape, const uint64_t *code)
{
    unsigned n = line_count(copy);
    ASSERT(index < n);
    ASSERT(shape < SHAPES_N);
    struct nibbles shapes = load_shapes(copy, n);
    unsigned end = LINE_PAYLOADS_END - total_of(shapes, form, index);
    if (shape != shape_of(shapes, index)) {
        ASSERT(form->single == 0); /* it would be another record */
        if (!reshape(copy, form, shapes, index, end, shape)) {
            return false;
        }
    }
    put_codes(
        copy, form, end - form->total[shape] + form->extra_bits, shape, code);
    return true;
}

/* The remainders of records from..to-1 differ. */
static void
verify_different(const struct line_copy *copy, const struct line_form *form,
    unsigned from, unsigned to)
{
    uint64_t seen[LINE_RECORDS_MAX];
    for (unsigned i = from; i < to; i++) {
        struct line_record record;
        line_get(copy, form, i, &record);
        seen[i] = record.remainder;
        for (unsigned j = from; j < i; j++) {
            ASSERT(seen[j] != seen[i]);
        }
    }
}

void
line_verify(const struct line_copy *copy, const struct line_form *form)
{
    unsigned n = line_count(copy);
    unsigned far = line_far(copy);
    ASSERT(n <= LINE_RECORDS_MAX);
    ASSERT(far <= n); /* its 3 bits hold no more than LINE_FAR_MAX */
    struct nibbles shapes = load_shapes(copy, n);
    for (unsigned i = 0; i < n; i++) {
        unsigned shape = shape_of(shapes, i);
        ASSERT(form->total[shape] <= SHAPES_BITS_MAX);
        ASSERT(form->total[shape] ==
            form->shapes->total[shape] + form->extra_bits);
    }
    unsigned used = line_used_bits(copy, form);
    ASSERT(used <= LINE_USABLE_BITS);
    struct line_copy free_area = *copy;
    unsigned start = tag_at(n) + 4 * n;
    clear_bits(&free_area, 0, start);
    clear_bits(&free_area, start + LINE_USABLE_BITS - used, 512);
    for (unsigned i = 0; i < LINE_WORDS; i++) {
        ASSERT(free_area.word[i] == 0);
    }
    verify_different(copy, form, 0, n - far);
    verify_different(copy, form, n - far, n);
}

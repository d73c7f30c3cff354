/* SPDX-License-Identifier: BSD-3-Clause */
/* The usual change of a record, in its line and without a private copy: finds
 * it, reads some of its columns, flips the bits that differ.
 *
 * Under the lock nobody else writes, so the line may be read by vector loads
 * while readers look at it. Where the machine lacks AVX2 or BMI2, the line is
 * copied, and read as line.c does it. */
#include "engine/line.h"

#include "base/assert.h"
#include "engine/line_bits.h"
#include "engine/line_cell.h"

#include <string.h>

#define LINE_READ_AVX2 1
#include "engine/lanes.h"

static inline uint64_t
word_of(const struct line *line, unsigned i)
{
    /* relaxed: only the owner of the lock writes. */
    return atomic_load_explicit(
        &line->word[i % LINE_WORDS], memory_order_relaxed);
}

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

enum {
    LOAD_BITS = 57, /* of any 64 that begin with a byte, so many are whole */
    LAST_BYTE = LINE_BYTES - sizeof(uint64_t)
};

/* width (0..64) bits from bit at on, all of them in the line. */
static inline uint64_t
bits_of(const struct line *line, unsigned at, unsigned width)
{
    unsigned byte = at / 8 < LAST_BYTE ? at / 8 : LAST_BYTE;
    uint64_t bits;
    if (__builtin_expect(width > LOAD_BITS, 0)) {
        return _bzhi_u64(line_bits_join(word_of(line, at / 64),
                             word_of(line, at / 64 + 1), at % 64),
            width);
    }
    memcpy(&bits, (const char *)line + byte, sizeof bits);
    return _bzhi_u64(bits >> (at - 8 * byte), width);
}

/* Where the payload of record index begins. */
static inline unsigned
payload_of(const struct line *line, const struct line_form *form, unsigned n,
    unsigned index)
{
    /* bytes 2 + 2n to 17 + 2n, at most 63 */
    const char *from = (const char *)line + 2 + 2 * n;
    __m128i shapes = _mm_loadu_si128((const __m128i *)(const void *)from);
    return LINE_PAYLOADS_END -
        line_bits_total_ssse3(form->total, shapes, index + 1);
}

/* Where a record is. */
struct spot {
    unsigned at; /* of its first column's bit */
    unsigned shape;
};

/* The index of the record among the home ones or the far ones, or -1.
 * is_single: of form, and a constant. */
static inline __attribute__((always_inline)) int
find(const struct line *line, const struct line_form *form, uint64_t remainder,
    bool is_far, bool is_single, struct spot *out)
{
    uint64_t extra =
        is_single ? line_extra(form, remainder) : remainder >> LINE_TAG_BITS;
    uint64_t counts = word_of(line, LINE_WORDS - 1);
    unsigned n = (unsigned)(counts >> LINE_COUNTS_SHIFT) & 31;
    unsigned home = n - (unsigned)(counts >> (LINE_COUNTS_SHIFT + 5));
    uint32_t match = line_bits_match(
        (const uint64_t *)(const void *)line, (uint16_t)remainder);
    uint32_t homes = (UINT32_C(2) << home) - 2;
    uint32_t all = (UINT32_C(2) << n) - 2;
    for (match &= is_far ? all & ~homes : homes; match != 0;
         match &= match - 1) {
        unsigned index = (unsigned)__builtin_ctz(match) - 1;
        unsigned at = payload_of(line, form, n, index);
        if (bits_of(line, at, form->extra_bits) != extra) {
            continue;
        }
        unsigned shape_at = LINE_MASK_BITS + LINE_TAG_BITS * n + 4 * index;
        out->shape = word_of(line, shape_at / 64) >> shape_at % 64 & 15;
        out->at = at + form->extra_bits;
        if (!is_single || line_may_be(form, remainder, out->shape)) {
            return (int)index;
        }
    }
    return -1;
}

static inline __attribute__((always_inline)) int
seek_in(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, uint32_t columns, bool is_single,
    struct line_record *out)
{
    struct spot spot;
    int index = find(line, form, remainder, is_far, is_single, &spot);
    if (index < 0) {
        return -1;
    }
    out->remainder = remainder;
    out->is_far = is_far;
    out->shape = (uint8_t)spot.shape;
    out->at = (uint16_t)spot.at;
    for (; columns != 0; columns &= columns - 1) {
        unsigned column = (unsigned)__builtin_ctz(columns);
        struct shapes_field field = form->shapes->field[column][spot.shape];
        out->code[column] = bits_of(line, spot.at + field.start, field.width);
    }
    return index;
}

static inline __attribute__((always_inline)) enum line_found
seek_cell_in(const struct line_pair *pair, const struct line_form *form,
    unsigned column, bool is_single, struct line_cell *out)
{
    struct spot spot;
    unsigned far = 0;
    const struct line *line = pair->line[0];
    int index = find(line, form, pair->remainder, false, is_single, &spot);
    if (index < 0) {
        if (!line_may_lack(line, pair->bit)) {
            return LINE_NOWHERE;
        }
        far = 1;
        line = pair->line[1];
        index = find(line, form, pair->remainder, true, is_single, &spot);
    }
    if (index < 0) {
        return line_may_lack(line, pair->bit) ? LINE_ELSEWHERE : LINE_NOWHERE;
    }
    struct shapes_field field = form->shapes->field[column][spot.shape];
    unsigned bit = spot.at + field.start;
    *out = (struct line_cell){.code = bits_of(line, bit, field.width),
        .at = (uint16_t)spot.at,
        .bit = (uint16_t)bit,
        .width = field.width,
        .shape = (uint8_t)spot.shape,
        .index = (uint8_t)index,
        .is_far = (uint8_t)far};
    return LINE_FOUND;
}

/* Once for each form: who changes records of 16 shapes pays next to nothing for
 * the other form. */

static int
seek(const struct line *line, const struct line_form *form, uint64_t remainder,
    bool is_far, uint32_t columns, struct line_record *out)
{
    return seek_in(line, form, remainder, is_far, columns, false, out);
}

static int
seek_single(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, uint32_t columns, struct line_record *out)
{
    return seek_in(line, form, remainder, is_far, columns, true, out);
}

static enum line_found
seek_cell(const struct line_pair *pair, const struct line_form *form,
    unsigned column, struct line_cell *out)
{
    return seek_cell_in(pair, form, column, false, out);
}

static enum line_found
seek_cell_single(const struct line_pair *pair, const struct line_form *form,
    unsigned column, struct line_cell *out)
{
    return seek_cell_in(pair, form, column, true, out);
}

LINE_TARGET_END

#endif

/* The same on a copy. */
static __attribute__((noinline)) int
seek_copy(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, uint32_t columns, struct line_record *out)
{
    struct line_copy copy;
    struct line_record whole;
    line_load(line, &copy);
    int index = line_fetch(&copy, form, remainder, is_far, &whole);
    if (index >= 0) {
        out->remainder = remainder;
        out->is_far = is_far;
        out->shape = whole.shape;
        out->at = whole.at;
        for (; columns != 0; columns &= columns - 1) {
            unsigned column = (unsigned)__builtin_ctz(columns);
            out->code[column] = whole.code[column];
        }
    }
    return index;
}

int
line_seek(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, uint32_t columns, struct line_record *out)
{
#if LINE_READ_HAVE
    if (LINE_TARGET_RUNS) {
        return form->single == 0
            ? seek(line, form, remainder, is_far, columns, out)
            : seek_single(line, form, remainder, is_far, columns, out);
    }
#endif
    return seek_copy(line, form, remainder, is_far, columns, out);
}

static __attribute__((noinline)) enum line_found
seek_cell_copy(const struct line_pair *pair, const struct line_form *form,
    unsigned column, struct line_cell *out)
{
    for (unsigned far = 0; far < 2; far++) {
        struct line_record record;
        const struct line *line = pair->line[far];
        int index = seek_copy(line, form, pair->remainder, far == 1,
            UINT32_C(1) << column, &record);
        if (index >= 0) {
            struct shapes_field field =
                form->shapes->field[column][record.shape];
            *out = (struct line_cell){.code = record.code[column],
                .at = record.at,
                .bit = (uint16_t)(record.at + field.start),
                .width = field.width,
                .shape = record.shape,
                .index = (uint8_t)index,
                .is_far = (uint8_t)far};
            return LINE_FOUND;
        }
        if (!line_may_lack(line, pair->bit)) {
            return LINE_NOWHERE;
        }
    }
    return LINE_ELSEWHERE;
}

enum line_found
line_seek_cell(const struct line_pair *pair, const struct line_form *form,
    unsigned column, struct line_cell *out)
{
#if LINE_READ_HAVE
    if (LINE_TARGET_RUNS) {
        return form->single == 0 ? seek_cell(pair, form, column, out)
                                 : seek_cell_single(pair, form, column, out);
    }
#endif
    return seek_cell_copy(pair, form, column, out);
}

void
line_codes(const struct line *line, const struct line_form *form,
    uint32_t columns, struct line_record *record)
{
    for (columns &= form->shapes->columns; columns != 0;
         columns &= columns - 1) {
        unsigned column = (unsigned)__builtin_ctz(columns);
        struct shapes_field field = form->shapes->field[column][record->shape];
        unsigned at = (unsigned)record->at + field.start;
        record->code[column] = line_bits_join(word_of(line, at / 64),
                                   word_of(line, at / 64 + 1), at % 64) &
            line_bits_mask(field.width);
    }
}

static inline void
flip_word(struct line *line, unsigned i, uint64_t flip)
{
    /* release: see line_store. */
    atomic_store_explicit(
        &line->word[i], word_of(line, i) ^ flip, memory_order_release);
}

static inline void
flip_code(struct line *line, const struct line_form *form,
    const struct line_record *record, unsigned column, uint64_t code)
{
    struct shapes_field field = form->shapes->field[column][record->shape];
    uint64_t flip = record->code[column] ^ code;
    unsigned at = (unsigned)record->at + field.start;
    if (flip == 0) {
        return;
    }
    ASSERT((flip & ~line_bits_mask(field.width)) == 0);
    flip_word(line, at / 64, flip << at % 64);
    if (at % 64 + field.width > 64) {
        flip_word(line, at / 64 + 1, flip >> (64 - at % 64));
    }
}

void
line_flip(struct line *line, const struct line_form *form,
    const struct line_record *record, const uint64_t *code, uint32_t columns)
{
    for (; columns != 0; columns &= columns - 1) {
        unsigned column = (unsigned)__builtin_ctz(columns);
        flip_code(line, form, record, column, code[column]);
    }
}

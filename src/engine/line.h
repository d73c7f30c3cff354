/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_H
#define ENGINE_LINE_H

#include "engine/shapes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line: one cache line that holds up to 23 packed records. Bits are counted
 * from the low end of word[0]:
 *
 *   0        16       32            16+16n      16+20n          504     512
 *   +--------+--------+--- - - -+---+-- - - --+----- - - -----+--------+
 *   | mask   | tag 0  | tag 1 ...   | shapes  | free | payloads | counts |
 *   | 16     | 16     |             | 4 each  |      | n-1 .. 0 | n, far |
 *   +--------+--------+--- - - -+---+-- - - --+----- - - -----+--------+
 *
 *   mask     overflow mask: bit b is set when some record that belongs here
 *            and whose hash is b lies elsewhere, or did once
 *   tag i    the low 16 bits of the remainder of record i
 *   shapes   4 bits each, shape i right after shape i-1. Where the shapes of
 *            the form are all the same, they are 4 more bits of the remainder
 *            of record i, those right above its tag
 *   payload  of record 0 ends at bit 504, that of record i where that of
 *            record i-1 begins. In it, from its low end: the rest of the
 *            remainder (form.extra_bits), then the columns, slot 0 first
 *   counts   5 bits n (0..23), 3 bits far (0..7): the last far records are
 *            displaced ones, whose first line is another
 *
 * usable bits: 488; a record takes 20 + extra_bits + the widths of its shape.
 * The order of records inside home and inside far has no meaning. */

enum {
    LINE_BYTES = 64,
    LINE_WORDS = 8,
    LINE_RECORDS_MAX = 23,
    LINE_FAR_MAX = 7,
    LINE_MASK_BITS = 16,
    LINE_USABLE_BITS = 488,
    LINE_RECORD_BITS = 20, /* tag and shape */
    LINE_TAG_BITS = 16,
    LINE_SHAPE_BITS = 4,
    LINE_PAYLOADS_END = 504,
    LINE_COUNTS_SHIFT = LINE_PAYLOADS_END - 448 /* in word[7] */
};

/* As it lies in a table: readers look at it while a writer changes it. */
struct line {
    _Atomic uint64_t word[LINE_WORDS];
};

/* A private copy. */
struct line_copy {
    uint64_t word[LINE_WORDS];
};

/* How a table's lines are to be read. total has extra_bits in it. */
struct line_form {
    const struct shapes *shapes;
    uint8_t total[SHAPES_N]; /* payload bits, at most SHAPES_BITS_MAX */
    uint8_t extra_bits;      /* 0..48 */
    uint16_t wide;           /* bit i: total[i] is above LINE_NEAR_BITS */
    uint16_t single;         /* all bits set: the shapes are all the same, and
                              * what names one is of the remainder; else 0 */
};

/* What a line keeps of such a record is read by one load. */
enum { LINE_NEAR_BITS = 57 };

/* A record out of its line. */
struct line_record {
    uint64_t remainder; /* see line_remainder */
    bool is_far;
    uint8_t shape;
    uint16_t at; /* where it was read: the first bit of its columns */
    uint64_t code[SHAPES_COLUMNS_MAX]; /* slots the form lacks are 0 */
};

/* A remainder in its parts: the low 16 bits are the tag; where the form is
 * single the 4 above them are what stands for the shape; the rest is extra. */

/* extra_bits bits, of a remainder below 2^(16 + extra_bits), or 2^(20 +
 * extra_bits) where the form is single. */
static inline uint64_t
line_extra(const struct line_form *form, uint64_t remainder)
{
    return remainder >> LINE_TAG_BITS >> (form->single & LINE_SHAPE_BITS);
}

/* True where a record under that shape may have the remainder. */
static inline bool
line_may_be(const struct line_form *form, uint64_t remainder, unsigned shape)
{
    return ((remainder >> LINE_TAG_BITS ^ shape) & (SHAPES_N - 1) &
               form->single) == 0;
}

/* The shape of a record: the one that fits its codes, unless its remainder
 * says it. */
static inline unsigned
line_shape(const struct line_form *form, uint64_t remainder, unsigned fit)
{
    return form->single == 0
        ? fit
        : (unsigned)(remainder >> LINE_TAG_BITS) & (SHAPES_N - 1);
}

static inline uint64_t
line_remainder(
    const struct line_form *form, uint64_t extra, unsigned shape, uint64_t tag)
{
    uint64_t high = extra << (form->single & LINE_SHAPE_BITS);
    return (high | (shape & form->single)) << LINE_TAG_BITS | tag;
}

/* For the owner of the lock: plain loads, release stores,
 * of the words that differ only, which a reader under a sequence counter may
 * watch (line_read.h). */
void line_load(const struct line *line, struct line_copy *copy);
void line_store(struct line *line, const struct line_copy *copy);

static inline unsigned
line_count(const struct line_copy *copy)
{
    return (unsigned)(copy->word[7] >> LINE_COUNTS_SHIFT) & 31;
}

static inline unsigned
line_far(const struct line_copy *copy)
{
    return (unsigned)(copy->word[7] >> (LINE_COUNTS_SHIFT + 5)) & 7;
}

/* True where a bit of the overflow mask is set; a guess where somebody may
 * write the line. */
static inline bool
line_may_lack(const struct line *line, unsigned bit)
{
    /* relaxed: the owner of the lock knows, and nobody else relies on it */
    return (atomic_load_explicit(&line->word[0], memory_order_relaxed) >> bit &
               1) != 0;
}

static inline void
line_mask_add(struct line_copy *copy, unsigned bit)
{
    copy->word[0] |= UINT64_C(1) << bit;
}

/* Bits taken: 0..488. */
unsigned line_used_bits(
    const struct line_copy *copy, const struct line_form *form);

/* True where a record of that shape has room. */
bool line_has_room(const struct line_copy *copy, const struct line_form *form,
    unsigned shape, bool is_far);

/* The same of a line as it lies in a table. For the owner of the lock. */
bool line_has_room_in(const struct line *line, const struct line_form *form,
    unsigned shape, bool is_far);

/* The index (0..n-1) of the record, which is in *out then, or -1. */
int line_fetch(const struct line_copy *copy, const struct line_form *form,
    uint64_t remainder, bool is_far, struct line_record *out);

/* Of a record in a line: whose it is, and how large. */
struct line_head {
    uint64_t remainder;
    uint8_t shape;
    bool is_far;
};

/* Those of all records, in their order. Returns how many there are. */
unsigned line_heads(const struct line_copy *copy, const struct line_form *form,
    struct line_head head[LINE_RECORDS_MAX]);

/* Record index into *out. */
void line_get(const struct line_copy *copy, const struct line_form *form,
    unsigned index, struct line_record *out);

/* Adds a record whose codes fit its shape, which is that of line_shape; false,
 * and nothing changed, where it has no room. The record is not there yet. */
bool line_insert(struct line_copy *copy, const struct line_form *form,
    const struct line_record *record);

void line_remove(
    struct line_copy *copy, const struct line_form *form, unsigned index);

/* Gives record index another shape and codes (the same shape is fine, and is
 * a must where the form is single); false, and nothing changed, where the new
 * shape has no room. Indices stay. */
bool line_rewrite(struct line_copy *copy, const struct line_form *form,
    unsigned index, unsigned shape, const uint64_t *code);

/* line_fetch from a line that nobody writes meanwhile, for the slots in
 * columns; out's other codes stay as they are. */
int line_seek(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, uint32_t columns,
    struct line_record *out);

/* Reads more codes of a record that line_seek has found, as far as the form
 * has these slots. */
void line_codes(const struct line *line, const struct line_form *form,
    uint32_t columns, struct line_record *record);

/* Gives a record that was just read from the line other codes, which fit its
 * shape, in the slots of columns: flips the bits that differ and stores the
 * words that have some, as line_store does. Other codes are not looked at. */
void line_flip(struct line *line, const struct line_form *form,
    const struct line_record *record, const uint64_t *code, uint32_t columns);

/* Asserts the invariants. */
void line_verify(const struct line_copy *copy, const struct line_form *form);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_LOOK_H
#define ENGINE_LINE_LOOK_H

#include "engine/line_read.h"

/* Many lines looked into at once, for the same step of all before the next
 * one. No step branches on what a line holds: records and misses come in no
 * order that a processor could foresee. The arithmetic between looks at memory
 * is done for LANES of them at a time. Where nothing is found numbers mean
 * nothing, and every one is safe to go on with.
 *
 * Memory order: see line_read.h.
 *
 * What is loaded number by number is put together to vectors in registers, and
 * what steps tell each other is stored as vectors: it may be loaded in parts
 * then, while a vector of what was stored in parts had to wait until all of
 * that has left the store buffer. n of a step is a multiple of LANES. */

enum {
    LINE_LOOKS = 36,           /* a hundred are three times as many, or less */
    LINE_LOOK_ELSEWHERE = 1,   /* in is_open */
    LINE_LOOK_NONE = 1 << 30,  /* above all matches */
    LINE_LOOK_WIDE = 1,        /* of line_look_flags: not all bits are near; */
    LINE_LOOK_SINGLE = 1 << 16 /* of the form */
};

/* What is looked for, and what came of it. */
struct line_looks {
    /* in: */
    const struct line *line[LINE_LOOKS];
    const struct line_form *form[LINE_LOOKS];
    const _Atomic uint32_t *stripe[LINE_LOOKS]; /* what guards the line */
    uint64_t remainder[LINE_LOOKS];
    uint64_t bit[LINE_LOOKS]; /* 0..15: the record's in overflow masks */
    /* out: */
    uint64_t seq[LINE_LOOKS]; /* the stripe's before the look, made even */
    uint64_t is_found[LINE_LOOKS]; /* all bits set, or 0 */
    /* not 0: not found, but may be somewhere. LINE_LOOK_ELSEWHERE: the line's
     * overflow mask has bit. More: it may be here behind another tag that
     * matches */
    uint64_t is_open[LINE_LOOKS];
    uint64_t shape[LINE_LOOKS]; /* below SHAPES_N */
    uint64_t at[LINE_LOOKS];    /* first bit of the payload: 0..511 */
    uint64_t bits[LINE_LOOKS];  /* its near values; 0 where not found */
};

/* What steps tell the next ones. */
struct line_look_steps {
    uint64_t match[LINE_LOOKS];  /* bit i + 1: the tag of record i is equal */
    uint64_t lacks[LINE_LOOKS];  /* 1: the overflow mask has the bit */
    uint64_t n[LINE_LOOKS];      /* records */
    uint64_t end[LINE_LOOKS];    /* records up to the first that matches */
    uint64_t nibble[LINE_LOOKS]; /* the byte where its shape is */
    uint64_t odd[LINE_LOOKS];    /* 4: in the upper half of that, or 0 */
    uint64_t byte[LINE_LOOKS];   /* where its payload is */
};

_Static_assert(offsetof(struct line_form, extra_bits) + sizeof(uint64_t) ==
            sizeof(struct line_form) &&
        offsetof(struct line_form, wide) ==
            offsetof(struct line_form, extra_bits) + 2 &&
        offsetof(struct line_form, single) ==
            offsetof(struct line_form, extra_bits) + 4,
    "see line_look_tail");

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* What is looked at, for LANES_EACH. */
struct line_look_from {
    const struct line *const *line;
    const struct line_form *const *form;
    const _Atomic uint32_t *const *stripe;
    const uint64_t *remainder;
    const struct line_look_steps *steps;
    uint32_t at;
};

LINE_READ_INLINE uint64_t
line_look_seq(struct line_look_from from, unsigned i)
{
    /* acquire: the line is read after it */
    return atomic_load_explicit(from.stripe[i], memory_order_acquire);
}

LINE_READ_INLINE uint64_t
line_look_tags(struct line_look_from from, unsigned i)
{
    return line_match_tags(from.line[i], (uint16_t)from.remainder[i]);
}

LINE_READ_INLINE uint64_t
line_look_counts(struct line_look_from from, unsigned i)
{
    return line_match_counts(from.line[i]);
}

LINE_READ_INLINE uint64_t
line_look_mask(struct line_look_from from, unsigned i)
{
    return line_match_bytes(from.line[i], 0);
}

LINE_READ_INLINE struct line_look_from
line_look_from(const struct line_looks *looks,
    const struct line_look_steps *steps, uint32_t i)
{
    return (struct line_look_from){.line = &looks->line[i],
        .form = &looks->form[i],
        .stripe = &looks->stripe[i],
        .remainder = &looks->remainder[i],
        .steps = steps,
        .at = i};
}

/* Step 1: the counters, then what lines say of tags and of themselves; of
 * records that match the first one, among the home records or the far ones. */
LINE_READ_INLINE void
line_look_match(struct line_looks *looks, struct line_look_steps *steps,
    uint32_t n, bool is_far)
{
    const uint64_t far_only = is_far ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < n; i += LANES) {
        struct line_look_from from = line_look_from(looks, steps, i);
        lanes seq = LANES_EACH(line_look_seq, from);
        lanes match = LANES_EACH(line_look_tags, from);
        lanes counts = LANES_EACH(line_look_counts, from);
        lanes mask = LANES_EACH(line_look_mask, from);
        lanes records = counts & 31;
        lanes far = counts >> 5;
        lanes first = (records - far) & far_only;
        lanes last = records - (far & ~far_only);
        match &=
            (lanes_all(2) << (last & 31)) - (lanes_all(2) << (first & 31));
        lanes end = lanes_ctz(match | LINE_LOOK_NONE);
        lanes nibble = (records << 2) + end + 3; /* at most 126 */
        lanes_store(&looks->seq[i], seq & ~lanes_all(1));
        lanes_store(&steps->match[i], match);
        lanes_store(&steps->lacks[i], mask >> lanes_load(&looks->bit[i]) & 1);
        lanes_store(&steps->n[i], records);
        lanes_store(&steps->end[i], end);
        lanes_store(&steps->nibble[i], nibble >> 1);
        lanes_store(&steps->odd[i], (nibble & 1) << 2);
    }
}

LINE_READ_INLINE uint64_t
line_look_shape(struct line_look_from from, unsigned i)
{
    return line_match_byte(
        from.line[i], (unsigned)from.steps->nibble[from.at + i]);
}

/* Step 2: its shape, and how far its payload is from the end of all: so where
 * it is. */
LINE_READ_INLINE void
line_look_place(
    struct line_looks *looks, struct line_look_steps *steps, uint32_t n)
{
    const lanes byte_max = lanes_all(LINE_BYTES - 8);
    for (uint32_t i = 0; i < n; i += LANES) {
        struct line_look_from from = line_look_from(looks, steps, i);
        lanes shape = LANES_EACH(line_look_shape, from);
        lanes total = line_match_totals(
            from.line, from.form, &steps->n[i], &steps->end[i]);
        shape = shape >> lanes_load(&steps->odd[i]) & 15;
        lanes at = (LINE_PAYLOADS_END - total) & 511;
        lanes byte = at >> 3;
        lanes is_over = (lanes)(byte > byte_max);
        byte = (byte & ~is_over) | (byte_max & is_over);
        lanes_store(&looks->shape[i], shape);
        lanes_store(&looks->at[i], at);
        lanes_store(&steps->byte[i], byte);
    }
}

/* What step 2 says of one. */
struct line_look_at {
    const struct line *const *line;
    const uint64_t *byte;
};

LINE_READ_INLINE uint64_t
line_look_payload(struct line_look_at at, unsigned i)
{
    return line_match_bytes(at.line[i], (unsigned)at.byte[i]);
}

/* extra_bits in the low 8 bits, wide in the third and the fourth 8, single in
 * the fifth and the sixth. */
LINE_READ_INLINE uint64_t
line_look_tail(const struct line_form *const *form, unsigned i)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t tail;
    const char *end = (const char *)(form[i] + 1);
    memcpy(&tail, end - sizeof tail, sizeof tail);
    return tail;
#else
    return form[i]->extra_bits | (uint64_t)form[i]->wide << 16 |
        (uint64_t)form[i]->single << 32;
#endif
}

/* Step 3: is it the record, and its values. has_single, a constant: forms may
 * be single. Returns flags of all that were looked at: behind the bits of wide
 * there are those of single, of which it does not matter which one is seen. */
LINE_READ_INLINE uint64_t
line_look_take(struct line_looks *looks, struct line_look_steps *steps,
    uint32_t n, bool has_single)
{
    lanes flags = {0};
    for (uint32_t i = 0; i < n; i += LANES) {
        lanes tail = LANES_EACH(line_look_tail, &looks->form[i]);
        lanes extra_bits = tail & UINT8_MAX;
        lanes shape = lanes_load(&looks->shape[i]);
        flags |= tail >> 16 >> shape;
        lanes byte = lanes_load(&steps->byte[i]);
        struct line_look_at where = {&looks->line[i], &steps->byte[i]};
        lanes payload = LANES_EACH(line_look_payload, where);
        payload >>= lanes_load(&looks->at[i]) - (byte << 3);
        lanes extra = payload & ((lanes_all(1) << extra_bits) - 1);
        if (has_single) { /* line_remainder, without the tag */
            lanes single = tail >> 32 & UINT16_MAX;
            extra = extra << (single & LINE_SHAPE_BITS) | (shape & single);
        }
        lanes remainder = lanes_load(&looks->remainder[i]);
        lanes match = lanes_load(&steps->match[i]);
        lanes is_found =
            (lanes)(extra == remainder >> LINE_TAG_BITS) & (lanes)(match != 0);
        lanes lacks = lanes_load(&steps->lacks[i]);
        lanes_store(&looks->is_found[i], is_found);
        lanes_store(&looks->bits[i], payload >> extra_bits & is_found);
        lanes_store(&looks->is_open[i], (lacks | match) & ~is_found);
    }
    return lanes_or(flags);
}

/* Step 3 once more, where a form is single: other tables do not pay for it. */
static __attribute__((noinline)) void
line_look_retake(
    struct line_looks *looks, struct line_look_steps *steps, uint32_t n)
{
    (void)line_look_take(looks, steps, n, true);
}

/* Puts look i beside itself, so that there are enough to fill a vector. */
LINE_READ_INLINE void
line_look_again(struct line_looks *looks, uint32_t i)
{
    looks->line[i + 1] = looks->line[i];
    looks->form[i + 1] = looks->form[i];
    looks->stripe[i + 1] = looks->stripe[i];
    looks->remainder[i + 1] = looks->remainder[i];
    looks->bit[i + 1] = looks->bit[i];
}

/* All of it. The stripes are read before the lines. Returns whether some
 * record has more than near bits. */
LINE_READ_INLINE bool
line_look(struct line_looks *looks, uint32_t n, bool is_far)
{
    struct line_look_steps steps;
    for (; n % LANES != 0; n++) {
        line_look_again(looks, n - 1);
    }
    line_look_match(looks, &steps, n, is_far);
    line_look_place(looks, &steps, n);
    uint64_t flags = line_look_take(looks, &steps, n, false);
    if ((flags & LINE_LOOK_SINGLE) != 0) {
        line_look_retake(looks, &steps, n);
    }
    return (flags & LINE_LOOK_WIDE) != 0;
}

/* The code in a column (0..15) of values that are near; field is that of
 * column 0 in the record's shape. */
LINE_READ_INLINE uint64_t
line_look_near(
    const struct shapes_field *field, uint64_t bits, unsigned column)
{
#if LINE_READ_AVX2
    uint16_t start_width;
    memcpy(&start_width, &field[SHAPES_N * column], sizeof start_width);
    return __builtin_ia32_bextr_u64(bits, start_width);
#else
    struct shapes_field it = field[SHAPES_N * column];
    return line_match_low(bits >> it.start % 64, it.width);
#endif
}

/* The code in a column (0..15), of a record of this shape and any length whose
 * payload begins at bit at. */
LINE_READ_INLINE uint64_t
line_look_far(const struct line *line, const struct line_form *form,
    unsigned shape, unsigned at, unsigned column)
{
    struct shapes_field field = form->shapes->field[column][shape];
    at += form->extra_bits + field.start;
    return line_match_low(line_match_bits(line, at), field.width);
}

LINE_TARGET_END

#endif
#endif

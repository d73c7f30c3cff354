/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_SHAPES_H
#define ENGINE_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of 16 shapes. A shape gives each column of a record a width in bits; a
 * record is stored under the cheapest shape that is wide enough in every
 * column. Where nearly all records have the same widths, one shape will do: a
 * single set has it 16 times, and nobody needs to know which one a record is
 * under (line.h). Sets are immutable once made. Pure, no locks. */

enum {
    SHAPES_N = 16,
    SHAPES_COLUMNS_MAX = 16,
    SHAPES_WIDTH_MAX = 64,  /* of one column */
    SHAPES_BITS_MAX = 240,  /* of a record, extra bits of its id included */
    SHAPES_SAMPLE_MAX = 256 /* different needs a sample remembers */
};

/* The widths that a record needs, one byte a column (0..64), column i in byte
 * i % 8 of packed[i / 8]. */
struct shapes_need {
    uint64_t packed[2];
};

struct shapes_field {
    uint8_t start; /* first bit in the record's values */
    uint8_t width; /* 0..64 */
};

struct shapes {
    struct shapes_field field[SHAPES_COLUMNS_MAX][SHAPES_N];
    struct shapes_need width[SHAPES_N]; /* the same widths, for comparing */
    uint8_t total[SHAPES_N];            /* sum of widths, ascending */
    uint16_t columns; /* bit i: some shape has room for column i */
    bool is_single;   /* they are all the same, and meant to be */
};

/* Bits of a code: 0 for 0, 64 for codes from 2^63 on. */
static inline unsigned
shapes_bits(uint64_t code)
{
    return code == 0 ? 0 : 64 - (unsigned)__builtin_clzll(code);
}

/* The need of a record; columns is the mask of slots to look at. */
static inline struct shapes_need
shapes_need_of(const uint64_t code[SHAPES_COLUMNS_MAX], uint32_t columns)
{
    struct shapes_need need = {{0, 0}};
    for (; columns != 0; columns &= columns - 1) {
        unsigned i = (unsigned)__builtin_ctz(columns);
        need.packed[i / 8] |= (uint64_t)shapes_bits(code[i]) << (i % 8 * 8);
    }
    return need;
}

/* The same for a whole record. */
static inline struct shapes_need
shapes_need_all(const uint64_t code[SHAPES_COLUMNS_MAX])
{
    struct shapes_need need = {{0, 0}};
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        /* nearly always the same few are not 0: the jump is foretold */
        if (__builtin_expect(code[i] != 0, 0)) {
            need.packed[i / 8] |= (uint64_t)shapes_bits(code[i])
                << (i % 8 * 8);
        }
    }
    return need;
}

/* The bits of a need, all columns together. */
static inline unsigned
shapes_need_sum(const struct shapes_need *need)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        sum += (unsigned)(need->packed[i / 8] >> (i % 8 * 8) & 0xff);
    }
    return sum;
}

/* The widths of both, whichever is more in each column: with their high bits
 * set no byte borrows, and a byte's high bit then says which is the larger. */
static inline struct shapes_need
shapes_need_join(struct shapes_need a, struct shapes_need b)
{
    const uint64_t high = UINT64_C(0x8080808080808080);
    for (int i = 0; i < 2; i++) {
        uint64_t more = ((a.packed[i] | high) - b.packed[i]) & high;
        uint64_t mask = more | (more - (more >> 7));
        a.packed[i] = (a.packed[i] & mask) | (b.packed[i] & ~mask);
    }
    return a;
}

/* True where need is within widths in every column. Bytes are below 128, so
 * no byte of the difference borrows from the next. */
static inline bool
shapes_covers(const struct shapes_need *width, const struct shapes_need *need)
{
    const uint64_t high = UINT64_C(0x8080808080808080);
    uint64_t low = (width->packed[0] | high) - need->packed[0];
    uint64_t upper = (width->packed[1] | high) - need->packed[1];
    return (low & upper & high) == high;
}

/* The cheapest shape for need, or -1 where none is wide enough. */
static inline int
shapes_fit(const struct shapes *shapes, const struct shapes_need *need)
{
    for (int i = 0; i < SHAPES_N; i++) {
        if (shapes_covers(&shapes->width[i], need)) {
            return i;
        }
    }
    return -1;
}

/* Needs seen, with how often. About 6 KiB; the caller's. */
struct shapes_sample {
    uint32_t n;                /* different needs kept */
    struct shapes_need widest; /* per column, over everything added */
    uint64_t others;           /* how many found no place of their own */
    struct shapes_need need[SHAPES_SAMPLE_MAX];
    uint32_t weight[SHAPES_SAMPLE_MAX];
    uint16_t place[2 * SHAPES_SAMPLE_MAX]; /* hash: 1 + index, 0: free */
};

void shapes_sample_init(struct shapes_sample *sample);

/* Adds one need, in about 10 ns. The first different needs are counted as they
 * are, later ones with odd widths rounded up, and when places for these are
 * used up too, a random choice of the others stands for all of them: so a
 * sample may be given every record of a table. `widest` is always exact. */
void shapes_sample_add(
    struct shapes_sample *sample, const struct shapes_need *need);

/* Makes *out from the widths columns usually have (hint_bits[i] for each i in
 * the mask): shapes from narrow to wide around them. bits_max (<= 240) bounds
 * each total. */
void shapes_from_hints(struct shapes *out, const uint8_t *hint_bits,
    uint32_t columns, unsigned bits_max);

/* Makes *out the best 16 shapes found for the sample: the widest of them covers
 * all that was added with a little to spare (as far as bits_max allows), and
 * some leave room for columns of the mask that are still at their default in
 * many records, so that their first numbers find a cheap shape. An empty
 * sample: as from hints of 8. Source of the method: shapes.c. Takes about half
 * a millisecond for a full sample, less for a smaller one. */
void shapes_train(struct shapes *out, const struct shapes_sample *sample,
    uint32_t columns, unsigned bits_max);

/* Makes *out the best single set found for the sample: its widths are those of
 * one of the needs that were added, or `widest`, as far as bits_max allows.
 * Those that do not fit cost bits_max, so they are few, if any. Takes less than
 * shapes_train. */
void shapes_train_single(struct shapes *out,
    const struct shapes_sample *sample, uint32_t columns, unsigned bits_max);

/* Value bits that the sample's records take under the set, those that fit no
 * shape counted as bits_max: the sum over the sample. */
uint64_t shapes_cost(const struct shapes *shapes,
    const struct shapes_sample *sample, unsigned bits_max);

/* Value bits that they would take if each had a shape of its own. */
uint64_t shapes_cost_least(const struct shapes_sample *sample);

/* How many of the sample's records each shape would hold, times a constant;
 * those that fit none are in no weight. */
void shapes_weigh(const struct shapes *shapes,
    const struct shapes_sample *sample, uint64_t weight[SHAPES_N]);

/* Asserts the invariants; for tests. */
void shapes_verify(const struct shapes *shapes);

#endif

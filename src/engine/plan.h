/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

#include <stddef.h>
#include <stdint.h>

/* Cuts a set of rows into the ranges that cost least. Pure. */

enum { PLAN_MAX = 64 };

struct plan_range {
    uint64_t base;
    unsigned width; /* base + 0 .. 2^width - 1 */
    uint32_t n;     /* rows in it now */
};

struct plan {
    unsigned n;
    struct plan_range range[PLAN_MAX];
};

/* Cuts n (>= 1) ascending rows, all within the aligned range base, width, into
 * at most PLAN_MAX aligned ranges within it, each with at most n_max rows
 * (more only if PLAN_MAX ranges do not suffice), such that the ids cost little
 * memory; ranges are widened to where n_fit rows of their density would be,
 * as far as they stay apart. The rows may be a sample: each stands for `scale`
 * rows, and every n here but the argument n counts these. */
void plan_ranges(struct plan *plan, const uint64_t *row, size_t n,
    uint32_t scale, uint64_t base, unsigned width, uint32_t n_max,
    uint32_t n_fit);

/* Asserts that the ranges are aligned, ascend, do not overlap and lie within
 * the range base, width. plan_ranges has seen to it. */
void plan_verify(const struct plan *plan, uint64_t base, unsigned width);

/* The widest range for n_fit rows at the density of n rows in 2^width. */
unsigned plan_width(uint64_t n, unsigned width, uint32_t n_fit);

/* About what the ids of n rows in a range of 2^width cost, with the table's
 * own overhead, in bits. */
uint64_t plan_bits(uint64_t n, unsigned width);

/* Sorts n numbers, with room for as many in spare. */
void plan_sort(uint64_t *row, uint64_t *spare, size_t n);

#endif

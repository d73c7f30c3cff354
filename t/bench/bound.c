/* SPDX-License-Identifier: BSD-3-Clause */

/* The information in ids and numbers. Entropies are empirical, over records:
 * numbers below EXACT are counted one by one, larger ones by their length,
 * and count as evenly distributed over that length. */

#include "bench/bound.h"

#include "base/assert.h"
#include "bench/fail.h"

#include <math.h>
#include <stdlib.h>

enum { EXACT_BITS = 12, EXACT = 1 << EXACT_BITS, LENGTHS = 65 };

struct histogram {
    uint64_t exact[EXACT];
    uint64_t length[LENGTHS];
};

static unsigned
length_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

/* What one outcome of this share adds to an entropy. */
static double
term(double share)
{
    return share > 0.0 ? -share * log2(share) : 0.0;
}

static double
entropy(const struct histogram *histogram, double n)
{
    double bits = 0.0;
    for (size_t i = 0; i < EXACT; i++) {
        bits += term((double)histogram->exact[i] / n);
    }
    for (size_t i = EXACT_BITS + 1; i < LENGTHS; i++) {
        double share = (double)histogram->length[i] / n;
        bits += term(share) + share * (double)(i - 1);
    }
    return bits;
}

/* Counts the numbers of a record; returns the sum of their lengths. */
static unsigned
count(struct histogram *histogram, const uint64_t *value, unsigned columns)
{
    unsigned width = 0;
    for (unsigned i = 0; i < columns; i++) {
        unsigned length = length_of(value[i]);
        if (value[i] < EXACT) {
            histogram[i].exact[value[i]]++;
        } else {
            histogram[i].length[length]++;
        }
        width += length;
    }
    return width;
}

struct bound
bound_of(const struct posts *posts)
{
    struct histogram *histogram = calloc(posts->columns, sizeof(histogram[0]));
    if (histogram == NULL) {
        fail("out of memory for the information bound");
    }
    uint64_t value[POSTS_COLUMNS_MAX];
    uint64_t step = posts->n / BOUND_SAMPLE + 1;
    uint64_t seen = 0;
    uint64_t records = 0;
    uint64_t width = 0;
    for (uint64_t post = 0; post < posts->n; post += step) {
        seen++;
        if (posts_values(posts, post, value)) {
            records++;
            width += count(histogram, value, posts->columns);
        }
    }
    ASSERT(records > 0);
    double n = (double)records;
    struct bound bound = {.records = n / (double)seen * (double)posts->n,
        .width_bits = (double)width / n};
    double share = bound.records / posts_places(posts);
    /* log1p: the share may be below the precision of 1 - share */
    bound.id_bits = -log2(share);
    if (share < 1.0) {
        bound.id_bits -= (1.0 - share) / share * log1p(-share) / log(2.0);
    }
    for (unsigned i = 0; i < posts->columns; i++) {
        bound.value_bits += entropy(&histogram[i], n);
    }
    free(histogram);
    return bound;
}

double
bound_bytes(const struct bound *bound)
{
    return (bound->id_bits + bound->value_bits) / 8.0;
}

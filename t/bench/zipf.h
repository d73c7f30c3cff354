/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_ZIPF_H
#define BENCH_ZIPF_H

#include "lib/dist.h"

#include <stdint.h>

/* Ranks by Zipf's law: rank r of 0..n-1 is drawn in proportion to
 * (r + 1)^-exponent. Immutable once made; any thread, with its own rng. */
struct zipf {
    uint64_t n;
    double exponent;
    double top, bottom; /* of the area that is drawn from */
};

/* n >= 1, exponent >= 0 (0: all alike). */
void zipf_init(struct zipf *zipf, uint64_t n, double exponent);

uint64_t zipf_draw(const struct zipf *zipf, struct dist_rng *rng);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */

/* Draws without a table, by rejection-inversion (Hoermann and Derflinger,
 * "Rejection-inversion to generate variates from monotone discrete
 * distributions", 1996): under the curve x^-s, which is steeper than the steps
 * of the law, each k has the area from k - 1/2 to k + 1/2, which is no smaller
 * than k^-s. A point of the whole area, inverted, falls on some k, and is kept
 * where it lies in the last k^-s of k's area; the others are drawn again. The
 * area of 1 is cut to exactly 1, so it is always kept. Few are rejected,
 * whatever n and s are. */

#include "bench/zipf.h"

#include "base/assert.h"

#include <math.h>

/* Below this, x^(1-s) - 1 over 1 - s is ln x to within rounding. */
#define NEAR_ONE 1e-9

/* The area under x^-s from 1 to x. */
static double
area(const struct zipf *zipf, double x)
{
    double power = 1.0 - zipf->exponent;
    return fabs(power) < NEAR_ONE ? log(x) : expm1(power * log(x)) / power;
}

/* The x up to which the area is that large. */
static double
inverse(const struct zipf *zipf, double size)
{
    double power = 1.0 - zipf->exponent;
    return fabs(power) < NEAR_ONE ? exp(size)
                                  : exp(log1p(power * size) / power);
}

void
zipf_init(struct zipf *zipf, uint64_t n, double exponent)
{
    ASSERT(n >= 1 && exponent >= 0.0);
    *zipf = (struct zipf){.n = n, .exponent = exponent};
    zipf->bottom = area(zipf, 1.5) - 1.0;
    zipf->top = area(zipf, (double)n + 0.5);
}

uint64_t
zipf_draw(const struct zipf *zipf, struct dist_rng *rng)
{
    double n = (double)zipf->n;
    for (;;) {
        double point =
            zipf->bottom + dist_rng_unit(rng) * (zipf->top - zipf->bottom);
        double k = floor(inverse(zipf, point) + 0.5);
        k = k < 1.0 ? 1.0 : k > n ? n : k;
        if (point >= area(zipf, k + 0.5) - pow(k, -zipf->exponent)) {
            return (uint64_t)k - 1;
        }
    }
}

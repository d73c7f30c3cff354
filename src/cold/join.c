/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins the two halves of a node. Eight numbers at a time where there is an
 * instruction that spreads numbers over the places a mask names (VPEXPANDQ);
 * else one at a time, without a branch on the bit: it would be guessed wrong
 * half of the time. Loads are masked, so nothing is read behind either half. */
#include "cold/join.h"

#include "base/assert.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

void
join_by_plane_portable(const uint8_t *in, size_t at, size_t n,
    const uint64_t *from, size_t zeros, uint64_t *to)
{
    const uint64_t *zero = from;
    const uint64_t *one = from + zeros;

    for (size_t i = 0; i < n; i += 64, to += 64) {
        uint64_t word = bits_peek(in, at + i);
        unsigned left = n - i < 64 ? (unsigned)(n - i) : 64;

        for (unsigned b = 0; b < left; b++) {
            size_t is_one = word >> b & 1;

            /* zeros end where ones begin, so this does not get below 0 */
            to[b] = zero[(size_t)(one - zero) & -is_one];
            one += is_one;
            zero += is_one ^ 1;
        }
    }
}

#if defined(__x86_64__)
/* Goes on at bit i, with so many zeros and ones before it. */
static void
join_rest(const uint8_t *in, size_t at, size_t n, size_t i,
    const uint64_t *zero, const uint64_t *one, uint64_t *to)
{
    for (; i < n; i++) {
        bool is_one = (bits_peek(in, at + i) & 1) != 0;

        to[i] = is_one ? *one : *zero;
        one += is_one;
        zero += !is_one;
    }
}

__attribute__((target("avx512f,avx,popcnt"))) static void
join_avx512(const uint8_t *in, size_t at, size_t n, const uint64_t *from,
    size_t zeros, uint64_t *to)
{
    enum { LANES = 8, ALL = 0xff };
    const uint64_t *zero = from;
    const uint64_t *one = from + zeros;
    size_t i = 0;

    while (i + LANES <= n) {
        uint64_t word = bits_peek(in, at + i);
        size_t end = n - i < 64 ? i + (n - i) / LANES * LANES : i + 64;

        for (; i < end; i += LANES, word >>= LANES) {
            unsigned ones = (unsigned)word & ALL;
            unsigned n_ones = (unsigned)__builtin_popcount(ones);
            __m512i out =
                _mm512_maskz_loadu_epi64((__mmask8)((1U << n_ones) - 1), one);
            __m512i other =
                _mm512_maskz_loadu_epi64((__mmask8)(ALL >> n_ones), zero);

            out = _mm512_maskz_expand_epi64((__mmask8)ones, out);
            out = _mm512_mask_expand_epi64(out, (__mmask8)~ones, other);
            _mm512_storeu_si512(to + i, out);
            one += n_ones;
            zero += LANES - n_ones;
        }
    }
    /* gcc 12 leaves it out before a call in tail position; without it SSE code
     * that comes later, the checksum for one, takes three times as long */
    _mm256_zeroupper();
    join_rest(in, at, n, i, zero, one, to);
}
#endif

void
join_by_plane(const uint8_t *in, size_t at, size_t n, const uint64_t *from,
    size_t zeros, uint64_t *to)
{
    ASSERT(zeros <= n);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        join_avx512(in, at, n, from, zeros, to);
        return;
    }
#endif
    join_by_plane_portable(in, at, n, from, zeros, to);
}

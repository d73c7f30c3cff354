/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_TOTAL_H
#define ENGINE_LINE_TOTAL_H

#include "engine/lanes.h"
#include "engine/line.h"
#include "engine/line_bits.h"
#include "engine/line_match.h"
#include "engine/line_target.h"

#include <string.h>

/* The other thing that line_read.h needs of an instruction set: sums over
 * shapes. */

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* line_match_total: the sum of form->total over the shapes of the first end
 * (0..31) records, where shapes begin behind n (0..23) tags. */

#if LINE_READ_AVX512 || LINE_READ_AVX2

/* As line_bits_total_ssse3, with the even places in the lower half; four
 * numbers that are to be added up. */
LINE_READ_INLINE __m256i
line_match_sums(const struct line *line, const struct line_form *form,
    uint64_t n, uint64_t end)
{
    const __m256i place =
        _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
            30, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    /* Bytes 2 + 2n to 17 + 2n, at most 63. */
    const char *from = (const char *)line + 2 + 2 * n;
    __m256i shapes = _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)from));
    __m256i total = _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)form->total));
    shapes = _mm256_srlv_epi64(shapes, _mm256_setr_epi64x(0, 0, 4, 4));
    shapes = _mm256_and_si256(shapes, _mm256_set1_epi8(15));
    total = _mm256_and_si256(_mm256_shuffle_epi8(total, shapes),
        _mm256_cmpgt_epi8(_mm256_set1_epi8((char)end), place));
    return _mm256_sad_epu8(total, _mm256_setzero_si256());
}

LINE_READ_INLINE unsigned
line_match_total(const struct line *line, const struct line_form *form,
    unsigned n, unsigned end)
{
    __m256i sums = line_match_sums(line, form, n, end);
    __m128i sum = _mm_add_epi64(
        _mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    return (unsigned)_mm_cvtsi128_si32(sum);
}

#elif LINE_READ_NEON

LINE_READ_INLINE unsigned
line_match_total(const struct line *line, const struct line_form *form,
    unsigned n, unsigned end)
{
    static const uint8_t place[2][16] = {
        {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30},
        {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31}};
    uint8x16_t total = vld1q_u8(form->total);
    uint8x16_t limit = vdupq_n_u8((uint8_t)end);
    uint8x16_t shapes;
    /* Bytes 2 + 2n to 17 + 2n, at most 63. */
    memcpy(&shapes, (const char *)line + 2 + 2 * n, sizeof shapes);
    uint8x16_t even = vqtbl1q_u8(total, vandq_u8(shapes, vdupq_n_u8(15)));
    uint8x16_t odd = vqtbl1q_u8(total, vshrq_n_u8(shapes, 4));
    even = vandq_u8(even, vcltq_u8(vld1q_u8(place[0]), limit));
    odd = vandq_u8(odd, vcltq_u8(vld1q_u8(place[1]), limit));
    return vaddvq_u16(vaddq_u16(vpaddlq_u8(even), vpaddlq_u8(odd)));
}

#else

LINE_READ_INLINE unsigned
line_match_total(const struct line *line, const struct line_form *form,
    unsigned n, unsigned end)
{
    unsigned at = LINE_MASK_BITS + LINE_TAG_BITS * n;
    uint64_t low = line_match_bits(line, at);
    uint64_t high = line_match_bits(line, at + 64);
    return line_bits_total(form->total, low, high, end);
}

#endif

/* line_match_totals: the same for LANES lines. */

#if LINE_READ_AVX512 || LINE_READ_AVX2

LINE_READ_INLINE lanes
line_match_totals(const struct line *const *line,
    const struct line_form *const *form, const uint64_t *n,
    const uint64_t *end)
{
    __m256i a = line_match_sums(line[0], form[0], n[0], end[0]);
    __m256i b = line_match_sums(line[1], form[1], n[1], end[1]);
    __m256i c = line_match_sums(line[2], form[2], n[2], end[2]);
    __m256i d = line_match_sums(line[3], form[3], n[3], end[3]);
    /* numbers of 64 bits become 32 and 16, then pairs are added */
    __m256i all =
        _mm256_packs_epi32(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    all = _mm256_madd_epi16(all, _mm256_set1_epi16(1));
    __m128i sum = _mm_add_epi32(
        _mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    return (lanes)_mm256_cvtepu32_epi64(sum);
}

#else

LINE_READ_INLINE lanes
line_match_totals(const struct line *const *line,
    const struct line_form *const *form, const uint64_t *n,
    const uint64_t *end)
{
    unsigned a =
        line_match_total(line[0], form[0], (unsigned)n[0], (unsigned)end[0]);
    unsigned b =
        line_match_total(line[1], form[1], (unsigned)n[1], (unsigned)end[1]);
    return (lanes){a, b};
}

#endif

LINE_TARGET_END

#endif
#endif

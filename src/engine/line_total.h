/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_TOTAL_H
#define ENGINE_LINE_TOTAL_H

#include "engine/line.h"
#include "engine/line_bits.h"
#include "engine/line_match.h"
#include "engine/line_target.h"

#include <string.h>

/* The other thing that line_read.h needs of an instruction set: sums over
 * shapes. */

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* line_match_total: the sum of form->total over the shapes of the records from
 * 0 to index (0..22), where shapes begin behind n (0..23) tags. */

#if LINE_READ_AVX512 || LINE_READ_AVX2

/* As line_bits_total_ssse3, with the even places in the lower half. */
LINE_READ_INLINE unsigned
line_match_total(const struct line *line, const struct line_form *form,
    unsigned n, unsigned index)
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
    __m256i end = _mm256_broadcastb_epi8(_mm_cvtsi32_si128((int)index + 1));
    total = _mm256_and_si256(
        _mm256_shuffle_epi8(total, shapes), _mm256_cmpgt_epi8(end, place));
    __m256i sums = _mm256_sad_epu8(total, _mm256_setzero_si256());
    __m128i sum = _mm_add_epi64(
        _mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    return (unsigned)_mm_cvtsi128_si32(sum);
}

#elif LINE_READ_NEON

LINE_READ_INLINE unsigned
line_match_total(const struct line *line, const struct line_form *form,
    unsigned n, unsigned index)
{
    static const uint8_t place[2][16] = {
        {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30},
        {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31}};
    uint8x16_t total = vld1q_u8(form->total);
    uint8x16_t end = vdupq_n_u8((uint8_t)(index + 1));
    uint8x16_t shapes;
    /* Bytes 2 + 2n to 17 + 2n, at most 63. */
    memcpy(&shapes, (const char *)line + 2 + 2 * n, sizeof shapes);
    uint8x16_t even = vqtbl1q_u8(total, vandq_u8(shapes, vdupq_n_u8(15)));
    uint8x16_t odd = vqtbl1q_u8(total, vshrq_n_u8(shapes, 4));
    even = vandq_u8(even, vcltq_u8(vld1q_u8(place[0]), end));
    odd = vandq_u8(odd, vcltq_u8(vld1q_u8(place[1]), end));
    return vaddvq_u16(vaddq_u16(vpaddlq_u8(even), vpaddlq_u8(odd)));
}

#else

LINE_READ_INLINE unsigned
line_match_total(const struct line *line, const struct line_form *form,
    unsigned n, unsigned index)
{
    unsigned at = LINE_MASK_BITS + LINE_TAG_BITS * n;
    uint64_t low = line_match_bits(line, at);
    uint64_t high = line_match_bits(line, at + 64);
    return line_bits_total(form->total, low, high, index + 1);
}

#endif

LINE_TARGET_END

#endif
#endif

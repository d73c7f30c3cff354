/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_MATCH_H
#define ENGINE_LINE_MATCH_H

#include "engine/line.h"
#include "engine/line_bits.h"
#include "engine/line_target.h"

#include <string.h>

/* What line_read.h needs of an instruction set (line_target.h): a look at all
 * tags at once, and the sum of the payloads up to a record. */

#if !LINE_READ_HAVE || LINE_READ_PORTABLE
/* no vectors */
#elif LINE_READ_NEON
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

#define LINE_READ_INLINE static inline __attribute__((always_inline))

#if LINE_READ_PORTABLE
#define LINE_READ_ORDER memory_order_acquire /* why: line_read.h */
#else
#define LINE_READ_ORDER memory_order_relaxed /* why: line_read.h */
#endif

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

LINE_READ_INLINE uint64_t
line_match_word(const struct line *line, unsigned i)
{
    return atomic_load_explicit(&line->word[i % LINE_WORDS], LINE_READ_ORDER);
}

/* 64 bits from bit at (modulo 512) on. */
LINE_READ_INLINE uint64_t
line_match_bits(const struct line *line, unsigned at)
{
    return line_bits_join(line_match_word(line, at / 64),
        line_match_word(line, at / 64 + 1), at % 64);
}

/* The low width (0..64) bits. */
LINE_READ_INLINE uint64_t
line_match_low(uint64_t bits, unsigned width)
{
#if LINE_READ_AVX512 || LINE_READ_AVX2
    return _bzhi_u64(bits, width);
#else
    return bits & line_bits_mask(width);
#endif
}

/* line_match_tags: bit i + 1 is set for each tag i (0..22) that is equal, and
 * others may be. */

#if LINE_READ_AVX512

LINE_READ_INLINE uint32_t
line_match_tags(const struct line *line, uint16_t tag)
{
    return _mm512_cmpeq_epi16_mask(
        _mm512_loadu_si512(line), _mm512_set1_epi16((short)tag));
}

#elif LINE_READ_AVX2 || LINE_READ_SSE2

LINE_READ_INLINE uint32_t
line_match_tags(const struct line *line, uint16_t tag)
{
    const __m128i *part = (const __m128i *)(const void *)line;
    __m128i wanted = _mm_set1_epi16((short)tag);
    __m128i a = _mm_cmpeq_epi16(_mm_loadu_si128(part), wanted);
    __m128i b = _mm_cmpeq_epi16(_mm_loadu_si128(part + 1), wanted);
    __m128i c = _mm_cmpeq_epi16(_mm_loadu_si128(part + 2), wanted);
    unsigned low = (unsigned)_mm_movemask_epi8(_mm_packs_epi16(a, b));
    unsigned high = (unsigned)_mm_movemask_epi8(_mm_packs_epi16(c, c));
    return low | high << 16;
}

#elif LINE_READ_NEON

/* Eight lanes as eight bits. */
LINE_READ_INLINE uint32_t
line_match_lanes(const struct line *line, size_t i, uint16x8_t tag)
{
    static const uint16_t bit[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint16x8_t part;
    memcpy(&part, (const unsigned char *)line + i * sizeof part, sizeof part);
    return vaddvq_u16(vandq_u16(vceqq_u16(part, tag), vld1q_u16(bit)));
}

LINE_READ_INLINE uint32_t
line_match_tags(const struct line *line, uint16_t tag)
{
    uint16x8_t wanted = vdupq_n_u16(tag);
    return line_match_lanes(line, 0, wanted) |
        line_match_lanes(line, 1, wanted) << 8 |
        line_match_lanes(line, 2, wanted) << 16;
}

#else

LINE_READ_INLINE uint32_t
line_match_tags(const struct line *line, uint16_t tag)
{
    uint32_t match = 0;
    for (unsigned i = 0; i < 6; i++) {
        uint64_t word = line_match_word(line, i);
        match |= (uint32_t)line_bits_lanes(word, tag) << 4 * i;
    }
    return match;
}

#endif

/* line_match_total: the sum of form->total over the shapes of the records from
 * 0 to index (0..22), where shapes begin behind n (0..23) tags. */

#if LINE_READ_AVX512 || LINE_READ_AVX2

LINE_READ_INLINE unsigned
line_match_total(const struct line *line, const struct line_form *form,
    unsigned n, unsigned index)
{
    /* Bytes 2 + 2n to 17 + 2n, at most 63. */
    const char *from = (const char *)line + 2 + 2 * n;
    __m128i shapes = _mm_loadu_si128((const __m128i *)(const void *)from);
    return line_bits_total_ssse3(form->total, shapes, index + 1);
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

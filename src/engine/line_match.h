/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_MATCH_H
#define ENGINE_LINE_MATCH_H

#include "engine/line.h"
#include "engine/line_bits.h"
#include "engine/line_target.h"

#include <string.h>

/* What line_read.h needs of an instruction set: bits, and all tags at once. */

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

/* The 8 bytes from byte (0..56) on. */
LINE_READ_INLINE uint64_t
line_match_bytes(const struct line *line, unsigned byte)
{
#if LINE_READ_PORTABLE
    return line_match_bits(line, 8 * byte);
#else
    uint64_t bits;
    memcpy(&bits, (const char *)line + byte, sizeof bits);
    return bits;
#endif
}

/* The one byte (0..63). */
LINE_READ_INLINE uint8_t
line_match_byte(const struct line *line, unsigned byte)
{
#if LINE_READ_PORTABLE
    return (uint8_t)(line_match_word(line, byte / 8) >> byte % 8 * 8);
#else
    uint8_t bits;
    memcpy(&bits, (const char *)line + byte, sizeof bits);
    return bits;
#endif
}

/* The counts of the line: n in the low 5 bits, far in the 3 above. */
LINE_READ_INLINE uint32_t
line_match_counts(const struct line *line)
{
    return line_match_byte(line, LINE_BYTES - 1);
}

/* Bits from bit at (modulo 512) on: the first 57 or more, and at least those
 * before bit 504; what is behind the line's end is 0. */
LINE_READ_INLINE uint64_t
line_match_near(const struct line *line, unsigned at)
{
    unsigned byte = at % 512 / 8;
    byte = byte < LINE_BYTES - 8 ? byte : LINE_BYTES - 8;
    return line_match_bytes(line, byte) >> ((at - 8 * byte) & 63);
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

#elif LINE_READ_AVX2

LINE_READ_INLINE uint32_t
line_match_tags(const struct line *line, uint16_t tag)
{
    const __m256i *part = (const __m256i *)(const void *)line;
    __m256i wanted = _mm256_set1_epi16((short)tag);
    __m256i a = _mm256_cmpeq_epi16(_mm256_loadu_si256(part), wanted);
    __m256i b = _mm256_cmpeq_epi16(_mm256_loadu_si256(part + 1), wanted);
    /* packs works in halves: put them in order */
    __m256i all = _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8);
    return (uint32_t)_mm256_movemask_epi8(all);
}

#elif LINE_READ_SSE2

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

LINE_TARGET_END

#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_READ_H
#define ENGINE_LINE_READ_H

#include "engine/lanes.h"
#include "engine/line.h"
#include "engine/line_bits.h"

#include <string.h>

/* A look into a line that a writer may be changing. What comes of it may be
 * garbage then, but nothing outside the line and the form is read, and nothing
 * is undefined but the race itself. The caller reads a sequence counter
 * (acquire), looks, calls line_read_fence() and reads the counter again
 * (relaxed): where it is even and the same, the result holds.
 *
 * Memory order (Boehm, Can seqlocks get along with programming language
 * memory models?, 2012): a writer makes the counter odd (relaxed), stores words
 * (release: line_store) and makes it even (release). The portable variant loads
 * words with acquire, so that what has seen a word of a change sees the odd
 * counter too; it needs no fence and is plain C11. The others load words
 * relaxed or, which C11 has no word for, as vectors, and the fence keeps the
 * second look at the counter behind them. On x86-64 none of this costs an
 * instruction. */

#if !LINE_READ_HAVE || LINE_READ_PORTABLE
/* no vectors */
#elif LINE_READ_NEON
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

#define LINE_READ_INLINE static inline __attribute__((always_inline))

#if LINE_READ_PORTABLE
#define LINE_READ_ORDER memory_order_acquire /* why: above */
#else
#define LINE_READ_ORDER memory_order_relaxed /* why: above */
#endif

struct line_hit {
    uint16_t mask; /* the line's overflow mask, also where nothing is found */
    uint8_t index; /* below LINE_RECORDS_MAX */
    uint8_t shape; /* below SHAPES_N */
    uint16_t at;   /* first bit of its values, behind the extra bits: 0..511 */
    uint64_t bits; /* what is there: the first 57 - extra_bits bits, or all */
};

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* What an instruction set is asked for: bits, and all tags at once. */

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
#if LINE_READ_AVX2
    return _bzhi_u64(bits, width);
#else
    return bits & line_bits_mask(width);
#endif
}

/* line_match_tags: bit i + 1 is set for each tag i (0..22) that is equal, and
 * others may be. */

#if LINE_READ_AVX2

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

/* And sums over shapes. */

/* line_match_total: the sum of form->total over the shapes of the first end
 * (0..31) records, where shapes begin behind n (0..23) tags. */

#if LINE_READ_AVX2

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

#if LINE_READ_AVX2

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

LINE_READ_INLINE void
line_read_fence(void)
{
#if !LINE_READ_PORTABLE
    /* acquire: loads before it stay before what follows it. */
    atomic_thread_fence(memory_order_acquire);
#endif
}

/* Where a record whose tag matches lies in a line of n. */
LINE_READ_INLINE void
line_read_hit(const struct line *line, const struct line_form *form,
    unsigned n, unsigned index, unsigned at, uint64_t bits,
    struct line_hit *hit)
{
    unsigned shape_at = LINE_MASK_BITS + LINE_TAG_BITS * n + 4 * index;
    uint64_t shapes = line_match_word(line, shape_at / 64);
    hit->index = (uint8_t)index;
    hit->shape = (uint8_t)(shapes >> shape_at % 64 & 15);
    hit->at = (uint16_t)((at + form->extra_bits) % 512);
    hit->bits = bits >> form->extra_bits;
}

/* Looks for a record among the home or the far ones: 1 and all of *hit where
 * there is one, else 0 and hit->mask. */
LINE_READ_INLINE int
line_read_find(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, struct line_hit *hit)
{
    uint64_t counts = line_match_word(line, LINE_WORDS - 1);
    unsigned n = (unsigned)(counts >> LINE_COUNTS_SHIFT) & 31;
    unsigned far = (unsigned)(counts >> (LINE_COUNTS_SHIFT + 5));
    n = n <= LINE_RECORDS_MAX ? n : LINE_RECORDS_MAX; /* more is garbage */
    uint32_t all = (UINT32_C(2) << n) - 2;
    uint32_t homes = (UINT32_C(2) << ((n - far) & 31)) - 2;
    uint32_t match = line_match_tags(line, (uint16_t)remainder);
    match &= all & (is_far ? ~homes : homes);
    uint64_t extra = line_extra(form, remainder);
    hit->mask = (uint16_t)line_match_word(line, 0);
    for (; match != 0; match &= match - 1) {
        unsigned index = (unsigned)__builtin_ctz(match) - 1;
        unsigned at =
            LINE_PAYLOADS_END - line_match_total(line, form, n, index + 1);
        uint64_t bits = line_match_near(line, at);
        if (line_match_low(bits, form->extra_bits) != extra) {
            continue;
        }
        line_read_hit(line, form, n, index, at, bits, hit);
        if (line_may_be(form, remainder, hit->shape)) {
            return 1;
        }
    }
    return 0;
}

/* The code in a column (0..15) of what was found; any number of columns may
 * be read of one hit. */
LINE_READ_INLINE uint64_t
line_read_value(const struct line *line, const struct line_form *form,
    const struct line_hit *hit, unsigned column)
{
    struct shapes_field field = form->shapes->field[column][hit->shape];
    if (form->extra_bits + field.start + field.width <= LINE_NEAR_BITS) {
        return line_match_low(hit->bits >> field.start % 64, field.width);
    }
    return line_match_low(
        line_match_bits(line, hit->at + field.start), field.width);
}

LINE_TARGET_END

#endif
#endif

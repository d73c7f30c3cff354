/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_KEY_DIGITS_H
#define PROTO_KEY_DIGITS_H

#include "base/chunk.h"
#include "proto/key_id.h"

#include <stdbool.h>
#include <stdint.h>
#if defined(__SSE2__) && defined(__x86_64__)
#include <emmintrin.h>
#define KEY_DIGITS__SSE2 1
#else
#define KEY_DIGITS__SSE2 0
#endif

/* An id of as many digits as the one before it, as most are. How far it goes is
 * known before it is read, and so is where the next key begins: a processor
 * need not wait for the one to begin with the other. Its last 16 digits are
 * loaded at once, from before where it ends: what stands in front of it there
 * is masked. Pure; any thread. */

enum {
    KEY_DIGITS_WIDE = 16, /* bytes before an id's end that are looked at */
    KEY_DIGITS__PART = CHUNK_BYTES
};

/* 16 bytes; as numbers, the first one lowest. */
struct key_digits {
#if KEY_DIGITS__SSE2
    __m128i all;
#else
    uint64_t first, last;
#endif
};

static inline struct key_digits
key_digits__load(const char *text)
{
#if KEY_DIGITS__SSE2
    return (struct key_digits){
        _mm_loadu_si128((const __m128i *)(const void *)text)};
#else
    return (struct key_digits){
        chunk_load(text), chunk_load(text + KEY_DIGITS__PART)};
#endif
}

static inline struct key_digits
key_digits__and(struct key_digits a, struct key_digits b)
{
#if KEY_DIGITS__SSE2
    return (struct key_digits){_mm_and_si128(a.all, b.all)};
#else
    return (struct key_digits){a.first & b.first, a.last & b.last};
#endif
}

/* What is all ones where the last n of 16 bytes are, n = 0..16. */
static inline struct key_digits
key_digits_mask(unsigned n)
{
    static const uint8_t ones[2 * KEY_DIGITS_WIDE] = {0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255};
    return key_digits__load((const char *)&ones[n]);
}

/* The digits in the 16 bytes before end that the mask has, as numbers 0..9,
 * where they are digits; the others are 0. */
static inline struct key_digits
key_digits_before(const char *end, struct key_digits mask)
{
    struct key_digits it = key_digits__load(end - KEY_DIGITS_WIDE);
#if KEY_DIGITS__SSE2
    it.all = _mm_sub_epi8(it.all, _mm_set1_epi8('0'));
#else
    it.first = chunk_off_digits(it.first);
    it.last = chunk_off_digits(it.last);
#endif
    return key_digits__and(it, mask);
}

/* Nines. */
static inline struct key_digits
key_digits_nines(struct key_digits mask)
{
    return key_digits__and(key_digits__load("\11\11\11\11\11\11\11\11"
                                            "\11\11\11\11\11\11\11\11"),
        mask);
}

static inline bool
key_digits_are_same(struct key_digits a, struct key_digits b)
{
#if KEY_DIGITS__SSE2
    return _mm_movemask_epi8(_mm_cmpeq_epi8(a.all, b.all)) == UINT16_MAX;
#else
    return ((a.first ^ b.first) | (a.last ^ b.last)) == 0;
#endif
}

/* Is each a number 0..9? */
static inline bool
key_digits_are_digits(struct key_digits it)
{
#if KEY_DIGITS__SSE2
    return _mm_movemask_epi8(
               _mm_adds_epu8(it.all, _mm_set1_epi8(INT8_MAX - 9))) == 0;
#else
    return (chunk_marks(it.first) | chunk_marks(it.last)) == 0;
#endif
}

/* The number that they spell. */
static inline uint64_t
key_digits_value(struct key_digits it)
{
#if KEY_DIGITS__SSE2
    /* numbers of two digits: 256 * (10 * a + b) + a, of a + 256 * b; then of
     * four, of eight */
    __m128i factor = _mm_set1_epi16(10 * 256 + 1);
    __asm__("" : "+x"(factor)); /* else gcc shifts and adds, five times */
    __m128i pairs = _mm_srli_epi16(_mm_mullo_epi16(it.all, factor), 8);
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100));
    __m128i eights = _mm_madd_epi16(
        _mm_packs_epi32(fours, fours), _mm_set1_epi32(1 << 16 | 10000));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    return (both & UINT32_MAX) * 100000000 + (both >> 32);
#else
    return chunk_join(it.first) * 100000000 + chunk_join(it.last);
#endif
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_KEY_ID_H
#define PROTO_KEY_ID_H

#include "base/chunk.h"

#include <stdint.h>
#if defined(__SSE2__) && defined(__x86_64__)
#include <emmintrin.h>
#endif

/* The id that a key begins with, without a step a digit. Pure; any thread. */

enum { KEY_ID_DIGITS = 19 /* ids of more are read by key__parse */ };

enum { KEY_ID__HALVES = 2 * CHUNK_BYTES }; /* digits read at once */

/* How many of the first 16 bytes are '0'..'9', and where all are, the number
 * that they spell. */
static inline __attribute__((always_inline)) unsigned
key_id__sixteen(const char *text, uint64_t *value)
{
#if defined(__SSE2__) && defined(__x86_64__)
    __m128i digits =
        _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)text),
            _mm_set1_epi8('0'));
    unsigned is_digit = (unsigned)_mm_movemask_epi8(
        _mm_cmpeq_epi8(digits, _mm_min_epu8(digits, _mm_set1_epi8(9))));
    if (is_digit != UINT16_MAX) {
        return (unsigned)__builtin_ctz(~is_digit);
    }
    /* numbers of two digits, of four, of eight */
    __m128i pairs = _mm_add_epi16(
        _mm_mullo_epi16(
            _mm_and_si128(digits, _mm_set1_epi16(0xff)), _mm_set1_epi16(10)),
        _mm_srli_epi16(digits, 8));
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100));
    __m128i eights = _mm_madd_epi16(
        _mm_packs_epi32(fours, fours), _mm_set1_epi32(1 << 16 | 10000));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    *value = (both & UINT32_MAX) * 100000000 + (both >> 32);
    return KEY_ID__HALVES;
#else
    uint64_t first = chunk_off_digits(chunk_load(text));
    unsigned n = chunk_before(chunk_marks(first));
    if (n < CHUNK_BYTES) {
        return n;
    }
    uint64_t second = chunk_off_digits(chunk_load(text + CHUNK_BYTES));
    n += chunk_before(chunk_marks(second));
    *value = chunk_join(first) * 100000000 + chunk_join(second);
    return n;
#endif
}

/* Reads an id at text, of 1 to KEY_ID_DIGITS digits of which the first is
 * no 0: their number, or 0. Looks at up to 32 bytes. */
static inline __attribute__((always_inline)) unsigned
key_id_read(const char *text, uint64_t *id)
{
    static const uint32_t power[CHUNK_BYTES] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    const char *start = text;
    uint64_t value = 0;
    unsigned digits = key_id__sixteen(text, &value);
    unsigned n;
    if (digits < CHUNK_BYTES) {
        *id = chunk_value(chunk_last(chunk_load(text), digits));
        return text[0] == '0' ? 0 : digits;
    }
    if (digits == KEY_ID__HALVES) {
        if (text[digits] == '.') { /* as many ids have */
            *id = value;
            return text[0] == '0' ? 0 : digits;
        }
        n = chunk_count_digits(chunk_load(text + digits));
        text += KEY_ID__HALVES;
        digits += n;
    } else {
        value = chunk_value(chunk_load(text));
        text += CHUNK_BYTES;
        n = digits - CHUNK_BYTES;
    }
    uint64_t last = chunk_last(chunk_load(text), n);
    *id = value * power[n % CHUNK_BYTES] + chunk_value(last);
    return digits > KEY_ID_DIGITS || *start == '0' ? 0 : digits;
}

#endif

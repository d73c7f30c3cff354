/* SPDX-License-Identifier: BSD-3-Clause */
/* Decimal numbers in byte spans.
 *
 * Every key of a counter passes num_parse_id and every answer num_format_u64,
 * so both avoid a multiplication or division a digit. Parsing takes eight
 * digits at a time in one 64-bit word (SWAR, see Lemire, "Quickly parsing
 * eight digits", 2018): neighbours are joined to pairs, pairs to fours, fours
 * to the eight. Up to 19 digits cannot overflow; longer spans take the slow
 * way, digit by digit with a check. Formatting writes two digits a step from a
 * table, or, where it may write more bytes than the number has, goes the same
 * way back for up to eight digits; a number below 1000, which most counters
 * are, is in a table as it is. Nothing is written to an out-parameter before
 * all is checked. */
#include "base/num.h"

#include "base/chunk.h"

#include <string.h>

enum { SAFE_DIGITS = 19 /* any number of so many digits fits 64 bits */ };

static const uint64_t powers_of_10[NUM_U64_DIGITS_MAX] = {
    UINT64_C(1),
    UINT64_C(10),
    UINT64_C(100),
    UINT64_C(1000),
    UINT64_C(10000),
    UINT64_C(100000),
    UINT64_C(1000000),
    UINT64_C(10000000),
    UINT64_C(100000000),
    UINT64_C(1000000000),
    UINT64_C(10000000000),
    UINT64_C(100000000000),
    UINT64_C(1000000000000),
    UINT64_C(10000000000000),
    UINT64_C(100000000000000),
    UINT64_C(1000000000000000),
    UINT64_C(10000000000000000),
    UINT64_C(100000000000000000),
    UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000),
};

static const char digit_pairs[] = "00010203040506070809"
                                  "10111213141516171819"
                                  "20212223242526272829"
                                  "30313233343536373839"
                                  "40414243444546474849"
                                  "50515253545556575859"
                                  "60616263646566676869"
                                  "70717273747576777879"
                                  "80818283848586878889"
                                  "90919293949596979899";

#define ONE(h, t, u)                                                          \
    {                                                                         \
        {h, t, u}, 3                                                          \
    }
#define TEN(h, t)                                                             \
    ONE(h, t, '0'), ONE(h, t, '1'), ONE(h, t, '2'), ONE(h, t, '3'),           \
        ONE(h, t, '4'), ONE(h, t, '5'), ONE(h, t, '6'), ONE(h, t, '7'),       \
        ONE(h, t, '8'), ONE(h, t, '9')
#define HUNDRED(h)                                                            \
    TEN(h, '0'), TEN(h, '1'), TEN(h, '2'), TEN(h, '3'), TEN(h, '4'),          \
        TEN(h, '5'), TEN(h, '6'), TEN(h, '7'), TEN(h, '8'), TEN(h, '9')
#define TWO(t, u)                                                             \
    {                                                                         \
        {t, u}, 2                                                             \
    }
#define TEN_OF_TWO(t)                                                         \
    TWO(t, '0'), TWO(t, '1'), TWO(t, '2'), TWO(t, '3'), TWO(t, '4'),          \
        TWO(t, '5'), TWO(t, '6'), TWO(t, '7'), TWO(t, '8'), TWO(t, '9')

const struct num_short num_short[NUM_SHORT_END] = {{{'0'}, 1}, {{'1'}, 1},
    {{'2'}, 1}, {{'3'}, 1}, {{'4'}, 1}, {{'5'}, 1}, {{'6'}, 1}, {{'7'}, 1},
    {{'8'}, 1}, {{'9'}, 1}, TEN_OF_TWO('1'), TEN_OF_TWO('2'), TEN_OF_TWO('3'),
    TEN_OF_TWO('4'), TEN_OF_TWO('5'), TEN_OF_TWO('6'), TEN_OF_TWO('7'),
    TEN_OF_TWO('8'), TEN_OF_TWO('9'), HUNDRED('1'), HUNDRED('2'), HUNDRED('3'),
    HUNDRED('4'), HUNDRED('5'), HUNDRED('6'), HUNDRED('7'), HUNDRED('8'),
    HUNDRED('9')};
#undef ONE
#undef TEN
#undef HUNDRED
#undef TWO
#undef TEN_OF_TWO

static inline bool
digit_value(char c, uint64_t *out)
{
    unsigned digit = (unsigned)(unsigned char)c - '0';

    *out = digit;
    return digit <= 9;
}

/* 1 to 7 digits. */
static inline bool
parse_short(const char *text, size_t len, uint64_t *out)
{
    uint64_t value = 0, digit;

    for (size_t i = 0; i < len; i++) {
        if (!digit_value(text[i], &digit)) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

/* 8 to 19 digits: whole chunks, then the last eight bytes once more with
 * those that are already counted replaced by zeros. */
static inline bool
parse_chunks(const char *text, size_t len, uint64_t *out)
{
    uint64_t value = 0, word, rest_mask;
    size_t rest;

    for (rest = len; rest >= CHUNK_BYTES;
         rest -= CHUNK_BYTES, text += CHUNK_BYTES) {
        word = chunk_load(text);
        if (!chunk_is_digits(word)) {
            return false;
        }
        value = value * powers_of_10[CHUNK_BYTES] + chunk_value(word);
    }
    if (rest > 0) {
        word = chunk_load(text + rest - CHUNK_BYTES);
        if (!chunk_is_digits(word)) {
            return false;
        }
        rest_mask = UINT64_MAX << (8 * (CHUNK_BYTES - rest));
        value = value * powers_of_10[rest] + chunk_value(word & rest_mask);
    }
    *out = value;
    return true;
}

/* 20 digits and more, some of which may be leading zeros. */
static bool
parse_long(const char *text, size_t len, uint64_t *out)
{
    uint64_t value = 0, digit;

    for (size_t i = 0; i < len; i++) {
        if (!digit_value(text[i], &digit) ||
            __builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

static inline bool
parse_u64(const char *text, size_t len, uint64_t *out)
{
    if (len < CHUNK_BYTES) {
        return len > 0 && parse_short(text, len, out);
    }
    if (len <= SAFE_DIGITS) {
        return parse_chunks(text, len, out);
    }
    return parse_long(text, len, out);
}

bool
num_parse_u64(const char *text, size_t len, uint64_t *out)
{
    return parse_u64(text, len, out);
}

bool
num_parse_id(const char *text, size_t len, uint64_t *out)
{
    if (len > 1 && text[0] == '0') {
        return false;
    }
    return parse_u64(text, len, out);
}

bool
num_parse_u32(const char *text, size_t len, uint32_t *out)
{
    uint64_t value;

    if (!parse_u64(text, len, &value) || value > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

bool
num_parse_i64(const char *text, size_t len, int64_t *out)
{
    bool negative = len > 0 && text[0] == '-';
    size_t sign = negative || (len > 0 && text[0] == '+');
    uint64_t magnitude;

    if (!parse_u64(text + sign, len - sign, &magnitude) ||
        magnitude > (uint64_t)INT64_MAX + negative) {
        return false;
    }
    /* -1 - (m - 1): 2^63 has no positive int64_t to negate. */
    *out = negative && magnitude > 0 ? -1 - (int64_t)(magnitude - 1)
                                     : (int64_t)magnitude;
    return true;
}

/* What isspace says in the C locale. */
static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool
num_parse_lenient_u64(const char *text, size_t len, uint64_t *out)
{
    while (len > 0 && is_space(text[0])) {
        text++;
        len--;
    }
    bool is_minus = len > 0 && text[0] == '-';
    if (is_minus || (len > 0 && text[0] == '+')) {
        text++;
        len--;
    }
    size_t end = 0;
    while (end < len && !is_space(text[end]) && text[end] != '\0') {
        end++;
    }
    uint64_t number;
    if (!parse_u64(text, end, &number) || (is_minus && number != 0)) {
        return false;
    }
    *out = number;
    return true;
}

/* How many digits a value >= 10 has: log10 from the number of bits (1233/4096
 * is just above log10 of 2), then one more where it reaches that power. */
static inline size_t
count_digits(uint64_t value)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(value);
    unsigned guess = bits * 1233 >> 12;

    return guess + (value >= powers_of_10[guess]);
}

size_t
num_format_u64(uint64_t value, char *out)
{
    size_t len, at;

    if (value < 10) {
        out[0] = (char)('0' + value);
        return 1;
    }
    len = count_digits(value);
    at = len;
    while (value >= 100) {
        at -= 2;
        memcpy(out + at, digit_pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        memcpy(out, digit_pairs + 2 * value, 2);
    } else {
        out[0] = (char)('0' + value);
    }
    return len;
}

size_t
num_put_u64(uint64_t value, char *out)
{
    if (value == 0 || value >= powers_of_10[CHUNK_BYTES]) {
        return num_format_u64(value, out);
    }
    uint64_t digits = chunk_digits((uint32_t)value);
    unsigned zeros = (unsigned)__builtin_ctzll(digits) / 8;

    digits |= UINT64_C(0x3030303030303030);
    chunk_store(out, digits >> 8 * zeros);
    return CHUNK_BYTES - zeros;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms of a name, each tried where it could be shorter than what there is
 * so far. */
#include "names/name_code.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

enum {
    UUID_LEN = 36,
    UUID_BYTES = 16,
    GROUP_DIGITS = 19, /* 10^19 < 2^64 */
    GROUP_BYTES = 8,
    DIGITS_HEAD = 2,
    NO_HALF = 16
};

_Static_assert(
    (int)NAME_CODE_RAW >= (int)NAME_SYMBOLS_MAX, "no symbol has that code");

/* Bytes for that many digits, up to 19: 256^b > 10^n. */
static const uint8_t digits_bytes[GROUP_DIGITS + 1] = {
    0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 7, 7, 8, 8, 8};

static unsigned
half_of(char letter)
{
    return letter >= '0' && letter <= '9' ? (unsigned)(letter - '0')
        : letter >= 'a' && letter <= 'f'  ? (unsigned)(letter - 'a') + 10
                                          : NO_HALF;
}

static char
letter_of(unsigned half)
{
    return "0123456789abcdef"[half & 15];
}

static bool
is_dash(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

/* How many letters from the beginning on are digits, and halves of bytes. */
static void
look(const char *name, size_t len, size_t *n_digits, size_t *n_halves)
{
    size_t i = 0;
    while (i < len && half_of(name[i]) < 10) {
        i++;
    }
    *n_digits = i;
    while (i < len && half_of(name[i]) != NO_HALF) {
        i++;
    }
    *n_halves = i;
}

static size_t
put_digits(const char *name, size_t len, uint8_t *out)
{
    size_t n = DIGITS_HEAD;
    out[0] = NAME_CODE_DIGITS;
    out[1] = (uint8_t)len;
    for (size_t at = 0; at < len; at += GROUP_DIGITS) {
        size_t some = len - at < GROUP_DIGITS ? len - at : GROUP_DIGITS;
        uint64_t number = 0;
        for (size_t i = 0; i < some; i++) {
            number = number * 10 + half_of(name[at + i]);
        }
        for (unsigned i = 0; i < digits_bytes[some]; i++) {
            out[n++] = (uint8_t)(number >> 8 * i);
        }
    }
    return n;
}

static size_t
put_hex(const char *name, size_t len, uint8_t *out)
{
    size_t n = 0;
    out[n++] = len % 2 == 0 ? NAME_CODE_HEX : NAME_CODE_HEX_ODD;
    for (size_t i = 0; i < len; i += 2) {
        unsigned low = i + 1 < len ? half_of(name[i + 1]) : 0;
        out[n++] = (uint8_t)(half_of(name[i]) << 4 | low);
    }
    return n;
}

/* 0: it is no UUID. */
static size_t
put_uuid(const char *name, size_t len, uint8_t *out)
{
    unsigned n = 0, halves = 0;
    if (len != UUID_LEN) {
        return 0;
    }
    out[n++] = NAME_CODE_UUID;
    for (size_t i = 0; i < len; i++) {
        unsigned half = half_of(name[i]);
        if (is_dash(i) ? name[i] != '-' : half == NO_HALF) {
            return 0;
        }
        if (!is_dash(i)) {
            halves = halves << 4 | half;
            if ((i - (i > 8) - (i > 13) - (i > 18) - (i > 23)) % 2 == 1) {
                out[n++] = (uint8_t)halves;
            }
        }
    }
    ASSERT(n == 1 + UUID_BYTES);
    return n;
}

static size_t
digits_size(size_t len)
{
    return DIGITS_HEAD + len / GROUP_DIGITS * GROUP_BYTES +
        digits_bytes[len % GROUP_DIGITS];
}

size_t
name_code_put(const struct name_symbols *symbols,
    const char name[NAME_ROOM_BYTES], size_t len,
    uint8_t out[NAME_CODE_BYTES_MAX])
{
    size_t n_digits, n_halves, n = put_uuid(name, len, out);
    ASSERT(len > 0 && len <= NAME_BYTES_MAX);
    if (n > 0) {
        return n;
    }
    look(name, len, &n_digits, &n_halves);
    size_t hex = n_halves == len ? 1 + (len + 1) / 2 : SIZE_MAX;
    size_t digits = n_digits == len ? digits_size(len) : SIZE_MAX;
    size_t best = digits < hex ? digits : hex;
    best = best < 1 + len ? best : 1 + len;
    if (symbols != NULL) {
        n = name_symbols_code(symbols, name, len, out, best - 1);
        if (n < best) {
            return n;
        }
    }
    if (best == digits) {
        n = put_digits(name, len, out);
    } else if (best == hex) {
        n = put_hex(name, len, out);
    } else {
        out[0] = NAME_CODE_RAW;
        memcpy(out + 1, name, len);
        n = 1 + len;
    }
    ASSERT(n == best);
    return n;
}

static size_t
get_digits(const uint8_t *code, size_t n, char *out)
{
    size_t len = n > 1 ? code[1] : 0, at = DIGITS_HEAD;
    if (len == 0 || len > NAME_BYTES_MAX || n != digits_size(len)) {
        return 0;
    }
    for (size_t from = 0; from < len; from += GROUP_DIGITS) {
        size_t some = len - from < GROUP_DIGITS ? len - from : GROUP_DIGITS;
        uint64_t number = 0;
        for (unsigned i = 0; i < digits_bytes[some]; i++) {
            number |= (uint64_t)code[at++] << 8 * i;
        }
        for (size_t i = some; i > 0; i--) {
            out[from + i - 1] = (char)('0' + number % 10);
            number /= 10;
        }
        if (number != 0) {
            return 0;
        }
    }
    return len;
}

static size_t
get_hex(const uint8_t *code, size_t n, char *out)
{
    bool is_odd = code[0] == NAME_CODE_HEX_ODD;
    size_t len = 2 * (n - 1) - is_odd;
    if (n < 2 || len > NAME_BYTES_MAX || (is_odd && code[n - 1] % 16 != 0)) {
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned byte = code[1 + i / 2];
        out[i] = letter_of(i % 2 == 0 ? byte >> 4 : byte);
    }
    return len;
}

static size_t
get_uuid(const uint8_t *code, size_t n, char *out)
{
    size_t half = 0;
    if (n != 1 + UUID_BYTES) {
        return 0;
    }
    for (size_t i = 0; i < UUID_LEN; i++) {
        if (is_dash(i)) {
            out[i] = '-';
        } else {
            unsigned byte = code[1 + half / 2];
            out[i] = letter_of(half % 2 == 0 ? byte >> 4 : byte);
            half++;
        }
    }
    return UUID_LEN;
}

size_t
name_code_get(const struct name_symbols *symbols, const uint8_t *code,
    size_t n, char out[NAME_ROOM_BYTES])
{
    if (n == 0 || n > NAME_CODE_BYTES_MAX) {
        return 0;
    }
    switch (code[0]) {
    case NAME_CODE_RAW:
        memcpy(out, code + 1, n - 1);
        return n - 1;
    case NAME_CODE_DIGITS:
        return get_digits(code, n, out);
    case NAME_CODE_HEX:
    case NAME_CODE_HEX_ODD:
        return get_hex(code, n, out);
    case NAME_CODE_UUID:
        return get_uuid(code, n, out);
    default:
        return symbols == NULL
            ? 0
            : name_symbols_name(symbols, code, n, out, NAME_BYTES_MAX);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and decodes base64 by groups of four characters. base64_check looks
 * at a text before anything decodes it. */
#include "base/base64.h"

#include <stdint.h>

enum {
    GROUP_CHARS = 4,
    GROUP_BYTES = 3,
    CHAR_BITS = 6,
    CHARS = 1 << CHAR_BITS
};

/* What a character stands for; CHARS where it stands for nothing. */
static unsigned
digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (unsigned)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (unsigned)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0') + 52;
    }
    if (c == '+') {
        return 62;
    }
    return c == '/' ? 63 : CHARS;
}

/* Characters of padding at the end. */
static size_t
padding_of(const char *text, size_t len)
{
    if (len == 0 || text[len - 1] != '=') {
        return 0;
    }
    return len > 1 && text[len - 2] == '=' ? 2 : 1;
}

bool
base64_check(const char *text, size_t len, size_t *decoded_len)
{
    size_t padding = padding_of(text, len);
    if (len == 0 || len % GROUP_CHARS != 0) {
        return false;
    }
    for (size_t i = 0; i < len - padding; i++) {
        if (digit_of(text[i]) == CHARS) {
            return false;
        }
    }
    /* the last character's bits behind the last byte: 2 for each padding */
    unsigned unused = (1U << (2 * padding)) - 1;
    if ((digit_of(text[len - padding - 1]) & unused) != 0) {
        return false;
    }
    *decoded_len = len / GROUP_CHARS * GROUP_BYTES - padding;
    return true;
}

size_t
base64_decode(const char *text, size_t len, char *out)
{
    size_t padding = padding_of(text, len);
    size_t n = len / GROUP_CHARS * GROUP_BYTES - padding;
    uint32_t bits = 0;
    size_t at = 0;
    for (size_t i = 0; i < len; i++) {
        bool pads = i >= len - padding;
        bits = bits << CHAR_BITS | (pads ? 0 : digit_of(text[i]));
        if (i % GROUP_CHARS != GROUP_CHARS - 1) {
            continue;
        }
        for (unsigned shift = 16; at < n; shift -= 8) {
            out[at++] = (char)(bits >> shift & UINT8_MAX);
            if (shift == 0) {
                break;
            }
        }
        bits = 0;
    }
    return n;
}

size_t
base64_encode(const char *bytes, size_t len, char *out)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (size_t at = 0; at < len; at += GROUP_BYTES) {
        uint32_t bits = 0;
        for (size_t i = at; i < at + GROUP_BYTES; i++) {
            bits = bits << 8 | (i < len ? (unsigned char)bytes[i] : 0);
        }
        for (size_t i = 0; i < GROUP_CHARS; i++) {
            size_t shift = (GROUP_CHARS - 1 - i) * CHAR_BITS;
            bool pads = at + i > len; /* i characters hold i - 1 bytes */
            out[n++] = pads ? '=' : digit[bits >> shift & (CHARS - 1)];
        }
    }
    return n;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Names as strings of ndjson. A name may have any bytes, and a string of JSON
 * has letters: a byte that is not of UTF-8 is written as the second half of a
 * pair of UTF-16 that stands alone, U+DC80 to U+DCFF, as others do who carry
 * bytes in such strings (PEP 383). */
#include "cli/rows_priv.h"

enum {
    HIGH = 0xd800, /* first halves of a pair, */
    LOW = 0xdc00,  /* second ones */
    PAIRS_END = 0xe000,
    BYTES = 0xdc80, /* bytes of no letter, from 128 on */
    HEX_DIGITS = 4
};

size_t
rows__utf8_len(const char *text, size_t len)
{
    /* The Unicode Standard, table 3-7: the first byte from and to, and what
     * the second may be; those behind it are 0x80 to 0xbf. */
    static const uint8_t forms[][5] = {{0x00, 0x7f, 1, 0, 0},
        {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
        {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f},
        {0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf},
        {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f}};
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0; len > 0 && i < sizeof forms / sizeof *forms; i++) {
        const uint8_t *form = forms[i];
        if (at[0] < form[0] || at[0] > form[1]) {
            continue;
        }
        size_t n = form[2];
        bool is_right =
            n <= len && (n == 1 || (at[1] >= form[3] && at[1] <= form[4]));
        for (size_t k = 2; is_right && k < n; k++) {
            is_right = (at[k] & 0xc0) == 0x80;
        }
        return is_right ? n : 0;
    }
    return 0;
}

/* Behind \u: four digits. */
static bool
take_hex(struct rows_span *text, uint32_t *out)
{
    *out = 0;
    if (text->len < HEX_DIGITS) {
        return false;
    }
    for (unsigned i = 0; i < HEX_DIGITS; i++) {
        char c = text->at[i];
        uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)(c - '0')
            : c >= 'a' && c <= 'f'            ? (uint32_t)(c - 'a') + 10
            : c >= 'A' && c <= 'F'            ? (uint32_t)(c - 'A') + 10
                                              : UINT32_MAX;
        if (digit == UINT32_MAX) {
            return false;
        }
        *out = *out << 4 | digit;
    }
    text->at += HEX_DIGITS;
    text->len -= HEX_DIGITS;
    return true;
}

/* The bytes of a letter; how many. */
static size_t
encode(uint32_t letter, char out[4])
{
    if (letter < 0x80) {
        out[0] = (char)letter;
        return 1;
    }
    size_t n = letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; letter >>= 6) {
        out[i] = (char)(0x80 | (letter & 0x3f));
    }
    out[0] = (char)(0xf00 >> n | letter);
    return n;
}

/* What \uXXXX says, with the other half of a pair behind it. Bytes; 0: it is
 * nothing. */
static size_t
take_letter(struct rows_span *text, char out[4])
{
    uint32_t letter, low;
    if (!take_hex(text, &letter)) {
        return 0;
    }
    if (letter >= BYTES && letter < LOW + 0x100) {
        out[0] = (char)(letter - LOW);
        return 1;
    }
    if (letter >= LOW && letter < PAIRS_END) {
        return 0;
    }
    if (letter >= HIGH && letter < LOW) {
        if (text->len < 2 || memcmp(text->at, "\\u", 2) != 0) {
            return 0;
        }
        text->at += 2;
        text->len -= 2;
        if (!take_hex(text, &low) || low < LOW || low >= PAIRS_END) {
            return 0;
        }
        letter = 0x10000 + ((letter - HIGH) << 10 | (low - LOW));
    }
    return encode(letter, out);
}

/* What stands behind a backslash; those that are white space are no name's.
 * Bytes; 0: it is nothing. */
static size_t
take_escape(struct rows_span *text, char out[4])
{
    if (text->len == 0) {
        return 0;
    }
    char c = *text->at++;
    text->len--;
    out[0] = c;
    return c == 'u'                         ? take_letter(text, out)
        : c == '"' || c == '\\' || c == '/' ? 1
                                            : 0;
}

bool
rows__unescape(struct rows_span text, char out[NAME_BYTES_MAX], size_t *len)
{
    *len = 0;
    while (text.len > 0) {
        char bytes[4] = {*text.at++};
        size_t n = 1;
        text.len--;
        if (bytes[0] == '\\') {
            n = take_escape(&text, bytes);
        }
        if (n == 0 || *len + n > NAME_BYTES_MAX) {
            return false;
        }
        memcpy(out + *len, bytes, n);
        *len += n;
    }
    return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The flags of a plain mg: letters, a space before each, and for O a token. A
 * letter that is unknown here, that comes twice, or that has something behind
 * it, is left to the parser, which knows what is wrong with it, if anything
 * is. */
#include "proto/plain.h"

#include "proto/meta.h"

#include <assert.h>

enum {
    LETTERS = sizeof "cfhklqstv" - 1,
    LINE_BYTES_MAX = sizeof "mg " - 1 + KEY_ID_DIGITS + 1 + KEY_NAMES_CHARS +
        2 * LETTERS + 1 + META_OPAQUE_MAX + 2
};

static_assert(LINE_BYTES_MAX + CHUNK_BYTES <= PLAIN_BYTES,
    "what is looked at, with a chunk behind it");

static inline uint64_t
bit_of(char letter)
{
    return UINT64_C(1) << (letter - 'A');
}

/* The bytes of a word at text, up to META_OPAQUE_MAX; more of a longer one. */
static unsigned
word_len(const char *text)
{
    unsigned len = 0;
    unsigned n = CHUNK_BYTES;
    while (n == CHUNK_BYTES && len <= META_OPAQUE_MAX) {
        n = chunk_count_printed(chunk_load(text + len));
        len += n;
    }
    return len;
}

uint32_t
plain__meta_flags(const char *text, uint32_t at, struct plain *out)
{
    uint32_t first = at + 1;
    uint64_t seen = 0;
    while (text[at] == ' ') {
        char letter = text[at + 1];
        unsigned len = 1;
        switch (letter) {
        case 'O':
            len = word_len(text + at + 1);
            break;
        case 'c':
        case 'f':
        case 'h':
        case 'k':
        case 'l':
        case 'q':
        case 's':
        case 't':
        case 'v':
            break;
        default:
            return 0;
        }
        if ((seen & bit_of(letter)) != 0 || len > META_OPAQUE_MAX) {
            return 0;
        }
        seen |= bit_of(letter);
        at += 1 + len;
    }
    out->is_quiet = (seen & bit_of('q')) != 0;
    out->wants_value = (seen & bit_of('v')) != 0;
    if ((seen & ~(bit_of('q') | bit_of('v'))) != 0) {
        out->meta = (struct span){first, at - first};
    }
    return at;
}

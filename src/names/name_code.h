/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAME_CODE_H
#define NAMES_NAME_CODE_H

#include "names/name_symbols.h"
#include "names/own_id.h"

/* A name as it is kept: by symbols, or, with a byte in front that is no code of
 * a symbol, as one number, in halves of bytes, as a UUID or as it is, whichever
 * is shortest. doc/format-names.md has the bytes. Pure; any thread. */

enum {
    NAME_CODE_BYTES_MAX = 1 + NAME_BYTES_MAX,
    /* what a name is read into, and one that is to be coded stands in: bytes 0
     * behind it where it is coded */
    NAME_ROOM_BYTES = NAME_BYTES_MAX + NAME_SAMPLE_PAD
};

/* The first byte of what has no symbols. */
enum name_code_kind {
    NAME_CODE_RAW = 250, /* then the name */
    NAME_CODE_DIGITS,    /* then how many, and 19 of them in 8 bytes each */
    NAME_CODE_HEX,       /* then two of 0-9 a-f a byte */
    NAME_CODE_HEX_ODD,   /* the same; the last byte has one, in its top half */
    NAME_CODE_UUID       /* 8-4-4-4-12 of 0-9 a-f in 16 bytes */
};

/* Codes a valid name, in room bytes of which those behind it are 0, with
 * symbols (NULL: there are none yet). Returns how many bytes it wrote to out.
 */
size_t name_code_put(const struct name_symbols *symbols,
    const char name[NAME_ROOM_BYTES], size_t len,
    uint8_t out[NAME_CODE_BYTES_MAX]);

/* The name that n bytes are; its length. 0: none that name_code_put could have
 * been given. */
size_t name_code_get(const struct name_symbols *symbols, const uint8_t *code,
    size_t n, char out[NAME_ROOM_BYTES]);

#endif

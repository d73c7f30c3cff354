/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAME_IMAGE_H
#define NAMES_NAME_IMAGE_H

#include "names/name_block.h"
#include "names/name_symbols.h"

#include <stddef.h>
#include <stdint.h>

/* A table of symbols, and a block of names, as bytes for a file:
 * doc/format-names.md. Pure; any thread. */

enum {
    NAME_IMAGE_HEAD_BYTES = 16,
    NAME_IMAGE_BYTES_MAX = 8192, /* no image is longer */
    NAME_TABLES_MAX = 15,        /* tables have the numbers 1 to this */
    NAME_BLOCKS_MAX = 1 << 27    /* blocks the numbers 0 to below this */
};

enum name_image_kind { NAME_IMAGE_TABLE = 1, NAME_IMAGE_BLOCK };

/* An image that has been looked at; it points into the bytes it was read from.
 */
struct name_image {
    enum name_image_kind kind;
    unsigned table;  /* its number, or that of the block's; 0: none */
    uint32_t number; /* of symbols, or the block's */
    size_t bytes;    /* of all of it */
    /* of a table: */
    uint64_t symbol[NAME_SYMBOLS_MAX];
    uint8_t symbol_len[NAME_SYMBOLS_MAX];
    /* of a block: */
    uint32_t live;
    const uint8_t *code[NAME_BLOCK_SLOTS]; /* of the live ones */
    uint8_t code_len[NAME_BLOCK_SLOTS];    /* 1..201; 0 of others */
    size_t code_bytes;
};

/* Write an image to out; return its length, 0 of a block without names. A block
 * may be changed meanwhile: then it is as it was at some moment since. */
size_t name_image_put_table(const struct name_symbols *symbols, unsigned table,
    uint8_t out[NAME_IMAGE_BYTES_MAX]);
size_t name_image_put_block(const struct name_block *block, uint32_t n_block,
    uint8_t out[NAME_IMAGE_BYTES_MAX]);

/* Reads the image that n bytes begin with. 0 or ERR_CORRUPT. What the codes of
 * a block stand for is not looked at. */
int name_image_get(const uint8_t *in, size_t n, struct name_image *image);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Images: a head of sixteen bytes with a checksum of all that follows it, then
 * lengths, then bytes. doc/format-names.md has the offsets. */
#include "names/name_image.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "names/name_code.h"

#include <string.h>

enum {
    AT_KIND = 8,
    AT_TABLE = 9,
    AT_BYTES = 10,
    AT_NUMBER = 12,
    LIVE_BYTES = 4,
};

_Static_assert(NAME_IMAGE_HEAD_BYTES + LIVE_BYTES +
            NAME_BLOCK_SLOTS * (1 + NAME_CODE_BYTES_MAX) <=
        NAME_IMAGE_BYTES_MAX,
    "the longest block fits");
_Static_assert(
    NAME_IMAGE_HEAD_BYTES + NAME_SYMBOLS_MAX * (1 + NAME_SYMBOL_BYTES) <=
        NAME_IMAGE_BYTES_MAX,
    "the longest table fits");

/* The head in front of what ends at end. */
static size_t
put_head(uint8_t *out, enum name_image_kind kind, unsigned table,
    uint32_t number, size_t end)
{
    ASSERT(end <= NAME_IMAGE_BYTES_MAX);
    out[AT_KIND] = (uint8_t)kind;
    out[AT_TABLE] = (uint8_t)table;
    bytes_put_u16(out + AT_BYTES, (uint16_t)end);
    bytes_put_u32(out + AT_NUMBER, number);
    bytes_put_u64(out, checksum64(out + AT_KIND, end - AT_KIND, 0));
    return end;
}

size_t
name_image_put_table(const struct name_symbols *symbols, unsigned table,
    uint8_t out[NAME_IMAGE_BYTES_MAX])
{
    size_t at = NAME_IMAGE_HEAD_BYTES + symbols->n;
    ASSERT(table > 0 && table <= NAME_TABLES_MAX);
    for (unsigned i = 0; i < symbols->n; i++) {
        out[NAME_IMAGE_HEAD_BYTES + i] = symbols->len[i];
        for (unsigned j = 0; j < symbols->len[i]; j++) {
            out[at++] = (uint8_t)(symbols->symbol[i] >> 8 * j);
        }
    }
    return put_head(out, NAME_IMAGE_TABLE, table, symbols->n, at);
}

size_t
name_image_put_block(const struct name_block *block, uint32_t n_block,
    uint8_t out[NAME_IMAGE_BYTES_MAX])
{
    uint32_t live = name_block_live(block);
    uint8_t *len = out + NAME_IMAGE_HEAD_BYTES + LIVE_BYTES;
    size_t at = (size_t)(len - out) + (unsigned)__builtin_popcount(live);
    ASSERT(n_block < NAME_BLOCKS_MAX);
    if (live == 0) {
        return 0;
    }
    bytes_put_u32(out + NAME_IMAGE_HEAD_BYTES, live);
    for (unsigned slot = 0; slot < NAME_BLOCK_SLOTS; slot++) {
        if (live >> slot & 1) {
            unsigned bytes = name_block_len(block, slot);
            memcpy(out + at, block->code + name_block_at(block, slot), bytes);
            at += bytes;
            *len++ = (uint8_t)bytes;
        }
    }
    return put_head(out, NAME_IMAGE_BLOCK, block->table, n_block, at);
}

static int
get_table(const uint8_t *in, struct name_image *image)
{
    size_t at = NAME_IMAGE_HEAD_BYTES + image->number;
    if (image->table == 0 || image->number > NAME_SYMBOLS_MAX ||
        at > image->bytes) {
        return ERR_CORRUPT;
    }
    for (unsigned i = 0; i < image->number; i++) {
        unsigned len = in[NAME_IMAGE_HEAD_BYTES + i];
        if (len == 0 || len > NAME_SYMBOL_BYTES || at + len > image->bytes) {
            return ERR_CORRUPT;
        }
        image->symbol_len[i] = (uint8_t)len;
        image->symbol[i] = 0;
        for (unsigned j = 0; j < len; j++) {
            image->symbol[i] |= (uint64_t)in[at++] << 8 * j;
        }
    }
    return at == image->bytes ? 0 : ERR_CORRUPT;
}

static int
get_block(const uint8_t *in, struct name_image *image)
{
    size_t at = NAME_IMAGE_HEAD_BYTES + LIVE_BYTES;
    if (image->number >= NAME_BLOCKS_MAX || at > image->bytes) {
        return ERR_CORRUPT;
    }
    image->live = bytes_get_u32(in + NAME_IMAGE_HEAD_BYTES);
    const uint8_t *len = in + at;
    at += (unsigned)__builtin_popcount(image->live);
    if (image->live == 0 || at > image->bytes) {
        return ERR_CORRUPT;
    }
    for (unsigned slot = 0; slot < NAME_BLOCK_SLOTS; slot++) {
        bool is_live = image->live >> slot & 1;
        image->code[slot] = in + at;
        image->code_len[slot] = is_live ? *len++ : 0;
        at += image->code_len[slot];
        image->code_bytes += image->code_len[slot];
        if (at > image->bytes || (is_live && image->code_len[slot] == 0) ||
            image->code_len[slot] > NAME_CODE_BYTES_MAX) {
            return ERR_CORRUPT;
        }
    }
    return at == image->bytes ? 0 : ERR_CORRUPT;
}

int
name_image_get(const uint8_t *in, size_t n, struct name_image *image)
{
    if (n < NAME_IMAGE_HEAD_BYTES) {
        return ERR_CORRUPT;
    }
    unsigned kind = in[AT_KIND];
    image->table = in[AT_TABLE];
    image->bytes = bytes_get_u16(in + AT_BYTES);
    image->number = bytes_get_u32(in + AT_NUMBER);
    image->live = 0;
    image->code_bytes = 0;
    if (image->bytes < NAME_IMAGE_HEAD_BYTES || image->bytes > n ||
        image->bytes > NAME_IMAGE_BYTES_MAX ||
        image->table > NAME_TABLES_MAX ||
        bytes_get_u64(in) !=
            checksum64(in + AT_KIND, image->bytes - AT_KIND, 0)) {
        return ERR_CORRUPT;
    }
    switch (kind) {
    case NAME_IMAGE_TABLE:
        image->kind = NAME_IMAGE_TABLE;
        return get_table(in, image);
    case NAME_IMAGE_BLOCK:
        image->kind = NAME_IMAGE_BLOCK;
        return get_block(in, image);
    default:
        return ERR_CORRUPT;
    }
}

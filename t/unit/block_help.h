/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_BLOCK_HELP_H
#define UNIT_BLOCK_HELP_H

/* What the tests of blocks, and of what is made of blocks, share. */

#include "base/bytes.h"
#include "base/checksum.h"
#include "cold/block.h"
#include "lib/dist.h"
#include "unit/check_help.h"

enum { SEED = 99, COLUMNS_MAX = SCHEMA_COLUMNS_MAX };

/* What records have in their columns. */
enum look { LOOK_POSTS, LOOK_ZERO, LOOK_WIDE, LOOK_EXTREME, LOOK_COUNT };

static inline uint64_t
make_code(enum look look, struct dist_rng *rng)
{
    uint64_t bits = dist_rng_u64(rng);

    switch (look) {
    case LOOK_POSTS:
        return bits % 3 == 0 ? 0 : (bits >> 32) >> (24 + bits % 9);
    case LOOK_ZERO:
        return bits % 500 == 0 ? bits >> 60 : 0;
    case LOOK_WIDE:
        return bits;
    default:
        return bits % 3 == 0 ? UINT64_MAX : bits % 3 - 1;
    }
}

/* Gives a block that was changed or cut its length and a right checksum. */
static inline void
sign(uint8_t *bytes, size_t len)
{
    bytes_put_u16(bytes + 2, (uint16_t)len);
    len -= BLOCK_SUM_BYTES;
    bytes_put_u64(bytes + len, checksum64(bytes, len, SEED));
}

/* Has a block read with each bit flipped, and with each cut, always under a
 * right checksum. */
static inline void
read_worse(const uint8_t *bytes, size_t len,
    void (*read_fn)(const uint8_t *bytes, size_t len))
{
    uint8_t worse[BLOCK_BYTES_MAX];

    for (size_t bit = 0; bit < 8 * (len - BLOCK_SUM_BYTES); bit++) {
        memcpy(worse, bytes, len);
        worse[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sign(worse, len);
        read_fn(worse, len);
    }
    for (size_t cut = BLOCK_HEAD_BYTES + BLOCK_SUM_BYTES; cut < len; cut++) {
        memcpy(worse, bytes, len);
        sign(worse, cut);
        read_fn(worse, cut);
    }
}

#endif

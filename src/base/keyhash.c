/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes of keys. What clients call by the name of a standard is not always
 * it: their crc32 gives 15 bits of one, and their FNV-1a of 64 bits is computed
 * in 32, which gives the same low half. t/unit/check_owns.c has numbers that
 * libhashkit has computed. */
#include "base/keyhash.h"

#include "base/assert.h"
#include "base/md5.h"

#include <string.h>

static const char *const names[KEYHASH_COUNT] = {
#define X(name, word, text) [KEYHASH_##name] = word,
    KEYHASHES(X)
#undef X
};

bool
keyhash_find(const char *name, size_t len, enum keyhash *out)
{
    static const char fnv1a[] = "fnv1a"; /* what most mean by that */
    if (len == sizeof fnv1a - 1 && memcmp(name, fnv1a, len) == 0) {
        *out = KEYHASH_FNV1A_64;
        return true;
    }
    for (unsigned i = 0; i < KEYHASH_COUNT; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0) {
            *out = (enum keyhash)i;
            return true;
        }
    }
    return false;
}

const char *
keyhash_name(enum keyhash hash)
{
    ASSERT(hash < KEYHASH_COUNT);
    return names[hash];
}

/* CRC-32 as in Ethernet and zlib, four bits a step. */
static uint32_t
crc32(const char *key, size_t len)
{
    static const uint32_t of_four_bits[16] = {0x00000000, 0x1db71064,
        0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4,
        0xa00ae278, 0xbdbdf21c};
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)key[i];
        crc = crc >> 4 ^ of_four_bits[crc & 15];
        crc = crc >> 4 ^ of_four_bits[crc & 15];
    }
    return ~crc;
}

/* As C's char is where it has a sign. */
static uint32_t
signed_byte(char byte)
{
    uint32_t value = (unsigned char)byte;
    return value < 128 ? value : value | 0xffffff00;
}

static uint32_t
fnv1a(const char *key, size_t len, uint32_t basis, uint32_t prime)
{
    uint32_t hash = basis;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ signed_byte(key[i])) * prime;
    }
    return hash;
}

static uint32_t
one_at_a_time(const char *key, size_t len)
{
    uint32_t hash = 0;
    for (size_t i = 0; i < len; i++) {
        hash += signed_byte(key[i]);
        hash += hash << 10;
        hash ^= hash >> 6;
    }
    hash += hash << 3;
    hash ^= hash >> 11;
    return hash + (hash << 15);
}

uint32_t
keyhash(enum keyhash hash, const char *key, size_t len)
{
    uint32_t word[MD5_WORDS];
    switch (hash) {
    case KEYHASH_CRC32:
        return crc32(key, len) >> 16 & 0x7fff;
    case KEYHASH_CRC32A:
        return crc32(key, len);
    case KEYHASH_FNV1A_64:
        return fnv1a(key, len, 0x84222325, 0x1b3); /* the low halves */
    case KEYHASH_FNV1A_32:
        return fnv1a(key, len, 0x811c9dc5, 0x01000193);
    case KEYHASH_MD5:
        md5(key, len, word);
        return word[0];
    case KEYHASH_ONE_AT_A_TIME:
        return one_at_a_time(key, len);
    case KEYHASH_COUNT:
        break;
    }
    ASSERT(false);
    return 0;
}

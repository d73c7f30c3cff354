/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_KEYHASH_H
#define BASE_KEYHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The hashes by which clients and proxies of memcached choose a server for a
 * key, as libmemcached and twemproxy compute them, their oddities included.
 * Not for tables of our own. */

#define KEYHASHES(X)                                                          \
    X(CRC32, "crc32", "bits 16 to 30 of the CRC-32")                          \
    X(CRC32A, "crc32a", "CRC-32 (twemproxy only)")                            \
    X(FNV1A_64, "fnv1a_64", "FNV-1a of 64 bits, of which the low 32 count")   \
    X(FNV1A_32, "fnv1a_32", "FNV-1a of 32 bits")                              \
    X(MD5, "md5", "the first four bytes of MD5, lowest first")                \
    X(ONE_AT_A_TIME, "one_at_a_time",                                         \
        "Jenkins's one at a time, libmemcached's default")

enum keyhash {
#define X(name, word, text) KEYHASH_##name,
    KEYHASHES(X)
#undef X
        KEYHASH_COUNT
};

/* The hash of that name; "fnv1a" is fnv1a_64. False, with *out untouched, where
 * there is none. Pure; any thread. */
bool keyhash_find(const char *name, size_t len, enum keyhash *out);

/* Its name. Static storage. */
const char *keyhash_name(enum keyhash hash);

/* What a key of len bytes hashes to. About bytes above 127 clients disagree in
 * fnv1a and one_at_a_time: they are taken as the two compute them where char is
 * signed, as on x86-64. Pure; any thread. */
uint32_t keyhash(enum keyhash hash, const char *key, size_t len);

#endif

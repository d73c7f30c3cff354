/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_RDB_H
#define CLI_RDB_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A dump file of Redis (RDB, versions 5 to 11: of Redis 2.6 to 7.2, and Valkey)
 * in memory, read key by key: strings, hashes and sets; other kinds are passed
 * over. The layout is that of Redis' own rdb.c, ziplist.c, listpack.c and
 * intset.c, as their comments and the text "Redis RDB file format" tell it.
 * Pure, but for the memory of buffers. One thread. */

enum { RDB_WHY_MAX = 120 };

struct rdb {
    const uint8_t *at, *end;
    uint64_t database;
    uint64_t expires_ms; /* of the next key; 0: it stays */
    char why[RDB_WHY_MAX];
    struct buf key, text, packed; /* of what is compressed, or an integer */
};

struct rdb_text {
    const char *at;
    size_t len;
};

/* What there is of a key. */
struct rdb_key {
    uint64_t database;
    uint64_t expires_ms; /* since 1970; 0: it stays */
    struct rdb_text name;
};

/* What is asked about a key: whether its value is wanted, and then each of its
 * parts: of a string the text, with no field; of a hash each field; of a set
 * each member, with no field; of another kind of key once, with neither. False:
 * the reading ends. */
struct rdb_sink {
    bool (*key_fn)(void *context, const struct rdb_key *key, bool *is_wanted);
    bool (*part_fn)(void *context, char kind, const struct rdb_text *field,
        const struct rdb_text *text);
    void *context;
};

/* kind of part_fn */
enum { RDB_STRING = 's', RDB_HASH = 'h', RDB_SET = 'e', RDB_OTHER = 'o' };

/* Whether the bytes begin and end as such a file does, and their checksum, if
 * there is one, is right. False with why. */
bool rdb_verify(struct rdb *rdb, const uint8_t *bytes, size_t len);

/* Reads all keys of a file that was verified. False where the sink said so, or
 * with why where bytes make no file. */
bool rdb_read(struct rdb *rdb, const struct rdb_sink *sink);

void rdb_fini(struct rdb *rdb);

#endif

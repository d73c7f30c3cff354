/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_REPLY_CELL_H
#define PROTO_REPLY_CELL_H

#include "base/chunk.h"
#include "base/num.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The text reply to one cell, which is nearly all that a server of counters
 * says: written without checks where there is room, in stores as wide as
 * processors have them. Such a store goes beyond what it is for, and what
 * follows is written over the rest. */

enum {
    REPLY_KEY_NEAR = 32, /* bytes of a key that are copied at once */
    /* what reply_put_cell may write, without the key */
    REPLY_CELL_ROOM = REPLY_KEY_NEAR + 96
};

/* Copies n bytes, from piece to 2 * piece, in two pieces that overlap. */
static inline void
reply__copy_ends(char *at, const char *from, size_t n, size_t piece)
{
    memcpy(at, from, piece);
    memcpy(at + n - piece, from + n - piece, piece);
}

/* The same as reply_put_key for any key, of which no other byte is read. */
static inline char *
reply__put_key_near(char *at, const char *key, size_t len)
{
    enum { WIDE = 16, SHORT = 4 };
    if (len >= WIDE && len <= 2 * WIDE) {
        reply__copy_ends(at, key, len, WIDE);
    } else if (len >= CHUNK_BYTES && len < WIDE) {
        reply__copy_ends(at, key, len, CHUNK_BYTES);
    } else if (len >= SHORT && len < CHUNK_BYTES) {
        reply__copy_ends(at, key, len, SHORT);
    } else {
        memcpy(at, key, len);
    }
    return at + len;
}

/* Writes a key of len bytes to at, which has room for REPLY_KEY_NEAR more:
 * the end of it. No byte is read that is not before readable. */
static inline char *
reply_put_key(char *at, const char *key, size_t len, const char *readable)
{
    if (__builtin_expect(
            len > REPLY_KEY_NEAR || readable - key < REPLY_KEY_NEAR, 0)) {
        return reply__put_key_near(at, key, len);
    }
    memcpy(at, key, REPLY_KEY_NEAR);
    return at + len;
}

/* What follows the key in the reply to a cell without flags, " 0 <len>\r\n
 * <value>\r\n", of a value below NUM_SHORT_END. */
struct reply_short {
    char text[15];
    uint8_t len;
};
extern const struct reply_short reply_short[NUM_SHORT_END];

/* Writes it to at, which has room for 16 bytes: the end of it. */
static inline char *
reply_put_short(char *at, uint64_t value)
{
    const struct reply_short *text = &reply_short[value];
    memcpy(at, text, sizeof *text);
    return at + text->len;
}

/* The same of any flags, value and, but for 0, cas. */
char *reply__put_any(char *at, uint32_t flags, uint64_t value, uint64_t cas);

/* Writes "VALUE <key> <flags> <len>[ <cas>]\r\n<value>\r\n" to at, which has
 * room for len + REPLY_CELL_ROOM bytes: the end of it. cas 0: none. readable:
 * see reply_put_key. */
static inline char *
reply_put_cell(char *at, const char *key, size_t len, const char *readable,
    uint32_t flags, uint64_t value, uint64_t cas)
{
    memcpy(at, "VALUE \0", 8);
    at = reply_put_key(at + 6, key, len, readable);
    return __builtin_expect(flags == 0 && value < NUM_SHORT_END && cas == 0, 1)
        ? reply_put_short(at, value)
        : reply__put_any(at, flags, value, cas);
}

/* Writes "END\r\n" to at, which has room for 8 bytes: the end of it. */
static inline char *
reply_put_end(char *at)
{
    memcpy(at, "END\r\n\0\0", 8);
    return at + 5;
}

#endif

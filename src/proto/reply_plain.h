/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_REPLY_PLAIN_H
#define PROTO_REPLY_PLAIN_H

#include "base/bytes.h"
#include "proto/answer.h"
#include "proto/binary.h"
#include "proto/reply_cell.h"

/* The replies to plain requests (proto/plain.h) for a cell that has a value,
 * as reply_cell.h has those of the text protocol: wide stores, and no checks.
 * They are what answer_put says. */

enum {
    /* what these may write, without the key */
    REPLY_PLAIN_ROOM = REPLY_KEY_NEAR + 160
};

/* Writes value in decimal to `to`, which has room for NUM_U64_DIGITS_MAX bytes:
 * the end of it. */
static inline char *
reply_put_number(char *to, uint64_t value)
{
    if (__builtin_expect(value < NUM_SHORT_END, 1)) {
        memcpy(to, &num_short[value], sizeof num_short[value]);
        return to + num_short[value].len;
    }
    return to + num_put_u64(value, to);
}

/* Writes a packet with the value to at: the end of it. key: the request's, of
 * len bytes, NULL where it is not wanted. The others: as reply_put_cell. */
static inline char *
reply_put_packet(char *at, const struct echo *echo, const char *key,
    size_t len, const char *readable, uint32_t flags, uint64_t value,
    uint64_t cas)
{
    enum { FLAGS_BYTES = 4 };
    char *end = at + BINARY_HEADER_BYTES + FLAGS_BYTES;
    size_t key_len = key == NULL ? 0 : len;
    if (key != NULL) {
        end = reply_put_key(end, key, len, readable);
    }
    char *value_at = end;
    end = reply_put_number(end, value);
    uint32_t body =
        (uint32_t)(FLAGS_BYTES + key_len + (size_t)(end - value_at));
    chunk_store(at,
        BINARY_MAGIC_RESPONSE | (uint64_t)echo->opcode << 8 |
            (uint64_t)__builtin_bswap16((uint16_t)key_len) << 16 |
            (uint64_t)FLAGS_BYTES << 32);
    chunk_store(at + 8,
        __builtin_bswap32(body) |
            (uint64_t)__builtin_bswap32(echo->opaque) << 32);
    chunk_store(at + 16, __builtin_bswap64(cas));
    bytes_put_be32((uint8_t *)at + BINARY_HEADER_BYTES, flags);
    return end;
}

/* Writes what an mg returns for its flags, echo->meta, each behind one space:
 * the end of it. value_len: digits of the value. The others: as below. */
char *reply__put_flags(char *at, const struct echo *echo, const char *bytes,
    const char *readable, uint32_t flags, uint64_t cas, size_t value_len);

/* Writes the answer to an mg to at: the end of it. bytes: what echo's spans
 * are counted from. The others: as reply_put_cell. */
static inline char *
reply_put_meta(char *at, const struct echo *echo, const char *bytes,
    const char *readable, uint32_t flags, uint64_t value, uint64_t cas)
{
    char number[NUM_U64_DIGITS_MAX];
    size_t n = (size_t)(reply_put_number(number, value) - number);
    if (echo->wants_value) {
        memcpy(at, "VA ", 4);
        at = reply_put_number(at + 3, n);
    } else {
        memcpy(at, "HD", 2);
        at += 2;
    }
    if (echo->meta.len > 0) {
        at = reply__put_flags(at, echo, bytes, readable, flags, cas, n);
    }
    memcpy(at, "\r\n", 2);
    at += 2;
    if (echo->wants_value) {
        memcpy(at, number, sizeof number);
        memcpy(at + n, "\r\n", 2);
        at += n + 2;
    }
    return at;
}

#endif

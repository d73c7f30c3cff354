/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_PACKET_H
#define LIB_PACKET_H

/* Packets of the binary protocol for tests: made of numbers and texts, and
 * taken apart again. */

#include "base/buf.h"
#include "base/bytes.h"
#include "proto/binary.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A request. Lengths are those of the texts, unless said otherwise. */
struct packet_said {
    uint8_t opcode;
    const char *extras; /* extras_len of them; NULL: zeroes */
    size_t extras_len;
    const char *key; /* NULL: none */
    const char *value;
    size_t value_len; /* 0: that of the text */
    uint64_t cas;
    uint32_t opaque;
    int64_t body_more; /* added to the length that the header says */
};

static inline void
packet_add(struct buf *out, const struct packet_said *said)
{
    static const char zeroes[64];
    size_t key_len = said->key == NULL ? 0 : strlen(said->key);
    size_t value_len = said->value_len;
    if (value_len == 0 && said->value != NULL) {
        value_len = strlen(said->value);
    }
    int64_t body = (int64_t)(said->extras_len + key_len + value_len);
    uint8_t header[BINARY_HEADER_BYTES] = {BINARY_MAGIC_REQUEST, said->opcode};
    bytes_put_be16(header + 2, (uint16_t)key_len);
    header[4] = (uint8_t)said->extras_len;
    bytes_put_be32(header + 8, (uint32_t)(body + said->body_more));
    bytes_put_be32(header + 12, said->opaque);
    bytes_put_be64(header + 16, said->cas);
    buf_add(out, header, sizeof header);
    buf_add(
        out, said->extras == NULL ? zeroes : said->extras, said->extras_len);
    buf_add(out, said->key, key_len);
    buf_add(out, said->value, value_len);
}

/* Flags and exptime of a store. */
static inline void
packet_add_store(struct buf *out, uint8_t opcode, const char *key,
    const char *value, uint32_t flags, uint32_t exptime, uint64_t cas)
{
    uint8_t extras[8];
    bytes_put_be32(extras, flags);
    bytes_put_be32(extras + 4, exptime);
    packet_add(out,
        &(struct packet_said){.opcode = opcode,
            .extras = (const char *)extras,
            .extras_len = sizeof extras,
            .key = key,
            .value = value,
            .cas = cas});
}

static inline void
packet_add_count(struct buf *out, uint8_t opcode, const char *key,
    uint64_t delta, uint64_t initial, uint32_t exptime, uint64_t cas)
{
    uint8_t extras[20];
    bytes_put_be64(extras, delta);
    bytes_put_be64(extras + 8, initial);
    bytes_put_be32(extras + 16, exptime);
    packet_add(out,
        &(struct packet_said){.opcode = opcode,
            .extras = (const char *)extras,
            .extras_len = sizeof extras,
            .key = key,
            .cas = cas});
}

/* get, delete and the others with a key alone; touch and gat with exptime. */
static inline void
packet_add_key(struct buf *out, uint8_t opcode, const char *key)
{
    packet_add(out, &(struct packet_said){.opcode = opcode, .key = key});
}

static inline void
packet_add_touch(
    struct buf *out, uint8_t opcode, const char *key, uint32_t exptime)
{
    uint8_t extras[4];
    bytes_put_be32(extras, exptime);
    packet_add(out,
        &(struct packet_said){.opcode = opcode,
            .extras = (const char *)extras,
            .extras_len = sizeof extras,
            .key = key});
}

/* Writes responses as text, a line each:
 * "GETK st=00 cas=5 ext=[4] key=[a] body=[7]", extras and the body of incr and
 * decr as a number; opaque where it is not 0. False where the bytes are no
 * whole responses. */
static inline bool
packet_show(struct buf *out, const char *bytes, size_t len)
{
    static const char *const names[UINT8_MAX + 1] = {
#define X(code, name, op, form, quiet) [code] = #name,
        BINARY_OPCODES(X)
#undef X
    };
    while (len >= BINARY_HEADER_BYTES) {
        const uint8_t *h = (const uint8_t *)bytes;
        size_t key = bytes_get_be16(h + 2);
        size_t extras = h[4];
        size_t body = bytes_get_be32(h + 8);
        if (h[0] != BINARY_MAGIC_RESPONSE || h[5] != 0 ||
            key + extras > body || len < BINARY_HEADER_BYTES + body) {
            return false;
        }
        size_t value = body - key - extras;
        const char *at = bytes + BINARY_HEADER_BYTES;
        bool is_count =
            (h[1] == BINARY_INCREMENT || h[1] == BINARY_DECREMENT ||
                h[1] == BINARY_INCREMENTQ) &&
            bytes_get_be16(h + 6) == 0;
        buf_addf(out, "%s st=%02x", names[h[1]] == NULL ? "?" : names[h[1]],
            bytes_get_be16(h + 6));
        if (bytes_get_be32(h + 12) != 0) {
            buf_addf(out, " opaque=%x", bytes_get_be32(h + 12));
        }
        if (bytes_get_be64(h + 16) != 0) {
            buf_addf(
                out, " cas=%llu", (unsigned long long)bytes_get_be64(h + 16));
        }
        if (extras == 4) {
            buf_addf(out, " ext=[%u]", bytes_get_be32((const uint8_t *)at));
        } else if (extras != 0) {
            return false;
        }
        if (key > 0) {
            buf_addf(out, " key=[%.*s]", (int)key, at + extras);
        }
        if (is_count && value == 8) {
            buf_addf(out, " number=%llu",
                (unsigned long long)bytes_get_be64(
                    (const uint8_t *)at + extras + key));
        } else if (value > 0) {
            buf_addf(out, " body=[%.*s]", (int)value, at + extras + key);
        }
        buf_add_text(out, "\n");
        bytes += BINARY_HEADER_BYTES + body;
        len -= BINARY_HEADER_BYTES + body;
    }
    return len == 0;
}

#endif

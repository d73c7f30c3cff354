/* SPDX-License-Identifier: BSD-3-Clause */

/* memcached's binary protocol: get for one key, getkq for each of many with a
 * noop behind them, increment, set. An increment of what is absent makes it,
 * as those who count with this protocol ask for. Every packet has a header of
 * 24 bytes:
 *
 *     OFFSET SIZE MEANING            OFFSET SIZE MEANING
 *     0      1    0x80 or 0x81       6      2    status (of a reply)
 *     1      1    opcode             8      4    bytes behind the header
 *     2      2    bytes of the key   12     4    opaque, here always 0
 *     4      1    bytes of extras    16     8    cas
 *
 * with all numbers big-endian, then extras, key and value. */

#include "bench/wire.h"

#include "base/bytes.h"
#include "base/num.h"

#include <string.h>

enum {
    HEADER = 24,
    REQUEST = 0x80,
    REPLY = 0x81,
    OP_GET = 0x00,
    OP_SET = 0x01,
    OP_ADD = 0x05,
    OP_NOOP = 0x0a,
    OP_GETKQ = 0x0d,
    STATUS_OK = 0,
    STATUS_ABSENT = 1,
    SET_EXTRAS = 8,    /* flags, expiration */
    ADD_EXTRAS = 20,   /* delta, number at first, expiration */
    NUMBER_BYTES = 8,  /* of an increment's reply */
    BODY_MAX = 1 << 20 /* none that is asked for comes near it */
};

struct packet {
    uint8_t opcode, extras;
    uint16_t key, status;
    uint32_t body;
};

static void
add_packet(struct buf *out, uint8_t opcode, const uint8_t *extras,
    uint8_t n_extras, struct wire_text key, struct wire_text data)
{
    uint8_t header[HEADER] = {REQUEST, opcode};
    bytes_put_be16(header + 2, (uint16_t)key.len);
    header[4] = n_extras;
    bytes_put_be32(header + 8, (uint32_t)(n_extras + key.len + data.len));
    buf_add(out, header, HEADER);
    buf_add(out, extras, n_extras);
    buf_add(out, key.at, key.len);
    buf_add(out, data.at, data.len);
}

static void
binary_get(struct buf *out, struct wire_text key)
{
    add_packet(out, OP_GET, NULL, 0, key, (struct wire_text){0});
}

static void
binary_add(struct buf *out, struct wire_text key, struct wire_text number)
{
    uint8_t extras[ADD_EXTRAS] = {0};
    uint64_t by = 0;
    num_parse_u64(number.at, number.len, &by);
    bytes_put_be64(extras, by);
    bytes_put_be64(extras + 8, by);
    add_packet(out, OP_ADD, extras, ADD_EXTRAS, key, (struct wire_text){0});
}

static void
binary_set(struct buf *out, struct wire_text key, struct wire_text data)
{
    uint8_t extras[SET_EXTRAS] = {0};
    add_packet(out, OP_SET, extras, SET_EXTRAS, key, data);
}

static void
binary_head(struct buf *out, uint32_t n_keys)
{
    (void)out;
    (void)n_keys;
}

static void
binary_key(struct buf *out, struct wire_text key)
{
    add_packet(out, OP_GETKQ, NULL, 0, key, (struct wire_text){0});
}

static void
binary_tail(struct buf *out)
{
    add_packet(
        out, OP_NOOP, NULL, 0, (struct wire_text){0}, (struct wire_text){0});
}

/* The packet at the beginning of bytes; it is whole only where all of its
 * body is there, too. */
static enum wire_state
take_packet(const char *bytes, size_t len, struct packet *packet)
{
    const uint8_t *at = (const uint8_t *)bytes;
    if (len > 0 && at[0] != REPLY) {
        return WIRE_BAD;
    }
    if (len < HEADER) {
        return WIRE_MORE;
    }
    *packet = (struct packet){.opcode = at[1],
        .key = bytes_get_be16(at + 2),
        .extras = at[4],
        .status = bytes_get_be16(at + 6),
        .body = bytes_get_be32(at + 8)};
    if (packet->body > BODY_MAX ||
        packet->body < (uint32_t)packet->extras + packet->key) {
        return WIRE_BAD;
    }
    return len - HEADER < packet->body ? WIRE_MORE : WIRE_WHOLE;
}

static enum wire_state
frame_multi(
    const char *bytes, size_t len, uint32_t n_keys, struct wire_reply *reply)
{
    struct packet packet;
    size_t at = 0;
    uint32_t hits = 0;
    for (;;) {
        enum wire_state state = take_packet(bytes + at, len - at, &packet);
        if (state != WIRE_WHOLE) {
            return state;
        }
        if (packet.status != STATUS_OK) {
            return WIRE_BAD;
        }
        at += HEADER + packet.body;
        if (packet.opcode == OP_NOOP) {
            *reply = (struct wire_reply){.len = at, .hits = hits};
            return WIRE_WHOLE;
        }
        if (packet.opcode != OP_GETKQ || ++hits > n_keys) {
            return WIRE_BAD;
        }
    }
}

static enum wire_state
binary_frame(enum wire_ask ask, uint32_t n_keys, const char *bytes, size_t len,
    struct wire_reply *reply)
{
    static const uint8_t opcode[] = {
        [WIRE_GET] = OP_GET, [WIRE_ADD] = OP_ADD, [WIRE_SET] = OP_SET};
    struct packet packet;
    if (ask == WIRE_MULTI) {
        return frame_multi(bytes, len, n_keys, reply);
    }
    enum wire_state state = take_packet(bytes, len, &packet);
    if (state != WIRE_WHOLE) {
        return state;
    }
    bool is_hit = packet.status == STATUS_OK;
    bool may_miss = ask != WIRE_SET && packet.status == STATUS_ABSENT;
    if (packet.opcode != opcode[ask] || (!is_hit && !may_miss)) {
        return WIRE_BAD;
    }
    *reply = (struct wire_reply){.len = HEADER + packet.body, .hits = is_hit};
    return WIRE_WHOLE;
}

static enum wire_found
binary_next(enum wire_ask ask, const char *bytes, size_t len, size_t *at,
    struct wire_value *value)
{
    struct packet packet;
    *value = (struct wire_value){0};
    if (*at == len) {
        return WIRE_END;
    }
    if (take_packet(bytes + *at, len - *at, &packet) != WIRE_WHOLE) {
        return WIRE_WRONG;
    }
    const char *body = bytes + *at + HEADER;
    *at += HEADER + packet.body;
    if (packet.opcode == OP_NOOP) {
        return *at == len ? WIRE_END : WIRE_WRONG;
    }
    value->is_absent = packet.status != STATUS_OK;
    if (value->is_absent) {
        return ask == WIRE_MULTI ? WIRE_WRONG : WIRE_VALUE;
    }
    const char *data = body + packet.extras + packet.key;
    size_t data_len = packet.body - packet.extras - packet.key;
    if (ask == WIRE_MULTI) {
        value->key = (struct wire_text){body + packet.extras, packet.key};
    }
    if (ask == WIRE_ADD) {
        if (data_len != NUMBER_BYTES) {
            return WIRE_WRONG;
        }
        value->number = bytes_get_be64((const uint8_t *)data);
        return WIRE_VALUE;
    }
    return num_parse_u64(data, data_len, &value->number) ? WIRE_VALUE
                                                         : WIRE_WRONG;
}

const struct wire wire_binary = {.get_fn = binary_get,
    .add_fn = binary_add,
    .set_fn = binary_set,
    .head_fn = binary_head,
    .key_fn = binary_key,
    .tail_fn = binary_tail,
    .frame_fn = binary_frame,
    .next_fn = binary_next};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers as packets of the binary protocol (proto/binary.h), byte for byte
 * memcached's where memcached has them. A packet that says what is wrong has
 * nothing but a text behind its header. A quiet opcode leaves out what is
 * usual: that something was done, and that nothing was found. What is wrong is
 * always said, and a value that was asked for. */
#include "proto/answer.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "proto/binary.h"

#include <stdio.h>
#include <string.h>

enum status {
    STATUS_OK = 0x00,
    STATUS_NOT_FOUND = 0x01,
    STATUS_EXISTS = 0x02,
    STATUS_TOO_LARGE = 0x03,
    STATUS_INVALID = 0x04,
    STATUS_NOT_STORED = 0x05,
    STATUS_NOT_NUMERIC = 0x06,
    STATUS_AUTH = 0x20,
    STATUS_AUTH_GO_ON = 0x21,
    STATUS_NO_ACCESS = 0x24, /* not in memcached */
    STATUS_UNKNOWN_COMMAND = 0x81,
    STATUS_NO_MEMORY = 0x82,
    STATUS_INTERNAL = 0x84, /* this and the next not in memcached, but in
                             * the description of its protocol */
    STATUS_TEMPORARY = 0x86,
    STATUS_UNSURE = 0xa3 /* not in memcached; in Couchbase what a write that
                          * waits for disks answers where it is ambiguous */
};

enum { FLAGS_BYTES = 4, NUMBER_BYTES = 8, DETAILED_BYTES = 320 };

/* What memcached has a word for, and what is the server's fault. Every other
 * error is the client's: invalid, with the text that the text protocol has
 * behind CLIENT_ERROR. */
struct refusal {
    int err;
    enum status status;
    const char *text; /* NULL: that of err */
};

static const struct refusal refusals[] = {
    {ERR_UNKNOWN_COMMAND, STATUS_UNKNOWN_COMMAND, "Unknown command"},
    {ERR_BAD_FORMAT, STATUS_INVALID, "Invalid arguments"},
    {ERR_TOO_LARGE, STATUS_TOO_LARGE, "Too large."},
    {ERR_NOT_NUMERIC, STATUS_NOT_NUMERIC,
        "Non-numeric server-side value for incr or decr"},
    {ERR_NO_FLUSH, STATUS_AUTH, "Auth failure."},
    {ERR_UNKNOWN_USER, STATUS_AUTH, "Auth failure."},
    {ERR_BAD_LOGIN, STATUS_AUTH, "Auth failure."},
    {ERR_MAY_ONLY_READ, STATUS_NO_ACCESS, NULL},
    {ERR_NO_MEMORY, STATUS_NO_MEMORY, "Out of memory"},
    {ERR_HOT_FULL, STATUS_NO_MEMORY, NULL},
    {ERR_MANY_PRODUCERS, STATUS_NO_MEMORY, NULL},
    {ERR_MANY_MEMBERS, STATUS_NO_MEMORY, NULL},
    {ERR_MANY_DUMPS, STATUS_TEMPORARY, NULL},
    {ERR_NAMES_AGAIN, STATUS_TEMPORARY, NULL},
    {ERR_BACKUP_BUSY, STATUS_TEMPORARY, NULL},
    {ERR_BACKUP_GONE, STATUS_TEMPORARY, NULL},
    {ERR_FORGETS, STATUS_TEMPORARY, NULL},
    {ERR_LIST_BUSY, STATUS_TEMPORARY, NULL},
    {ERR_LOADING, STATUS_TEMPORARY, NULL},
    {ERR_NOT_PRIMARY, STATUS_TEMPORARY, NULL},
    {ERR_NO_PRIMARY, STATUS_TEMPORARY, NULL},
    {ERR_MOVED, STATUS_TEMPORARY, NULL},
    {ERR_BY_ETCD, STATUS_TEMPORARY, NULL},
    {ERR_NOT_HANDED, STATUS_TEMPORARY, NULL},
    {ERR_STALE, STATUS_TEMPORARY, NULL},
    {ERR_FEW_REPLICAS, STATUS_TEMPORARY, NULL},
    {ERR_NO_DIALLER, STATUS_TEMPORARY, NULL},
    {ERR_CLOSED, STATUS_TEMPORARY, NULL},
    {ERR_UNSURE, STATUS_UNSURE, NULL},
    {ERR_UNSURE_SLOW, STATUS_UNSURE, NULL},
    {ERR_UNSURE_COPIES, STATUS_UNSURE, NULL},
    {ERR_UNSURE_PRIMARY, STATUS_UNSURE, NULL},
    {ERR_FORWARD_BUSY, STATUS_TEMPORARY, NULL},
    {ERR_UNCOMMITTED, STATUS_TEMPORARY, NULL},
    {ERR_UNCOMMITTED_SLOW, STATUS_TEMPORARY, NULL},
    {ERR_LOG_FULL, STATUS_TEMPORARY, NULL},
    {ERR_DISK_FULL, STATUS_TEMPORARY, NULL},
    {ERR_DISK, STATUS_INTERNAL, NULL},
    {ERR_FILE_SIZE, STATUS_INTERNAL, NULL},
    {ERR_DIR_TAKEN, STATUS_INTERNAL, NULL},
    {ERR_COLD_READ, STATUS_INTERNAL, NULL},
    {ERR_NO_DATA_DIR, STATUS_INTERNAL, NULL},
    {ERR_NO_CHECKPOINT, STATUS_INTERNAL, NULL},
    {ERR_SYSTEM, STATUS_INTERNAL, NULL},
    {ERR_NO_THREAD, STATUS_INTERNAL, NULL},
};

/* A packet to be. */
struct packet {
    enum status status;
    uint64_t cas;
    size_t extras_len;
    uint8_t extras[FLAGS_BYTES];
    struct {
        const char *bytes;
        size_t len;
    } key, value;
    size_t *value_at; /* as in struct answer */
};

static void
put(struct buf *out, const struct echo *echo, const struct packet *packet)
{
    size_t body = packet->extras_len + packet->key.len + packet->value.len;
    uint8_t header[BINARY_HEADER_BYTES] = {BINARY_MAGIC_RESPONSE};
    ASSERT(packet->key.len <= UINT16_MAX && body <= UINT32_MAX);
    header[1] = echo->opcode;
    bytes_put_be16(header + 2, (uint16_t)packet->key.len);
    header[4] = (uint8_t)packet->extras_len;
    bytes_put_be16(header + 6, (uint16_t)packet->status);
    bytes_put_be32(header + 8, (uint32_t)body);
    bytes_put_be32(header + 12, echo->opaque);
    bytes_put_be64(header + 16, packet->cas);
    size_t room = sizeof header + body;
    room -= packet->value_at == NULL ? 0 : packet->value.len;
    if (buf_reserve(out, room) == NULL) {
        return; /* failed is set: a packet is whole, or not there */
    }
    buf_add(out, header, sizeof header);
    buf_add(out, packet->extras, packet->extras_len);
    buf_add(out, packet->key.bytes, packet->key.len);
    if (packet->value_at == NULL) {
        buf_add(out, packet->value.bytes, packet->value.len);
    } else {
        *packet->value_at = out->len;
    }
}

static void
put_text(struct buf *out, const struct echo *echo, enum status status,
    const char *text)
{
    struct packet packet = {.status = status, .value = {text, strlen(text)}};
    put(out, echo, &packet);
}

static void
put_ok(struct buf *out, const struct echo *echo, uint64_t cas)
{
    put(out, echo, &(struct packet){.cas = cas});
}

static bool
returns_key(const struct echo *echo)
{
    switch (echo->opcode) {
    case BINARY_GETK:
    case BINARY_GETKQ:
    case BINARY_GATK:
    case BINARY_GATKQ:
        return true;
    default:
        return false;
    }
}

/* A value with its flags; of a touch, the flags alone. */
static void
put_value(struct buf *out, const struct echo *echo, const char *bytes,
    const struct answer *answer)
{
    struct packet packet = {.cas = answer->cas, .extras_len = FLAGS_BYTES};
    bytes_put_be32(packet.extras, answer->flags);
    if (answer->kind == ANSWER_VALUE) {
        packet.value.bytes = answer->value;
        packet.value.len = answer->value_len;
        packet.value_at = answer->value_at;
    }
    if (returns_key(echo)) {
        packet.key.bytes = bytes + echo->key.at;
        packet.key.len = echo->key.len;
    }
    put(out, echo, &packet);
}

/* Where the key is to be returned it takes the place of the text. */
static void
put_miss(struct buf *out, const struct echo *echo, const char *bytes)
{
    struct packet packet = {.status = STATUS_NOT_FOUND};
    if (!returns_key(echo)) {
        put_text(out, echo, STATUS_NOT_FOUND, "Not found");
        return;
    }
    packet.key.bytes = bytes + echo->key.at;
    packet.key.len = echo->key.len;
    put(out, echo, &packet);
}

static void
put_number(
    struct buf *out, const struct echo *echo, const struct answer *answer)
{
    uint8_t number[NUMBER_BYTES];
    bytes_put_be64(number, answer->number);
    struct packet packet = {
        .cas = answer->cas, .value = {(const char *)number, sizeof number}};
    put(out, echo, &packet);
}

/* The condition of the command was not met. */
static void
put_not_stored(struct buf *out, const struct echo *echo)
{
    if (echo->op == REQUEST_ADD) {
        put_text(out, echo, STATUS_EXISTS, "Data exists for key.");
    } else if (echo->op == REQUEST_REPLACE) {
        put_text(out, echo, STATUS_NOT_FOUND, "Not found");
    } else {
        put_text(out, echo, STATUS_NOT_STORED, "Not stored.");
    }
}

static void
refuse(struct buf *out, const struct echo *echo, const struct answer *answer)
{
    char text[DETAILED_BYTES];
    if (answer->detail != NULL) {
        bool is_plain =
            answer->err == ERR_NOT_PRIMARY || answer->err == ERR_MOVED;
        snprintf(text, sizeof text, is_plain ? "%s %s" : "%s (%s)",
            err_text(answer->err), answer->detail);
        put_text(
            out, echo, is_plain ? STATUS_TEMPORARY : STATUS_INVALID, text);
        return;
    }
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].err == answer->err) {
            put_text(out, echo, refusals[i].status,
                refusals[i].text != NULL ? refusals[i].text
                                         : err_text(answer->err));
            return;
        }
    }
    put_text(out, echo, STATUS_INVALID, err_text(answer->err));
}

/* What a quiet opcode leaves out. */
static bool
is_usual(enum answer_kind kind)
{
    switch (kind) {
    case ANSWER_STORED:
    case ANSWER_DELETED:
    case ANSWER_OK:
    case ANSWER_NUMBER:
    case ANSWER_MISS:
        return true;
    default:
        return false;
    }
}

void
answer__binary(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out)
{
    if (echo->is_quiet && is_usual(answer->kind)) {
        return;
    }
    switch (answer->kind) {
    case ANSWER_STORED:
        put_ok(out, echo, answer->cas);
        return;
    case ANSWER_NOT_STORED:
        put_not_stored(out, echo);
        return;
    case ANSWER_EXISTS:
        put_text(out, echo, STATUS_EXISTS, "Data exists for key.");
        return;
    case ANSWER_NOT_FOUND:
        put_text(out, echo, STATUS_NOT_FOUND, "Not found");
        return;
    case ANSWER_DELETED:
    case ANSWER_OK:
    case ANSWER_ABOUT: /* not asked for in this protocol */
        put_ok(out, echo, 0);
        return;
    case ANSWER_NUMBER:
        put_number(out, echo, answer);
        return;
    case ANSWER_TOUCHED:
    case ANSWER_VALUE:
        put_value(out, echo, bytes, answer);
        return;
    case ANSWER_MISS:
        put_miss(out, echo, bytes);
        return;
    case ANSWER_REFUSED:
        refuse(out, echo, answer);
        return;
    }
}

void
answer_binary_version(
    const struct echo *echo, const char *version, struct buf *out)
{
    put_text(out, echo, STATUS_OK, version);
}

void
answer_binary_login(const struct echo *echo, const char *text, struct buf *out)
{
    put_text(out, echo, text == NULL ? STATUS_AUTH_GO_ON : STATUS_OK,
        text == NULL ? "" : text);
}

void
answer__binary_stat(const struct echo *echo, const char *name,
    const char *value, size_t len, struct buf *out)
{
    struct packet packet = {
        .key = {name, strlen(name)}, .value = {value, len}};
    put(out, echo, &packet);
}

void
answer__binary_stats_end(const struct echo *echo, struct buf *out)
{
    put_ok(out, echo, 0);
}

void
answer__binary_stats_none(const struct echo *echo, struct buf *out)
{
    put_text(out, echo, STATUS_NOT_FOUND, "Not found");
}

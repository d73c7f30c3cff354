/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of the binary protocol, as requests.
 *
 * A packet is looked at when its header, extras and key are there. First the
 * lengths of the header must fit each other, then those that the opcode asks
 * for; else where the next packet begins is not certain, and the connection is
 * closed once that is said. A length is only a number until its bytes are
 * there: it makes nobody wait for, or keep, more than value_bytes_max.
 *
 * Where memcached has quirks they are kept, if a client can live by them: of
 * touch, gat and stat only the extras and the key are taken, whatever length
 * the header says, and what is left is read as the next packet. But an unknown
 * opcode is skipped with all of its body, and no more: memcached 1.6 skips its
 * extras and its key twice, and then reads on in the middle of a packet. */
#include "proto/binary.h"

#include "base/bytes.h"
#include "base/err.h"
#include "proto/login.h"
#include "proto/text.h"

#include <stdbool.h>

enum {
    STORE_EXTRAS = 8,  /* flags 4, exptime 4 */
    COUNT_EXTRAS = 20, /* delta 8, initial 8, exptime 4 */
    TIME_EXTRAS = 4,   /* exptime 4 */
    LEVEL_EXTRAS = 4   /* level 4 */
};

/* The exptime of an increment that must not make what is missing. */
#define NO_INITIAL UINT32_MAX

/* What a packet looks like. */
enum form {
    FORM_UNKNOWN,
    FORM_EMPTY,  /* nothing but the header */
    FORM_KEY,    /* a key */
    FORM_STORE,  /* flags and exptime, a key, a value */
    FORM_EXTEND, /* a key, a value */
    FORM_LOGIN,  /* the same, neither of them long */
    FORM_COUNT,  /* delta, initial value and exptime, a key */
    FORM_TOUCH,  /* exptime, a key; what else there is, is not looked at */
    FORM_FLUSH,  /* nothing, or a delay */
    FORM_LEVEL,  /* a level */
    FORM_STAT    /* a key or none; what else there is, is not looked at */
};

struct command {
    enum form form;
    enum request_op op;
    bool is_quiet;
};

static const struct command commands[UINT8_MAX + 1] = {
#define X(code, name, op, form, quiet)                                        \
    [code] = {FORM_##form, REQUEST_##op, quiet},
    BINARY_OPCODES(X)
#undef X
};

struct packet {
    const char *bytes;
    uint8_t opcode;
    uint32_t extras_len;
    uint32_t key_len;
    uint32_t body_len; /* extras, key and value */
    uint64_t cas;
};

static const uint8_t *
extras_of(const struct packet *packet)
{
    return (const uint8_t *)packet->bytes + BINARY_HEADER_BYTES;
}

/* Bytes up to the end of the key. */
static uint32_t
head_len(const struct packet *packet)
{
    return BINARY_HEADER_BYTES + packet->extras_len + packet->key_len;
}

/* Bytes behind the key. Only where the lengths fit each other. */
static uint32_t
value_len(const struct packet *packet)
{
    return packet->body_len - packet->extras_len - packet->key_len;
}

static enum parse_status
fail(struct request *out, int err)
{
    out->op = REQUEST_ERROR;
    out->err = err;
    return PARSE_REQUEST;
}

static enum parse_status
fail_and_close(struct request *out, int err)
{
    out->closes = true;
    return fail(out, err);
}

/* Whether a packet of that form may have these lengths. */
static bool
fits(const struct packet *packet, enum form form)
{
    bool is_whole = value_len(packet) == 0;
    bool has_key = packet->key_len > 0;
    uint32_t extras = packet->extras_len;
    switch (form) {
    case FORM_UNKNOWN:
        return true;
    case FORM_EMPTY:
        return packet->body_len == 0;
    case FORM_KEY:
        return extras == 0 && has_key && is_whole;
    case FORM_STORE:
        return extras == STORE_EXTRAS && has_key;
    case FORM_EXTEND:
    case FORM_LOGIN:
        return extras == 0 && has_key;
    case FORM_COUNT:
        return extras == COUNT_EXTRAS && has_key && is_whole;
    case FORM_TOUCH:
        return extras == TIME_EXTRAS && has_key;
    case FORM_FLUSH:
        return (extras == 0 || extras == TIME_EXTRAS) && !has_key && is_whole;
    case FORM_LEVEL: /* another packet is unknown, as to memcached */
        return true;
    case FORM_STAT:
        return extras == 0;
    }
    return false;
}

static void
take_count(const uint8_t *extras, struct request *out)
{
    uint32_t exptime = bytes_get_be32(extras + 16);
    out->number = bytes_get_be64(extras);
    out->terms.wants_value = true;
    if (exptime == NO_INITIAL) {
        out->terms.must_exist = true;
        return;
    }
    out->terms.vivifies = true;
    out->terms.initial = bytes_get_be64(extras + 8);
    out->terms.vivify_exptime = exptime;
}

static void
take_extras(const struct packet *packet, enum form form, struct request *out)
{
    const uint8_t *extras = extras_of(packet);
    switch (form) {
    case FORM_STORE:
        out->flags = bytes_get_be32(extras);
        out->exptime = bytes_get_be32(extras + 4);
        return;
    case FORM_COUNT:
        take_count(extras, out);
        return;
    case FORM_TOUCH:
        out->exptime = bytes_get_be32(extras);
        out->terms.touches = true;
        return;
    case FORM_FLUSH:
        if (packet->extras_len > 0) {
            out->exptime = bytes_get_be32(extras);
        }
        return;
    case FORM_LEVEL:
        out->number = bytes_get_be32(extras);
        return;
    default:
        return;
    }
}

/* set, add and replace with a cas are the text protocol's cas, all three. */
static void
take_cas(const struct packet *packet, enum form form, struct request *out)
{
    out->terms.cas = packet->cas;
    if (form == FORM_STORE && packet->cas != 0) {
        out->stored_as = out->op;
        out->op = REQUEST_CAS;
    } else {
        out->terms.compares = packet->cas != 0;
    }
}

/* The value of a storage command, which is all that is left of the body. */
static enum parse_status
take_value(const struct packet *packet, size_t len, uint64_t value_bytes_max,
    struct parse_scan *scan, struct request *out)
{
    uint32_t value = value_len(packet);
    if (value > value_bytes_max) {
        /* with or without a cas: a set replaces what is stored */
        out->stored_as = commands[packet->opcode].op;
        out->op = REQUEST_TOO_LARGE;
        out->swallow_bytes = value;
        return PARSE_REQUEST;
    }
    if (len - out->len < value) {
        scan->need = (size_t)out->len + value;
        return PARSE_MORE;
    }
    out->value = (struct span){out->len, value};
    out->len += value;
    return PARSE_REQUEST;
}

/* The same for the words of a login. One that is too long is no login, and is
 * not waited for. */
static enum parse_status
take_login(const struct packet *packet, size_t len, struct parse_scan *scan,
    struct request *out)
{
    if (value_len(packet) > LOGIN_VALUE_MAX) {
        out->err = ERR_TOO_LARGE;
        out->swallow_bytes = value_len(packet);
        return PARSE_REQUEST;
    }
    return take_value(packet, len, LOGIN_VALUE_MAX, scan, out);
}

/* Whether there is such a command. */
static bool
is_known(const struct packet *packet, const struct command *command)
{
    if (command->form == FORM_LEVEL) {
        return packet->extras_len == LEVEL_EXTRAS &&
            packet->body_len == LEVEL_EXTRAS;
    }
    return command->form != FORM_UNKNOWN;
}

/* The packet has all up to the end of its key. */
static enum parse_status
take(const struct packet *packet, size_t len, uint64_t value_bytes_max,
    struct parse_scan *scan, struct request *out)
{
    const struct command *command = &commands[packet->opcode];
    if (packet->extras_len + packet->key_len > packet->body_len) {
        return fail_and_close(out, ERR_UNKNOWN_COMMAND);
    }
    if (packet->body_len > BINARY_BODY_MAX || packet->key_len > TEXT_KEY_MAX ||
        !fits(packet, command->form)) {
        return fail_and_close(out, ERR_BAD_FORMAT);
    }
    if (!is_known(packet, command)) {
        out->swallow_bytes = value_len(packet);
        return fail(out, ERR_UNKNOWN_COMMAND);
    }
    out->op = command->op;
    out->is_quiet = command->is_quiet;
    out->key.at = BINARY_HEADER_BYTES + packet->extras_len;
    out->key.len = packet->key_len;
    out->words = out->key;
    out->closes =
        packet->opcode == BINARY_QUIT || packet->opcode == BINARY_QUITQ;
    out->terms.wants_value = command->op == REQUEST_LOOK;
    take_extras(packet, command->form, out);
    take_cas(packet, command->form, out);
    if (command->form == FORM_LOGIN) {
        return take_login(packet, len, scan, out);
    }
    return command->form == FORM_STORE || command->form == FORM_EXTEND
        ? take_value(packet, len, value_bytes_max, scan, out)
        : PARSE_REQUEST;
}

enum parse_status
binary_parse(const char *bytes, size_t len, uint64_t value_bytes_max,
    struct parse_scan *scan, struct request *out)
{
    const uint8_t *header = (const uint8_t *)bytes;
    if (len < BINARY_HEADER_BYTES || len < scan->need) {
        return PARSE_MORE;
    }
    if (header[0] != BINARY_MAGIC_REQUEST) {
        out->err = ERR_NO_PACKET;
        return PARSE_CLOSE;
    }
    struct packet packet = {.bytes = bytes,
        .opcode = header[1],
        .key_len = bytes_get_be16(header + 2),
        .extras_len = header[4],
        .body_len = bytes_get_be32(header + 8),
        .cas = bytes_get_be64(header + 16)};
    if (len < head_len(&packet)) {
        scan->need = head_len(&packet);
        return PARSE_MORE;
    }
    request_clear(out);
    out->proto = PROTO_BINARY;
    out->opcode = packet.opcode;
    out->opaque = bytes_get_be32(header + 12);
    out->len = head_len(&packet);
    return take(&packet, len, value_bytes_max, scan, out);
}

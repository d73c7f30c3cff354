/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_PLAIN_H
#define PROTO_PLAIN_H

#include "base/bytes.h"
#include "proto/binary.h"
#include "proto/key_names.h"
#include "proto/request.h"
#include "proto/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Requests on one cell as most clients write them, read in one pass: of those
 * that come a hundred to a read, all but the first are (session/exec_follow.c).
 * Each function reads the request at text, of which PLAIN_BYTES may be looked
 * at, zeros behind what there is: its length, and *out, which is what the
 * parsers make of it; 0 where it is not whole, or may be anything else. names:
 * see key_names_use. Pure; any thread. */

enum { PLAIN_BYTES = 128 /* of the longest request that is read so */ };

struct plain {
    struct key key;    /* key_is_number */
    struct span at;    /* the key as sent */
    struct span meta;  /* mg: the flags, if one of them is to be returned */
    uint64_t number;   /* incr, decr, set, add */
    uint32_t opaque;   /* a packet's */
    uint8_t opcode;    /* likewise */
    uint8_t value_len; /* of set, add */
    bool is_decr;
    bool is_add;
    bool is_quiet;
    bool wants_value; /* mg */
};

static inline bool
plain__is_end(const char *text)
{
    return text[0] == '\r' && text[1] == '\n';
}

/* The key at at: the place behind it, 0 where it is not known, or none of a
 * kind from KEY_CELL to last. */
static inline uint32_t
plain__key(const struct key_names *names, const char *text, uint32_t at,
    enum key_kind last, struct plain *out)
{
    _Static_assert(KEY_CELL == KEY_ITEM + 1 && KEY_COUNTED == KEY_CELL + 1,
        "no item's is known, and these two are numbers");
    uint32_t len = key_names_word(names, text + at, &out->key);
    out->at = (struct span){at, len};
    return len == 0 || out->key.kind > last ? 0 : at + len;
}

/* "incr KEY NUMBER" or "decr KEY NUMBER", of up to eight digits. */
static inline uint32_t
plain_count(const struct key_names *names, const char *text, struct plain *out)
{
    enum { COMMAND_LEN = sizeof "incr " - 1 };
    bool is_decr = text[0] == 'd';
    if (memcmp(text, is_decr ? "decr " : "incr ", COMMAND_LEN) != 0) {
        return 0;
    }
    uint32_t at = plain__key(names, text, COMMAND_LEN, KEY_CELL, out);
    if (at == 0 || text[at++] != ' ') {
        return 0;
    }
    uint64_t word = chunk_load(text + at);
    unsigned n = chunk_count_digits(word);
    if (n == 0 || !plain__is_end(text + at + n)) {
        return 0;
    }
    out->number = chunk_value(chunk_last(word, n));
    out->is_decr = is_decr;
    return at + n + 2;
}

/* The line's end behind the key of a storage command, and the block: a number
 * of up to eight digits, no flags, no exptime. The place behind them, or 0. */
static inline uint32_t
plain__block(const char *text, uint32_t at, struct plain *out)
{
    static const char zeros[] = " 0 0 ";
    unsigned len = (unsigned)(unsigned char)text[at + sizeof zeros - 1] - '0';
    if (memcmp(text + at, zeros, sizeof zeros - 1) != 0 || len > CHUNK_BYTES ||
        !plain__is_end(text + at + sizeof zeros)) {
        return 0;
    }
    at += sizeof zeros + 2;
    uint64_t word = chunk_load(text + at);
    if (len == 0 || chunk_count_digits(word) < len ||
        !plain__is_end(text + at + len)) {
        return 0;
    }
    out->number = chunk_value(chunk_last(word, len));
    out->value_len = (uint8_t)len;
    return at + len + 2;
}

enum { PLAIN__STORE_LEN = sizeof "set " - 1 };

_Static_assert(PLAIN__STORE_LEN + KEY_MEMBER_NEAR + sizeof " 0 0 1\r\n" +
            2 * CHUNK_BYTES <=
        PLAIN_BYTES,
    "what is looked at of a storage command");

/* What a storage command begins with; false for any but set and add. */
static inline bool
plain__store(const char *text, struct plain *out)
{
    out->is_add = text[0] == 'a';
    return memcmp(text, out->is_add ? "add " : "set ", PLAIN__STORE_LEN) == 0;
}

/* "set KEY 0 0 LEN" or "add KEY 0 0 LEN", and a number. */
static inline uint32_t
plain_store(const struct key_names *names, const char *text, struct plain *out)
{
    if (!plain__store(text, out)) {
        return 0;
    }
    uint32_t at = plain__key(names, text, PLAIN__STORE_LEN, KEY_CELL, out);
    return at == 0 ? 0 : plain__block(text, at, out);
}

/* The same where KEY is that of a member. */
static inline uint32_t
plain_member(
    const struct key_names *names, const char *text, struct plain *out)
{
    if (!plain__store(text, out)) {
        return 0;
    }
    uint32_t len =
        key_names_word_member(names, text + PLAIN__STORE_LEN, &out->key);
    out->at = (struct span){PLAIN__STORE_LEN, len};
    if (len == 0 || out->key.kind != KEY_MEMBER || key_fault(&out->key) != 0) {
        return 0;
    }
    return plain__block(text, PLAIN__STORE_LEN + len, out);
}

/* "get KEY". */
static inline uint32_t
plain_get(const struct key_names *names, const char *text, struct plain *out)
{
    enum { COMMAND_LEN = sizeof "get " - 1 };
    if (memcmp(text, "get ", COMMAND_LEN) != 0) {
        return 0;
    }
    uint32_t at = plain__key(names, text, COMMAND_LEN, KEY_COUNTED, out);
    return at == 0 || !plain__is_end(text + at) ? 0 : at + 2;
}

/* The flags of an mg at at, each there once: the place behind them, which is
 * the line's end, and what they ask for. 0 where there are others than O c f h
 * k l q s t v, or something is unusual. */
uint32_t plain__meta_flags(const char *text, uint32_t at, struct plain *out);

/* "mg KEY FLAGS". */
static inline uint32_t
plain_meta(const struct key_names *names, const char *text, struct plain *out)
{
    enum { COMMAND_LEN = sizeof "mg " - 1 };
    static const char value_only[] = " v\r";
    if (memcmp(text, "mg ", COMMAND_LEN) != 0) {
        return 0;
    }
    uint32_t at = plain__key(names, text, COMMAND_LEN, KEY_COUNTED, out);
    if (at == 0) {
        return 0;
    }
    out->is_quiet = false;
    out->wants_value = true;
    out->meta = (struct span){0, 0};
    if (memcmp(text + at, value_only, sizeof value_only - 1) == 0) {
        at += sizeof value_only - 2;
    } else {
        at = plain__meta_flags(text, at, out);
    }
    return at == 0 || !plain__is_end(text + at) ? 0 : at + 2;
}

/* A packet with one of the four opcodes that read a value, and no cas. */
static inline uint32_t
plain_packet(
    const struct key_names *names, const char *text, struct plain *out)
{
    const uint8_t *header = (const uint8_t *)text;
    uint32_t key_len = bytes_get_be16(header + 2);
    uint8_t opcode = header[1];
    bool is_get = opcode == BINARY_GET || opcode == BINARY_GETK;
    bool is_quiet = opcode == BINARY_GETQ || opcode == BINARY_GETKQ;
    if (header[0] != BINARY_MAGIC_REQUEST || !(is_get || is_quiet) ||
        header[4] != 0 || bytes_get_be32(header + 8) != key_len ||
        bytes_get_be64(header + 16) != 0 || key_len > KEY_NAMES__NEAR ||
        !key_names_exact(
            names, text + BINARY_HEADER_BYTES, key_len, &out->key) ||
        out->key.kind > KEY_COUNTED) {
        return 0;
    }
    out->at = (struct span){BINARY_HEADER_BYTES, key_len};
    out->opcode = opcode;
    out->opaque = bytes_get_be32(header + 12);
    out->is_quiet = is_quiet;
    return BINARY_HEADER_BYTES + key_len;
}

#endif

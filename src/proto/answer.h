/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_ANSWER_H
#define PROTO_ANSWER_H

#include "base/buf.h"
#include "proto/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a request with one key came to, and how each protocol says it. Whoever
 * executes a request makes a struct answer, the same for all protocols. */

enum answer_kind {
    ANSWER_STORED,
    ANSWER_NOT_STORED, /* add, replace, append, prepend: the condition */
    ANSWER_EXISTS,     /* another cas is stored */
    ANSWER_NOT_FOUND,
    ANSWER_DELETED,
    ANSWER_TOUCHED,
    ANSWER_OK,
    ANSWER_NUMBER, /* number is the result of incr or decr */
    ANSWER_VALUE,  /* value, flags, and what else a look has found */
    ANSWER_MISS,   /* a look has found nothing */
    ANSWER_ABOUT,  /* the same as of VALUE but the value: INSPECT */
    ANSWER_REFUSED /* err */
};

enum { ANSWER_NEVER = -1 }; /* ttl_s of what does not expire */

struct answer {
    enum answer_kind kind;
    int err;             /* REFUSED: ERR_x */
    const char *detail;  /* REFUSED: said behind its text; NULL: nothing */
    const char *value;   /* VALUE: the caller's, read during the call */
    size_t value_len;    /* VALUE, ABOUT; STORED: of what is stored */
    size_t *value_at;    /* meta and binary VALUE: not NULL: the value's bytes
                          * are left out, and where they belong in the reply
                          * is put here, unless none are to be said */
    uint64_t number;     /* NUMBER */
    uint64_t cas;        /* of what is stored now; 0: none */
    uint32_t flags;      /* VALUE, STORED */
    uint32_t item_bytes; /* ABOUT: header, key and value */
    unsigned item_class; /* ABOUT: memcached's slab class */
    int64_t ttl_s;       /* VALUE, NUMBER, ABOUT: seconds left */
    int64_t old_ttl_s;   /* VALUE, NUMBER: before the request changed it */
    bool is_new;         /* VALUE, NUMBER: the request has made it */
    uint64_t idle_s;     /* VALUE, ABOUT: since the last use */
    bool was_fetched;    /* VALUE, ABOUT: before this time */
    bool has_won;        /* VALUE: the client is to make the value anew */
    bool is_stale;       /* VALUE */
    bool was_won;        /* VALUE: another client has won */
};

/* What an answer says back of its request, and in whose words: a part of it
 * that can be kept while the request is no more. Spans are of the same bytes
 * as those of the request it was made of, moved by shift. */
struct echo {
    enum request_op op; /* TOO_LARGE: the storage command */
    enum request_proto proto;
    uint8_t opcode;
    bool noreply;
    bool is_quiet;
    bool key_is_base64;
    bool wants_value;
    uint32_t opaque;
    uint32_t value_len; /* of the data block */
    struct span key;
    struct span meta;
};

/* shift: how far the request lies behind what the echo's spans are counted
 * from. */
static inline struct echo
echo_of(const struct request *request, uint32_t shift)
{
    struct echo echo = {.op = request->op,
        .proto = request->proto,
        .opcode = request->opcode,
        .noreply = request->noreply,
        .is_quiet = request->is_quiet,
        .key_is_base64 = request->key_is_base64,
        .wants_value = request->terms.wants_value,
        .opaque = request->opaque,
        .value_len = request->value.len,
        .key = request->key,
        .meta = request->meta};
    if (request->op == REQUEST_TOO_LARGE) {
        echo.op = request->stored_as;
    }
    echo.key.at += shift;
    echo.meta.at += shift;
    return echo;
}

/* Appends the answer, or nothing where none is wanted. bytes: what the spans of
 * echo are counted from. */
void answer_put(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out);

/* Says REFUSED as an error line, which text and meta share. */
void answer__refuse(
    const struct echo *echo, const struct answer *answer, struct buf *out);
/* Answers of the binary protocol that have no kind: the version, and figures.
 */
void answer_binary_version(
    const struct echo *echo, const char *version, struct buf *out);
/* To a login: text says that it is done, or how it may be done; NULL: that the
 * next step is awaited. */
void answer_binary_login(
    const struct echo *echo, const char *text, struct buf *out);
/* A pair of a reply to stats, whose value has len bytes; the end of one; and
 * that there is no such thing. For proto/reply_stats.c. */
void answer__binary_stat(const struct echo *echo, const char *name,
    const char *value, size_t len, struct buf *out);
void answer__binary_stats_end(const struct echo *echo, struct buf *out);
void answer__binary_stats_none(const struct echo *echo, struct buf *out);

/* Of the other protocols; called by answer_put. */
void answer__meta(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out);
void answer__binary(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out);

#endif

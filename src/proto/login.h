/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_LOGIN_H
#define PROTO_LOGIN_H

#include "proto/request.h"

#include <stdbool.h>
#include <stddef.h>

/* How a client says who it is. In the text protocol, as in memcached: a set of
 * any key whose value is "user password". In the binary protocol: SASL PLAIN
 * (RFC 4616), "[user] NUL user NUL password". */

enum {
    LOGIN_BYTES_MAX = 1024, /* of one request before the login */
    LOGIN_WORD_MAX = 255,   /* of a user; and of a password, both in bytes */
    LOGIN_VALUE_MAX = 3 * LOGIN_WORD_MAX + 2 /* of a SASL PLAIN message */
};

/* Who, and the proof. Into the bytes they were read from. */
struct login_words {
    const char *user;
    size_t user_len; /* 1..LOGIN_WORD_MAX */
    const char *password;
    size_t password_len; /* 1..LOGIN_WORD_MAX */
};

/* Parses what a client sends by the text protocol before it is known: a set is
 * REQUEST_LOGIN with its value, or with the error that memcached has for it;
 * any other line is REQUEST_UNREAD. Never waits for more than LOGIN_BYTES_MAX.
 * After PARSE_REQUEST the caller zeroes *scan. Pure but for *scan. */
enum parse_status login_parse(const char *bytes, size_t len,
    struct parse_scan *scan, struct request *out);

/* Take the value of a login apart; false where it is none. Pure. */
bool login_read_text(const char *value, size_t len, struct login_words *out);
bool login_read_plain(const char *value, size_t len, struct login_words *out);

#endif

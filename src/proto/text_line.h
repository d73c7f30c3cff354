/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_TEXT_LINE_H
#define PROTO_TEXT_LINE_H

#include "proto/request.h"
#include "proto/text.h"
#include "proto/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the parsers of command lines share: a line, and the words taken off it
 * one by one. Inside src/proto only. */

#define TEXT__BAD_FORMAT "CLIENT_ERROR bad command line format"
#define TEXT__BAD_EXPTIME "CLIENT_ERROR invalid exptime argument"

/* memcached keeps the length of a block with its CRLF in an int. */
enum { TEXT__VALUE_LEN_MAX = INT32_MAX - 2 };

/* A line being parsed. */
struct line {
    const char *bytes; /* the request */
    size_t len;        /* bytes that are there */
    uint32_t line_len; /* of the line with its newline */
    uint64_t value_bytes_max;
    struct words words; /* behind the command */
    struct parse_scan *scan;
    struct request *out;
};

typedef enum parse_status parse_fn(struct line *line);

/* Makes the request one that is answered with error (static storage). */
enum parse_status text__fail(struct line *line, const char *error);

/* The same for a line whose data block, of a known length, must not be read as
 * commands. */
enum parse_status text__fail_and_skip(
    struct line *line, uint32_t len_bytes, const char *error);

/* True where a word is left. */
bool text__has_word(const struct line *line);

/* True where the last word left is "noreply". */
bool text__ends_with_noreply(const struct line *line);

/* Takes the key; where it is missing or too long the reply is made and false
 * returned. */
bool text__take_key(struct line *line);

/* The same for a command that may end with noreply, which then holds for
 * errors too. */
bool text__take_key_and_noreply(struct line *line);

/* Take a number off the line; false where there is none. What counts as one
 * is memcached 1.6.45's: no plus, at most 11 characters for 32 bits and 22 for
 * 64; a lone minus is the signed 0. */
bool text__take_u64(struct line *line, uint64_t *out);
bool text__take_u32(struct line *line, uint32_t *out);
bool text__take_i32(struct line *line, int64_t *out);

/* The length of a data block, 0..TEXT__VALUE_LEN_MAX. False where there is
 * none; where it is another number, the request closes the connection, since
 * the block must not be read as commands. */
bool text__take_len(struct line *line, uint32_t *out);

/* Flags and exptime of the old storage commands, which go through strtoul and
 * strtol there: a plus is let pass, and 64 bits are cut to 32. */
bool text__take_stored_flags(struct line *line, uint32_t *out);
bool text__take_stored_exptime(struct line *line, int64_t *out);

/* True for tx=..., whatever follows. */
bool text__is_tx(const struct line *line, struct span word);

/* The words of a change that are left, but for a last noreply: tx=... numbers
 * the change, and so the request's tx; any other is more than there should be,
 * which only items let pass. */
void text__take_rest(struct line *line);

/* The data block of len_bytes behind the line. */
enum parse_status text__take_value(struct line *line, uint32_t len_bytes);

#endif

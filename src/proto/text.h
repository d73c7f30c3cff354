/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_TEXT_H
#define PROTO_TEXT_H

#include "proto/request.h"
#include "schema/schema.h"

#include <stddef.h>
#include <stdint.h>

/* The parser of memcached's text protocol and of the telnet dialect. Bytes in,
 * requests out; no sockets, no memory of its own. Where the byte stream is cut
 * makes no difference. */

enum {
    TEXT_KEY_MAX = 250,
    TEXT_LINE_MAX = 2048,       /* of a command without many keys */
    TEXT_GET_LINE_MAX = 4 << 20 /* of get, gets, gat, gats */
};

/* The error of a line that is one word which no command has, of letters: 3 to
 * 16 of them. It is compared by address. Who has been told once is answered
 * TEXT_UNKNOWN. */
extern const char text_unknown_word[];
#define TEXT_UNKNOWN "ERROR"

/* Parses the request at bytes[0..len). value_bytes_max: longer values are
 * answered with REQUEST_TOO_LARGE without waiting for their bytes. schema
 * tells which names are counters'. After PARSE_REQUEST the caller zeroes *scan.
 * Pure but for *scan. */
enum parse_status text_parse(const char *bytes, size_t len,
    const struct schema *schema, uint64_t value_bytes_max,
    struct parse_scan *scan, struct request *out);

#endif

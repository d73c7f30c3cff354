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

enum text_status {
    TEXT_MORE,    /* not a whole request yet */
    TEXT_REQUEST, /* *out is filled; skip out->len bytes for the next one */
    TEXT_CLOSE    /* no way to go on: close without a reply */
};

/* What the parser remembers of a request it has seen only a part of. All zero
 * at the start of each request. */
struct text_scan {
    size_t scanned; /* bytes known to hold no newline */
    size_t need;    /* below this many bytes it is not worth to look again */
};

/* Parses the request at bytes[0..len). value_bytes_max: longer values are
 * answered with REQUEST_TOO_LARGE without waiting for their bytes. schema
 * tells which names are counters'. After TEXT_REQUEST the caller zeroes *scan.
 * Pure but for *scan. */
enum text_status text_parse(const char *bytes, size_t len,
    const struct schema *schema, uint64_t value_bytes_max,
    struct text_scan *scan, struct request *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_BINARY_H
#define PROTO_BINARY_H

#include "proto/request.h"

#include <stddef.h>
#include <stdint.h>

/* The parser of memcached's binary protocol: packets in, requests out. What is
 * answered is in answer_binary.c. Numbers are in network order.
 *
 *  OFFSET SIZE
 *       0    1  magic: 0x80 a request, 0x81 a response
 *       1    1  opcode
 *       2    2  length of the key
 *       4    1  length of the extras
 *       5    1  data type, not looked at; 0 in responses
 *       6    2  not looked at; in responses the status
 *       8    4  length of what follows: extras, key, value
 *      12    4  opaque: comes back as it was sent
 *      16    8  cas unique; 0: none
 */
enum {
    BINARY_MAGIC_REQUEST = 0x80,
    BINARY_MAGIC_RESPONSE = 0x81,
    BINARY_HEADER_BYTES = 24,
    BINARY_BODY_MAX = 1 << 30 /* a packet that says more is refused */
};

/* Code, name, what it is executed as, what a packet of it looks like (the
 * forms are in binary.c), whether the usual answer is left out. As in
 * memcached, what is not here (the range operations) is unknown; so are, to who
 * executes them, the three of SASL where there is none. */
#define BINARY_OPCODES(X)                                                     \
    X(0x00, GET, LOOK, KEY, false)                                            \
    X(0x01, SET, SET, STORE, false)                                           \
    X(0x02, ADD, ADD, STORE, false)                                           \
    X(0x03, REPLACE, REPLACE, STORE, false)                                   \
    X(0x04, DELETE, DELETE, KEY, false)                                       \
    X(0x05, INCREMENT, INCR, COUNT, false)                                    \
    X(0x06, DECREMENT, DECR, COUNT, false)                                    \
    X(0x07, QUIT, NOOP, EMPTY, false)                                         \
    X(0x08, FLUSH, FLUSH_ALL, FLUSH, false)                                   \
    X(0x09, GETQ, LOOK, KEY, true)                                            \
    X(0x0a, NOOP, NOOP, EMPTY, false)                                         \
    X(0x0b, VERSION, VERSION, EMPTY, false)                                   \
    X(0x0c, GETK, LOOK, KEY, false)                                           \
    X(0x0d, GETKQ, LOOK, KEY, true)                                           \
    X(0x0e, APPEND, APPEND, EXTEND, false)                                    \
    X(0x0f, PREPEND, PREPEND, EXTEND, false)                                  \
    X(0x10, STAT, STATS, STAT, false)                                         \
    X(0x11, SETQ, SET, STORE, true)                                           \
    X(0x12, ADDQ, ADD, STORE, true)                                           \
    X(0x13, REPLACEQ, REPLACE, STORE, true)                                   \
    X(0x14, DELETEQ, DELETE, KEY, true)                                       \
    X(0x15, INCREMENTQ, INCR, COUNT, true)                                    \
    X(0x16, DECREMENTQ, DECR, COUNT, true)                                    \
    X(0x17, QUITQ, NOOP, EMPTY, true)                                         \
    X(0x18, FLUSHQ, FLUSH_ALL, FLUSH, true)                                   \
    X(0x19, APPENDQ, APPEND, EXTEND, true)                                    \
    X(0x1a, PREPENDQ, PREPEND, EXTEND, true)                                  \
    X(0x1b, VERBOSITY, VERBOSITY, LEVEL, false)                               \
    X(0x1c, TOUCH, TOUCH, TOUCH, false)                                       \
    X(0x1d, GAT, LOOK, TOUCH, false)                                          \
    X(0x1e, GATQ, LOOK, TOUCH, true)                                          \
    X(0x20, SASL_LIST, LOGIN_WAYS, EMPTY, false)                              \
    X(0x21, SASL_AUTH, LOGIN, LOGIN, false)                                   \
    X(0x22, SASL_STEP, LOGIN, LOGIN, false)                                   \
    X(0x23, GATK, LOOK, TOUCH, false)                                         \
    X(0x24, GATKQ, LOOK, TOUCH, true)

enum binary_opcode {
#define X(code, name, op, form, quiet) BINARY_##name = (code),
    BINARY_OPCODES(X)
#undef X
};

/* Parses the packet at bytes[0..len). The extras and the key are waited for
 * before anything is looked at; a value is not, where it is above
 * value_bytes_max (REQUEST_TOO_LARGE) or the opcode is unknown: it is skipped.
 * A packet whose lengths do not fit is REQUEST_ERROR and closes. PARSE_CLOSE
 * where it is no request at all. After PARSE_REQUEST the caller zeroes *scan.
 * Pure but for *scan. */
enum parse_status binary_parse(const char *bytes, size_t len,
    uint64_t value_bytes_max, struct parse_scan *scan, struct request *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FLOOR_FORM_H
#define BENCH_FLOOR_FORM_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* What t/bench/floor answers: its command line, and the replies that are made
 * of it. One thread. */

struct floor_form {
    uint64_t port;     /* 0: a free one */
    uint64_t keys;     /* numbers of a reply; 0: it is a number alone, as of
                      * incr */
    const char *key;   /* of each; points into argv */
    double digits;     /* mean, of a number */
    bool is_resp;      /* else text */
    bool ring_waits;   /* floor_ring: not libuv; no other floor asks for it */
    const char *reads; /* floor_bare: a file, of which it reads 4 KB a reply;
                        * points into argv; NULL: none */
};

/* Reads the command line; ends the program after --help, and with a message
 * where it is wrong. */
void floor_form_parse(struct floor_form *form, int argc, char **argv);

enum { FLOOR_VARIANTS = 10 };

/* Replies in turn, so that numbers have the right length on average. They live
 * as long as the program. */
struct floor_replies {
    struct buf bytes[FLOOR_VARIANTS];
    unsigned n, next;
};

/* Fails where memory is out. */
void floor_replies_init(
    struct floor_replies *replies, const struct floor_form *form);

/* Appends the next one. */
void floor_replies_add(struct floor_replies *replies, struct buf *out);

/* One for each newline in what was read. */
void floor_replies_lines(struct floor_replies *replies, const char *bytes,
    size_t len, struct buf *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include "cli/ask.h"
#include "cli/health.h"

/* tallyctl top: what a server does, again and again. One thread. */

/* Id, `stats` of the server. */
#define TOP_PARTS(X)                                                          \
    X(GENERAL, "")                                                            \
    X(COLD, "cold")                                                           \
    X(MEMORY, "memory")                                                       \
    X(LATENCY, "latency")                                                     \
    X(HOT, "hot")                                                             \
    X(CONNS, "conns")

enum top_part {
#define X(id, stats) TOP_##id,
    TOP_PARTS(X)
#undef X
        TOP_PARTS_N
};

/* More than these are not asked for each second. */
enum { TOP_CONNS_MAX = 2000 };

struct top {
    const char *server;
    uint64_t interval_ms;
    struct health health;
    struct figures now[TOP_PARTS_N];
    struct figures before[TOP_PARTS_N]; /* of the look before; empty: none */
    uint64_t between_ns;                /* 0: there was none */
    bool has_many_conns;                /* CONNS was not asked for */
};

/* What is shown: at most so many lines and columns, each line ended by a
 * newline. */
void top_frame(
    const struct top *top, unsigned lines, unsigned columns, struct buf *out);

/* The exit status. */
int top_main(int argc, char *const argv[]);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_SENDER_FEED_H
#define REPL_SENDER_FEED_H

#include "base/buf.h"
#include "base/owns.h"
#include "repl/feed_filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sender_stream;

/* What there is of a feed besides its stream. While that is_working it is the
 * pool's thread's, but for owns; else the node's. */
struct sender_feed {
    struct owns *owns; /* owned; the filter's, and constant */
    struct feed_filter filter;
    uint64_t most;     /* batch up to which it may be sent now */
    uint64_t asked_us; /* the node's: when something was gathered last */
    /* entries of the counters and the producers, as they were at first */
    bool has_schema, is_all_told;
    struct buf schema; /* owned */
    size_t schema_at;  /* told so far */
};

/* A rule has come. Where it is none, the other end is told. */
void sender_feed_begin(struct sender_stream *stream);

/* Frees it, if there is one. */
void sender_feed_end(struct sender_feed **feed);

/* Gathers for one frame; see gather in sender_batches.c. The pool's thread. 0,
 * or why there is nothing. */
int sender__gather_feed(struct sender_stream *stream);

/* Sends what was gathered. */
void sender_send_feed(struct sender_stream *stream);

#endif

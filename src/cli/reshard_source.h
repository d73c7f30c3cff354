/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_RESHARD_SOURCE_H
#define CLI_RESHARD_SOURCE_H

#include "base/buf.h"
#include "client/talk.h"
#include "repl/link_feed.h"
#include "wal/entry.h"

#include <stdbool.h>
#include <stdint.h>

/* A node of the old group whose log is read: a socket under the feeder's end
 * of the stream (repl/link_feed.h). One thread. */

enum {
    RESHARD_SOURCE_TIMEOUT_MS = 10000, /* without a byte */
    RESHARD_SOURCE_READ_BYTES = 256 << 10
};

/* What is done with batches, before the next frame is looked at. False: the
 * connection ends, and whoever is called knows why. */
typedef bool (*reshard_batches_fn)(
    void *context, struct message_batches *batches, bool is_schema);

struct reshard_source {
    struct talk talk; /* the addresses; the caller sets servers */
    struct proof_secret secret;
    char group[MESSAGE_NAME_MAX + 1];
    char rule[MESSAGE_RULE_MAX + 1];
    reshard_batches_fn batches_fn;
    void *context;
    /* What is known of the log: directory (epoch 0: it begins) and history; in
     * node.written the position up to which all is acknowledged. The caller
     * sets written. */
    struct link_node node;
    struct history history;
    /* While it is open: */
    struct link_self self;
    struct link_feed link;
    struct stream_reader reader;
    struct buf out;
    uint8_t *in; /* owned, RESHARD_SOURCE_READ_BYTES */
    bool is_open;
    bool is_told; /* counters and producers have come, all of them */
    char why[TALK_WHY_MAX + 1]; /* of a failure */
};

/* *source is all zero but for what the caller sets. 0 or ERR_NO_MEMORY. */
int reshard_source_init(struct reshard_source *source);
void reshard_source_fini(struct reshard_source *source);

/* Connects to the next node in turn and goes on until the stream's beginning is
 * known: link.verdict, link.verdict_seq. False with why. */
bool reshard_source_open(struct reshard_source *source);
void reshard_source_close(struct reshard_source *source);

/* Waits up to wait_ms for something to come, and takes what has come. False
 * with why: the connection is over; or batches_fn has said so. */
bool reshard_source_read(struct reshard_source *source, unsigned wait_ms);

/* Says how far all is, if that is due, and reads nothing: so that a source is
 * not taken for dead while somebody else is waited for. Where the connection
 * is over, a read says so later. */
void reshard_source_tick(struct reshard_source *source);

#endif

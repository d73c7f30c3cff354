/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_RESHARD_LINES_H
#define CLI_RESHARD_LINES_H

#include "base/buf.h"
#include "base/owns.h"
#include "base/producer.h"
#include "base/seen.h"
#include "schema/schema.h"
#include "wal/entry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entries of a log (wal/entry.h) as lines of the dialect that bring another
 * server to the same: they say what something has become, so they may be sent
 * twice, in their order. Lines are gathered until the caller sends them; what
 * is acknowledged then is all up to the entry that was taken last. Pure; one
 * thread. */

enum { RESHARD_WHY_MAX = 300, RESHARD_PRODUCERS_MAX = 1 << 20 };

struct reshard_producer {
    uint32_t serial; /* 0: it is gone */
    bool has_seen;   /* something that is not told yet */
    bool is_there;   /* the source that is read has told of it */
    struct producer_name name;
    struct seen_window seen; /* then: numbers that the log tells of, joined
                              * over all shards */
};

struct reshard_lines {
    const struct owns *owns; /* which ids; the caller's */
    bool is_shared; /* the new group has other ids, whose changes may have the
                     * same producers; the caller's */
    unsigned shard_bits;   /* of the source: its shards are 2^this */
    struct schema *schema; /* the source's, as far as the entries go; owned */
    struct schema *known; /* that of the source before, until all of this one's
                            * is learnt; else NULL; owned */
    struct reshard_producer *producer; /* by serial; owned */
    size_t n_producers, producers_max;
    struct buf text; /* lines, each ended by LF */
    uint64_t n_records;
    /* Counters with a guard (maxjump=), by slot: */
    uint64_t largest[SCHEMA_COUNTERS_MAX]; /* id of the lines */
    uint64_t told[SCHEMA_COUNTERS_MAX];    /* that the server was told of */
    /* of the entry of members that is being read: */
    uint64_t owner, owner_number;
    bool owner_is_ours;
    /* Of the rule: handed over to that address; "": it is not. */
    char moved[256];
    char why[RESHARD_WHY_MAX]; /* of a failure */
};

/* shards: a power of two. 0 or ERR_NO_MEMORY. */
int reshard_lines_init(struct reshard_lines *lines, const struct owns *owns);
void reshard_lines_fini(struct reshard_lines *lines);

/* Counters and producers are all told anew by a source of so many shards. False
 * with why: there cannot be as many, or out of memory. */
bool reshard_lines_begin(struct reshard_lines *lines, uint32_t shards);

/* Takes a payload of counters and producers as they are now. False with why. */
bool reshard_lines_learn(
    struct reshard_lines *lines, const uint8_t *payload, size_t len);

/* All of these have come. Those that the source before had, and this one has
 * not, have been dropped in between: lines that do so, which are to be sent
 * before any other. What the log says of that later finds them unknown, since
 * serials are given out once. False: out of memory. */
bool reshard_lines_learnt(struct reshard_lines *lines);

enum reshard_take {
    RESHARD_TAKEN, /* all of the payload */
    RESHARD_SEND,  /* send the lines, empty text, and call again */
    RESHARD_WRONG  /* see why */
};

/* Takes what a reader has left of a payload, {payload, payload + len} at first;
 * it moves on. Lines that change the schema are sent alone. */
enum reshard_take reshard_lines_take(
    struct reshard_lines *lines, struct entry_reader *reader);

/* Puts what has to come before the lines and behind them to *out, with them,
 * and empties text. The lines number *n. False: out of memory. */
bool reshard_lines_finish(
    struct reshard_lines *lines, struct buf *out, size_t *n);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_BATCH_H
#define TALLYQ_BATCH_H

#include "base/buf.h"
#include "tallyq/position.h"

/* Messages that are counted together: their increments, merged by cell. The
 * same messages in the same order make the same batch, change by change, so
 * that one that was read again can be sent again. Pure; one thread at a time.
 *
 * A message is one or more lines, each "KEY DELTA": the key of a cell, as
 * memcached has it, and a number from 1 to 2^64 - 1. A line that is anything
 * else is bad, and says so in `aside` (tallyq/aside.h); those beside it
 * count. */

enum {
    /* Below a producer's window of 1,024 (base/seen.h), with some room. */
    BATCH_CHANGES_MAX = 1000,
    BATCH_KEY_MAX = 250,
    BATCH_SLOTS = 4096,
    /* Of texts about bad lines: a batch that has more is full. */
    BATCH_ASIDE_BYTES = 1 << 20
};

struct batch_change {
    uint64_t delta;
    bool is_put_aside; /* it has been: not to be sent, see feed.c */
    bool is_refused;   /* by tallyd, when it was sent last */
    uint8_t key_len;
    char key[BATCH_KEY_MAX];
};

struct batch {
    struct position last; /* of its messages; all zero: there is none */
    uint64_t n_messages;
    uint64_t n_lines; /* good ones */
    uint64_t n_bad;   /* lines */
    struct buf aside; /* lines about bad ones; memory may have run out */
    uint32_t n;
    struct batch_change change[BATCH_CHANGES_MAX];
    uint16_t slot[BATCH_SLOTS]; /* hash of a key to its index + 1; 0: none */
};

/* All zero is empty. */
void batch_clear(struct batch *batch);
void batch_fini(struct batch *batch);

/* Adds the message at that position, which is behind those before it. False,
 * with nothing added, where the batch is too full for it; an empty one never
 * is. */
bool batch_take(
    struct batch *batch, struct position at, const char *text, size_t len);

/* A sum over its changes and their order; never 0. */
uint64_t batch_digest(const struct batch *batch);

#endif

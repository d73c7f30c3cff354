/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "call/store_calls.h"
#include "durable/data.h"
#include "items/items.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The facade over everything that is stored. net talks to this and to nothing
 * below it. */

enum { STORE_SHARDS_DEFAULT = 16 };

struct store_config {
    unsigned shards;    /* a power of two, 1..4096 */
    uint64_t seed;      /* of the tables, random against chosen ids */
    uint64_t hot_bytes; /* budget of counters; >= ENGINE_HOT_BYTES_MIN */
    struct items_config items;
    uint32_t producers_max;      /* 1..PRODUCERS_MAX; 0: the usual */
    uint32_t table_records_max;  /* this and alloc as in engine_config, */
    const struct alloc *alloc;   /* of the tables: 0, NULL but in tests */
    uint64_t dump_range_records; /* as in dump_source, like the next three */
    uint32_t dump_range_blocks;
    uint32_t dump_members_found;
    const struct alloc *dump_alloc;
    const struct data_config *data; /* NULL: counters live in memory only */
    const struct clock *clock;      /* of waits; NULL: the system's */
};

/* The real store. *out is the caller's. With a data directory, shards and seed
 * are those of the directory, if it has some, counters are loaded on a thread
 * of the store (see data_config), and store_fault is ERR_LOADING until
 * store_begin. 0 or ERR_NO_MEMORY, ERR_NO_THREAD, ERR_DISK, ERR_DISK_FULL,
 * ERR_CORRUPT, ERR_NEWER_FORMAT; the directory is closed then. */
int store_create(const struct store_config *config, struct store **out);

/* All is loaded, and the caller's own edits are done: others may come. Only
 * for a store of store_create, like the next three. */
void store_begin(struct store *store);

/* Asks for a checkpoint and does not wait; while it loads, for one as soon as
 * that is done. Any thread. */
void store_want_checkpoint(struct store *store);

/* A stop begins: the seal and the checkpoint under way are given up, and who
 * waits for one is answered; a last checkpoint that is wanted begins now. What
 * has been sealed stays so. Waits for the disk; who destroys the store. */
void store_end_calls(struct store *store);

/* Has store_destroy, or store_end_calls, make a checkpoint. */
void store_want_last_checkpoint(struct store *store);

/* Finishes the edits under way, or gives up loading, syncs the log, then frees
 * all and nulls *store. No other call may be under way. 0, or why something
 * that was to be kept may be lost: a last checkpoint that fails loses nothing,
 * and the logger is told. */
int store_destroy(struct store **store);

/* Asserts invariants of a store of store_create, of all in it; for tests. */
void store_verify(struct store *store);

#endif

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

/* Of a directory that others have copies of (data_config.is_replicated) the
 * store begins as a replica; the rest of its role is in store/store_repl.h. */

/* From now on the store is a replica, if it is none: it takes no change but
 * batches of another server's log, store_fault is ERR_NOT_PRIMARY, and items
 * are gone. What it took as a primary and was not committed fails: of that
 * store_outcome says STORE_COMMIT_FAILED from now on. Waits for changes under
 * way, a second or so where they wait for room; not for an online reader. No
 * other thread calls this, the next two or store_begin_term meanwhile. 0;
 * ERR_NO_MEMORY, ERR_NO_THREAD, and it is a replica to which nothing can be
 * put, until this is called again. */
int store_set_replica(struct store *store);

/* Of a replica. Has the log take over a batch of the primary's under its
 * number, and then the tables, later; store_commit of the last one that was put
 * has the log write all of them at once, which else it does by itself in time.
 * One that it has had is passed over. 0; ERR_LOG_FULL: no room now, to be put
 * again later; ERR_LOG_ORDER: it is not one that can come next (wal_put_batch),
 * and nothing has changed; what store_fault of a primary would say of the log,
 * to be put again later; or why nothing more is applied: ERR_CORRUPT,
 * ERR_NEWER_FORMAT, ERR_MANY_PRODUCERS. May wait for the disk. */
int store_put_batch(
    struct store *store, uint64_t seq, const uint8_t *payload, size_t len);

/* Waits until all that was put is applied. 0, or as store_put_batch. */
int store_drain_batches(struct store *store);

/* The number of the last batch that is applied whole; of a primary, of the last
 * one that the log has. With a data directory; all is loaded; any thread. */
uint64_t store_applied(struct store *store);

/* Asks for a checkpoint and does not wait; while it loads, for one as soon as
 * that is done. Any thread. */
void store_want_checkpoint(struct store *store);

struct snapshot; /* durable/snapshot.h */

/* Asks for a snapshot of the data directory; done_fn is called when it is open
 * or cannot be, on the checkpointer's thread or this one. One at a time, and
 * closed before the store is destroyed. Any thread; what it asks for is in call
 * and pin_bytes_max. */
void store_want_snapshot(struct store *store, struct snapshot *snapshot);

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

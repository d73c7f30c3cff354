/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/qsbr.h"
#include "engine/engine.h"
#include "items/items.h"
#include "schema/schema.h"
#include "store/call.h"
#include "store/data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The facade over everything that is stored. net talks to this and to nothing
 * below it.
 * Calls about counters take batches and may be answered later: they return
 * STORE_DONE with the answers in place, or STORE_LATER, and then done_fn is
 * called exactly once, on any thread, possibly before the call returns.
 * From STORE_LATER to done_fn the call and all it points to belong to the
 * store. Per cell the order of calls from one caller holds only if the caller
 * waits for the answer of one before it makes the next.
 *
 * struct store_calls is a seam: t/lib has an implementation that parks calls
 * at random in front of the real one. */

enum { STORE_SHARDS_DEFAULT = 16 };

/* What every implementation begins with. Read-only after creation. */
struct store {
    const struct store_calls *calls;
    struct items *items; /* owned by the store; see items/items.h */
    struct qsbr *qsbr;   /* owned by the store; readers register here */
    _Atomic(const struct schema *) *schema; /* the published one */
    unsigned shards;
};

struct store_config {
    unsigned shards;    /* a power of two, 1..4096 */
    uint64_t seed;      /* of the tables, random against chosen ids */
    uint64_t hot_bytes; /* budget of counters; >= ENGINE_HOT_BYTES_MIN */
    struct items_config items;
    uint32_t producers_max;      /* 1..PRODUCERS_MAX; 0: the usual */
    uint32_t table_records_max;  /* this and alloc as in engine_config, */
    const struct alloc *alloc;   /* of the tables: 0, NULL but in tests */
    uint64_t dump_range_records; /* as in dump_source, like the next two */
    uint32_t dump_range_blocks;
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

static inline enum store_answer
store_get(struct store *store, struct store_get *get)
{
    return store->calls->get(store, get);
}

static inline enum store_answer
store_change(struct store *store, struct store_change *change)
{
    return store->calls->change(store, change);
}

static inline enum store_answer
store_edit(struct store *store, struct store_edit *edit)
{
    return store->calls->edit(store, edit);
}

/* The schema now. The calling thread must be an online reader of store->qsbr,
 * and the pointer is valid until it next goes quiescent or offline. */
static inline const struct schema *
store_schema(const struct store *store)
{
    /* seq_cst, with the keeper's store and the epochs of qsbr.c in one order:
     * who is seen offline by qsbr_wait will not load the old pointer later.
     * On x86 it is a plain load. */
    return atomic_load_explicit(store->schema, memory_order_seq_cst);
}

static inline struct store_sum
store_sum(struct store *store, unsigned counter_slot)
{
    return store->calls->sum(store, counter_slot);
}

static inline void
store_tables(struct store *store, unsigned counter_slot, int shard,
    struct engine_sum *sum)
{
    store->calls->tables(store, counter_slot, shard, sum);
}

static inline bool
store_survey(struct store *store, unsigned slot, unsigned shard, size_t *at,
    unsigned *n_left, struct engine_sum *sum, uint64_t (*width)[ENGINE_WIDTHS])
{
    return store->calls->survey(store, slot, shard, at, n_left, sum, width);
}

static inline uint64_t
store_hot_bytes(struct store *store, uint64_t *garbage_bytes)
{
    return store->calls->hot_bytes(store, garbage_bytes);
}

static inline enum store_commit
store_commit(struct store *store, uint64_t seq)
{
    return store->calls->commit(store, seq);
}

static inline enum store_commit
store_outcome(struct store *store, uint64_t seq)
{
    return store->calls->outcome(store, seq);
}

static inline int
store_fault(struct store *store)
{
    return store->calls->fault(store);
}

static inline void
store_listen(struct store *store, struct store_listener *listener)
{
    store->calls->listen(store, listener);
}

static inline void
store_unlisten(struct store *store, struct store_listener *listener)
{
    store->calls->unlisten(store, listener);
}

static inline enum store_answer
store_checkpoint(struct store *store, struct store_checkpoint *checkpoint)
{
    return store->calls->checkpoint(store, checkpoint);
}

static inline enum store_answer
store_seal(struct store *store, struct store_seal *seal)
{
    return store->calls->seal(store, seal);
}

static inline void
store_cold_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store->calls->cold_stats(store, stat_fn, context);
}

static inline void
store_data_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store->calls->data_stats(store, stat_fn, context);
}

/* Asserts invariants of a store of store_create, of all in it; for tests. */
void store_verify(struct store *store);

#endif

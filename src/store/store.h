/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/qsbr.h"
#include "engine/cell.h"
#include "engine/engine.h"
#include "items/items.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The facade over everything that is stored. net talks to this and to nothing
 * below it.
 *
 * Calls about counters take batches and may be answered later: they return
 * STORE_DONE with the answers in place, or STORE_LATER, and then call->done_fn
 * is called exactly once, on any thread, possibly before the call returns.
 * From STORE_LATER to done_fn the call and all it points to belong to the
 * store. Per cell the order of calls from one caller holds only if the caller
 * waits for the answer of one before it makes the next.
 *
 * struct store_calls is a seam: t/lib has an implementation that parks calls
 * at random in front of the real one. */

enum store_answer { STORE_DONE, STORE_LATER };

/* The head of every call that may be answered later. */
struct store_call {
    void (*done_fn)(struct store_call *call); /* the caller's */
    void *owner;                              /* the caller's */
    struct store_call *next; /* whoever holds the call may link it */
};

enum {
    STORE_GET_MAX = 256, /* cells in one call */
    STORE_SHARDS_DEFAULT = 16
};

/* Reads cells. Columns of one record that stand side by side are read at one
 * moment. The calling thread is an online reader of store->qsbr. */
struct store_get {
    struct store_call call;
    uint32_t n; /* 0..STORE_GET_MAX */
    struct cell_key key[STORE_GET_MAX];
    /* out: */
    uint64_t value[STORE_GET_MAX];
    uint8_t state[STORE_GET_MAX]; /* enum cell_state */
};

/* Does changes, in order; each answers for itself in change[i].err. The
 * calling thread is an online reader of store->qsbr. */
struct store_change {
    struct store_call call;
    uint32_t n;
    struct change *change; /* the caller's array of n */
};

/* Edits the schema. Always in the order of the calls. To add what exists
 * identically already is no error and changes nothing. */
struct store_edit {
    struct store_call call;
    struct schema_edit edit;
    int err; /* out: 0 or an ERR_ of schema_apply, ERR_NAME_IS_ITEM */
};

struct store;

/* What the store holds of one counter. */
struct store_sum {
    uint64_t records;
    uint64_t bytes; /* memory allocated for them */
};

struct store_calls {
    enum store_answer (*get)(struct store *store, struct store_get *get);
    enum store_answer (*change)(
        struct store *store, struct store_change *change);
    enum store_answer (*edit)(struct store *store, struct store_edit *edit);
    /* What is held of the counter in a slot, summed over all shards (zeroes
     * where there is none); answers at once. */
    struct store_sum (*sum)(struct store *store, unsigned counter_slot);
    /* Adds what is held of the counter in a slot to *sum: in one shard, or in
     * all with shard = -1; answers at once. */
    void (*tables)(struct store *store, unsigned counter_slot, int shard,
        struct engine_sum *sum);
    /* Adds how many values of a sample of its records need 0, 1, ... 64 bits
     * to width[column slot][bits]; answers at once. */
    void (*widths)(struct store *store, unsigned counter_slot,
        uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS]);
    /* Bytes of tables, stashes and directories now; of these, *garbage_bytes
     * wait for readers. */
    uint64_t (*hot_bytes)(struct store *store, uint64_t *garbage_bytes);
};

/* What every implementation begins with. Read-only after creation. */
struct store {
    const struct store_calls *calls;
    struct items *items; /* owned by the store; see items/items.h */
    struct qsbr *qsbr;   /* owned by the store; readers register here */
    _Atomic(const struct schema *) *schema; /* the published one */
};

struct store_config {
    unsigned shards;    /* a power of two, 1..4096 */
    uint64_t seed;      /* of the tables, random against chosen ids */
    uint64_t hot_bytes; /* budget of counters; >= ENGINE_HOT_BYTES_MIN */
    struct items_config items;
};

/* The real store. *out is the caller's. 0 or ERR_NO_MEMORY, ERR_SYSTEM. */
int store_create(const struct store_config *config, struct store **out);

/* Finishes the edits under way, then frees all and nulls *store. No other
 * call may be under way. */
void store_destroy(struct store **store);

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

static inline void
store_widths(struct store *store, unsigned counter_slot,
    uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS])
{
    store->calls->widths(store, counter_slot, width);
}

static inline uint64_t
store_hot_bytes(struct store *store, uint64_t *garbage_bytes)
{
    return store->calls->hot_bytes(store, garbage_bytes);
}

/* Asserts the invariants of all shards and items; for tests, and only for a
 * store of store_create. */
void store_verify(struct store *store);

#endif

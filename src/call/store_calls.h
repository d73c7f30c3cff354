/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CALL_STORE_CALLS_H
#define CALL_STORE_CALLS_H

#include "base/moved.h"
#include "base/qsbr.h"
#include "call/call.h"
#include "engine/sum.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct items; /* items/items.h */
struct names; /* names/names.h */
struct store;

/* Calls about counters take batches and may be answered later: they return
 * STORE_DONE with the answers in place, or STORE_LATER, and then done_fn is
 * called exactly once, on any thread, possibly before the call returns.
 * From STORE_LATER to done_fn the call and all it points to belong to the
 * store. Per cell the order of calls from one caller holds only if the caller
 * waits for the answer of one before it makes the next.
 *
 * struct store_calls is a seam: t/lib has an implementation that parks calls
 * at random in front of the real one. */

/* What the store holds of one counter. */
struct store_sum {
    uint64_t records;    /* one that has changed since it was sealed counts
                       * twice */
    uint64_t bytes;      /* memory allocated for them */
    uint64_t cold_bytes; /* of files that have some of them */
};

enum { STORE_WINDOWS_MAX = 16 /* in one answer */ };

enum { STORE_NAMES_PAUSE_S = 10 };

struct store_calls {
    enum store_answer (*get)(struct store *store, struct store_get *get);
    enum store_answer (*change)(
        struct store *store, struct store_change *change);
    enum store_answer (*edit)(struct store *store, struct store_edit *edit);
    /* Who the producer of that name (which is right) is; one that is not known
     * becomes so. Answers at once: 0, ERR_MANY_PRODUCERS, ERR_NO_MEMORY, or
     * what fault says. */
    int (*producer)(struct store *store, const char *name, size_t len,
        struct store_producer *out);
    /* See producers_join: 0, and *seq is what must be committed before the
     * answer; or as producer. Answers at once. */
    int (*join_window)(
        struct store *store, const struct store_window *window, uint64_t *seq);
    /* See producers_joined: how many of n, 1..STORE_WINDOWS_MAX, out has.
     * Answers at once. */
    uint32_t (*windows)(struct store *store, uint32_t *at,
        struct store_window *out, uint32_t n);
    /* Calls stat_fn for each line of `stats producers`. */
    void (*producer_stats)(struct store *store,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
    /* What is held of the counter in a slot, summed over all shards (zeroes
     * where there is none); answers at once. */
    struct store_sum (*sum)(struct store *store, unsigned counter_slot);
    /* Adds what is held of the counter in a slot to *sum: in one shard, or in
     * all with shard = -1; answers at once. Only tests ask so: the server asks
     * in pieces. */
    void (*tables)(struct store *store, unsigned counter_slot, int shard,
        struct engine_sum *sum);
    /* The same in pieces, of one shard, see engine_survey. */
    bool (*survey)(struct store *store, unsigned counter_slot, unsigned shard,
        size_t *at, unsigned *n_left, struct engine_sum *sum,
        uint64_t (*width)[ENGINE_WIDTHS]);
    /* Bytes of tables, stashes and directories now; of these, *garbage_bytes
     * wait for readers. */
    uint64_t (*hot_bytes)(struct store *store, uint64_t *garbage_bytes);
    /* Sees to it that all changes up to seq are committed. */
    enum store_commit (*commit)(struct store *store, uint64_t seq);
    /* Where they stand; nothing but a look. seq 0 is committed. */
    enum store_commit (*outcome)(struct store *store, uint64_t seq);
    /* What is to be committed before all is that a get of these n keys which
     * has been answered may have seen, or, with n = 0, a change or a piece of
     * a dump; 0: nothing. Answers at once; may wait for a shard's lock. */
    uint64_t (*seen)(
        struct store *store, const struct cell_key *key, uint32_t n);
    /* See engine_pair. */
    uint64_t (*pair)(struct store *store, uint64_t id, uint64_t number,
        unsigned bits, uint64_t member);
    /* See engine_numbers. */
    void (*numbers)(struct store *store, unsigned pairs, unsigned bits,
        unsigned shard, struct engine_numbers *out);
    /* Both answer at once, whatever the disk does. */
    void (*about_get)(struct store *store, struct store_about *about);
    void (*about_add)(struct store *store, struct store_about *about);
    /* Calls stat_fn for each line of `stats members` of the column of
     * members=about with the lowest serial above *serial, which becomes its:
     * false where there is none. Takes some 1 ms. */
    bool (*about_stats)(struct store *store, uint32_t *serial,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
    /* Calls stat_fn for each line of `stats names`; takes the locks of all
     * shards, one after the other. */
    void (*names_stats)(struct store *store,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
    enum store_answer (*pin)(struct store *store, struct store_pin *pin);
    void (*unpin)(struct store *store, struct sorted_pin *pin);
    /* See engine_sorted_figures. */
    void (*sorted_figures)(struct store *store, struct sorted_figures *out);
    /* 0, or why counters cannot be changed now, or not even read
     * (ERR_LOADING). */
    int (*fault)(struct store *store);
    void (*listen)(struct store *store, struct store_listener *listener);
    /* Returns when the listener is not being told and will not be. */
    void (*unlisten)(struct store *store, struct store_listener *listener);
    enum store_answer (*checkpoint)(
        struct store *store, struct store_checkpoint *checkpoint);
    enum store_answer (*seal)(struct store *store, struct store_seal *seal);
    enum store_answer (*dump)(struct store *store, struct store_dump *dump);
    void (*end_dump)(struct store *store, struct store_dump *dump);
    enum store_answer (*backup)(
        struct store *store, struct store_backup *backup);
    int (*end_backup)(struct store *store, struct store_backup *backup);
    /* Has all records of the ids of a rule removed, in the background, whose
     * ids must have been handed over. Answers at once. 0, and *owns is the
     * store's and NULL; ERR_NOT_MOVED, ERR_FORGETS, ERR_CLOSED, or what fault
     * says. The calling thread is an online reader. */
    int (*forget)(struct store *store, struct owns **owns);
    /* Calls stat_fn for each line of `stats forget`. */
    void (*forget_stats)(struct store *store,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
    /* See store_ring_open. NULL: there are none. */
    int (*open_ring)(struct store *store, struct store_ring **out);
    /* Calls stat_fn for each line of `stats cold`. */
    void (*cold_stats)(struct store *store,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
    /* Calls stat_fn for each line of `stats wal`. */
    void (*data_stats)(struct store *store,
        void (*stat_fn)(void *context, const char *name, const char *value),
        void *context);
};

/* What every implementation begins with. Read-only after creation. */
struct store {
    const struct store_calls *calls;
    struct items *items; /* owned by the store; see items/items.h */
    struct names *names; /* likewise; see names/names.h */
    /* Goes up for each name that is taken out, before its number is given
     * again. */
    const _Atomic uint64_t *names_dropped;
    /* Goes up before the first of a round of these; two rounds are
     * STORE_NAMES_PAUSE_S apart at least, and a number is taken out once in
     * each at most. On a replica it goes up by two, and they may follow at
     * once. */
    const _Atomic uint64_t *names_rounds;
    struct qsbr *qsbr; /* owned by the store; readers register here */
    _Atomic(const struct schema *) *schema; /* the published one */
    _Atomic(const struct moved *) *moved;   /* likewise; NULL: none */
    unsigned shards;
};

/* What has been counted of names that are taken out; acquire, both: what is
 * looked up behind it is as new. */

static inline uint64_t
store_names_dropped(const struct store *store)
{
    return atomic_load_explicit(store->names_dropped, memory_order_acquire);
}

static inline uint64_t
store_names_rounds(const struct store *store)
{
    return atomic_load_explicit(store->names_rounds, memory_order_acquire);
}

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

/* Which ids are at other groups now; NULL: none are. As store_schema. */
static inline const struct moved *
store_moved(const struct store *store)
{
    /* seq_cst: see store_schema */
    return atomic_load_explicit(store->moved, memory_order_seq_cst);
}

/* The handover of that rule, as owns_rule says it; NULL where there is none.
 * In memory that is there as long as that of store_moved. */
static inline const struct moved_one *
store_is_moved(const struct store *store, const char *rule)
{
    return moved_list_find(moved_list_of(store_moved(store)), rule);
}

static inline uint64_t
store_pair(struct store *store, uint64_t id, uint64_t number, unsigned bits,
    uint64_t member)
{
    return store->calls->pair(store, id, number, bits, member);
}

static inline void
store_numbers(struct store *store, unsigned pairs, unsigned bits,
    unsigned shard, struct engine_numbers *out)
{
    store->calls->numbers(store, pairs, bits, shard, out);
}

static inline void
store_about_get(struct store *store, struct store_about *about)
{
    store->calls->about_get(store, about);
}

static inline void
store_about_add(struct store *store, struct store_about *about)
{
    store->calls->about_add(store, about);
}

static inline bool
store_about_stats(struct store *store, uint32_t *serial,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    return store->calls->about_stats(store, serial, stat_fn, context);
}

static inline void
store_names_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store->calls->names_stats(store, stat_fn, context);
}

static inline enum store_answer
store_pin(struct store *store, struct store_pin *pin)
{
    return store->calls->pin(store, pin);
}

/* Gives a pin back; one that has nothing is fine. Any thread. */
static inline void
store_unpin(struct store *store, struct sorted_pin *pin)
{
    store->calls->unpin(store, pin);
}

static inline void
store_sorted_figures(struct store *store, struct sorted_figures *out)
{
    store->calls->sorted_figures(store, out);
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

static inline uint64_t
store_seen(struct store *store, const struct cell_key *key, uint32_t n)
{
    return store->calls->seen(store, key, n);
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

static inline int
store_forget(struct store *store, struct owns **owns)
{
    return store->calls->forget(store, owns);
}

static inline void
store_forget_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store->calls->forget_stats(store, stat_fn, context);
}

static inline int
store_producer(struct store *store, const char *name, size_t len,
    struct store_producer *out)
{
    return store->calls->producer(store, name, len, out);
}

static inline int
store_join_window(
    struct store *store, const struct store_window *window, uint64_t *seq)
{
    return store->calls->join_window(store, window, seq);
}

static inline uint32_t
store_windows(
    struct store *store, uint32_t *at, struct store_window *out, uint32_t n)
{
    return store->calls->windows(store, at, out, n);
}

static inline void
store_producer_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store->calls->producer_stats(store, stat_fn, context);
}

/* The store's calls for a dump of a counter; see struct store_dump. */

static inline enum store_answer
store_dump(struct store *store, struct store_dump *dump)
{
    return store->calls->dump(store, dump);
}

/* Gives back what a dump holds; does nothing where no call has been made. Any
 * thread; no call of it is under way. */
static inline void
store_end_dump(struct store *store, struct store_dump *dump)
{
    if (dump->work != NULL) {
        store->calls->end_dump(store, dump);
    }
}

static inline enum store_answer
store_backup(struct store *store, struct store_backup *backup)
{
    return store->calls->backup(store, backup);
}

/* Its files may go. 0, also where it keeps nothing; ERR_BACKUP_GONE where some
 * may have gone before. Any thread; no call of it is under way. */
static inline int
store_end_backup(struct store *store, struct store_backup *backup)
{
    return backup->work == NULL ? 0 : store->calls->end_backup(store, backup);
}

#endif

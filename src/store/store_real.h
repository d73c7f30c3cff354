/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_REAL_H
#define STORE_STORE_REAL_H

#include "about/abouts.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/rwlock.h"
#include "call/store_calls.h"
#include "durable/checkpoint.h"
#include "durable/durable.h"
#include "durable/producers.h"
#include "names/names.h"
#include "store/applier.h"
#include "store/dumper.h"
#include "store/gardener.h"
#include "store/keeper.h"
#include "store/remover.h"
#include "store/sorter.h"
#include "store/store.h"
#include "store/store_life.h"
#include "tier/tier.h"

#include <pthread.h>

/* The inside of a store of store_create: store.c makes and ends it,
 * store_repl.c has its role among others that are copies of its directory. */

enum { REAL_MAGIC = 0x73746f72 };

struct real_store {
    struct store store; /* first: the seam */
    uint32_t magic;     /* REAL_MAGIC */
    _Atomic int life;   /* enum store_life */
    struct qsbr qsbr;
    _Atomic(const struct schema *) schema;
    _Atomic(const struct moved *) moved;
    struct engine *engine;
    struct abouts *abouts; /* the columns of members=about */
    _Atomic uint64_t names_rounds, names_dropped; /* struct store has their
                                                   * addresses */
    struct producers producers;
    struct keeper keeper;
    struct dumper dumper;
    struct sorter sorter;
    struct remover remover;
    struct gardener gardener;
    bool has_gardener;
    const struct clock *clock;

    /* Where there is a data directory: */
    bool is_durable;
    bool wants_last_checkpoint;
    _Atomic bool wants_checkpoint; /* asked for while it loads */
    struct durable durable;
    struct tier tier;
    bool has_tier;
    struct checkpointer checkpointer; /* runs where has_loaded */
    struct applier applier;           /* runs where has_applier */
    bool is_replica;                  /* from the start on */
    bool has_applier; /* the loader's, then that of who makes it a replica */
    struct schema *loading; /* the loader's, until it is published */
    pthread_t loader;
    bool has_loaded;              /* the loader's, until it is joined */
    struct rwlock listeners_lock; /* shared during calls */
    struct store_listener *listeners;
    struct wal_listener log_listener;
};

static inline struct real_store *
store__real(struct store *store)
{
    struct real_store *real = (struct real_store *)store;
    ASSERT(real->magic == REAL_MAGIC);
    return real;
}

static inline enum store_life
store__life(struct real_store *real)
{
    /* acquire: who sees that it does not load sees all that has been loaded,
     * and the checkpointer and the sealer */
    return (enum store_life)atomic_load_explicit(
        &real->life, memory_order_acquire);
}

/* Batches of another server's log are applied from now on. All is loaded. 0,
 * ERR_NO_MEMORY, ERR_NO_THREAD. */
int store__begin_to_follow(struct real_store *real);

/* They are not any more, if they were. */
void store__cease_to_follow(struct real_store *real);

#endif

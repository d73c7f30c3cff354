/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_GARDENER_H
#define STORE_GARDENER_H

#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "items/items.h"
#include "store/forgetter.h"
#include "store/name_walk.h"
#include "tier/cold_call.h"

#include <pthread.h>
#include <stdbool.h>

/* The gardener: one thread that packs tables which have stopped growing, joins
 * sparse ones and frees what readers have left, so that no worker's loop has
 * to (engine_tend); that gives up expired items (items_tend); that takes out
 * forgotten marks (forgetter_step) and names without a record
 * (name_walk_step); and that ends waits for room (cold_expire). */
enum { GARDENER_MAGIC = 0x67617264 };

struct gardener {
    uint32_t magic; /* GARDENER_MAGIC, while it runs */
    struct engine *engine;
    struct items *items; /* NULL: there are none */
    struct cold *cold;   /* NULL: there is no cold tier */
    const struct clock *clock;
    struct forgetter forgetter;
    struct name_walk name_walk; /* magic 0: there are no names */
    struct mutex turn;          /* held while it changes records; guards: */
    bool follows;               /* see gardener_follow */
    pthread_t thread;
    struct mutex lock; /* stopping */
    pthread_cond_t changed;
    bool stopping;
};

/* name_walk, items, cold: or NULL. The engine is what forgetter has. All
 * outlive it. follows: as gardener_follow. 0 or ERR_NO_THREAD. */
int gardener_start(struct gardener *gardener,
    const struct forgetter_config *forgetter,
    const struct name_walk_config *name_walk, struct items *items,
    struct cold *cold, const struct clock *clock, bool follows);

/* From now on the store is a replica, or none, as at first: then the gardener
 * changes no record, neither marks that are forgotten nor pairs of numbers that
 * were given up, and takes no name out, for that comes from the primary as
 * well. Returns when nothing of the kind is under way. Any thread. */
void gardener_follow(struct gardener *gardener, bool follows);

/* Returns when the thread has ended. */
void gardener_stop(struct gardener *gardener);

#endif

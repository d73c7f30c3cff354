/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_PRODUCERS_H
#define DURABLE_PRODUCERS_H

#include "base/mutex.h"
#include "call/call.h"
#include "engine/engine.h"
#include "engine/marks.h"
#include "wal/producers.h"

#include <stdbool.h>
#include <stdint.h>

/* Who numbers its changes, and which numbers have been seen: by producer and
 * shard a window of SEEN_WINDOW numbers. Part of the store; nobody else calls
 * it.
 *
 * A producer has a slot here, and a serial that is never given to another one;
 * windows have the serial, too, so that a slot can be used again. The lock may
 * be held while that of a shard is taken, never the other way round. */

enum { PRODUCERS_MAX_DEFAULT = 1024 };

struct durable; /* durable/durable.h */

/* What one shard has seen of one slot's producer. */
struct producers_mark {
    uint32_t serial; /* of whom; where it is higher than that of a change, the
                      * change's producer has been dropped */
    struct seen_window seen;
};

struct producers_slot {
    uint32_t serial; /* 0: nobody's */
    struct producer_name name;
    struct producers_mark *mark; /* one a shard, each under its shard's lock;
                                  * owned, from the slot's first use to the
                                  * end; NULL before */
};

struct producers {
    struct engine_marks marks; /* first: the engine's seam */
    unsigned n_shards;
    uint32_t n_max;          /* beyond, new ones are refused */
    struct durable *durable; /* NULL: nothing is logged */
    /* Exchanged and made longer only while nothing but the loader runs; what
     * is in it but the marks is under the lock. */
    struct producers_slot *slot; /* n_slots, owned */
    uint32_t n_slots;
    struct mutex lock; /* all below */
    uint32_t n;
    uint32_t last_serial;
    uint32_t *by_name, *by_serial; /* owned: slot + 1, 0: none; a power of two,
                                    * at least twice n_slots */
    uint32_t index_mask;
};

/* n_max: 1..PRODUCERS_MAX. 0 or ERR_NO_MEMORY. */
int producers_init(struct producers *producers, unsigned n_shards,
    uint32_t n_max, struct durable *durable);
void producers_fini(struct producers *producers);

/* Who that is; one that is not known becomes so, and the log is told before
 * this returns. The name is right. 0, ERR_MANY_PRODUCERS, ERR_NO_MEMORY. Never
 * waits for the disk; any thread, without a shard's lock. */
int producers_find(struct producers *producers, const char *name, size_t len,
    struct store_producer *out);

/* Joins what the producer of that name (which is right) has seen elsewhere with
 * what each shard has seen of it: a number that stands for a change that was
 * done there is taken for a repeat here. One that is not known becomes so. The
 * window is not empty. *seq: what must be durable before the answer; 0: nothing
 * is logged. As producers_find. */
int producers_join(struct producers *producers, struct engine *engine,
    const struct producer_name *name, const struct seen_window *seen,
    uint64_t *seq);

/* The other way: what each of the producers from slot *at on has seen, joined
 * over all shards, of up to n of them that have seen anything, to out; returns
 * how many. *at moves behind the last one that was looked at; there are no more
 * where it is UINT32_MAX. One that is there all the while is in exactly one
 * answer. Any thread, without a shard's lock. */
enum { PRODUCERS_JOINED_MAX = 16 /* n */ };
uint32_t producers_joined(struct producers *producers, struct engine *engine,
    uint32_t *at, struct store_window *out, uint32_t n);

/* Forgets a producer with all its numbers. Changes of it that are under way are
 * refused from then on. *seq: what must be durable before the answer; 0:
 * nothing. 0 or ERR_NO_PRODUCER. Any thread, without a shard's lock. */
int producers_drop(struct producers *producers, struct engine *engine,
    const struct producer_name *name, uint64_t *seq);

/* Adds them all, with what their shards have seen, to *out, which is empty:
 * shard by shard, each at a moment of its own. What is in it has been told to
 * the log when this returns. 0 or ERR_NO_MEMORY; *out is the caller's in any
 * case. Any thread, without a shard's lock. */
int producers__list(struct producers *producers, struct engine *engine,
    struct producers_list *out);

/* Calls fn for each, by slot, under the lock. Any thread, without a shard's
 * lock. */
void producers_each(struct producers *producers,
    void (*fn)(
        void *context, uint32_t serial, const struct producer_name *name),
    void *context);

/* Calls stat_fn for each line of `stats producers`, of the first
 * PRODUCERS_STATS_MAX ones by age. */
enum { PRODUCERS_STATS_MAX = 1000 };
void producers_each_stat(struct producers *producers, struct engine *engine,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context);

/* The loader's, while nothing else runs; all are idempotent, so that a log may
 * be read behind a list that has part of it already. */

/* Takes what a manifest has. 0 or ERR_NO_MEMORY. */
int producers__load(
    struct producers *producers, const struct producers_list *list);

/* What the log says of producers: 0 or ERR_NO_MEMORY. One that is made under a
 * name in use puts an end to the older one: a salvaged log need not have that
 * it was dropped. For the same reason there may be one above PRODUCERS_MAX: the
 * oldest one goes then, and that is told. */
int producers__replay_made(struct producers *producers, uint32_t serial,
    const struct producer_name *name);
void producers__replay_dropped(struct producers *producers, uint32_t serial);

/* A number that was seen; of a producer that is gone, or was never described,
 * it is passed over, but its serial is nobody else's either. Several threads
 * may call this for different shards. 0, or ERR_CORRUPT where there is no such
 * shard. */
int producers__replay_number(struct producers *producers, uint32_t serial,
    uint16_t shard, uint64_t number);

/* What was joined with all shards: likewise; one thread, and no other is at
 * numbers. */
void producers__replay_joined(struct producers *producers, uint32_t serial,
    const struct seen_window *seen);

/* The applier's, of a replica (store/applier.h), where nobody else makes or
 * drops producers or numbers changes; all are idempotent. One thread at a time;
 * others may list them meanwhile.
 *
 * Made: 0, ERR_NO_MEMORY, or ERR_MANY_PRODUCERS where there are n_max: the
 * primary may have more. A number: 0, or ERR_CORRUPT where there is no such
 * shard. */
int producers_apply_made(struct producers *producers, struct engine *engine,
    uint32_t serial, const struct producer_name *name);
void producers_apply_dropped(
    struct producers *producers, struct engine *engine, uint32_t serial);
void producers_apply_joined(struct producers *producers, struct engine *engine,
    uint32_t serial, const struct seen_window *seen);
int producers_apply_number(struct producers *producers, struct engine *engine,
    uint32_t serial, uint16_t shard, uint64_t number);

#endif

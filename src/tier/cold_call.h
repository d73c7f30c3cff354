/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_COLD_CALL_H
#define TIER_COLD_CALL_H

#include "base/assert.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "call/call.h"
#include "call/ring.h"
#include "cold/fetch.h"
#include "tier/cold_count.h"
#include "tier/cold_take_out.h"
#include "tier/segment_map.h"

struct cold_change;

enum { COLD_MAGIC = 0x2ad91c67, COLD_RING_MAGIC = 0x6f35e80b };

/* Changes that wait, the one that has waited longest first. */
struct cold_changes {
    struct cold_change *first; /* NULL: none */
    struct cold_change *last;  /* while there is one */
};

/* Calls of the store about records that may be cold. Part of the store; nobody
 * else calls it. All members outlive the calls under way. */
struct cold {
    uint32_t magic; /* COLD_MAGIC */
    struct segment_map segment_map;
    struct engine *engine;
    struct fetch *fetch;
    const struct clock *clock;     /* of the waits for room */
    _Atomic unsigned era;          /* 0 or 1: of changes that begin now */
    _Atomic uint32_t n_changes[2]; /* under way, be it for a block or for room;
                                    * by the era in which they have begun */
    _Atomic uint64_t room_waits;   /* calls that had to wait for room, counted
                                    * under lock; a figure */
    struct mutex lock;             /* all below */
    struct cold_changes waiting;   /* for room in the hot memory */
    bool makes_room;               /* the sealer can make some */
    struct cold_taking taking;     /* the tending thread's, and: */
    struct cold_counting counting;
};

/* What the store_ring of a call is: tier_open_ring makes no other. */
struct cold_ring {
    struct store_ring ring;
    uint32_t magic;           /* COLD_RING_MAGIC */
    struct fetch_ring *fetch; /* owned */
};

/* NULL where ring is NULL. */
static inline struct fetch_ring *
cold_ring_fetch(const struct store_ring *ring)
{
    const struct cold_ring *own = (const struct cold_ring *)ring;
    ASSERT(own == NULL || own->magic == COLD_RING_MAGIC);
    return own == NULL ? NULL : own->fetch;
}

/* The engine has answered get; finds what it does not have in the segments.
 * STORE_DONE, or STORE_LATER as in call.h. An online reader. */
enum store_answer cold_get(struct cold *cold, struct store_get *get);

/* The same for a get with sources, which the engine has not answered: where a
 * source is in a segment, its version is held before the cells are looked
 * for. */
enum store_answer cold_get_sources(struct cold *cold, struct store_get *get);

/* The engine has answered the changes; does those that need a cold record
 * (ERR_COLD), and has those that need room wait for it (ERR_HOT_FULL) up to a
 * second. STORE_DONE, or STORE_LATER as in call.h. */
enum store_answer cold_change(struct cold *cold, struct store_change *change);

/* Before the sealer has looked for the first time: makes_room, and who finds no
 * room waits for it. Any thread. */
void cold__begin(struct cold *cold, bool makes_room);

/* There may be room: makes the changes again that wait for it, those that have
 * waited longest first; what is refused again waits on, in its place.
 * makes_room: and there may be more later. The sealer's thread. */
void cold__retry(struct cold *cold, bool makes_room);

/* True where a change waits, for a block or for room: it is still to be made.
 * What is not under way when none can begin any more has been made. Any
 * thread. */
bool cold_has_changes(struct cold *cold);

/* From now on changes begin another era. Behind a grace period of readers none
 * begins in the one before any more, and cold_is_era_over tells when all of
 * these have been made. One thread at a time, and not before the last one that
 * was begun is over. */
void cold_begin_era(struct cold *cold);
bool cold_is_era_over(struct cold *cold);

/* True where a change has waited for room for a quarter of a second, though it
 * is made again every so often. Any thread. */
bool cold__waits_long(struct cold *cold);

/* Answers the changes that have waited for room for a second, however long the
 * sealer takes for what it is at. To be called every so often; any thread. */
void cold_expire(struct cold *cold);

#endif

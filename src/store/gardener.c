/* SPDX-License-Identifier: BSD-3-Clause */
/* The gardener's thread wakes every ROUND_MS and calls items_tend, engine_tend,
 * forgetter_step, name_walk_step, cold_take_out, cold_count and cold_expire. It
 * is an online reader only while it looks at the schema for marks, at their
 * sources and at names, and while it deletes a batch of members in segments, so
 * it delays no grace period. On a replica it changes no records
 * (gardener_follow). */
#include "store/gardener.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/members.h"

enum {
    ROUND_MS = 50,
    TENDS_A_ROUND = 4,
    COLD_MS = 15, /* a round, for members in segments */
    LAST_MS = 5000,
    TENDED_MAX = 2000 /* items in one of them */
};
#define NS_PER_MS UINT64_C(1000000)

/* False when it is time to end. */
static bool
sleep_a_round(struct gardener *gardener)
{
    uint64_t until_ns = clock_now_ns(gardener->clock) + ROUND_MS * NS_PER_MS;
    mutex_lock(&gardener->lock);
    while (!gardener->stopping &&
        clock_cond_wait(
            gardener->clock, &gardener->changed, &gardener->lock, until_ns)) {
    }
    bool goes_on = !gardener->stopping;
    mutex_unlock(&gardener->lock);
    return goes_on;
}

/* Up to 160,000 items a second, where each takes some 100 ns. */
static void
tend_items(struct items *items)
{
    for (unsigned i = 0; i < TENDS_A_ROUND; i++) {
        if (!items_tend(items, clock_monotonic_s(), TENDED_MAX)) {
            return;
        }
    }
}

/* Members that are in segments: some ms a call where the blocks are in memory,
 * and reads of the disk where they are not. */
static void
take_out_cold(struct cold *cold)
{
    uint64_t end_ns = clock_monotonic_ns() + COLD_MS * NS_PER_MS;
    while ((cold_take_out(cold) || cold_count(cold)) &&
        clock_monotonic_ns() < end_ns) {
    }
}

/* True where something was taken out of what was still to be. */
static bool
take_out_more(struct gardener *gardener)
{
    return engine_take_out(gardener->engine) ||
        (gardener->cold != NULL && cold_take_out(gardener->cold));
}

/* A start would have to look for what was still to be taken out, so a stop
 * waits a while for it. */
static void
take_out_rest(struct gardener *gardener)
{
    uint64_t end_ns = clock_monotonic_ns() + LAST_MS * NS_PER_MS;
    while (take_out_more(gardener) && clock_monotonic_ns() < end_ns) {
    }
}

static void
tend_records(struct gardener *gardener)
{
    uint64_t now_ms = clock_now_ns(gardener->clock) / NS_PER_MS;
    mutex_assert_held(&gardener->turn);
    (void)engine_tend(gardener->engine, now_ms);
    if (gardener->name_walk.magic != 0) {
        name_walk_step(&gardener->name_walk, now_ms, !gardener->follows);
    }
    if (gardener->follows) {
        return;
    }
    (void)forgetter_step(&gardener->forgetter, now_ms);
    if (gardener->cold != NULL) {
        take_out_cold(gardener->cold);
    }
}

static void *
run(void *arg)
{
    struct gardener *gardener = arg;
    while (sleep_a_round(gardener)) {
        ASSERT(gardener->magic == GARDENER_MAGIC);
        if (gardener->cold != NULL) {
            cold_expire(gardener->cold);
        }
        if (gardener->items != NULL) {
            tend_items(gardener->items);
        }
        mutex_lock(&gardener->turn);
        tend_records(gardener);
        mutex_unlock(&gardener->turn);
    }
    mutex_lock(&gardener->turn);
    if (!gardener->follows) {
        take_out_rest(gardener);
    }
    mutex_unlock(&gardener->turn);
    return NULL;
}

void
gardener_follow(struct gardener *gardener, bool follows)
{
    ASSERT(gardener->magic == GARDENER_MAGIC);
    mutex_lock(&gardener->turn);
    gardener->follows = follows;
    engine_follow(gardener->engine, follows);
    if (!follows && gardener->cold != NULL) {
        cold_look_anew(gardener->cold);
    }
    mutex_unlock(&gardener->turn);
}

static void
fini_name_walk(struct gardener *gardener)
{
    if (gardener->name_walk.magic != 0) {
        name_walk_fini(&gardener->name_walk);
    }
}

int
gardener_start(struct gardener *gardener,
    const struct forgetter_config *forgetter,
    const struct name_walk_config *name_walk, struct items *items,
    struct cold *cold, const struct clock *clock, bool follows)
{
    ASSERT(clock != NULL);
    *gardener = (struct gardener){.magic = GARDENER_MAGIC,
        .engine = forgetter->engine,
        .items = items,
        .cold = cold,
        .clock = clock,
        .follows = follows};
    engine_follow(gardener->engine, follows);
    forgetter_init(&gardener->forgetter, forgetter);
    if (name_walk != NULL) {
        name_walk_init(&gardener->name_walk, name_walk);
    }
    mutex_init(&gardener->lock);
    mutex_init(&gardener->turn);
    clock_cond_init(&gardener->changed);
    if (pthread_create(&gardener->thread, NULL, run, gardener) != 0) {
        pthread_cond_destroy(&gardener->changed);
        mutex_fini(&gardener->turn);
        mutex_fini(&gardener->lock);
        forgetter_fini(&gardener->forgetter);
        fini_name_walk(gardener);
        gardener->magic = 0;
        return ERR_NO_THREAD;
    }
    return 0;
}

void
gardener_stop(struct gardener *gardener)
{
    ASSERT(gardener->magic == GARDENER_MAGIC);
    mutex_lock(&gardener->lock);
    ASSERT(!gardener->stopping);
    gardener->stopping = true;
    pthread_cond_signal(&gardener->changed);
    mutex_unlock(&gardener->lock);
    pthread_join(gardener->thread, NULL);
    pthread_cond_destroy(&gardener->changed);
    mutex_fini(&gardener->turn);
    mutex_fini(&gardener->lock);
    forgetter_fini(&gardener->forgetter);
    fini_name_walk(gardener);
    gardener->magic = 0;
}

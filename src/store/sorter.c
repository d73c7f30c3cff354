/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread makes all arrays of members, one after the other: each takes as
 * long as a walk through the tables that have the members, and a worker does
 * not wait for that. Where some call waits for the array that another one asks
 * for, it is there when its turn comes. A stop ends the walk under way before
 * its next piece, and begins none for the calls that wait. */
#include "store/sorter.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/members.h"
#include "tier/cold_members.h"

#include <stddef.h>

enum { WALK_MAX = 512 };

static bool
is_stopping(const struct sorter *sorter)
{
    /* relaxed: a moment sooner or later makes no difference */
    return atomic_load_explicit(&sorter->is_stopping, memory_order_relaxed);
}

/* Those of the engine and of segments. */
static int
next_members(const struct sorted_walk *walk, const struct sorted_key *key,
    uint64_t from, size_t n, uint64_t *member, size_t *n_found)
{
    const struct sorter *sorter = (const struct sorter *)((const char *)walk -
        offsetof(struct sorter, walk));
    const struct cold_record record = {.id = key->id,
        .number = key->number,
        .serial = key->serial,
        .pairs = key->pairs,
        .bits = key->bits};
    uint64_t value[WALK_MAX], next;
    ASSERT(sorter->magic == SORTER_MAGIC && n <= WALK_MAX);
    if (is_stopping(sorter)) {
        return ERR_CLOSED;
    }
    if (sorter->segment_map == NULL) {
        *n_found = engine_members(sorter->engine, key->pairs, key->id,
            key->number, key->bits, from, n, member, value);
        return 0;
    }
    int err = cold_members(
        sorter->segment_map, &record, from, n, member, value, n_found, &next);
    ASSERT(err != 0 || *n_found == n || next >> key->bits != 0);
    bool is_of_disk =
        err == ERR_CORRUPT || err == ERR_NEWER_FORMAT || err == ERR_DISK;
    return is_of_disk ? ERR_COLD_READ : err;
}

/* The next call; NULL at the end. */
static struct store_pin *
wait_for_call(struct sorter *sorter)
{
    mutex_lock(&sorter->lock);
    while (sorter->queue.first == NULL && !is_stopping(sorter)) {
        mutex_wait(&sorter->lock, &sorter->changed);
    }
    /* call is the first member */
    struct store_pin *pin =
        (struct store_pin *)call_queue_take(&sorter->queue);
    mutex_unlock(&sorter->lock);
    return pin;
}

/* What the call still lacks; at a stop, nothing. */
static void
make_rest(struct sorter *sorter, struct store_pin *pin)
{
    for (uint32_t i = 0; i < pin->n; i++) {
        struct store_members *it = &pin->members[i];
        if (it->err == ERR_NOT_FOUND) {
            it->err = is_stopping(sorter)
                ? ERR_CLOSED
                : engine_make_sorted(
                      sorter->engine, &it->key, &sorter->walk, &it->pin);
        }
    }
    pin->call.done_fn(&pin->call);
}

static void *
run(void *arg)
{
    struct sorter *sorter = arg;
    struct store_pin *pin;
    ASSERT(sorter->magic == SORTER_MAGIC);
    while ((pin = wait_for_call(sorter)) != NULL) {
        make_rest(sorter, pin);
    }
    return NULL;
}

int
sorter_start(struct sorter *sorter, struct engine *engine,
    struct segment_map *segment_map)
{
    *sorter = (struct sorter){.magic = SORTER_MAGIC,
        .engine = engine,
        .segment_map = segment_map,
        .walk = {.next_fn = next_members}};
    mutex_init(&sorter->lock);
    pthread_cond_init(&sorter->changed, NULL);
    if (pthread_create(&sorter->thread, NULL, run, sorter) != 0) {
        sorter_fini(sorter);
        return ERR_NO_THREAD;
    }
    return 0;
}

void
sorter_stop(struct sorter *sorter)
{
    mutex_lock(&sorter->lock);
    bool was_stopping = is_stopping(sorter);
    /* relaxed: who waits, and who adds a call, holds the lock */
    atomic_store_explicit(&sorter->is_stopping, true, memory_order_relaxed);
    pthread_cond_signal(&sorter->changed);
    mutex_unlock(&sorter->lock);
    if (!was_stopping) {
        pthread_join(sorter->thread, NULL);
    }
}

void
sorter_fini(struct sorter *sorter)
{
    ASSERT(sorter->magic == SORTER_MAGIC && sorter->queue.first == NULL);
    sorter->magic = 0;
    pthread_cond_destroy(&sorter->changed);
    mutex_fini(&sorter->lock);
}

/* Those whose arrays are there: true where some are not, ERR_NOT_FOUND. */
static bool
pin_some(struct sorter *sorter, struct store_pin *pin)
{
    bool lacks_some = false;
    for (uint32_t i = 0; i < pin->n; i++) {
        struct store_members *it = &pin->members[i];
        it->err =
            engine_pin(sorter->engine, &it->key, &it->pin) ? 0 : ERR_NOT_FOUND;
        lacks_some |= it->err != 0;
    }
    return lacks_some;
}

enum store_answer
sorter_pin(struct sorter *sorter, struct store_pin *pin)
{
    ASSERT(sorter->magic == SORTER_MAGIC);
    if (!pin_some(sorter, pin)) {
        return STORE_DONE;
    }
    mutex_lock(&sorter->lock);
    bool is_taken = !is_stopping(sorter);
    if (is_taken) {
        call_queue_add(&sorter->queue, &pin->call);
        pthread_cond_signal(&sorter->changed);
    }
    mutex_unlock(&sorter->lock);
    for (uint32_t i = 0; !is_taken && i < pin->n; i++) {
        if (pin->members[i].err == ERR_NOT_FOUND) {
            pin->members[i].err = ERR_CLOSED;
        }
    }
    return is_taken ? STORE_LATER : STORE_DONE;
}

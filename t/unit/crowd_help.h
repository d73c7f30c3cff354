/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_CROWD_HELP_H
#define UNIT_CROWD_HELP_H

/* An engine among threads: some write, one tends its tables while any of them
 * does, and a journal has what the sink was told. Threads use ASSERT. */

#include "lib/replica.h"
#include "unit/engine_help.h"

#include <sched.h>
#include <stdatomic.h>

struct crowd {
    struct engine *engine;
    struct qsbr qsbr;
    struct journal journal;
    atomic_uint n_writing; /* threads that have not left */
    pthread_t tender;
};

/* With tables so small that they split and merge all the time. The journal is
 * not yet the engine's. */
static inline void
crowd_init(struct crowd *crowd, unsigned shards, uint32_t table_records_max,
    unsigned writers)
{
    qsbr_init(&crowd->qsbr);
    struct engine_config config = {.shards = shards,
        .seed = 2,
        .hot_bytes = ROOMY_BYTES,
        .qsbr = &crowd->qsbr,
        .table_records_max = table_records_max};
    crowd->engine = engine_of(&config);
    journal_init(&crowd->journal);
    atomic_init(&crowd->n_writing, writers);
}

static inline void
crowd_fini(struct crowd *crowd)
{
    finish_engine(&crowd->engine);
    qsbr_fini(&crowd->qsbr);
    journal_fini(&crowd->journal);
}

static inline bool
crowd_is_writing(struct crowd *crowd)
{
    /* acquire: what writers did is done */
    return atomic_load_explicit(&crowd->n_writing, memory_order_acquire) > 0;
}

/* Each writer's last call. */
static inline void
crowd_leave(struct crowd *crowd)
{
    /* release: seen as over by others, see above */
    atomic_fetch_sub_explicit(&crowd->n_writing, 1, memory_order_release);
}

static inline void *
crowd_tend(void *context)
{
    struct crowd *crowd = context;
    uint64_t now_ms = 0;
    while (crowd_is_writing(crowd)) {
        (void)engine_tend(crowd->engine, now_ms += 700);
        sched_yield();
    }
    return NULL;
}

/* Starts the thread that tends, and waits for its end. */
static inline void
crowd_start_tender(struct crowd *crowd)
{
    ck_assert_int_eq(
        pthread_create(&crowd->tender, NULL, crowd_tend, crowd), 0);
}

static inline void
crowd_join_tender(struct crowd *crowd)
{
    ck_assert_int_eq(pthread_join(crowd->tender, NULL), 0);
}

#endif

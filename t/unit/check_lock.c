/* SPDX-License-Identifier: BSD-3-Clause */
/* base/lock: threads that count under a lock, some of which lose their core
 * while they hold it; a holder that sleeps; conditions, with and without a
 * time. Run it under TSan too. */
#include "base/lock.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/sanitizer.h"
#include "unit/survives.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#if SANITIZER_THREAD
#define SLOWNESS 6
#elif SANITIZER_ADDRESS
#define SLOWNESS 3
#else
#define SLOWNESS 1
#endif

enum {
    THREADS = 4,
    ROUNDS = 200000 / SLOWNESS,
    YIELDS = 64, /* each of so many rounds loses its core inside */
    NAPS = 5000, /* and each of these sleeps there */
    TURNS = 3000 / SLOWNESS,
    NS_PER_MS = 1000000
};

struct stage {
    struct lock lock;
    uint64_t n, twice; /* under the lock: twice == 2 * n */
    struct lock_cond cond;
    unsigned turn; /* of which thread */
    bool is_over;
};

struct actor {
    struct stage *stage;
    unsigned number;
    pthread_t thread;
};

static void
nap(void)
{
    const struct timespec time = {.tv_nsec = 50000};
    nanosleep(&time, NULL);
}

static void
start(struct actor *actor, struct stage *stage, void *(*run)(void *arg))
{
    for (unsigned i = 0; i < THREADS; i++) {
        actor[i] = (struct actor){.stage = stage, .number = i};
        ck_assert_int_eq(
            pthread_create(&actor[i].thread, NULL, run, &actor[i]), 0);
    }
}

static void
join(const struct actor *actor)
{
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(actor[i].thread, NULL), 0);
    }
}

static void *
count(void *arg)
{
    const struct actor *actor = arg;
    struct stage *stage = actor->stage;
    for (unsigned i = 0; i < ROUNDS; i++) {
        lock_take(&stage->lock);
        ASSERT(stage->twice == 2 * stage->n);
        stage->n++;
        if (i % YIELDS == actor->number) {
            sched_yield();
        }
        if (i % NAPS == actor->number) {
            nap();
        }
        stage->twice += 2;
        lock_leave(&stage->lock);
    }
    return NULL;
}

START_TEST(test_count)
{
    struct stage stage = {0};
    struct actor actor[THREADS];
    start(actor, &stage, count);
    join(actor);
    ck_assert_uint_eq(stage.n, (uint64_t)THREADS * ROUNDS);
    ck_assert_uint_eq(atomic_load(&stage.lock.owner), 0);
    ck_assert_uint_eq(atomic_load(&stage.lock.n_waiting), 0);
}
END_TEST

static void *
take_once(void *arg)
{
    const struct actor *actor = arg;
    lock_take(&actor->stage->lock);
    actor->stage->n++;
    lock_leave(&actor->stage->lock);
    return NULL;
}

/* All wait until the holder has slept, and sleep themselves. */
START_TEST(test_holder_sleeps)
{
    struct stage stage = {0};
    struct actor actor[THREADS];
    lock_take(&stage.lock);
    start(actor, &stage, take_once);
    while (atomic_load(&stage.lock.n_waiting) < THREADS) {
        nap();
    }
    ck_assert_uint_eq(stage.n, 0);
    lock_leave(&stage.lock);
    join(actor);
    ck_assert_uint_eq(stage.n, THREADS);
}
END_TEST

/* Threads have their turns in order: each waits for its own. */
static void *
take_turns(void *arg)
{
    const struct actor *actor = arg;
    struct stage *stage = actor->stage;
    lock_take(&stage->lock);
    for (unsigned i = 0; i < TURNS; i++) {
        while (stage->turn != actor->number) {
            lock_cond_wait(
                &stage->cond, &stage->lock, &clock_system, LOCK_NEVER);
        }
        stage->turn = (stage->turn + 1) % THREADS;
        stage->n++;
        lock_cond_call(&stage->cond, &stage->lock);
    }
    lock_leave(&stage->lock);
    return NULL;
}

START_TEST(test_turns)
{
    struct stage stage = {0};
    struct actor actor[THREADS];
    start(actor, &stage, take_turns);
    join(actor);
    ck_assert_uint_eq(stage.n, (uint64_t)THREADS * TURNS);
    ck_assert_uint_eq(stage.cond.n_waiting, 0);
}
END_TEST

/* Nobody calls: the wait ends by the clock, and not before. */
START_TEST(test_time)
{
    struct stage stage = {0};
    uint64_t until_ns = clock_monotonic_ns() + 5 * NS_PER_MS;
    lock_take(&stage.lock);
    while (clock_monotonic_ns() < until_ns) {
        lock_cond_wait(&stage.cond, &stage.lock, &clock_system, until_ns);
    }
    lock_cond_wait(
        &stage.cond, &stage.lock, &clock_system, until_ns); /* it is past */
    lock_cond_call(&stage.cond, &stage.lock);               /* nobody waits */
    ck_assert_uint_eq(atomic_load(&stage.cond.n_calls), 0);
    lock_leave(&stage.lock);
}
END_TEST

static void *
wait_long(void *arg)
{
    const struct actor *actor = arg;
    struct stage *stage = actor->stage;
    uint64_t until_ns = clock_monotonic_ns() + UINT64_C(3600000) * NS_PER_MS;
    lock_take(&stage->lock);
    while (!stage->is_over) {
        lock_cond_wait(&stage->cond, &stage->lock, &clock_system, until_ns);
    }
    lock_leave(&stage->lock);
    return NULL;
}

/* A call ends waits whose time has not come, of all. */
START_TEST(test_call)
{
    struct stage stage = {0};
    struct actor actor[THREADS];
    unsigned n_waiting = 0;
    start(actor, &stage, wait_long);
    while (n_waiting < THREADS) {
        lock_take(&stage.lock);
        n_waiting = stage.cond.n_waiting;
        stage.is_over = n_waiting == THREADS;
        if (stage.is_over) {
            lock_cond_call(&stage.cond, &stage.lock);
        }
        lock_leave(&stage.lock);
        sched_yield();
    }
    join(actor);
}
END_TEST

static void *
expect_not_held(void *arg)
{
    const struct actor *actor = arg;
    ck_assert(!lock_is_held(&actor->stage->lock));
    return NULL;
}

/* The lock is held by the thread that took it, and by no other. */
START_TEST(test_owner)
{
    struct stage stage = {0};
    struct actor actor[THREADS];
    ck_assert(!lock_is_held(&stage.lock));
    start(actor, &stage, expect_not_held);
    join(actor);
    lock_take(&stage.lock);
    lock_assert_held(&stage.lock);
    start(actor, &stage, expect_not_held);
    join(actor);
    lock_cond_wait(&stage.cond, &stage.lock, &clock_system, 0);
    lock_assert_held(&stage.lock);
    lock_leave(&stage.lock);
    ck_assert(!lock_is_held(&stage.lock));
}
END_TEST

static void
call_without(void *context)
{
    struct stage *stage = context;
    lock_cond_call(&stage->cond, &stage->lock);
}

static void
wait_without(void *context)
{
    struct stage *stage = context;
    lock_cond_wait(&stage->cond, &stage->lock, &clock_system, 0);
}

/* Who waits or calls has the lock. */
START_TEST(test_cond_without_lock)
{
    struct stage stage = {0};
    ck_assert(!survives(call_without, &stage));
    ck_assert(!survives(wait_without, &stage));
    lock_take(&stage.lock);
    ck_assert(survives(call_without, &stage));
    ck_assert(survives(wait_without, &stage));
    lock_leave(&stage.lock);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_count, test_holder_sleeps, test_turns,
        test_time, test_call, test_owner, test_cond_without_lock};
    return run_tests("lock", tests, COUNT_OF(tests));
}

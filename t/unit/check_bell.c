/* SPDX-License-Identifier: BSD-3-Clause */
/* net/bell and net/helpers: what other threads tell a loop, and have done for
 * it, is heard, all of it; and nothing is freed under somebody who rings. */
#include "net/bell.h"
#include "net/helpers.h"

#include "unit/worker_help.h"

#include <sched.h>

enum {
    SLOWNESS = SANITIZER_THREAD ? 6 : 1,
    RINGERS = 4,
    RINGS = 5000 / SLOWNESS,
    CHORES = 2000,
    YIELDS = 200
};

static struct bell bell;
static uv_loop_t loop;
static unsigned n_ringers;
static atomic_uint rung, heard;
static atomic_bool has_let_go;

static void
count(struct bell *one)
{
    atomic_store(&heard, atomic_load(&rung));
    if (atomic_load(&heard) == n_ringers * RINGS) {
        bell_close(one);
    }
}

/* Rings, each time when it has been heard. */
static void *
ring(void *arg)
{
    (void)arg;
    for (int i = 0; i < RINGS; i++) {
        bell_hold(&bell);
        unsigned number = atomic_fetch_add(&rung, 1) + 1;
        bell_ring(&bell);
        while (atomic_load(&heard) < number) {
            sched_yield();
        }
    }
    return NULL;
}

/* A ring that is not heard leaves its ringer waiting for ever. */
static void
hear_all(unsigned n)
{
    pthread_t thread[RINGERS];
    n_ringers = n;
    atomic_store(&rung, 0);
    atomic_store(&heard, 0);
    uv_loop_init(&loop);
    ck_assert_int_eq(bell_init(&bell, &loop, count), 0);
    for (unsigned i = 0; i < n; i++) {
        pthread_create(&thread[i], NULL, ring, NULL);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    bell_fini(&bell);
    ck_assert_uint_eq(atomic_load(&rung), n * RINGS);
    for (unsigned i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
    }
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* No other's ring helps it. */
START_TEST(test_each_ring_of_one_is_heard)
{
    hear_all(1);
}
END_TEST

START_TEST(test_rings_of_several_are_heard)
{
    hear_all(RINGERS);
}
END_TEST

static void *
hold_long(void *arg)
{
    bell_hold(&bell);
    pthread_barrier_wait(arg);
    for (int i = 0; i < YIELDS; i++) {
        sched_yield();
    }
    atomic_store(&has_let_go, true);
    bell_ring(&bell);
    return NULL;
}

static void
hear_nothing(struct bell *one)
{
    (void)one;
}

START_TEST(test_fini_waits_for_holders)
{
    pthread_barrier_t barrier;
    pthread_t thread;
    atomic_store(&has_let_go, false);
    pthread_barrier_init(&barrier, NULL, 2);
    uv_loop_init(&loop);
    ck_assert_int_eq(bell_init(&bell, &loop, hear_nothing), 0);
    pthread_create(&thread, NULL, hold_long, &barrier);
    pthread_barrier_wait(&barrier);
    bell_close(&bell);
    uv_run(&loop, UV_RUN_DEFAULT);
    bell_fini(&bell);
    ck_assert(atomic_load(&has_let_go));
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

static struct {
    atomic_uint done, ended, elsewhere;
} work;

static void
do_chore(struct chore *chore)
{
    if (pthread_equal(chore->worker->thread, pthread_self())) {
        atomic_fetch_add(&work.elsewhere, 1);
    }
    atomic_fetch_add(&work.done, 1);
}

static void
end_chore(struct chore *chore)
{
    if (!pthread_equal(chore->worker->thread, pthread_self())) {
        atomic_fetch_add(&work.elsewhere, 1);
    }
    atomic_fetch_add(&work.ended, 1);
}

static struct chore chores[CHORES];

/* Each is done by a helper and ended by its worker; those that nobody wants are
 * ended only. */
START_TEST(test_chores)
{
    struct helpers *helpers;
    struct rig rig;
    rig_init(&rig);
    rig_start(&rig);
    ck_assert_int_eq(helpers_start(&helpers), 0);
    for (int i = 0; i < CHORES; i++) {
        chores[i].worker = rig.worker[i % RIG_WORKERS];
        chores[i].do_fn = do_chore;
        chores[i].done_fn = end_chore;
        atomic_init(&chores[i].is_unwanted, i % 4 == 3);
        helpers_give(helpers, &chores[i]);
    }
    while (atomic_load(&work.ended) < CHORES) {
        sched_yield();
    }
    rig_stop(&rig);
    rig_join(&rig);
    helpers_stop(&helpers);
    ck_assert_ptr_null(helpers);
    ck_assert_uint_eq(atomic_load(&work.done), CHORES / 4 * 3);
    ck_assert_uint_eq(atomic_load(&work.ended), CHORES);
    ck_assert_uint_eq(atomic_load(&work.elsewhere), 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_each_ring_of_one_is_heard,
        test_rings_of_several_are_heard, test_fini_waits_for_holders,
        test_chores};
    return run_tests("bell", tests, COUNT_OF(tests));
}

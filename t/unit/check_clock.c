/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that is handed in: the system's, and the fake one, by which who
 * waits notices that time was passed, whatever it waits in. */
#include "base/lock.h"
#include "base/mutex.h"
#include "lib/fake_clock.h"
#include "unit/check_help.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#define NS_PER_MS UINT64_C(1000000)

enum { HOUR_MS = 3600000, WAYS = 3 };

START_TEST(test_system)
{
    struct lock lock = {0};
    struct lock_cond cond = {0};
    struct mutex mutex = MUTEX_INITIALIZER;
    pthread_cond_t changed;
    const struct clock *clock = clock_or_system(NULL);
    ck_assert_ptr_eq(clock, &clock_system);
    ck_assert_ptr_eq(clock_or_system(clock), clock);
    ck_assert_uint_eq(clock->calls->at(clock, 7), 7);
    ck_assert_uint_eq(clock->calls->wake(clock, 7), 7);
    ck_assert_uint_eq(clock_at_ms(clock, 7), 7);
    uint64_t before_ns = clock_monotonic_ns();
    uint64_t now_ns = clock_now_ns(clock);
    ck_assert(before_ns <= now_ns && now_ns <= clock_monotonic_ns());

    clock_sleep_until(clock, 0); /* it is past */
    clock_sleep_until(clock, now_ns + NS_PER_MS);
    ck_assert_uint_ge(clock_monotonic_ns(), now_ns + NS_PER_MS);

    clock_cond_init(&changed);
    mutex_lock(&mutex);
    ck_assert(!clock_cond_wait(clock, &changed, &mutex, now_ns));
    now_ns = clock_now_ns(clock);
    while (clock_cond_wait(clock, &changed, &mutex, now_ns + 2 * NS_PER_MS)) {
    }
    mutex_unlock(&mutex);
    ck_assert_uint_ge(clock_monotonic_ns(), now_ns + 2 * NS_PER_MS);
    pthread_cond_destroy(&changed);

    lock_take(&lock);
    lock_cond_wait(&cond, &lock, clock, now_ns);
    lock_leave(&lock);
}
END_TEST

/* It never says less than before, and who has to wait has to sleep. */
START_TEST(test_fake)
{
    struct fake_clock fake;
    const struct clock *clock = &fake.clock;
    fake_clock_init(&fake);
    uint64_t real_ns = clock_monotonic_ns();
    uint64_t now_ns = clock_now_ns(clock);
    ck_assert(real_ns <= now_ns && now_ns <= clock_monotonic_ns());
    ck_assert_uint_eq(clock_at_ms(clock, 5), 5);
    fake_clock_pass(&fake, HOUR_MS);
    ck_assert_uint_eq(
        clock->calls->at(clock, real_ns), real_ns + HOUR_MS * NS_PER_MS);
    ck_assert_uint_eq(clock_at_ms(clock, 5), HOUR_MS + 5);

    real_ns = clock_monotonic_ns();
    uint64_t wake_ns = clock->calls->wake(clock, UINT64_MAX);
    ck_assert_uint_ge(wake_ns, real_ns + NS_PER_MS);
    ck_assert_uint_le(wake_ns, clock_monotonic_ns() + NS_PER_MS);
    ck_assert_uint_le(clock->calls->wake(clock, 0), clock_monotonic_ns());

    fake_clock_stand(&fake);
    now_ns = clock_now_ns(clock);
    ck_assert_uint_ge(now_ns, real_ns + HOUR_MS * NS_PER_MS);
    clock_sleep_until(&clock_system, clock_monotonic_ns() + NS_PER_MS);
    ck_assert_uint_eq(clock_now_ns(clock), now_ns);
    ck_assert_uint_ge(
        clock->calls->wake(clock, now_ns + NS_PER_MS), real_ns + NS_PER_MS);
    fake_clock_pass(&fake, 1);
    ck_assert_uint_eq(clock_now_ns(clock), now_ns + NS_PER_MS);
    fake_clock_go(&fake);
    ck_assert_uint_ge(clock_now_ns(clock), now_ns + 2 * NS_PER_MS);
}
END_TEST

/* Who waits for a signal looks at what it waits for while the clock stands: a
 * signal may have come when nobody heard it. */
START_TEST(test_signal_unheard)
{
    struct mutex mutex = MUTEX_INITIALIZER;
    pthread_cond_t changed;
    struct fake_clock fake;
    fake_clock_init(&fake);
    fake_clock_stand(&fake);
    clock_cond_init(&changed);
    uint64_t until_ns = clock_now_ns(&fake.clock) + HOUR_MS * NS_PER_MS;
    pthread_cond_signal(&changed);
    mutex_lock(&mutex);
    ck_assert(clock_cond_wait(&fake.clock, &changed, &mutex, until_ns));
    mutex_unlock(&mutex);
    pthread_cond_destroy(&changed);
}
END_TEST

/* ---- who waits ---- */

struct waiter {
    unsigned way;
    struct fake_clock fake; /* stands */
    uint64_t until_ns;
    sem_t begins;
    _Atomic bool is_over;
    struct mutex mutex;
    pthread_cond_t changed;
    struct lock lock;
    struct lock_cond cond;
};

static void *
wait_until(void *arg)
{
    struct waiter *it = arg;
    const struct clock *clock = &it->fake.clock;
    (void)sem_post(&it->begins);
    switch (it->way) {
    case 0:
        clock_sleep_until(clock, it->until_ns);
        break;
    case 1:
        mutex_lock(&it->mutex);
        while (
            clock_cond_wait(clock, &it->changed, &it->mutex, it->until_ns)) {
        }
        mutex_unlock(&it->mutex);
        break;
    default:
        lock_take(&it->lock);
        while (clock_now_ns(clock) < it->until_ns) {
            lock_cond_wait(&it->cond, &it->lock, clock, it->until_ns);
        }
        lock_leave(&it->lock);
    }
    it->is_over = true;
    return NULL;
}

/* A wait of an hour ends when an hour is passed, and not a millisecond
 * before. */
START_TEST(test_jump)
{
    struct waiter it = {.way = (unsigned)_i, .mutex = MUTEX_INITIALIZER};
    pthread_t thread;
    fake_clock_init(&it.fake);
    fake_clock_stand(&it.fake);
    clock_cond_init(&it.changed);
    ck_assert_int_eq(sem_init(&it.begins, 0, 0), 0);
    it.until_ns = clock_now_ns(&it.fake.clock) + HOUR_MS * NS_PER_MS;
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_until, &it), 0);
    while (sem_wait(&it.begins) != 0) {
    }
    fake_clock_pass(&it.fake, HOUR_MS - 1);
    clock_sleep_until(&clock_system, clock_monotonic_ns() + 5 * NS_PER_MS);
    ck_assert(!it.is_over);
    fake_clock_pass(&it.fake, 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(it.is_over);
    pthread_cond_destroy(&it.changed);
    ck_assert_int_eq(sem_destroy(&it.begins), 0);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("clock");
    tcase_add_test(tcase, test_system);
    tcase_add_test(tcase, test_fake);
    tcase_add_test(tcase, test_signal_unheard);
    tcase_add_loop_test(tcase, test_jump, 0, WAYS);
    return run_case("clock", tcase);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The two clocks of the system, read through the vDSO: no system call. Both
 * always exist on Linux, so a failure is a broken machine and asserts; so does
 * one of the C library to make a condition, which takes no memory.
 *
 * The kernel knows CLOCK_MONOTONIC only. So who waits by another clock asks it
 * when to look again, waits until then, and looks. */
#include "base/clock.h"

#include "base/assert.h"
#include "base/mutex.h"

#include <errno.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

enum { US_PER_S = 1000000, US_PER_MS = 1000, NS_PER_US = 1000 };

#define SHIFTED_MAX_S UINT64_C(0xfffffff0)

static struct timespec
read_clock(clockid_t id)
{
    struct timespec now;
    int rv = clock_gettime(id, &now);

    ASSERT(rv == 0);
    return now;
}

static uint64_t
read_ns(clockid_t id)
{
    struct timespec now = read_clock(id);

    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t
clock_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t
clock_boottime_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

uint64_t
clock_monotonic_s(void)
{
    return (uint64_t)read_clock(CLOCK_MONOTONIC).tv_sec;
}

int64_t
clock_unix_s(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME).tv_sec;
}

int64_t
clock_unix_us(void)
{
    struct timespec now = read_clock(CLOCK_REALTIME);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

int64_t
clock__unix_ms(void)
{
    return clock_unix_us() / US_PER_MS;
}

/* The time s, moved; never before 1, nor after what 32 bits hold. */
static uint64_t
moved(uint64_t time_s, int64_t by_s)
{
    if (by_s < 0 && (uint64_t)-by_s >= time_s) {
        return 1;
    }
    time_s += (uint64_t)by_s;
    return time_s < SHIFTED_MAX_S ? time_s : SHIFTED_MAX_S;
}

uint64_t
clock_shifted_s(const struct clock_shift *shift)
{
    /* relaxed: each is a number on its own */
    uint64_t stopped_s =
        atomic_load_explicit(&shift->stopped_s, memory_order_relaxed);
    return stopped_s != 0
        ? stopped_s
        : moved(clock_monotonic_s(),
              atomic_load_explicit(&shift->shift_s, memory_order_relaxed));
}

int64_t
clock_shifted_unix_s(const struct clock_shift *shift)
{
    int64_t ahead_s =
        (int64_t)clock_shifted_s(shift) - (int64_t)clock_monotonic_s();
    return ahead_s +
        (shift->anchor_ns == 0
                ? clock_unix_s()
                : (shift->anchor_ns + (int64_t)clock_monotonic_ns()) /
                    (int64_t)NS_PER_S);
}

void
clock_shift_anchor(struct clock_shift *shift)
{
    shift->anchor_ns =
        (int64_t)read_ns(CLOCK_REALTIME) - (int64_t)clock_monotonic_ns();
}

void
clock_shift_stop(struct clock_shift *shift)
{
    /* relaxed, here and below: nothing else is told by these */
    atomic_store_explicit(
        &shift->stopped_s, clock_shifted_s(shift), memory_order_relaxed);
}

void
clock_shift_go(struct clock_shift *shift)
{
    /* relaxed: as above */
    atomic_store_explicit(&shift->stopped_s, 0, memory_order_relaxed);
}

void
clock_shift_by(struct clock_shift *shift, int64_t by_s)
{
    /* relaxed: as above; two at a time may lose one of a stopped clock */
    uint64_t stopped_s =
        atomic_load_explicit(&shift->stopped_s, memory_order_relaxed);
    atomic_fetch_add_explicit(&shift->shift_s, by_s, memory_order_relaxed);
    if (stopped_s != 0) {
        atomic_store_explicit(
            &shift->stopped_s, moved(stopped_s, by_s), memory_order_relaxed);
    }
}

void
clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int rv = pthread_condattr_init(&attr);

    rv |= pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    rv |= pthread_cond_init(cond, &attr);
    rv |= pthread_condattr_destroy(&attr);
    ASSERT(rv == 0);
}

static uint64_t
same(const struct clock *clock, uint64_t ns)
{
    (void)clock;
    return ns;
}

static const struct clock_calls system_calls = {.at = same, .wake = same};

const struct clock clock_system = {&system_calls};

/* When to look again. */
static struct timespec
wake_time(const struct clock *clock, uint64_t until_ns)
{
    uint64_t ns = clock->calls->wake(clock, until_ns);
    return (struct timespec){
        .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

void
clock_sleep_until(const struct clock *clock, uint64_t until_ns)
{
    while (clock_now_ns(clock) < until_ns) {
        struct timespec wake = wake_time(clock, until_ns);
        /* a signal may cut it short */
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
    }
}

/* One wait. A signal that comes between the end of the wait and the lock finds
 * nobody: so who waits looks at what it waits for after each. */
bool
clock_cond_wait(const struct clock *clock, pthread_cond_t *cond,
    struct mutex *mutex, uint64_t until_ns)
{
    struct timespec wake = wake_time(clock, until_ns);
    int rv = mutex_timedwait(mutex, cond, &wake);
    ASSERT(rv == 0 || rv == ETIMEDOUT);
    return rv == 0 || clock_now_ns(clock) < until_ns;
}

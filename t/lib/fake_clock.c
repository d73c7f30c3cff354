/* SPDX-License-Identifier: BSD-3-Clause */
/* Nobody is woken when time is passed: who waits looks every LOOK_NS, whatever
 * it waits in. */
#include "lib/fake_clock.h"

#define NS_PER_MS UINT64_C(1000000)
#define LOOK_NS NS_PER_MS

static uint64_t
at(const struct clock *clock, uint64_t monotonic_ns)
{
    const struct fake_clock *fake = (const struct fake_clock *)clock;
    /* relaxed, here and below: who sees an old number sees the new one a little
     * later, and each thread sees each of them grow */
    uint64_t stands_ns =
        atomic_load_explicit(&fake->stands_ns, memory_order_relaxed);
    return (stands_ns != 0 ? stands_ns : monotonic_ns) +
        atomic_load_explicit(fake->passed_ns, memory_order_relaxed);
}

static uint64_t
wake(const struct clock *clock, uint64_t until_ns)
{
    uint64_t real_ns = clock_monotonic_ns();
    uint64_t now_ns = at(clock, real_ns);
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    return real_ns + (left_ns < LOOK_NS ? left_ns : LOOK_NS);
}

static const struct clock_calls calls = {.at = at, .wake = wake};

void
fake_clock_init(struct fake_clock *fake)
{
    atomic_init(&fake->own_passed_ns, 0);
    fake_clock_init_by(fake, &fake->own_passed_ns);
}

void
fake_clock_init_by(struct fake_clock *fake, _Atomic uint64_t *passed_ns)
{
    fake->clock.calls = &calls;
    fake->passed_ns = passed_ns;
    atomic_init(&fake->stands_ns, 0);
}

void
fake_clock_pass(struct fake_clock *fake, uint64_t ms)
{
    /* relaxed: see at */
    atomic_fetch_add_explicit(
        fake->passed_ns, ms * NS_PER_MS, memory_order_relaxed);
}

void
fake_clock_stand(struct fake_clock *fake)
{
    /* relaxed: see at */
    atomic_store_explicit(
        &fake->stands_ns, clock_monotonic_ns(), memory_order_relaxed);
}

void
fake_clock_go(struct fake_clock *fake)
{
    /* relaxed: see at */
    atomic_store_explicit(&fake->stands_ns, 0, memory_order_relaxed);
}

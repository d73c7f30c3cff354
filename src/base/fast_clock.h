/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_FAST_CLOCK_H
#define BASE_FAST_CLOCK_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* clock_monotonic_ns at the price of an instruction or two, for figures: it is
 * read from the processor's counter where that goes at one pace, by a factor
 * that is measured. It may be off by some millionths of the time since the last
 * fast_clock_adjust, and then go back by as much. One thread. */
struct fast_clock {
    uint64_t base_ns, base_ticks; /* of one moment */
    uint64_t ns_per_tick; /* times 2^32; 0: clock_monotonic_ns is read */
    bool has_ticks;       /* there is such a counter */
};

static inline uint64_t
fast_clock__ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

/* From then on it can be read. */
void fast_clock_init(struct fast_clock *clock);

/* To be called every second or so: measures the factor anew. */
void fast_clock_adjust(struct fast_clock *clock);

/* Whether fast_clock_read may be called. */
static inline bool
fast_clock_is_fast(const struct fast_clock *clock)
{
    return __builtin_expect(clock->ns_per_tick != 0, 1);
}

/* fast_clock_ns of one that is fast: no call. */
static inline uint64_t
fast_clock_read(const struct fast_clock *clock)
{
    uint64_t ticks = fast_clock__ticks() - clock->base_ticks;
    return clock->base_ns +
        (uint64_t)(((unsigned __int128)ticks * clock->ns_per_tick) >> 32);
}

static inline uint64_t
fast_clock_ns(const struct fast_clock *clock)
{
    return fast_clock_is_fast(clock) ? fast_clock_read(clock)
                                     : clock_monotonic_ns();
}

#endif

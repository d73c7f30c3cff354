/* SPDX-License-Identifier: BSD-3-Clause */
/* Time by the processor's counter. The system's clock is asked at every
 * adjustment, and the factor follows from the last two; what lies outside of
 * what processors have, as behind a stop of the machine, is no factor. */
#include "base/fast_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { FACTOR_BITS = 32 };

/* ADJUST_NS_MIN: less would measure the measuring. */
#define ADJUST_NS_MIN UINT64_C(100000000)
#define ADJUST_NS_MAX UINT64_C(100000000000)

/* True where the counter goes at one pace, whatever the processor does: Intel's
 * and AMD's manuals, CPUID leaf 0x80000007, EDX bit 8. */
static bool
has_steady_ticks(void)
{
#if defined(__x86_64__)
    enum { LEAF = 0x7, STEADY_BIT = 8 };
    unsigned a, b, c, d = 0;
    return __get_cpuid(0x80000000U + LEAF, &a, &b, &c, &d) != 0 &&
        (d >> STEADY_BIT & 1) != 0;
#else
    return false;
#endif
}

/* Both clocks at one moment: the closest of a few tries, since the processor
 * may be taken away between the two. */
static void
read_both(uint64_t *ns, uint64_t *ticks)
{
    enum { TRIES = 4 };
    uint64_t least = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t before = fast_clock__ticks();
        uint64_t now_ns = clock_monotonic_ns();
        uint64_t gap = fast_clock__ticks() - before;
        if (i == 0 || gap < least) {
            least = gap;
            *ns = now_ns;
            *ticks = before + gap / 2;
        }
    }
}

void
fast_clock_init(struct fast_clock *clock)
{
    *clock = (struct fast_clock){.has_ticks = has_steady_ticks()};
    read_both(&clock->base_ns, &clock->base_ticks);
}

void
fast_clock_adjust(struct fast_clock *clock)
{
    uint64_t ns = 0, ticks = 0;
    read_both(&ns, &ticks);
    uint64_t d_ns = ns - clock->base_ns;
    uint64_t d_ticks = ticks - clock->base_ticks;
    if (!clock->has_ticks || d_ns < ADJUST_NS_MIN) {
        return;
    }
    /* processors count between 0.5 and 8 times a ns */
    bool is_sane = d_ns < ADJUST_NS_MAX && ticks > clock->base_ticks &&
        d_ticks >= d_ns / 2 && d_ticks / 8 <= d_ns;
    clock->ns_per_tick = is_sane
        ? (uint64_t)(((unsigned __int128)d_ns << FACTOR_BITS) / d_ticks)
        : 0;
    clock->base_ns = ns;
    clock->base_ticks = ticks;
}

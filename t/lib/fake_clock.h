/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_FAKE_CLOCK_H
#define LIB_FAKE_CLOCK_H

#include "base/clock.h"

#include <stdatomic.h>

/* A clock that jumps: it says CLOCK_MONOTONIC and what a test has passed; or it
 * stands, and only what is passed counts. Whoever waits by it notices within a
 * millisecond, or as soon as the machine lets him, and sleeps meanwhile. It is
 * changed and read by any thread. All of it must stay as long as somebody has
 * it. */
struct fake_clock {
    struct clock clock;          /* first: the seam */
    _Atomic uint64_t *passed_ns; /* by the test, in all: own_passed_ns, or
                                  * what fake_clock_init_by was given */
    _Atomic uint64_t own_passed_ns;
    _Atomic uint64_t stands_ns; /* what it says while it stands, less what has
                                 * been passed; 0: it goes */
};

/* Makes one that goes, and says what CLOCK_MONOTONIC says. Before others have
 * it. */
void fake_clock_init(struct fake_clock *fake);

/* The same, for one that is moved by whoever makes *passed_ns larger, perhaps
 * in another process. It must stay, too. */
void fake_clock_init_by(struct fake_clock *fake, _Atomic uint64_t *passed_ns);

/* Time passes: at once so many ms. */
void fake_clock_pass(struct fake_clock *fake, uint64_t ms);

/* It stands at what it says now; goes on from there on, with all that was
 * missed. One thread at a time. */
void fake_clock_stand(struct fake_clock *fake);
void fake_clock_go(struct fake_clock *fake);

#endif

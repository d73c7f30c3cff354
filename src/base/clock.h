/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Time that never jumps, in ns since some point in the past (CLOCK_MONOTONIC).
 * Any thread. */
uint64_t clock_monotonic_ns(void);

/* The same in whole seconds. */
uint64_t clock_monotonic_s(void);

/* Wall-clock seconds since 1970. Any thread; may jump. */
int64_t clock_unix_s(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_NUMBER_H
#define BENCH_NUMBER_H

#include <stdint.h>

/* The number that an option was given as text; fails unless it is one of
 * least..most. */
uint64_t number_within(
    const char *option, const char *text, uint64_t least, uint64_t most);

#endif

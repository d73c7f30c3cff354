/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include "bench/options.h"

#include <stdatomic.h>
#include <stdint.h>

/* Knows which number every cell must hold: what fill stored, plus the incr of
 * this run. While incr are under way a number may be anything between those
 * acknowledged when the question was sent and those sent when the answer
 * came. Any thread; every wrong answer ends the program. */

struct verify {
    const struct options *options;
    _Atomic uint32_t *sent;  /* incr sent, by cell; NULL without --verify */
    _Atomic uint32_t *acked; /* incr answered */
};

void verify_init(struct verify *verify, const struct options *options);
void verify_fini(struct verify *verify);

/* Says that a question goes out; the result belongs to the check of its
 * answer. */
uint32_t verify_get_sent(
    struct verify *verify, uint32_t post, unsigned column);
uint32_t verify_incr_sent(
    struct verify *verify, uint32_t post, unsigned column);

/* Checks the number of a get. */
void verify_got(struct verify *verify, uint32_t post, unsigned column,
    uint32_t acked_before, uint64_t value);

/* Checks the number that an incr answered. */
void verify_incremented(struct verify *verify, uint32_t post, unsigned column,
    uint32_t acked_before, uint64_t value);

/* Checks that a cell may be absent: only an item whose number is 0 is. */
void verify_absent(struct verify *verify, uint32_t post, unsigned column);

/* As verify_absent, for an incr: takes back what verify_incr_sent counted. */
void verify_not_incremented(
    struct verify *verify, uint32_t post, unsigned column);

#endif

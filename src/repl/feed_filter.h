/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_FEED_FILTER_H
#define REPL_FEED_FILTER_H

#include "base/owns.h"
#include "schema/schema.h"

#include <stddef.h>
#include <stdint.h>

/* What of a log is of some ids: a batch's payload in, out a payload
 * (doc/format-log.md) with
 *
 *   cells, and changes of members, of the ids that the rule has;
 *   counters, producers and their numbers, and whatever else of kinds 3..6 is
 *   of no id: all of it but terms, and but names, whose counters no feed moves.
 *
 * What is not in it: marks of the log, and cells of pairs that are told without
 * a record (engine/member.c): these are of numbers, not of any id, and say what
 * whoever has the records finds out by itself. One thread at a time. */

enum {
    FEED_FILTER_MORE = 512, /* room for a payload besides the length of what is
                             * filtered */
};

/* The caller's memory; all zero but the rule at first. */
struct feed_filter {
    const struct owns *owns; /* the caller's */
    uint32_t *pairs; /* owned: serials of columns of pairs, ascending */
    size_t n_pairs, capacity;
};

void feed_filter_fini(struct feed_filter *filter);

/* Pairs of this counter's columns of members are known from now on: for all
 * counters at first. Those that payloads make are known by them. 0 or
 * ERR_NO_MEMORY. */
int feed_filter_know(
    struct feed_filter *filter, const struct schema_counter *counter);

/* Writes what of payload[0..len) is to be sent to out, room for len +
 * FEED_FILTER_MORE, and its length to *n: 0, nothing is. 0; ERR_NO_MEMORY; or
 * ERR_CORRUPT where bytes make no entry. */
int feed_filter_run(struct feed_filter *filter, const uint8_t *payload,
    size_t len, uint8_t *out, size_t *n);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_POSITION_H
#define TALLYQ_POSITION_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Where a message stands in its queue: a later one is greater. Of Redis the two
 * halves of an entry's id, of NATS the sequence in the stream, of Kafka the
 * offset + 1; of these two lo is 0. All zero: before the first message. A
 * consumer's position is that of the last message it has. Pure; any thread. */
struct position {
    uint64_t hi, lo;
};

enum { POSITION_TEXT_BYTES = 42 };

struct position_text {
    char text[POSITION_TEXT_BYTES];
};

/* Below 0, 0, above 0. */
static inline int
position_compare(struct position a, struct position b)
{
    if (a.hi != b.hi) {
        return a.hi < b.hi ? -1 : 1;
    }
    return a.lo < b.lo ? -1 : a.lo > b.lo;
}

/* "HI-LO". */
static inline struct position_text
position_text(struct position at)
{
    struct position_text out;
    (void)snprintf(
        out.text, sizeof out.text, "%" PRIu64 "-%" PRIu64, at.hi, at.lo);
    return out;
}

#endif

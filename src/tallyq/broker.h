/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_BROKER_H
#define TALLYQ_BROKER_H

#include "tallyq/position.h"

#include <stddef.h>

/* The seam to a queue: one stream of messages that never change, each with a
 * position, read in their order. The kinds are those of tallyq/source.h. One
 * thread. */

enum { BROKER_WHY_MAX = 200 };

/* Takes a message, whose text is the broker's; false where it does not, and
 * wants no more in this read. */
typedef bool (*broker_take_fn)(
    void *context, struct position at, const char *text, size_t len);

struct broker;

struct broker_calls {
    /* Hands out the messages behind `after`, in order, as many as are at hand
     * and are taken. Where there is none yet, waits up to wait_ms for one.
     * False: the queue cannot be reached or does not answer, see why; what has
     * been taken by then is right. */
    bool (*read)(struct broker *broker, struct position after,
        uint32_t wait_ms, broker_take_fn take_fn, void *context);
    /* How far `at` is behind the end of the queue, in what unit says; may ask
     * the queue. UINT64_MAX: not known. */
    uint64_t (*behind)(struct broker *broker, struct position at);
    /* Ends it, and all its memory. */
    void (*close)(struct broker **broker);
};

/* What each kind begins with. */
struct broker {
    const struct broker_calls *calls;
    const char *unit;             /* of behind: "messages" or "ms" */
    uint64_t n_lost;              /* messages that the queue says it had, and
                                   * has removed before they were read */
    char why[BROKER_WHY_MAX + 1]; /* of the last failure */
};

/* Writes a text for why, and gives back false. */
bool broker_fail(struct broker *broker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

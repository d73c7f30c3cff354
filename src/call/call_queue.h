/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CALL_CALL_QUEUE_H
#define CALL_CALL_QUEUE_H

#include "call/call.h"

#include <stddef.h>

/* Calls that wait for a thread, in the order in which they came; all zeroes is
 * an empty one. They stay their callers', each of whom waits for one at a time:
 * that is its bound. Its owner has a lock for it. */
struct call_queue {
    struct store_call *first, *last; /* last: void where first is NULL */
};

static inline void
call_queue_add(struct call_queue *queue, struct store_call *call)
{
    call->next = NULL;
    if (queue->first == NULL) {
        queue->first = call;
    } else {
        queue->last->next = call;
    }
    queue->last = call;
}

/* Takes the first one out; NULL: there is none. */
static inline struct store_call *
call_queue_take(struct call_queue *queue)
{
    struct store_call *call = queue->first;
    if (call != NULL) {
        queue->first = call->next;
    }
    return call;
}

/* Takes all out: a list, by call->next. */
static inline struct store_call *
call_queue_take_all(struct call_queue *queue)
{
    struct store_call *calls = queue->first;
    queue->first = NULL;
    return calls;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_GROUP_H
#define SESSION_GROUP_H

#include "call/call.h"

#include <stdbool.h>
#include <stdint.h>

/* The servers that have copies of one directory, as sessions ask about them: a
 * seam, which the server fills in. Any thread, while the store is there. */

enum { GROUP_ADDRESS_MAX = 255 /* bytes of HOST:PORT */ };

/* `replicaof HOST:PORT`, or `replicaof no one` (address ""). */
struct group_order {
    struct store_call call;
    char address[GROUP_ADDRESS_MAX + 1];
    int err; /* out: 0; ERR_BAD_ADDRESS, ERR_OWN_ADDRESS; or why not */
};

/* `wait N MS`: until n replicas have applied batch seq, at most ms. */
struct group_wait {
    struct store_call call;
    uint64_t seq; /* 0: there is nothing to wait for */
    uint32_t n;
    uint64_t ms;              /* 0: until it is so */
    _Atomic bool is_unwanted; /* the asker's: it is to be answered soon, with
                               * what is so then */
    uint32_t n_have;          /* out */
};

struct group {
    /* Where clients find the primary: HOST:PORT, or "" where nobody knows.
     * Until the caller's qsbr reader of the store goes quiescent. */
    const char *(*primary_fn)(struct group *group);
    /* False: what is read here may be older than it may be. A load or two. */
    bool (*is_fresh_fn)(struct group *group);
    enum store_answer (*order_fn)(
        struct group *group, struct group_order *order);
    enum store_answer (*wait_fn)(struct group *group, struct group_wait *wait);
};

#endif

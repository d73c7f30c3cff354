/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_GROUP_H
#define SESSION_GROUP_H

#include "base/buf.h"
#include "base/node.h"
#include "call/call.h"

#include <stdbool.h>
#include <stdint.h>

/* The servers that have copies of one directory, as sessions ask about them: a
 * seam, which the server fills in. Any thread, while the store is there. */

enum {
    GROUP_ADDRESS_MAX = 255, /* bytes of HOST:PORT */
    GROUP_WHY_MAX = 255
};

/* `replicaof HOST:PORT`, or `replicaof no one` (address ""). */
struct group_order {
    struct store_call call;
    char address[GROUP_ADDRESS_MAX + 1];
    int err; /* out: 0; ERR_BAD_ADDRESS, ERR_OWN_ADDRESS; or why not */
};

/* `failover [NODE] [force]`: another node is to be the primary. */
struct group_failover {
    struct store_call call;
    struct node_name to; /* len 0: the one that suits best */
    bool is_forced;
    int err;                     /* out: 0, or why not */
    char why[GROUP_WHY_MAX + 1]; /* out: the same in more words, or "" */
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

/* Changes that the primary is to make. */
struct group_forward {
    struct store_call call;
    struct buf request; /* the asker's: whole commands of one protocol */
    unsigned n;         /* that these are */
    bool is_binary;
    int err;          /* out: 0; or why there are no replies: ERR_NOT_PRIMARY,
                       * ERR_FORWARD_BUSY: nothing was done;
                       * ERR_UNSURE_PRIMARY: nobody knows what was done */
    struct buf reply; /* out: the asker's: replies of those that have one */
    uint64_t
        late_seq; /* out: not 0: what was done is not to be read here until
                        * has_applied_fn says so of that batch */
};

enum {
    GROUP_FORWARD_BYTES = 64 << 10 /* of a request; at least one */
};

struct group {
    bool is_automatic; /* etcd says who is primary, nobody else does */
    /* Where clients find the primary: HOST:PORT, or "" where nobody knows.
     * Until the caller's qsbr reader of the store goes quiescent. */
    const char *(*primary_fn)(struct group *group);
    /* False: what is read here may be older than it may be. A load or two. */
    bool (*is_fresh_fn)(struct group *group);
    enum store_answer (*order_fn)(
        struct group *group, struct group_order *order);
    enum store_answer (*wait_fn)(struct group *group, struct group_wait *wait);
    enum store_answer (*failover_fn)(
        struct group *group, struct group_failover *failover);
    /* NULL: changes are not forwarded. */
    enum store_answer (*forward_fn)(
        struct group *group, struct group_forward *forward);
    /* True where batch seq is to be read here. A load or two. */
    bool (*has_applied_fn)(struct group *group, uint64_t seq);
};

#endif

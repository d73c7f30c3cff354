/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_NODE_H
#define REPL_NODE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/node.h"
#include "call/call.h"
#include "repl/proof.h"
#include "wal/replica_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node_figures; /* repl/node_figures.h */
struct store;
struct tls; /* net/tls.h */

/* One of several servers that have copies of a directory: its thread of
 * replication, with a libuv loop of its own. As primary it sends the log to all
 * who connect; as replica it follows a primary. */

enum {
    NODE_STREAMS_MAX = 16,  /* that it sends to at a time */
    NODE_ADDRESS_MAX = 255, /* bytes of HOST:PORT */
    NODE_WHY_MAX = 255      /* of why there is no link; cut there */
};

/* Roles, as `stats replication` says them. */
#define NODE_ROLES(X)                                                         \
    X(REPLICA, "replica") /* follows, or tries to */                          \
    X(SYNCING,                                                                \
        "syncing") /* takes a snapshot; reads what it had until then */       \
    X(PRIMARY, "primary")

enum node_role {
#define X(name, text) NODE_##name,
    NODE_ROLES(X)
#undef X
};

struct node_config {
    struct store *store; /* of a directory that is replicated; all is loaded,
                          * it need not have begun; outlives the node */
    struct logger *logger;
    const struct clock *clock; /* NULL: the system's */
    struct node_name name;     /* of this node */
    struct node_name group;    /* all nodes say the same one; len 0: none */
    char
        client[NODE_ADDRESS_MAX + 1]; /* what clients of others are told; "" */
    const struct proof_secret *secret;
    struct tls *tls;      /* of replication, both ends; NULL: plain */
    const int *listen_fd; /* listening sockets, the caller's, never blocking */
    unsigned n_listen;
    int dial_fd; /* to the process that connects (repl/dial.h); -1: there is
                  * none, and it can follow nobody */
    char primary[NODE_ADDRESS_MAX + 1]; /* HOST:PORT that it follows; "": it is
                                         * a primary; but with semi_sync and a
                                         * file that is_doubtful a replica of
                                         * nobody, until an order comes */
    struct replica_file file; /* as it is on the disk now; the node's from here
                               * on: it writes it */
    uint8_t boot_id[REPLICA_BOOT_BYTES]; /* of the kernel that runs
                                          * (node_boot_id) */
    enum replica_level level;            /* that it tells as a replica */
    unsigned semi_sync;    /* copies besides its own before a change of a
                            * primary is acknowledged */
    unsigned min_replicas; /* fewer than so many that are heard: changes are
                            * refused; <= semi_sync */
    uint64_t max_lag_ms;   /* a replica that says nothing for longer does not
                            * count */
    uint64_t commit_timeout_ms; /* a change that waits for longer is late */
    uint64_t timeout_ms;        /* of a stream on which nothing comes */
    uint64_t backlog_bytes;     /* of log kept for those who are behind */
    uint64_t snapshot_rate;     /* bytes a second; 0: as fast as can be */
    uint64_t copy_silent_ms; /* of a snapshot of which nothing comes, besides
                              * what reading it takes */
    uint64_t stale_ms; /* reads of a replica are refused when what it shows may
                        * be older; 0: never */
    unsigned priority;
    struct node_figures *figures; /* of the process: counted on from there, and
                                   * written by node_stop; NULL: none */
    /* The process must destroy the store and load the directory anew: an
     * exchange or a cut is ordered. What it is to follow then node_follows
     * says, before node_stop. Called once, on the node's thread; nothing is
     * done meanwhile but what is being read. */
    void (*reload_fn)(void *context);
    void *context;
};

struct node;

/* Which start of the kernel this is, from /proc: before a sandbox. Zeroes where
 * that cannot be read. */
void node_boot_id(uint8_t out[REPLICA_BOOT_BYTES]);

/* Starts the thread. What becomes of the store, replica or primary, is so when
 * it returns: a primary without a term has begun one. 0, ERR_NO_MEMORY,
 * ERR_NO_THREAD, ERR_SYSTEM, what store_begin_term says; why says more. */
int node_start(
    const struct node_config *config, struct node **out, struct buf *why);

/* Ends all streams and the thread; frees *node and nulls it; NULL is fine. All
 * calls under way are answered. Before store_end_calls. */
void node_stop(struct node **node);

/* `replicaof HOST:PORT`, or `replicaof no one` (address ""): of a primary, too,
 * where it has refused one who had promised a later term: it begins one above
 * that, as if it had been started anew. */
struct node_order {
    struct store_call call; /* done_fn on the node's thread */
    char address[NODE_ADDRESS_MAX + 1];
    /* out: */
    int err; /* 0: the role is that now, or when the directory has been loaded
              * anew; else it is what it was, but where the log says something
              * else: ERR_CLOSED; ERR_NO_DIALLER; ERR_LOADING: a snapshot has
              * come, the directory is loaded anew, and it is to be said again;
              * what replica_file_write or store_begin_term say */
};

void node_replicaof(struct node *node, struct node_order *order);

/* `wait N MS`: until so many replicas have applied batch seq. */
struct node_wait {
    struct store_call call; /* done_fn on the node's thread */
    uint64_t seq;           /* 0: there is nothing to wait for */
    unsigned n;
    uint64_t ms;                     /* 0: until it is so */
    const _Atomic bool *is_unwanted; /* true: nobody wants the answer, which
                                      * then comes soon; NULL: somebody does.
                                      * Outlives the wait */
    /* out: */
    unsigned n_have;
    /* the node's: */
    uint64_t until_us;
};

void node_wait(struct node *node, struct node_wait *wait);

/* Answers at once, any thread. */

/* HOST:PORT that it follows, or is to follow when the directory has been loaded
 * anew: node_config.primary of the next node; "": it is a primary. */
void node_follows(struct node *node, char out[NODE_ADDRESS_MAX + 1]);

/* True of a primary. */
bool node_leads(struct node *node);

/* Where the primary is, for clients: "HOST:PORT"; "": nobody knows. Until the
 * caller's qsbr reader of the store goes quiescent or offline. */
const char *node_primary(const struct node *node);

/* False: what is read here may be older than stale_ms. A load. */
bool node_is_fresh(const struct node *node);

/* Calls stat_fn for each line of `stats replication`, `stats replicas`. */
typedef void node_stat_fn(void *context, const char *name, const char *value);
void node_each_stat(struct node *node, node_stat_fn *stat_fn, void *context);
void node_each_replica(
    struct node *node, node_stat_fn *stat_fn, void *context);

#endif

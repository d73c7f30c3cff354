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
    NODE_FEEDS_MAX = 8,     /* likewise, of the ids of a rule */
    NODE_ADDRESS_MAX = 255, /* bytes of HOST:PORT */
    NODE_WHY_MAX = 255      /* of why there is no link; cut there */
};

/* Roles, as `stats replication` says them. */
#define NODE_ROLES(X)                                                         \
    X(REPLICA, "replica") /* follows, or tries to */                          \
    X(SYNCING,                                                                \
        "syncing") /* takes a snapshot; reads what it had until then */       \
    X(PRIMARY, "primary")                                                     \
    X(CANDIDATE, "candidate") /* wants to be the primary */                   \
    X(ISOLATED,                                                               \
        "isolated") /* leads, but without authority: takes no changes */

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
    int dial_fd;    /* to the process that connects (repl/dial.h); -1: there is
                  * none, and it can follow nobody */
    int control_fd; /* of the pair to the process that speaks with etcd
                     * (repl/control_pair.h), the caller's, never blocking; -1:
                     * who leads is decided by orders alone */
    /* A node before this one, of the same process, has been told by control_fd
     * of what etcd has: it is not told again before something changes. */
    bool is_again;
    /* With a control, which decides who leads: primary means nothing then. */
    char repl[NODE_ADDRESS_MAX + 1]; /* where other nodes reach this one's
                                      * replication */
    uint64_t ttl_ms;                 /* of the lease; > 0 */
    uint64_t hang_ms; /* without a beat for so long the lease is ended; 0: it
                       * is not */
    bool votes;       /* it may count when a change is committed */
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
                        * be older, and of a primary when it has had no
                        * authority for so long; 0: never */
    unsigned priority;
    bool forwards; /* as replica it hands changes of clients on, and as primary
                    * it makes those of replicas */
    struct node_figures *figures; /* of the process: counted on from there, and
                                   * written by node_stop; NULL: none */
    /* The process must destroy the store and load the directory anew: an
     * exchange or a cut is ordered. What it is to follow then node_follows
     * says, before node_stop. Called once, on the node's thread; nothing is
     * done meanwhile but what is being read. */
    void (*reload_fn)(void *context);
    /* With a control: the process at the other end of dial_fd or control_fd is
     * gone, and this node does not lead, or without authority: the server is to
     * end, and to be started anew. Called once at most, on the node's thread;
     * the node goes on until node_stop. NULL: it goes on as it can. */
    void (*lost_fn)(void *context);
    /* Hands over one end of a pair of sockets, which never blocks: what comes
     * on it are commands of a user who may write, of that protocol, and of a
     * replica's client. False: the caller keeps it. On the node's thread. NULL:
     * nothing is made for replicas. */
    bool (*serve_fn)(void *context, int fd, bool is_binary);
    void *context; /* of all */
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
              * ERR_BY_ETCD: it has a control, and takes no such orders;
              * what replica_file_write or store_begin_term say */
};

void node_replicaof(struct node *node, struct node_order *order);

/* `failover [NODE]`: of a primary of a group whose primary etcd knows. Another
 * node, which has all by then, is to lead. `failover NODE force`, at NODE,
 * which does not lead: it is to, also without enough promises; what others have
 * acknowledged and nobody who answers it has is lost. */
struct node_failover {
    struct store_call call; /* done_fn on the node's thread */
    struct node_name to;    /* len 0: the one that has most */
    bool is_forced;
    /* out: */
    int err; /* 0: handed over, this node leads no more; is_forced: it leads.
              * ERR_NOT_PRIMARY; ERR_NOT_HANDED; ERR_NO_GROUP: it has no
              * control; ERR_CLOSED */
    char why[NODE_WHY_MAX + 1]; /* of ERR_NOT_HANDED: in words for one line */
};

void node_failover(struct node *node, struct node_failover *order);

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

/* Changes of a replica's client are made by the primary. */
struct node_forward {
    struct store_call call; /* done_fn on the node's thread */
    const uint8_t *bytes;   /* whole commands, 1..NODE_FORWARD_BYTES; the
                             * asker's until it is done */
    uint32_t len;
    uint32_t n; /* commands that these are */
    bool is_binary;
    /* out: */
    int err; /* 0: reply has the replies, of those commands that have one.
              * ERR_NOT_PRIMARY: nothing was done, and there is no primary to
              * ask; ERR_FORWARD_BUSY: likewise, others wait already;
              * ERR_UNSURE_PRIMARY: nobody knows what was done */
    struct buf reply; /* the asker's */
    uint64_t
        late_seq; /* not 0: what was done is not yet to be read here; it is
                        * when node_has_applied that */
    /* the node's: */
    uint64_t id, seq, until_us;
};

enum {
    NODE_FORWARD_BYTES = 64 << 10,
    NODE_FORWARDS_MAX = 1024,     /* at a time */
    NODE_FORWARD_ALL = 8 << 20,   /* bytes of these */
    NODE_FORWARD_APPLY_MS = 1000, /* until what was done is to be read here */
    NODE_FORWARD_WINDOW = 32      /* that a primary has of one replica */
};

/* Asks for that; done_fn may be called before it returns. Of a node whose
 * config.forwards. */
void node_forward(struct node *node, struct node_forward *forward);

/* True where what is read here has batch seq. A load. */
bool node_has_applied(const struct node *node, uint64_t seq);

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

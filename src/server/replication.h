/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_REPLICATION_H
#define SERVER_REPLICATION_H

#include "base/buf.h"
#include "base/log.h"
#include "net/listener.h"
#include "repl/node.h"
#include "repl/node_figures.h"
#include "repl/proof.h"
#include "server/options.h"
#include "session/group.h"

#include <stdatomic.h>
#include <stdbool.h>

/* From options to a node of replication, and what clients ask of it. The main
 * thread, but for group. All zero but for magic, options and logger before
 * replication_init; each function does nothing where the options want no
 * replication. Those with why return 0 or an ERR_, and *why says what went
 * wrong in one line. */

enum { REPLICATION_MAGIC = 0x7265706c };

struct replication {
    struct group group; /* first: the seam of session/group.h */
    uint32_t magic;     /* REPLICATION_MAGIC */
    bool is_wanted;
    const struct options *options;
    struct logger *logger;
    struct listener listener; /* its sockets, bound; the node accepts */
    int fd[LISTENER_SOCKETS_MAX];
    int dial_fd;    /* to the process that connects; -1: there is none */
    int control_fd; /* to the one that speaks with etcd; -1: there is none */
    struct tls *tls;
    struct proof_secret secret;
    uint8_t boot_id[REPLICA_BOOT_BYTES];
    char client[NODE_ADDRESS_MAX + 1];  /* where clients find this server */
    char repl[NODE_ADDRESS_MAX + 1];    /* where other nodes do; "" by hand */
    _Atomic(struct node *) node;        /* NULL: it does not run */
    bool has_begun;                     /* a node of this process has run */
    struct qsbr *qsbr;                  /* of the node's store */
    struct node_figures figures;        /* of the nodes before this one */
    char primary[NODE_ADDRESS_MAX + 1]; /* that the next node follows; "": it
                                         * is a primary */
};

/* loop: the main thread's, where listeners are. */
void replication_init(struct replication *replication,
    const struct options *options, struct logger *logger, uv_loop_t *loop);

/* Forks the process that connects, and the one that speaks with etcd; before
 * keys and users are read. */
int replication_fork(struct replication *replication, struct buf *why);

/* Reads the secret and binds the sockets; as root, where the process is. tls:
 * the server's; NULL: none. */
int replication_open(
    struct replication *replication, struct tls *tls, struct buf *why);

/* Notes where clients find this server: an address of theirs that is bound, or
 * what was given. */
void replication_announce(
    struct replication *replication, const struct listener *clients);

/* True where a store is to be loaded as a replica's. */
bool replication_is_replica(const struct replication *replication);

/* True while this server is the primary of a group. */
bool replication_leads(const struct replication *replication);

/* As in node_config. */
struct replication_calls {
    void (*reload_fn)(void *context);
    void (*lost_fn)(void *context);
    bool (*serve_fn)(void *context, int fd, bool is_binary);
    void *context;
};

/* All is loaded, and nothing begun: starts the node. */
int replication_begin(struct replication *replication, struct store *store,
    const struct clock *clock, const struct replication_calls *calls,
    struct buf *why);

/* Before store_end_calls: the node ends, and who asks is told so. The next one
 * follows whom this one did, or was to. */
void replication_end(struct replication *replication);

/* Closes what there is; the loop must run once more. */
void replication_close(struct replication *replication);

/* `stats replication`, `stats replicas`; nothing where there is no node. A
 * reader of the store's qsbr. */
void replication_each_stat(struct replication *replication, bool of_replicas,
    node_stat_fn *stat_fn, void *context);

#endif

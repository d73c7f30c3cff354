/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_SENDER_H
#define REPL_SENDER_H

#include "repl/commit_waits.h"
#include "repl/lag.h"
#include "repl/link_primary.h"
#include "repl/message.h"
#include "repl/node.h"
#include "repl/sender_feed.h"
#include "repl/wire.h"
#include "wal/wal_follow.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Connections of those who come: each replica of a primary is sent the log from
 * where it is, as soon as it is written. Candidates ask, and fetch, also where
 * this node does not lead (repl/peers.h); feeds are sent what is of their rule
 * by any node that has a log. Inside a node; its thread. */

enum {
    SENDER_MAGIC = 0x72646e73,
    SENDER_REFUSED_MAX = 8,    /* connections that are told so, at a time */
    SENDER_STRANGERS_MAX = 16, /* that have not said who they are */
    SENDER_PLACES_MAX = 32,    /* of replicas that have gone; of feeds as
                                * many as may be connected */
    SENDER_PEERS_MAX = 32,     /* of nodes that ask, or fetch */
    SENDER_ALL_MAX = 144,      /* all of these, and those that are closing */
    SENDER_ACCEPTS = 4,        /* in one turn, of one listening socket */
    SENDER_PAUSE_MS = 100,     /* where nobody can be accepted */
    SENDER_TURN_FRAMES = 4,    /* to one replica in one turn */
    SENDER_KEPT_MS = 600000,   /* the log is kept for one that has gone */
    SENDER_LINES = 10, /* of the log, of those who never followed, in */
    SENDER_LINES_MS = 60000,
    SENDER_LOOK_MS = 1000 /* at the log's end, also where nobody follows */
};

_Static_assert((int)SENDER_PLACES_MAX >= 2 * (int)NODE_STREAMS_MAX &&
        (int)SENDER_ALL_MAX >= (int)NODE_STREAMS_MAX + SENDER_STRANGERS_MAX +
                SENDER_REFUSED_MAX + SENDER_PLACES_MAX + SENDER_PEERS_MAX +
                NODE_STREAMS_MAX + 2 * NODE_FEEDS_MAX,
    "all find room, and so many that are being closed");

struct forward_conn; /* repl/forward_in.c */
struct node;

struct sender_stream {
    struct wire wire; /* first */
    uint32_t magic;   /* SENDER_MAGIC */
    struct node *node;
    struct sender_stream *next;
    char address[64]; /* where it is connected from */
    uint64_t opened_us;
    bool is_refused; /* it is told why and closed; there is no link then */
    bool is_known;   /* it has proved who it is, and is one of n_streams,
                      * n_peers, or n_feeds */
    bool is_over;    /* it is being closed, or has been */
    bool is_wire_closed;
    bool is_told; /* the log has a line of where it begins */
    unsigned
        number; /* by which the replica counts in a group that etcd decides
                      * (repl/roster.h); ROSTER_SELF: it does not */
    struct stream_reader reader;
    struct link_primary link;
    uint8_t in[WIRE_READ_LEAST];
    size_t in_at, in_len;     /* of in, taken so far, and all */
    struct sender_copy *copy; /* that is sent; NULL: none */
    struct sender_feed *feed; /* owned; NULL: it is none, or has no rule yet */

    struct forward_conn *forwards; /* n_forwards of them: see
                                    * repl/forward_in.h */
    unsigned n_forwards;

    /* Batches that are gathered for a frame: by the thread that reads the log
     * while is_working, else by the node's. */
    uv_work_t work;
    bool is_working;
    bool has_filled; /* what it has come to was not looked at yet */
    bool is_followed;
    bool is_leaving; /* it follows the log till the work under way is done */
    bool is_at_end;  /* no more was written when it looked last */
    bool has_batch;  /* batch is there and was not gathered yet */
    struct wal_follow follow;
    struct wal_follow_batch batch;
    uint64_t behind; /* the batches behind that one are gathered */
    uint8_t *frame;  /* owned */
    size_t capacity, n_bytes;
    uint64_t last;    /* batch that was gathered */
    uint64_t sent_us; /* the last frame of batches */
    int fill_err;
    _Atomic bool has_more; /* any thread: is_at_end may be no more so */

    /* Its place in the log when it has gone. */
    bool keeps_place, is_kept, is_parked;
    struct wal_follow kept;
    uint64_t parked_us; /* since when */
};

/* A place in the log at the end of the term before: for who led then, and does
 * not follow yet. */
struct sender_before {
    uv_work_t work;
    struct wal_follow kept;
    uint64_t since_us;
};

struct sender {
    uv_poll_t *listen; /* owned, n_listen of them */
    unsigned n_listen;
    uint64_t accept_us; /* nobody is accepted before; 0: everybody is */
    bool is_short;      /* nobody can be accepted, and the log says so */
    struct sender_stream *streams; /* who came last is the first */
    struct sender_copy *copies;    /* snapshots that are sent, or kept for */
    struct sender_before *before;  /* owned; NULL: none is kept */
    unsigned n_all;                /* in streams */
    unsigned n_streams, n_peers; /* known replicas, nodes that ask or fetch; */
    unsigned n_feeds, n_refused; /* feeds, others; not over */
    bool refuses_changes;        /* as the store was told */
    uint64_t term_seq;           /* of the first batch of the term */
    struct lag lag;              /* of the term */
    uint64_t shipped;            /* batch that some replica has */
    struct commit_waits waits;
    uint64_t lines_us;          /* since when these are counted: */
    unsigned n_lines, n_untold; /* of those who never followed */
};

/* Accepts connections from now on. 0, ERR_NO_MEMORY, ERR_SYSTEM. */
int sender_start(struct node *node);

/* True where a replica was not sent yet what the log was given. */
bool sender_is_behind(const struct node *node);

/* Ends all streams but those of who asks; in_full: these too, and accepts no
 * more; replicas still get what was sent to them. The loop has to run until all
 * is closed, for WIRE_LINGER_MS at most. */
void sender_end(struct node *node, bool in_full);

/* Waits until no snapshot is read any more, and frees all. The loop has
 * ended. */
void sender_fini(struct node *node);

/* The node is a primary whose term begins with batch seq. */
void sender_begin(struct node *node, uint64_t seq);

/* The primary goes on after all: changes are taken, if there are replicas
 * enough. */
void sender_take_changes(struct node *node);

/* What is to be done now. */
void sender_turn(struct node *node);

/* True of a replica that has proved who it is, and is there. */
static inline bool
sender_is_known(const struct sender_stream *stream)
{
    return stream->is_known && !stream->is_over &&
        stream->link.purpose == MESSAGE_FOLLOW;
}

/* The same of a feed. */
static inline bool
sender_is_feed(const struct sender_stream *stream)
{
    return stream->is_known && !stream->is_over &&
        stream->link.purpose == MESSAGE_FEED;
}

/* True where who is told to begin may be fed: there is a log, and what is in it
 * counts. */
bool sender_may_feed(const struct node *node);

/* The newest connection of that node by which it asks; NULL: there is none. */
struct sender_stream *sender_find_asker(
    struct node *node, const struct node_name *name);

/* True where the replica is sent the log. */
static inline bool
sender_is_streaming(const struct sender_stream *stream)
{
    return !stream->is_refused && !stream->is_over &&
        stream->link.state == LINK_PRIMARY_STREAMING;
}

/* True where all replicas that are sent the log have written batch seq. */
bool sender_all_have(const struct node *node, uint64_t seq);

/* How many replicas that are sent the log have applied batch seq; one that is
 * connected twice is one. */
unsigned sender_n_applied(const struct node *node, uint64_t seq);

#endif

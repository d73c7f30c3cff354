/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_RECEIVER_H
#define REPL_RECEIVER_H

#include "repl/commit_waits.h"
#include "repl/copy_in.h"
#include "repl/fresh.h"
#include "repl/link_replica.h"
#include "repl/node.h"
#include "repl/node_dial.h"
#include "repl/wire.h"

#include <stdbool.h>
#include <stdint.h>

/* A replica's connection to its primary: what comes is put into the store.
 * Inside a node; its thread. */

enum {
    RECEIVER_MAGIC = 0x72766372,
    RECEIVER_REST_MS_MIN = 100, /* before it connects again, at first */
    RECEIVER_REST_MS_MAX = 1000,
    RECEIVER_HEIR_MS = 10,    /* before it asks one again that is to lead, */
    RECEIVER_SOON_MS = 4000,  /* for as long as a candidacy may last */
    RECEIVER_RETRY_MS = 10,   /* where the store has no room */
    RECEIVER_TELL_MS = 60000, /* between lines of what the store refuses */
    RECEIVER_COPY_RATE = 1 << 20, /* bytes a second, see look_at_copy */
    RECEIVER_LOOK_MS = 1 /* at what is applied, while that is behind */
};

#define RECEIVER_STATES(X)                                                    \
    X(IDLE, "it follows nobody")                                              \
    X(RESTING, "it connects again later")                                     \
    X(DIALLING, "who connects was asked")                                     \
    X(JOINED, "there is a link")                                              \
    X(CLOSING, "the socket is being closed")

enum receiver_state {
#define X(name, text) RECEIVER_##name,
    RECEIVER_STATES(X)
#undef X
        RECEIVER_STATES_N
};

struct node;

#define RECEIVER_FETCHES(X)                                                   \
    X(NONE, "there is none")                                                  \
    X(OPEN, "it is under way")                                                \
    X(WRITING, "all has come, and is on its way to the log")                  \
    X(DONE, "all is in the log")                                              \
    X(FAILED, "it has ended before that")

enum receiver_fetch {
#define X(name, text) RECEIVER_FETCH_##name,
    RECEIVER_FETCHES(X)
#undef X
};

struct receiver {
    struct wire wire; /* first */
    uint32_t magic;   /* RECEIVER_MAGIC */
    enum receiver_state state;
    struct node *node;
    char address[NODE_ADDRESS_MAX + 1]; /* "": nobody */
    struct node_dial_call dial;
    uint64_t rest_ms;  /* the next time */
    uint64_t until_us; /* RESTING: no longer */
    uint64_t soon_us;  /* until then who is followed may be about to lead */
    bool is_early;     /* and has said that it does not yet */
    bool is_failing;   /* the last try has failed, and the log says so */
    char why[NODE_WHY_MAX + 1]; /* that there is no link; "": it is not known,
                                 * or there is one */
    int put_err;        /* that the store said last; 0: it took a batch */
    bool has_failed;    /* the store refused a batch for good, and no other one
                        * has been taken since */
    uint64_t paused_us; /* since then the store takes nothing for want of room;
                         * 0: it does */
    bool is_pause_told; /* the log says that nothing is taken */
    uint64_t told_us;   /* when it did; 0: never */

    struct stream_reader reader;
    struct link_replica link;
    uint8_t *in; /* owned, WIRE_READ_BYTES */
    size_t in_at, in_len;
    struct message_batches batches; /* of the newest frame, that are left */
    struct message_batch batch;
    bool has_batches, has_batch;
    bool is_paused;            /* the store has no room */
    bool is_following;         /* the log has a line of it */
    enum receiver_fetch fetch; /* see receiver_fetch.c; from OPEN on nobody is
                                * followed */
    uint64_t fetch_term, fetch_bytes;
    uint64_t put;         /* last batch that the store took, or was given as a
                           * primary's */
    uint64_t sound_seq;   /* where the node is doubtful no more */
    struct copy_in *copy; /* a snapshot that comes; NULL: none */
    uint64_t copy_us;     /* when something of it came, or was waited for */
    bool is_copy_whole;   /* nothing more comes of it */
    uv_work_t work;       /* see receiver_remains.c */
    bool is_clearing;     /* it is under way */
    struct fresh fresh;
    bool is_fresh;             /* reads are answered, and the log says so */
    struct fresh_way way;      /* of this link */
    struct commit_waits waits; /* of this link, until what it has told of is
                                * applied */
};

/* 0, ERR_NO_MEMORY or ERR_SYSTEM. */
int receiver_start(struct node *node);

/* Follows that address from now on; "": nobody. */
void receiver_follow(struct node *node, const char *address);

/* As a candidate of term, which is promised: gets what the node at that address
 * has ("": it is not known, and the fetch fails), and follows nobody from now
 * on. Ends as receiver_is_fetched says, but
 * where receiver_follow gives it up. */
void receiver_fetch(struct node *node, const char *address, uint64_t term);

/* True once, when it is over. is_done: all that node had is in the log. */
bool receiver_is_fetched(struct node *node, uint64_t *term, bool *is_done);

/* The node was a primary, and its log was given batches up to that one: as if
 * they had been put. */
void receiver_expect(struct node *node, uint64_t seq);

/* Gives up a snapshot that comes, of one that follows nobody; waits for the
 * disk. False: it may be there already, and the next start may put it in the
 * directory's place. */
bool receiver_give_up_copy(struct node *node);

/* The node leads: what an earlier snapshot has left beside the directory is
 * removed, by another thread. The loop has to run until that is done. */
void receiver_clear_remains(struct node *node);

/* Closes all. The loop has to run until that is done. */
void receiver_end(struct node *node);

void receiver_fini(struct node *node);

/* What is to be done now. */
void receiver_turn(struct node *node);

/* True while a snapshot comes. */
static inline bool
receiver_is_syncing(const struct receiver *receiver)
{
    return receiver->state == RECEIVER_JOINED &&
        receiver->link.call.state == LINK_REPLICA_COPYING;
}

#endif

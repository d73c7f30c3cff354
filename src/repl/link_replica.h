/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LINK_REPLICA_H
#define REPL_LINK_REPLICA_H

#include "repl/link.h"

/* The replica's end of a stream (repl/link.h): says who it is and what it has,
 * checks that each batch follows the one before, and says how far it is. */

/* What is so at the replica at this moment. */
struct link_node {
    struct link_directory directory;
    uint64_t promised;             /* term; 0: none */
    const struct history *history; /* can end with written */
    uint64_t written, synced, applied;
    uint32_t flags; /* ACK_.. */
    bool is_paused; /* nothing is read, for there is no room: who does not
                     * listen does not say that nothing came */
};

#define LINK_REPLICA_STATES(X)                                                \
    X(OPEN, "a challenge is to come")                                         \
    X(GREETING, "the hello is to be sent")                                    \
    X(GREETED, "a welcome is to come")                                        \
    X(PROMISING, "the term is to be promised")                                \
    X(FOLLOWING, "the log comes")                                             \
    X(COPYING, "a snapshot comes")                                            \
    X(CUTTING, "the log is to be cut")                                        \
    X(ENDING, "an error is to be sent")                                       \
    X(ENDED, "it is to be closed")

enum link_replica_state {
#define X(name, text) LINK_REPLICA_##name,
    LINK_REPLICA_STATES(X)
#undef X
        LINK_REPLICA_STATES_N
};

struct link_replica {
    const struct link_self *self;
    enum link_replica_state state;
    struct link_end end;
    uint8_t nonce[STREAM_NONCE_BYTES];
    uint8_t challenge[STREAM_NONCE_BYTES]; /* the other end's nonce */
    uint64_t session; /* for the reader of frames as well; 0 at first */
    uint64_t heard_us, said_us;
    /* of WELCOME */
    uint64_t term;
    uint8_t name_len, client_len;
    char name[MESSAGE_NAME_MAX], client[MESSAGE_ADDRESS_MAX];
    enum message_verdict verdict;
    uint64_t verdict_seq;
    struct history history; /* the primary's */
    /* of the stream */
    uint64_t received;  /* last batch that came, or was there before */
    uint64_t committed; /* largest that the primary has told of */
    uint64_t last;      /* of the primary's log, as told */
    uint64_t
        behind_us;    /* since when it is known to have more; 0: it has not */
    uint64_t echo_us; /* to go out with the next ACK; 0: none */
    struct message_ack said; /* the last one */
    uint64_t switch_seq;     /* nothing comes behind it; 0: not told */
    /* of the newest frame, for LINK_YOURS */
    struct message_news news;
    struct message_batches batches;
};

/* nonce: random, new for each connection. */
void link_replica_init(struct link_replica *link, const struct link_self *self,
    const uint8_t nonce[STREAM_NONCE_BYTES], uint64_t now_us);

/* False: no frame is to be taken yet, for what is next has to be done first;
 * the bytes wait. */
static inline bool
link_replica_may_take(const struct link_replica *link)
{
    return link->state != LINK_REPLICA_GREETING &&
        link->state != LINK_REPLICA_PROMISING &&
        link->state != LINK_REPLICA_CUTTING;
}

/* A frame has come, and may be taken. LINK_YOURS: BATCHES, which all follow
 * what is there and are in link->batches, to be written under their numbers;
 * or, while a snapshot comes, SNAPSHOT, FILE, DATA and END. link->session may
 * be another one for the next frame. */
enum link_step link_replica_take(struct link_replica *link,
    const struct link_node *node, const struct stream_frame *frame,
    uint64_t now_us);

/* As link_primary_heard, link_primary_wrong. */
void link_replica_heard(struct link_replica *link, uint64_t now_us);
void link_replica_wrong(
    struct link_replica *link, const struct stream_fault *fault);

/* As link_primary_next. To be asked once for all that was read in one turn: of
 * what has moved by then one ACK tells. */
void link_replica_next(struct link_replica *link, const struct link_node *node,
    uint64_t now_us, uint8_t *out, struct link_order *order);

/* After LINK_PROMISE: the term is promised, durably. */
void link_replica_promised(struct link_replica *link);

/* After LINK_COPY: a HAVE with len bytes of body goes out. Returns the length
 * of the frame. */
size_t link_replica_have(
    struct link_replica *link, uint8_t *frame, uint32_t len, uint64_t now_us);

/* Up to here what this node has may be applied: it is committed, and here. */
static inline uint64_t
link_replica_committed(const struct link_replica *link)
{
    return link__earlier(link->committed, link->received);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LINK_REPLICA_H
#define REPL_LINK_REPLICA_H

#include "repl/link_caller.h"

/* The replica's end of a stream (repl/link.h): says who it is and what it has,
 * checks that each batch follows the one before, and says how far it is. Also
 * the end of a candidate that fetches what another node has. */

/* Its own states, behind the greeting. */
enum {
    LINK_REPLICA_PROMISING = LINK_CALLER_WORK, /* the term is to be promised */
    LINK_REPLICA_FOLLOWING,                    /* the log comes */
    LINK_REPLICA_FETCHING,                     /* the end of a log comes */
    LINK_REPLICA_COPYING,                      /* a snapshot comes */
    LINK_REPLICA_CUTTING                       /* the log is to be cut */
};

struct link_replica {
    struct link_caller call;
    uint64_t heard_us, said_us;
    uint64_t told; /* written, as of HELLO */
    /* of WELCOME */
    uint64_t term;
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

/* Right after that: it fetches, for a candidate of that term, which is promised
 * here and by the other end: batches come as to who follows, up to the last one
 * that the other one has. Then, and at once where this log has all of these and
 * more, the reason of the end is LINK_FETCHED; else it is another one,
 * LINK_APART where each log has what the other one has not. */
void link_replica_fetch(struct link_replica *link, uint64_t term);

/* False: no frame is to be taken yet, for what is next has to be done first;
 * the bytes wait. */
static inline bool
link_replica_may_take(const struct link_replica *link)
{
    return link_caller_may_take(&link->call) &&
        link->call.state != LINK_REPLICA_PROMISING &&
        link->call.state != LINK_REPLICA_CUTTING;
}

/* A frame has come, and may be taken. LINK_YOURS: BATCHES, which all follow
 * what is there and are in link->batches, to be written under their numbers;
 * or a REPLY; or, while a snapshot comes, SNAPSHOT, FILE, DATA and END.
 * link->call.session may be another one for the next frame. */
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

/* True where requests may go out: the primary knows what they are. */
static inline bool
link_replica_forwards(const struct link_replica *link)
{
    return link->call.state == LINK_REPLICA_FOLLOWING &&
        (link->call.self->hello_flags & HELLO_FORWARDS) != 0;
}

/* A REQUEST with len bytes of body goes out: link_replica_forwards. Returns the
 * length of the frame. REPLY is LINK_YOURS then. */
size_t link_replica_request(
    struct link_replica *link, uint8_t *frame, uint32_t len);

/* Up to here what this node has may be applied: it is committed, and here. */
static inline uint64_t
link_replica_committed(const struct link_replica *link)
{
    return link__earlier(link->committed, link->received);
}

#endif

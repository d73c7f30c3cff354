/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LINK_FEED_H
#define REPL_LINK_FEED_H

#include "repl/link_caller.h"
#include "repl/message_feed.h"

/* The end of who is fed (repl/link.h): the changes of the ids of one rule, out
 * of the log of any node of a group. It is no copy of the directory: it keeps a
 * position, up to which it has brought all to where it is to be, and goes on
 * from there. The other end is repl/link_primary.h. No server is
 * fed: this is for a program of its own, and for tests.
 *
 * Of the node that is told at each call (struct link_node) count: directory,
 * that of the source, or all 0 where this end begins; history, as WELCOME
 * brought it then; written, the position, and synced and applied, which are the
 * same; is_paused. promised is 0, and written is 0 where it begins.
 *
 * How it goes: HELLO; WELCOME says where the stream goes on, see verdict;
 * WANT; SOURCE; then in frames of their own the counters and the producers as
 * they are at that moment (is_schema), where there are any; then what changes.
 */

/* Its own states, behind the greeting. */
enum {
    LINK_FEED_WANTING = LINK_CALLER_WORK, /* the rule is to be sent */
    LINK_FEED_FEEDING                     /* the log comes */
};

struct link_feed {
    struct link_caller call;
    uint64_t heard_us, said_us;
    uint8_t rule_len;
    char rule[MESSAGE_RULE_MAX];
    /* of WELCOME */
    uint64_t term;
    enum message_verdict verdict; /* CONTINUE: behind the position that was
                                   * told. SNAPSHOT: behind verdict_seq, once
                                   * all that is there was dumped anew */
    uint64_t verdict_seq;
    struct history history; /* the source's: to be told next time */
    /* of SOURCE; epoch 0: it has not come yet */
    struct link_directory directory;
    /* of the stream */
    uint64_t position;       /* all that is of the rule up to here has come */
    uint64_t last;           /* batch of the source's log, as told */
    uint64_t echo_us;        /* to go out with the next ACK; 0: none */
    struct message_ack said; /* the last one */
    /* of the newest frame, for LINK_YOURS */
    struct message_news news;
    struct message_batches batches;
    bool is_schema; /* of them: entries of counters and producers, as they are
                     * now, and not in the log there */
};

/* rule: 1..MESSAGE_RULE_MAX characters. nonce: random, new for each
 * connection. */
void link_feed_init(struct link_feed *link, const struct link_self *self,
    const struct message_text *rule, const uint8_t nonce[STREAM_NONCE_BYTES],
    uint64_t now_us);

/* False: no frame is to be taken yet, for what is next goes out first; the
 * bytes wait. */
static inline bool
link_feed_may_take(const struct link_feed *link)
{
    return link_caller_may_take(&link->call) &&
        link->call.state != LINK_FEED_WANTING;
}

/* A frame has come, and may be taken. LINK_YOURS: BATCHES, in link->batches:
 * payloads of doc/format-log.md, of which each has only what is of the rule.
 * Once what is in them is where it is to be, and all before it, the position
 * may be acknowledged: link->position as it was at that frame; it moves with
 * heartbeats too. link->call.session may be another one for the next frame. */
enum link_step link_feed_take(struct link_feed *link,
    const struct link_node *node, const struct stream_frame *frame,
    uint64_t now_us);

/* As link_primary_heard, link_primary_wrong. */
void link_feed_heard(struct link_feed *link, uint64_t now_us);
void link_feed_wrong(struct link_feed *link, const struct stream_fault *fault);

/* As link_primary_next; orders LINK_SEND, LINK_WAIT, LINK_CLOSE. node->written
 * is what is acknowledged, not above link->position; below verdict_seq it
 * counts as that. To be asked every LINK_BEAT_US, also while nothing is read:
 * an end that acknowledges nothing is dead. */
void link_feed_next(struct link_feed *link, const struct link_node *node,
    uint64_t now_us, uint8_t *out, struct link_order *order);

#endif

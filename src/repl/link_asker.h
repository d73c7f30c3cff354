/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LINK_ASKER_H
#define REPL_LINK_ASKER_H

#include "repl/link_caller.h"
#include "repl/message_term.h"

/* A candidate's end of a connection to another node (repl/link.h): says who it
 * is, asks, and hands on what is answered. The other end is
 * repl/link_primary.h. */

/* Its own states, behind the greeting. */
enum {
    LINK_ASKER_ASKING = LINK_CALLER_WORK /* questions are sent, answers come */
};

/* What is answered. */
enum link_reply {
    LINK_REPLY_PROMISED,  /* term, last, is_doubtful */
    LINK_REPLY_REFUSED,   /* term: that the other one has promised */
    LINK_REPLY_HEARS_ONE, /* to a probe: it hears a primary */
    LINK_REPLY_HEARS_NONE
};

struct link_asker {
    struct link_caller call;
    uint8_t name_len; /* of the node that is meant: no other one may answer */
    char name[MESSAGE_NAME_MAX];
    uint64_t opened_us, used_us; /* used: when something was asked last */
    uint64_t waits_us; /* since when an answer is waited for; 0: it is not */
    /* the next question */
    bool is_due, is_probe;
    uint64_t term;
    /* what was asked so far */
    uint64_t asked_term; /* the highest that was to be promised; 0: none */
    bool has_probed;
    /* of the newest frame, for LINK_YOURS */
    enum link_reply reply;
    uint64_t reply_term, reply_last;
    bool is_doubtful;
};

/* name: of the node that is to answer. nonce: random, new for each
 * connection. */
void link_asker_init(struct link_asker *link, const struct link_self *self,
    const struct message_text *name, const uint8_t nonce[STREAM_NONCE_BYTES],
    uint64_t now_us);

/* The next question: to promise term (1..SEQ_TERM_MAX), or (is_probe, any
 * term) whether a primary is heard. It takes the place of one that was not
 * sent. */
void link_asker_ask(
    struct link_asker *link, uint64_t term, bool is_probe, uint64_t now_us);

/* False: no frame is to be taken yet, for the hello goes out first. */
static inline bool
link_asker_may_take(const struct link_asker *link)
{
    return link_caller_may_take(&link->call);
}

/* A frame has come, and may be taken. LINK_YOURS: an answer, which is in
 * link->reply. link->call.session may be another one for the next frame. */
enum link_step link_asker_take(
    struct link_asker *link, const struct stream_frame *frame);

/* What came is no frame; the reader says why. */
void link_asker_wrong(
    struct link_asker *link, const struct stream_fault *fault);

/* When it ends if nothing comes, and nothing is asked. */
uint64_t link_asker_ends_us(const struct link_asker *link);

/* As link_primary_next. A question for a term that node has not promised, or
 * not any more, is dropped. */
void link_asker_next(struct link_asker *link, const struct link_node *node,
    uint64_t now_us, uint8_t *out, struct link_order *order);

#endif

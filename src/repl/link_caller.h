/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LINK_CALLER_H
#define REPL_LINK_CALLER_H

#include "repl/link.h"

/* What all ends that connect have in common (repl/link.h): the challenge, the
 * hello and the welcome come first; then the work, which is of each kind's own;
 * and each of these states can be followed by the end. A member of each kind
 * (repl/link_replica.h, link_asker.h, link_feed.h). */

enum {
    LINK_CALLER_OPEN,        /* a challenge is to come */
    LINK_CALLER_GREETING,    /* the hello is to be sent */
    LINK_CALLER_GREETED,     /* a welcome is to come */
    LINK_CALLER_WORK,        /* the first state of the kind's own */
    LINK_CALLER_ENDING = 14, /* an error is to be sent */
    LINK_CALLER_ENDED,       /* it is to be closed */
    LINK_CALLER_STATES_N
};

struct link_caller {
    const struct link_self *self;
    const unsigned *may_lead; /* LINK_CALLER_STATES_N, base/steps.h: where
                               * GREETED and each state of the kind's own may
                               * lead besides the end; static storage */
    unsigned state;           /* LINK_CALLER_.., or of the kind's own: from
                     * LINK_CALLER_WORK on, below LINK_CALLER_ENDING */
    enum message_purpose purpose;
    struct link_end end;
    uint8_t nonce[STREAM_NONCE_BYTES];
    uint8_t challenge[STREAM_NONCE_BYTES]; /* the other end's nonce */
    uint64_t session; /* for the reader of frames as well; 0 at first */
    /* the other end, and its address for clients: link_caller__keep */
    uint8_t name_len, client_len;
    char name[MESSAGE_NAME_MAX], client[MESSAGE_ADDRESS_MAX];
};

/* False: no frame is to be taken yet, for the hello goes out first; the bytes
 * wait. */
static inline bool
link_caller_may_take(const struct link_caller *call)
{
    return call->state != LINK_CALLER_GREETING;
}

/* nonce: random, new for each connection. may_lead: see above. */
void link_caller__init(struct link_caller *call, const struct link_self *self,
    enum message_purpose purpose, const unsigned *may_lead,
    const uint8_t nonce[STREAM_NONCE_BYTES]);

/* One step on, which is a legal one. */
void link_caller__move(struct link_caller *call, unsigned state);

/* It ends for that reason, if it does not yet: the other end is told once it
 * knows the session, behind the hello. All return LINK_ENDING. */
enum link_step link_caller__end_for(
    struct link_caller *call, enum link_reason reason);
enum link_step link_caller__end_with(struct link_caller *call,
    enum link_reason reason, const struct stream_fault *fault);
/* what: should be there, at offset from the beginning of the frame. */
enum link_step link_caller__end_at(struct link_caller *call,
    enum link_reason reason, const struct stream_frame *frame,
    const char *what, uint32_t offset);

/* True where a frame of that type is the greeting's next one. */
bool link_caller__is_due(
    const struct link_caller *call, enum stream_type type);

/* A frame has come, which is_due or not. True: it was the challenge, an end or
 * out of order, or nothing is taken any more; *step says it. False: it is due,
 * and a welcome or of the kind's own. */
bool link_caller__hear(struct link_caller *call,
    const struct stream_frame *frame, bool is_due, enum link_step *step);

/* A frame that is due: a welcome of who knows the secret and speaks this
 * protocol. False: it ends. The kind moves on. */
bool link_caller__take_welcome(struct link_caller *call,
    const struct stream_frame *frame, struct message_welcome *out);

/* Keeps who sends that welcome. */
void link_caller__keep(
    struct link_caller *call, const struct message_welcome *welcome);

/* False, and it ends: a frame is of another term than that of the work. */
bool link_caller__is_of_term(
    struct link_caller *call, const struct stream_frame *frame, uint64_t term);

/* What is next in the states of the greeting and of the end; term: of the frame
 * that tells of the end. out: LINK_SEND_MAX. */
void link_caller__next(struct link_caller *call, const struct link_node *node,
    uint64_t term, uint8_t *out, struct link_order *order);

/* True once nothing is taken any more. */
static inline bool
link_caller_is_over(const struct link_caller *call)
{
    return call->state >= LINK_CALLER_ENDING;
}

#endif

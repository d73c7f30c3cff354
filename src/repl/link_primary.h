/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LINK_PRIMARY_H
#define REPL_LINK_PRIMARY_H

#include "repl/link.h"
#include "repl/message_feed.h"
#include "repl/message_term.h"

/* The end of who accepts a connection (repl/link.h): asks who is there, and
 * judges how far the other log is the same. To who follows a primary sends
 * batches as they are written, else a heartbeat; to a candidate that fetches a
 * node sends what its log has; questions of candidates are handed on, and their
 * answers sent; and who is fed (repl/link_feed.h) is sent what is of its rule,
 * by any node. */

/* What is so at this node at this moment. */
struct link_view {
    struct link_directory directory; /* all 0: none that is to be built upon */
    uint64_t term; /* of a primary that of the history's newest, >= 1; else the
                    * one that is promised, 0: none */
    const struct history *history; /* can end with written */
    uint64_t begin; /* the log has all batches behind this one; 0: all */
    uint64_t written, committed; /* committed <= written, begin <= written */
    bool has_authority;
    bool is_replica;  /* nobody may follow it */
    bool is_asked;    /* candidates may ask it, and fetch from a replica */
    bool is_doubtful; /* a promise says so */
    uint64_t
        term_most; /* that a candidate may ask to be promised: no promotions
                         * lead to a later one, and terms are used up; 0: any */
    bool may_feed; /* feeds may begin, or go on, here */
    uint64_t fed;  /* batch up to which they are sent: committed, and applied
                       * here; fed <= written */
    struct message_text primary, primary_client; /* that is known; or empty */
};

#define LINK_PRIMARY_STATES(X)                                                \
    X(OPEN, "a challenge is to be sent")                                      \
    X(ASKED, "a hello is to come")                                            \
    X(JUDGED, "the welcome is to be sent")                                    \
    X(STREAMING, "the log is sent")                                           \
    X(COPYING, "a snapshot is sent")                                          \
    X(LENDING, "the log is sent to a candidate, up to its end")               \
    X(ANSWERING, "questions of a candidate come")                             \
    X(WANTED, "the rule of a feed is to come")                                \
    X(FEEDING, "what is of a rule is sent")                                   \
    X(ENDING, "an error is to be sent")                                       \
    X(ENDED, "it is to be closed")

enum link_primary_state {
#define X(name, text) LINK_PRIMARY_##name,
    LINK_PRIMARY_STATES(X)
#undef X
        LINK_PRIMARY_STATES_N
};

/* What a candidate is told. */
enum link_answer {
    LINK_ANSWER_NONE,
    LINK_ANSWER_PROMISED, /* of the term: or REFUSED, where that is over */
    LINK_ANSWER_REFUSED,
    LINK_ANSWER_HEARS_ONE, /* to a probe: a primary is heard */
    LINK_ANSWER_HEARS_NONE
};

struct link_primary {
    const struct link_self *self;
    enum link_primary_state state;
    struct link_end end;
    uint8_t nonce[STREAM_NONCE_BYTES];
    uint64_t session; /* for the reader of frames as well; 0 at first */
    uint64_t term;    /* that the stream is of */
    uint64_t opened_us, heard_us, said_us;
    /* of HELLO */
    uint8_t name_len, client_len;
    char name[MESSAGE_NAME_MAX], client[MESSAGE_ADDRESS_MAX];
    enum message_purpose purpose; /* 0 before HELLO */
    enum message_level level;
    uint16_t hello_flags, priority;
    uint8_t proof[PROOF_BYTES]; /* this end's own */
    enum message_verdict verdict;
    uint64_t verdict_seq;
    /* of the stream */
    uint64_t sent;     /* last batch that went out, or that the replica had */
    uint64_t told;     /* committed, as the replica was told */
    uint64_t moved_us; /* since when there is more to tell; 0: there is not */
    uint64_t clock_us; /* that was sent last; 0: none yet */
    uint32_t rtt_us;   /* of the last ACK; 0: none yet */
    struct message_ack ack; /* the last one */
    uint64_t switch_seq;    /* 0: none is to be told */
    bool is_switch_told;
    /* of questions */
    struct message_promise question; /* the last one; its name is that above */
    enum link_answer answer;         /* that is due */
    uint64_t answer_term;            /* of PROMISED */
    /* of a feed: `sent` is up to where all of the rule was sent */
    uint64_t newest_term; /* of the history that it was told */
    uint8_t rule_len;
    char rule[MESSAGE_RULE_MAX];
    bool is_source_told, has_schema;
};

/* nonce: random, new for each connection. */
void link_primary_init(struct link_primary *link, const struct link_self *self,
    const uint8_t nonce[STREAM_NONCE_BYTES], uint64_t now_us);

/* A frame has come. LINK_YOURS: HAVE, while a snapshot is sent; REQUEST, while
 * batches are, of who forwards; PROMISE, which is in link->question; WANT,
 * whose rule is in link->rule: where it is not one, link_primary_refuse_rule.
 * link->session may be another one for the next frame. */
enum link_step link_primary_take(struct link_primary *link,
    const struct link_view *view, const struct stream_frame *frame,
    uint64_t now_us);

/* Bytes have come; a frame may take longer than the time after which an end
 * that says nothing is dead. */
void link_primary_heard(struct link_primary *link, uint64_t now_us);

/* What came is no frame; the reader says why. */
void link_primary_wrong(
    struct link_primary *link, const struct stream_fault *fault);

/* True where batches are sent: to a replica, or to a candidate. */
static inline bool
link_primary_is_sent_log(const struct link_primary *link)
{
    return link->state == LINK_PRIMARY_STREAMING ||
        link->state == LINK_PRIMARY_LENDING;
}

/* What to do next. To be asked when there is room to send: nothing that it
 * orders waits here. out: LINK_SEND_MAX bytes, for LINK_SEND. */
void link_primary_next(struct link_primary *link, const struct link_view *view,
    uint64_t now_us, uint8_t *out, struct link_order *order);

/* After LINK_BATCHES: n_bytes of batches, each behind its head
 * (message_put_batch), stand at frame + STREAM_HEAD_BYTES +
 * MESSAGE_NEWS_BYTES, the last of them is batch last. Writes what is before
 * them; returns the length of the frame, which is sent then. */
size_t link_primary_seal(struct link_primary *link,
    const struct link_view *view, uint8_t *frame, size_t n_bytes,
    uint64_t last, uint64_t now_us);

/* FEEDING, after LINK_BATCHES while there is no link->has_schema: as
 * link_primary_seal, of one batch with the number order->seq, of entries of
 * counters and producers; is_all: these are the last. With no bytes nothing is
 * to be sent, and 0 is returned. */
size_t link_primary_seal_schema(struct link_primary *link,
    const struct link_view *view, uint8_t *frame, size_t n_bytes, bool is_all,
    uint64_t now_us);

/* FEEDING, after LINK_BATCHES then: as link_primary_seal; all that is of the
 * rule up to batch last, not above view->fed, is in the frame, or was sent
 * before. With no bytes nothing is to be sent, and 0 is returned. */
size_t link_primary_seal_feed(struct link_primary *link,
    const struct link_view *view, uint8_t *frame, size_t n_bytes,
    uint64_t last, uint64_t now_us);

/* The rule of WANT is none. */
void link_primary_refuse_rule(struct link_primary *link);

/* FEEDING: the log that is to be sent next is gone. */
void link_primary_lost_log(struct link_primary *link);

/* While a snapshot is sent: a frame of that type with len bytes of body goes
 * out. Returns its length. */
size_t link_primary_copy(struct link_primary *link, enum stream_type type,
    uint8_t *frame, uint32_t len, uint64_t now_us);

/* While batches are sent: a REPLY with len bytes of body goes out. Returns the
 * length of the frame. */
size_t link_primary_reply(
    struct link_primary *link, uint8_t *frame, uint32_t len);

/* Nothing comes behind batch seq, which is written, in this term: the replica
 * is told once it has been sent that one. */
void link_primary_switch(struct link_primary *link, uint64_t seq);

/* ANSWERING: what is said next, instead of what was to be. term: of PROMISED,
 * which this node has promised durably. */
void link_primary_answer(
    struct link_primary *link, enum link_answer answer, uint64_t term);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LINK_PRIMARY_H
#define REPL_LINK_PRIMARY_H

#include "repl/link.h"

/* The primary's end of a stream (repl/link.h): asks who is there, judges how
 * far the other log is the same, and then says what to send: batches as they
 * are written, else a heartbeat. */

/* What is so at the primary at this moment. */
struct link_view {
    struct link_directory directory;
    uint64_t term;                 /* of the history's newest; >= 1 */
    const struct history *history; /* can end with written */
    uint64_t begin; /* the log has all batches behind this one; 0: all */
    uint64_t written, committed; /* committed <= written, begin <= written */
    bool has_authority;
};

#define LINK_PRIMARY_STATES(X)                                                \
    X(OPEN, "a challenge is to be sent")                                      \
    X(ASKED, "a hello is to come")                                            \
    X(JUDGED, "the welcome is to be sent")                                    \
    X(STREAMING, "the log is sent")                                           \
    X(COPYING, "a snapshot is sent")                                          \
    X(ENDING, "an error is to be sent")                                       \
    X(ENDED, "it is to be closed")

enum link_primary_state {
#define X(name, text) LINK_PRIMARY_##name,
    LINK_PRIMARY_STATES(X)
#undef X
        LINK_PRIMARY_STATES_N
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
};

/* nonce: random, new for each connection. */
void link_primary_init(struct link_primary *link, const struct link_self *self,
    const uint8_t nonce[STREAM_NONCE_BYTES], uint64_t now_us);

/* A frame has come. LINK_YOURS: HAVE, while a snapshot is sent. *link->session
 * may be another one for the next frame. */
enum link_step link_primary_take(struct link_primary *link,
    const struct link_view *view, const struct stream_frame *frame,
    uint64_t now_us);

/* Bytes have come; a frame may take longer than the time after which an end
 * that says nothing is dead. */
void link_primary_heard(struct link_primary *link, uint64_t now_us);

/* What came is no frame; the reader says why. */
void link_primary_wrong(
    struct link_primary *link, const struct stream_fault *fault);

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

/* While a snapshot is sent: a frame of that type with len bytes of body goes
 * out. Returns its length. */
size_t link_primary_copy(struct link_primary *link, enum stream_type type,
    uint8_t *frame, uint32_t len, uint64_t now_us);

/* Nothing comes behind batch seq, which is written, in this term: the replica
 * is told once it has been sent that one. */
void link_primary_switch(struct link_primary *link, uint64_t seq);

#endif

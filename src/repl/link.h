/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_LINK_H
#define REPL_LINK_H

#include "repl/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What both ends of a replication stream have in common. An end is a state
 * machine without a socket: whoever has the socket gives it the frames that
 * came and the time, asks it what to do next, and does that
 * (repl/link_primary.h, repl/link_replica.h). All is pure; one thread at a
 * time. Times are in microseconds of any clock that does not go back. */

/* Who this end is. The caller's, and unchanged while there is a link. */
struct link_self {
    struct message_text group, name;
    struct message_text client, repl; /* addresses that it makes known */
    const struct proof_secret *secret;
    /* of a primary: highest that its files and log have; of a replica: that it
     * can read */
    struct message_formats formats;
    enum message_level level; /* of a replica */
    uint16_t hello_flags, priority;
    uint64_t timeout_us; /* an end that hears nothing for so long is dead */
};

/* Which directory it is a copy of; all 0: none yet. */
struct link_directory {
    uint64_t epoch, seed;
    uint32_t shards;
};

/* What is so at this moment at a node that connects. */
struct link_node {
    struct link_directory directory;
    uint64_t promised;             /* term; 0: none */
    const struct history *history; /* can end with written */
    uint64_t written, synced, applied;
    /* likewise with what the log was given, and the disk may not have yet; of
     * who follows or fetches, for WELCOME; NULL: that is what is written */
    const struct history *given_history;
    uint64_t given;
    uint32_t flags; /* ACK_.. */
    bool is_paused; /* nothing is read, for there is no room: who does not
                     * listen does not say that nothing came */
};

enum {
    LINK_PROTOCOL = 1,
    LINK_BEAT_US = 100000, /* after so long without a frame a heartbeat or an
                            * ACK goes out */
    LINK_NEWS_US = 1000,   /* so long a committed position may wait for batches
                            * to go out with */
    LINK_STALL_US = 500000, /* the end of the log was told of and does not come
                             * for so long */
    LINK_TERMS_MAX = 1 << 16, /* that the other end may be ahead: by more no
                               * promotions come, and terms are used up */
    LINK_SEND_MAX = STREAM_HEAD_BYTES + MESSAGE_SMALL_MAX
};

/* Why an end closes. Code: what the other end is told (0: nothing). Text: for
 * a person, about the other end. */
#define LINK_REASONS(X)                                                       \
    X(NONE, 0, "it is open")                                                  \
    X(BAD_FRAME, MESSAGE_BAD_FRAME, "a frame was wrong")                      \
    X(BAD_ORDER, MESSAGE_BAD_FRAME, "a frame came that was not due")          \
    X(GAP, MESSAGE_BAD_FRAME, "a batch came that does not follow")            \
    X(VERSIONS, MESSAGE_BAD_PROTOCOL, "it speaks other versions")             \
    X(PROOF, MESSAGE_BAD_PROOF, "it does not know the secret")                \
    X(GROUP, MESSAGE_BAD_GROUP, "it is of another group")                     \
    X(NAME, MESSAGE_BAD_GROUP, "it has this node's name")                     \
    X(OTHER_NODE, MESSAGE_BAD_GROUP, "it is another node than was meant")     \
    X(DIRECTORY, MESSAGE_BAD_DIRECTORY, "it is a copy of another directory")  \
    X(FORMAT, MESSAGE_BAD_FORMAT, "it cannot read the log of this version")   \
    X(PURPOSE, MESSAGE_BAD_PURPOSE, "it wants what is not to be had here")    \
    X(NEWER_TERM, MESSAGE_BAD_TERM, "it has promised a later term")           \
    X(OLDER_TERM, MESSAGE_BAD_TERM, "it is of a term that is over")           \
    X(SAME_TERM, MESSAGE_BAD_TERM,                                            \
        "it has followed, or been, another primary of the same term")         \
    X(TERM_OVER, MESSAGE_BAD_TERM, "the term of this node is over")           \
    X(NO_PRIMARY, MESSAGE_BUSY, "this node is no primary")                    \
    X(BEHIND, MESSAGE_LATE, "the log does not reach back so far any more")    \
    X(GONE, MESSAGE_GONE, "the log it needs is gone: begin anew")             \
    X(RULE, MESSAGE_BAD_RULE, "ids are not fed by its rule")                  \
    X(TIMEOUT, 0, "nothing came for too long")                                \
    X(STALLED, MESSAGE_LATE, "batches that are there do not come")            \
    X(CUT, 0, "its log has to be cut first")                                  \
    X(APART, 0, "its log and this node's part before their ends")             \
    X(FETCHED, 0, "what was to be fetched is there")                          \
    X(IDLE, 0, "nothing is asked any more")                                   \
    X(REFUSED, 0, "it has refused")                                           \
    X(TOLD, 0, "it has told of an error")

enum link_reason {
#define X(name, code, text) LINK_##name,
    LINK_REASONS(X)
#undef X
};

/* "a frame was wrong"; static storage. */
const char *link_reason_text(enum link_reason reason);

/* How a link ended. */
struct link_end {
    enum link_reason reason;
    struct stream_fault fault; /* BAD_FRAME, BAD_ORDER, GAP: what and where */
    uint64_t term; /* NEWER_TERM, SAME_TERM, REFUSED: that the other end has
                    * promised */
    uint32_t code; /* TOLD: message_code, or one of a later version */
    uint8_t text_len, address_len; /* TOLD: its text. REFUSED: the primary's
                                    * address */
    char text[MESSAGE_TEXT_MAX], address[MESSAGE_ADDRESS_MAX];
};

/* What comes of a frame. */
enum link_step {
    LINK_TAKEN, /* nothing is left to do but to ask what is next */
    LINK_YOURS, /* the frame is for the caller: batches; a part of a snapshot;
                 * a question, an answer */
    LINK_ENDING /* it was wrong, or says that this is the end */
};

enum link_do {
    LINK_WAIT,    /* until a frame comes, positions move, or until_us */
    LINK_SEND,    /* len bytes that were written to out, as they are */
    LINK_BATCHES, /* primary: the batches behind seq */
    LINK_COPY,    /* the snapshot is the caller's; ask again by until_us */
    LINK_PROMISE, /* replica: make it durable that term is promised */
    LINK_CUT_LOG, /* replica: close, and cut the log behind batch seq */
    LINK_CLOSE    /* close; link->end says why */
};

struct link_order {
    enum link_do what;
    size_t len;
    uint64_t seq, term, until_us;
};

/* True where two logs have batches of that term by two primaries: both were
 * told to begin it. What one of them has had acknowledged the other one must
 * not have in that same term, so that a term has one primary for all who have
 * had a batch of it. */
bool link__is_split(
    const struct history *one, const struct history *two, uint64_t term);

/* HELLO of who has connected, with these nonces. Returns the length of the
 * frame; 0: there is no proof to be made. out: LINK_SEND_MAX. */
size_t link__put_hello(const struct link_self *self,
    const struct link_node *node, enum message_purpose purpose,
    const uint8_t accepting[STREAM_NONCE_BYTES],
    const uint8_t connecting[STREAM_NONCE_BYTES], uint8_t *out);

/* True where who sends that welcome knows the secret. */
bool link__is_proved(const struct link_self *self,
    const struct message_welcome *welcome,
    const uint8_t accepting[STREAM_NONCE_BYTES],
    const uint8_t connecting[STREAM_NONCE_BYTES]);

/* The end of a link, from a frame of REFUSED or ERROR; anything wrong in that
 * is LINK_BAD_FRAME. */
void link__hear_end(const struct stream_frame *frame, struct link_end *end);

/* An ERROR that says why; 0 where nothing is to be said. out: LINK_SEND_MAX. */
size_t link__put_end(
    const struct link_end *end, uint64_t term, uint64_t session, uint8_t *out);

/* Of what is due first. */
static inline uint64_t
link__earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif

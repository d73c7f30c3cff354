/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_MESSAGE_H
#define REPL_MESSAGE_H

#include "repl/proof.h"
#include "repl/stream.h"
#include "wal/frame.h"
#include "wal/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bodies of the frames by which two nodes meet and a log is followed
 * (doc/format-stream.md); message_term.h and message_files.h have the others.
 * Pure; any thread.
 *
 * message_put_x writes a body and returns its length; what it is given is
 * sound. message_get_x reads one of a frame of that type: 0; or ERR_CORRUPT
 * where it is not sound in itself, and *fault says where; *out may have changed
 * then. What is read points into the body. */

enum {
    MESSAGE_NAME_MAX = 64, /* of a node, of a group */
    MESSAGE_ADDRESS_MAX = 255,
    MESSAGE_TEXT_MAX = 255,
    MESSAGE_SMALL_MAX = 2200 /* room for any body that is put here */
};

/* Not ended by a 0. */
struct message_text {
    const uint8_t *at;
    uint8_t len;
};

/* 1..MESSAGE_NAME_MAX letters, digits, '.', '_', '-', and '/'. */
bool message_is_name(const uint8_t *at, size_t len);

void message_put_challenge(
    uint8_t *body, const uint8_t nonce[STREAM_NONCE_BYTES]);
int message_get_challenge(const struct stream_frame *frame,
    uint8_t nonce[STREAM_NONCE_BYTES], struct stream_fault *fault);

enum message_purpose {
    MESSAGE_FOLLOW = 1, /* what a replica connects for */
    MESSAGE_PROMISE,    /* what a candidate does, to ask for promises */
    MESSAGE_FETCH,      /* likewise, for the end of a log */
    MESSAGE_FEED        /* who wants the changes of some ids; it is no copy */
};

/* How far a node has to have a batch for it to count. */
enum message_level { MESSAGE_WRITTEN, MESSAGE_SYNCED, MESSAGE_APPLIED };

/* Highest that a node can read. */
struct message_formats {
    uint8_t entry, manifest, segment;
};

enum { HELLO_DOUBTFUL = 1, HELLO_NEVER_VOTES = 2, HELLO_FORWARDS = 4 };

struct message_hello {
    uint8_t nonce[STREAM_NONCE_BYTES];
    uint8_t proof[PROOF_BYTES]; /* zeroes without a secret */
    enum message_purpose purpose;
    uint8_t least, most; /* versions of this protocol, 1 <= least <= most */
    enum message_level level;
    uint16_t flags; /* HELLO_.. */
    uint16_t priority;
    struct message_formats formats;
    uint32_t shards; /* epoch, shards and seed are 0 for an empty directory */
    uint64_t epoch, seed;
    uint64_t promised;        /* term; 0: none */
    uint64_t written, synced; /* last batches; synced <= written */
    struct message_text group, name;
    struct message_text client, repl; /* addresses; may be empty */
    struct history history;           /* which can end with `written` */
};

size_t message_put_hello(uint8_t *body, const struct message_hello *hello);
int message_get_hello(const struct stream_frame *frame,
    struct message_hello *out, struct stream_fault *fault);

enum message_verdict {
    MESSAGE_CONTINUE = 1, /* batches behind seq will come */
    MESSAGE_CUT,          /* cut the log behind seq, and connect again */
    MESSAGE_SNAPSHOT      /* take all of it: seq is 0; or, of a feed, where the
                           * stream goes on when that is done */
};

struct message_welcome {
    uint8_t proof[PROOF_BYTES]; /* zeroes without a secret */
    uint8_t protocol;           /* what is spoken from now on */
    enum message_verdict verdict;
    uint64_t seq;
    uint64_t last, committed; /* of who sends it; committed <= last */
    struct message_text name;
    struct message_text client; /* its address for clients; may be empty */
    struct history history;     /* can end with last; of a primary not empty */
};

size_t message_put_welcome(
    uint8_t *body, const struct message_welcome *welcome);
int message_get_welcome(const struct stream_frame *frame,
    struct message_welcome *out, struct stream_fault *fault);

enum { NEWS_AUTHORITY = 1 };

/* What a primary says all the time. */
struct message_news {
    uint64_t committed, last; /* committed <= last */
    uint64_t clock_us;        /* its own clock; comes back in an ACK */
    uint32_t rtt_us;          /* of the last ACK; 0: none yet */
    uint32_t flags;           /* NEWS_AUTHORITY: it may say what is so */
};

enum { MESSAGE_NEWS_BYTES = 32, MESSAGE_BATCH_BYTES = 12 };

/* The body of a HEARTBEAT, and the beginning of that of BATCHES. */
size_t message_put_news(
    uint8_t body[MESSAGE_NEWS_BYTES], const struct message_news *news);
int message_get_heartbeat(const struct stream_frame *frame,
    struct message_news *out, struct stream_fault *fault);

struct message_batch {
    uint64_t seq;
    uint32_t len; /* 1..FRAME_PAYLOAD_MAX */
    const uint8_t *payload;
};

/* Writes what stands in a body of BATCHES before a payload of that length. */
void message_put_batch(
    uint8_t out[MESSAGE_BATCH_BYTES], uint64_t seq, uint32_t len);

/* Batches of a frame that was looked at, one after the other. */
struct message_batches {
    const uint8_t *at, *end;
    uint32_t n;           /* at least one */
    uint64_t first, last; /* their numbers ascend */
};

int message_get_batches(const struct stream_frame *frame,
    struct message_news *news, struct message_batches *out,
    struct stream_fault *fault);

/* False: there are no more. */
bool message_next_batch(
    struct message_batches *batches, struct message_batch *out);

enum { ACK_DOUBTFUL = 1, ACK_DISK_FULL = 2, ACK_HELD_UP = 4 };

struct message_ack {
    uint64_t written, synced, applied; /* the latter two <= written */
    uint64_t echo_us; /* clock_us of the newest frame that came; 0: none */
    uint32_t flags;   /* ACK_.. */
};

size_t message_put_ack(uint8_t *body, const struct message_ack *ack);
int message_get_ack(const struct stream_frame *frame, struct message_ack *out,
    struct stream_fault *fault);

/* Who has promised more than the term of who asks. */
struct message_refused {
    uint64_t promised;
    struct message_text primary, address; /* empty where nobody is known */
};

size_t message_put_refused(
    uint8_t *body, const struct message_refused *refused);
int message_get_refused(const struct stream_frame *frame,
    struct message_refused *out, struct stream_fault *fault);

/* Nothing comes behind that batch in this term. */
size_t message_put_switch(uint8_t *body, uint64_t seq);
int message_get_switch(const struct stream_frame *frame, uint64_t *seq,
    struct stream_fault *fault);

/* Why an end closes the connection. */
enum message_code {
    MESSAGE_BAD_FRAME = 1, /* what came was wrong */
    MESSAGE_BAD_PROTOCOL,  /* no version that both speak */
    MESSAGE_BAD_PROOF,
    MESSAGE_BAD_GROUP,     /* another group, or a name that is this end's */
    MESSAGE_BAD_DIRECTORY, /* another epoch, other shards or seed */
    MESSAGE_BAD_FORMAT,    /* the log has what the node cannot read */
    MESSAGE_BAD_PURPOSE,
    MESSAGE_BAD_TERM, /* another term than that of the stream */
    MESSAGE_BUSY,     /* too many streams, or no primary here */
    MESSAGE_LATE,     /* nothing came, or not what was to come */
    MESSAGE_GONE,     /* to a feed: the log that it needs is gone */
    MESSAGE_BAD_RULE  /* to a feed: ids are not fed by that rule */
};

struct message_error {
    uint32_t code;            /* message_code, or one of a later version */
    struct message_text text; /* printable ASCII */
};

size_t message_put_error(uint8_t *body, const struct message_error *error);
int message_get_error(const struct stream_frame *frame,
    struct message_error *out, struct stream_fault *fault);

#endif

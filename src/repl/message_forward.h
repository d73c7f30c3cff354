/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_MESSAGE_FORWARD_H
#define REPL_MESSAGE_FORWARD_H

#include "repl/message.h"

/* Bodies by which a replica hands changes of its clients on, and is told what
 * came of them. As message.h; the bytes of commands and of replies stand behind
 * what is put here. */

enum { MESSAGE_REQUEST_HEAD = 9, MESSAGE_REPLY_HEAD = 17 };

struct message_request {
    uint64_t id;    /* the replica's, new in each; comes back in the REPLY */
    bool is_binary; /* packets of the binary protocol; else lines */
    const uint8_t *bytes; /* whole commands, 1..STREAM_REQUEST_MAX */
    uint32_t len;
};

size_t message_put_request(
    uint8_t body[MESSAGE_REQUEST_HEAD], uint64_t id, bool is_binary);
int message_get_request(const struct stream_frame *frame,
    struct message_request *out, struct stream_fault *fault);

/* What came of a request. */
enum message_outcome {
    MESSAGE_ANSWERED,  /* the bytes are the replies, of those that have one */
    MESSAGE_NOT_TAKEN, /* nothing of it was done */
    MESSAGE_UNSURE     /* nobody knows what was done */
};

struct message_reply {
    uint64_t id;
    uint64_t seq; /* what was done is in batches up to that one */
    enum message_outcome outcome;
    const uint8_t *bytes; /* 0..STREAM_REPLY_MAX; none but of ANSWERED */
    uint32_t len;
};

/* Of reply all but the bytes. */
size_t message_put_reply(
    uint8_t body[MESSAGE_REPLY_HEAD], const struct message_reply *reply);
int message_get_reply(const struct stream_frame *frame,
    struct message_reply *out, struct stream_fault *fault);

#endif

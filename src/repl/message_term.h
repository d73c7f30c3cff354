/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_MESSAGE_TERM_H
#define REPL_MESSAGE_TERM_H

#include "repl/message.h"

/* Bodies by which a candidate asks the other nodes before it becomes primary,
 * and fetches what it lacks. As message.h. */

enum { PROMISE_ASKS_ONLY = 1 };

struct message_promise {
    uint64_t term;  /* 1..SEQ_TERM_MAX */
    uint64_t last;  /* batch of the candidate */
    uint32_t flags; /* PROMISE_ASKS_ONLY: nothing is to be promised */
    struct message_text name;
};

size_t message_put_promise(
    uint8_t *body, const struct message_promise *promise);
int message_get_promise(const struct stream_frame *frame,
    struct message_promise *out, struct stream_fault *fault);

enum {
    PROMISED_DOUBTFUL = 1,   /* may have lost what it acknowledged */
    PROMISED_HEARS_NONE = 2, /* was only asked, and hears no primary */
    PROMISED_HEARS_ONE = 4   /* likewise, and hears one; not both */
};

struct message_promised {
    uint64_t last;
    uint32_t flags;         /* PROMISED_.. */
    struct history history; /* which can end with last */
};

size_t message_put_promised(
    uint8_t *body, const struct message_promised *promised);
int message_get_promised(const struct stream_frame *frame,
    struct message_promised *out, struct stream_fault *fault);

/* Batches behind `from`, the last one of a log of that history. */
struct message_fetch {
    uint64_t from;
    struct history history;
};

size_t message_put_fetch(uint8_t *body, const struct message_fetch *fetch);
int message_get_fetch(const struct stream_frame *frame,
    struct message_fetch *out, struct stream_fault *fault);

#endif

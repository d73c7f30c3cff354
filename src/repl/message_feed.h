/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_MESSAGE_FEED_H
#define REPL_MESSAGE_FEED_H

#include "repl/message.h"

/* Bodies by which the changes of some ids are fed to who is no copy of the
 * directory. As message.h. */

enum { MESSAGE_RULE_MAX = 64 };

/* Which ids: a rule of base/owns.h, 1..MESSAGE_RULE_MAX printable characters,
 * no spaces; whether it is one is not looked at here. */
struct message_want {
    struct message_text rule;
};

size_t message_put_want(uint8_t *body, const struct message_want *want);
int message_get_want(const struct stream_frame *frame,
    struct message_want *out, struct stream_fault *fault);

/* Which directory feeds: by it ids of pairs of members are read. */
struct message_source {
    uint64_t epoch, seed; /* epoch is not 0 */
    uint32_t shards;      /* not 0 */
};

size_t message_put_source(uint8_t *body, const struct message_source *source);
int message_get_source(const struct stream_frame *frame,
    struct message_source *out, struct stream_fault *fault);

#endif

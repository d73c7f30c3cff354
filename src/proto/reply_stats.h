/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_REPLY_STATS_H
#define PROTO_REPLY_STATS_H

#include "base/buf.h"
#include "proto/answer.h"

#include <stdint.h>

/* A reply to stats: pairs of a name and a value, and one end. Whoever has the
 * figures hands in pairs; the text protocol and the binary one each have a
 * form for them. The session's thread. */
struct reply_stats {
    struct buf *out;
    const struct echo *echo; /* of the request: in whose words */
};

/* One pair. name has no space, the value no end of line. Text:
 * "STAT <name> <value>\r\n"; binary: a packet with both. */
void reply_stats_text(
    struct reply_stats *stats, const char *name, const char *value);
void reply_stats_u64(
    struct reply_stats *stats, const char *name, uint64_t value);

/* The reply ends here, after any number of pairs. */
void reply_stats_end(struct reply_stats *stats);

/* The whole reply is that something was done. line: what the text protocol
 * says, without its CRLF. */
void reply_stats_done(struct reply_stats *stats, const char *line);

/* The whole reply is that it cannot be: a line likewise, or ERR_x. The binary
 * protocol says of each that there is no such thing. */
void reply_stats_refuse(struct reply_stats *stats, const char *line);
void reply_stats_error(struct reply_stats *stats, int err);

/* Lines that are no pairs are appended to what reply_stats_dump gives: the
 * reply itself, or aside, which is empty and the caller's. reply_stats_end_dump
 * ends the reply and frees aside. name: what the binary protocol calls all the
 * lines together; NULL: it has no form for them, and says that there is no such
 * thing where there are any. */
struct buf *reply_stats_dump(struct reply_stats *stats, struct buf *aside);
void reply_stats_end_dump(
    struct reply_stats *stats, const char *name, struct buf *aside);

#endif

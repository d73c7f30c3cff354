/* SPDX-License-Identifier: BSD-3-Clause */
/* A reply to stats in the text protocol, and which of the two it is to be. The
 * packets are made by proto/answer_binary.c. */
#include "proto/reply_stats.h"

#include "base/assert.h"
#include "base/num.h"
#include "proto/reply.h"

#include <string.h>

static bool
is_binary(const struct reply_stats *stats)
{
    return stats->echo->proto == PROTO_BINARY;
}

void
reply_stats_text(
    struct reply_stats *stats, const char *name, const char *value)
{
    if (is_binary(stats)) {
        answer__binary_stat(
            stats->echo, name, value, strlen(value), stats->out);
        return;
    }
    buf_add_text(stats->out, "STAT ");
    buf_add_text(stats->out, name);
    buf_add(stats->out, " ", 1);
    reply_line(stats->out, value);
}

void
reply_stats_u64(struct reply_stats *stats, const char *name, uint64_t value)
{
    char text[NUM_U64_DIGITS_MAX + 1];
    text[num_format_u64(value, text)] = '\0';
    reply_stats_text(stats, name, text);
}

void
reply_stats_end(struct reply_stats *stats)
{
    reply_stats_done(stats, "END");
}

void
reply_stats_done(struct reply_stats *stats, const char *line)
{
    if (is_binary(stats)) {
        answer__binary_stats_end(stats->echo, stats->out);
    } else {
        reply_line(stats->out, line);
    }
}

void
reply_stats_refuse(struct reply_stats *stats, const char *line)
{
    if (is_binary(stats)) {
        answer__binary_stats_none(stats->echo, stats->out);
    } else {
        reply_line(stats->out, line);
    }
}

void
reply_stats_error(struct reply_stats *stats, int err)
{
    if (is_binary(stats)) {
        answer__binary_stats_none(stats->echo, stats->out);
    } else {
        reply__error(stats->out, err);
    }
}

struct buf *
reply_stats_dump(struct reply_stats *stats, struct buf *aside)
{
    ASSERT(aside->len == 0);
    return is_binary(stats) ? aside : stats->out;
}

void
reply_stats_end_dump(
    struct reply_stats *stats, const char *name, struct buf *aside)
{
    if (!is_binary(stats)) {
        ASSERT(aside->len == 0);
        reply_line(stats->out, "END");
        return;
    }
    if (name == NULL && aside->len > 0) {
        answer__binary_stats_none(stats->echo, stats->out);
    } else {
        if (name != NULL) {
            reply_line(aside, "END");
            answer__binary_stat(
                stats->echo, name, aside->data, aside->len, stats->out);
        }
        answer__binary_stats_end(stats->echo, stats->out);
    }
    stats->out->failed = stats->out->failed || aside->failed;
    buf_fini(aside);
}

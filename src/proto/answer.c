/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers in the words of the text protocol, and the choice among the three
 * protocols. noreply is the text protocol's: nothing is said then, whatever has
 * happened, as in memcached. */
#include "proto/answer.h"

#include "base/err.h"
#include "proto/reply.h"

void
answer__refuse(
    const struct echo *echo, const struct answer *answer, struct buf *out)
{
    if (answer->err == ERR_NO_MEMORY && request_is_storage(echo->op)) {
        reply_line(out, "SERVER_ERROR out of memory storing object");
    } else if (answer->detail != NULL) {
        reply__error_about(out, answer->err, answer->detail);
    } else {
        reply__error(out, answer->err);
    }
}

static void
put_text(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out)
{
    switch (answer->kind) {
    case ANSWER_STORED:
        reply_line(out, "STORED");
        return;
    case ANSWER_NOT_STORED:
        reply_line(out, "NOT_STORED");
        return;
    case ANSWER_EXISTS:
        reply_line(out, "EXISTS");
        return;
    case ANSWER_MISS:
    case ANSWER_NOT_FOUND:
        reply_line(out, "NOT_FOUND");
        return;
    case ANSWER_DELETED:
        reply_line(out, "DELETED");
        return;
    case ANSWER_TOUCHED:
        reply_line(out, "TOUCHED");
        return;
    case ANSWER_ABOUT:
    case ANSWER_OK:
        reply_line(out, "OK");
        return;
    case ANSWER_NUMBER:
        reply_number(out, answer->number);
        return;
    case ANSWER_VALUE:
        reply_value(out, bytes + echo->key.at, echo->key.len, answer->flags,
            answer->value, answer->value_len, NULL);
        return;
    case ANSWER_REFUSED:
        answer__refuse(echo, answer, out);
        return;
    }
}

void
answer_put(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out)
{
    switch (echo->proto) {
    case PROTO_TEXT:
        if (!echo->noreply) {
            put_text(echo, bytes, answer, out);
        }
        return;
    case PROTO_META:
        answer__meta(echo, bytes, answer, out);
        return;
    case PROTO_BINARY:
        answer__binary(echo, bytes, answer, out);
        return;
    }
}

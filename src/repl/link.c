/* SPDX-License-Identifier: BSD-3-Clause */
/* How links end: a reason, of which the other end is told what it can use. */
#include "repl/link.h"

#include "base/assert.h"

#include <string.h>

static const struct {
    uint32_t code;
    const char *text;
} reasons[] = {
#define X(name, code, text) {(code), text},
    LINK_REASONS(X)
#undef X
};

const char *
link_reason_text(enum link_reason reason)
{
    ASSERT((size_t)reason < sizeof reasons / sizeof reasons[0]);
    return reasons[reason].text;
}

/* The branch of that term, where it is the newest one; else 0. */
static uint64_t
branch_of(const struct history *history, uint64_t term)
{
    const struct history_term *newest =
        history->n == 0 ? NULL : &history->at[history->n - 1];

    return newest != NULL && newest->term == term ? newest->branch : 0;
}

bool
link__is_split(
    const struct history *one, const struct history *two, uint64_t term)
{
    uint64_t a = branch_of(one, term), b = branch_of(two, term);

    return a != 0 && b != 0 && a != b;
}

size_t
link__put_hello(const struct link_self *self, const struct link_node *node,
    enum message_purpose purpose, const uint8_t accepting[STREAM_NONCE_BYTES],
    const uint8_t connecting[STREAM_NONCE_BYTES], uint8_t *out)
{
    struct message_hello hello = {.purpose = purpose,
        .least = LINK_PROTOCOL,
        .most = LINK_PROTOCOL,
        .level = self->level,
        .flags = self->hello_flags,
        .priority = self->priority,
        .formats = self->formats,
        .shards = node->directory.shards,
        .epoch = node->directory.epoch,
        .seed = node->directory.seed,
        .promised = node->promised,
        .written = node->written,
        .synced = node->synced,
        .group = self->group,
        .name = self->name,
        .client = self->client,
        .repl = self->repl,
        .history = *node->history};
    struct proof_claim claim = {.accepting = accepting,
        .connecting = connecting,
        .purpose = (uint8_t)purpose,
        .group = self->group.at,
        .name = self->name.at,
        .group_len = self->group.len,
        .name_len = self->name.len};

    memcpy(hello.nonce, connecting, STREAM_NONCE_BYTES);
    if (proof__make(self->secret, &claim, hello.proof) != 0) {
        return 0;
    }
    return stream_seal(out, STREAM_HELLO,
        (uint32_t)message_put_hello(out + STREAM_HEAD_BYTES, &hello),
        node->promised, 0);
}

bool
link__is_proved(const struct link_self *self,
    const struct message_welcome *welcome,
    const uint8_t accepting[STREAM_NONCE_BYTES],
    const uint8_t connecting[STREAM_NONCE_BYTES])
{
    struct proof_claim claim = {.accepting = accepting,
        .connecting = connecting,
        .group = self->group.at,
        .name = welcome->name.at,
        .group_len = self->group.len,
        .name_len = welcome->name.len};

    return proof__is_right(self->secret, &claim, welcome->proof);
}

static uint8_t
keep_text(char *out, const struct message_text *text)
{
    if (text->len > 0) {
        memcpy(out, text->at, text->len);
    }
    return text->len;
}

void
link__hear_end(const struct stream_frame *frame, struct link_end *end)
{
    struct message_refused refused;
    struct message_error error;
    struct stream_fault fault = {0};

    *end = (struct link_end){.reason = LINK_BAD_FRAME};
    if (frame->type == STREAM_REFUSED &&
        message_get_refused(frame, &refused, &fault) == 0) {
        end->reason = LINK_REFUSED;
        end->term = refused.promised;
        end->text_len = keep_text(end->text, &refused.primary);
        end->address_len = keep_text(end->address, &refused.address);
    } else if (frame->type == STREAM_ERROR &&
        message_get_error(frame, &error, &fault) == 0) {
        end->reason = LINK_TOLD;
        end->code = error.code;
        end->text_len = keep_text(end->text, &error.text);
    } else {
        end->fault = fault;
    }
}

size_t
link__put_end(
    const struct link_end *end, uint64_t term, uint64_t session, uint8_t *out)
{
    const char *text = reasons[end->reason].text;
    struct message_error error = {.code = reasons[end->reason].code,
        .text = {(const uint8_t *)text, (uint8_t)strlen(text)}};

    if (error.code == 0) {
        return 0;
    }
    return stream_seal(out, STREAM_ERROR,
        (uint32_t)message_put_error(out + STREAM_HEAD_BYTES, &error), term,
        session);
}

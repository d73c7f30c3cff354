/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of producers from a client's side, for whoever moves records to
 * other servers: `dump numbers` shows what each producer's changes had, joined
 * over all shards, and `numbers` has them taken for done here, too. Lines of
 * the dump are what can be typed.
 *
 * A dump comes in pieces of some producers, each as it is then; a piece is made
 * where the reply buffer has room, so it takes the same memory whatever there
 * is. */
#include "session/exec_admin.h"
#include "session/exec_seen.h"

#include "base/err.h"
#include "base/seen_text.h"
#include "call/store_calls.h"
#include "proto/reply.h"

/* What the words say; false where that is no window. */
static bool
take_window(
    const struct request *request, const char *bytes, struct store_window *out)
{
    struct words words = words_of(bytes, request->words);
    struct span name = request->key, high, bits;
    return producer_name_set(&out->name, bytes + name.at, name.len) &&
        words_next(&words, &high) && words_next(&words, &bits) &&
        seen_text_get(
            bytes + high.at, high.len, bytes + bits.at, bits.len, &out->seen);
}

enum exec_step
exec__numbers(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct echo echo = echo_of(&session->request, 0);
    size_t at = turn->out->len;
    struct store_window window;
    uint64_t seq = 0;
    int err = turn->fault;
    if (err == 0 && !take_window(&session->request, bytes, &window)) {
        err = ERR_BAD_NUMBERS;
    }
    if (err == 0) {
        err = store_join_window(session->executor->store, &window, &seq);
    }
    if (err != 0) {
        return exec__refuse(session, err, turn->out);
    }
    enum exec_step step =
        exec__answer_kind(session, NULL, ANSWER_OK, turn->out);
    if (seq != 0) {
        turn->acks->seq = seq > turn->acks->seq ? seq : turn->acks->seq;
        session->changed_seq = seq;
        exec__note_ack(turn->acks, &echo, ACK_CHANGE, at, turn->out->len);
    }
    return step;
}

static void
put_window(const struct store_window *window, struct buf *out)
{
    char text[SEEN_TEXT_MAX];
    size_t len = seen_text_put(&window->seen, text);
    buf_addf(out, "NUMBERS %.*s %.*s\r\n", (int)window->name.len,
        window->name.text, (int)len, text);
}

static enum exec_step
show(struct session *session, struct exec_turn *turn)
{
    struct store_window window[STORE_WINDOWS_MAX];
    uint32_t *at = &session->job->windows_at;
    while (*at != UINT32_MAX) {
        if (turn->out->len >= turn->mark) {
            return EXEC_FULL;
        }
        if (!exec__charge(turn)) {
            return EXEC_YIELD;
        }
        uint32_t n = store_windows(
            session->executor->store, at, window, STORE_WINDOWS_MAX);
        for (uint32_t i = 0; i < n; i++) {
            put_window(&window[i], turn->out);
        }
    }
    reply_line(turn->out, "END");
    return exec__done(session);
}

enum exec_step
exec__dump_numbers_resume(struct session *session, struct exec_turn *turn)
{
    size_t first = turn->out->len;
    enum exec_step step = show(session, turn);
    exec__note_piece(session, step, first, turn);
    return step;
}

enum exec_step
exec__dump_numbers_begin(struct session *session, struct exec_turn *turn)
{
    if (session->executor->rules.no_dump) {
        reply_line(turn->out, "ERROR key dump not allowed");
        return EXEC_DONE;
    }
    struct job *job = exec__job(session, JOB_NUMBERS);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->windows_at = 0;
    return exec__dump_numbers_resume(session, turn);
}

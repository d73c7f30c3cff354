/* SPDX-License-Identifier: BSD-3-Clause */
/* dump counter: a counter's records as lines of the dialect that store them
 * again. The store answers a piece of some hundred records a call, on a thread
 * of its own; what the reply buffer's mark leaves room for is shown, and the
 * next piece is asked for when all of it is. A client that does not read is not
 * asked for either, so a dump takes the same memory whatever there is. */
#include "net/exec_admin.h"

#include "base/err.h"
#include "base/num.h"
#include "proto/reply.h"
#include "store/store_dump.h"

#include <inttypes.h>
#include <string.h>

/* What each line begins with, and its end. */
enum { LINE_EXTRA = sizeof "set  \r\n" };

static enum store_answer
ask(struct job *job)
{
    return store_dump(job->session->executor->store, &job->records.call);
}

static char *
put(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

/* set NAME ID VALUE ... */
static void
put_record(const struct store_dump *dump, uint32_t i, const char *name,
    size_t name_len, struct buf *out)
{
    const uint64_t *value = &dump->value[(size_t)i * dump->n_columns];
    size_t len_max = LINE_EXTRA + name_len +
        (1 + (size_t)dump->n_columns) * (NUM_U64_DIGITS_MAX + 1);
    char *start = buf_reserve(out, len_max);
    if (start == NULL) {
        return; /* out has failed */
    }
    char *at = put(start, "set ", 4);
    at = put(at, name, name_len);
    *at++ = ' ';
    at += num_format_u64(dump->id[i], at);
    for (unsigned c = 0; c < dump->n_columns; c++) {
        *at++ = ' ';
        at += num_format_u64(value[c], at);
    }
    at = put(at, "\r\n", 2);
    out->len += (size_t)(at - start);
}

/* True where the dump goes on behind that error. */
static bool
is_of_some(int err)
{
    return err == ERR_CORRUPT || err == ERR_NEWER_FORMAT || err == ERR_DISK;
}

/* Shows what the store has answered; false where the buffer is full. */
static bool
put_piece(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    const struct store_dump *dump = &job->records.call;
    struct span name = session->request.key;
    for (; job->records.at < dump->n; job->records.at++) {
        if (turn->out->len >= turn->mark) {
            return false;
        }
        put_record(
            dump, job->records.at, turn->base + name.at, name.len, turn->out);
    }
    return true;
}

enum exec_step
exec__records_resume(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct store_dump *dump = &job->records.call;
    for (;;) {
        if (!put_piece(session, turn)) {
            return EXEC_FULL;
        }
        if (is_of_some(dump->err)) {
            buf_addf(turn->out,
                "SERVER_ERROR ids %" PRIu64 " to %" PRIu64 ": %s\r\n",
                dump->bad_first, dump->bad_last, err_file_text(dump->err));
        } else if (dump->err != 0) {
            return exec__refuse(session, dump->err, turn->out);
        } else if (dump->is_end) {
            reply_line(turn->out, "END");
            return exec__done(session);
        }
        dump->err = 0;
        dump->n = 0;
        job->records.at = 0;
        if (*turn->budget == 0) {
            return EXEC_YIELD;
        }
        (*turn->budget)--;
        if (exec__waits(job, &dump->call, ask)) {
            return EXEC_LATER;
        }
    }
}

/* The ids that are wanted: none given, all. */
static int
take_ids(const struct request *request, const char *bytes, uint64_t *first,
    uint64_t *last)
{
    struct words words = words_of(bytes, request->words);
    struct span word;
    *first = 0;
    *last = UINT64_MAX;
    if (!words_next(&words, &word)) {
        return 0;
    }
    bool is_right = num_parse_u64(bytes + word.at, word.len, first) &&
        words_next(&words, &word) &&
        num_parse_u64(bytes + word.at, word.len, last);
    return is_right ? 0 : ERR_BAD_ID;
}

enum exec_step
exec__records_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    struct span name = request->key;
    const struct schema_counter *counter =
        schema_counter(exec__schema(session), bytes + name.at, name.len);
    uint64_t first, last;
    int err = take_ids(request, bytes, &first, &last);
    if (session->executor->rules.no_dump) {
        reply_line(turn->out, "ERROR key dump not allowed");
        return EXEC_DONE;
    }
    if (err == 0 && counter == NULL) {
        err = ERR_NO_COUNTER;
    }
    if (err != 0) {
        return exec__refuse(session, err, turn->out);
    }
    struct job *job = exec__job(session, JOB_RECORDS);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->records.at = 0;
    job->records.call = (struct store_dump){.slot = counter->slot,
        .serial = counter->serial,
        .first_id = first,
        .last_id = last};
    return exec__waits(job, &job->records.call.call, ask)
        ? EXEC_LATER
        : exec__records_resume(session, turn);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* dump counter: a counter's records as lines of the dialect that store them
 * again. The store answers a piece of some hundred records a call, on a thread
 * of its own; what the reply buffer's mark leaves room for is shown, and the
 * next piece is asked for when all of it is. A client that does not read is not
 * asked for either, so a dump takes the same memory whatever there is.
 *
 * Of a counter with a maxjump a line comes first that says its largest id, and
 * again before records above that: whoever loads the lines in their order, or
 * these first, has none refused.
 *
 * Two columns are shown by name: three numbers behind a counter's name are what
 * memcached's clients send before a value, and never store a record. */
#include "session/exec_admin.h"
#include "session/exec_seen.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "call/store_calls.h"
#include "proto/reply.h"
#include "schema/print.h"

#include <inttypes.h>
#include <string.h>

enum {
    LINE_EXTRA = sizeof "set  \r\n", /* what each begins with, and its end */
    NAMED_COLUMNS = 2
};

/* What stands before the numbers of a record's line. */
struct line_names {
    const char *counter;
    size_t counter_len;
    const struct schema_name *column[NAMED_COLUMNS]; /* NULL: not by name */
};

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

/* The names of the columns that were read, where they are to be shown. 0, or
 * ERR_OTHER_COLUMNS where one has been dropped since. */
static int
name_columns(struct session *session, const struct store_dump *dump,
    struct line_names *out)
{
    const struct schema_counter *counter =
        schema_counter_at(exec__schema(session), dump->slot);
    out->column[0] = NULL;
    if (dump->n_columns != NAMED_COLUMNS) {
        return 0;
    }
    for (unsigned i = 0; i < NAMED_COLUMNS; i++) {
        out->column[i] = NULL;
        for (unsigned c = 0; counter != NULL && c < counter->n_columns; c++) {
            if (counter->column[c].serial == dump->column_serial[i]) {
                out->column[i] = &counter->column[c].name;
            }
        }
        if (out->column[i] == NULL) {
            return ERR_OTHER_COLUMNS;
        }
    }
    return 0;
}

/* set NAME ID VALUE ..., or set NAME ID COLUMN=VALUE ... */
static void
put_record(const struct store_dump *dump, uint32_t i,
    const struct line_names *names, struct buf *out)
{
    const uint64_t *value = &dump->value[(size_t)i * dump->n_columns];
    ASSERT(dump->first_id <= dump->id[i] && dump->id[i] <= dump->last_id);
    ASSERT(i == 0 || dump->id[i - 1] < dump->id[i]); /* each is shown once */
    size_t len_max = LINE_EXTRA + names->counter_len +
        (1 + (size_t)dump->n_columns) * (NUM_U64_DIGITS_MAX + 1) +
        (names->column[0] == NULL ? 0 : NAMED_COLUMNS * (SCHEMA_NAME_MAX + 1));
    char *start = buf_reserve(out, len_max);
    if (start == NULL) {
        return; /* out has failed */
    }
    char *at = put(start, "set ", 4);
    at = put(at, names->counter, names->counter_len);
    *at++ = ' ';
    at += num_format_u64(dump->id[i], at);
    for (unsigned c = 0; c < dump->n_columns; c++) {
        *at++ = ' ';
        if (names->column[0] != NULL) {
            const struct schema_name *name = names->column[c];
            at = put(at, name->text, name->len);
            *at++ = '=';
        }
        at += num_format_u64(value[c], at);
    }
    at = put(at, "\r\n", 2);
    ASSERT((size_t)(at - start) <= len_max);
    out->len += (size_t)(at - start);
}

/* True where the dump goes on behind that error. */
static bool
is_of_some(int err)
{
    return err == ERR_CORRUPT || err == ERR_NEWER_FORMAT || err == ERR_DISK;
}

/* The line that has a piece's records let in where there is a maxjump. */
static void
put_largest(struct session *session, struct buf *out)
{
    struct store_dump *dump = &session->job->records.call;
    const struct schema_counter *counter =
        schema_counter_at(exec__schema(session), dump->slot);
    if (dump->has_largest && counter != NULL &&
        counter->serial == dump->serial && counter->max_jump != 0) {
        schema_print_largest(counter, dump->largest_id, out);
    }
    dump->has_largest = false;
}

/* Shows what the store has answered; false where the buffer is full. Where the
 * columns have gone it shows no more, and the dump has that as its err. */
static bool
put_piece(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct store_dump *dump = &job->records.call;
    struct span name = session->request.key;
    struct line_names names = {
        .counter = turn->base + name.at, .counter_len = name.len};
    int err = dump->n == 0 ? 0 : name_columns(session, dump, &names);
    if (err != 0) {
        dump->err = err;
        return true;
    }
    put_largest(session, turn->out);
    ASSERT(job->records.at <= dump->n);
    for (; job->records.at < dump->n; job->records.at++) {
        if (turn->out->len >= turn->mark) {
            return false;
        }
        put_record(dump, job->records.at, &names, turn->out);
    }
    return true;
}

/* Goes on with the reply: EXEC_DONE where that is its end, EXEC_LATER where the
 * next piece is wanted. */
static enum exec_step
show_piece(struct session *session, struct exec_turn *turn)
{
    struct store_dump *dump = &session->job->records.call;
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
    return EXEC_LATER;
}

/* The same; and what is shown of what is not committed waits. */
static enum exec_step
show(struct session *session, struct exec_turn *turn)
{
    struct echo echo = echo_of(&session->request, 0);
    size_t first = turn->out->len;
    enum exec_step step = show_piece(session, turn);
    if (turn->out->len > first && exec__wait_for_seen(session, turn)) {
        exec__note_seen(session, &echo, step != EXEC_DONE, first, turn);
    }
    return step;
}

enum exec_step
exec__records_resume(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct store_dump *dump = &job->records.call;
    for (;;) {
        enum exec_step step = show(session, turn);
        if (step != EXEC_LATER) {
            return step;
        }
        dump->err = 0;
        dump->n = 0;
        job->records.at = 0;
        if (!exec__charge(turn)) {
            return EXEC_YIELD;
        }
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

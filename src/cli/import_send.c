/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines to the server, batch by batch. While one is read the ones before it are
 * under way:
 *
 *   first            n_sent           n_full
 *   | answers awaited | not sent      | is filled
 *
 * The first is done when all its answers are there, and only then what it had
 * counts. An answer means:
 *
 *   SERVER_ERROR          not now: all answers are waited for, then this batch
 *                         and those behind it are sent again, in their order
 *   CLIENT_ERROR, ERROR   never: the line goes to the file of rejects
 *   else                  it is stored
 *
 * Where the connection ends all that is not done is sent again on another
 * one. Two lines of one record come in their order in any case: the last one
 * that is stored is the last of the input. */
#include "cli/import_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "cli/peer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { PAUSE_MS = 1000, SAVE_MS = 1000, NS_PER_MS = 1000000 };

bool
import__fail(struct import *job, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(job->why, sizeof job->why, format, list);
    va_end(list);
    return false;
}

static bool
no_memory(struct import *job)
{
    return import__fail(job, "out of memory");
}

static void
trouble(struct import *job, const char *what)
{
    shown_end(&job->shown);
    ask_say("%s; it is tried again", what);
}

static bool
pause_and_go_on(struct import *job)
{
    if (!stop_is_asked(&job->stop)) {
        stop_sleep(&job->stop, PAUSE_MS);
    }
    return !stop_is_asked(&job->stop) ||
        import__fail(job, "ended by a signal");
}

static enum talk_take
take_one(void *context, const char *line, size_t len)
{
    (void)context;
    return talk_is_error(line, len) ? TALK_WRONG : TALK_END;
}

/* What it says on each connection. */
static bool
begin(struct import *job)
{
    static const char feed_on[] = "feed on\r\n";
    bool is_begun = ask_connect(&job->ask) &&
        (!job->is_feed ||
            talk_ask(
                &job->ask.talk, feed_on, sizeof feed_on - 1, take_one, NULL));
    if (!is_begun) {
        talk_close(&job->ask.talk);
    }
    return is_begun;
}

/* Connects where there is no connection. */
static bool
connect_anew(struct import *job)
{
    while (job->ask.talk.fd < 0 && !begin(job)) {
        trouble(job, job->ask.talk.why);
        if (!pause_and_go_on(job)) {
            return false;
        }
    }
    return true;
}

const struct rows_columns *
import__columns(struct import *job, const char *counter)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < job->n_columns; i++) {
        if (strcmp(job->columns[i].counter.text, counter) == 0) {
            return &job->columns[i];
        }
    }
    if (job->n_columns == IMPORT_COUNTERS_MAX) {
        (void)import__fail(job, "16 counters at most can be imported at once");
        return NULL;
    }
    struct rows_columns *columns = &job->columns[job->n_columns];
    if (!ask_connect(&job->ask) ||
        !peer_columns(&job->ask.talk, counter, columns, &n)) {
        (void)import__fail(job, "%s", job->ask.talk.why);
        talk_close(&job->ask.talk);
        return NULL;
    }
    talk_close(&job->ask.talk);
    job->n_columns++;
    return columns;
}

/* ---- batches ---- */

static struct import_batch *
batch_at(struct import *job, unsigned place)
{
    return &job->batch[(job->first + place) % IMPORT_WINDOW];
}

struct import_batch *
import__filled(struct import *job)
{
    return batch_at(job, job->n_full);
}

bool
import__put(struct import *job, const struct buf *line, const char *from,
    size_t from_len)
{
    struct import_batch *batch = import__filled(job);
    if (line->failed) {
        return no_memory(job);
    }
    buf_add(&batch->lines, line->data, line->len);
    import__add_sent(batch, from, from_len);
    batch->n_lines++;
    return (!batch->lines.failed && !batch->from.failed) || no_memory(job);
}

/* Forgets what was answered. */
static void
unanswer(struct import_batch *batch)
{
    batch->n_answered = 0;
    batch->from_at = 0;
    batch->n_refused = 0;
    batch->passing[0] = '\0';
    buf_clear(&batch->rejects);
}

static void
empty(struct import_batch *batch)
{
    unanswer(batch);
    batch->n_lines = 0;
    batch->is_at = false;
    buf_clear(&batch->lines);
    buf_clear(&batch->from);
}

static bool
is_answered(const struct import_batch *batch)
{
    return batch->n_answered == batch->n_lines;
}

/* The one that the next answer is of; NULL: there is none. */
static struct import_batch *
answered_next(struct import *job)
{
    for (unsigned i = 0; i < job->n_sent; i++) {
        if (!is_answered(batch_at(job, i))) {
            return batch_at(job, i);
        }
    }
    return NULL;
}

static enum talk_take
take_reply(void *context, const char *reply, size_t len)
{
    struct import *job = context;
    struct import_batch *batch = answered_next(job);
    if (batch == NULL || talk_begins(reply, len, "SERVER_ERROR not primary")) {
        return TALK_WRONG;
    }
    struct rows_span from = import__next_sent(batch);
    if (talk_begins(reply, len, "SERVER_ERROR ")) {
        (void)snprintf(batch->passing, sizeof batch->passing,
            "%.80s answers %.*s", job->ask.talk.at.text,
            len > 100 ? 100 : (int)len, reply);
    } else if (talk_begins(reply, len, "CLIENT_ERROR ") ||
        talk_begins(reply, len, "ERROR") ||
        talk_begins(reply, len, "NOT_STORED")) {
        import__refuse(batch, (struct rows_span){reply, len}, from);
        batch->n_refused++;
    }
    batch->n_answered++;
    bool is_over = job->awaits_all ? answered_next(job) == NULL
                                   : is_answered(batch_at(job, 0));
    return is_over ? TALK_END : TALK_MORE;
}

/* Nothing is under way any more: all that is full is sent again. */
static void
forget_sent(struct import *job)
{
    for (unsigned i = 0; i < job->n_sent; i++) {
        unanswer(batch_at(job, i));
    }
    job->n_sent = 0;
}

/* Answers of the first one, or of all that are under way. */
static bool
await_answers(struct import *job, bool of_all)
{
    job->awaits_all = of_all;
    bool is_there =
        of_all ? answered_next(job) == NULL : is_answered(batch_at(job, 0));
    return is_there || talk_await(&job->ask.talk, take_reply, job);
}

/* One step: a connection where there is none, then a batch that is sent, then
 * the answers of the first. False with talk.why. */
static bool
exchange(struct import *job)
{
    struct talk *talk = &job->ask.talk;
    if (talk->fd < 0) {
        forget_sent(job);
        if (!begin(job)) {
            return false;
        }
    }
    if (job->n_sent == job->n_full) {
        return await_answers(job, false);
    }
    const struct import_batch *batch = batch_at(job, job->n_sent++);
    job->awaits_all = true;
    return talk_send(
        talk, batch->lines.data, batch->lines.len, take_reply, job);
}

static void
drop_first(struct import *job)
{
    ASSERT(job->n_sent > 0 && job->n_full >= job->n_sent);
    empty(batch_at(job, 0));
    job->first = (job->first + 1) % IMPORT_WINDOW;
    job->n_sent--;
    job->n_full--;
}

/* Where the input is done up to a place that is noted now and then. */
static bool
note(struct import *job, uint64_t at)
{
    uint64_t now = clock_monotonic_ns() / NS_PER_MS;
    job->place.at = at;
    job->done = job->place;
    if (now - job->saved_ms < SAVE_MS) {
        return true;
    }
    job->saved_ms = now;
    return import__save_state(job);
}

/* The first one is answered, and is not sent again. Where what it refused
 * cannot be told, it is told by a run that goes on: so nothing behind it is
 * noted. */
static bool
complete_first(struct import *job)
{
    struct import_batch *batch = batch_at(job, 0);
    job->place.rows += batch->n_lines - batch->n_refused;
    job->is_untold = job->is_untold || !import__tell_rejects(job, batch) ||
        (batch->is_at && !note(job, batch->at));
    drop_first(job);
    return !job->is_untold;
}

/* What is answered is done, or for now refused. False: the import ends. */
static bool
take_answered(struct import *job)
{
    while (job->n_sent > 0 && is_answered(batch_at(job, 0))) {
        if (batch_at(job, 0)->passing[0] == '\0') {
            if (!complete_first(job)) {
                return false;
            }
            continue;
        }
        trouble(job,
            await_answers(job, true) ? batch_at(job, 0)->passing
                                     : job->ask.talk.why);
        forget_sent(job);
        return pause_and_go_on(job);
    }
    return true;
}

/* Until all is sent, and no more than that many batches are not done. */
static bool
send_until(struct import *job, unsigned most)
{
    while (job->n_full > most || job->n_sent < job->n_full) {
        if (!exchange(job)) {
            trouble(job, job->ask.talk.why);
            if (!pause_and_go_on(job)) {
                return false;
            }
        } else if (!take_answered(job)) {
            return false;
        }
    }
    return true;
}

bool
import__send(struct import *job)
{
    job->n_full++;
    bool is_sent = send_until(job, IMPORT_WINDOW - 1);
    shown_tell(&job->shown, job->place.rows, job->parts);
    return is_sent &&
        (!stop_is_asked(&job->stop) || import__fail(job, "ended by a signal"));
}

bool
import__flush(struct import *job, uint64_t at)
{
    struct import_batch *batch = import__filled(job);
    batch->is_at = true;
    batch->at = at;
    return import__send(job);
}

bool
import__finish(struct import *job, bool is_read)
{
    char why[IMPORT_WHY_MAX];
    if (is_read && send_until(job, 0)) {
        return true;
    }
    /* what is under way counts, though nothing is sent again */
    memcpy(why, job->why, sizeof why);
    while (job->n_sent > 0 && job->ask.talk.fd >= 0 &&
        await_answers(job, false) && batch_at(job, 0)->passing[0] == '\0') {
        (void)complete_first(job);
    }
    memcpy(job->why, why, sizeof why);
    return false;
}

void
import__free_batches(struct import *job)
{
    for (unsigned i = 0; i < IMPORT_WINDOW; i++) {
        buf_fini(&job->batch[i].lines);
        buf_fini(&job->batch[i].from);
        buf_fini(&job->batch[i].rejects);
    }
}

bool
import__say(struct import *job, const char *line, size_t len)
{
    ASSERT(job->n_full == 0);
    return connect_anew(job) &&
        (talk_ask(&job->ask.talk, line, len, take_one, NULL) ||
            import__fail(job, "%.*s: %.160s", len > 100 ? 100 : (int)len, line,
                job->ask.talk.why));
}

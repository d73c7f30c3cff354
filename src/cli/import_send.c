/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines to the server. An answer means:
 *
 *   SERVER_ERROR          not now: all answers are waited for, then the same
 *                         lines are sent again
 *   CLIENT_ERROR, ERROR   never: the line goes to the file of rejects
 *   else                  it is stored
 *
 * Where the connection ends the lines are sent again on another one. */
#include "cli/import_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "cli/peer.h"

#include <errno.h>
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

/* ---- rejects ---- */

/* What was refused, and why, as two lines. */
static bool
write_reject(
    struct import *job, const char *why, const char *from, size_t from_len)
{
    FILE *file = job->rejects_file;
    int n = fprintf(file, "# %s\n", why);
    for (size_t i = 0; i < from_len; i++) {
        bool is_end = from[i] == '\0' || from[i] == '\n' || from[i] == '\r';
        (void)putc_unlocked(is_end ? '?' : from[i], file);
    }
    (void)putc_unlocked('\n', file);
    if (n < 0 || ferror(file) != 0 || fflush(file) != 0) {
        return import__fail(job, "%s: %s", job->rejects, strerror(errno));
    }
    job->place.reject_bytes += (uint64_t)n + from_len + 1;
    return true;
}

bool
import__reject(
    struct import *job, const char *why, const char *from, size_t from_len)
{
    struct import_place *place = &job->place;
    if (job->rejects_file != NULL) {
        if (!write_reject(job, why, from, from_len)) {
            return false;
        }
    } else if (place->rejects < 10) {
        shown_end(&job->shown);
        ask_say("%s: %.*s", why, from_len > 100 ? 100 : (int)from_len, from);
    }
    place->rejects++;
    return place->rejects <= job->rejects_most ||
        import__fail(job,
            "more than %" PRIu64 " lines are refused, the last: %.100s "
            "(--rejects-most)",
            job->rejects_most, why);
}

bool
import__pass_over(struct import *job, const char *key, size_t len)
{
    return !import_map_is_near(&job->map, key, len) ||
        import__reject(job,
            "what stands for {id} is no whole number from 0 to 2^64-1, and "
            "no name of a counter whose ids are names",
            key, len);
}

/* ---- batches ---- */

struct sending {
    struct import *job;
    const char *from, *from_end; /* of the line that is answered next on */
    unsigned n;                  /* lines that are left */
    char passing[TALK_WHY_MAX];  /* a SERVER_ERROR; "": none */
    /* Rejects are told once it is sure that the batch is not sent again. */
    struct buf rejects; /* lines: the answer, then where it comes from */
};

static enum talk_take
take_reply(void *context, const char *reply, size_t len)
{
    struct sending *sending = context;
    size_t left = (size_t)(sending->from_end - sending->from);
    const char *end = memchr(sending->from, '\n', left);
    ASSERT(sending->n > 0 && end != NULL);
    if (talk_begins(reply, len, "SERVER_ERROR not primary")) {
        return TALK_WRONG;
    }
    if (talk_begins(reply, len, "SERVER_ERROR ")) {
        (void)snprintf(sending->passing, sizeof sending->passing,
            "%.80s answers %.*s", sending->job->ask.talk.at.text,
            len > 100 ? 100 : (int)len, reply);
    } else if (talk_begins(reply, len, "CLIENT_ERROR ") ||
        talk_begins(reply, len, "ERROR") ||
        talk_begins(reply, len, "NOT_STORED")) {
        buf_add(&sending->rejects, reply, len);
        buf_add_text(&sending->rejects, "\n");
        buf_add(&sending->rejects, sending->from,
            (size_t)(end + 1 - sending->from));
    }
    sending->from = end + 1;
    sending->n--;
    return sending->n == 0 ? TALK_END : TALK_MORE;
}

/* All lines of sending.rejects, two by two. */
static bool
tell_rejects(struct import *job, struct buf *rejects)
{
    char why[TALK_LINE_MAX];
    bool is_told = !rejects->failed || no_memory(job);
    for (size_t at = 0; is_told && at < rejects->len;) {
        const char *text = rejects->data + at;
        size_t n =
            (size_t)((char *)memchr(text, '\n', rejects->len - at) - text);
        (void)snprintf(why, sizeof why, "%.*s", (int)n, text);
        const char *from = text + n + 1;
        size_t from_len =
            (size_t)((char *)memchr(from, '\n', rejects->len - at - n - 1) -
                from);
        job->place.rows--;
        is_told = import__reject(job, why, from, from_len);
        at += n + 1 + from_len + 1;
    }
    return is_told;
}

static bool
send_batch(struct import *job)
{
    while (true) {
        struct sending sending = {.job = job,
            .from = job->from.data,
            .from_end = job->from.data + job->from.len,
            .n = job->n_lines};
        if (!connect_anew(job)) {
            return false;
        }
        bool is_sent = talk_ask(&job->ask.talk, job->lines.data,
            job->lines.len, take_reply, &sending);
        if (is_sent && sending.passing[0] == '\0') {
            job->place.rows += job->n_lines;
            bool is_told = tell_rejects(job, &sending.rejects);
            buf_fini(&sending.rejects);
            return is_told;
        }
        buf_fini(&sending.rejects);
        trouble(job, is_sent ? sending.passing : job->ask.talk.why);
        if (!pause_and_go_on(job)) {
            return false;
        }
    }
}

bool
import__put(struct import *job, const struct buf *line, const char *from,
    size_t from_len)
{
    if (line->failed) {
        return no_memory(job);
    }
    buf_add(&job->lines, line->data, line->len);
    buf_add(&job->from, from, from_len);
    buf_add_text(&job->from, "\n");
    job->n_lines++;
    return (!job->lines.failed && !job->from.failed) || no_memory(job);
}

bool
import__send(struct import *job)
{
    if (job->n_lines > 0 && !send_batch(job)) {
        return false;
    }
    job->n_lines = 0;
    buf_clear(&job->lines);
    buf_clear(&job->from);
    shown_tell(&job->shown, job->place.rows, job->parts);
    return !stop_is_asked(&job->stop) ||
        import__fail(job, "ended by a signal");
}

bool
import__flush(struct import *job, uint64_t at)
{
    bool is_sent = import__send(job);
    if (job->n_lines == 0) { /* also where a signal has come since */
        job->place.at = at;
        job->done = job->place;
    }
    uint64_t now = clock_monotonic_ns() / NS_PER_MS;
    if (!is_sent || now - job->saved_ms < SAVE_MS) {
        return is_sent;
    }
    job->saved_ms = now;
    return import__save_state(job);
}

bool
import__say(struct import *job, const char *line, size_t len)
{
    return connect_anew(job) &&
        (talk_ask(&job->ask.talk, line, len, take_one, NULL) ||
            import__fail(job, "%.*s: %.160s", len > 100 ? 100 : (int)len, line,
                job->ask.talk.why));
}

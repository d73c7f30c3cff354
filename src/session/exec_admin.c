/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of administration, and dumps of items.
 *
 * What a command means for the server is the server's (struct admin); here is
 * what has to do with the connection: the reply, the end of it, and dumps,
 * which may be longer than any buffer. A dump shows some items a piece, and
 * stats some figures; it takes one from the turn's budget for each piece and
 * stops at the reply buffer's mark, so that a client that does not read holds
 * up nobody. All that are under way share out what a round of the worker's loop
 * may take, so that others have their turns soon, however many clients ask. */
#include "session/exec_admin.h"

#include "base/base64.h"
#include "base/err.h"
#include "base/uri.h"
#include "proto/reply.h"
#include "session/watch.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ROUND_PIECES = 8,   /* of all long replies, in a round of the loop */
    DUMP_PIECE = 64,    /* items; a stripe's lock is held for so many */
    DUMP_PIECE_MIN = 16 /* where many share the round */
};

/* What a piece of a dump is put into. */
struct dump {
    const struct session *session;
    const struct job *job;
    struct buf *out;
};

uint64_t
exec__now_s(const struct session *session)
{
    const struct clock_shift *clock = session->executor->admin->clock;
    return clock == NULL ? clock_monotonic_s() : clock_shifted_s(clock);
}

int64_t
exec__unix_s(const struct session *session)
{
    const struct clock_shift *clock = session->executor->admin->clock;
    return clock == NULL ? clock_unix_s() : clock_shifted_unix_s(clock);
}

void
exec__count_prefix(struct session *session, struct schema_word key,
    const struct prefix_counts *counts)
{
    struct prefixes *prefixes = session->executor->admin->prefixes;
    if (prefixes != NULL && prefixes_are_on(prefixes) &&
        session->request.proto != PROTO_META) {
        prefixes_add(prefixes, key.text, key.len, counts);
    }
}

/* A key as in an URL. */
static void
put_encoded(struct buf *out, const char *key, size_t len)
{
    char *room = buf_reserve(out, URI_BYTES * len);
    if (room != NULL) {
        out->len += uri_encode(key, len, room);
    }
}

/* The unix time of one of the items' clock. */
static int64_t
unix_of(const struct session *session, uint64_t time_s)
{
    return exec__unix_s(session) + (int64_t)(time_s - exec__now_s(session));
}

static void
put_metadata(struct dump *dump, const struct items_seen *seen)
{
    int64_t expiry = seen->expiry_s == ITEMS_NEVER
        ? -1
        : unix_of(dump->session, seen->expiry_s);
    buf_add_text(dump->out, "key=");
    put_encoded(dump->out, seen->key, seen->key_len);
    buf_addf(dump->out,
        " exp=%" PRId64 " la=%" PRId64 " cas=%" PRIu64
        " fetch=%s cls=%u size=%zu flags=%" PRIu32 " \n",
        expiry, unix_of(dump->session, seen->used_s),
        dump->session->executor->rules.no_cas ? 0 : seen->item->cas,
        seen->was_fetched ? "yes" : "no", seen->class_, seen->bytes,
        seen->item->flags);
}

static void
put_mg(struct dump *dump, const struct items_seen *seen)
{
    char text[TEXT_KEY_MAX * 2];
    buf_add_text(dump->out, "mg ");
    if (uri_is_word(seen->key, seen->key_len)) {
        buf_add(dump->out, seen->key, seen->key_len);
        reply_line(dump->out, "");
        return;
    }
    buf_add(dump->out, text, base64_encode(seen->key, seen->key_len, text));
    reply_line(dump->out, " b");
}

static void
put_item(void *context, const struct items_seen *seen)
{
    struct dump *dump = context;
    if ((dump->job->dump.classes >> seen->class_ & 1) == 0) {
        return;
    }
    if (dump->job->dump.as_mg) {
        put_mg(dump, seen);
    } else {
        put_metadata(dump, seen);
    }
}

/* The share of whole that one of the long replies has. */
static unsigned
share_of(const struct session *session, unsigned whole, unsigned least)
{
    unsigned share = whole / session->executor->n_long;
    return share < least ? least : share;
}

/* EXEC_DONE: another piece may be made in this turn, of which n_left are left;
 * it is counted. */
static enum exec_step
take_piece(struct exec_turn *turn, unsigned *n_left)
{
    if (turn->out->len >= turn->mark) {
        return EXEC_FULL;
    }
    if (*turn->budget == 0 || *n_left == 0) {
        *turn->budget = 0;
        return EXEC_YIELD;
    }
    (*turn->budget)--;
    (*n_left)--;
    return EXEC_DONE;
}

enum exec_step
exec__dump_resume(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct dump dump = {session, job, turn->out};
    struct items *items = session->executor->store->items;
    unsigned n_left = share_of(session, ROUND_PIECES, 1);
    unsigned n_items =
        share_of(session, ROUND_PIECES * DUMP_PIECE, DUMP_PIECE_MIN);
    n_items = n_items > DUMP_PIECE ? DUMP_PIECE : n_items;
    while (!job->dump.has_ended) {
        enum exec_step step = take_piece(turn, &n_left);
        if (step != EXEC_DONE) {
            return step;
        }
        job->dump.cursor = items_each(items, job->dump.cursor, n_items,
            exec__now_s(session), put_item, &dump);
        job->dump.has_ended = job->dump.cursor == 0;
    }
    reply_line(turn->out, job->dump.as_mg ? "EN" : "END");
    return exec__done(session);
}

/* The client reads until END: whatever comes before it in the same packet has
 * to be answered and sent by then, and is not always. */
static enum exec_step
begin_dump(struct session *session, const struct text_admin *command,
    struct exec_turn *turn)
{
    if (turn->out->len > 0) {
        reply_line(
            turn->out, "ERROR cannot pipeline other commands before metadump");
        return EXEC_DONE;
    }
    struct job *job = exec__job(session, JOB_DUMP);
    if (job == NULL) {
        reply_line(turn->out, "SERVER_ERROR out of memory");
        return EXEC_DONE;
    }
    job->dump.cursor = 0;
    job->dump.has_ended = false;
    job->dump.classes = command->classes;
    job->dump.as_mg = command->op == TEXT_ADMIN_MGDUMP;
    reply_line(turn->out, "OK");
    return exec__dump_resume(session, turn);
}

/* The next piece of the reply to stats: true where more follows. */
static bool
put_figures(struct session *session, const char *bytes, struct buf *out)
{
    struct admin *admin = session->executor->admin;
    struct admin_reply *reply = &session->job->stats;
    struct span what = session->request.words;
    struct echo echo = echo_of(&session->request, 0);
    struct reply_stats stats = {out, &echo};
    return admin->stats_fn(admin, bytes + what.at, what.len, reply, &stats);
}

enum exec_step
exec__stats_resume(struct session *session, struct exec_turn *turn)
{
    unsigned n_left = share_of(session, ROUND_PIECES, 1);
    do {
        enum exec_step step = take_piece(turn, &n_left);
        if (step != EXEC_DONE) {
            return step;
        }
    } while (put_figures(session, turn->base, turn->out));
    *turn->budget = 0; /* as in exec__stats_begin */
    return exec__done(session);
}

/* The first piece is made at once: most replies have only that. */
enum exec_step
exec__stats_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct job *job = exec__job(session, JOB_STATS);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->stats.step = 0;
    bool has_more = put_figures(session, bytes, turn->out);
    *turn->budget = 0; /* it can take long: others first */
    return has_more ? EXEC_YIELD : exec__done(session);
}

static void
on_lines(void *context)
{
    struct session *session = context;
    ASSERT(session->magic == SESSION_MAGIC);
    mutex_assert_held(&session->executor->watch->hub->lock);
    session->lines_fn(session);
}

/* The connection becomes a watcher's. */
static enum exec_step
begin_watch(struct session *session, const struct text_admin *command,
    struct exec_turn *turn)
{
    struct executor *executor = session->executor;
    unsigned kinds = command->watch == 0 ? WATCH_FETCHERS : command->watch;
    const char *line = "OK";
    bool is_full = false;
    if (executor->watch == NULL || executor->rules.no_watch) {
        line = "CLIENT_ERROR watch commands not allowed";
    } else if (turn->out->len > 0) {
        line = "ERROR cannot pipeline other commands before watch";
    } else if (command->error != NULL) {
        line = command->error;
    } else {
        session->watcher = watch__add(
            executor->watch->hub, kinds, on_lines, session, &is_full);
        if (is_full) {
            line = "WATCHER_TOO_MANY log watcher limit reached";
        } else if (session->watcher == NULL) {
            line = "WATCHER_FAILED failed to add log watcher";
        }
    }
    reply_line(turn->out, line);
    return EXEC_DONE;
}

/* For the log: who has ended another connection, or changed what is slow. */
static void
audit(struct session *session, const struct text_admin *command)
{
    char text[AUDIT_TEXT_BYTES];
    int n = 0;
    if (command->op == TEXT_ADMIN_KILL) {
        n = snprintf(text, sizeof text, "kill conn %" PRIu64, command->conn);
        exec__audit(session, AUDIT_DROPPED, text, (size_t)n);
    } else if (command->op == TEXT_ADMIN_SLOW) {
        n = snprintf(text, sizeof text, "slow %" PRIu64, command->slow_ms);
        exec__audit(session, AUDIT_DONE, text, (size_t)n);
    }
}

enum exec_step
exec__admin(struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct admin *admin = session->executor->admin;
    struct text_admin command;
    const char *line = "ERROR";
    text_admin_read(bytes, session->request.words, &command);
    if (command.op == TEXT_ADMIN_WATCH && admin->command_fn != NULL) {
        return begin_watch(session, &command, turn);
    }
    if (admin->command_fn != NULL) {
        line = admin->command_fn(admin, &command);
    }
    if (line == NULL && command.op == TEXT_ADMIN_SHUTDOWN) {
        exec__audit(session, AUDIT_DROPPED, "shutdown", strlen("shutdown"));
    }
    if (line != NULL && strcmp(line, "OK") == 0) {
        audit(session, &command);
    }
    if (line == NULL) {
        return command.op == TEXT_ADMIN_SHUTDOWN
            ? EXEC_CLOSE
            : begin_dump(session, &command, turn);
    }
    if (!session->request.noreply) {
        reply_line(turn->out, line);
    }
    return EXEC_DONE;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* One conversation: skips, parses, executes, and so on.
 *
 *   bytes --> skip --> parse --> begin --> gather --> store --> replies
 *                                  |                    |
 *                                  +---- job, resumed --+
 *
 * Changes that follow one another are gathered and executed together, and so
 * are gets (exec.c). The bytes of a request are consumed when it is answered. A
 * request that cannot be finished (parked, reply buffer full, budget used up)
 * keeps its bytes and its job. The next call goes on with the job before it
 * looks at any further byte, so one connection's commands keep their order.
 *
 *   OPEN ----> LAST ----> ENDING
 *     |                     ^
 *     +---------------------+
 *
 * LAST: a request closes the connection, or could not be told its error. The
 * rest of the request is skipped first: a client that has sent all of it can
 * read the reply. ENDING: the server stops. Neither begins a request; both
 * answer those under way. Whether the client is a stranger, what is skipped and
 * what the store owes are not part of that. */
#include "session/session.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/steps.h"
#include "proto/answer.h"
#include "proto/binary.h"
#include "proto/reply.h"
#include "session/exec_admin.h"
#include "session/watch.h"

#include <stdio.h>
#include <string.h>

enum { UNSAID_S = 60 /* from one line about a refusal to the next */ };

void
executor_init(struct executor *executor, struct store *store,
    struct metric_set *metrics, struct admin *admin, uint64_t value_bytes_max)
{
    static const _Atomic unsigned nothing;
    *executor = (struct executor){.store = store,
        .metrics = metrics,
        .wanted = &nothing,
        .admin = admin,
        .value_bytes_max = value_bytes_max};
}

void
executor_watch(struct executor *executor, struct watch_ring *watch)
{
    executor->watch = watch;
    executor->wanted = &watch->hub->wanted;
}

void
executor_fini(struct executor *executor)
{
    exec_free_jobs(executor);
    buf_fini(&executor->acks.at);
}

void
session__move(struct session *session, enum session_stage to)
{
    static const unsigned steps[] = {
        [SESSION_OPEN] = STEP_TO(SESSION_LAST) | STEP_TO(SESSION_ENDING),
        [SESSION_LAST] = STEP_TO(SESSION_ENDING),
        [SESSION_ENDING] = 0,
    };
    ASSERT_STEP(steps, session->stage, to);
    session->stage = (uint8_t)to;
}

/* This request is the last one. */
static void
be_last(struct session *session)
{
    if (session->stage == SESSION_OPEN) {
        session__move(session, SESSION_LAST);
    }
}

void
session_init(struct session *session, struct executor *executor,
    void (*wake_fn)(struct session *session))
{
    *session = (struct session){.magic = SESSION_MAGIC,
        .executor = executor,
        .wake_fn = wake_fn,
        .rank = executor->access == NULL ? ACCESS_WRITER : ACCESS_NOBODY,
        .binding = executor->binding};
}

void
session_fini(struct session *session)
{
    ASSERT(session->magic == SESSION_MAGIC);
    exec_abandon(session);
    session_unwatch(session);
    session->magic = 0;
}

void
session_unwatch(struct session *session)
{
    if (session->watcher != NULL) {
        watch__remove(session->executor->watch->hub, &session->watcher);
    }
}

/* A turn of a watcher's session: nothing that comes is looked at. */
static enum session_state
run_watcher(struct session *session, size_t len, size_t mark, struct buf *out,
    size_t *consumed)
{
    *consumed = len;
    bool has_more = watch__take(
        session->executor->watch->hub, session->watcher, mark, out);
    return session->stage == SESSION_ENDING ? SESSION_CLOSE
        : has_more                          ? SESSION_FULL
                                            : SESSION_READY;
}

void
session_wake(struct session *session)
{
    ASSERT(session->magic == SESSION_MAGIC);
    exec_wake(session);
}

bool
session_is_parked(const struct session *session)
{
    return exec_is_waiting(session);
}

bool
session_waits_for_records(const struct session *session)
{
    return exec_waits_for_records(session);
}

size_t
session_memory(const struct session *session)
{
    return session->job == NULL ? 0 : sizeof *session->job;
}

void
session_give_up(struct session *session)
{
    exec_give_up(session);
}

void
session_hurry(struct session *session)
{
    exec_hurry(session);
}

bool
session_waits_for_bytes(const struct session *session, size_t left)
{
    return session->job == NULL && (left > 0 || session_is_skipping(session));
}

void
session_end(struct session *session)
{
    if (session->stage != SESSION_ENDING) {
        session__move(session, SESSION_ENDING);
    }
}

bool
session_is_skipping(const struct session *session)
{
    return session->swallow_bytes > 0 || session->swallow_line;
}

/* Skips what is to be skipped; returns the number of bytes. */
static size_t
swallow(struct session *session, const char *bytes, size_t len)
{
    size_t at = len;
    if (session->swallow_bytes < len) {
        at = (size_t)session->swallow_bytes;
    }
    session->swallow_bytes -= at;
    if (session->swallow_bytes > 0 || !session->swallow_line) {
        return at;
    }
    const char *newline =
        at == len ? NULL : memchr(bytes + at, '\n', len - at);
    if (newline == NULL) {
        return len;
    }
    session->swallow_line = false;
    return (size_t)(newline - bytes) + 1;
}

/* Parses for a client that is not yet known: no value of its own is waited
 * for, and nothing that is longer than a login. */
static enum parse_status
parse_stranger(struct session *session, const char *bytes, size_t len)
{
    enum parse_status status = session->binding == SESSION_BINARY
        ? binary_parse(bytes, len, 0, &session->scan, &session->request)
        : login_parse(bytes, len, &session->scan, &session->request);
    if (status == PARSE_MORE && len >= LOGIN_BYTES_MAX) {
        session->request.err = ERR_LONG_LINE;
        return PARSE_CLOSE;
    }
    return status;
}

/* Parses the request at bytes: there is at least one. */
static enum parse_status
parse(struct session *session, const char *bytes, size_t len)
{
    enum { TLS_HANDSHAKE = 0x16 };
    struct executor *executor = session->executor;
    if (session->binding == SESSION_AUTO) {
        if (bytes[0] == TLS_HANDSHAKE) {
            session->request.err = 0;
            return PARSE_CLOSE; /* an error's words would mean nothing */
        }
        session->binding = (unsigned char)bytes[0] == BINARY_MAGIC_REQUEST
            ? SESSION_BINARY
            : SESSION_TEXT;
    }
    if (session_is_stranger(session)) {
        return parse_stranger(session, bytes, len);
    }
    return session->binding == SESSION_BINARY
        ? binary_parse(bytes, len, executor->value_bytes_max, &session->scan,
              &session->request)
        : text_parse(bytes, len, store_schema(executor->store),
              executor->value_bytes_max, &session->scan, &session->request);
}

/* True where the request is a line that is none. As many in a row as may be end
 * the conversation; what is no packet has closed already. */
static bool
may_be_last_error(struct session *session)
{
    struct request *request = &session->request;
    if (request->op != REQUEST_ERROR || request->proto == PROTO_BINARY) {
        session->n_errors = 0;
        return false;
    }
    if (session->n_errors + 1 >= SESSION_ERRORS_MAX) {
        request->closes = true;
    }
    return true;
}

/* Such a line has been begun. Where what is before it must be answered first it
 * is begun again, and counts then. */
static void
count_error(struct session *session, enum exec_step step)
{
    bool is_taken = step == EXEC_DONE || step == EXEC_GATHERED;
    if (is_taken && ++session->n_errors == SESSION_ERRORS_MAX) {
        session->fault = ERR_ERRORS;
    }
}

/* Parses the request at bytes and begins it. */
static enum exec_step
begin(struct session *session, const char *bytes, size_t len,
    struct exec_turn *turn)
{
    switch (parse(session, bytes, len)) {
    case PARSE_MORE:
        return EXEC_MORE;
    case PARSE_CLOSE:
        session->fault = session->request.err;
        return EXEC_CLOSE;
    case PARSE_REQUEST:
        break;
    }
    session->scan = (struct parse_scan){0, 0};
    (*turn->budget)--;
    if (session->request.closes && session->request.proto != PROTO_BINARY) {
        session->fault = session->request.err;
    }
    bool is_error = may_be_last_error(session);
    if (session->rank != ACCESS_WRITER) {
        access__gate_closed(session, bytes);
    }
    enum exec_step step = exec_begin(session, bytes, turn);
    if (is_error) {
        count_error(session, step);
    }
    if (step == EXEC_GATHERED && session->rank == ACCESS_WRITER) {
        exec_follow(session, bytes + session->request.len, turn);
    }
    return step;
}

static enum session_state
state_of(enum exec_step step)
{
    switch (step) {
    case EXEC_MORE:
        return SESSION_READY;
    case EXEC_FULL:
        return SESSION_FULL;
    case EXEC_YIELD:
        return SESSION_YIELD;
    case EXEC_LATER:
        return SESSION_PARKED;
    case EXEC_DONE:
    case EXEC_GATHERED:
    case EXEC_CLOSE:
        break;
    }
    return SESSION_CLOSE;
}

/* The session's request is answered, and no other one is under way. */
static void
end_request(struct session *session, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    ASSERT(session->job == NULL);
    latency_count(&session->executor->tally, exec__verb(request->op), 1);
    turn->done += request->len;
    session->swallow_bytes = request->swallow_bytes;
    session->swallow_line = request->swallow_line;
    if (request->closes) {
        be_last(session);
    }
}

static enum exec_step
resume(struct session *session, struct exec_turn *turn)
{
    bool is_batch = exec_is_batch(session);
    enum exec_step step = exec_resume(session, turn);
    if (step == EXEC_DONE && !is_batch) {
        end_request(session, turn);
    }
    return step;
}

/* Begins the next request, if it may be begun now. */
static enum exec_step
next(struct session *session, const char *bytes, size_t len,
    struct exec_turn *turn)
{
    if (session->stage != SESSION_OPEN &&
        (session->stage == SESSION_ENDING || !session_is_skipping(session))) {
        return EXEC_CLOSE;
    }
    if (len == 0 || session->watcher != NULL) {
        return EXEC_MORE;
    }
    if (turn->out->len >= turn->mark || exec_must_flush(session, turn)) {
        return EXEC_FULL;
    }
    if (*turn->budget == 0) {
        return EXEC_YIELD;
    }
    enum exec_step step = begin(session, bytes, len, turn);
    if (step == EXEC_DONE) {
        end_request(session, turn);
    }
    return step;
}

/* One step: a piece of the job under way, or of the next request. Where that
 * cannot be begun, what is gathered so far: the step after it looks again
 * why not. bytes[0] is the first one not done with. */
static enum exec_step
step_on(struct session *session, const char *bytes, size_t len,
    struct exec_turn *turn)
{
    if (session->job != NULL && !exec_is_gathering(session)) {
        return resume(session, turn);
    }
    size_t ahead = exec_gathered_bytes(session);
    ASSERT(ahead <= len);
    enum exec_step step = next(session, bytes + ahead, len - ahead, turn);
    return step != EXEC_GATHERED && exec_is_gathering(session)
        ? exec_flush(session, turn)
        : step;
}

/* True where the end of the connection is to say what nothing else says: the
 * client may take it that a change lasts which does not. What is out of memory
 * or comes too early is no reason to begin anew. */
static bool
must_be_known(int err)
{
    switch (err) {
    case ERR_NO_MEMORY:
    case ERR_HOT_FULL:
    case ERR_MANY_PRODUCERS:
    case ERR_TOO_LARGE:
    case ERR_LOADING:
    case ERR_CLOSED: /* which ends it anyway */
        return false;
    default:
        return true;
    }
}

void
session_leave_unsaid(struct session *session, int err, bool was_made)
{
    char text[AUDIT_TEXT_BYTES];
    struct executor *executor = session->executor;
    uint64_t now_s = exec__now_s(session);
    ASSERT(reply_is_server_error(err));
    if (now_s >= executor->unsaid_s) {
        executor->unsaid_s = now_s + UNSAID_S;
        bool is_read = err == ERR_UNCOMMITTED || err == ERR_UNCOMMITTED_SLOW;
        int n = snprintf(text, sizeof text,
            "%s: %s; more such in the next minute are only counted, see %s "
            "of stats counters",
            is_read ? "a connection ends within a reply"
                    : "not said to a client that wants no reply",
            err_text(err), is_read ? "reads_unsure" : "noreply_refused");
        ASSERT(n > 0 && (size_t)n < sizeof text);
        exec__audit(session, AUDIT_UNSAID, text, (size_t)n);
    }
    if (was_made || must_be_known(err)) {
        session->unsaid = err;
        be_last(session);
    }
}

static void
put_no_memory(const struct echo *echo, struct buf *out)
{
    static const struct answer no = {
        .kind = ANSWER_REFUSED, .err = ERR_NO_MEMORY};
    answer_put(echo, NULL, &no, out);
}

void
session_say_no_memory(const char *bytes, size_t len, struct buf *out)
{
    struct echo echo = {.proto = PROTO_TEXT};
    const uint8_t *header = (const uint8_t *)bytes;
    ASSERT(len > 0);
    if (header[0] == BINARY_MAGIC_REQUEST) {
        echo.proto = PROTO_BINARY;
        bool is_whole = len >= BINARY_HEADER_BYTES;
        echo.opcode = is_whole ? header[1] : 0;
        echo.opaque = is_whole ? bytes_get_be32(header + 12) : 0;
    }
    put_no_memory(&echo, out);
}

/* The step's reply found no memory. What there is of it makes room for the
 * error, and the connection ends with that, since nobody could tell where the
 * next reply begins. It names the first request that is not answered. Where a
 * change was acknowledged, or that is a packet of gathered changes, it ends
 * without a word: out->failed stays. */
static enum exec_step
end_without_memory(struct session *session, const struct exec_turn *turn)
{
    struct buf *out = turn->out;
    size_t whole = turn->whole;
    ASSERT(whole <= out->len && turn->whole_acks <= turn->acks->at.len);
    bool is_known = turn->is_known || !turn->is_batch ||
        session->request.proto != PROTO_BINARY;
    bool is_vague = turn->acks->at.len != turn->whole_acks || !is_known;
    struct echo echo =
        turn->is_known ? turn->unanswered : echo_of(&session->request, 0);
    if (session->executor->loan.at >= whole) {
        loan_take_back(session->executor);
    }
    if (!is_vague) {
        out->len = whole;
        out->failed = false;
        put_no_memory(&echo, out);
    }
    if (exec_is_gathering(session)) { /* begun behind what has failed */
        exec_abandon(session);
    }
    return EXEC_CLOSE;
}

/* One step, and its end where memory is out. */
static enum exec_step
step_safely(struct session *session, const char *bytes, size_t len,
    struct exec_turn *turn)
{
    struct buf *out = turn->out;
    turn->whole = out->len;
    turn->whole_acks = turn->acks->at.len;
    turn->is_batch = session->job != NULL && exec_is_batch(session);
    enum exec_step step = step_on(session, bytes, len, turn);
    if (!out->failed || step == EXEC_LATER) {
        return step;
    }
    return end_without_memory(session, turn);
}

enum session_state
session_run(struct session *session, const char *bytes, size_t len,
    size_t mark, unsigned *budget, struct buf *out, size_t *consumed)
{
    struct executor *executor = session->executor;
    struct exec_turn turn; /* base and what is of a step: below */
    turn.mark = mark;
    turn.budget = budget;
    turn.out = out;
    turn.acks = &executor->acks;
    turn.fault = store_fault(executor->store);
    turn.done = 0;
    turn.is_known = false;
    enum exec_step step = EXEC_DONE;
    size_t at = 0;
    ASSERT(executor->loan.item == NULL);
    executor->loan.is_awaited = false;
    executor->acks.seq = 0;
    buf_clear(&executor->acks.at);
    if (session->watcher != NULL) {
        return run_watcher(session, len, mark, out, consumed);
    }
    exec_ask_owner(session);
    /* relaxed: as in watch_wanted */
    executor->watched =
        atomic_load_explicit(executor->wanted, memory_order_relaxed) |
        executor->rules.holds_reads;
    while (step == EXEC_DONE || step == EXEC_GATHERED) {
        if (session->job == NULL && session_is_skipping(session)) {
            at += swallow(session, bytes + at, len - at);
        }
        turn.base = bytes + at;
        turn.end = bytes + len;
        step = step_safely(session, bytes + at, len - at, &turn);
        ASSERT(turn.done <= len - at);
        at += turn.done;
        turn.done = 0;
        if (step == EXEC_DONE && at == len && session->job == NULL &&
            session->stage == SESSION_OPEN) {
            step = EXEC_MORE; /* as the next step would say */
        }
    }
    ASSERT(!exec_is_gathering(session));
    ASSERT(step != EXEC_LATER || exec_is_waiting(session));
    ASSERT(executor->loan.item == NULL || executor->acks.seq == 0);
    if (executor->acks.at.failed) {
        out->failed = true;
    }
    *consumed = step == EXEC_CLOSE || session->watcher != NULL ? len : at;
    return state_of(step);
}

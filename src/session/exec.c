/* SPDX-License-Identifier: BSD-3-Clause */
/* Execution of requests: who does what, and the jobs.
 *
 * Most requests are answered in exec_begin. One that asks the store has a job:
 * the memory that the store's call points to, kept while the store may answer
 * later. Jobs are reused, so the steady state allocates nothing.
 *
 * Changes of cells and records share a job: as long as one follows the other
 * they are gathered, and exec_flush gives them to the store in one call. So do
 * gets. Every other request, and every refusal, settles what has been gathered
 * before it answers, so replies and effects keep the order of the requests.
 *
 * The stages of a job that gathers; every other job has one, in which it begins
 * and ends:
 *
 *   changes:  GATHER --flush--> CHANGE
 *               +--> SOURCES -----^            where marks need them
 *                       +--> PINS -^           ... and they are members
 *   gets:     GET_JOIN --flush--> GET_CHECK    where keys are still unchecked
 *                 |                 |    |
 *                 |    all checked  |    v  no slice yet
 *                 |                 |  GET_GATHER <------+
 *                 v                 v    |               |  more keys
 *               GET_ASK <----------------+               |
 *                 |    +-- asked -> GET_FORMAT ----------+
 *  numbers asked  v    |                 ^
 *  of members   GET_PAIRS --- asked -----+
 *                    +--> GET_PINS ------+     where marks are about members
 *
 * A job ends in CHANGE or GET_FORMAT, or in GET_CHECK where a key is
 * refused. */
#include "session/exec_admin.h"
#include "session/exec_mark.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/err.h"
#include "call/store_calls.h"
#include "items/items.h"
#include "proto/dialect.h"
#include "proto/reply.h"

#include <stdlib.h>

/* The store's answer to a parked call, on any thread. */
static void
on_answer(struct store_call *call)
{
    struct job *job = call->owner;
    ASSERT(job->magic == JOB_MAGIC);
    ASSERT(job->session->magic == SESSION_MAGIC);
    job->session->wake_fn(job->session);
}

/* True for a reply that comes in pieces which are made in the turn. */
static bool
is_long(enum job_stage stage)
{
    return stage == JOB_DUMP || stage == JOB_STATS;
}

struct job *
exec__job(struct session *session, enum job_stage stage)
{
    struct executor *executor = session->executor;
    struct job *job = executor->free_jobs;
    ASSERT(session->job == NULL);
    if (job != NULL) {
        executor->free_jobs = job->next;
        executor->n_free_jobs--;
    } else {
        job = malloc(sizeof *job);
        if (job == NULL) {
            return NULL;
        }
    }
    job->magic = JOB_MAGIC;
    job->session = session;
    job->stage = stage;
    job->waits = false;
    job->has_pins = false;
    job->request_bytes = 0;
    session->job = job;
    executor->n_long += is_long(stage);
    return job;
}

static void
release_job(struct session *session)
{
    struct executor *executor = session->executor;
    struct job *job = session->job;
    ASSERT(!job->waits && !job->has_pins);
    job->magic = 0; /* no call has it any more */
    if (job->stage == JOB_RECORDS || job->stage == JOB_DIGEST) {
        store_end_dump(executor->store, &job->records.call);
        if (job->records.owns != NULL) {
            owns_destroy(&job->records.owns);
        }
    }
    if (job->stage == JOB_FORWARD || job->stage == JOB_FORWARD_JOIN) {
        exec__forward_free(job);
    }
    executor->n_long -= is_long(job->stage);
    session->job = NULL;
    if (executor->n_free_jobs >= EXECUTOR_JOBS_KEPT) {
        free(job);
        return;
    }
    job->next = executor->free_jobs;
    executor->free_jobs = job;
    executor->n_free_jobs++;
}

enum exec_step
exec__done(struct session *session)
{
    if (session->job != NULL) {
        release_job(session);
    }
    return EXEC_DONE;
}

bool
exec_waits_for_records(const struct session *session)
{
    if (!exec_is_waiting(session)) {
        return false;
    }
    switch (session->job->stage) {
    case JOB_GET_PAIRS:
    case JOB_GET_PINS:
    case JOB_GET_FORMAT:
    case JOB_SOURCES:
    case JOB_PINS:
    case JOB_CHANGE:
    case JOB_LIST:
        return true;
    default:
        return false;
    }
}

enum latency_verb
exec__verb(enum request_op op)
{
    switch (op) {
    case REQUEST_GET:
    case REQUEST_GETS:
    case REQUEST_GAT:
    case REQUEST_GATS:
    case REQUEST_COUNTER_GET:
    case REQUEST_LOOK:
        return LATENCY_get;
    case REQUEST_SET:
    case REQUEST_ADD:
    case REQUEST_REPLACE:
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
    case REQUEST_CAS:
    case REQUEST_TOO_LARGE:
    case REQUEST_COUNTER_SET:
    case REQUEST_COUNTER_ADD:
    case REQUEST_COUNTER_REPLACE:
        return LATENCY_set;
    case REQUEST_INCR:
    case REQUEST_COUNTER_INCR:
        return LATENCY_incr;
    case REQUEST_DECR:
    case REQUEST_COUNTER_DECR:
        return LATENCY_decr;
    case REQUEST_DELETE:
    case REQUEST_COUNTER_DELETE:
        return LATENCY_delete;
    case REQUEST_TOUCH:
        return LATENCY_touch;
    default:
        return LATENCY_other;
    }
}

void
exec_give_up(struct session *session)
{
    struct job *job = session->job;
    if (job != NULL && job->waits && job->stage == JOB_LOGIN) {
        /* relaxed: a hint, which comes with nothing and may come late */
        atomic_store_explicit(
            &job->login.is_unwanted, true, memory_order_relaxed);
    }
    exec_hurry(session);
}

void
exec_hurry(struct session *session)
{
    struct job *job = session->job;
    if (job != NULL && job->waits && job->stage == JOB_WAIT) {
        /* relaxed: as above */
        atomic_store_explicit(
            &job->wait.is_unwanted, true, memory_order_relaxed);
    }
}

void
exec_abandon(struct session *session)
{
    exec_list__drop(session);
    if (session->job != NULL && session->job->has_pins) {
        exec_mark__unpin(session->job);
    }
    exec__done(session);
    exec__backup_drop(session);
}

void
exec_free_jobs(struct executor *executor)
{
    free(executor->list_work);
    executor->list_work = NULL;
    while (executor->free_jobs != NULL) {
        struct job *job = executor->free_jobs;
        executor->free_jobs = job->next;
        free(job);
    }
    executor->n_free_jobs = 0;
}

bool
exec__waits(struct job *job, struct store_call *call,
    enum store_answer (*ask)(struct job *job))
{
    struct session *session = job->session;
    *call = (struct store_call){
        .done_fn = on_answer, .owner = job, .ring = session->executor->ring};
    job->waits = true; /* before the call: its answer may come at once */
    if (ask(job) == STORE_LATER) {
        exec__count(session, METRIC_calls_parked, 1);
        return true;
    }
    job->waits = false;
    return false;
}

void
exec_wake(struct session *session)
{
    ASSERT(session->job != NULL && session->job->waits);
    session->job->waits = false;
}

bool
exec_must_flush(const struct session *session, const struct exec_turn *turn)
{
    if (!exec_is_gathering(session)) {
        return false;
    }
    return exec__is_getting(session)
        ? exec__get_is_full(session)
        : !exec__is_forwarding(session) && exec__change_is_full(session, turn);
}

enum exec_step
exec_flush(struct session *session, struct exec_turn *turn)
{
    size_t done = turn->done;
    enum exec_step step = exec__is_getting(session)
        ? exec__get_flush(session, turn)
        : exec__is_forwarding(session) ? exec__forward_flush(session, turn)
                                       : exec__change_flush(session, turn);
    turn->base += turn->done - done;
    if (step == EXEC_DONE && !turn->out->failed) {
        turn->whole = turn->out->len;
        turn->whole_acks = turn->acks->at.len;
        turn->is_batch = false;
    }
    if (step == EXEC_DONE && session->unsaid != 0) {
        return EXEC_CLOSE; /* before a request that comes behind it */
    }
    return step == EXEC_DONE && exec__has_lent(session) ? EXEC_FULL : step;
}

enum exec_step
exec__settle_all(struct session *session, struct exec_turn *turn)
{
    const struct moved_one *moved = session->executor->other_moved;
    enum exec_step step =
        exec_is_gathering(session) ? exec_flush(session, turn) : EXEC_DONE;
    session->executor->other_moved = moved; /* of whom is at hand */
    return step;
}

struct schema_word
exec__key(struct session *session, const char *bytes)
{
    const struct request *request = &session->request;
    struct executor *executor = session->executor;
    const char *text = bytes + request->key.at;
    if (!request->key_is_base64) {
        return (struct schema_word){text, request->key.len};
    }
    size_t len = base64_decode(text, request->key.len, executor->key);
    return (struct schema_word){executor->key, len};
}

uint32_t
exec__item_bytes(size_t key_len, size_t value_len, uint32_t flags)
{
    enum {
        HEADER_BYTES = 56, /* its cas included */
        ENDS_BYTES = 3,    /* of key and value */
        FLAGS_BYTES = 4    /* where there are any */
    };
    return (uint32_t)(HEADER_BYTES + ENDS_BYTES + key_len + value_len +
        (flags == 0 ? 0 : FLAGS_BYTES));
}

enum exec_step
exec__answer(struct session *session, const char *bytes,
    const struct answer *answer, struct buf *out)
{
    struct echo echo = echo_of(&session->request, 0);
    answer_put(&echo, bytes, answer, out);
    return exec__done(session);
}

enum exec_step
exec__answer_kind(struct session *session, const char *bytes,
    enum answer_kind kind, struct buf *out)
{
    return exec__answer(session, bytes, &(struct answer){.kind = kind}, out);
}

void
exec__say_refusal(
    struct session *session, int err, const struct echo *echo, struct buf *out)
{
    const struct executor *executor = session->executor;
    const struct owns *owns = executor->owns;
    struct group *group = executor->group;
    struct answer answer = {.kind = ANSWER_REFUSED, .err = err};
    if (err == ERR_NOT_OWNED && owns != NULL) {
        answer.detail = owns_rule(owns);
    }
    const struct moved_one *moved = NULL;
    if (err == ERR_MOVED && executor->moved != NULL) {
        moved = executor->other_moved != NULL
            ? executor->other_moved
            : moved_find(executor->moved, session->other_id);
    }
    if (moved != NULL) {
        answer.detail = moved->address;
    }
    if (err == ERR_NOT_PRIMARY && group != NULL) {
        const char *address = group->primary_fn(group);
        bool is_known = address[0] != '\0';
        answer.detail = is_known ? address : NULL;
        if (!is_known && group->is_automatic) { /* there will be one soon */
            answer.err = ERR_NO_PRIMARY;
        }
    }
    exec__count(session, METRIC_cell_refused, 1);
    if (!echo->noreply) {
        answer_put(echo, NULL, &answer, out);
        return;
    }
    exec__count(session, METRIC_noreply_refused, 1);
    if (reply_is_server_error(err)) {
        session_leave_unsaid(session, err, false);
    }
}

enum exec_step
exec__refuse(struct session *session, int err, struct buf *out)
{
    struct echo echo = echo_of(&session->request, 0);
    exec__say_refusal(session, err, &echo, out);
    return exec__done(session);
}

/* True for an item's key that is a counter's name. In the text protocol such a
 * line is the dialect's, or refused by its parser: but for one whose data block
 * came when the name had become a counter's. */
static bool
is_reserved(struct session *session, struct schema_word text)
{
    const struct request *request = &session->request;
    return (request->proto != PROTO_TEXT || request->op == REQUEST_TOO_LARGE ||
               request_is_storage(request->op)) &&
        schema_counter(exec__schema(session), text.text, text.len) != NULL;
}

/* True for what stores an item, or makes one that is missing. */
static bool
makes_item(const struct request *request)
{
    return request->op == REQUEST_TOO_LARGE ||
        request_is_storage(request->op) || request->terms.vivifies;
}

/* What the server's switches say of a command on an item: 0, or the ERR_ to
 * refuse it with. */
static int
check_item(struct session *session, struct schema_word key)
{
    int err = exec__note_near(session, key.text, key.len);
    return err == 0 && session->executor->rules.no_items &&
            makes_item(&session->request)
        ? ERR_NO_ITEMS
        : err;
}

/* key__parse for the request's key. end: see exec_turn. */
static void
parse_key(struct session *session, struct schema_word text, const char *end,
    struct key *out)
{
    struct key_names *names = &session->executor->names;
    const char *readable =
        text.text == session->executor->key ? text.text + text.len : end;
    key_names_use(names, exec__schema(session));
    if (!key_names_is_kept(names, text.text, text.len, readable, out) &&
        key_names_read_member(names, text.text, text.text + text.len, readable,
            out) != text.len) {
        key_names_parse(names, text.text, text.len, out);
    }
}

/* A command with one key, an item's. */
static enum exec_step
begin_on_item(struct session *session, const char *bytes,
    struct schema_word text, struct exec_turn *turn)
{
    enum exec_step step = exec__settle_all(session, turn);
    if (step != EXEC_DONE) {
        return step;
    }
    if (is_reserved(session, text)) {
        exec__count(session, METRIC_reserved_key_refused, 1);
        return exec__refuse(session, ERR_MISUSE, turn->out);
    }
    if (session->request.has_tx) { /* it would be counted again; P in a meta
                                    * command is a proxy's */
        return exec__refuse(session, ERR_TX_ITEM, turn->out);
    }
    if (session->request.op == REQUEST_LOOK &&
        session->request.terms.wants_value &&
        exec__awaits_loan(session, text.text, text.len)) {
        return EXEC_FULL;
    }
    int err = check_item(session, text);
    if (err != 0) {
        return exec__refuse(session, err, turn->out);
    }
    step = exec__item(session, bytes, turn->out);
    if (exec__has_lent(session)) {
        turn->mark = 0;
    }
    return step;
}

/* A command with one key: a cell's or an item's. */
static enum exec_step
begin_on_key(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct key key;
    struct schema_word text = exec__key(session, bytes);
    enum request_op op = session->request.op;
    parse_key(session, text, turn->end, &key);
    if (key.kind != KEY_ITEM && op != REQUEST_TOUCH && op != REQUEST_LOOK &&
        op != REQUEST_INSPECT) {
        return key.kind == KEY_LIST
            ? exec_list__begin(session, bytes, &key, turn)
            : exec__change_begin(session, bytes, &key, turn);
    }
    return key.kind != KEY_ITEM ? exec__look_begin(session, &key, turn)
                                : begin_on_item(session, bytes, text, turn);
}

/* When the items that are to be forgotten are: 0 at once, UINT64_MAX none at
 * all. As memcached has it: a time up to 61 s before the server's start is
 * before all items, and one that has passed since then is now. */
static uint64_t
flush_time(const struct session *session, int64_t exptime)
{
    enum { BEFORE_START_S = 61 };
    int64_t first = session->executor->admin->started_unix_s - BEFORE_START_S;
    if (exptime <= 0) {
        return 0;
    }
    if (exptime > ITEMS_RELATIVE_MAX_S && exptime <= first) {
        return UINT64_MAX;
    }
    return items_expiry(exptime, exec__now_s(session), exec__unix_s(session));
}

static enum exec_step
flush_all(struct session *session, const char *bytes, struct buf *out)
{
    uint64_t at_s = flush_time(session, session->request.exptime);
    bool refuses = session->executor->rules.no_flush;
    /* as memcached counts: what a packet may not do, it has not asked for */
    exec__count(session, METRIC_cmd_flush,
        !refuses || session->request.proto != PROTO_BINARY);
    if (refuses) {
        struct answer no = {.kind = ANSWER_REFUSED, .err = ERR_NO_FLUSH};
        return exec__answer(session, bytes, &no, out);
    }
    items_flush(session->executor->store->items, at_s, exec__now_s(session));
    exec__audit(session, AUDIT_DONE, "flush_all", strlen("flush_all"));
    return exec__answer_kind(session, bytes, ANSWER_OK, out);
}

static enum exec_step
version(struct session *session, struct buf *out)
{
    const char *text = session->executor->admin->version;
    struct echo echo = echo_of(&session->request, 0);
    if (echo.proto == PROTO_BINARY) {
        answer_binary_version(&echo, text, out);
        return EXEC_DONE;
    }
    buf_add_text(out, "VERSION ");
    reply_line(out, text);
    return EXEC_DONE;
}

static enum exec_step
show(struct session *session, const char *bytes, struct buf *out)
{
    struct admin *admin = session->executor->admin;
    const struct request *request = &session->request;
    switch (request->op) {
    case REQUEST_VERSION:
        return version(session, out);
    case REQUEST_VERBOSITY:
        admin->verbosity_fn(admin,
            request->number > INT8_MAX ? INT8_MAX : (unsigned)request->number);
        return exec__answer_kind(session, bytes, ANSWER_OK, out);
    case REQUEST_SHOW_COUNTERS:
        return exec__show_counters(session, out);
    case REQUEST_SHOW_COUNTER:
        return exec__show_counter(session, bytes, out);
    case REQUEST_SHOW_HANDOVERS:
        return exec__show_handovers(session, out);
    case REQUEST_FEED:
        return exec__feed(session, bytes, out);
    default:
        dialect_help(out);
        return EXEC_DONE;
    }
}

static enum exec_step
misuse(struct session *session, struct buf *out)
{
    bool stores = session->request.op == REQUEST_COUNTER_STORE;
    exec__count(session,
        stores ? METRIC_reserved_key_refused : METRIC_dialect_misfits, 1);
    return exec__refuse(
        session, stores ? ERR_KEY_IS_COUNTER : ERR_MISUSE, out);
}

/* True for what needs neither counters nor items. */
static bool
works_while_loading(enum request_op op)
{
    switch (op) {
    case REQUEST_VERSION:
    case REQUEST_VERBOSITY:
    case REQUEST_STATS:
    case REQUEST_ADMIN:
    case REQUEST_NOOP:
    case REQUEST_QUIT:
    case REQUEST_HELP:
    case REQUEST_ERROR:
    case REQUEST_LOGIN:
    case REQUEST_LOGIN_WAYS:
        return true;
    default:
        return false;
    }
}

/* The server has the counters of another one, or may not change them now. */
static bool
is_of_copy(int fault)
{
    return fault == ERR_NOT_PRIMARY || fault == ERR_NO_PRIMARY;
}

/* What is said of a line that is no request. Asked once for each that is
 * answered: a line may be begun more than once. */
static const char *
error_line(struct session *session)
{
    const char *error = session->request.error;
    if (error != text_unknown_word) {
        return error;
    }
    if (session->knows_help) {
        return TEXT_UNKNOWN;
    }
    session->knows_help = true;
    return error;
}

/* The parser has found what is wrong; but a store that loads, and a replica to
 * which nothing has come yet, do not know all counters. */
static enum exec_step
answer_error(struct session *session, int fault, struct buf *out)
{
    const struct request *request = &session->request;
    if (request->may_be_dialect &&
        (fault == ERR_LOADING || is_of_copy(fault))) {
        return exec__refuse(session, fault, out);
    }
    if (request->proto == PROTO_BINARY) {
        struct answer answer = {.kind = ANSWER_REFUSED, .err = request->err};
        return exec__answer(session, NULL, &answer, out);
    }
    if (!request->noreply) {
        reply_line(out, error_line(session));
    }
    return EXEC_DONE;
}

/* Whatever joins nothing that is gathered; there is nothing. */
static enum exec_step
begin_alone(struct session *session, const char *bytes, struct exec_turn *turn)
{
    switch (session->request.op) {
    case REQUEST_COUNTER_MISUSE:
    case REQUEST_COUNTER_STORE:
        return misuse(session, turn->out);
    case REQUEST_SCHEMA_EDIT:
        return exec__edit_begin(session, bytes, turn);
    case REQUEST_DROP_PRODUCER:
        return exec__drop_producer(session, bytes, turn);
    case REQUEST_HANDOVER:
        return exec__hand_over(session, bytes, turn);
    case REQUEST_CHECKPOINT:
        return exec__checkpoint_begin(session, turn->out);
    case REQUEST_DUMP:
        return exec__records_begin(session, bytes, turn);
    case REQUEST_NUMBERS:
        return exec__numbers(session, bytes, turn);
    case REQUEST_DUMP_NUMBERS:
        return exec__dump_numbers_begin(session, turn);
    case REQUEST_DIGEST:
        return exec__digest_begin(session, bytes, turn);
    case REQUEST_BACKUP:
        return session->request.key.len == 0
            ? exec__backup_end(session, turn->out)
            : exec__backup_begin(session, turn);
    case REQUEST_FORGET:
        return exec__forget(session, bytes, turn->out);
    case REQUEST_SEAL:
        return exec__seal_begin(session, bytes, turn->out);
    case REQUEST_REPLICAOF:
        return exec__order_begin(session, bytes, turn);
    case REQUEST_FAILOVER:
        return exec__failover_begin(session, bytes, turn);
    case REQUEST_WAIT:
        return exec__wait_begin(session, bytes, turn);
    case REQUEST_FLUSH_ALL:
        return flush_all(session, bytes, turn->out);
    case REQUEST_ADMIN:
        return exec__admin(session, bytes, turn);
    case REQUEST_NOOP:
        return exec__answer_kind(session, bytes, ANSWER_OK, turn->out);
    case REQUEST_QUIT:
        session->has_quit = true;
        return EXEC_CLOSE;
    case REQUEST_ERROR:
        return answer_error(session, turn->fault, turn->out);
    case REQUEST_LOGIN:
        return exec__login(session, bytes, turn->out);
    case REQUEST_LOGIN_WAYS:
        return exec__login_ways(session, turn->out);
    case REQUEST_STATS:
        return exec__stats_begin(session, bytes, turn);
    default:
        return show(session, bytes, turn->out);
    }
}

/* True for what may join gets that are gathered; whatever else comes finds
 * them answered. */
static bool
joins_gets(enum request_op op)
{
    return op == REQUEST_GET || op == REQUEST_GETS || op == REQUEST_LOOK;
}

/* True for what only a primary takes: whatever changes counters or the schema,
 * or makes, changes or deletes items. What gives an item another exptime is
 * none of it: a touch of a cell does nothing, and is done anywhere. */
static bool
is_for_primary(const struct request *request)
{
    switch (request->op) {
    case REQUEST_SET:
    case REQUEST_ADD:
    case REQUEST_REPLACE:
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
    case REQUEST_CAS:
    case REQUEST_DELETE:
    case REQUEST_INCR:
    case REQUEST_DECR:
    case REQUEST_TOO_LARGE:
    case REQUEST_FLUSH_ALL:
    case REQUEST_HANDOVER:
    case REQUEST_FORGET:
    case REQUEST_NUMBERS:
        return true;
    case REQUEST_LOOK:
        return request->terms.vivifies || request->terms.recaches;
    default:
        return exec__edits_counters(request->op);
    }
}

/* 0, or why a replica refuses the request. */
static __attribute__((noinline)) int
fault_of_copy(struct session *session, int fault)
{
    return is_for_primary(&session->request) ? fault
                                             : exec__copy_fault(session);
}

/* Behind the answers to what is gathered. */
static enum exec_step
refuse_by_copy(struct session *session, int err, struct exec_turn *turn)
{
    enum exec_step step = exec__settle_all(session, turn);
    return step == EXEC_DONE ? exec__refuse(session, err, turn->out) : step;
}

/* What a replica does with the request: true where that is all, and *step is
 * what has come of it; else it is done as anywhere. */
static __attribute__((noinline)) bool
ends_at_copy(struct session *session, const char *bytes,
    struct exec_turn *turn, enum exec_step *step)
{
    int err = fault_of_copy(session, turn->fault);
    bool is_error = session->request.op == REQUEST_ERROR;
    if ((err == ERR_NOT_PRIMARY ||
            (is_error && turn->fault == ERR_NOT_PRIMARY)) &&
        exec__forwards(session, bytes)) {
        *step = exec__forward_begin(session, turn);
        return true;
    }
    if (err != 0) {
        *step = refuse_by_copy(session, err, turn);
        return true;
    }
    *step =
        exec__is_forwarding(session) ? exec_flush(session, turn) : EXEC_DONE;
    return *step != EXEC_DONE;
}

enum exec_step
exec_begin(struct session *session, const char *bytes, struct exec_turn *turn)
{
    if (turn->fault == ERR_LOADING &&
        !works_while_loading(session->request.op)) {
        return exec__refuse(session, ERR_LOADING, turn->out);
    }
    enum exec_step step;
    if (is_of_copy(turn->fault) && ends_at_copy(session, bytes, turn, &step)) {
        return step;
    }
    step = joins_gets(session->request.op) || !exec__is_getting(session)
        ? EXEC_DONE
        : exec_flush(session, turn);
    if (step != EXEC_DONE) {
        return step;
    }
    switch (session->request.op) {
    case REQUEST_GET:
    case REQUEST_GETS:
    case REQUEST_GAT:
    case REQUEST_GATS:
    case REQUEST_COUNTER_GET:
        return exec__get_begin(session, turn);
    case REQUEST_SET:
    case REQUEST_ADD:
    case REQUEST_REPLACE:
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
    case REQUEST_CAS:
    case REQUEST_DELETE:
    case REQUEST_INCR:
    case REQUEST_DECR:
    case REQUEST_TOUCH:
    case REQUEST_LOOK:
    case REQUEST_INSPECT:
    case REQUEST_TOO_LARGE:
        return begin_on_key(session, bytes, turn);
    case REQUEST_COUNTER_SET:
    case REQUEST_COUNTER_ADD:
    case REQUEST_COUNTER_REPLACE:
    case REQUEST_COUNTER_DELETE:
    case REQUEST_COUNTER_INCR:
    case REQUEST_COUNTER_DECR:
        return exec__counter_begin(session, bytes, turn);
    default:
        step = exec__settle_all(session, turn);
        return step == EXEC_DONE ? begin_alone(session, bytes, turn) : step;
    }
}

enum exec_step
exec_resume(struct session *session, struct exec_turn *turn)
{
    ASSERT(!session->job->waits && !exec_is_gathering(session));
    switch (session->job->stage) {
    case JOB_GET_CHECK:
    case JOB_GET_GATHER:
    case JOB_GET_ASK:
    case JOB_GET_PAIRS:
    case JOB_GET_PINS:
    case JOB_GET_FORMAT:
        break;
    case JOB_GET_JOIN:
    case JOB_GATHER:
    case JOB_FORWARD_JOIN:
        break; /* not reached: ASSERT above */
    case JOB_SOURCES:
    case JOB_PINS:
        return exec__sources_answer(session, turn);
    case JOB_CHANGE:
        return exec__change_answer(session, turn);
    case JOB_EDIT:
        return exec__edit_answer(session, turn);
    case JOB_CHECKPOINT:
        return exec__checkpoint_answer(session, turn->out);
    case JOB_SEAL:
        return exec__seal_answer(session, turn->out);
    case JOB_DUMP:
        return exec__dump_resume(session, turn);
    case JOB_STATS:
        return exec__stats_resume(session, turn);
    case JOB_LOGIN:
        return exec__login_answer(session, turn->out);
    case JOB_LIST:
        return exec_list__resume(session, turn->base, turn);
    case JOB_RECORDS:
        return exec__records_resume(session, turn);
    case JOB_BACKUP:
        return exec__backup_resume(session, turn);
    case JOB_DIGEST:
        return exec__digest_resume(session, turn);
    case JOB_NUMBERS:
        return exec__dump_numbers_resume(session, turn);
    case JOB_ORDER:
        return exec__order_answer(session, turn->out);
    case JOB_FAILOVER:
        return exec__failover_answer(session, turn->out);
    case JOB_WAIT:
        return exec__wait_answer(session, turn->out);
    case JOB_FORWARD:
        return exec__forward_answer(session, turn);
    }
    return exec__get_resume(session, turn);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of cells and records: memcached's commands on keys like 1234.cntcm
 * and 1234.weibo, and the dialect's commands on a counter's name.
 *
 * Both become one struct change: an operation, an id, and for each column its
 * slot, its serial and an operand: of a record all columns, or in the dialect
 * those that the line names. Everything that can be wrong with the input
 * is found before the change is gathered. The schema may become another one
 * between that and the store's call: serials make it safe.
 *
 * The change of a mark may need a source that is another record's: those of all
 * that is gathered are read first (exec_mark.c). That of a member is a change
 * of the record that has it (exec_member.c); that of one of members=about is
 * gathered apart from all others (exec_about.c).
 *
 * What is gathered goes to the store in one call, so that the engine can fetch
 * the lines of all before it needs the first. A change that the store answers
 * with a position (seq) is noted as an acknowledgement that waits for it
 * (exec_change_say.c). */
#include "session/exec_change.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "call/store_calls.h"
#include "proto/reply.h"
#include "session/exec_about.h"
#include "session/exec_mark.h"
#include "session/exec_member.h"

#include <assert.h>
#include <string.h>

static_assert(CHANGE_MARK_DELETE - CHANGE_MARK_SET == CHANGE_DELETE &&
        CHANGE_MEMBER_DELETE - CHANGE_MEMBER_SET == CHANGE_DELETE,
    "a mark and a member have what a number has, in the same order");

enum change_op
exec__change_op(enum request_op op)
{
    switch (op) {
    case REQUEST_ADD:
    case REQUEST_COUNTER_ADD:
        return CHANGE_ADD;
    case REQUEST_REPLACE:
    case REQUEST_COUNTER_REPLACE:
        return CHANGE_REPLACE;
    case REQUEST_CAS:
        return CHANGE_CAS;
    case REQUEST_DELETE:
    case REQUEST_COUNTER_DELETE:
        return CHANGE_DELETE;
    case REQUEST_INCR:
    case REQUEST_COUNTER_INCR:
        return CHANGE_INCR;
    case REQUEST_DECR:
    case REQUEST_COUNTER_DECR:
        return CHANGE_DECR;
    default:
        return CHANGE_SET;
    }
}

/* What an op of a number is where those of another kind begin with first. */
static enum change_op
op_among(enum change_op op, enum change_op first)
{
    ASSERT(op <= CHANGE_DELETE);
    return (enum change_op)(first + op - CHANGE_SET);
}

static void
add_column(struct change *change, const struct schema_column *column)
{
    unsigned i = change->n_columns++;
    change->column[i] = column->slot;
    change->serial[i] = column->serial;
}

/* The columns of a whole record. Those of members have no value there, but go
 * with it, behind the others. */
static __attribute__((noinline)) int
add_record(struct change *change, const struct schema_counter *counter)
{
    unsigned n = 0;
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (schema_is_in_record(&counter->column[i])) {
            add_column(change, &counter->column[i]);
        }
    }
    n = change->n_columns;
    for (unsigned i = 0; change->op == CHANGE_DELETE && i < counter->n_columns;
         i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            change->kept |= (uint16_t)(1U << change->n_columns);
            add_column(change, &counter->column[i]);
        }
    }
    if (n == 0) { /* nothing else, and nothing to compare */
        change->kept = 0;
    }
    return change->n_columns == 0 ? ERR_NO_COLUMNS : 0;
}

/* What key names, as columns of the change that is being made, whose op is
 * known where key is a record's. */
static inline __attribute__((always_inline)) int
add_columns(struct job *job, const struct key *key)
{
    const struct schema_counter *counter = key->target.counter;
    struct change *change = &job->change[job->store_change.n];
    change->id = key->id;
    change->counter = counter->slot;
    change->n_columns = 0;
    change->absent = CHANGE_FROM_DEFAULT;
    change->compares = false;
    change->is_redo = false;
    change->base = NULL; /* the store finds it where it is needed */
    change->producer = 0;
    change->kept = 0;
    change->name = NULL;
    if (__builtin_expect(counter->key_is_text, 0) && key->name != NULL) {
        exec__take_name(job, key);
    }
    if (key->kind != KEY_RECORD) {
        add_column(change, key->target.column);
        return 0;
    }
    return add_record(change, counter);
}

/* Who numbers the change, and with what, where the request says so. */
static int
take_tx(struct session *session, const char *bytes, struct change *change)
{
    struct span tx = session->request.tx;
    struct store_producer producer;
    size_t name_len;
    if (tx.at == 0) {
        return 0;
    }
    if (session->request.has_more) {
        return session->request.proto == PROTO_META ? ERR_MORE_TOKENS
                                                    : ERR_MORE_WORDS;
    }
    if (!producer_parse(bytes + tx.at, tx.len, &name_len, &change->number)) {
        return ERR_BAD_TX;
    }
    int err = store_producer(
        session->executor->store, bytes + tx.at, name_len, &producer);
    if (err == 0) {
        change->producer = producer.serial;
        change->producer_slot = producer.slot;
    }
    return err;
}

/* One number a column from the words: 0, bad_number, or ERR_VALUE_COUNT. */
static int
take_numbers(struct change *change, struct words words, int bad_number)
{
    struct span word;
    unsigned n = 0;
    while (words_next(&words, &word)) {
        if (n < change->n_columns &&
            !num_parse_u64(
                words.bytes + word.at, word.len, &change->operand[n])) {
            return bad_number;
        }
        n++;
    }
    return n == change->n_columns ? 0 : ERR_VALUE_COUNT;
}

/* COLUMN=NUMBER words, by name or suffix: only these columns of the record, in
 * their order. 0, bad_number, or what else is wrong. */
static int
take_named(const struct schema_counter *counter, struct words words,
    int bad_number, struct change *change)
{
    struct span word;
    uint32_t seen = 0;
    change->n_columns = 0;
    while (words_next(&words, &word)) {
        const char *name = words.bytes + word.at;
        const char *sign = memchr(name, '=', word.len);
        if (sign == NULL) {
            return ERR_NOT_NAMED;
        }
        size_t name_len = (size_t)(sign - name);
        const struct schema_column *column =
            schema_counter_column(counter, name, name_len);
        if (column == NULL) {
            return ERR_NO_COLUMN;
        }
        if (!schema_is_in_record(column)) {
            return ERR_NO_MEMBER;
        }
        if ((seen >> column->slot & 1) != 0) {
            return ERR_COLUMN_TWICE;
        }
        seen |= 1U << column->slot;
        if (!num_parse_u64(sign + 1, word.len - name_len - 1,
                &change->operand[change->n_columns])) {
            return bad_number;
        }
        add_column(change, column);
    }
    return 0;
}

bool
exec__change_is_full(
    const struct session *session, const struct exec_turn *turn)
{
    const struct job *job = session->job;
    return job->store_change.n == EXEC_BATCH_MAX ||
        (job->of_about && job->store_change.n == EXEC_ABOUTS_MAX) ||
        turn->out->len + job->reply_bytes_max >= turn->mark;
}

static enum store_answer
ask(struct job *job)
{
    return store_change(job->session->executor->store, &job->store_change);
}

/* Counts some of the changes. */
static __attribute__((noinline)) void
sample(struct hot *hot, const struct job *job)
{
    uint32_t n = job->store_change.n;
    uint32_t i = hot->left;
    for (; i < n; i += hot_gap(hot)) {
        const struct change *change = &job->change[i];
        const struct engine_name *name = change->name;
        uint32_t tag = name == NULL
            ? 0
            : exec__name_tag(job, change->id, name->bytes, name->len);
        hot_count(hot, change->id, tag, change->counter, change->serial[0],
            HOT_CHANGE);
    }
    hot->left = i - n;
}

/* Makes the changes gathered, and answers them. from: the job's stage. */
static inline __attribute__((always_inline)) enum exec_step
make_changes(
    struct session *session, enum job_stage from, struct exec_turn *turn)
{
    struct job *job = session->job;
    exec__job_move(job, from, JOB_CHANGE);
    job->store_change.change = job->change;
    job->store_change.seq = 0;
    job->store_change.room_ns = 0;
    if (__builtin_expect(job->has_names, 0)) {
        exec__find_names(session);
    }
    if (hot_samples(&session->executor->hot, job->store_change.n)) {
        sample(&session->executor->hot, job);
    }
    if (__builtin_expect(from != JOB_GATHER, 0) &&
        session->executor->moved != NULL) {
        exec__look_again(session);
    }
    if (turn->fault != 0) {
        for (unsigned i = 0; i < job->store_change.n; i++) {
            job->change[i].err = turn->fault;
        }
    } else if (job->store_change.n > 0 &&
        exec__waits(job, &job->store_change.call, ask)) {
        return EXEC_LATER;
    }
    return exec__change_answer(session, turn);
}

static enum store_answer
ask_sources(struct job *job)
{
    return store_get(job->session->executor->store, &job->sources);
}

enum exec_step
exec__change_flush(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    if (__builtin_expect(job->of_about, 0)) {
        exec__job_move(job, JOB_GATHER, JOB_CHANGE);
        job->store_change.change = job->change;
        job->store_change.seq = 0;
        return exec_about__make(session, turn->fault)
            ? EXEC_LATER
            : exec__change_answer(session, turn);
    }
    if (__builtin_expect(job->sources.n > 0, 0) && turn->fault == 0 &&
        job->store_change.n > 0) { /* not for one that was refused */
        exec__job_move(job, JOB_GATHER, JOB_SOURCES);
        return exec__waits(job, &job->sources.call, ask_sources)
            ? EXEC_LATER
            : exec__sources_answer(session, turn);
    }
    return make_changes(session, JOB_GATHER, turn);
}

/* The same as exec__sources_answer where some are members. */
static enum exec_step
answer_pins(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    if (job->stage == JOB_SOURCES) {
        exec__job_move(job, JOB_SOURCES, JOB_PINS);
        exec_mark__want_pins(job, &job->sources);
        if (exec__waits(job, &job->pins.call.call, exec_mark__ask_pins)) {
            return EXEC_LATER;
        }
    }
    (void)store_seen(
        session->executor->store, job->sources.key, job->sources.n);
    exec_mark__give_sources(job);
    exec_mark__unpin(job);
    return make_changes(session, JOB_PINS, turn);
}

enum exec_step
exec__sources_answer(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    ASSERT(job->marks != 0);
    if (job->of_members != 0) {
        return answer_pins(session, turn);
    }
    /* What was read of the sources is in the log before what is made of it: a
     * crash may take back a mark, and never its source alone. */
    (void)store_seen(
        session->executor->store, job->sources.key, job->sources.n);
    exec_mark__give_sources(job);
    return make_changes(session, JOB_SOURCES, turn);
}

/* The session's job to gather in, with room for one more; NULL when memory is
 * out. */
static struct job *
gather(struct session *session)
{
    struct job *job = session->job;
    if (job == NULL) {
        job = exec__job(session, JOB_GATHER);
        if (job == NULL) {
            return NULL;
        }
        job->store_change.n = 0;
        job->plain = 0;
        job->marks = 0;
        job->moved = 0;
        job->of_about = false;
        job->has_names = false;
        job->sources.n = 0;
        job->sources.n_sources = 0;
        job->reply_bytes_max = 0;
    }
    ASSERT(job->stage == JOB_GATHER && job->store_change.n < EXEC_BATCH_MAX);
    return job;
}

/* Sees to it that what is gathered, if anything, is of members=about, or none
 * of it is: else it is done. EXEC_DONE, or the turn ends. */
static inline __attribute__((always_inline)) enum exec_step
settle_unlike(struct session *session, bool of_about, struct exec_turn *turn)
{
    const struct job *job = session->job;
    return __builtin_expect(job != NULL && job->of_about != of_about, 0)
        ? exec__settle_all(session, turn)
        : EXEC_DONE;
}

/* The change of the session's request is of another server's id: it is answered
 * with err, without the store. */
static __attribute__((noinline)) enum exec_step
turn_away(struct session *session, int err, struct exec_turn *turn)
{
    const struct job *job = session->job;
    struct change change = job->change[job->store_change.n];
    struct echo echo = echo_of(&session->request, 0);
    const char *bytes = turn->base + job->request_bytes;
    enum exec_step step = exec__settle_all(session, turn);
    if (step != EXEC_DONE) {
        return step;
    }
    exec__note_other(session, change.id);
    if (err == ERR_NOT_OWNED || err == ERR_MOVED) {
        return exec__refuse(session, err, turn->out);
    }
    change.err = err;
    change.producer = 0;
    exec_change__say_miss(session, &change, &echo, bytes, turn->out);
    return exec__done(session);
}

/* The change of the session's request, which gather has made room for, is
 * ready to be done; or, with err, the request is wrong. */
static enum exec_step
take(struct session *session, int err, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    struct job *job = session->job;
    if (err != 0) {
        enum exec_step step = exec__settle_all(session, turn);
        if (step != EXEC_DONE) {
            return step;
        }
        exec__count(
            session, METRIC_value_count_refused, err == ERR_VALUE_COUNT);
        return exec__refuse(session, err, turn->out);
    }
    ASSERT(request->swallow_bytes == 0 && !request->swallow_line);
    unsigned i = job->store_change.n++;
    job->echo[i] = echo_of(request, (uint32_t)job->request_bytes);
    job->request_bytes += request->len;
    job->reply_bytes_max += EXEC_ANSWER_TEXT_MAX +
        job->change[i].n_columns * (size_t)(NUM_U64_DIGITS_MAX + 1);
    return EXEC_GATHERED;
}

/* The name in the request's key is handed over. */
static __attribute__((noinline)) enum exec_step
turn_name_away(struct session *session, struct exec_turn *turn)
{
    enum exec_step step = exec__settle_all(session, turn);
    if (step != EXEC_DONE) {
        return step;
    }
    exec__count(session, METRIC_moved_refused, 1);
    return exec__refuse(session, ERR_MOVED, turn->out);
}

/* The change that gather has made room for is filled, but for whose id it is
 * and who numbers it; or, with err, the request is wrong. */
static inline __attribute__((always_inline)) enum exec_step
finish(struct session *session, const char *bytes, int err,
    struct exec_turn *turn)
{
    struct job *job = session->job;
    struct change *change = &job->change[job->store_change.n];
    if (err == 0 && session->executor->has_others) {
        int other = exec__owner_fault(session, change);
        if (other != 0) {
            return turn_away(session, other, turn);
        }
    }
    return take(
        session, err != 0 ? err : take_tx(session, bytes, change), turn);
}

/* An exptime that the counter does not ignore. */
static bool
expires(const struct request *request, const struct key *key)
{
    int64_t vivify =
        request->terms.vivifies ? request->terms.vivify_exptime : 0;
    return (request->exptime != 0 || vivify != 0) &&
        !key->target.counter->exptime_is_ignored;
}

/* What else is asked of the cell or record. Stale values there are none: a set
 * with an older cas is refused as any other. */
static inline __attribute__((always_inline)) int
take_terms(const struct request *request, const struct key *key,
    struct change *change)
{
    const struct terms *terms = &request->terms;
    bool counts = request->op == REQUEST_INCR || request->op == REQUEST_DECR;
    if (terms->new_cas != 0) {
        return ERR_OWN_CAS;
    }
    if (terms->outdates && request->op == REQUEST_DELETE) {
        return ERR_NOT_STALE;
    }
    change->cas = terms->cas;
    change->compares = terms->compares;
    if (counts && terms->must_exist) {
        change->absent = CHANGE_NOT_ABSENT;
    } else if (counts && terms->vivifies) {
        change->absent = CHANGE_TO_INITIAL;
        change->initial = terms->initial;
    }
    return expires(request, key) ? ERR_EXPTIME : 0;
}

/* The value that a storage command brings. */
static inline __attribute__((always_inline)) int
take_stored(const struct request *request, const char *bytes,
    const struct key *key, struct change *change)
{
    struct span value = request->value;
    change->of_record = key->kind == KEY_RECORD;
    if (key->kind == KEY_RECORD) {
        const struct schema_counter *counter = key->target.counter;
        int err = take_numbers(change, words_of(bytes, value), ERR_BAD_VALUE);
        if (err == 0) {
            err = exec_list__check(counter, change);
        }
        return err != 0 ? err : exec_member__check(counter, false, change);
    }
    return num_parse_u64(bytes + value.at, value.len, &change->operand[0])
        ? 0
        : ERR_BAD_VALUE;
}

/* What memcached's request asks of the cell or record: fills the change's
 * operands. */
static inline __attribute__((always_inline)) int
take_operands(const struct request *request, const char *bytes,
    const struct key *key, struct change *change)
{
    bool is_record = key->kind == KEY_RECORD;
    bool takes_value = false;
    switch (request->op) {
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
        return ERR_NO_APPEND;
    case REQUEST_INCR:
    case REQUEST_DECR:
        if (is_record) {
            return ERR_NOT_NUMERIC;
        }
        change->operand[0] = request->number;
        if (request->proto == PROTO_TEXT) {
            return 0; /* a line that has no room for terms */
        }
        break;
    case REQUEST_DELETE:
        break;
    case REQUEST_REPLACE:
        if (is_record) {
            return ERR_RECORD_OP;
        }
        takes_value = true;
        break;
    default:
        takes_value = true;
        break;
    }
    int err = take_terms(request, key, change);
    return err == 0 && takes_value ? take_stored(request, bytes, key, change)
                                   : err;
}

/* The mark's source is of another server's id. */
static __attribute__((noinline)) enum exec_step
turn_mark_away(
    struct session *session, const struct key *key, struct exec_turn *turn)
{
    uint64_t id = key->target.column->source.id;
    enum exec_step step = exec__settle_all(session, turn);
    if (step != EXEC_DONE) {
        return step;
    }
    exec__note_id(session, id);
    return exec__refuse(session, exec__other(session, id), turn->out);
}

/* The same as exec__change_begin for a mark, or for what is unread. */
static enum exec_step
begin_mark(struct session *session, const char *bytes, const struct key *key,
    struct exec_turn *turn)
{
    const struct request *request = &session->request;
    bool is_unread = key->kind == KEY_UNREAD;
    if (is_unread && request->op != REQUEST_DELETE) {
        return take(session, ERR_UNREAD, turn);
    }
    if (exec_mark__is_elsewhere(session, key)) {
        return turn_mark_away(session, key, turn);
    }
    if (exec_mark__must_settle(session, key)) {
        enum exec_step step = exec__settle_all(session, turn);
        if (step != EXEC_DONE) {
            return step;
        }
    }
    struct job *job = gather(session);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    struct change *change = &job->change[job->store_change.n];
    change->op = is_unread
        ? CHANGE_READ_ALL
        : op_among(exec__change_op(request->op), CHANGE_MARK_SET);
    int err = add_columns(job, key);
    exec_mark__take_source(session, key);
    if (err == 0) {
        err = take_operands(request, bytes, key, change);
    }
    return finish(session, bytes, err, turn);
}

/* The same for members. */
static enum exec_step
begin_member(struct session *session, const char *bytes, const struct key *key,
    struct exec_turn *turn)
{
    const struct request *request = &session->request;
    int err = exec_member__fault(
        key, request->op == REQUEST_DELETE, request->terms.compares);
    if (err != 0) {
        return take(session, err, turn);
    }
    struct job *job = gather(session);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    struct change *change = &job->change[job->store_change.n];
    change->op = exec__change_op(request->op);
    if (key->has_member) {
        change->op = op_among(change->op, CHANGE_MEMBER_SET);
    }
    err = add_columns(job, key);
    if (err == 0) {
        err = take_operands(request, bytes, key, change);
    }
    if (err == 0) {
        exec_member__take(key, change);
    }
    return finish(session, bytes, err, turn);
}

/* The same for members of members=about. */
static enum exec_step
begin_about(struct session *session, const char *bytes, const struct key *key,
    struct exec_turn *turn)
{
    const struct request *request = &session->request;
    bool appends =
        request->op == REQUEST_APPEND || request->op == REQUEST_PREPEND;
    int err = appends ? ERR_NO_APPEND
                      : exec_about__fault(key, exec__change_op(request->op),
                            request->terms.compares);
    if (err != 0) {
        return take(session, err, turn);
    }
    struct job *job = gather(session);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->of_about = true;
    struct change *change = &job->change[job->store_change.n];
    change->op = op_among(exec__change_op(request->op), CHANGE_MEMBER_SET);
    err = add_columns(job, key);
    if (err == 0) {
        err = take_operands(request, bytes, key, change);
    }
    if (err == 0) {
        err = exec_about__take(key, change);
    }
    return finish(session, bytes, err, turn);
}

/* The same as exec__change_begin for what is no cell or record. */
static __attribute__((noinline)) enum exec_step
begin_other(struct session *session, const char *bytes, const struct key *key,
    struct exec_turn *turn)
{
    switch (key->kind) {
    case KEY_COUNTED:
        return take(session, ERR_COUNTED, turn);
    case KEY_MEMBER:
        return begin_member(session, bytes, key, turn);
    case KEY_ABOUT:
        return begin_about(session, bytes, key, turn);
    default:
        ASSERT(key->kind == KEY_MARK || key->kind == KEY_UNREAD);
        return begin_mark(session, bytes, key, turn);
    }
}

enum exec_step
exec__change_begin(struct session *session, const char *bytes,
    const struct key *key, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    if (request->op == REQUEST_TOO_LARGE) {
        return take(session, ERR_BAD_VALUE, turn);
    }
    if (__builtin_expect(key->target.counter->key_is_text, 0) &&
        exec__name_fault(session, key) != 0) {
        int fault = exec__name_fault(session, key);
        return fault == ERR_MOVED ? turn_name_away(session, turn)
                                  : take(session, fault, turn);
    }
    enum exec_step step = settle_unlike(session, key->kind == KEY_ABOUT, turn);
    if (step != EXEC_DONE) {
        return step;
    }
    if (key->kind != KEY_CELL && key->kind != KEY_RECORD) {
        return begin_other(session, bytes, key, turn);
    }
    struct job *job = gather(session);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    struct change *change = &job->change[job->store_change.n];
    change->op = exec__change_op(request->op);
    int err = add_columns(job, key);
    if (err == 0) {
        err = take_operands(request, bytes, key, change);
    }
    return finish(session, bytes, err, turn);
}

/* The numbers behind the dialect's id: one a column for a record, or those of
 * the columns that are named; for a cell one, which incr and decr may leave
 * out; none for delete. */
static int
take_dialect_operands(struct words words, const struct key *key,
    bool *is_named, struct change *change)
{
    struct span rest = words_rest(&words);
    bool counts = change->op == CHANGE_INCR || change->op == CHANGE_DECR;
    int bad_number = counts ? ERR_BAD_DELTA : ERR_BAD_VALUE;
    struct words look = words;
    struct span word;
    bool any = words_next(&look, &word);
    if (change->op == CHANGE_DELETE) {
        return any ? ERR_BAD_FORMAT : 0;
    }
    change->of_record = key->kind == KEY_RECORD;
    if (key->kind == KEY_RECORD &&
        memchr(words.bytes + rest.at, '=', rest.len) != NULL) {
        *is_named = true;
        return take_named(key->target.counter, words, bad_number, change);
    }
    if (counts && key->kind != KEY_RECORD && !any) {
        change->operand[0] = 1;
        return 0;
    }
    return take_numbers(change, words, bad_number);
}

/* What is wrong with a change of key, whatever its numbers. */
static int
check_dialect_key(const struct key *key, enum change_op op)
{
    switch (key->kind) {
    case KEY_LIST:
        return ERR_LIST_OP;
    case KEY_COUNTED:
        return ERR_COUNTED;
    case KEY_MEMBER:
        return exec_member__fault(key, op == CHANGE_DELETE, false);
    case KEY_ABOUT:
        return exec_about__fault(key, op, false);
    default:
        return 0;
    }
}

static int
parse_dialect(struct session *session, const char *bytes,
    const struct schema_counter *counter, struct change *change)
{
    struct job *job = session->job;
    struct words words = words_of(bytes, session->request.words);
    struct span word;
    struct key key;
    if (!words_next(&words, &word)) {
        return key_none_fault(counter);
    }
    if (!key_parse_dialect(counter, bytes + word.at, word.len, &key)) {
        return key_dialect_fault(bytes + word.at, word.len);
    }
    change->op = exec__change_op(session->request.op);
    int err = exec__name_fault(session, &key);
    if (err == 0) {
        err = check_dialect_key(&key, change->op);
    }
    if (err == 0) {
        err = add_columns(job, &key);
    }
    bool is_named = false;
    if (err == 0) {
        err = take_dialect_operands(words, &key, &is_named, change);
    }
    if (err == 0 && key.kind == KEY_RECORD && change->op != CHANGE_DELETE) {
        err = exec_list__check(counter, change);
        err = err != 0 ? err : exec_member__check(counter, is_named, change);
    }
    if (err == 0 && key.kind == KEY_MEMBER) {
        if (key.has_member) {
            change->op = op_among(change->op, CHANGE_MEMBER_SET);
        }
        exec_member__take(&key, change);
    }
    if (err == 0 && key.kind == KEY_ABOUT) {
        change->op = op_among(change->op, CHANGE_MEMBER_SET);
        err = exec_about__take(&key, change);
    }
    return err;
}

/* True where the request's line, of the dialect, is about a member of
 * members=about. */
static bool
is_of_about(struct session *session, const char *bytes,
    const struct schema_counter *counter)
{
    struct words words = words_of(bytes, session->request.words);
    struct span word;
    struct key key;
    return words_next(&words, &word) &&
        key_parse_dialect(counter, bytes + word.at, word.len, &key) &&
        key.kind == KEY_ABOUT;
}

/* True for a line that memcached might take for a set of an item. */
static bool
is_misfit(enum request_op op, int err)
{
    return (err == ERR_BAD_VALUE || err == ERR_VALUE_COUNT) &&
        op != REQUEST_COUNTER_INCR && op != REQUEST_COUNTER_DECR;
}

enum exec_step
exec__counter_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct span name = session->request.key;
    const struct schema_counter *counter =
        schema_counter(exec__schema(session), bytes + name.at, name.len);
    if (counter == NULL) { /* or dropped since the line was parsed */
        return take(session, ERR_NO_COUNTER, turn);
    }
    bool of_about = is_of_about(session, bytes, counter);
    enum exec_step settled = settle_unlike(session, of_about, turn);
    if (settled != EXEC_DONE) {
        return settled;
    }
    struct job *job = gather(session);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->of_about = of_about;
    struct change *change = &job->change[job->store_change.n];
    int err = parse_dialect(session, bytes, counter, change);
    if (err == ERR_MOVED) {
        return turn_name_away(session, turn);
    }
    enum exec_step step = finish(session, bytes, err, turn);
    if (step == EXEC_DONE && is_misfit(session->request.op, err)) {
        exec__count(session, METRIC_dialect_misfits, 1);
    }
    return step;
}

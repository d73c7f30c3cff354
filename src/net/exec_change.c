/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of cells and records: memcached's commands on keys like 1234.cntcm
 * and 1234.weibo, and the dialect's commands on a counter's name.
 *
 * Both become one struct change: an operation, an id, and for each column its
 * slot, its serial and an operand. Everything that can be wrong with the input
 * is found before the store is asked. */
#include "base/err.h"
#include "base/num.h"
#include "net/exec.h"
#include "proto/reply.h"

enum { NUMBERS_TEXT_MAX = SCHEMA_COLUMNS_MAX * (NUM_U64_DIGITS_MAX + 1) };

static enum change_op
op_of(enum request_op op)
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

static void
add_column(struct change *change, const struct schema_column *column)
{
    unsigned i = change->n_columns++;
    change->column[i] = column->slot;
    change->serial[i] = column->serial;
}

/* What key names, as columns of the change. */
static int
add_columns(struct change *change, const struct key *key)
{
    const struct schema_counter *counter = key->target.counter;
    change->id = key->id;
    change->counter = counter->slot;
    change->n_columns = 0;
    if (key->kind == KEY_CELL) {
        add_column(change, key->target.column);
        return 0;
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        add_column(change, &counter->column[i]);
    }
    return change->n_columns == 0 ? ERR_NO_COLUMNS : 0;
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

static void
count_change(struct session *session, const struct change *change)
{
    bool found = change->err == 0;
    switch (change->op) {
    case CHANGE_INCR:
        exec__count(session, METRIC_incr_hits, found);
        exec__count(
            session, METRIC_cell_saturated, found ? change->n_saturated : 0);
        break;
    case CHANGE_DECR:
        exec__count(session, METRIC_decr_hits, found);
        break;
    case CHANGE_DELETE:
        exec__count(
            session, found ? METRIC_delete_hits : METRIC_delete_misses, 1);
        break;
    case CHANGE_CAS:
        exec__count(session, METRIC_cas_hits, found);
        exec__count(session, METRIC_cas_badval, change->err == ERR_EXISTS);
        exec__count(session, METRIC_cas_misses, change->err == ERR_NOT_FOUND);
        exec__count(session, METRIC_cmd_set, 1);
        break;
    case CHANGE_SET:
    case CHANGE_ADD:
    case CHANGE_REPLACE:
        exec__count(session, METRIC_cmd_set, 1);
        break;
    }
    exec__count(session, METRIC_cell_changes, found);
}

static enum exec_step
answer_numbers(
    struct session *session, const struct change *change, struct buf *out)
{
    char text[NUMBERS_TEXT_MAX];
    if (!session->request.noreply) {
        buf_add(
            out, text, reply_join_u64(change->value, change->n_columns, text));
        buf_add(out, "\r\n", 2);
    }
    return exec__done(session);
}

enum exec_step
exec__change_answer(struct session *session, struct buf *out)
{
    const struct change *change = &session->job->change;
    count_change(session, change);
    switch (change->err) {
    case 0:
        break;
    case ERR_NOT_STORED:
        return exec__answer(session, "NOT_STORED", out);
    case ERR_EXISTS:
        return exec__answer(session, "EXISTS", out);
    case ERR_NOT_FOUND:
        return exec__answer(session, "NOT_FOUND", out);
    default:
        return exec__refuse(session, change->err, out);
    }
    switch (change->op) {
    case CHANGE_INCR:
    case CHANGE_DECR:
        return answer_numbers(session, change, out);
    case CHANGE_DELETE:
        return exec__answer(session, "DELETED", out);
    case CHANGE_SET:
    case CHANGE_ADD:
    case CHANGE_REPLACE:
    case CHANGE_CAS:
        break;
    }
    return exec__answer(session, "STORED", out);
}

static enum store_answer
ask(struct job *job)
{
    return store_change(job->session->executor->store, &job->store_change);
}

/* Does the change that the job holds. */
static enum exec_step
do_change(struct session *session, struct buf *out)
{
    struct job *job = session->job;
    job->store_change.n = 1;
    job->store_change.change = &job->change;
    if (exec__waits(job, &job->store_change.call, ask)) {
        return EXEC_LATER;
    }
    return exec__change_answer(session, out);
}

/* What memcached's request asks of the cell or record: fills the change's
 * operands. */
static int
take_operands(const struct request *request, const char *bytes,
    const struct key *key, struct change *change)
{
    bool is_record = key->kind == KEY_RECORD;
    switch (request->op) {
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
        return ERR_NO_APPEND;
    case REQUEST_INCR:
    case REQUEST_DECR:
        change->operand[0] = request->number;
        return is_record ? ERR_NOT_NUMERIC : 0;
    case REQUEST_DELETE:
        return 0;
    case REQUEST_CAS:
    case REQUEST_REPLACE:
        if (is_record) {
            return ERR_RECORD_OP;
        }
        break;
    default:
        break;
    }
    if (request->exptime != 0 && !key->target.counter->exptime_is_ignored) {
        return ERR_EXPTIME;
    }
    change->cas = request->number;
    if (is_record) {
        return take_numbers(
            change, words_of(bytes, request->value), ERR_BAD_VALUE);
    }
    return num_parse_u64(bytes + request->value.at, request->value.len,
               &change->operand[0])
        ? 0
        : ERR_BAD_VALUE;
}

enum exec_step
exec__change_begin(struct session *session, const char *bytes,
    const struct key *key, struct buf *out)
{
    const struct request *request = &session->request;
    if (request->op == REQUEST_TOO_LARGE) {
        return exec__refuse(session, ERR_BAD_VALUE, out);
    }
    struct job *job = exec__job(session, JOB_CHANGE);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, out);
    }
    job->change.op = op_of(request->op);
    int err = add_columns(&job->change, key);
    if (err == 0) {
        err = take_operands(request, bytes, key, &job->change);
    }
    if (err != 0) {
        return exec__refuse(session, err, out);
    }
    return do_change(session, out);
}

/* The numbers behind the dialect's id: one a column for a record; for a cell
 * one, which incr and decr may leave out; none for delete. */
static int
take_dialect_operands(struct session *session, struct words words,
    enum key_kind kind, struct change *change)
{
    struct words rest = words;
    struct span word;
    bool any = words_next(&rest, &word);
    if (change->op == CHANGE_DELETE) {
        return any ? ERR_BAD_FORMAT : 0;
    }
    if (change->op == CHANGE_INCR || change->op == CHANGE_DECR) {
        if (kind == KEY_CELL && !any) {
            change->operand[0] = 1;
            return 0;
        }
        return take_numbers(change, words, ERR_BAD_DELTA);
    }
    int err = take_numbers(change, words, ERR_BAD_VALUE);
    if (err != 0) {
        exec__count(session, METRIC_dialect_misfits, 1);
    }
    return err;
}

static int
parse_dialect(struct session *session, const char *bytes,
    const struct schema_counter *counter, struct change *change)
{
    struct words words = words_of(bytes, session->request.words);
    struct span word;
    struct key key;
    if (!words_next(&words, &word)) {
        return ERR_BAD_ID;
    }
    if (!key_parse_dialect(counter, bytes + word.at, word.len, &key)) {
        return key_dialect_fault(bytes + word.at, word.len);
    }
    change->op = op_of(session->request.op);
    int err = add_columns(change, &key);
    return err != 0 ? err
                    : take_dialect_operands(session, words, key.kind, change);
}

enum exec_step
exec__counter_begin(
    struct session *session, const char *bytes, struct buf *out)
{
    struct span name = session->request.key;
    const struct schema_counter *counter =
        schema_counter(exec__schema(session), bytes + name.at, name.len);
    if (counter == NULL) { /* dropped since the line was parsed */
        return exec__refuse(session, ERR_GONE, out);
    }
    struct job *job = exec__job(session, JOB_CHANGE);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, out);
    }
    int err = parse_dialect(session, bytes, counter, &job->change);
    if (err != 0) {
        return exec__refuse(session, err, out);
    }
    return do_change(session, out);
}

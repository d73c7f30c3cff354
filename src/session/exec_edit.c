/* SPDX-License-Identifier: BSD-3-Clause */
/* The schema from a client's side: edits, which the store's keeper does and
 * answers later, and show; and producers that are dropped, checkpoints and
 * seals, likewise. */
#include "base/err.h"
#include "proto/dialect.h"
#include "proto/reply.h"
#include "schema/print.h"
#include "session/exec_seen.h"
#include "session/exec_shared.h"

#include <stdio.h>
#include <string.h>

static enum store_answer
ask(struct job *job)
{
    return store_edit(job->session->executor->store, &job->edit);
}

/* What has been dropped is gone: for the log. */
static void
audit_drop(struct session *session, const struct store_edit *edit)
{
    char text[AUDIT_TEXT_BYTES];
    int n;
    if (edit->dropped.len > 0) {
        n = snprintf(text, sizeof text, "drop producer %.*s",
            (int)edit->dropped.len, edit->dropped.text);
    } else if (edit->edit.op == SCHEMA_DROP_COLUMN) {
        n = snprintf(text, sizeof text, "drop column %s %s",
            edit->edit.counter.name.text, edit->edit.column.name.text);
    } else {
        n = snprintf(text, sizeof text, "drop counter %s",
            edit->edit.counter.name.text);
    }
    exec__audit(session, AUDIT_DROPPED, text, (size_t)n);
}

/* Ids have gone, or come back: for the log. */
static void
audit_handover(struct session *session, const struct moved_one *one)
{
    char text[AUDIT_TEXT_BYTES];
    bool is_here = one->address[0] == '\0';
    int n = snprintf(text, sizeof text, "handover %s %s%s", one->rule,
        is_here ? "here" : "to ", one->address);
    n = n < (int)sizeof text ? n : (int)sizeof text - 1;
    exec__audit(session, AUDIT_DONE, text, (size_t)n);
}

/* The answer, from at on, waits for those who have copies of the directory. */
static void
wait_for_copies(
    struct session *session, uint64_t seq, size_t at, struct exec_turn *turn)
{
    static const struct echo plain = {.proto = PROTO_TEXT};
    if (seq == 0) {
        return;
    }
    turn->acks->seq = seq > turn->acks->seq ? seq : turn->acks->seq;
    session->changed_seq = seq;
    exec__note_ack(turn->acks, &plain, ACK_CHANGE, at, turn->out->len);
}

enum exec_step
exec__edit_answer(struct session *session, struct exec_turn *turn)
{
    const struct store_edit *edit = &session->job->edit;
    uint64_t seq = edit->seq;
    size_t at = turn->out->len;
    if (edit->err != 0) {
        return exec__refuse(session, edit->err, turn->out);
    }
    if (edit->handover.rule[0] != '\0') {
        audit_handover(session, &edit->handover);
        enum exec_step done =
            exec__answer_kind(session, NULL, ANSWER_OK, turn->out);
        wait_for_copies(session, seq, at, turn);
        return done;
    }
    bool drops = edit->dropped.len > 0 ||
        edit->edit.op == SCHEMA_DROP_COLUMN ||
        edit->edit.op == SCHEMA_DROP_COUNTER;
    if (drops) {
        audit_drop(session, edit);
    }
    enum exec_step step = exec__answer_kind(
        session, NULL, drops ? ANSWER_DELETED : ANSWER_STORED, turn->out);
    wait_for_copies(session, seq, at, turn);
    return step;
}

/* The job's edit is made, unless there is an err. */
static enum exec_step
edit(struct session *session, int err, struct exec_turn *turn)
{
    struct job *job = session->job;
    if (err == 0) {
        err = turn->fault;
    }
    if (err != 0) {
        return exec__refuse(session, err, turn->out);
    }
    if (exec__waits(job, &job->edit.call, ask)) {
        return EXEC_LATER;
    }
    return exec__edit_answer(session, turn);
}

enum exec_step
exec__edit_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct job *job = exec__job(session, JOB_EDIT);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->edit.dropped.len = 0;
    job->edit.handover.rule[0] = '\0';
    return edit(session,
        dialect_edit(bytes, &session->request, &job->edit.edit), turn);
}

enum exec_step
exec__drop_producer(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct span name = session->request.key;
    struct job *job = exec__job(session, JOB_EDIT);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->edit.handover.rule[0] = '\0';
    bool is_right =
        producer_name_set(&job->edit.dropped, bytes + name.at, name.len);
    return edit(session, is_right ? 0 : ERR_NO_PRODUCER, turn);
}

enum exec_step
exec__hand_over(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct span rule = session->request.key;
    struct span address = session->request.words; /* len 0: here */
    struct job *job = exec__job(session, JOB_EDIT);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    int err = moved_one_set(&job->edit.handover, bytes + rule.at, rule.len,
        bytes + address.at, address.len);
    return edit(session, err, turn);
}

enum exec_step
exec__show_handovers(struct session *session, struct buf *out)
{
    const struct moved_list *list =
        moved_list_of(store_moved(session->executor->store));
    for (uint32_t i = 0; i < list->n; i++) {
        buf_addf(out, "HANDOVER %s %s\r\n", list->one[i].rule,
            list->one[i].address);
    }
    reply_line(out, "END");
    return EXEC_DONE;
}

enum exec_step
exec__feed(struct session *session, const char *bytes, struct buf *out)
{
    session->is_feed = session->request.number != 0;
    exec_ask_owner(session);
    return exec__answer_kind(session, bytes, ANSWER_OK, out);
}

static enum exec_step
answer_ok(struct session *session, int err, struct buf *out)
{
    return err != 0 ? exec__refuse(session, err, out)
                    : exec__answer_kind(session, NULL, ANSWER_OK, out);
}

static enum store_answer
ask_checkpoint(struct job *job)
{
    return store_checkpoint(job->session->executor->store, &job->checkpoint);
}

enum exec_step
exec__checkpoint_answer(struct session *session, struct buf *out)
{
    return answer_ok(session, session->job->checkpoint.err, out);
}

enum exec_step
exec__checkpoint_begin(struct session *session, struct buf *out)
{
    struct job *job = exec__job(session, JOB_CHECKPOINT);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, out);
    }
    if (exec__waits(job, &job->checkpoint.call, ask_checkpoint)) {
        return EXEC_LATER;
    }
    return exec__checkpoint_answer(session, out);
}

static enum store_answer
ask_seal(struct job *job)
{
    return store_seal(job->session->executor->store, &job->seal);
}

/* A counter's records have been moved: for the log. */
static void
audit_seal(struct session *session, const struct store_seal *seal)
{
    char text[AUDIT_TEXT_BYTES];
    const struct schema_counter *counter =
        schema_counter_at(exec__schema(session), seal->slot);
    int n = snprintf(text, sizeof text, "seal %s all",
        counter != NULL && counter->serial == seal->serial ? counter->name.text
                                                           : "(dropped)");
    exec__audit(session, AUDIT_DONE, text, (size_t)n);
}

enum exec_step
exec__seal_answer(struct session *session, struct buf *out)
{
    const struct store_seal *seal = &session->job->seal;
    if (seal->err == 0 || seal->err == ERR_COLD_READ) {
        audit_seal(session, seal);
    }
    if (seal->err == 0 || !reply_is_server_error(seal->err)) {
        return answer_ok(session, seal->err, out);
    }
    /* what the disk refuses here does not make counters read-only */
    exec__count(session, METRIC_cell_refused, 1);
    buf_addf(out, "SERVER_ERROR %s", err_file_text(seal->err));
    if (seal->err == ERR_COLD_READ) {
        buf_addf(out, ": %s; %u ranges stay in memory, all others are sealed",
            seal->file, (unsigned)seal->n_left);
    }
    reply_line(out, "");
    return exec__done(session);
}

enum exec_step
exec__seal_begin(struct session *session, const char *bytes, struct buf *out)
{
    struct span name = session->request.key;
    const struct schema_counter *counter =
        schema_counter(exec__schema(session), bytes + name.at, name.len);
    if (counter == NULL) {
        return exec__refuse(session, ERR_NO_COUNTER, out);
    }
    if (counter->cold_is_never) {
        return exec__refuse(session, ERR_NEVER_COLD, out);
    }
    struct job *job = exec__job(session, JOB_SEAL);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, out);
    }
    job->seal.slot = counter->slot;
    job->seal.serial = counter->serial;
    if (exec__waits(job, &job->seal.call, ask_seal)) {
        return EXEC_LATER;
    }
    return exec__seal_answer(session, out);
}

enum exec_step
exec__show_counters(struct session *session, struct buf *out)
{
    const struct schema *schema = exec__schema(session);
    struct store *store = session->executor->store;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && counter->members_of == 0) {
            buf_addf(out, "COUNTER %s columns=%u records=%llu\r\n",
                counter->name.text, counter->n_columns,
                (unsigned long long)store_sum(store, slot).records);
        }
    }
    reply_line(out, "END");
    return EXEC_DONE;
}

enum exec_step
exec__show_counter(struct session *session, const char *bytes, struct buf *out)
{
    struct span name = session->request.key;
    const struct schema_counter *counter =
        schema_counter(exec__schema(session), bytes + name.at, name.len);
    if (counter == NULL) {
        return exec__refuse(session, ERR_NO_COUNTER, out);
    }
    schema_print(exec__schema(session), counter, out);
    reply_line(out, "END");
    return EXEC_DONE;
}

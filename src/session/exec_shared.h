/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_SHARED_H
#define SESSION_EXEC_SHARED_H

#include "base/steps.h"
#include "session/exec.h"

/* What the exec*.c files share: the session's thread. */

/* Makes a job for the session, of no gathered requests yet, or returns NULL
 * when memory is out. */
struct job *exec__job(struct session *session, enum job_stage stage);

static const unsigned exec__job_steps[] = {
    [JOB_GET_JOIN] = STEP_TO(JOB_GET_CHECK) | STEP_TO(JOB_GET_ASK),
    [JOB_GET_CHECK] = STEP_TO(JOB_GET_GATHER) | STEP_TO(JOB_GET_ASK),
    [JOB_GET_GATHER] = STEP_TO(JOB_GET_ASK),
    [JOB_GET_ASK] = STEP_TO(JOB_GET_PAIRS) | STEP_TO(JOB_GET_FORMAT),
    [JOB_GET_PAIRS] = STEP_TO(JOB_GET_PINS) | STEP_TO(JOB_GET_FORMAT),
    [JOB_GET_PINS] = STEP_TO(JOB_GET_FORMAT),
    [JOB_GET_FORMAT] = STEP_TO(JOB_GET_GATHER),
    [JOB_GATHER] = STEP_TO(JOB_SOURCES) | STEP_TO(JOB_CHANGE),
    [JOB_SOURCES] = STEP_TO(JOB_PINS) | STEP_TO(JOB_CHANGE),
    [JOB_PINS] = STEP_TO(JOB_CHANGE),
    [JOB_FORWARD_JOIN] = STEP_TO(JOB_FORWARD),
    [JOB_LOGIN] = 0, /* the last one, and so all others */
};

/* Goes from a stage, in which the job is, to another one, which may follow.
 * Where both are constants the table is asked by the compiler. */
static inline void
exec__job_move(struct job *job, enum job_stage from, enum job_stage to)
{
    ASSERT(job->stage == from);
    ASSERT_STEP(exec__job_steps, from, to);
    job->stage = to;
}

/* Takes a request from the turn's budget: false where none is left, and the
 * turn is to end if it can. */
static inline bool
exec__charge(struct exec_turn *turn)
{
    if (*turn->budget == 0) {
        return false;
    }
    (*turn->budget)--;
    return true;
}

/* The session's request is answered: gives the job back, if there is one. */
enum exec_step exec__done(struct session *session);

/* Marks the job as waiting if the store answers later: returns true then. The
 * caller must not touch the job any more before exec_wake. */
bool exec__waits(struct job *job, struct store_call *call,
    enum store_answer (*ask)(struct job *job));

/* Does what has been gathered, if anything. Where that does not come to
 * EXEC_DONE the request at hand is to be begun anew after it, or not at all
 * (EXEC_CLOSE). */
enum exec_step exec__settle_all(
    struct session *session, struct exec_turn *turn);

/* The request's key as the client means it. Valid until the next call. */
struct schema_word exec__key(struct session *session, const char *bytes);

/* Answers the session's request, and is done. bytes[0] is its first one. */
enum exec_step exec__answer(struct session *session, const char *bytes,
    const struct answer *answer, struct buf *out);

/* The same where there is nothing but the kind to say. */
enum exec_step exec__answer_kind(struct session *session, const char *bytes,
    enum answer_kind kind, struct buf *out);

/* Answers with err. Under noreply nothing is sent: it would be taken for the
 * reply to a later command. It is counted; of a SERVER_ERROR see
 * session_leave_unsaid: where session->unsaid is set, nothing more is said. */
void exec__say_refusal(struct session *session, int err,
    const struct echo *echo, struct buf *out);

/* The same for the session's request, and is done. */
enum exec_step exec__refuse(struct session *session, int err, struct buf *out);

/* get gets gat gats, the dialect's get. Gets gathered before stay so. */
enum exec_step exec__get_begin(
    struct session *session, struct exec_turn *turn);
/* touch, and what the meta and binary protocols look up, of a cell or record:
 * key is the request's, already parsed. */
enum exec_step exec__look_begin(
    struct session *session, const struct key *key, struct exec_turn *turn);
/* exec_must_flush and exec_flush for them. */
bool exec__get_is_full(const struct session *session);
enum exec_step exec__get_flush(
    struct session *session, struct exec_turn *turn);
enum exec_step exec__get_resume(
    struct session *session, struct exec_turn *turn);

/* Ids that are not this server's (exec_owner.c); only where
 * session->executor->has_others. 0 where the id is, else ERR_NOT_OWNED by the
 * rule of --owns, ERR_MOVED by a handover. */
int exec__other(const struct session *session, uint64_t id);
static inline bool
exec__is_other(const struct session *session, uint64_t id)
{
    return exec__other(session, id) != 0;
}
/* The same, but 0 also where it is to be a miss. */
int exec__other_fault(const struct session *session, uint64_t id);
/* Notes whose refusal is said next: that of an id, or of what a change was
 * of. */
static inline void
exec__note_id(struct session *session, uint64_t id)
{
    session->other_id = id;
    session->executor->other_moved = NULL;
}
void exec__note_change(struct session *session, const struct change *change);
/* Counts that a request for it, or a key, is answered so; and logs it, where
 * it is by the rule of --owns. What is refused next is refused for it. */
void exec__note_other(struct session *session, uint64_t id);
/* What a change of another server's id is answered with: 0 where it is not,
 * else ERR_NOT_OWNED, ERR_MOVED, or the ERR_ of a miss. */
int exec__owner_fault(struct session *session, const struct change *change);
/* The session's changes have waited since they were looked at: those whose ids
 * have been handed over meanwhile will find nothing to change, and are noted in
 * its job's moved. */
void exec__look_again(struct session *session);

/* True for what changes records or the schema by the name of a counter. */
static inline bool
exec__edits_counters(enum request_op op)
{
    switch (op) {
    case REQUEST_COUNTER_SET:
    case REQUEST_COUNTER_ADD:
    case REQUEST_COUNTER_REPLACE:
    case REQUEST_COUNTER_DELETE:
    case REQUEST_COUNTER_INCR:
    case REQUEST_COUNTER_DECR:
    case REQUEST_SCHEMA_EDIT:
    case REQUEST_DROP_PRODUCER:
        return true;
    default:
        return false;
    }
}

/* The same of a key of a counter whose ids are names: 0, ERR_BAD_ID_NAME,
 * ERR_NOT_OWNED, ERR_MOVED; or ERR_NAMES_RULE where the rule of --owns is about
 * numbers, or others' ids are misses, which these cannot be. */
int exec__name_other(const struct session *session, const struct key *key);

/* What is wrong with the name in a key: ERR_BAD_ID_NAME; what exec__name_other
 * says where some ids are other servers'. 0 also of keys by ids. */
static inline int
exec__name_fault(const struct session *session, const struct key *key)
{
    if (key->kind == KEY_ITEM || !key->target.counter->key_is_text) {
        return 0;
    }
    return session->executor->has_others ? exec__name_other(session, key)
                                         : key_name_fault(key);
}

/* The same, and what key_fault says. */
static inline int
exec__key_fault(const struct session *session, const struct key *key)
{
    int err = key_fault(key);
    return err == 0 ? exec__name_fault(session, key) : err;
}

/* Changes of records by a name that has no id by itself (exec_names.c): notes
 * the name of the change that is being made at the end of the job's. */
void exec__take_name(struct job *job, const struct key *key);
/* Gives the changes gathered the ids that their names have at the moment; what
 * counts is what they have when the change is made. */
void exec__find_names(struct session *session);
/* names_tag of a name that has that id; 0: it has none, and the id is nobody's.
 * So all such names are one of stats hot, and no other's place is taken. */
uint32_t exec__name_tag(
    const struct job *job, uint64_t id, const char *bytes, size_t len);

/* What a request changes, as a change of a number. */
enum change_op exec__change_op(enum request_op op);

/* All changes of cells and records. key is the request's, already parsed. */
enum exec_step exec__change_begin(struct session *session, const char *bytes,
    const struct key *key, struct exec_turn *turn);
enum exec_step exec__counter_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__change_answer(
    struct session *session, struct exec_turn *turn);
/* The sources of the changes gathered have been read, or pinned: goes on with
 * these. */
enum exec_step exec__sources_answer(
    struct session *session, struct exec_turn *turn);
/* exec_must_flush and exec_flush for the changes gathered; EXEC_DONE or
 * EXEC_LATER. */
bool exec__change_is_full(
    const struct session *session, const struct exec_turn *turn);
enum exec_step exec__change_flush(
    struct session *session, struct exec_turn *turn);

/* Works out what the lists among the keys gathered have, when the rest has been
 * read: EXEC_DONE, EXEC_LATER, EXEC_YIELD. */
enum exec_step exec_list__read(
    struct session *session, struct exec_turn *turn);

/* Goes on with a list that exec_list__open has found: likewise. ask is the one
 * that asks the store for reading->get. into: NULL, or where its ids go, with
 * what they are at now. Done: *err is 0, or as of exec_list__is_read. */
enum exec_step exec_list__sum(struct session *session, struct exec_turn *turn,
    const struct list_ref *ref, struct list_reading *reading,
    enum store_answer (*ask)(struct job *job), struct coded_room *into,
    int *err);

/* A command with one key, a list's, that is no retrieval: begins it, and goes
 * on; bytes[0] is the request's first one. */
enum exec_step exec_list__begin(struct session *session, const char *bytes,
    const struct key *key, struct exec_turn *turn);
enum exec_step exec_list__resume(
    struct session *session, const char *bytes, struct exec_turn *turn);

/* 0, or ERR_LIST_OP where a change of a record, or of columns that are named,
 * gives a list's place another number than 0. */
int exec_list__check(
    const struct schema_counter *counter, const struct change *change);

/* All commands on items but retrieval. */
enum exec_step exec__item(
    struct session *session, const char *bytes, struct buf *out);

/* Keys of items that look as if a cell had been meant (exec_near.c). 0, or the
 * ERR_ to refuse a request with that has the key. */
int exec__look_near(struct session *session, const char *key, size_t len);
static inline int
exec__near(struct session *session, const char *key, size_t len)
{
    return session->executor->rules.no_near &&
            key_names_may_be_near(&session->executor->names, key, len)
        ? exec__look_near(session, key, len)
        : 0;
}

/* The same, and such a key is counted and logged, also where it is not
 * refused: once a key that is looked up, or that a request is refused for. */
int exec__count_near(struct session *session, const char *key, size_t len);
static inline int
exec__note_near(struct session *session, const char *key, size_t len)
{
    return key_names_may_be_near(&session->executor->names, key, len)
        ? exec__count_near(session, key, len)
        : 0;
}

/* Large values (exec_loan.c). True where the turn has to end before the value
 * under key, since it is to be lent and cannot be now. */
bool exec__awaits_loan(
    struct session *session, const char *key, size_t key_len);
/* Makes a loan of the pin, where the value is to be lent: the caller notes it,
 * or gives it back. Else it stays a pin. */
bool exec__lend(struct session *session, const struct item *item);
/* The value belongs into the replies at that place. */
void exec__note_loan(
    struct session *session, const struct item *item, size_t at);
/* True where the turn has a loan: nothing more may be said in it than the end
 * of what has been begun. */
static inline bool
exec__has_lent(const struct session *session)
{
    return session->executor->loan.item != NULL;
}

/* Schema edits, seals, checkpoints, show, help. */
enum exec_step exec__edit_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__drop_producer(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__hand_over(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__show_handovers(struct session *session, struct buf *out);
enum exec_step exec__feed(
    struct session *session, const char *bytes, struct buf *out);
enum exec_step exec__edit_answer(
    struct session *session, struct exec_turn *turn);
enum exec_step exec__seal_begin(
    struct session *session, const char *bytes, struct buf *out);
enum exec_step exec__seal_answer(struct session *session, struct buf *out);
enum exec_step exec__checkpoint_begin(
    struct session *session, struct buf *out);
enum exec_step exec__checkpoint_answer(
    struct session *session, struct buf *out);
/* What a replica that is asked to read answers: 0, or ERR_STALE. */
int exec__copy_fault(struct session *session);

/* Changes for the primary (exec_forward.c). True where the session's request,
 * which is one and which this server may not make, is to be gathered. */
bool exec__forwards(struct session *session, const char *bytes);
enum exec_step exec__forward_begin(
    struct session *session, struct exec_turn *turn);
enum exec_step exec__forward_flush(
    struct session *session, struct exec_turn *turn);
enum exec_step exec__forward_answer(
    struct session *session, struct exec_turn *turn);
/* Gives back what the job has. */
void exec__forward_free(struct job *job);

/* True while changes for the primary are gathered. */
static inline bool
exec__is_forwarding(const struct session *session)
{
    return session->job != NULL && session->job->stage == JOB_FORWARD_JOIN;
}

/* replicaof, failover and wait. */
enum exec_step exec__order_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__order_answer(struct session *session, struct buf *out);
enum exec_step exec__failover_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__failover_answer(struct session *session, struct buf *out);
enum exec_step exec__wait_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__wait_answer(struct session *session, struct buf *out);
enum exec_step exec__show_counters(struct session *session, struct buf *out);
enum exec_step exec__show_counter(
    struct session *session, const char *bytes, struct buf *out);

/* Logins, whatever the protocol. */
enum exec_step exec__login(
    struct session *session, const char *bytes, struct buf *out);
enum exec_step exec__login_answer(struct session *session, struct buf *out);
enum exec_step exec__login_ways(struct session *session, struct buf *out);

/* What memcached would say of an item's size. */
uint32_t exec__item_bytes(size_t key_len, size_t value_len, uint32_t flags);

/* True while gets are gathered. */
static inline bool
exec__is_getting(const struct session *session)
{
    return session->job != NULL && session->job->stage == JOB_GET_JOIN;
}

/* Logs what the session's client has done, or who has failed to log in. */
static inline void
exec__audit(
    struct session *session, enum audit kind, const char *text, size_t len)
{
    struct admin *admin = session->executor->admin;
    if (admin->audit_fn != NULL) {
        admin->audit_fn(admin, session, kind, text, len);
    }
}

/* Counts in the worker's metrics. */
static inline void
exec__count(struct session *session, enum metric metric, uint64_t n)
{
    metric_add(session->executor->metrics, metric, n);
}

/* The schema now; valid for the rest of this turn. Two calls may give two
 * schemas: what was found in one need not be in the next. */
static inline const struct schema *
exec__schema(struct session *session)
{
    return store_schema(session->executor->store);
}

#endif

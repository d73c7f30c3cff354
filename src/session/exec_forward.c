/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes that a replica has its primary make (--forward-writes).
 *
 * The commands go there as they came, whole, and what comes back are the
 * replies as the client gets them; so nothing here knows what they are. Those
 * that follow one another are gathered, and go in one request: what a client
 * pipelines is not as many round trips. The session is parked meanwhile.
 *
 *   gather --> FORWARD_JOIN --flush--> FORWARD --> replies
 *                                        +--> none: an error for each of them
 *
 * Not forwarded, and refused as ever: what is about items, lists among them,
 * for these are each server's own; and what is skipped in part, or ends the
 * connection. Users are looked at here, before; the primary takes what comes
 * for a writer's. What is a primary's to refuse it refuses there. */
#include "base/assert.h"
#include "base/err.h"
#include "session/exec_shared.h"
#include "session/group.h"

/* True for one about a record, a cell, a mark or a member. */
static bool
is_of_counter(struct session *session, const char *bytes)
{
    struct key_names *names = &session->executor->names;
    struct schema_word text = exec__key(session, bytes);
    struct key key;
    key_names_use(names, exec__schema(session));
    key_names_parse(names, text.text, text.len, &key);
    return key.kind != KEY_ITEM && key.kind != KEY_LIST;
}

bool
exec__forwards(struct session *session, const char *bytes)
{
    const struct request *request = &session->request;
    const struct group *group = session->executor->group;
    if (group == NULL || group->forward_fn == NULL || session->is_inner ||
        request->closes || request->swallow_bytes != 0 ||
        request->swallow_line || request->len > GROUP_FORWARD_BYTES) {
        return false;
    }
    if (exec__edits_counters(request->op)) {
        return true;
    }
    switch (request->op) {
    case REQUEST_TOO_LARGE:
    case REQUEST_FLUSH_ALL:
        return false;
    case REQUEST_ERROR: /* which counters there are the primary knows best */
        return request->may_be_dialect && session->rank == ACCESS_WRITER;
    default:
        return is_of_counter(session, bytes);
    }
}

/* True where the request has no room in the job that gathers. */
static bool
is_full(const struct session *session)
{
    const struct job *job = session->job;
    return job->forward.call.n == EXEC_BATCH_MAX ||
        job->request_bytes + session->request.len > GROUP_FORWARD_BYTES;
}

enum exec_step
exec__forward_begin(struct session *session, struct exec_turn *turn)
{
    bool joins = exec__is_forwarding(session) && !is_full(session);
    enum exec_step step = joins ? EXEC_DONE : exec__settle_all(session, turn);
    if (step != EXEC_DONE) {
        return step;
    }
    struct job *job = session->job;
    if (job == NULL) {
        job = exec__job(session, JOB_FORWARD_JOIN);
        if (job == NULL) {
            return exec__refuse(session, ERR_NO_MEMORY, turn->out);
        }
        job->forward.call = (struct group_forward){
            .is_binary = session->request.proto == PROTO_BINARY};
    }
    job->forward.echo[job->forward.call.n++] =
        echo_of(&session->request, (uint32_t)job->request_bytes);
    job->request_bytes += session->request.len;
    return EXEC_GATHERED;
}

static enum store_answer
ask_primary(struct job *job)
{
    struct group *group = job->session->executor->group;
    return group->forward_fn(group, &job->forward.call);
}

/* There are no replies. */
static void
refuse_all(struct session *session, struct buf *out)
{
    const struct job *job = session->job;
    const struct group_forward *call = &job->forward.call;
    for (unsigned i = 0; i < call->n && session->unsaid == 0; i++) {
        exec__say_refusal(session, call->err, &job->forward.echo[i], out);
    }
}

enum exec_step
exec__forward_answer(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct group_forward *call = &job->forward.call;
    const struct buf *reply = &call->reply;
    struct buf *out = turn->out;
    if (call->err != 0) {
        refuse_all(session, out);
    } else if (reply->len > 0 && buf_reserve(out, reply->len) == NULL) {
        out->failed = false; /* nothing was promised: it ends without a word */
        session_leave_unsaid(session, ERR_UNSURE_PRIMARY, true);
    } else if (reply->len > 0) {
        buf_add(out, reply->data, reply->len);
    }
    if (call->err == 0 && call->late_seq != 0) {
        session->late_seq = call->late_seq;
    }
    for (unsigned i = 0; i < call->n; i++) {
        latency_count(
            &session->executor->tally, exec__verb(job->forward.echo[i].op), 1);
    }
    turn->done += job->request_bytes;
    return exec__done(session);
}

enum exec_step
exec__forward_flush(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct group_forward *call = &job->forward.call;
    exec__job_move(job, JOB_FORWARD_JOIN, JOB_FORWARD);
    buf_add(&call->request, turn->base, job->request_bytes);
    if (call->request.failed) {
        call->err = ERR_NO_MEMORY;
    } else if (exec__waits(job, &call->call, ask_primary)) {
        return EXEC_LATER;
    }
    return exec__forward_answer(session, turn);
}

void
exec__forward_free(struct job *job)
{
    buf_fini(&job->forward.call.request);
    buf_fini(&job->forward.call.reply);
}

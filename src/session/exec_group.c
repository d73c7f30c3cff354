/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about copies on other servers: replicaof, failover and wait; and
 * what a replica refuses. */
#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "proto/answer.h"
#include "proto/reply.h"
#include "session/exec_shared.h"
#include "session/group.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_MS_MAX = 86400000 };

int
exec__copy_fault(struct session *session)
{
    struct group *group = session->executor->group;
    switch (session->request.op) {
    case REQUEST_GET:
    case REQUEST_GETS:
    case REQUEST_GAT:
    case REQUEST_GATS:
    case REQUEST_LOOK:
    case REQUEST_COUNTER_GET:
        if (session->late_seq != 0) {
            if (!group->has_applied_fn(group, session->late_seq)) {
                return ERR_STALE; /* its own change is not there yet */
            }
            session->late_seq = 0;
        }
        return group == NULL || group->is_fresh_fn(group) ? 0 : ERR_STALE;
    default:
        return 0;
    }
}

static enum store_answer
ask_order(struct job *job)
{
    struct group *group = job->session->executor->group;
    return group->order_fn(group, &job->order);
}

enum exec_step
exec__order_answer(struct session *session, struct buf *out)
{
    char text[AUDIT_TEXT_BYTES];
    const struct group_order *order = &session->job->order;
    if (order->err != 0) {
        return exec__refuse(session, order->err, out);
    }
    int n = snprintf(text, sizeof text, "replicaof %s",
        order->address[0] == '\0' ? "no one" : order->address);
    n = n < (int)sizeof text ? n : (int)sizeof text - 1;
    exec__audit(session, AUDIT_DONE, text, (size_t)n);
    return exec__answer_kind(session, NULL, ANSWER_OK, out);
}

enum exec_step
exec__order_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct span address = session->request.key; /* len 0: no one */
    const struct group *group = session->executor->group;
    if (group == NULL || group->is_automatic) {
        return exec__refuse(
            session, group == NULL ? ERR_NO_GROUP : ERR_BY_ETCD, turn->out);
    }
    struct job *job = exec__job(session, JOB_ORDER);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    if (address.len > GROUP_ADDRESS_MAX) {
        return exec__refuse(session, ERR_BAD_ADDRESS, turn->out);
    }
    memcpy(job->order.address, bytes + address.at, address.len);
    job->order.address[address.len] = '\0';
    job->order.err = 0;
    if (exec__waits(job, &job->order.call, ask_order)) {
        return EXEC_LATER;
    }
    return exec__order_answer(session, turn->out);
}

static enum store_answer
ask_failover(struct job *job)
{
    struct group *group = job->session->executor->group;
    return group->failover_fn(group, &job->failover);
}

enum exec_step
exec__failover_answer(struct session *session, struct buf *out)
{
    char text[AUDIT_TEXT_BYTES];
    const struct group_failover *failover = &session->job->failover;
    const struct node_name *to = &failover->to;
    int err = failover->err;
    if (err == ERR_NOT_PRIMARY || (err != 0 && failover->why[0] == '\0')) {
        return exec__refuse(session, err, out);
    }
    if (err != 0) {
        struct answer answer = {
            .kind = ANSWER_REFUSED, .err = err, .detail = failover->why};
        return exec__answer(session, NULL, &answer, out);
    }
    int n =
        snprintf(text, sizeof text, "failover%s%.*s%s", to->len > 0 ? " " : "",
            (int)to->len, to->text, failover->is_forced ? " force" : "");
    n = n < (int)sizeof text ? n : (int)sizeof text - 1;
    exec__audit(session, AUDIT_DONE, text, (size_t)n);
    return exec__answer_kind(session, NULL, ANSWER_OK, out);
}

enum exec_step
exec__failover_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    const struct group *group = session->executor->group;
    if (group == NULL || !group->is_automatic) {
        return exec__refuse(
            session, group == NULL ? ERR_NO_GROUP : ERR_BY_HAND, turn->out);
    }
    struct job *job = exec__job(session, JOB_FAILOVER);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    struct span name = request->key, force = request->words;
    job->failover = (struct group_failover){.is_forced = force.len > 0};
    if (name.len > 0) {
        bool is_right =
            node_name_set(&job->failover.to, bytes + name.at, name.len);
        ASSERT(is_right); /* the parser has looked */
    }
    if (exec__waits(job, &job->failover.call, ask_failover)) {
        return EXEC_LATER;
    }
    return exec__failover_answer(session, turn->out);
}

static enum store_answer
ask_wait(struct job *job)
{
    struct group *group = job->session->executor->group;
    return group->wait_fn(group, &job->wait);
}

enum exec_step
exec__wait_answer(struct session *session, struct buf *out)
{
    reply_number(out, session->job->wait.n_have);
    return exec__done(session);
}

enum exec_step
exec__wait_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct words words = words_of(bytes, session->request.words);
    struct span n = {0}, ms = {0};
    if (session->executor->group == NULL) {
        return exec__refuse(session, ERR_NO_GROUP, turn->out);
    }
    struct job *job = exec__job(session, JOB_WAIT);
    if (job == NULL) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->wait = (struct group_wait){.seq = session->changed_seq};
    if (!words_next(&words, &n) || !words_next(&words, &ms) ||
        !num_parse_u32(bytes + n.at, n.len, &job->wait.n) ||
        !num_parse_u64(bytes + ms.at, ms.len, &job->wait.ms) ||
        job->wait.ms > WAIT_MS_MAX) {
        return exec__refuse(session, ERR_BAD_WAIT, turn->out);
    }
    if (exec__waits(job, &job->wait.call, ask_wait)) {
        return EXEC_LATER;
    }
    return exec__wait_answer(session, turn->out);
}

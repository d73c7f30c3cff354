/* SPDX-License-Identifier: BSD-3-Clause */
/* --reads=committed: what a reply shows is committed before it leaves.
 *
 * A read shows the changes that have been made, committed or not. Where there
 * are such that are not, the last one may be what it has seen: so the replies
 * of its turn wait for that as if they acknowledged it (gate.h), and its own
 * is noted beside those of changes (acks.h), with the error to be said in its
 * place if the commit fails. Nothing is looked at twice, and nothing waits
 * where all is committed already.
 *
 * What has been asked for by one request is one such note, whatever the number
 * of its keys. Where its reply takes several turns each has a note. An error in
 * the place of one that is not the last ends the connection: the rest may not
 * come. One in the place of the last ends the reply, as a cold record does that
 * cannot be read: what was sent before it was committed.
 *
 * Reads of items note nothing. Nor do changes that were done, which wait
 * anyway; those that the store has refused tell what it has, and do. */
#include "session/exec_seen.h"

#include "base/assert.h"
#include "base/err.h"
#include "call/store_calls.h"
#include "session/exec_get.h"
#include "session/exec_watch.h"

/* Has the turn wait for seq; false: 0 is nothing to wait for. */
static bool
wait_for(uint64_t seq, struct exec_turn *turn)
{
    if (seq > turn->acks->seq) {
        turn->acks->seq = seq;
    }
    return seq != 0;
}

/* Notes that the replies of this turn wait for what a change that the store has
 * answered, or a piece of a dump, has seen. False where that is committed, or
 * may be shown anyway. */
static bool
wait_for_seen(struct session *session, struct exec_turn *turn)
{
    struct executor *executor = session->executor;
    return executor->rules.holds_reads != 0 &&
        wait_for(store_seen(executor->store, NULL, 0), turn);
}

/* What is to be committed before the rest of the slice's reply leaves; 0:
 * nothing. Its values have been read once: what later turns show of them needs
 * no more than the first. */
static uint64_t
seen_by_slice(struct session *session)
{
    struct job *job = session->job;
    struct executor *executor = session->executor;
    if (executor->rules.holds_reads == 0 || job->get.n == 0) {
        return 0;
    }
    if (job->formatted == 0) {
        struct store_get *get = &job->get;
        job->seen = store_seen(executor->store, get->key, get->n);
        if (job->n_abouts > 0) { /* bits, of which nobody knows the batch */
            job->seen = store_seen(executor->store, NULL, 0);
        }
        if (get->n_sources > 0) { /* what is seen last covers the rest */
            job->seen = store_seen(
                executor->store, &get->key[STORE_GET_MAX], get->n_sources);
        }
    } else if (store_outcome(executor->store, job->seen) == STORE_COMMITTED) {
        job->seen = 0;
    }
    return job->seen;
}

/* The last note, where it is of the same reply as what begins at first. */
static struct session_ack *
last_part(struct session_acks *acks, size_t first)
{
    struct session_ack *ack = (void *)acks->at.data;
    size_t n = acks->at.len / sizeof *ack;
    if (n == 0) {
        return NULL;
    }
    ack += n - 1;
    return ack->kind == ACK_PART &&
            (size_t)ack->span.at + ack->span.len == first
        ? ack
        : NULL;
}

/* Where wait_for_seen is true: what the turn's out has from first on is of a
 * read, and the end of its reply unless is_part. */
static void
note_seen(struct session *session, const struct echo *echo, bool is_part,
    size_t first, struct exec_turn *turn)
{
    enum ack_kind kind = is_part ? ACK_PART : ACK_READ;
    size_t end = turn->out->len;
    struct session_ack *part = last_part(turn->acks, first);
    if (turn->out->failed) {
        return; /* what there is will be taken back */
    }
    if (part != NULL) {
        ASSERT(first <= end && end <= UINT32_MAX);
        part->span.len = (uint32_t)end - part->span.at;
        part->kind = (uint8_t)kind;
        return;
    }
    exec__count(session, METRIC_reads_held, 1);
    exec__note_ack(turn->acks, echo, kind, first, end);
}

void
exec__note_piece(struct session *session, enum exec_step step, size_t first,
    struct exec_turn *turn)
{
    struct echo echo = echo_of(&session->request, 0);
    if (turn->out->len > first && wait_for_seen(session, turn)) {
        note_seen(session, &echo, step != EXEC_DONE, first, turn);
    }
}

/* True for what depends on what the store has, not on the request alone. */
static bool
reveals(int err)
{
    switch (err) {
    case ERR_NOT_STORED:
    case ERR_EXISTS:
    case ERR_NOT_FOUND:
    case ERR_OVERFLOW:
    case ERR_JUMP:
    case ERR_BELOW:
    case ERR_OLD_TX:
        return true;
    default:
        return false;
    }
}

void
exec__note_refusal(struct session *session, int err, const struct echo *echo,
    size_t first, struct exec_turn *turn)
{
    if (reveals(err) && turn->out->len > first &&
        wait_for_seen(session, turn)) {
        note_seen(session, echo, false, first, turn);
    }
}

/* What is said back of a request of several keys. */
static const struct echo text_echo = {.op = REQUEST_GET, .proto = PROTO_TEXT};

/* Behind the last slot of the request that slot number first is of. */
static unsigned
end_of_request(const struct job *job, unsigned first)
{
    unsigned i = first;
    while (i < job->n_slots && !job->slot[i].is_last) {
        i++;
    }
    return i < job->n_slots ? i + 1 : i;
}

/* Notes the reply to slots first..formatted - 1, which are of one request. */
static void
note_slots(
    struct session *session, unsigned first, size_t at, struct exec_turn *turn)
{
    const struct job *job = session->job;
    const struct echo *echo = &text_echo;
    bool has_cells = last_part(turn->acks, at) != NULL;
    for (unsigned i = first; i < job->formatted; i++) {
        has_cells = has_cells || job->slot[i].n_cells > 0;
    }
    ASSERT(first < job->formatted && job->formatted <= job->n_slots);
    switch ((enum slot_kind)job->slot[first].kind) {
    case SLOT_SINGLE:
    case SLOT_META:
    case SLOT_PACKET:
        echo = &job->single[first];
        break;
    default:
        break;
    }
    if (has_cells) {
        note_seen(
            session, echo, !job->slot[job->formatted - 1].is_last, at, turn);
    }
}

bool
exec_get__format_more(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    unsigned n_slots = job->n_slots;
    bool is_watched = (session->executor->watched & WATCH_FETCHERS) != 0;
    bool waits = wait_for(seen_by_slice(session), turn);
    bool is_done = true;
    if (waits) { /* a value beside what waits is copied, and waits with it */
        session->executor->loan.use = LOAN_NEVER;
    }
    while (is_done && job->formatted < n_slots) {
        unsigned first = job->formatted;
        size_t at = turn->out->len;
        if (waits) {
            job->n_slots = end_of_request(job, first);
        }
        is_done = exec_get__format(session, turn);
        job->n_slots = n_slots;
        if (waits && job->formatted > first) {
            note_slots(session, first, at, turn);
        }
        if (is_watched) {
            exec__watch_slots(session, turn->base, first);
        }
    }
    return is_done;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to changes of cells and records, and what is counted of them. Most
 * are plain increments that were done, and go straight into the reply
 * buffer. */
#include "session/exec_change.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "proto/reply.h"
#include "proto/reply_plain.h"
#include "session/exec_about.h"
#include "session/exec_mark.h"
#include "session/exec_member.h"
#include "session/exec_seen.h"
#include "session/exec_watch.h"

#include <string.h>

enum {
    NUMBER_LINE_MAX = NUM_U64_DIGITS_MAX + 2 /* of one column */
};

/* What only the change of a mark counts. */
static __attribute__((noinline)) void
count_mark(struct session *session, const struct change *change)
{
    bool sets = change->op <= CHANGE_MARK_CAS;
    if (change->err != 0) {
        return;
    }
    exec__count(session, METRIC_marks_moved, change->is_moved);
    exec__count(session, METRIC_marks_behind, sets && !change->is_moved);
}

static void
count_change(struct session *session, const struct change *change)
{
    bool found = change->err == 0;
    if (change->producer != 0 && found) {
        exec__count(session, METRIC_cell_numbered, 1);
        exec__count(session, METRIC_cell_repeats, change->is_repeat);
        if (change->is_repeat) { /* was counted then */
            return;
        }
    }
    if (__builtin_expect(change_is_of_member(change), 0)) {
        exec_member__count(session, change);
    }
    switch (change->op) {
    case CHANGE_MARK_INCR:
        count_mark(session, change);
        /* fall through */
    case CHANGE_MEMBER_INCR:
    case CHANGE_INCR:
        exec__count(session, METRIC_incr_hits, found);
        exec__count(
            session, METRIC_cell_saturated, found ? change->n_saturated : 0);
        break;
    case CHANGE_MARK_DECR:
        count_mark(session, change);
        /* fall through */
    case CHANGE_MEMBER_DECR:
    case CHANGE_DECR:
        exec__count(session, METRIC_decr_hits, found);
        break;
    case CHANGE_MARK_DELETE:
    case CHANGE_READ_ALL:
        count_mark(session, change);
        /* fall through */
    case CHANGE_MEMBER_DELETE:
    case CHANGE_DELETE:
        exec__count(
            session, found ? METRIC_delete_hits : METRIC_delete_misses, 1);
        break;
    case CHANGE_MARK_CAS:
        count_mark(session, change);
        /* fall through */
    case CHANGE_MEMBER_CAS:
    case CHANGE_CAS:
        exec__count(session, METRIC_cas_hits, found);
        exec__count(session, METRIC_cas_badval, change->err == ERR_EXISTS);
        exec__count(session, METRIC_cas_misses, change->err == ERR_NOT_FOUND);
        exec__count(session, METRIC_cmd_set, 1);
        break;
    case CHANGE_MARK_SET:
    case CHANGE_MARK_ADD:
    case CHANGE_MARK_REPLACE:
        count_mark(session, change);
        /* fall through */
    case CHANGE_MEMBER_SET:
    case CHANGE_MEMBER_ADD:
    case CHANGE_MEMBER_REPLACE:
    case CHANGE_SET:
    case CHANGE_ADD:
    case CHANGE_REPLACE:
        exec__count(session, METRIC_cmd_set, 1);
        break;
    case CHANGE_MARK_FORGET: /* of no client */
        ASSERT(false);
    }
    exec__count(session, METRIC_cell_changes, found);
}

/* Of a number; a mark's are answered by say_done, as all others. */
static inline bool
counts(const struct change *change)
{
    return change->op == CHANGE_INCR || change->op == CHANGE_DECR;
}

/* The numbers that a change has come to: of a record several. */
static inline void
say_numbers(const struct change *change, struct buf *out)
{
    unsigned n = change->n_columns;
    char *start = exec__room(out, n * (NUM_U64_DIGITS_MAX + 1) + 2);
    if (start == NULL) {
        return;
    }
    char *at = start +
        (n == 1 ? num_format_u64(change->value[0], start)
                : reply_join_u64(change->value, n, start));
    *at++ = '\r';
    *at++ = '\n';
    out->len += (size_t)(at - start);
}

/* The cas unique of what a change has come to. */
static uint64_t
unique_of(const struct change *change)
{
    return change->op == CHANGE_READ_ALL
        ? cell_cas(0) /* so many are unread */
        : record_cas(change->serial, change->value, change->n_columns);
}

/* The answer to a change that was done. */
static void
say_done(const struct change *change, const struct echo *echo,
    const char *bytes, struct buf *out)
{
    static const enum answer_kind kinds[] = {
        [CHANGE_SET] = ANSWER_STORED,
        [CHANGE_ADD] = ANSWER_STORED,
        [CHANGE_REPLACE] = ANSWER_STORED,
        [CHANGE_CAS] = ANSWER_STORED,
        [CHANGE_INCR] = ANSWER_NUMBER,
        [CHANGE_DECR] = ANSWER_NUMBER,
        [CHANGE_DELETE] = ANSWER_DELETED,
        [CHANGE_MARK_SET] = ANSWER_STORED,
        [CHANGE_MARK_ADD] = ANSWER_STORED,
        [CHANGE_MARK_REPLACE] = ANSWER_STORED,
        [CHANGE_MARK_CAS] = ANSWER_STORED,
        [CHANGE_MARK_INCR] = ANSWER_NUMBER,
        [CHANGE_MARK_DECR] = ANSWER_NUMBER,
        [CHANGE_MARK_DELETE] = ANSWER_DELETED,
        [CHANGE_READ_ALL] = ANSWER_DELETED,
        [CHANGE_MEMBER_SET] = ANSWER_STORED,
        [CHANGE_MEMBER_ADD] = ANSWER_STORED,
        [CHANGE_MEMBER_REPLACE] = ANSWER_STORED,
        [CHANGE_MEMBER_CAS] = ANSWER_STORED,
        [CHANGE_MEMBER_INCR] = ANSWER_NUMBER,
        [CHANGE_MEMBER_DECR] = ANSWER_NUMBER,
        [CHANGE_MEMBER_DELETE] = ANSWER_DELETED,
    };
    struct answer answer = {.kind = kinds[change->op],
        .number = change->value[0],
        .cas = echo->proto == PROTO_TEXT ? 0 /* which does not tell it */
                                         : unique_of(change),
        .ttl_s = ANSWER_NEVER,
        .old_ttl_s = ANSWER_NEVER};
    if (answer.kind == ANSWER_STORED) {
        answer.value_len = echo->value_len;
    }
    answer_put(echo, bytes, &answer, out);
}

/* bytes: what echo's spans are counted from. */
static inline void
say_change(struct session *session, const struct change *change,
    const struct echo *echo, const char *bytes, struct buf *out)
{
    enum answer_kind kind = ANSWER_NOT_STORED;
    if (change->err == 0 && echo->proto == PROTO_TEXT && counts(change)) {
        if (!echo->noreply) { /* what most replies are */
            say_numbers(change, out);
        }
        return;
    }
    switch (change->err) {
    case 0:
        say_done(change, echo, bytes, out);
        return;
    case ERR_NOT_STORED:
        break;
    case ERR_EXISTS:
        kind = ANSWER_EXISTS;
        break;
    case ERR_NOT_FOUND:
        kind = ANSWER_NOT_FOUND;
        break;
    default:
        exec__note_change(session, change);
        exec__say_refusal(session, change->err, echo, out);
        return;
    }
    answer_put(echo, bytes, &(struct answer){.kind = kind}, out);
}

/* Writes a number as a line to `to`, which has room for NUMBER_LINE_MAX: the
 * end of it. */
static inline char *
put_line(uint64_t number, char *to)
{
    char *end = reply_put_number(to, number);
    memcpy(end, "\r\n", 2);
    return end + 2;
}

/* What is said back of a plain increment: nothing. */
static const struct echo plain_echo = {
    .op = REQUEST_INCR, .proto = PROTO_TEXT};

/* Answers changes from change i on, as long as they are plain and done: the
 * number of the first that is not. */
static unsigned
say_plain(struct session *session, unsigned i, struct exec_turn *turn)
{
    const struct job *job = session->job;
    struct buf *out = turn->out;
    unsigned n = job->store_change.n;
    unsigned n_incr = 0;
    unsigned n_saturated = 0;
    unsigned first = i;
    bool waits = job->store_change.seq != 0;
    struct buf *acks = &turn->acks->at;
    char *at = buf_reserve(out, (n - i) * NUMBER_LINE_MAX);
    struct session_ack *ack =
        waits ? (void *)buf_reserve(acks, (n - i) * sizeof *ack) : NULL;
    if (at == NULL || (waits && ack == NULL)) {
        return i;
    }
    for (; i < n && (job->plain >> i & 1) != 0 && job->change[i].err == 0;
         i++) {
        const struct change *change = &job->change[i];
        size_t begin = (size_t)(at - out->data);
        bool is_incr = change->op == CHANGE_INCR;
        at = put_line(change->value[0], at);
        n_incr += is_incr;
        n_saturated += is_incr ? change->n_saturated : 0;
        if (waits) {
            *ack++ = exec__ack(
                &plain_echo, ACK_CHANGE, begin, (size_t)(at - out->data));
        }
    }
    out->len = (size_t)(at - out->data);
    ASSERT(out->len <= out->capacity && out->len <= UINT32_MAX);
    if (waits) {
        acks->len += (i - first) * sizeof *ack;
        ASSERT(acks->len <= acks->capacity);
    }
    exec__count(session, METRIC_incr_hits, n_incr);
    exec__count(session, METRIC_cell_saturated, n_saturated);
    exec__count(session, METRIC_decr_hits, i - first - n_incr);
    exec__count(session, METRIC_cell_changes, i - first);
    return i;
}

/* Answers change i. */
static inline void
say_one(struct session *session, unsigned i, struct exec_turn *turn)
{
    const struct job *job = session->job;
    const struct change *change = &job->change[i];
    const struct echo *echo =
        (job->plain >> i & 1) != 0 ? &plain_echo : &job->echo[i];
    size_t len = turn->out->len;
    count_change(session, change);
    say_change(session, change, echo, turn->base, turn->out);
    if (change->err != 0) {
        exec__note_refusal(session, change->err, echo, len, turn);
    } else if (job->store_change.seq != 0) {
        exec__note_ack(turn->acks, echo, ACK_CHANGE, len, turn->out->len);
    }
}

/* What a change is counted as: of numbers, marks and members alike. */
static enum latency_verb
verb_of(enum change_op op)
{
    static const uint8_t verbs[] = {
        [CHANGE_SET] = LATENCY_set,
        [CHANGE_ADD] = LATENCY_set,
        [CHANGE_REPLACE] = LATENCY_set,
        [CHANGE_CAS] = LATENCY_set,
        [CHANGE_INCR] = LATENCY_incr,
        [CHANGE_DECR] = LATENCY_decr,
        [CHANGE_DELETE] = LATENCY_delete,
        [CHANGE_MARK_SET] = LATENCY_set,
        [CHANGE_MARK_ADD] = LATENCY_set,
        [CHANGE_MARK_REPLACE] = LATENCY_set,
        [CHANGE_MARK_CAS] = LATENCY_set,
        [CHANGE_MARK_INCR] = LATENCY_incr,
        [CHANGE_MARK_DECR] = LATENCY_decr,
        [CHANGE_MARK_DELETE] = LATENCY_delete,
        [CHANGE_READ_ALL] = LATENCY_delete,
        [CHANGE_MEMBER_SET] = LATENCY_set,
        [CHANGE_MEMBER_ADD] = LATENCY_set,
        [CHANGE_MEMBER_REPLACE] = LATENCY_set,
        [CHANGE_MEMBER_CAS] = LATENCY_set,
        [CHANGE_MEMBER_INCR] = LATENCY_incr,
        [CHANGE_MEMBER_DECR] = LATENCY_decr,
        [CHANGE_MEMBER_DELETE] = LATENCY_delete,
    };
    return (enum latency_verb)verbs[op];
}

/* Counts the requests that the job's changes are. */
static void
count_requests(struct session *session)
{
    struct latency_tally *tally = &session->executor->tally;
    const struct job *job = session->job;
    unsigned n = job->store_change.n;
    for (unsigned i = 0; i < n;) { /* most are of one kind */
        enum change_op op = job->change[i].op;
        unsigned first = i++;
        while (i < n && job->change[i].op == op) {
            i++;
        }
        latency_count(tally, verb_of(op), i - first);
    }
    tally->room_ns += job->store_change.room_ns;
}

enum exec_step
exec__change_answer(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    if (job->of_about) {
        exec_about__end(job);
    }
    uint64_t seq = job->store_change.seq;
    count_requests(session);
    if (job->marks != 0 && job->of_members != 0) {
        exec_mark__name_errors(job);
    }
    for (uint64_t rest = job->moved; rest != 0; rest &= rest - 1) {
        job->change[__builtin_ctzll(rest)].err = ERR_MOVED;
    }
    if ((session->executor->watched & WATCH_ALL) != 0) {
        for (unsigned i = 0; i < job->store_change.n; i++) {
            exec__watch_change(session, &job->change[i]);
        }
    }
    for (unsigned i = 0; i < job->store_change.n;) {
        unsigned next =
            (job->plain >> i & 1) != 0 ? say_plain(session, i, turn) : i;
        if (next == i) {
            say_one(session, i, turn);
            next = session->unsaid != 0 ? job->store_change.n : i + 1;
        }
        ASSERT(next > i && next <= job->store_change.n);
        i = next;
    }
    if (seq > turn->acks->seq) {
        turn->acks->seq = seq;
    }
    session->changed_seq = seq != 0 ? seq : session->changed_seq;
    turn->done += job->request_bytes;
    return exec__done(session);
}

void
exec_change__say_miss(struct session *session, const struct change *change,
    const struct echo *echo, const char *bytes, struct buf *out)
{
    count_change(session, change);
    say_change(session, change, echo, bytes, out);
}

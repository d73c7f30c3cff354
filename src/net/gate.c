/* SPDX-License-Identifier: BSD-3-Clause */
/* The gate holds replies until what they acknowledge is committed.
 *
 *   turn --> part (replies, acks, seq) --> store_commit(largest seq)
 *                    |                           |
 *                    +-- late, or failed         +-- committed --> pass_fn
 *                        --> ERR_UNSURE in each ack's place --> pass_fn
 *
 * A turn whose changes are not yet committed has its replies held, all of
 * them: a read behind a change in the same turn must not be seen before the
 * change is safe. A turn that ended because of -R may be followed by another
 * one meanwhile, whose replies are held behind the first, so that changes of
 * one connection pile up in a commit as those of many do. HELD_CHANGES_MAX and
 * HELD_BYTES_MAX bound that, and the other connections have their turns in
 * between. Any other end of a turn lets the connection wait.
 *
 * Replies that wait for the same batch of the log are one part. Parts leave in
 * their order, the front one as soon as its own batch is committed. What comes
 * when there are HELD_PARTS joins the last one and raises its number: it leaves
 * later than it could, and never too early.
 *
 * Before the loop sleeps the gate asks the store once to commit the largest
 * number of all turns held (group commit). Where that is done at once the
 * replies are sent at once. Else the store's listener signals the loop when an
 * outcome may have changed, and the gate looks at each part held.
 *
 * A change whose commit failed is answered with ERR_UNSURE in place of its
 * acknowledgement: it has been made. The other replies of its turn are what
 * they were. Where its client wants no reply, the connection ends there: the
 * replies before it are sent, and nothing behind it. A read that may show what
 * is not committed (--reads=committed, exec_seen.c) is answered with
 * ERR_UNCOMMITTED, and where its reply has parts in other turns the connection
 * ends behind that.
 *
 * So is one whose commit is still open late_ms after its turn: the disk hangs,
 * and nobody knows what comes of it. Then its turn has left the gate and is
 * not answered again, whatever the outcome will be; the connection goes on,
 * and its next change waits anew. An alarm looks for such turns. It is set
 * when one is held while it is not, and sets itself as long as something is
 * held; so a commit that is in time costs no timer.
 *
 * The listener runs on any thread, also several at once, and only reads
 * wait_seq and wait_last, the least and the largest number that is held, and
 * clears the first. Numbers are committed from the least one on, and fail up to
 * the largest: while both wait all do, so what moves is no news to this loop,
 * and it is not woken for it. The gate sets wait_seq before it asks for these
 * outcomes once more: one that changes after the question finds it set. Both
 * are read-modify-writes, so one of them is seen by the other: either the
 * listener signals, or the gate sees what had moved. Likewise of two listeners,
 * where the log has moved and those who have copies: the later one sees both.
 *
 * What must hold (gate_verify): seq rises from part to part, and in a part the
 * acks rise with the replies.
 *
 * What can go wrong: memory for held replies. Then the changes are answered
 * with ERR_UNSURE at once, where nothing is held before them; else the
 * connection is closed, as with any reply that is missing. */
#include "net/gate.h"

#include "base/assert.h"
#include "base/err.h"
#include "proto/answer.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    GATE_COPY_BYTES = 2048, /* longer replies change hands where they can,
                             * they are not copied */
    GATE_IDLE_BYTES = 512,  /* a larger empty buffer is given back */
    GATE_PAUSE_MS = 20      /* from one look for late turns to the next */
};

/* Any thread. True while no number from least to last has its outcome. */
static bool
do_wait(const struct gate *gate, uint64_t least, uint64_t last)
{
    return store_outcome(gate->store, least) == STORE_COMMIT_WAITS &&
        (last == least ||
            store_outcome(gate->store, last) == STORE_COMMIT_WAITS);
}

/* Any thread. */
static void
on_moved(struct store_listener *listener)
{
    struct gate *gate =
        (struct gate *)((char *)listener - offsetof(struct gate, listener));
    /* acq_rel: see the head of this file */
    uint64_t seq =
        atomic_fetch_or_explicit(&gate->wait_seq, 0, memory_order_acq_rel);
    /* relaxed: was set before wait_seq */
    uint64_t last =
        atomic_load_explicit(&gate->wait_last, memory_order_relaxed);
    if (seq == 0 || do_wait(gate, seq, last)) {
        return;
    }
    if (atomic_exchange_explicit(&gate->wait_seq, 0, memory_order_acq_rel) !=
        0) {
        bell_hold(gate->bell); /* gate_fini waits for this function */
        bell_ring(gate->bell);
    }
}

static void on_alarm(struct alarm *alarm);

void
gate_init(struct gate *gate, struct store *store, struct metric_set *metrics,
    struct bell *bell, const struct clock *clock, uint64_t late_ms,
    void (*pass_fn)(struct held *held, struct buf *out))
{
    ASSERT(late_ms > 0);
    *gate = (struct gate){.store = store,
        .metrics = metrics,
        .bell = bell,
        .pass_fn = pass_fn,
        .listener = {.moved_fn = on_moved},
        .late_ms = late_ms,
        .late_err = ERR_UNSURE_SLOW};
    alarm_init(&gate->alarm, bell->poll.loop, clock, on_alarm);
    store_listen(store, &gate->listener);
}

void
gate_fini(struct gate *gate)
{
    ASSERT(gate->first == NULL);
    store_unlisten(gate->store, &gate->listener);
    alarm_close(&gate->alarm);
}

size_t
held_bytes(const struct held *held)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < held->n; i++) {
        bytes += held->part[i].out.len;
    }
    return bytes;
}

bool
held_is_full(const struct held *held)
{
    size_t changes = 0;
    for (unsigned i = 0; i < held->n; i++) {
        changes += held->part[i].acks.len / sizeof(struct session_ack);
    }
    return changes >= HELD_CHANGES_MAX || held_bytes(held) >= HELD_BYTES_MAX;
}

/* Takes over what from holds, behind what to holds: copies the little, swaps
 * the much. */
static bool
take_over(struct buf *to, struct buf *from)
{
    if (to->len == 0 && from->len > GATE_COPY_BYTES) {
        struct buf swap = *to;
        *to = *from;
        *from = swap;
        return true;
    }
    buf_add(to, from->data, from->len);
    buf_clear(from);
    return !to->failed;
}

/* The same for places in replies, which now are base further on. */
static bool
take_over_acks(struct buf *to, struct buf *from, size_t base)
{
    struct session_ack *ack = (void *)from->data;
    size_t n = base == 0 ? 0 : from->len / sizeof *ack;
    for (size_t i = 0; i < n; i++) {
        ASSERT(base <= UINT32_MAX - ack[i].span.at);
        ack[i].span.at += (uint32_t)base;
    }
    return take_over(to, from);
}

static void
empty(struct buf *buf)
{
    buf_clear(buf);
    if (buf->capacity > GATE_IDLE_BYTES) {
        buf_fini(buf);
    }
}

/* Has the alarm go off in ms, unless it does. */
static void
watch(struct gate *gate, uint64_t ms)
{
    if (!alarm_is_set(&gate->alarm)) {
        alarm_set(&gate->alarm, ms);
    }
}

static void
link_held(struct gate *gate, struct held *held)
{
    held->magic = HELD_MAGIC;
    held->prev = NULL;
    held->next = gate->first;
    if (held->next != NULL) {
        held->next->prev = held;
    }
    gate->first = held;
}

static void
unlink_held(struct gate *gate, struct held *held)
{
    ASSERT(held->magic == HELD_MAGIC);
    held->magic = 0;
    if (held->prev != NULL) {
        held->prev->next = held->next;
    } else {
        gate->first = held->next;
    }
    if (held->next != NULL) {
        held->next->prev = held->prev;
    }
}

/* The part that takes what waits for seq (0: for what is before it); NULL
 * where memory is out. */
static struct held_part *
part_for(struct gate *gate, struct held *held, uint64_t seq)
{
    if (held->part == NULL) {
        held->part = calloc(HELD_PARTS, sizeof *held->part);
        if (held->part == NULL) {
            return NULL;
        }
    }
    struct held_part *last = &held->part[held->n == 0 ? 0 : held->n - 1];
    if (held->n == 0) {
        ASSERT(seq != 0);
        link_held(gate, held);
    } else if (seq <= last->seq || held->n == HELD_PARTS) {
        last->seq = seq > last->seq ? seq : last->seq;
        return last;
    } else {
        last++;
    }
    held->n++;
    last->seq = seq;
    last->since_ms = alarm_now_ms(&gate->alarm);
    watch(gate, gate->late_ms);
    return last;
}

/* True where take_over of both will find memory. */
static bool
make_room(
    struct held_part *part, const struct buf *out, const struct buf *acks)
{
    bool out_moves = part->out.len == 0 && out->len > GATE_COPY_BYTES;
    bool acks_move = part->acks.len == 0 && acks->len > GATE_COPY_BYTES;
    return (out_moves || out->len == 0 ||
               buf_reserve(&part->out, out->len) != NULL) &&
        (acks_move || acks->len == 0 ||
            buf_reserve(&part->acks, acks->len) != NULL);
}

/* Takes back a part that has nothing in it. */
static void
drop_part(struct gate *gate, struct held *held)
{
    held->n--;
    if (held->n == 0) {
        unlink_held(gate, held);
    }
}

bool
gate_hold(struct gate *gate, struct held *held, struct buf *out,
    struct session_acks *acks)
{
    unsigned n = held->n;
    if (acks->seq > gate->new_seq) { /* also of changes that cannot wait */
        gate->new_seq = acks->seq;
    }
    struct held_part *part = part_for(gate, held, acks->seq);
    if (part == NULL) {
        return false;
    }
    if (!make_room(part, out, &acks->at)) {
        part->out.failed = false;
        part->acks.failed = false;
        if (held->n > n) {
            drop_part(gate, held);
        } /* else it waits for a later batch than it had to */
        return false;
    }
    size_t base = part->out.len;
    metric_add(
        gate->metrics, METRIC_turns_held, acks->seq != 0 || out->len != 0);
    return take_over(&part->out, out) &&
        take_over_acks(&part->acks, &acks->at, base);
}

void
gate_drop(struct gate *gate, struct held *held)
{
    if (held->n != 0) {
        unlink_held(gate, held);
    }
    for (unsigned i = 0; i < HELD_PARTS && held->part != NULL; i++) {
        buf_fini(&held->part[i].out);
        buf_fini(&held->part[i].acks);
        free(held->part[i].times);
    }
    free(held->part);
    held->part = NULL;
    held->n = 0;
}

/* A change of the text protocol whose client wants no reply. Quiet meta
 * commands and packets are answered with their errors all the same. */
static bool
is_silent(const struct session_ack *ack)
{
    return ack->kind == ACK_CHANGE && ack->proto == PROTO_TEXT &&
        ack->span.len == 0;
}

/* What is said of a read where err is said of a change. */
static int
err_of_read(int err)
{
    return err == ERR_UNSURE ? ERR_UNCOMMITTED : ERR_UNCOMMITTED_SLOW;
}

/* Counts what is answered with err. */
static void
count(struct gate *gate, const struct buf *acks, int err)
{
    const struct session_ack *ack = (const void *)acks->data;
    size_t n = acks->len / sizeof *ack;
    size_t n_changes = 0, n_silent = 0;
    for (size_t i = 0; i < n; i++) {
        n_changes += ack[i].kind == ACK_CHANGE;
        n_silent += is_silent(&ack[i]);
    }
    metric_add(gate->metrics, METRIC_changes_unsure, n_changes);
    metric_add(
        gate->metrics, METRIC_changes_late, err == ERR_UNSURE ? 0 : n_changes);
    metric_add(gate->metrics, METRIC_noreply_refused, n_silent);
    metric_add(gate->metrics, METRIC_reads_unsure, n - n_changes);
}

/* Appends the replies with the error, one of those that are UNSURE, in the
 * place of each acknowledgement, and with that of a read in the place of what
 * shows something. Behind the first change whose client wants no reply, and
 * behind the error of a reply that goes on, is nothing: returns the error then,
 * else 0. */
static int
compose(struct gate *gate, const struct buf *replies, const struct buf *acks,
    int err, struct buf *out)
{
    const struct session_ack *ack = (const void *)acks->data;
    size_t n = acks->len / sizeof *ack;
    size_t at = 0;
    count(gate, acks, err);
    for (size_t i = 0; i < n; i++) {
        struct echo echo = {.proto = ack[i].proto,
            .opcode = ack[i].opcode,
            .opaque = ack[i].opaque};
        struct answer answer = {.kind = ANSWER_REFUSED,
            .err = ack[i].kind == ACK_CHANGE ? err : err_of_read(err)};
        /* they are in order, so each reply is said once */
        ASSERT(ack[i].span.at >= at && ack[i].span.at <= replies->len);
        buf_add(out, replies->data + at, ack[i].span.at - at);
        if (is_silent(&ack[i])) {
            return err;
        }
        answer_put(&echo, NULL, &answer, out);
        if (ack[i].kind == ACK_PART) {
            return answer.err;
        }
        at = (size_t)ack[i].span.at + ack[i].span.len;
        ASSERT(at <= replies->len);
    }
    if (at < replies->len) {
        buf_add(out, replies->data + at, replies->len - at);
    }
    return 0;
}

/* The front part is answered with an error. */
static void
refuse(struct gate *gate, struct held *held, int err)
{
    struct held_part *part = &held->part[0];
    struct buf out = {0};
    held->unsaid = compose(gate, &part->out, &part->acks, err, &out);
    buf_fini(&part->out);
    part->out = out; /* out.failed is for whoever sends it */
}

int
gate_refuse(struct gate *gate, const struct buf *out,
    const struct session_acks *acks, struct buf *said)
{
    return compose(gate, out, &acks->at, ERR_UNSURE, said);
}

/* The front part leaves. Its memory is kept for the next one, if it is
 * little. */
static void
pass(struct gate *gate, struct held *held)
{
    struct held_part front = held->part[0];
    held->n--;
    for (unsigned i = 0; i < held->n; i++) {
        held->part[i] = held->part[i + 1];
    }
    held->part[held->n] = (struct held_part){0};
    if (held->n == 0) {
        unlink_held(gate, held);
    }
    held->passed = front.times;
    front.times = NULL;
    gate->pass_fn(held, &front.out);
    if (held->passed != NULL) { /* who passes takes it, mostly */
        free(held->passed);
        held->passed = NULL;
    }
    ASSERT(held->unsaid == 0 || held->n == 0);
    if (held->part == NULL) { /* it has called gate_drop */
        buf_fini(&front.out);
        buf_fini(&front.acks);
        return;
    }
    empty(&front.out);
    empty(&front.acks);
    held->part[held->n] = front;
}

/* Whether the front part may leave, when all up to committed_seq are committed
 * and what has come to the gate by late_ms (0: nothing) is late. */
static bool
may_leave(struct gate *gate, struct held *held, uint64_t committed_seq,
    uint64_t late_ms)
{
    const struct held_part *part = &held->part[0];
    enum store_commit outcome = STORE_COMMITTED;
    if (part->seq > committed_seq) {
        outcome = store_outcome(gate->store, part->seq);
    }
    if (outcome == STORE_COMMIT_WAITS) {
        if (part->since_ms > late_ms) {
            return false;
        }
        refuse(gate, held, gate->late_err);
    }
    if (outcome == STORE_COMMIT_FAILED) {
        refuse(gate, held, ERR_UNSURE);
    }
    return true;
}

/* Numbers; 0: nothing is held. */
struct waits {
    uint64_t least, last;
};

/* What is still held. */
static struct waits
look_at_all(struct gate *gate, uint64_t committed_seq, uint64_t late_ms)
{
    struct held *next;
    struct waits waits = {0};
    for (struct held *held = gate->first; held != NULL; held = next) {
        ASSERT(held->magic == HELD_MAGIC);
        next = held->next;
        while (held->n > 0 && may_leave(gate, held, committed_seq, late_ms)) {
            pass(gate, held);
        }
        if (held->n > 0) {
            uint64_t first = held->part[0].seq;
            uint64_t last = held->part[held->n - 1].seq;
            waits.least =
                waits.least == 0 || first < waits.least ? first : waits.least;
            waits.last = last > waits.last ? last : waits.last;
        }
    }
    return waits;
}

static void
verify_part(const struct held_part *part)
{
    const struct session_ack *ack = (const void *)part->acks.data;
    size_t at = 0;
    ASSERT(part->acks.len % sizeof *ack == 0);
    for (size_t i = 0; i < part->acks.len / sizeof *ack; i++) {
        ASSERT(ack[i].span.at >= at);
        at = (size_t)ack[i].span.at + ack[i].span.len;
        ASSERT(at <= part->out.len);
    }
}

void
held_verify(const struct held *held)
{
    uint64_t seq = 0;
    ASSERT(held->n <= HELD_PARTS);
    ASSERT(held->n == 0 || held->part != NULL);
    ASSERT(held->magic == (held->n == 0 ? 0 : HELD_MAGIC));
    for (unsigned i = 0; i < held->n; i++) {
        ASSERT(held->part[i].seq > seq);
        seq = held->part[i].seq;
        verify_part(&held->part[i]);
    }
}

unsigned
gate_verify(const struct gate *gate)
{
    const struct held *before = NULL;
    unsigned n = 0;
    for (const struct held *held = gate->first; held != NULL;
         held = held->next) {
        ASSERT(held->magic == HELD_MAGIC && held->prev == before);
        held_verify(held);
        before = held;
        n++;
    }
    return n;
}

/* Outside the poll: the worker may be offline. */
static void
on_alarm(struct alarm *alarm)
{
    struct gate *gate =
        (struct gate *)((char *)alarm - offsetof(struct gate, alarm));
    uint64_t now_ms = alarm_now_ms(alarm);
    uint64_t oldest_ms = now_ms;
    if (now_ms > gate->late_ms) {
        (void)look_at_all(gate, 0, now_ms - gate->late_ms);
    }
    if (gate->first == NULL) {
        return;
    }
    for (struct held *held = gate->first; held != NULL; held = held->next) {
        if (held->part[0].since_ms < oldest_ms) {
            oldest_ms = held->part[0].since_ms;
        }
    }
    uint64_t left_ms = oldest_ms + gate->late_ms - now_ms;
    watch(gate, left_ms < GATE_PAUSE_MS ? GATE_PAUSE_MS : left_ms);
}

void
gate_look(struct gate *gate)
{
    struct waits waits = {0};
    if (gate->first != NULL) {
        waits = look_at_all(gate, 0, 0);
    }
    while (waits.least != 0) {
        /* relaxed, and acq_rel: see the head of this file */
        atomic_store_explicit(
            &gate->wait_last, waits.last, memory_order_relaxed);
        (void)atomic_exchange_explicit(
            &gate->wait_seq, waits.least, memory_order_acq_rel);
        if (do_wait(gate, waits.least, waits.last)) {
            return;
        }
        waits = look_at_all(gate, 0, 0);
    }
    /* relaxed: spares a signal, no more */
    atomic_store_explicit(&gate->wait_seq, 0, memory_order_relaxed);
}

void
gate_commit(struct gate *gate)
{
    uint64_t seq = gate->new_seq;
    gate->new_seq = 0;
    if (seq == 0) {
        return;
    }
    if (store_commit(gate->store, seq) == STORE_COMMITTED) {
        (void)look_at_all(gate, seq, 0);
    }
    gate_look(gate);
}

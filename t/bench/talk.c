/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands and their replies, in whatever protocol.
 *
 * A question is made of consecutive draws of the tape: one draw, or for a
 * multi-get keys / columns of them, each asked for `columns` columns. A reply
 * is counted once it has come whole; without --verify nothing else is looked
 * at. Numbers come back in the order of the keys, either all, absent ones
 * marked as such, or with those left out that are absent: then the key of
 * each is looked for among those not yet answered, and the ones passed over
 * must be absent by right. */

#include "bench/talk.h"

#include "bench/fail.h"

#include <inttypes.h>
#include <string.h>

static void
count(_Atomic uint64_t *cell, uint64_t n)
{
    /* relaxed: one writer, and a sum is no synchronisation */
    uint64_t old = atomic_load_explicit(cell, memory_order_relaxed);
    atomic_store_explicit(cell, old + n, memory_order_relaxed);
}

/* A get, a multi-get or an incr from the tape. */
static void
ask_tape(struct worker *worker, struct conn *conn, struct conn_op *op)
{
    const struct options *options = worker->run->options;
    struct verify *verify = &worker->run->verify;
    const struct tape *tape = worker->run->tape;
    const struct tape_draw *draw = &tape->draw[worker->tape_at];
    bool is_multi = options->mode == MODE_MULTI;
    op->ask = draw->is_incr ? WIRE_ADD : is_multi ? WIRE_MULTI : WIRE_GET;
    op->draw = (uint32_t)worker->tape_at;
    op->n_keys = is_multi ? (uint32_t)options->keys : 1;
    if (options->verify) {
        op->acked = draw->is_incr
            ? verify_incr_sent(verify, draw->post, draw->column)
            : verify_get_sent(verify, draw->post, draw->column);
    }
    tape_add(tape, worker->tape_at, &conn->out);
    worker->tape_at = (worker->tape_at + tape->step) % tape->n;
}

bool
talk_ask(struct worker *worker, struct conn *conn, uint64_t due_ns)
{
    struct run *run = worker->run;
    const struct options *options = run->options;
    bool is_fill = options->mode == MODE_FILL;
    if (is_fill && !fill_has_next(&worker->cursor, options)) {
        return false;
    }
    /* relaxed: the count only bounds the work */
    if (!is_fill && options->ops != 0 &&
        atomic_fetch_add_explicit(&run->taken, 1, memory_order_relaxed) >=
            options->ops) {
        return false;
    }
    struct conn_op *op = conn_push(conn);
    op->due_ns = due_ns;
    if (is_fill) {
        fill_ask(&worker->cursor, options, &conn->out, op);
    } else {
        ask_tape(worker, conn, op);
    }
    worker->under_way++;
    return true;
}

/* Ends the program: what has come is no reply that the command can have. */
static _Noreturn void
bad_reply(const struct worker *worker, const struct conn_op *op,
    const char *bytes, size_t len)
{
    static const char *const kind[] = {[WIRE_GET] = "get",
        [WIRE_MULTI] = "multi-get",
        [WIRE_ADD] = "incr",
        [WIRE_SET] = "set"};
    char text[120];
    size_t n = 0;
    while (n < len && n < sizeof(text) - 1 && bytes[n] != '\r') {
        text[n] = bytes[n] >= ' ' && bytes[n] <= '~' ? bytes[n] : '?';
        n++;
    }
    text[n] = '\0';
    if (op == NULL) {
        fail("the server said, unasked: %s", text);
    }
    uint64_t id = op->is_store
        ? posts_id(&worker->run->options->posts, op->draw)
        : worker->run->tape->draw[op->draw].id;
    fail("the server answered a %s of id %" PRIu64 ": %s",
        op->is_store ? "store" : kind[op->ask], id, text);
}

/* Key number i of a question, into key (its text into name). */
static const struct tape_draw *
key_at(const struct worker *worker, const struct conn_op *op, uint32_t i,
    unsigned *column)
{
    return tape_key(
        worker->run->tape, worker->run->options, op->draw, i, column);
}

/* From key number i on, those that are not the one answered must be absent by
 * right; NULL: all. The number of the key answered, or n_keys. */
static uint32_t
pass_over(struct worker *worker, const struct conn_op *op, uint32_t i,
    const struct wire_text *key)
{
    for (; i < op->n_keys; i++) {
        char name[TAPE_KEY_BYTES_MAX];
        unsigned column;
        const struct tape_draw *draw = key_at(worker, op, i, &column);
        size_t len = tape_name(worker->run->options, draw->id, column, name);
        if (key != NULL && key->len == len &&
            memcmp(name, key->at, len) == 0) {
            break;
        }
        verify_absent(&worker->run->verify, draw->post, column);
    }
    return i;
}

/* One number of a reply, that of key number i. */
static void
check_value(struct worker *worker, const struct conn_op *op, uint32_t i,
    const struct wire_value *value)
{
    struct verify *verify = &worker->run->verify;
    unsigned column;
    const struct tape_draw *draw = key_at(worker, op, i, &column);
    bool is_incr = op->ask == WIRE_ADD;
    if (value->is_absent && is_incr) {
        verify_not_incremented(verify, draw->post, column);
    } else if (value->is_absent) {
        verify_absent(verify, draw->post, column);
    } else if (is_incr) {
        verify_incremented(
            verify, draw->post, column, op->acked, value->number);
    } else {
        verify_got(verify, draw->post, column, op->acked, value->number);
    }
}

/* Checks a whole reply, number by number. */
static void
check(struct worker *worker, const struct wire *wire, const struct conn_op *op,
    const char *bytes, size_t len)
{
    size_t at = 0;
    uint32_t next = 0;
    for (;;) {
        struct wire_value value;
        size_t begin = at;
        enum wire_found found =
            wire->next_fn(op->ask, bytes, len, &at, &value);
        if (found == WIRE_END) {
            break;
        }
        if (found == WIRE_VALUE && value.key.at != NULL) {
            next = pass_over(worker, op, next, &value.key);
        }
        if (found == WIRE_WRONG || next >= op->n_keys) {
            bad_reply(worker, op, bytes + begin, len - begin);
        }
        check_value(worker, op, next, &value);
        next++;
    }
    pass_over(worker, op, next, NULL);
}

/* Whether the time of a command that is answered now is to be counted: in a
 * closed loop those answered in the measured phase, in an open loop those that
 * were to be sent in it. Nobody sends any later. */
static bool
is_timed(const struct run *run, const struct conn_op *op)
{
    if (run->options->rate != 0) {
        /* relaxed: as below, and it is written once */
        return op->due_ns >=
            atomic_load_explicit(&run->begin_ns, memory_order_relaxed);
    }
    /* relaxed: a reply more or less at the edges of the phase */
    return atomic_load_explicit(&run->phase, memory_order_relaxed) ==
        PHASE_MEASURE;
}

void
talk_hear(struct worker *worker, struct conn *conn, uint64_t now_ns)
{
    const struct options *options = worker->run->options;
    const struct wire *wire = wire_of((enum wire_protocol)options->protocol);
    uint64_t ops = 0, keys = 0, hits = 0, records = 0;
    while (conn->in_at < conn->in.len) {
        const char *bytes = conn->in.data + conn->in_at;
        size_t len = conn->in.len - conn->in_at;
        struct wire_reply reply = {0};
        struct conn_op *op = conn_oldest(conn);
        enum wire_state state = op == NULL
            ? WIRE_BAD
            : wire->frame_fn(op->ask, op->n_keys, bytes, len, &reply);
        if (state == WIRE_MORE) {
            break;
        }
        if (state == WIRE_BAD || (op->is_store && reply.hits == 0)) {
            bad_reply(worker, op, bytes, len);
        }
        if (options->verify && !op->is_store) {
            check(worker, wire, op, bytes, reply.len);
        }
        ops++;
        keys += op->n_keys;
        hits += op->is_store ? op->n_keys : reply.hits;
        records += op->is_first;
        if (is_timed(worker->run, op)) {
            hist_add(&worker->hist, now_ns - op->due_ns);
        }
        conn->in_at += reply.len;
        conn_pop(conn);
    }
    worker->under_way -= ops;
    count(&worker->tally.ops, ops);
    count(&worker->tally.keys, keys);
    count(&worker->tally.hits, hits);
    count(&worker->tally.records, records);
}

/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands and replies in memcached's text protocol.
 *
 * A question is made of consecutive draws of the tape: one draw, or for a
 * multi-get keys / columns of them, each asked for `columns` columns. Values
 * come back in the order of the keys, those without one left out; with
 * --verify the key of each value is looked for among those not yet answered,
 * and the ones passed over must be absent by right. Numbers hold no newline,
 * so replies are read by the line. */

#include "bench/talk.h"

#include "base/num.h"
#include "bench/fail.h"

#include <inttypes.h>
#include <string.h>

enum { KEY_BYTES_MAX = NUM_U64_DIGITS_MAX + 1 + OPTIONS_SUFFIX_MAX };

static void
count(_Atomic uint64_t *cell, uint64_t n)
{
    /* relaxed: one writer, and a sum is no synchronisation */
    uint64_t old = atomic_load_explicit(cell, memory_order_relaxed);
    atomic_store_explicit(cell, old + n, memory_order_relaxed);
}

static size_t
write_key(
    const struct options *options, uint64_t id, unsigned column, char *out)
{
    size_t len = num_format_u64(id, out);
    out[len++] = '.';
    memcpy(out + len, options->suffix[column], options->suffix_len[column]);
    return len + options->suffix_len[column];
}

static void
add_key(struct buf *out, const struct options *options, uint64_t id,
    unsigned column)
{
    char *at = buf_reserve(out, KEY_BYTES_MAX);
    if (at != NULL) {
        out->len += write_key(options, id, column, at);
    }
}

/* Key number i of a get: its draw and column. */
static const struct tape_draw *
key_at(const struct worker *worker, const struct conn_op *op, uint32_t i,
    unsigned *column)
{
    const struct options *options = worker->run->options;
    const struct tape *tape = worker->run->tape;
    uint32_t columns = (uint32_t)options->columns;
    if (options->mode != MODE_MULTI || columns == 1) {
        size_t at = ((size_t)op->draw + i) % tape->n;
        *column = tape->draw[at].column;
        return &tape->draw[at];
    }
    *column = i % columns;
    return &tape->draw[((size_t)op->draw + i / columns) % tape->n];
}

/* INCRBY by 1 in Redis's protocol. */
static void
add_redis_incr(struct buf *out, const struct options *options,
    const struct tape_draw *draw)
{
    char key[KEY_BYTES_MAX];
    char digits[NUM_U64_DIGITS_MAX];
    size_t len = write_key(options, draw->id, draw->column, key);
    buf_add_text(out, "*3\r\n$6\r\nINCRBY\r\n$");
    buf_add(out, digits, num_format_u64(len, digits));
    buf_add_text(out, "\r\n");
    buf_add(out, key, len);
    buf_add_text(out, "\r\n$1\r\n1\r\n");
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
    op->kind = draw->is_incr ? CONN_OP_INCR : CONN_OP_GET;
    op->draw = (uint32_t)worker->tape_at;
    op->n_keys = is_multi ? (uint32_t)options->keys : 1;
    if (options->verify) {
        op->acked = draw->is_incr
            ? verify_incr_sent(verify, draw->post, draw->column)
            : verify_get_sent(verify, draw->post, draw->column);
    }

    if (options->redis) {
        add_redis_incr(&conn->out, options, draw);
        worker->tape_at = (worker->tape_at + 1) % tape->n;
        return;
    }
    buf_add_text(&conn->out, draw->is_incr ? "incr" : "get");
    for (uint32_t i = 0; i < op->n_keys; i++) {
        unsigned column;
        const struct tape_draw *key = key_at(worker, op, i, &column);
        buf_add(&conn->out, " ", 1);
        add_key(&conn->out, options, key->id, column);
    }
    buf_add_text(&conn->out, draw->is_incr ? " 1\r\n" : "\r\n");
    size_t n_draws = is_multi ? options->keys / options->columns : 1;
    worker->tape_at = (worker->tape_at + n_draws) % tape->n;
}

bool
talk_ask(struct worker *worker, struct conn *conn, uint64_t now_ns)
{
    struct run *run = worker->run;
    const struct options *options = run->options;
    if (options->mode == MODE_FILL) {
        if (!fill_has_next(&worker->cursor, options)) {
            return false;
        }
        struct conn_op *op = conn_push(conn);
        op->kind = CONN_OP_STORE;
        op->sent_ns = now_ns;
        fill_ask(&worker->cursor, options, &conn->out, op);
        return true;
    }
    /* relaxed: the count only bounds the work */
    if (options->ops != 0 &&
        atomic_fetch_add_explicit(&run->taken, 1, memory_order_relaxed) >=
            options->ops) {
        return false;
    }
    struct conn_op *op = conn_push(conn);
    op->sent_ns = now_ns;
    ask_tape(worker, conn, op);
    return true;
}

/* Ends the program: the reply is not one that the command can have. */
static _Noreturn void
bad_reply(const struct worker *worker, const struct conn_op *op,
    const char *line, size_t len)
{
    static const char *const kind[] = {[CONN_OP_STORE] = "store",
        [CONN_OP_GET] = "get",
        [CONN_OP_INCR] = "incr"};
    char text[120];
    size_t n = 0;
    while (n < len && n < sizeof(text) - 1) {
        text[n] = line[n] >= ' ' && line[n] <= '~' ? line[n] : '?';
        n++;
    }
    text[n] = '\0';
    if (op == NULL) {
        fail("the server said, unasked: %s", text);
    }
    uint64_t id = op->kind == CONN_OP_STORE
        ? posts_id(&worker->run->options->posts, op->draw)
        : worker->run->tape->draw[op->draw].id;
    fail("the server answered a %s of id %" PRIu64 ": %s", kind[op->kind], id,
        text);
}

static bool
is_word(const char *line, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(line, word, len) == 0;
}

static void
finish(struct worker *worker, struct conn *conn, struct conn_op *op,
    uint64_t now_ns)
{
    count(&worker->tally.ops, 1);
    count(&worker->tally.keys, op->n_keys);
    count(&worker->tally.hits, op->hits);
    /* relaxed: a reply more or less at the edges of the phase */
    if (atomic_load_explicit(&worker->run->phase, memory_order_relaxed) ==
        PHASE_MEASURE) {
        hist_add(&worker->hist, now_ns - op->sent_ns);
    }
    conn_pop(conn);
}

/* With --verify, keys in front of the one answered, or of END (key == NULL),
 * must be absent by right. False where key is none of those left. */
static bool
pass_over(
    struct worker *worker, struct conn_op *op, const char *key, size_t key_len)
{
    const struct options *options = worker->run->options;
    for (; op->at < op->n_keys; op->at++) {
        char expected[KEY_BYTES_MAX];
        unsigned column;
        const struct tape_draw *draw = key_at(worker, op, op->at, &column);
        size_t len = write_key(options, draw->id, column, expected);
        if (key_len == len && memcmp(expected, key, len) == 0) {
            return true;
        }
        verify_absent(&worker->run->verify, draw->post, column);
    }
    return key == NULL;
}

/* "VALUE <key> <flags> <bytes>". */
static void
hear_value_line(struct worker *worker, struct conn *conn, struct conn_op *op,
    const char *line, size_t len)
{
    enum { PREFIX = sizeof("VALUE ") - 1 };
    conn->value_is_next = true;
    op->hits++;
    if (op->hits > op->n_keys) {
        bad_reply(worker, op, line, len);
    }
    if (worker->run->options->verify) {
        const char *key = line + PREFIX;
        const char *end = memchr(key, ' ', len - PREFIX);
        if (end == NULL || !pass_over(worker, op, key, (size_t)(end - key))) {
            bad_reply(worker, op, line, len);
        }
    }
}

/* The number behind a VALUE line. */
static void
hear_value(struct worker *worker, struct conn *conn, struct conn_op *op,
    const char *line, size_t len)
{
    conn->value_is_next = false;
    if (!worker->run->options->verify) {
        return;
    }
    unsigned column;
    const struct tape_draw *draw = key_at(worker, op, op->at++, &column);
    uint64_t value;
    if (!num_parse_u64(line, len, &value)) {
        bad_reply(worker, op, line, len);
    }
    verify_got(&worker->run->verify, draw->post, column, op->acked, value);
}

static void
hear_get(struct worker *worker, struct conn *conn, struct conn_op *op,
    const char *line, size_t len, uint64_t now_ns)
{
    if (conn->value_is_next) {
        hear_value(worker, conn, op, line, len);
    } else if (len > 6 && memcmp(line, "VALUE ", 6) == 0) {
        hear_value_line(worker, conn, op, line, len);
    } else if (is_word(line, len, "END")) {
        if (worker->run->options->verify) {
            pass_over(worker, op, NULL, 0);
        }
        finish(worker, conn, op, now_ns);
    } else {
        bad_reply(worker, op, line, len);
    }
}

static void
hear_incr(struct worker *worker, struct conn *conn, struct conn_op *op,
    const char *line, size_t len, uint64_t now_ns)
{
    struct verify *verify = &worker->run->verify;
    const struct tape_draw *draw = &worker->run->tape->draw[op->draw];
    bool is_checked = worker->run->options->verify;
    uint64_t value;
    size_t sign = worker->run->options->redis && len > 0 && line[0] == ':';
    if (num_parse_u64(line + sign, len - sign, &value)) {
        op->hits = 1;
        if (is_checked) {
            verify_incremented(
                verify, draw->post, draw->column, op->acked, value);
        }
    } else if (!is_word(line, len, "NOT_FOUND")) {
        bad_reply(worker, op, line, len);
    } else if (is_checked) {
        verify_not_incremented(verify, draw->post, draw->column);
    }
    finish(worker, conn, op, now_ns);
}

static void
hear_store(struct worker *worker, struct conn *conn, struct conn_op *op,
    const char *line, size_t len, uint64_t now_ns)
{
    if (!fill_is_stored(worker->run->options, line, len)) {
        bad_reply(worker, op, line, len);
    }
    op->hits = op->n_keys;
    count(&worker->tally.records, op->is_first);
    finish(worker, conn, op, now_ns);
}

void
talk_hear(struct worker *worker, struct conn *conn, uint64_t now_ns)
{
    const char *line;
    size_t len;
    while ((line = conn_line(conn, &len)) != NULL) {
        struct conn_op *op = conn_oldest(conn);
        if (op == NULL) {
            bad_reply(worker, op, line, len);
        }
        switch (op->kind) {
        case CONN_OP_STORE:
            hear_store(worker, conn, op, line, len, now_ns);
            break;
        case CONN_OP_GET:
            hear_get(worker, conn, op, line, len, now_ns);
            break;
        case CONN_OP_INCR:
            hear_incr(worker, conn, op, line, len, now_ns);
            break;
        }
    }
}

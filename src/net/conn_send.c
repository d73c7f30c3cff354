/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing. What the socket does not take at once is queued: sending is libuv's,
 * queue waits behind it, so libuv never holds more than one write of a
 * connection.
 *
 * A large value of an item is not queued, but lent (session/loan.h): a turn's
 * replies are then
 *
 *      out[0, at)   the item's bytes   out[at, len)
 *
 * and nothing is queued before them. A plain socket takes all three in one
 * write, from where they are; libuv goes on with what is left of the value, and
 * a copy of what is left of the two others. With TLS the value is ciphered
 * piece by piece, each when the one before it has been taken, and what is left
 * is not ciphered yet. The loan is given back with its last byte, or with the
 * connection. Until then no turn is run, so nothing can come in between.
 *
 * What can go wrong: memory for what is left. Then the connection is closed, as
 * with any reply that is cut. */
#include "net/conn_priv.h"

#include "base/assert.h"
#include "items/items.h"

#include <stdlib.h>

/* A value on its way, and what is around it. */
struct lent {
    uv_write_t write; /* plain: libuv's */
    const struct item *item;
    const char *value; /* TLS: what of it has not been ciphered yet */
    size_t value_len;
    struct buf around; /* plain: what is left on both sides; TLS: behind it */
};

static void
end_sending(struct conn *conn)
{
    buf_fini(&conn->sending->bytes);
    free(conn->sending);
    conn->sending = NULL;
}

static void
on_write(uv_write_t *write, int status)
{
    struct conn *conn = write->data;
    ASSERT(conn->magic == CONN_MAGIC && conn->sending != NULL);
    end_sending(conn);
    conn__has_written(conn, status);
}

void
conn__write_queue(struct conn *conn)
{
    if (conn->sending != NULL || conn->queue.len == 0) {
        return;
    }
    struct sending *sending = malloc(sizeof *sending);
    if (sending == NULL) {
        conn_close(conn);
        return;
    }
    conn->sending = sending;
    sending->write.data = conn;
    sending->bytes = conn->queue;
    conn->queue = (struct buf){0};
    uv_buf_t part =
        uv_buf_init(sending->bytes.data, (unsigned)sending->bytes.len);
    if (uv_write(&sending->write, &conn->uv.stream, &part, 1, on_write) != 0) {
        end_sending(conn);
        conn_close(conn);
    }
}

/* True where nothing is to be written before what comes next. */
static inline bool
is_free(const struct conn *conn)
{
    return uv_stream_get_write_queue_size(&conn->uv.stream) +
        conn->queue.len ==
        0;
}

static inline void
send_bytes(struct conn *conn, const char *bytes, size_t len)
{
    size_t sent = 0;
    if (is_free(conn)) {
        uv_buf_t part = uv_buf_init((char *)bytes, (unsigned)len);
        int n = uv_try_write(&conn->uv.stream, &part, 1);
        if (n < 0 && n != UV_EAGAIN) {
            conn_close(conn);
            return;
        }
        sent = n < 0 ? 0 : (size_t)n;
    }
    if (sent < len) {
        buf_add(&conn->queue, bytes + sent, len - sent);
        if (conn->queue.failed) {
            conn_close(conn);
            return;
        }
        conn__write_queue(conn);
    }
}

void
conn__send(struct conn *conn, const char *bytes, size_t len)
{
    send_bytes(conn, bytes, len);
}

static void
give_back(struct conn *conn, const struct item *item)
{
    items_unlend(conn->worker->config.store->items, item);
}

static void
end_lent(struct conn *conn)
{
    give_back(conn, conn->lent->item);
    buf_fini(&conn->lent->around);
    free(conn->lent);
    conn->lent = NULL;
}

void
conn__drop_lent(struct conn *conn)
{
    if (conn->lent != NULL && conn__is_tls(conn)) {
        end_lent(conn);
    }
}

size_t
conn__lent_bytes(const struct conn *conn)
{
    return conn__is_tls(conn) ? conn->lent->value_len + conn->lent->around.len
                              : 0;
}

size_t
conn__lent_memory(const struct conn *conn)
{
    return sizeof *conn->lent + conn->lent->around.capacity;
}

/* Notes that a value is on its way: around[0, len) is copied. False where
 * memory is out: then it has been given back, and the connection closed. */
static bool
begin_lent(
    struct conn *conn, const struct item *item, const char *around, size_t len)
{
    struct lent *lent = calloc(1, sizeof *lent);
    if (lent != NULL) {
        lent->item = item;
        buf_add(&lent->around, around, len);
    }
    if (lent == NULL || lent->around.failed) {
        free(lent);
        give_back(conn, item);
        conn_close(conn);
        return false;
    }
    conn->lent = lent;
    return true;
}

static void
on_lent(uv_write_t *write, int status)
{
    struct conn *conn = write->data;
    ASSERT(conn->magic == CONN_MAGIC && conn->lent != NULL);
    end_lent(conn);
    conn__has_written(conn, status);
}

/* Leaves out the first *skip bytes, and counts them off. */
static uv_buf_t
behind(const char *bytes, size_t len, size_t *skip)
{
    size_t n = *skip < len ? *skip : len;
    *skip -= n;
    return uv_buf_init((char *)bytes + n, (unsigned)(len - n));
}

/* Hands libuv what is left behind the first sent bytes of what is in part. */
static void
write_rest(struct conn *conn, const struct item *item, const uv_buf_t part[3],
    size_t sent)
{
    uv_buf_t left[3];
    for (unsigned i = 0; i < 3; i++) {
        left[i] = behind(part[i].base, part[i].len, &sent);
    }
    ASSERT(sent == 0); /* else some byte of a reply is sent twice, or never */
    if (!begin_lent(conn, item, left[0].base, left[0].len)) {
        return;
    }
    struct lent *lent = conn->lent;
    buf_add(&lent->around, left[2].base, left[2].len);
    if (lent->around.failed) {
        end_lent(conn);
        conn_close(conn);
        return;
    }
    left[2].base = lent->around.data + left[0].len;
    left[0].base = lent->around.data;
    lent->write.data = conn;
    if (uv_write(&lent->write, &conn->uv.stream, left, 3, on_lent) != 0) {
        end_lent(conn);
        conn_close(conn);
    }
}

static void
send_plain(struct conn *conn, const struct buf *out, const struct item *item,
    size_t at)
{
    const uv_buf_t part[3] = {uv_buf_init(out->data, (unsigned)at),
        uv_buf_init((char *)item->value, item->value_len),
        uv_buf_init(out->data + at, (unsigned)(out->len - at))};
    int n = uv_try_write(&conn->uv.stream, part, 3);
    if (n < 0 && n != UV_EAGAIN) {
        give_back(conn, item);
        conn_close(conn);
    } else if (n >= 0 && (size_t)n == out->len + item->value_len) {
        give_back(conn, item);
    } else {
        write_rest(conn, item, part, n < 0 ? 0 : (size_t)n);
    }
}

/* Ciphers bytes behind what is in sealed already. */
static bool
seal_more(struct conn *conn, const char *bytes, size_t len, struct buf *sealed)
{
    return len == 0 || tls_stream_write(conn->tls, bytes, len, sealed);
}

/* Sends the next pieces, the first of them behind what is in sealed already. */
static void
send_pieces(struct conn *conn)
{
    struct buf *sealed = &conn->worker->sealed;
    while (conn->lent != NULL && is_free(conn)) {
        struct lent *lent = conn->lent;
        size_t most = conn__write_mark(conn);
        size_t n = lent->value_len < most ? lent->value_len : most;
        bool is_last = n == lent->value_len;
        bool is_whole = seal_more(conn, lent->value, n, sealed) &&
            (!is_last ||
                seal_more(conn, lent->around.data, lent->around.len, sealed));
        lent->value += n;
        lent->value_len -= n;
        if (is_last) {
            end_lent(conn);
        }
        if (!is_whole) {
            conn_close(conn);
            return;
        }
        conn__send(conn, sealed->data, sealed->len);
        buf_clear(sealed);
    }
}

void
conn__go_on_lending(struct conn *conn)
{
    if (conn->lent != NULL && conn__is_tls(conn)) {
        buf_clear(&conn->worker->sealed);
        send_pieces(conn);
    }
}

static void
send_ciphered(struct conn *conn, const struct buf *out,
    const struct item *item, size_t at)
{
    struct buf *sealed = &conn->worker->sealed;
    if (!begin_lent(conn, item, out->data + at, out->len - at)) {
        return;
    }
    conn->lent->value = item->value;
    conn->lent->value_len = item->value_len;
    buf_clear(sealed);
    if (conn->tls == NULL || !seal_more(conn, out->data, at, sealed)) {
        conn_close(conn);
        return;
    }
    send_pieces(conn);
}

/* The same as conn__send_out for a turn with a loan. */
static __attribute__((noinline)) void
send_around(struct conn *conn, const struct buf *out)
{
    struct loan *loan = &conn->worker->executor.loan;
    const struct item *item = loan->item;
    ASSERT(conn__queued_bytes(conn) == 0 && conn->lent == NULL);
    ASSERT(!conn__is_held(conn)); /* nothing held may leave behind it */
    ASSERT(loan->at <= out->len);
    loan->item = NULL; /* it is the connection's */
    metric_add(&conn->worker->metrics, METRIC_bytes_written,
        out->len + item->value_len);
    if (conn__is_tls(conn)) {
        send_ciphered(conn, out, item, loan->at);
    } else {
        send_plain(conn, out, item, loan->at);
    }
}

void
conn__send_out(struct conn *conn, struct buf *out)
{
    if (out->failed) {
        conn_close(conn); /* a reply is missing: never go on after it */
        return;
    }
    if (out->len == 0 || conn_is_closing(conn)) {
        return;
    }
    if (conn->worker->executor.loan.item != NULL) {
        send_around(conn, out);
        return;
    }
    metric_add(&conn->worker->metrics, METRIC_bytes_written, out->len);
    if (conn__is_tls(conn)) {
        out = conn__tls_seal(conn, out);
        if (out == NULL) {
            conn_close(conn);
            return;
        }
    }
    send_bytes(conn, out->data, out->len);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on items: memcached's own, one call into the cache each. Retrieval
 * is in exec_get.c, where items and cells of one request are mixed. */
#include "base/clock.h"
#include "base/err.h"
#include "net/exec.h"
#include "proto/reply.h"

static enum items_op
op_of(enum request_op op)
{
    switch (op) {
    case REQUEST_ADD:
        return ITEMS_ADD;
    case REQUEST_REPLACE:
        return ITEMS_REPLACE;
    case REQUEST_APPEND:
        return ITEMS_APPEND;
    case REQUEST_PREPEND:
        return ITEMS_PREPEND;
    case REQUEST_CAS:
        return ITEMS_CAS;
    default:
        return ITEMS_SET;
    }
}

static void
count_store(struct session *session, int err)
{
    exec__count(session, METRIC_cmd_set, 1);
    exec__count(session, METRIC_store_too_large, err == ERR_TOO_LARGE);
    exec__count(session, METRIC_store_no_memory, err == ERR_NO_MEMORY);
    if (session->request.op == REQUEST_CAS) {
        exec__count(session, METRIC_cas_hits, err == 0);
        exec__count(session, METRIC_cas_badval, err == ERR_EXISTS);
        exec__count(session, METRIC_cas_misses, err == ERR_NOT_FOUND);
    }
}

static enum exec_step
store(struct session *session, const char *bytes, struct buf *out)
{
    const struct request *request = &session->request;
    uint64_t now_s = clock_monotonic_s();
    struct items_store store = {.op = op_of(request->op),
        .key = bytes + request->key.at,
        .key_len = request->key.len,
        .value = bytes + request->value.at,
        .value_len = request->value.len,
        .flags = request->flags,
        .expiry_s = items_expiry(request->exptime, now_s, clock_unix_s()),
        .cas = request->number};
    int err =
        items_store(session->executor->store->items, &store, now_s, NULL);
    count_store(session, err);
    switch (err) {
    case 0:
        return exec__answer(session, "STORED", out);
    case ERR_EXISTS:
        return exec__answer(session, "EXISTS", out);
    case ERR_NOT_FOUND:
        return exec__answer(session, "NOT_FOUND", out);
    case ERR_TOO_LARGE:
        return exec__answer(
            session, "SERVER_ERROR object too large for cache", out);
    case ERR_NO_MEMORY:
        return exec__answer(
            session, "SERVER_ERROR out of memory storing object", out);
    default:
        return exec__answer(session, "NOT_STORED", out);
    }
}

/* The value was too long to be read at all. A stale one must not be read on
 * where a set was meant to replace it. */
static enum exec_step
too_large(struct session *session, const char *bytes, struct buf *out)
{
    const struct request *request = &session->request;
    exec__count(session, METRIC_store_too_large, 1);
    if (request->stored_as == REQUEST_SET) {
        items_delete(session->executor->store->items, bytes + request->key.at,
            request->key.len, NULL, clock_monotonic_s());
    }
    return exec__answer(
        session, "SERVER_ERROR object too large for cache", out);
}

static enum exec_step delete (
    struct session *session, const char *bytes, struct buf *out) {
    struct span key = session->request.key;
    int err = items_delete(session->executor->store->items, bytes + key.at,
        key.len, NULL, clock_monotonic_s());
    exec__count(
        session, err == 0 ? METRIC_delete_hits : METRIC_delete_misses, 1);
    return exec__answer(session, err == 0 ? "DELETED" : "NOT_FOUND", out);
}

static enum exec_step
touch(struct session *session, const char *bytes, struct buf *out)
{
    struct span key = session->request.key;
    uint64_t now_s = clock_monotonic_s();
    int err = items_touch(session->executor->store->items, bytes + key.at,
        key.len, items_expiry(session->request.exptime, now_s, clock_unix_s()),
        now_s);
    exec__count(session, METRIC_cmd_touch, 1);
    exec__count(
        session, err == 0 ? METRIC_touch_hits : METRIC_touch_misses, 1);
    return exec__answer(session, err == 0 ? "TOUCHED" : "NOT_FOUND", out);
}

static enum exec_step
change(struct session *session, const char *bytes, struct buf *out)
{
    const struct request *request = &session->request;
    bool decr = request->op == REQUEST_DECR;
    struct items_arith arith = {.key = bytes + request->key.at,
        .key_len = request->key.len,
        .negative = decr,
        .delta = request->number};
    struct items_number number;
    int err = items_arith(
        session->executor->store->items, &arith, clock_monotonic_s(), &number);
    if (err == ERR_NOT_FOUND) {
        exec__count(
            session, decr ? METRIC_decr_misses : METRIC_incr_misses, 1);
        return exec__answer(session, "NOT_FOUND", out);
    }
    if (err != 0) {
        return exec__refuse(session, err, out);
    }
    exec__count(session, decr ? METRIC_decr_hits : METRIC_incr_hits, 1);
    if (!request->noreply) {
        reply_number(out, number.value);
    }
    return EXEC_DONE;
}

enum exec_step
exec__item(struct session *session, const char *bytes, struct buf *out)
{
    switch (session->request.op) {
    case REQUEST_TOO_LARGE:
        return too_large(session, bytes, out);
    case REQUEST_DELETE:
        return delete (session, bytes, out);
    case REQUEST_TOUCH:
        return touch(session, bytes, out);
    case REQUEST_INCR:
    case REQUEST_DECR:
        return change(session, bytes, out);
    default:
        return store(session, bytes, out);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands on items: memcached's own, one call into the cache each, whichever
 * protocol they came in. The retrieval of many keys is in exec_get.c, where
 * items and cells of one request are mixed. */
#include "base/err.h"
#include "items/items.h"
#include "session/exec_admin.h"
#include "session/exec_watch.h"

/* No item has it: they count from 1. */
#define NO_ITEMS_CAS UINT64_MAX

/* The moment of a command. */
struct moment {
    uint64_t now_s;
    int64_t unix_s;
};

static struct moment
moment_now(const struct session *session)
{
    return (struct moment){exec__now_s(session), exec__unix_s(session)};
}

static uint64_t
expiry(const struct moment *moment, int64_t exptime)
{
    return items_expiry(exptime, moment->now_s, moment->unix_s);
}

static struct items *
items_of(struct session *session)
{
    return session->executor->store->items;
}

/* How little must be left to an item for it to be made anew; a client may also
 * say until when that is. 0: never. */
static uint64_t
recache_s(const struct terms *terms, const struct moment *moment)
{
    uint64_t until_s = expiry(moment, terms->recache_s);
    return until_s == ITEMS_NEVER || until_s <= moment->now_s
        ? 0
        : until_s - moment->now_s;
}

/* The answer as a server of -C says it. */
static enum exec_step
answer_item(struct session *session, const char *bytes, struct answer *answer,
    struct buf *out)
{
    if (session->executor->rules.no_cas) {
        answer->cas = 0;
    }
    return exec__answer(session, bytes, answer, out);
}

/* What -C leaves of the terms: no cas is an item's, but to ask for 0 where a
 * value is not stored is not to ask, and to append is not to compare. */
static void
forget_cas(const struct request *request, struct items_terms *terms)
{
    switch (request->op) {
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
        terms->compares = false;
        break;
    case REQUEST_DELETE:
    case REQUEST_INCR:
    case REQUEST_DECR:
        terms->compares = terms->compares && terms->cas != 0;
        break;
    default:
        break;
    }
    terms->cas = NO_ITEMS_CAS;
    terms->new_cas = 0;
}

static struct items_terms
terms_of(struct session *session, const struct moment *moment)
{
    const struct request *request = &session->request;
    const struct terms *terms = &request->terms;
    uint64_t left_s = recache_s(terms, moment);
    struct items_terms out = {.compares = terms->compares,
        .touches = terms->touches,
        .vivifies = terms->vivifies,
        .recaches = left_s > 0,
        .recaches_first = terms->recaches_first,
        .outdates = terms->outdates,
        .empties = terms->empties,
        .peeks = terms->peeks,
        .empty_flags = request->flags,
        .cas = terms->cas,
        .new_cas = terms->new_cas,
        .expiry_s = expiry(moment, request->exptime),
        .vivify_expiry_s = expiry(moment, terms->vivify_exptime),
        .recache_s = left_s};
    if (session->executor->rules.no_cas) {
        forget_cas(request, &out);
    }
    return out;
}

static int64_t
ttl_s(uint64_t expiry_s, uint64_t now_s)
{
    if (expiry_s == ITEMS_NEVER) {
        return ANSWER_NEVER;
    }
    uint64_t left_s = expiry_s > now_s ? expiry_s - now_s : 0;
    return left_s > INT64_MAX ? INT64_MAX : (int64_t)left_s;
}

/* The answer to a command that has come to err, done being that to 0. */
static enum exec_step
answer_err(struct session *session, const char *bytes, int err,
    struct answer *answer, struct buf *out)
{
    session->executor->item_err = err;
    switch (err) {
    case 0:
        break;
    case ERR_EXISTS:
        answer->kind = ANSWER_EXISTS;
        break;
    case ERR_NOT_FOUND:
        answer->kind = ANSWER_NOT_FOUND;
        break;
    case ERR_NOT_STORED:
        answer->kind = ANSWER_NOT_STORED;
        break;
    default:
        answer->kind = ANSWER_REFUSED;
        answer->err = err;
        break;
    }
    return answer_item(session, bytes, answer, out);
}

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
count_cas(struct session *session, int err)
{
    exec__count(session, METRIC_cas_hits, err == 0);
    exec__count(session, METRIC_cas_badval, err == ERR_EXISTS);
    exec__count(session, METRIC_cas_misses, err == ERR_NOT_FOUND);
}

static void
count_store(struct session *session, int err)
{
    const struct request *request = &session->request;
    exec__count(session, METRIC_cmd_set, 1);
    exec__count(session, METRIC_store_too_large, err == ERR_TOO_LARGE);
    exec__count(session, METRIC_store_no_memory, err == ERR_NO_MEMORY);
    if (request->op == REQUEST_CAS || request->terms.compares) {
        count_cas(session, err);
    }
}

/* With -C a packet's cas is not looked at. */
static void
forget_packet_cas(struct session *session)
{
    struct request *request = &session->request;
    if (session->executor->rules.no_cas && request->op == REQUEST_CAS &&
        request->proto == PROTO_BINARY) {
        request->op = request->stored_as;
    }
}

static enum exec_step
store(struct session *session, const char *bytes, struct buf *out)
{
    const struct request *request = &session->request;
    forget_packet_cas(session);
    struct moment moment = moment_now(session);
    struct schema_word key = exec__key(session, bytes);
    struct items_store store = {.op = op_of(request->op),
        .key = key.text,
        .key_len = key.len,
        .value = bytes + request->value.at,
        .value_len = request->value.len,
        .flags = request->flags,
        .expiry_s = expiry(&moment, request->exptime),
        .terms = terms_of(session, &moment)};
    store.cas = store.terms.cas;
    struct answer answer = {.kind = ANSWER_STORED, .flags = request->flags};
    struct items_stored stored;
    int err = items_store_and_report(
        items_of(session), &store, moment.now_s, &stored);
    answer.cas = stored.cas;
    answer.value_len = stored.value_len;
    session->executor->item_value_len = stored.value_len;
    count_store(session, err);
    exec__count_prefix(session, key, &(struct prefix_counts){.set = 1});
    return answer_err(session, bytes, err, &answer, out);
}

/* The value was too long to be read at all. A stale one must not be read on
 * where a set was meant to replace it; memcached's ms is as strict in all its
 * modes. */
static enum exec_step
too_large(struct session *session, const char *bytes, struct buf *out)
{
    struct answer answer = {.kind = ANSWER_STORED};
    struct schema_word key = exec__key(session, bytes);
    exec__count(session, METRIC_store_too_large, 1);
    if (session->request.stored_as == REQUEST_SET ||
        session->request.proto == PROTO_META) {
        items_delete(
            items_of(session), key.text, key.len, NULL, exec__now_s(session));
    }
    return answer_err(session, bytes, ERR_TOO_LARGE, &answer, out);
}

static enum exec_step delete (
    struct session *session, const char *bytes, struct buf *out) {
    struct moment moment = moment_now(session);
    struct items_terms terms = terms_of(session, &moment);
    struct answer answer = {.kind = ANSWER_DELETED};
    struct schema_word key = exec__key(session, bytes);
    int err = items_delete(
        items_of(session), key.text, key.len, &terms, moment.now_s);
    /* as memcached counts: what stays is no hit, and md with another cas is a
     * miss, which a delete of the binary protocol is not */
    exec__count(session, METRIC_delete_hits, err == 0 && !terms.outdates);
    exec__count(session, METRIC_delete_misses,
        err == ERR_NOT_FOUND ||
            (err == ERR_EXISTS && session->request.proto == PROTO_META));
    exec__count_prefix(session, key, &(struct prefix_counts){.del = 1});
    return answer_err(session, bytes, err, &answer, out);
}

static enum exec_step
arith(struct session *session, const char *bytes, struct buf *out)
{
    const struct request *request = &session->request;
    struct moment moment = moment_now(session);
    struct schema_word key = exec__key(session, bytes);
    struct items_arith arith = {.key = key.text,
        .key_len = key.len,
        .negative = request->op == REQUEST_DECR,
        .delta = request->number,
        .initial = request->terms.initial,
        .terms = terms_of(session, &moment)};
    struct items_number number = {0};
    int err = items_arith(items_of(session), &arith, moment.now_s, &number);
    bool misses = err == ERR_NOT_FOUND;
    bool hits = err == 0 && !number.is_new; /* what is made is neither */
    session->executor->item_is_new = number.is_new;
    if (arith.negative) {
        exec__count(session, METRIC_decr_misses, misses);
        exec__count(session, METRIC_decr_hits, hits);
    } else {
        exec__count(session, METRIC_incr_misses, misses);
        exec__count(session, METRIC_incr_hits, hits);
    }
    struct answer answer = {.kind = ANSWER_NUMBER,
        .number = number.value,
        .cas = number.cas,
        .ttl_s = ttl_s(number.expiry_s, moment.now_s),
        .old_ttl_s = ttl_s(number.old_expiry_s, moment.now_s),
        .is_new = number.is_new};
    return err == ERR_NOT_NUMERIC
        ? exec__refuse(session, err, out)
        : answer_err(session, bytes, err, &answer, out);
}

/* What a look has found, as an answer; the item stays pinned. */
static struct answer
answer_of(const struct items_found *found, size_t key_len, uint64_t now_s)
{
    const struct item *item = found->item;
    return (struct answer){.kind = ANSWER_VALUE,
        .value = item->value,
        .value_len = item->value_len,
        .cas = item->cas,
        .flags = item->flags,
        .item_bytes = exec__item_bytes(key_len, item->value_len, item->flags),
        .ttl_s = ttl_s(found->expiry_s, now_s),
        .old_ttl_s = ttl_s(found->old_expiry_s, now_s),
        .is_new = found->is_new,
        .idle_s = found->idle_s,
        .was_fetched = found->was_fetched,
        .has_won = found->has_won,
        .is_stale = found->is_stale,
        .was_won = found->was_won};
}

/* As memcached counts: what a hit touches is no get, but every miss is one. */
static void
count_look(struct session *session, bool hit)
{
    bool touched = session->request.terms.touches && hit;
    exec__count(session, METRIC_cmd_get, !touched);
    exec__count(session, METRIC_get_hits, hit && !touched);
    exec__count(session, METRIC_get_misses, !hit);
    exec__count(session, METRIC_cmd_touch, touched);
    exec__count(session, METRIC_touch_hits, touched);
}

static enum exec_step
look(struct session *session, const char *bytes, struct buf *out)
{
    struct moment moment = moment_now(session);
    struct items_terms terms = terms_of(session, &moment);
    struct schema_word key = exec__key(session, bytes);
    struct items_found found;
    /* who wins must be one who may store */
    terms.yields =
        session->request.proto != PROTO_META || session->rank != ACCESS_WRITER;
    items_look(
        items_of(session), key.text, key.len, &terms, moment.now_s, &found);
    bool hit = found.item != NULL;
    count_look(session, hit);
    exec__count_prefix(
        session, key, &(struct prefix_counts){.get = 1, .hit = hit});
    if (!hit) {
        return exec__answer_kind(session, bytes, ANSWER_MISS, out);
    }
    struct answer answer = answer_of(&found, key.len, moment.now_s);
    size_t value_at = SIZE_MAX;
    bool is_lent =
        session->request.terms.wants_value && exec__lend(session, found.item);
    answer.value_at = is_lent ? &value_at : NULL;
    enum exec_step step = answer_item(session, bytes, &answer, out);
    if (!is_lent) {
        items_unpin(items_of(session), found.item);
    } else if (value_at == SIZE_MAX) { /* the client has it, or no memory */
        items_unlend(items_of(session), found.item);
    } else {
        exec__note_loan(session, found.item, value_at);
    }
    return step;
}

static enum exec_step
inspect(struct session *session, const char *bytes, struct buf *out)
{
    struct items_terms terms = {.inspects = true};
    struct schema_word key = exec__key(session, bytes);
    struct items_found found;
    uint64_t now_s = exec__now_s(session);
    items_look(items_of(session), key.text, key.len, &terms, now_s, &found);
    exec__count(session, METRIC_cmd_meta, 1);
    if (found.item == NULL) {
        return exec__answer_kind(session, bytes, ANSWER_MISS, out);
    }
    struct answer answer = answer_of(&found, key.len, now_s);
    answer.kind = ANSWER_ABOUT;
    answer.item_class =
        items_class_of(items_of(session), key.len, found.item->value_len);
    enum exec_step step = answer_item(session, bytes, &answer, out);
    items_unpin(items_of(session), found.item);
    return step;
}

/* A touch is a look whose value is not asked for. */
static enum exec_step
touch(struct session *session, const char *bytes, struct buf *out)
{
    struct moment moment = moment_now(session);
    struct items_terms terms = {.touches = true,
        .yields = true,
        .expiry_s = expiry(&moment, session->request.exptime)};
    struct answer answer = {.kind = ANSWER_MISS};
    struct schema_word key = exec__key(session, bytes);
    struct items_found found;
    items_look(
        items_of(session), key.text, key.len, &terms, moment.now_s, &found);
    bool hit = found.item != NULL;
    exec__count(session, METRIC_cmd_touch, 1);
    exec__count(session, METRIC_touch_hits, hit);
    exec__count(session, METRIC_touch_misses, !hit);
    if (hit) {
        answer = answer_of(&found, key.len, moment.now_s);
        answer.kind = ANSWER_TOUCHED;
        items_unpin(items_of(session), found.item);
    }
    return answer_item(session, bytes, &answer, out);
}

static enum exec_step
do_item(struct session *session, const char *bytes, struct buf *out)
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
        return arith(session, bytes, out);
    case REQUEST_LOOK:
        return look(session, bytes, out);
    case REQUEST_INSPECT:
        return inspect(session, bytes, out);
    default:
        return store(session, bytes, out);
    }
}

enum exec_step
exec__item(struct session *session, const char *bytes, struct buf *out)
{
    if ((session->executor->watched & WATCH_ALL) == 0) {
        return do_item(session, bytes, out);
    }
    struct exec_watched seen;
    exec__watch_before(session, bytes, &seen);
    enum exec_step step = do_item(session, bytes, out);
    exec__watch_after(session, &seen);
    return step;
}

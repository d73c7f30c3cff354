/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of Redis, by XREAD from a position of our own: no group, so Redis
 * keeps nothing about us. The values of an entry's fields are the lines of the
 * message; the fields' names are not looked at.
 *
 * How far behind is told in milliseconds, by the ids, which are times: Redis
 * does not say how many entries are behind one without counting them. */
#include "tallyq/source.h"

#include "base/buf.h"
#include "base/num.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 1000 /* of one XREAD */, TIMEOUT_S = 10 };

struct redis {
    struct broker broker; /* first */
    struct source source;
    redisContext *context; /* NULL: not connected */
    struct buf text;       /* of a message with several values */
};

static struct redis *
of(struct broker *broker)
{
    return (struct redis *)broker;
}

static void
disconnect(struct redis *redis)
{
    if (redis->context != NULL) {
        redisFree(redis->context);
        redis->context = NULL;
    }
}

static bool
is_connected(struct redis *redis)
{
    const struct timeval limit = {.tv_sec = TIMEOUT_S};
    char host[SOURCE_HOSTS_MAX + 1];
    uint16_t port = 0;
    if (redis->context != NULL) {
        return true;
    }
    source_address(&redis->source, host, &port);
    redis->context = redisConnectWithTimeout(host, port, limit);
    if (redis->context == NULL || redis->context->err != 0 ||
        redisSetTimeout(redis->context, limit) != REDIS_OK) {
        (void)broker_fail(&redis->broker, "%s: %s", redis->source.hosts,
            redis->context == NULL ? "out of memory" : redis->context->errstr);
        disconnect(redis);
    }
    return redis->context != NULL;
}

/* A reply, the caller's; NULL where there is none, or an error. */
static redisReply *
answer(struct redis *redis, redisReply *reply)
{
    if (reply == NULL) {
        (void)broker_fail(&redis->broker, "%s: %s", redis->source.hosts,
            redis->context->errstr[0] == '\0' ? "no answer"
                                              : redis->context->errstr);
        disconnect(redis);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        (void)broker_fail(
            &redis->broker, "%s: %s", redis->source.hosts, reply->str);
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

static bool
read_id(const redisReply *reply, struct position *out)
{
    if (reply->type != REDIS_REPLY_STRING) {
        return false;
    }
    const char *dash = memchr(reply->str, '-', reply->len);
    size_t hi = dash == NULL ? 0 : (size_t)(dash - reply->str);
    return dash != NULL && num_parse_u64(reply->str, hi, &out->hi) &&
        num_parse_u64(dash + 1, reply->len - hi - 1, &out->lo);
}

/* Values of the fields, a line each; NULL: no memory. */
static const char *
text_of(struct redis *redis, const redisReply *fields, size_t *len)
{
    if (fields->elements == 2) {
        *len = fields->element[1]->len;
        return fields->element[1]->str;
    }
    buf_clear(&redis->text);
    for (size_t i = 1; i < fields->elements; i += 2) {
        buf_add(
            &redis->text, fields->element[i]->str, fields->element[i]->len);
        if (i + 1 < fields->elements) {
            buf_add_text(&redis->text, "\n");
        }
    }
    *len = redis->text.len;
    return redis->text.failed ? NULL : redis->text.data;
}

/* One entry: its id, and the list of its fields. */
static bool
hand_out(struct redis *redis, const redisReply *entry, broker_take_fn take_fn,
    void *context, bool *is_taken)
{
    struct position at;
    size_t len = 0;
    if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2 ||
        !read_id(entry->element[0], &at) ||
        entry->element[1]->type != REDIS_REPLY_ARRAY) {
        return broker_fail(&redis->broker,
            "%s: XREAD answers what is no "
            "entry",
            redis->source.hosts);
    }
    const char *text = text_of(redis, entry->element[1], &len);
    if (text == NULL) {
        return broker_fail(&redis->broker, "out of memory");
    }
    *is_taken = take_fn(context, at, text, len);
    return true;
}

static bool
hand_out_all(struct redis *redis, const redisReply *reply,
    broker_take_fn take_fn, void *context)
{
    if (reply->type == REDIS_REPLY_NIL) {
        return true;
    }
    bool is_taken = true,
         is_right = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
        reply->element[0]->type == REDIS_REPLY_ARRAY &&
        reply->element[0]->elements == 2 &&
        reply->element[0]->element[1]->type == REDIS_REPLY_ARRAY;
    if (!is_right) {
        return broker_fail(&redis->broker,
            "%s: XREAD answers what is no "
            "stream",
            redis->source.hosts);
    }
    const redisReply *entries = reply->element[0]->element[1];
    for (size_t i = 0; i < entries->elements && is_right && is_taken; i++) {
        is_right =
            hand_out(redis, entries->element[i], take_fn, context, &is_taken);
    }
    return is_right;
}

static bool
redis_read(struct broker *broker, struct position after, uint32_t wait_ms,
    broker_take_fn take_fn, void *context)
{
    struct redis *redis = of(broker);
    struct position_text place = position_text(after);
    if (!is_connected(redis)) {
        return false;
    }
    redisReply *reply = wait_ms == 0
        ? redisCommand(redis->context, "XREAD COUNT %d STREAMS %s %s", ENTRIES,
              redis->source.stream, place.text)
        : redisCommand(redis->context, "XREAD COUNT %d BLOCK %u STREAMS %s %s",
              ENTRIES, wait_ms, redis->source.stream, place.text);
    reply = answer(redis, reply);
    if (reply == NULL) {
        return false;
    }
    bool is_right = hand_out_all(redis, reply, take_fn, context);
    freeReplyObject(reply);
    return is_right;
}

static uint64_t
redis_behind(struct broker *broker, struct position at)
{
    struct redis *redis = of(broker);
    redisReply *reply = !is_connected(redis)
        ? NULL
        : answer(redis,
              redisCommand(redis->context, "XREVRANGE %s + - COUNT 1",
                  redis->source.stream));
    struct position end = at;
    bool is_known = reply != NULL && reply->type == REDIS_REPLY_ARRAY;
    if (is_known && reply->elements == 1) {
        const redisReply *entry = reply->element[0];
        is_known = entry->type == REDIS_REPLY_ARRAY && entry->elements == 2 &&
            read_id(entry->element[0], &end);
    }
    if (reply != NULL) {
        freeReplyObject(reply);
    }
    return !is_known ? UINT64_MAX : end.hi > at.hi ? end.hi - at.hi : 0;
}

static void
redis_close(struct broker **broker)
{
    struct redis *redis = of(*broker);
    disconnect(redis);
    buf_fini(&redis->text);
    free(redis);
    *broker = NULL;
}

static const struct broker_calls calls = {
    .read = redis_read, .behind = redis_behind, .close = redis_close};

struct broker *
broker_redis_open(const struct source *source)
{
    struct redis *redis = calloc(1, sizeof *redis);
    if (redis == NULL) {
        return NULL;
    }
    redis->broker.calls = &calls;
    redis->broker.unit = "ms";
    redis->source = *source;
    return &redis->broker;
}

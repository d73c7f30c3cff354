/* SPDX-License-Identifier: BSD-3-Clause */
/* A Redis that runs: SCAN, and of keys that a rule fits their value, by
 * hiredis. A cursor of SCAN is good for as long as that Redis runs: a key that
 * is there all the time comes at least once, and once more does no harm. What a
 * key was is read a moment later: what changes meanwhile has to be written to
 * both. */
#include "cli/import_priv.h"

#include "base/address.h"
#include "base/num.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 512, SET_PIECE = 1000, TIMEOUT_S = 60 };

/* One value that is asked for. */
struct question {
    const struct import_rule *rule;
    struct rows_id id; /* in the key */
    const char *key;   /* of the reply of SCAN */
    size_t len;
};

struct asking {
    struct import *job;
    redisContext *redis;
    struct buf put;
};

static bool
broken(struct asking *asking)
{
    return import__fail(asking->job, "%.80s: %.160s", asking->job->input,
        asking->redis->errstr[0] == '\0' ? "it answers something else"
                                         : asking->redis->errstr);
}

static bool
put(struct asking *asking, const struct question *question, const char *text,
    size_t len)
{
    buf_clear(&asking->put);
    return import_map_put(
               question->rule, &question->id, text, len, &asking->put)
        ? import__put(asking->job, &asking->put, question->key, question->len)
        : import__reject(asking->job, "the value is no whole number",
              question->key, question->len);
}

static bool
take_value(struct asking *asking, const struct question *question,
    const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_NIL: /* it went, or has no such field */
        return true;
    case REDIS_REPLY_STRING:
        return put(asking, question, reply->str, reply->len);
    case REDIS_REPLY_ERROR:
        return import__reject(
            asking->job, reply->str, question->key, question->len);
    default:
        return broken(asking);
    }
}

/* A piece of a set; *cursor: of the next one, 0: there is none. */
static bool
take_piece(struct asking *asking, const struct question *question,
    const redisReply *reply, uint64_t *cursor)
{
    *cursor = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        return import__reject(
            asking->job, reply->str, question->key, question->len);
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        !num_parse_u64(
            reply->element[0]->str, reply->element[0]->len, cursor)) {
        return broken(asking);
    }
    const redisReply *members = reply->element[1];
    for (size_t i = 0; i < members->elements; i++) {
        const redisReply *member = members->element[i];
        if (!put(asking, question, member->str, member->len) ||
            (import__is_full(asking->job) && !import__send(asking->job))) {
            return false;
        }
    }
    return true;
}

static bool
take_set(struct asking *asking, const struct question *question)
{
    uint64_t cursor = 0;
    bool is_right = true;
    do {
        char at[NUM_U64_DIGITS_MAX + 1];
        at[num_format_u64(cursor, at)] = '\0';
        redisReply *reply = redisCommand(asking->redis, "SSCAN %b %s COUNT %d",
            question->key, question->len, at, SET_PIECE);
        if (reply == NULL) {
            return broken(asking);
        }
        is_right = take_piece(asking, question, reply, &cursor);
        freeReplyObject(reply);
    } while (is_right && cursor != 0);
    return is_right;
}

static int
append(struct asking *asking, const struct question *question)
{
    return question->rule->field_len > 0
        ? redisAppendCommand(asking->redis, "HGET %b %b", question->key,
              question->len, question->rule->field,
              (size_t)question->rule->field_len)
        : redisAppendCommand(
              asking->redis, "GET %b", question->key, question->len);
}

/* Asks for all of them at once, and takes the answers. */
static bool
ask(struct asking *asking, const struct question *question, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (append(asking, &question[i]) != REDIS_OK) {
            return import__fail(asking->job, "out of memory");
        }
    }
    for (unsigned i = 0; i < n; i++) {
        void *reply = NULL;
        if (redisGetReply(asking->redis, &reply) != REDIS_OK) {
            return broken(asking);
        }
        bool is_taken = take_value(asking, &question[i], reply);
        freeReplyObject(reply);
        if (!is_taken) {
            return false;
        }
    }
    return true;
}

/* All rules that fit a key. */
static bool
take_key(struct asking *asking, const redisReply *key,
    struct question *question, unsigned *n)
{
    const struct import_map *map = &asking->job->map;
    for (unsigned from = 0; from < map->n; from++) {
        struct question one = {.key = key->str, .len = key->len};
        one.rule = import_map_find(map, from, key->str, key->len, &one.id);
        if (one.rule == NULL) {
            return from > 0 ||
                import__pass_over(asking->job, key->str, key->len);
        }
        from = (unsigned)(one.rule - map->rule);
        if (one.rule->members >= 0) {
            if (!take_set(asking, &one)) {
                return false;
            }
            continue;
        }
        question[(*n)++] = one;
        if (*n == KEYS) {
            if (!ask(asking, question, *n)) {
                return false;
            }
            *n = 0;
        }
    }
    return true;
}

/* The keys of a step of SCAN. Sets are asked for while nothing else is. */
static bool
take_keys(struct asking *asking, const redisReply *keys)
{
    struct question question[KEYS];
    unsigned n = 0;
    for (size_t i = 0; i < keys->elements; i++) {
        if (!take_key(asking, keys->element[i], question, &n)) {
            return false;
        }
    }
    return ask(asking, question, n);
}

static bool
scan(struct asking *asking)
{
    struct import *job = asking->job;
    uint64_t cursor = job->place.at;
    do {
        char at[NUM_U64_DIGITS_MAX + 1];
        at[num_format_u64(cursor, at)] = '\0';
        redisReply *reply =
            redisCommand(asking->redis, "SCAN %s COUNT %d", at, KEYS);
        bool is_right = reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
            reply->elements == 2 &&
            num_parse_u64(
                reply->element[0]->str, reply->element[0]->len, &cursor);
        if (!is_right) {
            bool is_said = reply != NULL && reply->type == REDIS_REPLY_ERROR;
            (void)(is_said ? import__fail(
                                 job, "%.80s: %.160s", job->input, reply->str)
                           : broken(asking));
        }
        is_right = is_right && take_keys(asking, reply->element[1]);
        freeReplyObject(reply);
        if (!is_right) {
            return false;
        }
        job->parts += KEYS;
        /* the last cursor is 0: the same command begins anew then */
        if (!import__flush(job, cursor)) {
            return false;
        }
    } while (cursor != 0);
    return true;
}

static bool
select_database(struct asking *asking)
{
    struct import *job = asking->job;
    redisReply *reply =
        redisCommand(asking->redis, "SELECT %d", (int)job->database);
    if (reply == NULL) {
        return broken(asking);
    }
    bool is_there = reply->type == REDIS_REPLY_STATUS ||
        import__fail(job, "%.80s: %.160s", job->input,
            reply->type == REDIS_REPLY_ERROR ? reply->str : "no answer");
    freeReplyObject(reply);
    return is_there;
}

bool
import__redis(struct import *job)
{
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    uint64_t port_number = 0;
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    if (!address_split(job->input, host, port) ||
        !num_parse_u64(port, strlen(port), &port_number)) {
        return import__fail(job, "%s is no HOST:PORT", job->input);
    }
    shown_begin(&job->shown, "rows", 0);
    struct asking asking = {.job = job,
        .redis = redisConnectWithTimeout(host, (int)port_number, timeout)};
    if (asking.redis == NULL) {
        return import__fail(job, "out of memory");
    }
    bool is_done = asking.redis->err == 0
        ? redisSetTimeout(asking.redis, timeout) == REDIS_OK &&
            select_database(&asking) && scan(&asking)
        : broken(&asking);
    redisFree(asking.redis);
    buf_fini(&asking.put);
    return is_done;
}

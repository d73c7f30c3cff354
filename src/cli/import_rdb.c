/* SPDX-License-Identifier: BSD-3-Clause */
/* A dump file of Redis. How far it is, is how many keys of it have been read:
 * a run that goes on passes over so many. Keys that had expired by now are no
 * more in Redis either, and are passed over. */
#include "cli/import_priv.h"
#include "cli/rdb.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MS_PER_S = 1000 };

struct reading {
    struct import *job;
    struct rdb rdb;
    const uint8_t *begin;
    uint64_t keys, now_ms;
    struct rdb_key key; /* that is read */
    struct buf name;    /* of it */
    struct buf put;
};

static bool
take_key(void *context, const struct rdb_key *key, bool *is_wanted)
{
    struct reading *reading = context;
    struct import *job = reading->job;
    struct rows_id id;
    if (import__is_full(job) && !import__flush(job, reading->keys)) {
        return false;
    }
    job->parts = (uint64_t)(reading->rdb.at - reading->begin);
    *is_wanted = reading->keys++ >= job->done.at &&
        key->database == job->database &&
        (key->expires_ms == 0 || key->expires_ms > reading->now_ms);
    if (!*is_wanted) {
        return true;
    }
    *is_wanted = import_map_find(
                     &job->map, 0, key->name.at, key->name.len, &id) != NULL;
    if (!*is_wanted) {
        return import__pass_over(job, key->name.at, key->name.len);
    }
    buf_clear(&reading->name);
    buf_add(&reading->name, key->name.at, key->name.len);
    return !reading->name.failed || import__fail(job, "out of memory");
}

/* True where the rule is about such a part. */
static bool
is_about(
    const struct import_rule *rule, char kind, const struct rdb_text *field)
{
    if (rule->members >= 0) {
        return kind == RDB_SET;
    }
    if (rule->field_len == 0) {
        return kind == RDB_STRING;
    }
    return kind == RDB_HASH && field->len == rule->field_len &&
        memcmp(field->at, rule->field, field->len) == 0;
}

static bool
put_part(struct reading *reading, const struct import_rule *rule,
    const struct rows_id *id, const struct rdb_text *text)
{
    const struct buf *name = &reading->name;
    buf_clear(&reading->put);
    return import_map_put(rule, id, text->at, text->len, &reading->put)
        ? import__put(reading->job, &reading->put, name->data, name->len)
        : import__reject(reading->job, "the value is no whole number",
              name->data, name->len);
}

static bool
take_part(void *context, char kind, const struct rdb_text *field,
    const struct rdb_text *text)
{
    struct reading *reading = context;
    struct import *job = reading->job;
    const struct buf *name = &reading->name;
    for (unsigned from = 0; from < job->map.n; from++) {
        struct rows_id id;
        const struct import_rule *rule =
            import_map_find(&job->map, from, name->data, name->len, &id);
        if (rule == NULL) {
            break;
        }
        from = (unsigned)(rule - job->map.rule);
        if (kind == RDB_OTHER) {
            return import__reject(job, "the key is no string, hash or set",
                name->data, name->len);
        }
        if (is_about(rule, kind, field) &&
            !put_part(reading, rule, &id, text)) {
            return false;
        }
    }
    /* the key that is read is done only with its last part */
    return !import__is_full(job) || import__send(job);
}

static bool
run(struct reading *reading, int fd)
{
    struct import *job = reading->job;
    struct stat stat = {0};
    const struct rdb_sink sink = {
        .key_fn = take_key, .part_fn = take_part, .context = reading};
    if (fd < 0 || fstat(fd, &stat) != 0) {
        return import__fail(job, "%s: %s", job->input, strerror(errno));
    }
    size_t size = (size_t)stat.st_size;
    void *map = size == 0 ? MAP_FAILED
                          : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        return import__fail(job, "%s: %s", job->input,
            size == 0 ? "is empty" : strerror(errno));
    }
    reading->begin = map;
    shown_begin(&job->shown, "rows", size);
    bool is_done = rdb_verify(&reading->rdb, map, size) &&
        rdb_read(&reading->rdb, &sink) && import__flush(job, reading->keys);
    if (!is_done && reading->rdb.why[0] != '\0') {
        (void)import__fail(job, "%s: %s", job->input, reading->rdb.why);
    }
    rdb_fini(&reading->rdb);
    (void)munmap(map, size);
    return is_done;
}

bool
import__rdb(struct import *job)
{
    static struct reading reading;
    int fd = open(job->input, O_RDONLY | O_CLOEXEC);
    reading.job = job;
    reading.now_ms = (uint64_t)time(NULL) * MS_PER_S;
    bool is_done = run(&reading, fd);
    buf_fini(&reading.name);
    buf_fini(&reading.put);
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_done;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the server, a hundred keys at a time. */
#include "cli/verify_priv.h"

#include "base/num.h"

#include <inttypes.h>
#include <string.h>

enum { KEYS = 100 };

struct reading {
    struct verify *job;
    unsigned at, end; /* of the numbers that are asked for: the next one */
    bool is_value;    /* the next line is that one's */
    struct buf key;   /* of the number at */
};

/* ID.COLUMN of number i of the batch. */
static void
put_key(const struct verify *job, unsigned i, struct buf *out)
{
    rows_put_key(&job->id[i / job->n_columns],
        verify__column(job, i % job->n_columns), out);
}

/* VALUE KEY FLAGS BYTES. What has none is at its default (absent=miss). */
static bool
take_head(struct reading *reading, const char *line, size_t len)
{
    static const char begin[] = "VALUE ";
    for (; reading->at < reading->end; reading->at++) {
        struct buf *key = &reading->key;
        buf_clear(key);
        put_key(reading->job, reading->at, key);
        if (!key->failed && len > sizeof begin - 1 + key->len &&
            memcmp(line + sizeof begin - 1, key->data, key->len) == 0 &&
            line[sizeof begin - 1 + key->len] == ' ') {
            reading->is_value = true;
            return true;
        }
    }
    return false;
}

static enum talk_take
take_line(void *context, const char *line, size_t len)
{
    struct reading *reading = context;
    struct verify *job = reading->job;
    if (reading->is_value) {
        reading->is_value = false;
        return num_parse_u64(line, len, &job->here[reading->at++])
            ? TALK_MORE
            : TALK_WRONG;
    }
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    return talk_begins(line, len, "VALUE ") && take_head(reading, line, len)
        ? TALK_MORE
        : TALK_WRONG;
}

static bool
read_some(struct verify *job, unsigned from, unsigned to)
{
    struct reading reading = {.job = job, .at = from, .end = to};
    buf_clear(&job->text);
    buf_add_text(&job->text, "get");
    for (unsigned i = from; i < to; i++) {
        buf_add_text(&job->text, " ");
        put_key(job, i, &job->text);
        job->here[i] =
            job->columns.default_value[job->column[i % job->n_columns]];
    }
    buf_add_text(&job->text, "\r\n");
    bool is_read = !job->text.failed &&
        talk_ask(&job->ask.talk, job->text.data, job->text.len, take_line,
            &reading);
    buf_fini(&reading.key);
    return is_read || verify__fail(job, "%s", job->ask.talk.why);
}

bool
verify__read_here(struct verify *job)
{
    unsigned n = job->n * job->n_columns;
    bool is_read = true;
    for (unsigned from = 0; is_read && from < n; from += KEYS) {
        is_read = read_some(job, from, from + KEYS < n ? from + KEYS : n);
    }
    return is_read;
}

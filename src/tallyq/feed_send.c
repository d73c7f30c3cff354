/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said to a server, and what its answers mean.
 *
 *   number                             the change is done, or was before
 *   CLIENT_ERROR, NOT_FOUND            it is refused, and would be again: put
 *                                      aside; but for what says nothing about
 *                                      the change (see not_about_it)
 *   SERVER_ERROR, anything else        not known, or not now: the connection
 *                                      is ended and all sent again, perhaps to
 *                                      another server */
#include "tallyq/feed_send.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "tallyq/aside.h"

#include <string.h>

static const char client_error[] = "CLIENT_ERROR ";

/* ---- the record ---- */

struct asking {
    struct feed *feed;
    struct record record;
    uint64_t unique;
    unsigned lines;   /* so far */
    bool is_there;    /* the record is, or could be */
    bool is_done;     /* stored */
    bool is_replaced; /* somebody else has changed the record */
};

static enum talk_take
take_stored(void *context, const char *line, size_t len)
{
    struct asking *asking = context;
    asking->is_done = talk_is(line, len, "STORED");
    asking->is_replaced = talk_is(line, len, "EXISTS");
    return asking->is_done || asking->is_replaced ? TALK_END : TALK_WRONG;
}

static bool
tell(struct feed *feed, struct asking *asking)
{
    ASSERT(!feed->out.failed);
    return talk_ask(
        feed->config.talk, feed->out.data, feed->out.len, take_stored, asking);
}

/* VALUE ID.tallyq 0 LEN UNIQUE, the numbers, END; or END alone. */
static enum talk_take
take_record(void *context, const char *line, size_t len)
{
    struct asking *asking = context;
    if (talk_is(line, len, "END")) {
        return asking->lines == 0 || asking->lines == 2 ? TALK_END
                                                        : TALK_WRONG;
    }
    asking->lines++;
    if (asking->lines == 1 && talk_begins(line, len, "VALUE ")) {
        const char *space = memrchr(line, ' ', len);
        size_t at = (size_t)(space - line) + 1;
        asking->is_there = num_parse_u64(line + at, len - at, &asking->unique);
        return asking->is_there ? TALK_MORE : TALK_WRONG;
    }
    if (asking->lines == 2) {
        /* not so while its columns are being declared */
        asking->is_there = record_parse(line, len, &asking->record);
        return TALK_MORE;
    }
    return TALK_WRONG;
}

static bool
look(struct feed *feed, struct asking *asking)
{
    *asking = (struct asking){.feed = feed};
    buf_clear(&feed->out);
    buf_addf(&feed->out, "gets %" PRIu64 "." RECORD_COUNTER "\r\n", feed->id);
    ASSERT(!feed->out.failed);
    return talk_ask(
        feed->config.talk, feed->out.data, feed->out.len, take_record, asking);
}

static bool
declare(struct feed *feed)
{
    for (unsigned i = 0; i < RECORD_DECLARE; i++) {
        struct asking asking = {.feed = feed};
        buf_clear(&feed->out);
        buf_addf(&feed->out, "%s\r\n", record_declare(i));
        if (!tell(feed, &asking)) {
            return false;
        }
    }
    return true;
}

bool
feed_read_record(struct feed *feed, struct record *out)
{
    struct asking asking;
    if (!look(feed, &asking)) {
        return false;
    }
    if (!asking.is_there && !(declare(feed) && look(feed, &asking))) {
        return false;
    }
    if (!asking.is_there) {
        (void)snprintf(feed->config.talk->why, sizeof feed->config.talk->why,
            "the record %" PRIu64 "." RECORD_COUNTER " is not one of tallyq's",
            feed->id);
        return false;
    }
    *out = asking.record;
    feed->unique = asking.unique;
    return true;
}

/* The answer to a cas, and then the record. */
static enum talk_take
take_written(void *context, const char *line, size_t len)
{
    struct asking *asking = context;
    if (asking->is_done || asking->is_replaced) {
        return take_record(context, line, len);
    }
    enum talk_take take = take_stored(context, line, len);
    return take == TALK_END ? TALK_MORE : take;
}

bool
feed_write_record(struct feed *feed, const struct record *next)
{
    struct asking asking = {.feed = feed};
    struct talk *talk = feed->config.talk;
    char text[RECORD_TEXT_BYTES + 1];
    size_t len = record_format(next, text);
    buf_clear(&feed->out);
    buf_addf(&feed->out,
        "cas %" PRIu64 "." RECORD_COUNTER " 0 0 %zu %" PRIu64
        "\r\n%s\r\ngets %" PRIu64 "." RECORD_COUNTER "\r\n",
        feed->id, len, feed->unique, text, feed->id);
    ASSERT(!feed->out.failed);
    if (!talk_ask(
            talk, feed->out.data, feed->out.len, take_written, &asking)) {
        return false;
    }
    if (!record_is(&asking.record, next)) {
        log_line(feed->config.logger, LOG_WARNING,
            "the record of %s has been changed: is there a second tallyq "
            "under that name?",
            feed->config.name);
        (void)snprintf(talk->why, sizeof talk->why, "the record has changed");
        return false;
    }
    feed->held = feed->base = *next;
    feed->unique = asking.unique;
    return true;
}

/* ---- changes ---- */

struct sending {
    struct feed *feed;
    uint32_t i; /* whose answer comes next */
};

/* Errors that say nothing about the change itself. */
static bool
not_about_it(const char *why, size_t len)
{
    static const int errors[] = {ERR_UNKNOWN_USER, ERR_BAD_LOGIN,
        ERR_MAY_ONLY_READ, ERR_NOT_OWNED, ERR_OLD_TX, ERR_PRODUCER_GONE};
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (talk_is(why, len, err_text(errors[i]))) {
            return true;
        }
    }
    return false;
}

static void
skip_put_aside(struct sending *sending)
{
    const struct batch *batch = &sending->feed->batch;
    while (sending->i < batch->n && batch->change[sending->i].is_put_aside) {
        sending->i++;
    }
}

static void
refuse(struct feed *feed, uint32_t i, const char *why, size_t len)
{
    struct batch_change *change = &feed->batch.change[i];
    const struct aside_change about = {.end = feed->held.end,
        .name = feed->config.name,
        .number = feed->held.number + i,
        .digest = feed->held.digest,
        .key = change->key,
        .key_len = change->key_len,
        .delta = change->delta};
    change->is_refused = true;
    aside_put_change(&feed->batch.aside, &about, why, len);
}

static enum talk_take
take_answer(void *context, const char *line, size_t len)
{
    struct sending *sending = context;
    struct feed *feed = sending->feed;
    uint64_t value = 0;
    bool is_refused = talk_is(line, len, "NOT_FOUND") ||
        (talk_begins(line, len, client_error) &&
            !not_about_it(
                line + strlen(client_error), len - strlen(client_error)));
    if (is_refused) {
        refuse(feed, sending->i, line, len);
    } else if (!num_parse_u64(line, len, &value)) {
        return TALK_WRONG;
    }
    sending->i++;
    skip_put_aside(sending);
    return sending->i < feed->batch.n ? TALK_MORE : TALK_END;
}

bool
feed_send(struct feed *feed)
{
    struct batch *batch = &feed->batch;
    struct sending sending = {.feed = feed};
    buf_clear(&feed->out);
    for (uint32_t i = 0; i < batch->n; i++) {
        struct batch_change *change = &batch->change[i];
        change->is_refused = false;
        if (!change->is_put_aside) {
            buf_addf(&feed->out, "incr %.*s %" PRIu64 " tx=%s:%" PRIu64 "\r\n",
                (int)change->key_len, change->key, change->delta,
                feed->config.name, feed->held.number + i);
        }
    }
    ASSERT(!feed->out.failed);
    skip_put_aside(&sending);
    return feed->out.len == 0 ||
        talk_ask(feed->config.talk, feed->out.data, feed->out.len, take_answer,
            &sending);
}

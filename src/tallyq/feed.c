/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts each message of a queue once, whatever is killed on the way.
 *
 * A batch of messages is merged by cell, and its changes are numbered
 * (doc/exactly-once.md). A number stands for one change for ever; so a batch
 * that is done again must be the same batch. What it is, is therefore written
 * down before its first change is sent: in tallyd itself, as the record of
 * tallyq/record.h.
 *
 *   record            what it says
 *   done = end        all up to `done` has been counted; `number` is free
 *   done < end        the messages behind `done` up to `end`, merged, are
 *                     changes `number`, `number` + 1 and so on, of which some
 *                     have been done; `digest` is a sum over them
 *
 *     AWAY ----> READY ----> SENDING
 *       ^         |  ^          |
 *       +---------+--+----------+      (AWAY from both; SENDING from AWAY
 *                                      where it was sending that batch)
 *
 * READY reads a batch: with done = end a new one, which it then writes into the
 * record, else the one that the record names, whose digest must be the same.
 * SENDING sends its changes until each has an answer, puts aside what has been
 * refused, and is READY with a record that is done, which is written together
 * with the next batch, or at once where there is none.
 *
 * Why nothing is counted twice, or never:
 *
 * - The record is written by cas, over what it was read to be. Of two consumers
 *   under one name one loses, and reads it anew. Where both read the same
 *   record they send the same changes with the same numbers.
 * - A batch has at most BATCH_CHANGES_MAX numbers, and none is sent before all
 *   of the batch before have an answer: they are all within a shard's window.
 *   What is sent late, by whoever was thought dead, has been done, or is below
 *   it.
 * - The record is in the log before the batch's changes, and the next one
 *   behind them. A server that has lost the end of its log (a crash without
 *   --sync=always, a failover that lost some) has a record that fits what it
 *   has kept, and what is missing is read from the queue again. A server that
 *   loses something ends its connections. So with each new connection the
 *   record is read before anything is sent, and written as it is, which only a
 *   primary lets us do. If it is not the one of the batch at hand that batch is
 *   dropped; if it is, all its changes are sent again, answered or not.
 * - A new consumer begins with the time in microseconds as its number, above
 *   all numbers that an earlier one of that name has had.
 *
 * What can go wrong: messages of a batch under way have been removed from the
 * queue. Then the digest differs, and tallyq ends rather than guess. */
#include "tallyq/feed.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/steps.h"
#include "tallyq/aside.h"
#include "tallyq/feed_send.h"

#include <string.h>

enum { NS_PER_MS = 1000000, MS_PER_S = 1000, WAIT_LOOKS = 4 };

static const unsigned steps[] = {[FEED_AWAY] = STEP_TO(FEED_READY) |
        STEP_TO(FEED_SENDING) | STEP_TO(FEED_AWAY),
    [FEED_READY] = STEP_TO(FEED_AWAY) | STEP_TO(FEED_SENDING),
    [FEED_SENDING] = STEP_TO(FEED_AWAY) | STEP_TO(FEED_READY)};

static void
go_to(struct feed *feed, enum feed_state state)
{
    ASSERT_STEP(steps, feed->state, state);
    feed->state = state;
}

void
feed_init(struct feed *feed, const struct feed_config *config)
{
    ASSERT(config->messages > 0 && config->messages <= FEED_MESSAGES_MAX);
    memset(feed, 0, sizeof *feed);
    feed->magic = FEED_MAGIC;
    feed->config = *config;
    feed->id = checksum64(config->name, strlen(config->name), 0);
    feed->progress_ns = clock_monotonic_ns();
}

void
feed_fini(struct feed *feed)
{
    ASSERT(feed->magic == FEED_MAGIC);
    batch_fini(&feed->batch);
    buf_fini(&feed->out);
    feed->magic = 0;
}

static bool
is_stopping(struct feed *feed)
{
    return stop_is_asked(feed->config.stop);
}

/* Waits the longer the more often it has failed; not before each server has
 * been tried. */
static void
pause_after(struct feed *feed, unsigned free_tries)
{
    unsigned failures = ++feed->failures;
    if (failures >= free_tries) {
        unsigned doubled = failures - free_tries;
        uint64_t ms = (uint64_t)FEED_PAUSE_MS << (doubled > 6 ? 6 : doubled);
        stop_sleep(feed->config.stop,
            ms > FEED_PAUSE_MS_MAX ? FEED_PAUSE_MS_MAX : ms);
    }
}

/* The connection, or what the server said, was no good. */
static void
lose(struct feed *feed)
{
    struct talk *talk = feed->config.talk;
    bool is_long = feed->failures >= talk->n_servers;
    log_line(feed->config.logger, is_long ? LOG_WARNING : LOG_INFO,
        "server: %s", talk->why);
    talk_close(talk);
    if (feed->state == FEED_READY) {
        batch_clear(&feed->batch);
    }
    go_to(feed, FEED_AWAY);
    pause_after(feed, talk->n_servers);
}

/* True where the batch here is that of the record which the server has. */
static bool
has_its_batch(const struct feed *feed, const struct record *got)
{
    return position_compare(got->done, got->end) < 0 &&
        feed->batch.n_messages > 0 && record_is(got, &feed->held) &&
        position_compare(feed->batch.last, got->end) == 0;
}

static void
come_back(struct feed *feed)
{
    struct record got;
    if (!talk_connect(feed->config.talk) ||
        !talk_login(feed->config.talk, feed->config.login) ||
        !feed_read_record(feed, &got)) {
        lose(feed);
        return;
    }
    bool is_mine = has_its_batch(feed, &got);
    if (!feed_write_record(feed, &got)) { /* a replica shows it, and no more */
        lose(feed);
        return;
    }
    log_line(feed->config.logger, LOG_INFO, "connected to %s, done up to %s",
        feed->config.talk->at.text, position_text(got.done).text);
    if (is_mine) {
        feed->figures.again++;
        go_to(feed, FEED_SENDING);
        return;
    }
    batch_clear(&feed->batch);
    if (got.number == 0) {
        feed->base.number = (uint64_t)clock_unix_us();
    }
    go_to(feed, FEED_READY);
}

/* ---- a batch is read ---- */

struct filling {
    struct feed *feed;
    const struct position *end; /* the last that belongs to it; NULL: any */
    struct position after;      /* up to it all have come */
    bool is_full;               /* or beyond its end */
};

static bool
take(void *context, struct position at, const char *text, size_t len)
{
    struct filling *filling = context;
    struct feed *feed = filling->feed;
    if (position_compare(at, filling->after) <= 0) {
        return true; /* sent twice */
    }
    filling->is_full =
        (filling->end != NULL && position_compare(at, *filling->end) > 0) ||
        (filling->end == NULL &&
            feed->batch.n_messages >= feed->config.messages) ||
        !batch_take(&feed->batch, at, text, len);
    if (!filling->is_full) {
        filling->after = at;
    }
    return !filling->is_full;
}

static bool
read_more(struct filling *filling, uint32_t wait_ms)
{
    struct feed *feed = filling->feed;
    struct broker *broker = feed->config.broker;
    struct position after = filling->after;
    uint64_t lost = broker->n_lost;
    if (!broker->calls->read(broker, after, wait_ms, take, filling)) {
        log_line(feed->config.logger, LOG_WARNING, "queue: %s", broker->why);
        pause_after(feed, 0);
        return false;
    }
    if (broker->n_lost != lost) {
        log_line(feed->config.logger, LOG_ERROR,
            "the queue has removed %" PRIu64 " messages behind %s before they "
            "were read: they are not counted",
            broker->n_lost - lost, position_text(after).text);
    }
    return true;
}

/* A new batch: what there is, and what comes while it lingers. */
static void
fill(struct feed *feed)
{
    struct filling filling = {.feed = feed, .after = feed->base.done};
    bool is_written =
        record_is(&feed->held, &feed->base) || feed->held.number == 0;
    uint64_t n = 0, end_ns = 0, now_ns = 0;
    uint32_t wait_ms = is_written ? FEED_WAIT_MS : 0;
    do {
        n = feed->batch.n_messages;
        if (!read_more(&filling, wait_ms) || feed->batch.n_messages == 0) {
            return;
        }
        now_ns = clock_monotonic_ns();
        if (end_ns == 0) {
            end_ns = now_ns + (uint64_t)feed->config.linger_ms * NS_PER_MS;
        }
        wait_ms = feed->batch.n_messages > n || now_ns >= end_ns
            ? 0
            : (uint32_t)((end_ns - now_ns) / NS_PER_MS);
    } while (!filling.is_full &&
        (feed->batch.n_messages > n || now_ns < end_ns) && !is_stopping(feed));
}

static void
mark_put_aside(void *context, uint64_t number)
{
    struct feed *feed = context;
    if (number >= feed->held.number &&
        number - feed->held.number < feed->batch.n) {
        feed->batch.change[number - feed->held.number].is_put_aside = true;
    }
}

/* The batch of the record has been read again. */
static int
check_again(struct feed *feed)
{
    struct logger *logger = feed->config.logger;
    const struct record *held = &feed->held;
    if (position_compare(feed->batch.last, held->end) != 0 ||
        batch_digest(&feed->batch) != held->digest) {
        log_line(logger, LOG_ERROR,
            "messages behind %s up to %s, which may have been counted in part, "
            "are not in the queue as they were: see \"Messages that are gone\" "
            "in doc/queues.md",
            position_text(held->done).text, position_text(held->end).text);
        return ERR_CORRUPT;
    }
    int err = aside_find(feed->config.aside_path, feed->config.name,
        held->digest, mark_put_aside, feed);
    if (err != 0) {
        log_line(logger, LOG_ERROR, "%s: %s", feed->config.aside_path,
            strerror(err));
        return ERR_SYSTEM;
    }
    log_line(logger, LOG_INFO, "batch behind %s up to %s is sent again",
        position_text(held->done).text, position_text(held->end).text);
    feed->figures.again++;
    return 0;
}

/* The batch of the record, which may have been counted in part. */
static int
fill_again(struct feed *feed)
{
    struct filling filling = {
        .feed = feed, .end = &feed->held.end, .after = feed->held.done};
    unsigned looks = 0;
    while (!filling.is_full &&
        position_compare(feed->batch.last, feed->held.end) != 0) {
        if (is_stopping(feed)) {
            batch_clear(&feed->batch);
            return 0;
        }
        uint64_t n = feed->batch.n_messages;
        bool is_right = read_more(&filling, FEED_WAIT_MS);
        looks = is_right && feed->batch.n_messages == n ? looks + 1 : 0;
        if (looks == WAIT_LOOKS) {
            log_line(feed->config.logger, LOG_WARNING,
                "waiting for messages behind %s up to %s, which have been "
                "there before",
                position_text(feed->held.done).text,
                position_text(feed->held.end).text);
        }
    }
    int err = check_again(feed);
    if (err == 0) {
        feed->aside_parsed = feed->batch.aside.len;
        go_to(feed, FEED_SENDING);
    }
    return err;
}

/* ---- the states ---- */

/* Writes what is finished, and the batch at hand, if there is one. */
static void
begin(struct feed *feed)
{
    struct record next = feed->base;
    if (feed->batch.n_messages > 0) {
        next.end = feed->batch.last;
        next.digest = batch_digest(&feed->batch);
    } else if (feed->held.number == 0 || record_is(&next, &feed->held)) {
        return;
    }
    if (!feed_write_record(feed, &next)) {
        lose(feed);
        return;
    }
    feed->failures = 0;
    if (feed->batch.n_messages > 0) {
        feed->aside_parsed = feed->batch.aside.len;
        go_to(feed, FEED_SENDING);
    }
}

static int
be_ready(struct feed *feed)
{
    ASSERT(feed->batch.n_messages == 0);
    if (position_compare(feed->base.done, feed->base.end) < 0) {
        return fill_again(feed);
    }
    fill(feed);
    if (!feed->batch.aside.failed) {
        begin(feed);
        return 0;
    }
    log_line(feed->config.logger, LOG_ERROR, "out of memory");
    return ERR_NO_MEMORY;
}

static void
count(struct feed *feed)
{
    struct feed_figures *figures = &feed->figures;
    const struct batch *batch = &feed->batch;
    figures->messages += batch->n_messages;
    figures->lines += batch->n_lines;
    figures->bad += batch->n_bad;
    figures->merged += batch->n_lines - batch->n;
    figures->batches++;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct batch_change *change = &batch->change[i];
        bool is_refused = change->is_put_aside || change->is_refused;
        *(is_refused ? &figures->refused : &figures->sent) += 1;
    }
}

static int
send_batch(struct feed *feed)
{
    struct batch *batch = &feed->batch;
    batch->aside.len = feed->aside_parsed;
    if (!feed_send(feed)) {
        lose(feed);
        return 0;
    }
    if (batch->aside.failed) {
        log_line(feed->config.logger, LOG_ERROR, "out of memory");
        return ERR_NO_MEMORY;
    }
    while (batch->aside.len > 0) {
        int err = aside_write(
            feed->config.aside_path, batch->aside.data, batch->aside.len);
        if (err == 0) {
            break;
        }
        log_line(feed->config.logger, LOG_ERROR,
            "%s: %s, nothing goes on "
            "until it can be written",
            feed->config.aside_path, strerror(err));
        pause_after(feed, 0);
        if (is_stopping(feed)) {
            return 0; /* the batch is sent again when it starts anew */
        }
    }
    count(feed);
    feed->base = (struct record){.done = feed->held.end,
        .end = feed->held.end,
        .number = feed->held.number + batch->n};
    batch_clear(batch);
    feed->failures = 0;
    go_to(feed, FEED_READY);
    return 0;
}

static void
tell_progress(struct feed *feed, bool is_last)
{
    const struct feed_figures *now = &feed->figures, *said = &feed->said;
    struct broker *broker = feed->config.broker;
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t every_ns =
        (uint64_t)feed->config.progress_s * MS_PER_S * NS_PER_MS;
    if (every_ns == 0 || (!is_last && now_ns - feed->progress_ns < every_ns)) {
        return;
    }
    char text[32] = "unknown";
    uint64_t behind =
        is_last ? UINT64_MAX : broker->calls->behind(broker, feed->base.done);
    if (behind != UINT64_MAX) {
        (void)snprintf(text, sizeof text, "%" PRIu64, behind);
    }
    uint64_t ms = (now_ns - feed->progress_ns) / NS_PER_MS + 1;
    log_line(feed->config.logger, LOG_WARNING,
        "messages=%" PRIu64 " per_second=%" PRIu64 " merged=%" PRIu64
        " sent=%" PRIu64 " refused=%" PRIu64 " bad=%" PRIu64
        " batches=%" PRIu64 " again=%" PRIu64 " behind_%s=%s position=%s",
        now->messages, (now->messages - said->messages) * MS_PER_S / ms,
        now->merged, now->sent, now->refused, now->bad, now->batches,
        now->again, broker->unit, text, position_text(feed->base.done).text);
    feed->said = *now;
    feed->progress_ns = now_ns;
}

int
feed_run(struct feed *feed)
{
    int err = 0;
    ASSERT(feed->magic == FEED_MAGIC);
    while (err == 0 && !is_stopping(feed)) {
        switch (feed->state) {
        case FEED_AWAY:
            come_back(feed);
            break;
        case FEED_READY:
            err = be_ready(feed);
            break;
        case FEED_SENDING:
            err = send_batch(feed);
            break;
        }
        tell_progress(feed, false);
    }
    if (err == 0 && feed->state == FEED_READY && feed->batch.n_messages == 0) {
        begin(feed); /* what is finished */
    }
    tell_progress(feed, true);
    return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A partition of Kafka, by librdkafka: assigned by hand, from our own offset,
 * and nothing is committed to Kafka. A message's position is its offset + 1.
 * The library connects by itself, again and again; its errors are told, and the
 * next read goes on. */
#include "tallyq/source.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 10000, CONF_WHY_BYTES = 256, POLL_MS = 1 };

struct kafka {
    struct broker broker; /* first */
    struct source source;
    rd_kafka_t *handle;
    bool is_assigned;
    uint64_t after;           /* position of the last that was taken */
    int64_t place;            /* where it was assigned */
    rd_kafka_message_t *held; /* the next one, which was not taken */
};

static struct kafka *
of(struct broker *broker)
{
    return (struct kafka *)broker;
}

static void
drop_held(struct kafka *kafka)
{
    if (kafka->held != NULL) {
        rd_kafka_message_destroy(kafka->held);
        kafka->held = NULL;
    }
}

static bool
fail(struct kafka *kafka, const char *why)
{
    return broker_fail(&kafka->broker, "%s: %s", kafka->source.hosts, why);
}

/* Reads from that offset on. */
static bool
assign(struct kafka *kafka, int64_t offset)
{
    drop_held(kafka);
    kafka->is_assigned = false;
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(
        list, kafka->source.stream, kafka->source.partition)
        ->offset = offset;
    rd_kafka_resp_err_t err = rd_kafka_assign(kafka->handle, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return fail(kafka, rd_kafka_err2str(err));
    }
    kafka->is_assigned = true;
    kafka->place = offset;
    return true;
}

/* There is no such offset: either what was there has been removed, or the topic
 * is another one. */
static bool
find_place(struct kafka *kafka)
{
    int64_t low = 0, high = 0, next = (int64_t)kafka->after;
    rd_kafka_resp_err_t err =
        rd_kafka_query_watermark_offsets(kafka->handle, kafka->source.stream,
            kafka->source.partition, &low, &high, TIMEOUT_MS);
    kafka->is_assigned = false;
    /* what was lost before it was assigned there has been counted */
    next = next > kafka->place ? next : kafka->place;
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return fail(kafka, rd_kafka_err2str(err));
    }
    if (high < next) {
        return broker_fail(&kafka->broker,
            "%s ends at %" PRId64 ", and %" PRId64 " have been read: has the "
            "topic been made anew? See doc/queues.md",
            kafka->source.stream, high, next);
    }
    if (low > next) {
        kafka->broker.n_lost += (uint64_t)(low - next);
        return assign(kafka, low);
    }
    return fail(kafka, "the offset is out of range, and in it again");
}

/* Takes the next message into held; none where none came. */
static bool
receive(struct kafka *kafka, uint32_t wait_ms, bool *is_end)
{
    if (kafka->held != NULL) {
        return true;
    }
    rd_kafka_message_t *message = rd_kafka_consumer_poll(
        kafka->handle, wait_ms == 0 ? POLL_MS : (int)wait_ms);
    *is_end = message == NULL;
    if (message == NULL) {
        return true;
    }
    rd_kafka_resp_err_t err = message->err;
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        kafka->held = message;
        return true;
    }
    bool is_right = err == RD_KAFKA_RESP_ERR__PARTITION_EOF ||
        fail(kafka, rd_kafka_message_errstr(message));
    rd_kafka_message_destroy(message);
    if (err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
        err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
        return find_place(kafka);
    }
    return is_right;
}

static bool
kafka_read(struct broker *broker, struct position after, uint32_t wait_ms,
    broker_take_fn take_fn, void *context)
{
    struct kafka *kafka = of(broker);
    bool is_end = false;
    if (!kafka->is_assigned || kafka->after != after.hi) {
        kafka->after = after.hi;
        if (!assign(kafka, (int64_t)after.hi)) {
            return false;
        }
    }
    while (true) {
        if (!receive(kafka, wait_ms, &is_end)) {
            return false;
        }
        if (is_end) {
            return true;
        }
        if (kafka->held == NULL) {
            continue; /* the end of the partition, told once: more may come */
        }
        const struct position at = {.hi = (uint64_t)kafka->held->offset + 1};
        const char *text = kafka->held->len == 0 ? "" : kafka->held->payload;
        if (!take_fn(context, at, text, kafka->held->len)) {
            return true;
        }
        kafka->after = at.hi;
        drop_held(kafka);
        wait_ms = 0;
    }
}

static uint64_t
kafka_behind(struct broker *broker, struct position at)
{
    struct kafka *kafka = of(broker);
    int64_t low = 0, high = RD_KAFKA_OFFSET_INVALID;
    if (rd_kafka_get_watermark_offsets(kafka->handle, kafka->source.stream,
            kafka->source.partition, &low,
            &high) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        high < 0) {
        return UINT64_MAX;
    }
    return (uint64_t)high > at.hi ? (uint64_t)high - at.hi : 0;
}

static void
kafka_close(struct broker **broker)
{
    struct kafka *kafka = of(*broker);
    drop_held(kafka);
    (void)rd_kafka_assign(kafka->handle, NULL);
    rd_kafka_destroy_flags(
        kafka->handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    free(kafka);
    *broker = NULL;
}

static const struct broker_calls calls = {
    .read = kafka_read, .behind = kafka_behind, .close = kafka_close};

/* The library's settings; NULL: no memory. */
static rd_kafka_conf_t *
configure(const struct source *source)
{
    const char *const set[][2] = {{"bootstrap.servers", source->hosts},
        {"client.id", "tallyq"},
        {"group.id", "tallyq"}, /* it wants one, and nothing is kept of it */
        {"enable.auto.commit", "false"}, {"auto.offset.reset", "error"},
        {"enable.partition.eof", "true"},
        {"isolation.level", "read_committed"}, {"check.crcs", "true"},
        {"queued.max.messages.kbytes", "32768"}, {"fetch.wait.max.ms", "100"},
        {"reconnect.backoff.max.ms", "1000"}, {"log_level", "0"}};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[CONF_WHY_BYTES];
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        if (rd_kafka_conf_set(conf, set[i][0], set[i][1], why, sizeof why) !=
            RD_KAFKA_CONF_OK) {
            rd_kafka_conf_destroy(conf);
            return NULL;
        }
    }
    return conf;
}

struct broker *
broker_kafka_open(const struct source *source)
{
    char why[CONF_WHY_BYTES];
    struct kafka *kafka = calloc(1, sizeof *kafka);
    rd_kafka_conf_t *conf = kafka == NULL ? NULL : configure(source);
    if (conf == NULL) {
        free(kafka);
        return NULL;
    }
    kafka->handle = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (kafka->handle == NULL) {
        rd_kafka_conf_destroy(conf);
        free(kafka);
        return NULL;
    }
    kafka->broker.calls = &calls;
    kafka->broker.unit = "messages";
    kafka->source = *source;
    return &kafka->broker;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_SOURCE_H
#define TALLYQ_SOURCE_H

#include "base/producer.h"
#include "tallyq/broker.h"

#include <stdbool.h>

/* Which queue is read, as it is written on the command line:
 *
 *   redis://HOST[:PORT]/STREAM
 *   nats://HOST[:PORT][,HOST[:PORT]...]/STREAM
 *   kafka://HOST[:PORT][,HOST[:PORT]...]/TOPIC/PARTITION
 */

/* Schemes: name, its default port, what is read. */
#define SOURCES(X)                                                            \
    X(REDIS, "redis", 6379, "a stream of Redis")                              \
    X(NATS, "nats", 4222, "a stream of NATS JetStream")                       \
    X(KAFKA, "kafka", 9092, "a partition of a topic of Kafka")

enum source_kind {
#define X(kind, scheme, port, text) SOURCE_##kind,
    SOURCES(X)
#undef X
        SOURCE_COUNT
};

enum {
    SOURCE_HOSTS_MAX = 1023, /* bytes */
    SOURCE_STREAM_MAX = 249, /* bytes: what Kafka takes */
    SOURCE_PARTITION_MAX = INT32_MAX
};

struct source {
    enum source_kind kind;
    char hosts[SOURCE_HOSTS_MAX + 1]; /* HOST:PORT, with commas */
    char stream[SOURCE_STREAM_MAX + 1];
    int32_t partition; /* 0 where there are none */
};

/* NULL, or what is wrong with the text. */
const char *source_parse(const char *text, struct source *out);

/* The name that a consumer of it has: that of the stream, and of Kafka a dot
 * and the partition. False where that is no producer's name. */
bool source_name(const struct source *source, struct producer_name *out);

/* The address at its front, HOST and PORT; host has room for all of hosts. */
void source_address(const struct source *source, char *host, uint16_t *port);

/* Makes the broker, which connects when it is read. NULL with *why where it
 * cannot be: the program has been built without it, or memory is out. */
struct broker *source_open(const struct source *source, const char **why);

/* The schemes of the kinds that this program has, with spaces before them.
 * Static storage. */
const char *source_kinds(void);

struct broker *broker_redis_open(const struct source *source);
struct broker *broker_nats_open(const struct source *source);
struct broker *broker_kafka_open(const struct source *source);

#endif

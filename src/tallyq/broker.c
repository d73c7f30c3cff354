/* SPDX-License-Identifier: BSD-3-Clause */
/* What all kinds of queues share, and which of them this program has. */
#include "tallyq/broker.h"

#include "tallyq/source.h"

#include <stdarg.h>

bool
broker_fail(struct broker *broker, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(broker->why, sizeof broker->why, format, list);
    va_end(list);
    return false;
}

const char *
source_kinds(void)
{
    return ""
#ifdef HAVE_HIREDIS
           " redis"
#endif
#ifdef HAVE_NATS
           " nats"
#endif
#ifdef HAVE_RDKAFKA
           " kafka"
#endif
        ;
}

struct broker *
source_open(const struct source *source, const char **why)
{
    *why = "out of memory";
    switch (source->kind) {
#ifdef HAVE_HIREDIS
    case SOURCE_REDIS:
        return broker_redis_open(source);
#endif
#ifdef HAVE_NATS
    case SOURCE_NATS:
        return broker_nats_open(source);
#endif
#ifdef HAVE_RDKAFKA
    case SOURCE_KAFKA:
        return broker_kafka_open(source);
#endif
    default:
        *why = "this tallyq was built without the library for that queue";
        return NULL;
    }
}

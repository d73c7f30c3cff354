/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues as they are written, taken apart. */
#include "tallyq/source.h"

#include "base/assert.h"
#include "base/num.h"

#include <stdio.h>
#include <string.h>

struct scheme {
    const char *name;
    uint16_t port;
};

static const struct scheme schemes[SOURCE_COUNT] = {
#define X(kind, name, port, text) {name, port},
    SOURCES(X)
#undef X
};

/* The kind whose scheme text begins with; moves it behind "://". */
static bool
take_scheme(const char **text, enum source_kind *kind)
{
    for (unsigned i = 0; i < SOURCE_COUNT; i++) {
        size_t len = strlen(schemes[i].name);
        if (strncmp(*text, schemes[i].name, len) == 0 &&
            strncmp(*text + len, "://", 3) == 0) {
            *kind = (enum source_kind)i;
            *text += len + 3;
            return true;
        }
    }
    return false;
}

/* Appends HOST:PORT of HOST or HOST:PORT. */
static bool
add_host(struct source *source, const char *text, size_t len)
{
    const char *close = len == 0 ? NULL : memchr(text, ']', len);
    const char *from = close == NULL ? text : close;
    const char *colon =
        len == 0 ? NULL : memchr(from, ':', len - (size_t)(from - text));
    uint64_t port = schemes[source->kind].port;
    size_t host = colon == NULL ? len : (size_t)(colon - text);
    if (host == 0 ||
        (colon != NULL &&
            (!num_parse_u64(colon + 1, len - host - 1, &port) || port == 0 ||
                port > UINT16_MAX))) {
        return false;
    }
    for (size_t i = 0; i < host; i++) {
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '@') {
            return false;
        }
    }
    size_t used = strlen(source->hosts), room = sizeof source->hosts - used;
    int n = snprintf(source->hosts + used, room, "%s%.*s:%u",
        used == 0 ? "" : ",", (int)host, text, (unsigned)port);
    return n > 0 && (size_t)n < room;
}

static bool
take_hosts(struct source *source, const char *text, size_t len)
{
    while (true) {
        const char *comma = len == 0 ? NULL : memchr(text, ',', len);
        size_t one = comma == NULL ? len : (size_t)(comma - text);
        if (!add_host(source, text, one)) {
            return false;
        }
        if (comma == NULL) {
            return true;
        }
        text += one + 1;
        len -= one + 1;
    }
}

static bool
take_partition(struct source *source, char *slash)
{
    uint64_t partition = 0;
    if (slash == NULL ||
        !num_parse_id(slash + 1, strlen(slash + 1), &partition) ||
        partition > SOURCE_PARTITION_MAX) {
        return false;
    }
    source->partition = (int32_t)partition;
    *slash = '\0';
    return true;
}

const char *
source_parse(const char *text, struct source *out)
{
    struct source source = {.partition = 0};
    if (!take_scheme(&text, &source.kind)) {
        return "a queue begins with redis://, nats:// or kafka://";
    }
    const char *slash = strchr(text, '/');
    if (slash == NULL || !take_hosts(&source, text, (size_t)(slash - text))) {
        return "behind :// stands HOST or HOST:PORT, and then a slash";
    }
    if (source.kind == SOURCE_REDIS && strchr(source.hosts, ',') != NULL) {
        return "Redis is one HOST:PORT";
    }
    size_t len = strlen(slash + 1);
    if (len == 0 || len > SOURCE_STREAM_MAX) {
        return "the name of the stream is missing or too long";
    }
    memcpy(source.stream, slash + 1, len + 1);
    if (source.kind == SOURCE_KAFKA &&
        !take_partition(&source, strrchr(source.stream, '/'))) {
        return "Kafka wants kafka://HOST:PORT/TOPIC/PARTITION";
    }
    if (source.stream[0] == '\0') {
        return "the name of the topic is missing";
    }
    *out = source;
    return NULL;
}

bool
source_name(const struct source *source, struct producer_name *out)
{
    char name[SOURCE_STREAM_MAX + 1 + NUM_U64_DIGITS_MAX];
    int len = source->kind == SOURCE_KAFKA
        ? snprintf(
              name, sizeof name, "%s.%d", source->stream, source->partition)
        : snprintf(name, sizeof name, "%s", source->stream);
    return producer_name_set(out, name, (size_t)len);
}

void
source_address(const struct source *source, char *host, uint16_t *port)
{
    const char *colon = strrchr(source->hosts, ':');
    uint64_t number = 0;
    ASSERT(
        colon != NULL && num_parse_u64(colon + 1, strlen(colon + 1), &number));
    size_t len = (size_t)(colon - source->hosts);
    bool is_quoted = source->hosts[0] == '[' && len > 2;
    memcpy(host, source->hosts + is_quoted, len - 2 * (size_t)is_quoted);
    host[len - 2 * (size_t)is_quoted] = '\0';
    *port = (uint16_t)number;
}

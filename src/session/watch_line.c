/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of watch, as memcached writes them: "ts=... gid=... type=..." and
 * what belongs to the type, keys as in an URL. Its microseconds are not padded
 * there; here they have six digits, so that ts is a number. */
#include "base/assert.h"
#include "base/uri.h"
#include "session/watch.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

enum { US_PER_S = 1000000, KEY_TEXT_BYTES = URI_BYTES * 255 + 1 };

static const struct {
    const char *name;
    enum watch_kind kind;
} types[] = {
    [WATCH_ITEM_GET] = {"item_get", WATCH_FETCHERS},
    [WATCH_ITEM_STORE] = {"item_store", WATCH_MUTATIONS},
    [WATCH_DELETED] = {"deleted", WATCH_DELETIONS},
    [WATCH_EVICTION] = {"eviction", WATCH_EVICTIONS},
    [WATCH_CONN_NEW] = {"conn_new", WATCH_CONNEVENTS},
    [WATCH_CONN_CLOSE] = {"conn_close", WATCH_CONNEVENTS},
    [WATCH_SLOW_COMMAND] = {"slow", WATCH_SLOW},
    [WATCH_SYSTEM] = {NULL, WATCH_SYSEVENTS}, /* the event has its name */
};

enum watch_kind
watch__kind(const struct watch_event *event)
{
    return types[event->type].kind;
}

static int
put_peer(const struct watch_event *event, char *at, size_t room)
{
    char address[INET6_ADDRSTRLEN] = "unix";
    const struct watch_peer *peer = &event->peer;
    if (peer->family == AF_INET || peer->family == AF_INET6) {
        (void)inet_ntop(peer->family, peer->address, address, sizeof address);
    }
    int n = snprintf(at, room, "rip=%s rport=%u transport=%s", address,
        (unsigned)peer->port, peer->is_unix ? "local" : "tcp");
    if (event->type == WATCH_CONN_CLOSE) {
        n += snprintf(at + n, room - (size_t)n, " reason=%s", event->status);
    }
    return n + snprintf(at + n, room - (size_t)n, " cfd=%d", event->fd);
}

static int
put_item(
    const struct watch_event *event, const char *key, char *at, size_t room)
{
    char text[KEY_TEXT_BYTES];
    text[uri_encode(key, event->key_len, text)] = '\0';
    unsigned class_ = event->class_;
    switch ((enum watch_event_type)event->type) {
    case WATCH_ITEM_GET:
        return snprintf(at, room,
            "key=%s status=%s clsid=%u cfd=%d size=%" PRIu64, text,
            event->status, class_, event->fd, event->size);
    case WATCH_ITEM_STORE:
        return snprintf(at, room,
            "key=%s status=%s cmd=%s ttl=%" PRId64
            " clsid=%u cfd=%d size=%" PRIu64,
            text, event->status, event->command, event->ttl_s, class_,
            event->fd, event->size);
    case WATCH_DELETED:
        return snprintf(at, room, "key=%s cmd=%s clsid=%u size=%" PRIu64, text,
            event->command, class_, event->size);
    default:
        return snprintf(at, room,
            "key=%s fetch=%s ttl=%" PRId64 " la=%" PRIu64
            " clsid=%u size=%" PRIu64,
            text, event->was_fetched ? "yes" : "no", event->ttl_s,
            event->idle_s, class_, event->size);
    }
}

/* What the log says of it, as it stands there. */
static int
put_system(
    const struct watch_event *event, const char *text, char *at, size_t room)
{
    int n = snprintf(at, room, "level=%s msg=\"", event->status);
    n += (int)log_escape(
        text, event->key_len, at + n, room - (size_t)n - sizeof "\"");
    at[n] = '"';
    return n + 1;
}

static int
put_rest(
    const struct watch_event *event, const char *key, char *at, size_t room)
{
    switch (watch__kind(event)) {
    case WATCH_CONNEVENTS:
        return put_peer(event, at, room);
    case WATCH_SLOW:
        return snprintf(at, room, "%.*s", (int)event->key_len, key);
    case WATCH_SYSEVENTS:
        return put_system(event, key, at, room);
    default:
        return put_item(event, key, at, room);
    }
}

size_t
watch__line(const struct watch_event *event, const char *key,
    char line[WATCH_LINE_BYTES])
{
    const char *name = types[event->type].name;
    int n = snprintf(line, WATCH_LINE_BYTES,
        "ts=%" PRId64 ".%06d gid=%" PRIu64 " type=%s ",
        event->unix_us / US_PER_S, (int)(event->unix_us % US_PER_S),
        event->gid, name != NULL ? name : event->command);
    size_t room = WATCH_LINE_BYTES - (size_t)n;
    n += put_rest(event, key, line + n, room);
    ASSERT(n > 0 && n < WATCH_LINE_BYTES);
    line[n] = '\n';
    return (size_t)n + 1;
}

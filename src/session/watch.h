/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_WATCH_H
#define SESSION_WATCH_H

#include "base/buf.h"
#include "base/log.h"
#include "base/mutex.h"
#include "call/store_calls.h"
#include "items/witness.h"
#include "proto/text_admin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* memcached's watch: lines about what happens, for connections that ask for
 * them. Whoever has something to tell puts an event into a ring; a thread makes
 * lines of them and puts these into the watchers' buffers, from which their
 * sessions take them. What does not fit is left out, counted, and told of to
 * those who would have got it. */

/* What can be asked for; proto/text_admin.h has the words. */
enum watch_kind {
#define X(name, word) WATCH_##name = 1 << TEXT_ADMIN_WATCH_##name,
    TEXT_ADMIN_WATCH_KINDS(X)
#undef X
};

/* All of them. */
enum { WATCH_ALL = (1 << TEXT_ADMIN_WATCHES) - 1 };

enum {
    WATCH_MAX = 20,               /* watchers; as memcached */
    WATCH_RINGS_MAX = 257,        /* workers, and one for all else */
    WATCH_RING_BYTES = 128 << 10, /* events of one that wait; there are two */
    WATCH_KIND_BYTES = WATCH_RING_BYTES / 2, /* of these, of one kind */
    WATCH_BUFFER_BYTES = 256 << 10,          /* lines of a watcher that wait */
    WATCH_LINE_BYTES = 1408, /* a slow command's text, or a key, 3 x 250 */
    WATCH_MORE_BYTES = 32    /* "skipped=N" before a line */
};

enum watch_event_type {
    WATCH_ITEM_GET,
    WATCH_ITEM_STORE,
    WATCH_DELETED,
    WATCH_EVICTION,
    WATCH_CONN_NEW,
    WATCH_CONN_CLOSE,
    WATCH_SLOW_COMMAND,
    WATCH_SYSTEM
};

/* Who is at the other end. */
struct watch_peer {
    uint8_t family; /* AF_INET, AF_INET6, else none */
    bool is_unix;
    uint16_t port;
    uint8_t address[16];
};

/* What has happened; words are static storage. A key of key_len follows. */
struct watch_event {
    uint64_t gid; /* these two are the ring's to fill */
    int64_t unix_us;
    const char *status;  /* or reason; SYSTEM: the level */
    const char *command; /* SYSTEM: the type */
    uint64_t size;
    int64_t ttl_s;
    uint64_t idle_s; /* EVICTION */
    int fd;
    uint8_t type; /* enum watch_event_type */
    uint8_t class_;
    uint16_t key_len; /* SLOW_COMMAND, SYSTEM: the whole text */
    bool was_fetched; /* EVICTION */
    struct watch_peer peer;
};

/* A session's. */
struct watcher;

/* Events of one thread, or of several. */
struct watch_ring {
    struct watch_hub *hub;
    struct mutex lock;  /* what follows */
    char *fill, *spare; /* owned; NULL until somebody watches */
    size_t len;         /* of fill */
    size_t kind_bytes[TEXT_ADMIN_WATCHES]; /* of these, by kind */
    uint64_t lost[TEXT_ADMIN_WATCHES]; /* dropped; watchers do not know yet */
    bool has_lost;                     /* some of them are not 0 */
    uint64_t written, dropped;
};

struct watch_stats {
    uint64_t dropped, written, skipped, sent, watchers;
};

struct watch_hub {
    struct items_witness witness; /* first: the items' seam */
    struct log_listener listener; /* the log's: sysevents */
    _Atomic unsigned wanted;      /* kinds of all watchers */
    _Atomic uint64_t gid;
    struct watch_ring ring[WATCH_RINGS_MAX]; /* the last: of no worker */
    unsigned n_rings;
    pthread_t thread;
    struct mutex wake_lock; /* has_events, stopping */
    pthread_cond_t wake;
    bool has_events, stopping;
    struct mutex lock; /* what follows, and what watchers have */
    struct watcher *watcher[WATCH_MAX];
    unsigned n_watchers;
    uint64_t skipped, sent;
};

/* Starts the thread; n_workers below WATCH_RINGS_MAX. 0 or ERR_NO_THREAD. */
int watch_start(struct watch_hub *hub, unsigned n_workers);

/* Ends it. No watcher is left, and nobody tells anything any more. */
void watch_stop(struct watch_hub *hub);

/* Kinds that somebody wants to be told of. Any thread. */
static inline unsigned
watch_wanted(const struct watch_hub *hub)
{
    /* relaxed: a new watcher may miss what happens at that moment */
    return atomic_load_explicit(&hub->wanted, memory_order_relaxed);
}

/* Puts an event into a ring, or counts it as dropped. Takes the ring's lock for
 * a copy of some hundred bytes. Any thread. */
void watch_report(
    struct watch_ring *ring, const struct watch_event *event, const char *key);

/* A new watcher of these kinds. notify_fn is called, on the hub's thread and
 * under its lock, when it has lines and had none; it must not block or call the
 * hub. NULL: there are WATCH_MAX (*is_full), or no memory. */
struct watcher *watch__add(struct watch_hub *hub, unsigned kinds,
    void (*notify_fn)(void *context), void *context, bool *is_full);

/* Frees it; notify_fn is not called any more. NULL in it is fine. */
void watch__remove(struct watch_hub *hub, struct watcher **watcher);

/* Moves lines to out until that has mark bytes; true where some are left. */
bool watch__take(struct watch_hub *hub, struct watcher *watcher, size_t mark,
    struct buf *out);

void watch_stats(struct watch_hub *hub, struct watch_stats *stats);

/* For the hub: a line of an event, with its newline; its length. */
size_t watch__line(const struct watch_event *event, const char *key,
    char line[WATCH_LINE_BYTES]);

/* For the hub: the kind that an event is of. */
enum watch_kind watch__kind(const struct watch_event *event);

#endif

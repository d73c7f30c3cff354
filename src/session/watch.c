/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchers' hub: takes events from rings, makes lines, gives them to
 * watchers.
 *
 *   worker --> ring (128 KiB) -\
 *   worker --> ring ------------> the hub's thread --> buffer (256 KiB) of each
 *   evictions, -> ring --------/                       watcher --> its session
 *   sysevents
 *
 * A ring has two buffers: one is filled while the thread works on the other.
 * Both change places under the ring's lock. A full ring drops events: whoever
 * serves clients waits for nobody. One kind takes half of it at most, so that a
 * storm of gets leaves room for the connection that began it. Drops are counted
 * by kind, and the thread tells those who wanted them. A full buffer of a
 * watcher skips lines, and the watcher is told how many when there is room: one
 * that does not read costs nobody anything but that.
 *
 * hub->lock covers the watchers. The thread tells a watcher's worker under it,
 * and a watcher goes under it, so the worker is there. The rings' memory is
 * taken when somebody first watches, and stays. */
#include "session/watch.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHER_MAGIC = 0x48435457 };

struct watcher {
    uint32_t magic; /* WATCHER_MAGIC */
    unsigned kinds;
    uint64_t first_gid; /* what came before is not for it */
    uint64_t skipped;   /* lines that it has not been told of */
    bool has_told;      /* its last line tells how many there were */
    void (*notify_fn)(void *context);
    void *context;
    size_t at, len; /* of the lines in data */
    char data[WATCH_BUFFER_BYTES];
};

/* ---- rings ---- */

static void
wake(struct watch_hub *hub)
{
    mutex_lock(&hub->wake_lock);
    hub->has_events = true;
    pthread_cond_signal(&hub->wake);
    mutex_unlock(&hub->wake_lock);
}

/* Of an event in a ring, which keeps the next one aligned. */
static size_t
bytes_of(const struct watch_event *event)
{
    size_t bytes = sizeof *event + event->key_len;
    size_t unit = _Alignof(struct watch_event);
    return (bytes + unit - 1) / unit * unit;
}

/* Where an event of that kind goes; NULL where it is dropped. */
static struct watch_event *
make_place(struct watch_ring *ring, unsigned kind, size_t bytes)
{
    mutex_assert_held(&ring->lock);
    struct watch_event *place = NULL;
    if (ring->fill == NULL) { /* nobody watches */
        ring->dropped++;
    } else if (ring->len + bytes > WATCH_RING_BYTES ||
        ring->kind_bytes[kind] + bytes > WATCH_KIND_BYTES) {
        ring->dropped++;
        ring->lost[kind]++;
        ring->has_lost = true;
    } else {
        place = (struct watch_event *)(void *)(ring->fill + ring->len);
        ring->len += bytes;
        ring->kind_bytes[kind] += bytes;
        ring->written++;
    }
    return place;
}

void
watch_report(
    struct watch_ring *ring, const struct watch_event *event, const char *key)
{
    size_t bytes = bytes_of(event);
    unsigned kind = (unsigned)__builtin_ctz(watch__kind(event));
    int64_t unix_us = clock_unix_us();
    mutex_lock(&ring->lock);
    bool was_empty = ring->len == 0;
    struct watch_event *to = make_place(ring, kind, bytes);
    bool fits = to != NULL;
    if (fits) {
        *to = *event;
        /* relaxed: only its values matter, which differ */
        to->gid = 1 +
            atomic_fetch_add_explicit(
                &ring->hub->gid, 1, memory_order_relaxed);
        to->unix_us = unix_us;
        if (event->key_len > 0) {
            memcpy(to + 1, key, event->key_len);
        }
    }
    mutex_unlock(&ring->lock);
    if (fits && was_empty) {
        wake(ring->hub);
    }
}

/* Asserts that each byte of a ring is of one kind, and that all fit. */
static void
verify_ring(const struct watch_ring *ring)
{
    size_t bytes = 0;
    mutex_assert_held(&ring->lock);
    for (unsigned i = 0; i < TEXT_ADMIN_WATCHES; i++) {
        ASSERT(ring->kind_bytes[i] <= WATCH_KIND_BYTES);
        bytes += ring->kind_bytes[i];
    }
    ASSERT(bytes == ring->len && bytes <= WATCH_RING_BYTES);
}

/* Takes what is in a ring: *len bytes, which stay until the next call.
 * *has_lost: others did not find room beside them. */
static const char *
take_events(struct watch_ring *ring, size_t *len, bool *has_lost)
{
    mutex_lock(&ring->lock);
    verify_ring(ring);
    char *data = ring->fill;
    *len = ring->len;
    *has_lost = ring->has_lost;
    ring->fill = ring->spare;
    ring->spare = data;
    ring->len = 0;
    memset(ring->kind_bytes, 0, sizeof ring->kind_bytes);
    mutex_unlock(&ring->lock);
    return data;
}

static bool
make_rings(struct watch_hub *hub)
{
    mutex_assert_held(&hub->lock);
    for (unsigned i = 0; i < hub->n_rings; i++) {
        struct watch_ring *ring = &hub->ring[i];
        char *fill = malloc(WATCH_RING_BYTES);
        char *spare = malloc(WATCH_RING_BYTES);
        if (fill == NULL || spare == NULL) {
            free(fill);
            free(spare);
            return false;
        }
        mutex_lock(&ring->lock);
        bool has_some = ring->fill != NULL;
        if (!has_some) {
            ring->fill = fill;
            ring->spare = spare;
        }
        mutex_unlock(&ring->lock);
        if (has_some) {
            free(fill);
            free(spare);
        }
    }
    return true;
}

/* ---- watchers ---- */

/* Room for so many bytes at the end of the lines; false where there is none. */
static bool
make_room(struct watcher *watcher, size_t bytes)
{
    if (watcher->at == watcher->len) {
        watcher->at = watcher->len = 0;
    }
    if (watcher->len + bytes <= WATCH_BUFFER_BYTES) {
        return true;
    }
    size_t left = watcher->len - watcher->at;
    if (left + bytes > WATCH_BUFFER_BYTES ||
        watcher->at < WATCH_BUFFER_BYTES / 4) {
        return false; /* not moved for a few bytes again and again */
    }
    memmove(watcher->data, watcher->data + watcher->at, left);
    watcher->at = 0;
    watcher->len = left;
    return true;
}

/* There are WATCH_MORE_BYTES of room. There are never two such lines in a row;
 * what is left then is told behind the next event. */
static void
put_skipped(struct watcher *watcher)
{
    if (watcher->skipped > 0 && !watcher->has_told) {
        watcher->len += (size_t)snprintf(watcher->data + watcher->len,
            WATCH_MORE_BYTES, "skipped=%" PRIu64 "\n", watcher->skipped);
        watcher->skipped = 0;
        watcher->has_told = true;
    }
}

static void
give_line(struct watch_hub *hub, struct watcher *watcher, const char *line,
    size_t len)
{
    mutex_assert_held(&hub->lock);
    ASSERT(watcher->magic == WATCHER_MAGIC);
    bool was_empty = watcher->at == watcher->len;
    if (!make_room(watcher, len + WATCH_MORE_BYTES)) {
        watcher->skipped++;
        hub->skipped++;
        return;
    }
    put_skipped(watcher);
    memcpy(watcher->data + watcher->len, line, len);
    watcher->len += len;
    ASSERT(watcher->len <= WATCH_BUFFER_BYTES);
    watcher->has_told = false;
    hub->sent++;
    if (was_empty) {
        watcher->notify_fn(watcher->context);
    }
}

static void
give_event(struct watch_hub *hub, const struct watch_event *event)
{
    char line[WATCH_LINE_BYTES];
    size_t len = watch__line(event, (const char *)(event + 1), line);
    unsigned kind = watch__kind(event);
    mutex_lock(&hub->lock);
    for (unsigned i = 0; i < WATCH_MAX; i++) {
        struct watcher *watcher = hub->watcher[i];
        if (watcher != NULL && (watcher->kinds & kind) != 0 &&
            event->gid >= watcher->first_gid) {
            give_line(hub, watcher, line, len);
        }
    }
    mutex_unlock(&hub->lock);
}

/* Tells the watchers of what a ring had no room for; who comes later is told
 * nothing of that. */
static void
give_lost(struct watch_hub *hub, struct watch_ring *ring)
{
    mutex_assert_held(&hub->lock);
    uint64_t lost[TEXT_ADMIN_WATCHES];
    mutex_lock(&ring->lock);
    memcpy(lost, ring->lost, sizeof lost);
    memset(ring->lost, 0, sizeof ring->lost);
    ring->has_lost = false;
    mutex_unlock(&ring->lock);
    for (unsigned i = 0; i < WATCH_MAX; i++) {
        struct watcher *watcher = hub->watcher[i];
        uint64_t n = 0;
        for (unsigned k = 0; watcher != NULL && k < TEXT_ADMIN_WATCHES; k++) {
            n += (watcher->kinds & 1u << k) != 0 ? lost[k] : 0;
        }
        if (n > 0) {
            watcher->skipped += n; /* said before its next line */
        }
    }
}

/* Says what workers are asked for. */
static void
set_wanted(struct watch_hub *hub)
{
    mutex_assert_held(&hub->lock);
    unsigned kinds = 0;
    for (unsigned i = 0; i < WATCH_MAX; i++) {
        kinds |= hub->watcher[i] == NULL ? 0 : hub->watcher[i]->kinds;
    }
    /* relaxed: see watch_wanted */
    atomic_store_explicit(&hub->wanted, kinds, memory_order_relaxed);
}

struct watcher *
watch__add(struct watch_hub *hub, unsigned kinds,
    void (*notify_fn)(void *context), void *context, bool *is_full)
{
    struct watcher *watcher = malloc(sizeof *watcher);
    unsigned place = 0;
    *is_full = false;
    if (watcher == NULL) {
        return NULL;
    }
    watcher->magic = WATCHER_MAGIC;
    watcher->kinds = kinds;
    watcher->skipped = 0;
    watcher->has_told = false;
    watcher->at = watcher->len = 0;
    watcher->notify_fn = notify_fn;
    watcher->context = context;
    mutex_lock(&hub->lock);
    while (place < WATCH_MAX && hub->watcher[place] != NULL) {
        place++;
    }
    *is_full = place == WATCH_MAX;
    bool may = !*is_full && make_rings(hub);
    if (may) {
        for (unsigned i = 0; i < hub->n_rings; i++) {
            give_lost(hub, &hub->ring[i]);
        }
        /* relaxed: events of before have a lower one */
        watcher->first_gid =
            1 + atomic_load_explicit(&hub->gid, memory_order_relaxed);
        hub->watcher[place] = watcher;
        hub->n_watchers++;
        set_wanted(hub);
    }
    mutex_unlock(&hub->lock);
    if (!may) {
        free(watcher);
        return NULL;
    }
    return watcher;
}

void
watch__remove(struct watch_hub *hub, struct watcher **watcher)
{
    if (*watcher == NULL) {
        return;
    }
    ASSERT((*watcher)->magic == WATCHER_MAGIC);
    mutex_lock(&hub->lock);
    unsigned before = hub->n_watchers;
    for (unsigned i = 0; i < WATCH_MAX; i++) {
        if (hub->watcher[i] == *watcher) {
            hub->watcher[i] = NULL;
            hub->n_watchers--;
        }
    }
    ASSERT(hub->n_watchers + 1 == before);
    set_wanted(hub);
    mutex_unlock(&hub->lock);
    (*watcher)->magic = 0;
    free(*watcher);
    *watcher = NULL;
}

bool
watch__take(struct watch_hub *hub, struct watcher *watcher, size_t mark,
    struct buf *out)
{
    size_t room = out->len < mark ? mark - out->len : 0;
    ASSERT(watcher->magic == WATCHER_MAGIC);
    mutex_lock(&hub->lock);
    ASSERT(watcher->at <= watcher->len);
    size_t left = watcher->len - watcher->at;
    size_t n = left < room ? left : room;
    buf_add(out, watcher->data + watcher->at, n);
    watcher->at += n;
    if (n == left && watcher->skipped > 0 &&
        make_room(watcher, WATCH_MORE_BYTES)) {
        put_skipped(watcher); /* maybe nothing comes that could bring it */
    }
    bool has_more = watcher->at < watcher->len;
    mutex_unlock(&hub->lock);
    return has_more;
}

/* ---- the thread ---- */

static bool
wait_for_events(struct watch_hub *hub)
{
    mutex_lock(&hub->wake_lock);
    while (!hub->has_events && !hub->stopping) {
        mutex_wait(&hub->wake_lock, &hub->wake);
    }
    hub->has_events = false;
    bool goes_on = !hub->stopping;
    mutex_unlock(&hub->wake_lock);
    return goes_on;
}

static void
empty_ring(struct watch_hub *hub, struct watch_ring *ring)
{
    size_t len;
    bool has_lost;
    const char *data = take_events(ring, &len, &has_lost);
    for (size_t at = 0; at < len;) {
        const struct watch_event *event =
            (const struct watch_event *)(const void *)(data + at);
        give_event(hub, event);
        at += bytes_of(event);
        ASSERT(at <= len); /* each event ends where the next one begins */
    }
    if (has_lost) {
        mutex_lock(&hub->lock);
        give_lost(hub, ring);
        mutex_unlock(&hub->lock);
    }
}

static void *
run(void *arg)
{
    struct watch_hub *hub = arg;
    while (wait_for_events(hub)) {
        for (unsigned i = 0; i < hub->n_rings; i++) {
            empty_ring(hub, &hub->ring[i]);
        }
    }
    return NULL;
}

/* Under a stripe's lock of the items, on any thread. */
static void
on_evicted(struct items_witness *witness, const struct items_evicted *item)
{
    struct watch_hub *hub = (struct watch_hub *)witness;
    if ((watch_wanted(hub) & WATCH_EVICTIONS) == 0) {
        return;
    }
    watch_report(&hub->ring[hub->n_rings - 1],
        &(struct watch_event){.type = WATCH_EVICTION,
            .class_ = (uint8_t)item->class_,
            .key_len = (uint8_t)item->key_len,
            .was_fetched = item->was_fetched,
            .ttl_s = item->ttl_s,
            .idle_s = item->idle_s,
            .size = item->value_len},
        item->key);
}

/* On the thread that has said it. */
static void
on_event(struct log_listener *listener, enum log_level level,
    const char *topic, const char *text, size_t len)
{
    static const char *const levels[] = {
        "error", "warning", "notice", "info", "debug"};
    struct watch_hub *hub = (struct watch_hub *)(void *)((char *)listener -
        offsetof(struct watch_hub, listener));
    if ((watch_wanted(hub) & WATCH_SYSEVENTS) == 0) {
        return;
    }
    watch_report(&hub->ring[hub->n_rings - 1],
        &(struct watch_event){.type = WATCH_SYSTEM,
            .status = levels[level],
            .command = topic,
            .key_len = (uint16_t)len},
        text);
}

int
watch_start(struct watch_hub *hub, unsigned n_workers)
{
    ASSERT(n_workers < WATCH_RINGS_MAX);
    hub->witness.evicted_fn = on_evicted;
    hub->listener.event_fn = on_event;
    hub->n_rings = n_workers + 1;
    for (unsigned i = 0; i < hub->n_rings; i++) {
        hub->ring[i].hub = hub;
        mutex_init(&hub->ring[i].lock);
    }
    mutex_init(&hub->wake_lock);
    pthread_cond_init(&hub->wake, NULL);
    mutex_init(&hub->lock);
    return pthread_create(&hub->thread, NULL, run, hub) == 0 ? 0
                                                             : ERR_NO_THREAD;
}

void
watch_stop(struct watch_hub *hub)
{
    ASSERT(hub->n_watchers == 0);
    mutex_lock(&hub->wake_lock);
    hub->stopping = true;
    pthread_cond_signal(&hub->wake);
    mutex_unlock(&hub->wake_lock);
    pthread_join(hub->thread, NULL);
    for (unsigned i = 0; i < hub->n_rings; i++) {
        free(hub->ring[i].fill);
        free(hub->ring[i].spare);
        mutex_fini(&hub->ring[i].lock);
    }
    mutex_fini(&hub->lock);
    pthread_cond_destroy(&hub->wake);
    mutex_fini(&hub->wake_lock);
}

void
watch_stats(struct watch_hub *hub, struct watch_stats *stats)
{
    *stats = (struct watch_stats){0};
    for (unsigned i = 0; i < hub->n_rings; i++) {
        mutex_lock(&hub->ring[i].lock);
        stats->written += hub->ring[i].written;
        stats->dropped += hub->ring[i].dropped;
        mutex_unlock(&hub->ring[i].lock);
    }
    mutex_lock(&hub->lock);
    stats->skipped = hub->skipped;
    stats->sent = hub->sent;
    stats->watchers = hub->n_watchers;
    mutex_unlock(&hub->lock);
}

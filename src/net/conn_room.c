/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that clients can make the server keep: they send much of a request
 * and not its end, or ask for much and do not read it. One connection has
 * bounds for that (conn.c); many of them together have them here.
 *
 * Each connection notes after each turn what it keeps. Before the worker
 * sleeps it looks whether that is too much, and closes connections until it is
 * not: always the one whose last progress (a request begun, or a write done)
 * is the longest ago. A client that does send and read makes progress all the
 * time, so it stays while hostile ones go; and those that are many make room
 * for each other only.
 *
 * Of replies a worker has its share, and looks at its own connections, which
 * are a fair sample of all: they are handed out in turn. Of requests there is
 * one sum of all workers, and where it is too large the worker that has most of
 * them closes connections: whoever notices it tells that one. */
#include "net/conn_room.h"

#include "base/assert.h"
#include "net/conn.h"
#include "net/worker.h"

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

void
conn_rooms_init(struct conn_rooms *rooms, size_t max, uint64_t value_bytes_max)
{
    size_t values = (size_t)value_bytes_max * CONN_ROOM_VALUES_MIN;
    *rooms = (struct conn_rooms){.max = max < values ? values : max};
    mutex_init(&rooms->lock);
}

void
conn_rooms_fini(struct conn_rooms *rooms)
{
    if (rooms->max != 0) {
        mutex_fini(&rooms->lock);
    }
}

void
conn_room_init(struct conn_room *room, struct conn_rooms *rooms,
    struct worker *worker, unsigned n_workers, uint64_t value_bytes_max)
{
    size_t share =
        n_workers == 0 ? SIZE_MAX : CONN_ROOM_REPLIES_MAX / n_workers;
    size_t values = (size_t)value_bytes_max * CONN_ROOM_VALUES_MIN;
    share = share < CONN_ROOM_SHARE_MIN ? CONN_ROOM_SHARE_MIN : share;
    *room = (struct conn_room){
        .rooms = rooms, .replies_max = share < values ? values : share};
    if (rooms != NULL) {
        mutex_lock(&rooms->lock);
        room->index = atomic_load(&rooms->n);
        ASSERT(room->index < CONN_ROOMS_WORKERS_MAX);
        rooms->worker[room->index] = worker;
        atomic_store(&rooms->n, room->index + 1);
        mutex_unlock(&rooms->lock);
    }
}

void
conn_room_leave(struct conn_room *room)
{
    if (room->rooms != NULL) {
        ASSERT(room->used[CONN_ROOM_REQUESTS] == 0);
        mutex_lock(&room->rooms->lock);
        room->rooms->worker[room->index] = NULL;
        mutex_unlock(&room->rooms->lock);
    }
}

/* Bytes of a kind that are looked at together. relaxed, like the other orders
 * here: the numbers say nothing of other data, and what comes late is seen by
 * the next look. */
static size_t
sum_of(const struct conn_room *room, enum conn_room_kind kind)
{
    return kind == CONN_ROOM_REPLIES
        ? room->used[kind]
        : atomic_load_explicit(&room->rooms->total, memory_order_relaxed);
}

/* True where there is too much of a kind. */
static bool
is_over(const struct conn_room *room, enum conn_room_kind kind)
{
    if (kind == CONN_ROOM_REPLIES) {
        return room->used[kind] > room->replies_max;
    }
    return room->rooms != NULL && sum_of(room, kind) > room->rooms->max;
}

static size_t
peak_of(const struct conn_rooms *rooms)
{
    return atomic_load_explicit(&rooms->peak, memory_order_relaxed);
}

static void
trim_heap(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

/* Tells the others how many bytes of requests there are, instead of before. */
static void
publish(struct conn_room *room, size_t before)
{
    struct conn_rooms *rooms = room->rooms;
    size_t now = room->used[CONN_ROOM_REQUESTS];
    if (rooms != NULL && now != before) {
        atomic_store_explicit(
            &rooms->used[room->index], now, memory_order_relaxed);
        size_t total = atomic_fetch_add_explicit(
                           &rooms->total, now - before, memory_order_relaxed) +
            now - before;
        if (total > peak_of(rooms)) { /* two may be here: it is a hint */
            atomic_store_explicit(&rooms->peak, total, memory_order_relaxed);
        }
    }
}

void
conn_room_trim(struct conn_room *room)
{
    struct conn_rooms *rooms = room->rooms;
    if (rooms == NULL) {
        return;
    }
    if (room->must_trim) {
        trim_heap();
    }
    size_t peak = peak_of(rooms);
    size_t total = sum_of(room, CONN_ROOM_REQUESTS);
    /* one worker's task, and the next time: then all of it has been freed */
    room->must_trim = total < peak / 2 && peak - total >= CONN_ROOMS_TRIM &&
        atomic_compare_exchange_strong(&rooms->peak, &peak, total);
}

void
conn_room_note(struct conn_room *room, struct conn_place *place,
    enum conn_room_kind kind, size_t bytes)
{
    size_t before = room->used[CONN_ROOM_REQUESTS];
    room->used[place->kind] -= place->bytes;
    place->bytes = bytes < CONN_ROOM_COUNTS ? 0 : bytes;
    place->kind = (uint8_t)kind;
    room->used[kind] += place->bytes;
    publish(room, before);
    room->is_over =
        is_over(room, CONN_ROOM_REQUESTS) || is_over(room, CONN_ROOM_REPLIES);
    room->is_tight =
        room->used[CONN_ROOM_REPLIES] > room->replies_max / CONN_ROOM_TIGHT;
}

/* The one to go; NULL where there is none of that kind. */
static struct conn *
most_stalled(struct worker *worker, enum conn_room_kind kind)
{
    struct conn *found = NULL;
    for (struct conn *conn = worker->conns; conn != NULL; conn = conn->next) {
        if (conn->is_closing || conn->place.bytes == 0 ||
            conn->place.kind != kind) {
            continue;
        }
        if (found == NULL || conn->progress < found->progress) {
            found = conn;
        }
    }
    return found;
}

/* The worker that has most of all requests, and it is not that of room, is told
 * so. False: there is none. */
static bool
tell_largest(const struct conn_room *room)
{
    struct conn_rooms *rooms = room->rooms;
    unsigned n = atomic_load(&rooms->n);
    unsigned largest = room->index;
    size_t most = room->used[CONN_ROOM_REQUESTS];
    for (unsigned i = 0; i < n; i++) {
        size_t used =
            atomic_load_explicit(&rooms->used[i], memory_order_relaxed);
        if (used > most) {
            most = used;
            largest = i;
        }
    }
    if (largest == room->index) {
        return false;
    }
    mutex_lock(&rooms->lock); /* so that it does not end meanwhile */
    if (rooms->worker[largest] != NULL) {
        worker_mail_room(rooms->worker[largest]);
    }
    mutex_unlock(&rooms->lock);
    return true;
}

static void
clear_kind(struct worker *worker, enum conn_room_kind kind)
{
    struct conn_room *room = &worker->room;
    while (is_over(room, kind)) {
        if (kind == CONN_ROOM_REQUESTS && tell_largest(room)) {
            return;
        }
        struct conn *conn = most_stalled(worker, kind);
        if (conn == NULL || conn->place.bytes == sum_of(room, kind)) {
            return;
        }
        metric_add(&worker->metrics, METRIC_memory_kicks, 1);
        conn_close(conn);
    }
}

void
conn_room_clear(struct worker *worker)
{
    for (int kind = 0; kind < CONN_ROOM_KINDS; kind++) {
        clear_kind(worker, (enum conn_room_kind)kind);
    }
    worker->room.is_over = false; /* even where one that is alone has it all */
}

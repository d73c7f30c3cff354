/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that clients make the server keep: much of a request and not its
 * end, or much that was asked for and is not read. One connection has bounds
 * for that (conn.c); many of them together have them here.
 *
 * Each connection notes after each turn what it keeps. Before it sleeps the
 * worker closes connections until that is not too much: always the one whose
 * last progress (a request begun, or a write done) is the longest ago. A client
 * that sends and reads makes progress all the time, so it stays while hostile
 * ones go. Those that are many make room for each other only.
 *
 * Replies are bounded by worker. Each has a share, and looks at its own
 * connections, which are a fair sample of all: they are handed out in turn.
 * Replies are counted when they are there.
 *
 * Requests are bounded by process. A buffer asks before it grows. Where that
 * would be too much, the connection stops reading and waits, and tells the
 * worker that has most of them, which closes others. When these are freed,
 * those that wait read on, in their order. While there is much room, nobody
 * asks for what a read in the worker's own buffer leaves: so much is set aside
 * for each worker.
 *
 * What must hold: the worker's bytes of each kind are the sum of its
 * connections' places, and never less than any of them; a connection waits once
 * (conn_room_verify). */
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
    *rooms = (struct conn_rooms){.max = max < values ? values : max,
        .value_bytes_max = (size_t)value_bytes_max};
    atomic_init(&rooms->narrow_from, rooms->max);
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
        size_t aside = (size_t)CONN_ROOM_READ * (room->index + 1);
        atomic_store(
            &rooms->narrow_from, aside < rooms->max ? rooms->max - aside : 0);
        mutex_unlock(&rooms->lock);
    }
}

void
conn_room_leave(struct conn_room *room)
{
    if (room->rooms != NULL) {
        ASSERT(room->used[CONN_ROOM_REQUESTS] == 0);
        ASSERT(room->first_waiting == NULL);
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

/* The most that is waited for in one place. */
static size_t
most_wanted(struct conn_rooms *rooms)
{
    size_t most = 0;
    unsigned n = atomic_load(&rooms->n_waiting) == 0 ? 0 : rooms->n;
    for (unsigned i = 0; i < n; i++) {
        size_t wanted = atomic_load(&rooms->wanted[i]);
        most = wanted > most ? wanted : most;
    }
    return most;
}

/* True where there is too much of a kind, or too little room for who waits. */
static bool
is_over(const struct conn_room *room, enum conn_room_kind kind)
{
    if (kind == CONN_ROOM_REPLIES) {
        return room->used[kind] > room->replies_max;
    }
    return room->rooms != NULL &&
        sum_of(room, kind) + most_wanted(room->rooms) > room->rooms->max;
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

/* Says how large a buffer is that gets a mapping of its own. Those that grow
 * in the heap leave holes in it, so that it comes to half as much again; a
 * mapping costs a large value three times the CPU time of the heap. So: only
 * while there are many, and else as glibc would have it when it has seen the
 * largest buffer freed. glibc, which moves this limit by itself at a free,
 * lets it be moved while others allocate. */
static void
map_buffers(const struct conn_rooms *rooms, bool is_crowded)
{
#ifdef __GLIBC__
    enum { TRIM_LEAST = 128 << 10, MOST = 32 << 20 }; /* glibc's own */
    size_t least = 2 * rooms->value_bytes_max;
    least = least > MOST ? MOST : least < TRIM_LEAST ? TRIM_LEAST : least;
    (void)mallopt(
        M_MMAP_THRESHOLD, is_crowded ? CONN_ROOM_MAPPED : (int)least);
    (void)mallopt(M_TRIM_THRESHOLD, is_crowded ? TRIM_LEAST : 2 * (int)least);
#else
    (void)rooms;
    (void)is_crowded;
#endif
}

/* Bytes of requests have been freed: the workers whose connections wait look
 * at them again. Who begins to wait looks at kept once more afterwards (seq_cst
 * both), so that one of the two sees the other. */
static void
release(struct conn_room *room, size_t bytes)
{
    struct conn_rooms *rooms = room->rooms;
    size_t kept = atomic_fetch_sub(&rooms->kept, bytes);
    ASSERT(bytes <= kept);
    if (atomic_load(&rooms->n_waiting) == 0) {
        return;
    }
    unsigned n = atomic_load(&rooms->n);
    for (unsigned i = 0; i < n; i++) {
        if (i == room->index) {
            room->must_clear |= room->first_waiting != NULL;
        } else if (atomic_load(&rooms->wanted[i]) != 0) {
            mutex_lock(&rooms->lock); /* so that it does not end meanwhile */
            if (rooms->worker[i] != NULL) {
                worker__mail_room(rooms->worker[i]);
            }
            mutex_unlock(&rooms->lock);
        }
    }
}

/* One has grown to so many bytes, and all to kept. relaxed: hints. */
static void
note_growth(struct conn_rooms *rooms, size_t bytes, size_t kept)
{
    if (kept > peak_of(rooms)) {
        atomic_store_explicit(&rooms->peak, kept, memory_order_relaxed);
    }
    if (bytes >= CONN_ROOM_MAPPED && kept > rooms->max / CONN_ROOM_CROWD &&
        !atomic_load_explicit(&rooms->is_crowded, memory_order_relaxed) &&
        !atomic_exchange(&rooms->is_crowded, true)) {
        map_buffers(rooms, true);
    }
}

/* Tells the others how many bytes of requests there are, instead of before. */
static void
publish(struct conn_room *room, size_t before)
{
    size_t now = room->used[CONN_ROOM_REQUESTS];
    atomic_store_explicit(
        &room->rooms->used[room->index], now, memory_order_relaxed);
    atomic_fetch_add_explicit(
        &room->rooms->total, now - before, memory_order_relaxed);
}

bool
conn_room_take(struct conn_room *room, struct conn_place *place, size_t bytes)
{
    struct conn_rooms *rooms = room->rooms;
    place->wanted = 0;
    if (rooms == NULL || place->kind != CONN_ROOM_REQUESTS) {
        return true;
    }
    size_t kept = atomic_fetch_add(&rooms->kept, bytes) + bytes;
    if (kept > rooms->max) {
        place->wanted = bytes;
        release(room, bytes); /* another one may have seen it */
        return false;
    }
    size_t before = room->used[CONN_ROOM_REQUESTS];
    place->bytes += bytes;
    note_growth(rooms, place->bytes, kept);
    room->used[CONN_ROOM_REQUESTS] += bytes;
    publish(room, before);
    room->must_clear |= place->is_waiting; /* it need not any more */
    return true;
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
    size_t kept = atomic_load(&rooms->kept);
    if (kept < rooms->max / (2 * CONN_ROOM_CROWD) &&
        atomic_load(&rooms->is_crowded) &&
        atomic_exchange(&rooms->is_crowded, false)) {
        map_buffers(rooms, false);
    }
    /* one worker's task, and the next time: then all of it has been freed */
    room->must_trim = kept < peak / 2 && peak - kept >= CONN_ROOMS_TRIM &&
        atomic_compare_exchange_strong(&rooms->peak, &peak, kept);
}

/* What follows from what there is now. */
static void
look(struct conn_room *room)
{
    room->is_over =
        is_over(room, CONN_ROOM_REQUESTS) || is_over(room, CONN_ROOM_REPLIES);
    room->is_tight =
        room->used[CONN_ROOM_REPLIES] > room->replies_max / CONN_ROOM_TIGHT;
}

void
conn_room_note(struct conn_room *room, struct conn_place *place,
    enum conn_room_kind kind, size_t bytes)
{
    size_t before = room->used[CONN_ROOM_REQUESTS];
    ASSERT(place->bytes <= room->used[place->kind]);
    room->used[place->kind] -= place->bytes;
    place->bytes = bytes < CONN_ROOM_COUNTS ? 0 : bytes;
    place->kind = (uint8_t)kind;
    room->used[kind] += place->bytes;
    size_t now = room->used[CONN_ROOM_REQUESTS];
    if (room->rooms != NULL && now != before) {
        publish(room, before);
        if (now < before) {
            release(room, before - now);
        } else {
            note_growth(room->rooms, place->bytes,
                atomic_fetch_add(&room->rooms->kept, now - before) + now -
                    before);
        }
    }
    look(room);
}

/* Another one is the first that waits. */
static void
publish_wanted(struct conn_room *room)
{
    atomic_store(&room->rooms->wanted[room->index],
        room->first_waiting == NULL ? 0 : room->first_waiting->place.wanted);
}

static void
remove_waiting(struct conn_room *room, struct conn *conn)
{
    struct conn **link = &room->first_waiting;
    struct conn *before = NULL;
    if (!conn->place.is_waiting) {
        return;
    }
    while (*link != conn) {
        before = *link;
        link = &before->place.next_waiting;
    }
    *link = conn->place.next_waiting;
    conn->place.wanted = 0;
    if (room->last_waiting == conn) {
        room->last_waiting = before;
    }
    conn->place.is_waiting = false;
    unsigned n = atomic_fetch_sub(&room->rooms->n_waiting, 1);
    ASSERT(n > 0);
    publish_wanted(room);
}

void
conn_room_wait(struct conn_room *room, struct conn *conn)
{
    room->must_clear = true;
    if (!conn->place.is_waiting) { /* else it has read on by itself */
        conn->place.is_waiting = true;
        conn->place.next_waiting = NULL;
        if (room->first_waiting == NULL) {
            room->first_waiting = conn;
        } else {
            room->last_waiting->place.next_waiting = conn;
        }
        room->last_waiting = conn;
        atomic_fetch_add(&room->rooms->n_waiting, 1);
    }
    publish_wanted(room);
}

/* Those read on for which there is room, the first first. They ask again, and
 * may be refused again. */
static void
go_on_waiting(struct conn_room *room)
{
    size_t given = 0;
    while (room->first_waiting != NULL) {
        struct conn *conn = room->first_waiting;
        given += conn->place.wanted;
        if (atomic_load(&room->rooms->kept) + given > room->rooms->max) {
            return;
        }
        remove_waiting(room, conn);
        worker__ready(conn->worker, conn); /* a turn, and it reads again */
    }
}

void
conn_room_close(struct conn_room *room, struct conn *conn)
{
    struct conn_place *place = &conn->place;
    size_t before = room->used[CONN_ROOM_REQUESTS];
    remove_waiting(room, conn);
    ASSERT(place->bytes <= room->used[place->kind]);
    room->used[place->kind] -= place->bytes;
    if (place->kind == CONN_ROOM_REQUESTS && room->rooms != NULL) {
        place->leaving = place->bytes;
        publish(room, before);
    }
    place->bytes = 0;
    look(room);
}

void
conn_room_free(struct conn_room *room, struct conn_place *place)
{
    ASSERT(place->bytes == 0 && !place->is_waiting);
    if (place->leaving != 0) {
        release(room, place->leaving);
        place->leaving = 0;
    }
}

/* The one to go; NULL where there is none of that kind. */
static struct conn *
most_stalled(struct worker *worker, enum conn_room_kind kind)
{
    struct conn *found = NULL;
    for (struct conn *conn = worker->conns; conn != NULL; conn = conn->next) {
        if (conn_is_closing(conn) || conn->place.bytes == 0 ||
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
        worker__mail_room(rooms->worker[largest]);
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
conn_room_verify(const struct worker *worker)
{
    const struct conn_room *room = &worker->room;
    const struct conn *last = NULL;
    size_t used[CONN_ROOM_KINDS] = {0};
    for (const struct conn *conn = worker->conns; conn != NULL;
         conn = conn->next) {
        ASSERT(conn->place.kind < CONN_ROOM_KINDS);
        used[conn->place.kind] += conn->place.bytes;
    }
    for (int kind = 0; kind < CONN_ROOM_KINDS; kind++) {
        ASSERT(used[kind] == room->used[kind]);
    }
    for (const struct conn *conn = room->first_waiting; conn != NULL;
         conn = conn->place.next_waiting) {
        ASSERT(conn->place.is_waiting && !conn_is_closing(conn));
        last = conn;
    }
    ASSERT(room->last_waiting == last);
}

void
conn_room_clear(struct worker *worker)
{
    worker->room.must_clear = false;
    go_on_waiting(&worker->room);
    for (int kind = 0; kind < CONN_ROOM_KINDS; kind++) {
        clear_kind(worker, (enum conn_room_kind)kind);
    }
    worker->room.is_over = false; /* even where one that is alone has it all */
}

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
 * Requests are bounded by process: one sum of all workers. Before a buffer
 * grows, and before the next read where the last one has left too much, others
 * are closed until there is room, and what they kept is given back at once; so
 * no more comes on top than what one read of each worker leaves. A worker that
 * has its part of all closes its own; one that has less tells the one that has
 * most, and goes on meanwhile.
 *
 * What must hold: the worker's bytes of each kind are the sum of its
 * connections' places, and never less than any of them (conn_room_verify). */
#include "net/conn_room.h"

#include "base/assert.h"
#include "net/conn_priv.h"
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

/* True where more bytes would be too much of a kind. */
static bool
is_over(const struct conn_room *room, enum conn_room_kind kind, size_t more)
{
    if (kind == CONN_ROOM_REPLIES) {
        return room->used[kind] > room->replies_max;
    }
    return room->rooms != NULL && sum_of(room, kind) + more > room->rooms->max;
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
 * in the heap leave holes in it, so that it comes to half as much again
 * (hostile.test, with and without); a mapping costs a large value much of its
 * CPU time, for pages that come and go. So: only while there are many, and else
 * as glibc would have it when it has seen the largest buffer freed. glibc moves
 * this limit by itself at a free, and lets it be moved while others allocate.
 */
static void
map_buffers(const struct conn_rooms *rooms, bool is_crowded)
{
#ifdef __GLIBC__
    enum { TRIM_LEAST = 128 << 10, MOST = 32 << 20 }; /* glibc's own */
    enum { MAPPINGS_MAX = 16 << 10 }; /* a process may have some 65,000 */
    size_t least = 2 * rooms->value_bytes_max;
    least = least > MOST ? MOST : least < TRIM_LEAST ? TRIM_LEAST : least;
    (void)mallopt(
        M_MMAP_THRESHOLD, is_crowded ? CONN_ROOM_MAPPED : (int)least);
    (void)mallopt(M_MMAP_MAX, MAPPINGS_MAX);
    (void)mallopt(M_TRIM_THRESHOLD, is_crowded ? TRIM_LEAST : 2 * (int)least);
#else
    (void)rooms;
    (void)is_crowded;
#endif
}

static void
set_crowded(struct conn_rooms *rooms, bool is_crowded)
{
    mutex_lock(&rooms->lock); /* the last one's word is the one that counts */
    if (atomic_load(&rooms->is_crowded) != is_crowded) {
        atomic_store(&rooms->is_crowded, is_crowded);
        map_buffers(rooms, is_crowded);
    }
    mutex_unlock(&rooms->lock);
}

/* One has grown to so many bytes, and all to total. relaxed: hints. */
static void
note_growth(struct conn_rooms *rooms, size_t bytes, size_t total)
{
    if (total > peak_of(rooms)) { /* two may be here */
        atomic_store_explicit(&rooms->peak, total, memory_order_relaxed);
    }
    if (bytes >= CONN_ROOM_MAPPED && total > rooms->max / CONN_ROOM_CROWD &&
        !atomic_load_explicit(&rooms->is_crowded, memory_order_relaxed)) {
        set_crowded(rooms, true);
    }
}

/* Tells the others how many bytes of requests there are, instead of before. */
static void
publish(struct conn_room *room, const struct conn_place *place, size_t before)
{
    struct conn_rooms *rooms = room->rooms;
    size_t now = room->used[CONN_ROOM_REQUESTS];
    if (rooms != NULL && now != before) {
        atomic_store_explicit(
            &rooms->used[room->index], now, memory_order_relaxed);
        size_t total = atomic_fetch_add_explicit(
                           &rooms->total, now - before, memory_order_relaxed) +
            now - before;
        note_growth(rooms, place->bytes, total);
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
    if (total < rooms->max / (2 * CONN_ROOM_CROWD) &&
        atomic_load(&rooms->is_crowded)) {
        set_crowded(rooms, false);
    }
    /* one worker's task, and the next time: then all of it has been freed */
    room->must_trim = total < peak / 2 && peak - total >= CONN_ROOMS_TRIM &&
        atomic_compare_exchange_strong(&rooms->peak, &peak, total);
}

void
conn_room_note(struct conn_room *room, struct conn_place *place,
    enum conn_room_kind kind, size_t bytes)
{
    size_t before = room->used[CONN_ROOM_REQUESTS];
    ASSERT(room->used[place->kind] >= place->bytes);
    room->used[place->kind] -= place->bytes;
    place->bytes = bytes < CONN_ROOM_COUNTS ? 0 : bytes;
    place->kind = (uint8_t)kind;
    room->used[kind] += place->bytes;
    publish(room, place, before);
    room->is_over = is_over(room, CONN_ROOM_REQUESTS, 0) ||
        is_over(room, CONN_ROOM_REPLIES, 0);
    room->is_tight =
        room->used[CONN_ROOM_REPLIES] > room->replies_max / CONN_ROOM_TIGHT;
}

/* The one to go, other than but; NULL where there is none of that kind. */
static struct conn *
most_stalled(
    struct worker *worker, enum conn_room_kind kind, const struct conn *but)
{
    struct conn *found = NULL;
    for (struct conn *conn = worker->conns; conn != NULL; conn = conn->next) {
        if (conn == but || conn_is_closing(conn) || conn->place.bytes == 0 ||
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
 * so, once until it has looked. False: there is none. */
static bool
notify_largest(const struct conn_room *room)
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
    if (!atomic_exchange(&rooms->is_told[largest], true)) {
        mutex_lock(&rooms->lock); /* so that it does not end meanwhile */
        if (rooms->worker[largest] != NULL) {
            worker__mail_room(rooms->worker[largest]);
        }
        mutex_unlock(&rooms->lock);
    }
    return true;
}

/* True where the worker has its part of all requests, or would have with more
 * bytes: then it closes its own, whoever has most. */
static bool
has_share(const struct conn_room *room, size_t more)
{
    return room->used[CONN_ROOM_REQUESTS] + more >
        room->rooms->max / atomic_load(&room->rooms->n);
}

/* Closes it, and gives its request back at once: libuv closes later. */
static void
kick(struct conn *conn)
{
    metric_add(&conn->worker->metrics, METRIC_memory_kicks, 1);
    conn_close(conn);
    conn__give_back(conn);
}

static void
clear_kind(struct worker *worker, enum conn_room_kind kind,
    const struct conn *but, size_t more)
{
    struct conn_room *room = &worker->room;
    while (is_over(room, kind, more)) {
        if (kind == CONN_ROOM_REQUESTS && !has_share(room, more) &&
            notify_largest(room)) {
            return;
        }
        struct conn *conn = most_stalled(worker, kind, but);
        if (conn == NULL || conn->place.bytes == sum_of(room, kind)) {
            return;
        }
        kick(conn);
    }
}

void
conn_room_verify(const struct worker *worker)
{
    const struct conn_room *room = &worker->room;
    size_t used[CONN_ROOM_KINDS] = {0};
    for (const struct conn *conn = worker->conns; conn != NULL;
         conn = conn->next) {
        ASSERT(conn->place.kind < CONN_ROOM_KINDS);
        used[conn->place.kind] += conn->place.bytes;
    }
    for (int kind = 0; kind < CONN_ROOM_KINDS; kind++) {
        ASSERT(used[kind] == room->used[kind]);
    }
}

void
conn_room_make(struct worker *worker, const struct conn *but, size_t more)
{
    struct conn_room *room = &worker->room;
    if (room->rooms != NULL) {
        atomic_store(&room->rooms->is_told[room->index], false);
    }
    clear_kind(worker, CONN_ROOM_REQUESTS, but, more);
    clear_kind(worker, CONN_ROOM_REPLIES, but, 0);
    room->is_over = false; /* even where one that is alone has it all */
}

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
 * Requests are bounded by process. Half of the bytes are parts of the workers'
 * own, one each; the others are one pool, of which a worker takes what it needs
 * beyond its part, and gives it back. It does so before a buffer grows; where
 * the pool has too little, others of the worker's are closed until there is
 * room, and what they kept is freed before it is given back. Where there are
 * no others, the one that grows is closed itself. That cannot be while what it
 * keeps is within the part, and one of the largest values always is. So no
 * worker waits for another one, or makes its clients go.
 *
 *   max:  | own of 0 | own of 1 | ... | pool: taken by 1, taken by 0, free |
 *
 * What one read leaves is kept before there is room for it, and what a client
 * has left behind replies is counted here when it has read these; then others
 * are closed before the next read, or sleep. So no more comes on top than what
 * one read of each worker leaves (128 KiB), and what was there before.
 *
 * What must hold: the worker's bytes of each kind are the sum of its
 * connections' places, and never less than any of them; it has taken of the
 * pool what its requests are more than its part (where it has less, is_over is
 * set); all workers have taken no more than there is (conn_room_verify). */
#include "net/conn_room.h"

#include "base/assert.h"
#include "net/conn_priv.h"
#include "net/worker.h"
#include "proto/text.h"

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Bytes that the buffer of a request with the largest value may have. */
static size_t
buffer_max(uint64_t value_bytes_max)
{
    size_t bytes = buf_capacity_for(
        0, (size_t)value_bytes_max + TEXT_LINE_MAX + WORKER_READ_BYTES);
    ASSERT(bytes > value_bytes_max);
    return bytes;
}

void
conn_rooms_init(struct conn_rooms *rooms, size_t max, uint64_t value_bytes_max,
    unsigned n_workers)
{
    size_t least = buffer_max(value_bytes_max);
    size_t own = max / 2 / n_workers;
    own = own < least ? least : own;
    max = max < own * n_workers ? own * n_workers : max;
    *rooms = (struct conn_rooms){.max = max,
        .own = own,
        .pool = max - own * n_workers,
        .value_bytes_max = (size_t)value_bytes_max};
    mutex_init(&rooms->lock);
}

void
conn_rooms_fini(struct conn_rooms *rooms)
{
    if (rooms->max != 0) {
        ASSERT(atomic_load(&rooms->total) == 0);
        ASSERT(atomic_load(&rooms->taken) == 0);
        mutex_fini(&rooms->lock);
    }
}

void
conn_room_init(struct conn_room *room, struct conn_rooms *rooms,
    unsigned n_workers, uint64_t value_bytes_max)
{
    size_t share =
        n_workers == 0 ? SIZE_MAX : CONN_ROOM_REPLIES_MAX / n_workers;
    size_t values = (size_t)value_bytes_max * CONN_ROOM_VALUES_MIN;
    share = share < CONN_ROOM_SHARE_MIN ? CONN_ROOM_SHARE_MIN : share;
    *room = (struct conn_room){
        .rooms = rooms, .replies_max = share < values ? values : share};
}

/* How many bytes of requests the worker needs of the pool. */
static size_t
excess_of(const struct conn_room *room, size_t more)
{
    size_t bytes = room->used[CONN_ROOM_REQUESTS] + more;
    return bytes > room->rooms->own ? bytes - room->rooms->own : 0;
}

/* Has the worker take of the pool, or give back, so that it may keep more bytes
 * of requests than it does. False where it can not: nothing changes. */
static bool
take(struct conn_room *room, size_t more)
{
    struct conn_rooms *rooms = room->rooms;
    size_t need = rooms == NULL ? 0 : excess_of(room, more);
    if (need > room->taken) {
        size_t step = need - room->taken;
        size_t taken = atomic_load_explicit(
            &rooms->taken, memory_order_relaxed); /* a guess */
        do {
            ASSERT(taken <= rooms->pool);
            if (step > rooms->pool - taken) {
                return false;
            }
            /* acquire: who gave it back has left the total before */
        } while (!atomic_compare_exchange_weak_explicit(&rooms->taken, &taken,
            taken + step, memory_order_acquire, memory_order_relaxed));
    } else if (need < room->taken) {
        size_t before = atomic_fetch_sub_explicit(
            &rooms->taken, room->taken - need, memory_order_release);
        ASSERT(before >= room->taken && before <= rooms->pool);
    }
    room->taken = need;
    return true;
}

static bool
has_many_replies(const struct conn_room *room)
{
    return room->used[CONN_ROOM_REPLIES] > room->replies_max;
}

/* relaxed, here and for the peak: the numbers say nothing of other data, and
 * what comes late is seen by the next look. */
static size_t
total_of(const struct conn_rooms *rooms)
{
    return atomic_load_explicit(&rooms->total, memory_order_relaxed);
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

/* Adds to the total how many bytes of requests there are, instead of before. */
static void
publish(struct conn_room *room, const struct conn_place *place, size_t before)
{
    struct conn_rooms *rooms = room->rooms;
    size_t now = room->used[CONN_ROOM_REQUESTS];
    if (rooms != NULL && now != before) {
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
    size_t total = total_of(rooms);
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
    room->is_over = !take(room, 0) || has_many_replies(room);
    room->is_tight =
        room->used[CONN_ROOM_REPLIES] > room->replies_max / CONN_ROOM_TIGHT;
}

/* The one to go, other than but; NULL where there is none of that kind. One
 * whose request is with the store cannot give it back. */
static struct conn *
most_stalled(
    struct worker *worker, enum conn_room_kind kind, const struct conn *but)
{
    struct conn *found = NULL;
    for (struct conn *conn = worker->conns; conn != NULL; conn = conn->next) {
        if (conn == but || conn->place.bytes == 0 ||
            conn->place.kind != kind ||
            (kind == CONN_ROOM_REQUESTS && conn->is_parked)) {
            continue;
        }
        if (conn_is_closing(conn)) {
            return conn;
        }
        if (found == NULL || conn->progress < found->progress) {
            found = conn;
        }
    }
    return found;
}

/* Closes it, and gives its request back at once: libuv closes later. */
static void
kick(struct conn *conn)
{
    if (!conn_is_closing(conn)) {
        metric_add(&conn->worker->metrics, METRIC_memory_kicks, 1);
        conn_close(conn);
    }
    conn__give_back(conn);
}

static bool
clear_requests(struct worker *worker, const struct conn *but, size_t more)
{
    while (!take(&worker->room, more)) {
        struct conn *conn = most_stalled(worker, CONN_ROOM_REQUESTS, but);
        if (conn == NULL) {
            return false;
        }
        kick(conn);
    }
    return true;
}

/* One that has all there is may stay. */
static void
clear_replies(struct worker *worker, const struct conn *but)
{
    const struct conn_room *room = &worker->room;
    while (has_many_replies(room)) {
        struct conn *conn = most_stalled(worker, CONN_ROOM_REPLIES, but);
        if (conn == NULL ||
            conn->place.bytes == room->used[CONN_ROOM_REPLIES]) {
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
    if (room->rooms != NULL) {
        size_t excess = excess_of(room, 0);
        size_t taken = atomic_load(&room->rooms->taken);
        ASSERT(
            room->taken == excess || (room->taken < excess && room->is_over));
        ASSERT(room->taken <= taken && taken <= room->rooms->pool);
    }
}

bool
conn_room_make(struct worker *worker, const struct conn *but, size_t more)
{
    bool has_room = clear_requests(worker, but, more);
    clear_replies(worker, but);
    if (!has_room && but != NULL) {
        metric_add(&worker->metrics, METRIC_memory_kicks, 1);
    }
    worker->room.is_over = !has_room;
    return has_room;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that clients can make a worker keep: they send much of a request
 * and not its end, or ask for much and do not read it. One connection has
 * bounds for that (conn.c); many of them together have them here.
 *
 * Each connection notes after each turn what it keeps. Before the worker
 * sleeps it looks whether that is too much, and closes connections until it is
 * not: always the one whose last progress (a request begun, or a write done)
 * is the longest ago. A client that does send and read makes progress all the
 * time, so it stays while hostile ones go; and those that are many make room
 * for each other only. A worker looks at its own connections, which are a fair
 * sample of all: they are handed out in turn. */
#include "net/conn_room.h"

#include "net/conn.h"
#include "net/worker.h"

void
conn_room_init(
    struct conn_room *room, unsigned n_workers, uint64_t value_bytes_max)
{
    static const size_t all[] = {
#define X(name, bytes, text) bytes,
        CONN_ROOMS(X)
#undef X
    };
    *room = (struct conn_room){0};
    for (int kind = 0; kind < CONN_ROOM_KINDS; kind++) {
        size_t share = n_workers == 0 ? SIZE_MAX : all[kind] / n_workers;
        size_t values = (size_t)value_bytes_max * CONN_ROOM_VALUES_MIN;
        share = share < CONN_ROOM_SHARE_MIN ? CONN_ROOM_SHARE_MIN : share;
        room->max[kind] = share < values ? values : share;
    }
}

static bool
is_over(const struct conn_room *room, enum conn_room_kind kind)
{
    return room->used[kind] > room->max[kind];
}

void
conn_room_note(struct conn_room *room, struct conn_place *place,
    enum conn_room_kind kind, size_t bytes)
{
    room->used[place->kind] -= place->bytes;
    place->bytes = bytes < CONN_ROOM_COUNTS ? 0 : bytes;
    place->kind = (uint8_t)kind;
    room->used[kind] += place->bytes;
    room->is_over =
        is_over(room, CONN_ROOM_REQUESTS) || is_over(room, CONN_ROOM_REPLIES);
    room->is_tight = room->used[CONN_ROOM_REPLIES] >
        room->max[CONN_ROOM_REPLIES] / CONN_ROOM_TIGHT;
}

/* The one to go; NULL where there is only one of that kind, or none. */
static struct conn *
most_stalled(struct worker *worker, enum conn_room_kind kind)
{
    struct conn *found = NULL;
    unsigned n = 0;
    for (struct conn *conn = worker->conns; conn != NULL; conn = conn->next) {
        if (conn->is_closing || conn->place.bytes == 0 ||
            conn->place.kind != kind) {
            continue;
        }
        n++;
        if (found == NULL || conn->progress < found->progress) {
            found = conn;
        }
    }
    return n > 1 ? found : NULL;
}

static void
clear_kind(struct worker *worker, enum conn_room_kind kind)
{
    while (is_over(&worker->room, kind)) {
        struct conn *conn = most_stalled(worker, kind);
        if (conn == NULL) {
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

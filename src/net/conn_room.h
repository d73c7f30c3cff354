/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_CONN_ROOM_H
#define NET_CONN_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much memory the connections of a worker may take together while they
 * wait for their clients. The worker's thread only. */

enum {
    CONN_ROOM_COUNTS = 4 << 10, /* less of a connection is not counted */
    CONN_ROOM_TIGHT = 4         /* from 1 / 4 of the limit on a connection is
                                 * given less, see conn.c */
};

/* Of all workers together; each has its share, but at least
 * CONN_ROOM_SHARE_MIN, and room for four of the largest values. With what a
 * heap loses, and with the replies of the turns under way, which are not
 * counted, unread replies stay below 64 MiB. */
#define CONN_ROOMS(X)                                                         \
    X(REQUESTS, 256 << 20, "requests that have not wholly arrived")           \
    X(REPLIES, 48 << 20, "replies that are not read, and requests behind them")

enum conn_room_kind {
#define X(name, bytes, text) CONN_ROOM_##name,
    CONN_ROOMS(X)
#undef X
        CONN_ROOM_KINDS
};

enum { CONN_ROOM_SHARE_MIN = 12 << 20, CONN_ROOM_VALUES_MIN = 4 };

/* One worker's: bytes in use, and the most there may be; SIZE_MAX: no limit.
 * Each turn of a connection looks at what follows from them. */
struct conn_room {
    size_t used[CONN_ROOM_KINDS];
    size_t max[CONN_ROOM_KINDS];
    bool is_over;  /* more is in use than there may be, of either kind */
    bool is_tight; /* so much is in use that new replies are to be few */
};

/* What of it one connection has. All zero: nothing. */
struct conn_place {
    size_t bytes;
    uint8_t kind; /* enum conn_room_kind */
};

/* Makes an empty room: the share of one of n_workers (0: without limits). */
void conn_room_init(
    struct conn_room *room, unsigned n_workers, uint64_t value_bytes_max);

/* The connection at place now has bytes of a kind. */
void conn_room_note(struct conn_room *room, struct conn_place *place,
    enum conn_room_kind kind, size_t bytes);

struct worker;

/* Closes connections while more is in use than there may be: first the one
 * whose client has let it wait for the longest time. One that is alone may
 * stay. Not while the worker's connections are gone through. */
void conn_room_clear(struct worker *worker);

#endif

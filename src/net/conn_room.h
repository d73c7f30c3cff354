/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_CONN_ROOM_H
#define NET_CONN_ROOM_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much memory connections may take together while they wait for their
 * clients: for requests that have not wholly arrived, all of the process; for
 * replies that are not read, and the requests behind them, those of a worker.
 * The worker's thread only, but for struct conn_rooms. */

enum {
    CONN_ROOM_COUNTS = 4 << 10, /* less of a connection is not counted */
    CONN_ROOM_CROWD = 8, /* from 1 / 8 of the limit of requests on a buffer
                          * gets a mapping of its own, */
    CONN_ROOM_MAPPED = 32 << 10, /* if it is so large */
    CONN_ROOM_TIGHT = 4,         /* from 1 / 4 of the limit of replies on a
                                 * connection is given less, see conn.c */
    CONN_ROOM_VALUES_MIN = 4,    /* of the largest values, a worker's share of
                                  * replies has room for so many */
    CONN_ROOM_REPLIES_MAX = 48 << 20, /* of all workers; each has its share, */
    CONN_ROOM_SHARE_MIN = 12 << 20,   /* but at least this. With what a heap
                                       * loses, and with the replies of the
                                       * turns under way, which are not
                                       * counted, they stay below 64 MiB */
    CONN_ROOMS_TRIM = 16 << 20        /* given back: worth to trim the heap */
};

enum conn_room_kind { CONN_ROOM_REQUESTS, CONN_ROOM_REPLIES, CONN_ROOM_KINDS };

struct conn;
struct worker;

/* The requests of all workers. */
struct conn_rooms {
    size_t max;              /* bytes; read-only, like the next */
    size_t own;              /* each worker's own part of them */
    size_t pool;             /* the others, for whoever needs more */
    size_t value_bytes_max;  /* of one */
    _Atomic size_t taken;    /* of the pool, by all workers; <= pool */
    _Atomic size_t peak;     /* the highest total since the heap was trimmed */
    _Atomic size_t total;    /* the sum of what the workers use */
    _Atomic bool is_crowded; /* see CONN_ROOM_CROWD; changed under lock */
    struct mutex lock;       /* of is_crowded */
};

/* Bytes for requests of n_workers (1 or more): max, or where that is more the
 * buffer of a request with the largest value for each of them. Before there are
 * workers. */
void conn_rooms_init(struct conn_rooms *rooms, size_t max,
    uint64_t value_bytes_max, unsigned n_workers);
/* Behind the last worker. All zero: there has been none. */
void conn_rooms_fini(struct conn_rooms *rooms);

/* One worker's: bytes in use, and the most there may be of replies; SIZE_MAX:
 * no limit. Each turn of a connection looks at what follows from them. */
struct conn_room {
    struct conn_rooms *rooms; /* NULL: requests have no limit */
    size_t used[CONN_ROOM_KINDS];
    size_t taken; /* of the pool of rooms, for requests */
    size_t replies_max;
    bool is_over;   /* more is in use than there may be, of either kind */
    bool is_tight;  /* so much is in use that new replies are to be few */
    bool must_trim; /* the heap, the next time */
};

/* What of it one connection has. All zero: nothing. */
struct conn_place {
    size_t bytes;
    uint8_t kind; /* enum conn_room_kind */
};

/* Makes an empty room: the share of one of n_workers (0: without limits). rooms
 * may be NULL. The thread that starts the workers. */
void conn_room_init(struct conn_room *room, struct conn_rooms *rooms,
    unsigned n_workers, uint64_t value_bytes_max);

/* The connection at place now has bytes of a kind. */
void conn_room_note(struct conn_room *room, struct conn_place *place,
    enum conn_room_kind kind, size_t bytes);

/* Where much less is kept for requests than was before, gives the memory back
 * to the system: the heap keeps it, in pieces. Takes up to 0.5 ms a MiB.
 * To be called from time to time. */
void conn_room_trim(struct conn_room *room);

/* Closes connections, but not that one (NULL: any), while more is in use than
 * there may be, or than lets it keep so many more bytes of a request: first the
 * one whose client has let it wait for the longest time; what they kept is
 * freed at once. One that has all replies there are may stay. False: there is
 * no room for more, since nobody else is left to go; then but is counted as one
 * that goes, and the caller lets it read nothing and closes it. True: the bytes
 * are the worker's until the next conn_room_note.
 * Not while the worker's connections are gone through, and not in a turn of
 * another one. */
bool conn_room_make(
    struct worker *worker, const struct conn *but, size_t more);

/* Asserts that the worker's bytes in use are those of its connections, and that
 * it has taken as much of the pool as they need, and no more than there is. */
void conn_room_verify(const struct worker *worker);

#endif

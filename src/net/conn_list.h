/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_CONN_LIST_H
#define NET_CONN_LIST_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Connections as other threads may see them, for `stats conns`. Each worker
 * has a list and puts its connections on it; a listed socket is open. */

/* The names are memcached's. */
#define CONN_STATES(X)                                                        \
    X(LISTENING, "conn_listening", "accepts connections")                     \
    X(READ, "conn_read", "waits for a command")                               \
    X(PARSE_CMD, "conn_parse_cmd", "has its turn")                            \
    X(NREAD, "conn_nread", "waits for the rest of a command")                 \
    X(SWALLOW, "conn_swallow", "waits for bytes that are skipped")            \
    X(MWRITE, "conn_mwrite", "waits for the client to read")                  \
    X(IO_QUEUE, "conn_io_queue", "waits for the store, or for the log")       \
    X(CLOSING, "conn_closing", "ends")

enum conn_state {
#define X(name, text, about) CONN_STATE_##name,
    CONN_STATES(X)
#undef X
};

struct watch_peer; /* session/watch.h */

enum { CONN_ADDR_BYTES = 336 /* with the NUL; of a path, encoded */ };

struct conn_entry {
    struct conn_entry *prev, *next; /* under the list's lock */
    int fd;                         /* read-only while it is listed */
    bool is_tls;                    /* likewise */
    /* written by the worker, read by any thread: */
    _Atomic uint8_t state;    /* enum conn_state */
    _Atomic uint8_t verb;     /* enum latency_verb: of what was last answered;
                               * LATENCY_VERB_COUNT: nothing was */
    _Atomic bool is_unwanted; /* it is to be closed; set under the lock */
    _Atomic uint64_t last_command_ns; /* clock_monotonic_ns, about */
    _Atomic uint64_t pass;            /* struct access's; 0: nobody's */
    _Atomic uint64_t bytes_in;        /* of commands that are done */
    _Atomic uint64_t bytes_out;       /* of replies */
    uint64_t since_ns; /* as last_command_ns, of its begin; read-only */
};

struct conn_list {
    struct mutex lock;
    struct conn_entry *first;
};

/* What is told of a connection. */
struct conn_shown {
    int fd;
    enum conn_state state;
    uint64_t last_command_ns;
    uint64_t pass; /* 0: of no login */
    uint64_t bytes_in, bytes_out;
    uint64_t since_ns;
    unsigned verb;
    bool is_tls;
    char addr[CONN_ADDR_BYTES];        /* the client's */
    char listen_addr[CONN_ADDR_BYTES]; /* where it has connected to */
};

void conn_list__init(struct conn_list *list);
void conn_list__fini(struct conn_list *list); /* nothing is listed any more */

/* Puts entry, whose socket is fd and whose is_tls is set, on the list; takes it
 * off, before the socket is closed. The thread that owns the entry. */
void conn_list__add(
    struct conn_list *list, struct conn_entry *entry, int fd, uint64_t now_ns);
void conn_list__remove(struct conn_list *list, struct conn_entry *entry);

/* Calls each_fn for each connection, with the list locked: whoever opens or
 * closes one waits meanwhile. Some microseconds each. Any thread. */
void conn_list_each(struct conn_list *list,
    void (*each_fn)(void *context, const struct conn_shown *shown),
    void *context);

/* Marks the connection with that socket as unwanted: false where there is none.
 * Its worker has to be told. Any thread. */
bool conn_list__mark(struct conn_list *list, int fd);

/* The socket's own address as memcached writes it: tcp:HOST:PORT,
 * tcp6:[HOST]:PORT or unix:PATH. Any thread. */
void conn_list_own_addr(int fd, char text[CONN_ADDR_BYTES]);

/* Likewise the address of who came, as it was then: peer's, and the path of a
 * Unix socket that fd is. "unknown" where peer is NULL. */
void conn_list_peer_addr(
    const struct watch_peer *peer, int fd, char text[CONN_ADDR_BYTES]);

/* The name of a state; static storage. */
const char *conn_state_name(enum conn_state state);

/* Notes what the entry's connection does. The thread that owns it. */
static inline void
conn_entry_note(struct conn_entry *entry, enum conn_state state)
{
    /* relaxed: to be shown only */
    atomic_store_explicit(&entry->state, (uint8_t)state, memory_order_relaxed);
}

/* Notes what a turn has taken and answered. The thread that owns it. */
static inline void
conn_entry_note_bytes(struct conn_entry *entry, uint64_t in, uint64_t out)
{
    /* relaxed: to be shown only */
    atomic_store_explicit(&entry->bytes_in,
        atomic_load_explicit(&entry->bytes_in, memory_order_relaxed) + in,
        memory_order_relaxed);
    atomic_store_explicit(&entry->bytes_out,
        atomic_load_explicit(&entry->bytes_out, memory_order_relaxed) + out,
        memory_order_relaxed);
}

/* Notes that a command has begun. */
static inline void
conn_entry_note_command(struct conn_entry *entry, uint64_t now_ns)
{
    /* relaxed: to be shown only */
    atomic_store_explicit(
        &entry->last_command_ns, now_ns, memory_order_relaxed);
}

#endif

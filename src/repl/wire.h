/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_WIRE_H
#define REPL_WIRE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct tls; /* net/tls.h */
struct tls_stream;

/* A connected socket of a loop, whose bytes somebody else reads and writes when
 * it says that there may be some, or room. At most one frame waits to be
 * written: who sends asks for room first. All on the loop's thread. */

enum {
    WIRE_MAGIC = 0x65726977,
    WIRE_READ_BYTES = 256 << 10,  /* taken at a time, at most */
    WIRE_READ_LEAST = 48 << 10,   /* as much room a reader has */
    WIRE_RECORD_BYTES = 16 << 10, /* of TLS, taken at a time */
    WIRE_KEPT_BYTES = 512 << 10,  /* a larger empty buffer is given back */
    WIRE_LINGER_MS = 1000         /* see wire_end */
};

#define WIRE_STATES(X)                                                        \
    X(OPEN, "it reads and writes")                                            \
    X(ENDING, "what waits is written, then the other end is told")            \
    X(LINGERING, "the other end knows; what it sends is dropped")             \
    X(CLOSED, "uv_close has been called")

enum wire_state {
#define X(name, text) WIRE_##name,
    WIRE_STATES(X)
#undef X
        WIRE_STATES_N
};

struct wire {
    uint32_t magic; /* WIRE_MAGIC */
    enum wire_state state;
    uv_poll_t poll;
    uv_timer_t timer; /* of LINGERING */
    int fd;
    int events;             /* that are waited for */
    unsigned n_open;        /* handles that libuv is not through with */
    bool is_reading;        /* bytes are waited for */
    bool has_failed;        /* nothing is read or written any more */
    const char *why;        /* then; static storage */
    struct tls_stream *tls; /* NULL: plain bytes */
    bool is_shaking;        /* there is a handshake to be done first */
    char *records;          /* owned, WIRE_RECORD_BYTES; with TLS */
    struct buf out;         /* that the socket has not taken */
    size_t out_at;          /* of these, already written */
    uint64_t bytes_in, bytes_out;
    /* There may be bytes to read, or room again, or it has failed. */
    void (*moved_fn)(struct wire *wire);
    /* Nobody uses it any more; it may be freed. */
    void (*closed_fn)(struct wire *wire);
};

/* Takes over fd, which never blocks; also where it fails: it is closed then.
 * tls: of which it is a client, or that has certificates that the other end is
 * to know; NULL: none. It does not read yet. *wire is all zero but for moved_fn
 * and closed_fn. 0, ERR_NO_MEMORY or ERR_SYSTEM. */
int wire_open(struct wire *wire, uv_loop_t *loop, int fd, struct tls *tls,
    bool is_client);

/* Bytes are waited for from now on, or no more. */
void wire_read_on(struct wire *wire, bool is_reading);

/* Reads up to size bytes (WIRE_READ_LEAST or more), of what is there. *len is 0
 * where nothing is. False where no more will come: wire->why; then too *len
 * bytes have come. */
bool wire_read(struct wire *wire, uint8_t *bytes, size_t size, size_t *len);

/* True where a frame may be sent. */
static inline bool
wire_has_room(const struct wire *wire)
{
    return wire->state == WIRE_OPEN && !wire->has_failed &&
        !wire->is_shaking && wire->out.len == wire->out_at;
}

/* Sends len bytes, of which a copy is made where the socket has no room for
 * all. wire_has_room. Where it fails nobody is told but by has_failed. */
void wire_send(struct wire *wire, const uint8_t *bytes, size_t len);

/* Writes what waits, says that nothing more comes, and closes when the other
 * end has read that, or WIRE_LINGER_MS later: to close at once where something
 * has come that was not read takes from it what is on its way. */
void wire_end(struct wire *wire);

/* Closes it now. closed_fn comes later. Once more is fine. */
void wire_close(struct wire *wire);

#endif

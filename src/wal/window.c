/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a file through one block of memory. What is left of the last piece
 * when more is needed moves to the front, and the room behind it is filled;
 * that is at most WINDOW_NEED_MAX bytes moved for WINDOW_PIECE read, and with
 * batches of the usual size some per cent of that.
 *
 *   room  |  left over  | read now                    |
 *         0             n                             WINDOW_ROOM
 *
 * Invariant: bytes[0..n) is what the file has from at on, and at + n is not
 * beyond end. */
#include "wal/window.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

int
window_init(struct window *window, struct disk *disk)
{
    *window = (struct window){.disk = disk, .fd = -1};
    window->room = malloc(WINDOW_ROOM);
    window->bytes = window->room;
    return window->room == NULL ? ERR_NO_MEMORY : 0;
}

void
window_fini(struct window *window)
{
    free(window->room);
    *window = (struct window){.fd = -1};
}

void
window_open(struct window *window, int fd, uint64_t at, uint64_t end)
{
    ASSERT(at <= end);
    window->fd = fd;
    window->at = at;
    window->end = end;
    window->bytes = window->room;
    window->n = 0;
}

/* Fills the room behind what is left over. */
static int
fill(struct window *window)
{
    uint64_t from = window->at + window->n;
    size_t want = WINDOW_ROOM - window->n;
    size_t got = 0;
    int error;

    memmove(window->room, window->bytes, window->n);
    window->bytes = window->room;
    if (want > window->end - from) {
        want = (size_t)(window->end - from);
    }
    error = window->disk->calls->read(
        window->disk, window->fd, window->room + window->n, want, from, &got);
    if (error != 0) {
        return error;
    }
    ASSERT(got <= want);
    window->n += got;
    window->n_read += got;
    if (got < want) {
        window->end = from + got; /* the file is shorter */
    }
    return 0;
}

int
window_need(struct window *window, size_t need)
{
    ASSERT(need <= WINDOW_NEED_MAX);
    if (window->n >= need || window->at + window->n == window->end) {
        return 0;
    }
    return fill(window);
}

void
window_skip(struct window *window, size_t len)
{
    ASSERT(len <= window->n);
    window->at += len;
    window->bytes += len;
    window->n -= len;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WINDOW_H
#define WAL_WINDOW_H

#include "base/disk.h"
#include "wal/frame.h"

#include <stddef.h>
#include <stdint.h>

/* A window on a file that is read from front to back, in large pieces: at
 * least as many bytes as are asked for lie side by side, and the memory is the
 * same for files of any size. One thread at a time. */

enum {
    WINDOW_NEED_MAX = FRAME_BATCH_BYTES + FRAME_PAYLOAD_MAX,
    WINDOW_PIECE = 1 << 20, /* read at a time, or more */
    WINDOW_ROOM = WINDOW_NEED_MAX + WINDOW_PIECE
};

struct window {
    struct disk *disk;
    int fd;               /* the caller's */
    uint64_t at;          /* offset of bytes[0] in the file */
    uint64_t end;         /* offset that is not read beyond */
    const uint8_t *bytes; /* in room */
    size_t n;             /* bytes there are */
    uint64_t n_read;      /* from the disk, in all files */
    uint8_t *room;        /* owned; WINDOW_ROOM */
};

/* 0 or ERR_NO_MEMORY. */
int window_init(struct window *window, struct disk *disk);
void window_fini(struct window *window);

/* Opens the window on bytes at..end of a file. */
void window_open(struct window *window, int fd, uint64_t at, uint64_t end);

/* Sees to it that n >= need (<= WINDOW_NEED_MAX), unless the file, or what is
 * to be read of it, ends before: then end is at + n. 0 or an errno value.
 * bytes moves. */
int window_need(struct window *window, size_t need);

/* Moves on by len <= n bytes. */
void window_skip(struct window *window, size_t len);

#endif

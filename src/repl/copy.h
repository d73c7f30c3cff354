/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_COPY_H
#define REPL_COPY_H

#include "repl/stream.h"

#include <stdint.h>

/* A snapshot of a primary's directory on its way to a replica
 * (doc/format-stream.md): repl/copy_out.h is the primary's end, repl/copy_in.h
 * the replica's. Each has a thread of its own that waits for the disk, with the
 * lowest priority; who has the socket hands frames over and asks what is next,
 * and none of that waits. Frames in between are the link's (repl/link.h), which
 * keeps both ends alive while the other's thread reads files for long.
 *
 * Memory of an end, besides the list of files and the manifest: two pieces of
 * 256 KiB, 1 MB of HAVE while that is on its way, and what the disk's readers
 * need to check a directory. */

enum { COPY_PIECES = 2 }; /* that are read ahead, or wait to be written */

enum copy_next {
    COPY_NOTHING, /* wake_fn will be called when that changes */
    COPY_FRAME,   /* *piece is to be sent */
    COPY_DONE,
    COPY_FAILED /* the caller's figures say why; the logger has been told */
};

/* A frame without its head: a body of len bytes stands at
 * frame + STREAM_HEAD_BYTES. */
struct copy_piece {
    enum stream_type type;
    uint32_t len;
    uint8_t *frame; /* the copy's own, until it is asked for what is next */
};

/* Something is next, or there is room again. Called by the copy's thread, or by
 * a store's; must not wait, nor call the copy. */
typedef void copy_wake_fn(void *context);

/* How far it is. */
struct copy_figures {
    uint64_t files, bytes;             /* of the snapshot; 0: not known yet */
    uint64_t files_kept, bytes_kept;   /* that were with the replica before */
    uint64_t files_moved, bytes_moved; /* that went over the stream, whole */
    int err;                           /* why it failed; 0: it has not */
    const char *what; /* then: what was wrong, for the other end; static */
};

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_STREAM_H
#define WAL_WAL_STREAM_H

#include "base/alloc.h"
#include "wal/frame.h"
#include "wal/wal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was appended and is not synced yet. One thread at a time, but for
 * wal__stream_seal, which may run beside wal__stream_append. */

enum {
    WAL_CHUNK_BYTES = 256 * 1024,
    WAL_SPARE_CHUNKS = 2, /* short of memory with fewer */
    WAL_KEPT_CHUNKS = 8,  /* more go back */
    WAL_LATEST_BITS = 8   /* records whose last entry is known: 2^n */
};

struct wal_chunk {
    struct wal_chunk *next;
    size_t capacity;
    size_t fill;     /* bytes in use; final once next is set */
    uint8_t bytes[]; /* batches as in a file, one behind the other */
};

/* A border between two batches. */
struct wal_mark {
    struct wal_chunk *chunk;
    size_t at;       /* in chunk->bytes; the chunk's fill or the next one's 0
                      * are the same place */
    uint64_t seq;    /* of the last batch before it */
    uint64_t stream; /* bytes of the stream before it, since wal_open */
};

/* The last entry of all records that have this place. */
struct wal_latest {
    uint64_t id;
    uint32_t era; /* of the stream when it was appended */
    uint32_t at;  /* in the tail's bytes */
};

struct wal_stream {
    const struct alloc *alloc;
    struct wal_chunk *head, *tail; /* owned list, never empty */
    struct wal_chunk *spare;       /* owned list of WAL_CHUNK_BYTES each */
    unsigned n_spare;
    bool is_short;          /* of memory */
    bool is_open;           /* a batch takes entries ... */
    size_t room;            /* ... of so many bytes more; 0: none is open */
    size_t open_at;         /* of its header in tail */
    struct wal_mark closed; /* behind the last batch that takes none */
    uint64_t appended;      /* bytes of the stream, open batch included */
    uint32_t era;           /* goes up when no entry so far may be replaced */
    struct wal_latest latest[1 << WAL_LATEST_BITS]; /* those of this era */
};

int wal__stream_init(
    struct wal_stream *stream, const struct alloc *alloc, uint64_t last_seq);
void wal__stream_fini(struct wal_stream *stream);
uint64_t wal__stream_append(
    struct wal_stream *stream, const void *entries, size_t len);
/* See wal_append_rows; false where nothing became longer, since an entry took
 * the place of another. The batch is the one that is open then. */
bool wal__stream_append_rows(struct wal_stream *stream, const void *entries,
    size_t len, const struct wal_row *row, size_t n);
/* What is appended from now on is in another batch. */
void wal__stream_close(struct wal_stream *stream);
/* Frees what is before *mark. */
void wal__stream_drop(struct wal_stream *stream, const struct wal_mark *mark);
/* Sees to the spare chunks; is_short tells how that went. */
void wal__stream_stock(struct wal_stream *stream);

/* Moves *to back so far that there are at most bytes from from on; false where
 * it could stay. */
bool wal__stream_clip(
    const struct wal_mark *from, struct wal_mark *to, uint64_t bytes);

/* A run of closed batches that lie side by side. */
struct wal_run {
    uint8_t *bytes;
    size_t len;
};
/* Moves *from over the next run before to, and seals its batches for *file;
 * false at to. *batches is raised. */
bool wal__stream_seal(struct wal_mark *from, const struct wal_mark *to,
    const struct frame_file *file, uint64_t synced_seq, struct wal_run *run,
    uint64_t *batches);

#endif

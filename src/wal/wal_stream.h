/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_STREAM_H
#define WAL_WAL_STREAM_H

#include "base/alloc.h"
#include "wal/frame.h"
#include "wal/wal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What was appended and is not synced yet. One thread at a time, but for
 * wal__stream_seal, which may run beside wal__stream_append. */

enum {
    WAL_CHUNK_BYTES = 256 * 1024,
    WAL_SPARE_CHUNKS = 2,  /* short of memory with fewer */
    WAL_KEPT_CHUNKS = 8,   /* more go back */
    WAL_LATEST_BITS = 8,   /* records whose last entry is known: 2^n */
    WAL_NOTED_BATCHES = 8, /* one of so many is looked at for repeats; a power
                            * of two */
    WAL_REPEATS = 8 /* where one append of so many was one, so is the next */
};

struct wal_chunk {
    struct wal_chunk *next;
    size_t capacity;
    size_t fill;     /* bytes in use, but for a batch that is open; final once
                      * next is set */
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
    /* What each append writes: with the lock before it one cache line. */
    struct wal_chunk *tail; /* the last one of head's list */
    uint8_t *end;           /* of the open batch */
    uint64_t appended;      /* bytes of the stream, open batch included */
    uint64_t seq;           /* of the batch that is open, or the next one */
    uint32_t room;          /* bytes that the open batch takes; 0: none is */
    uint32_t era;           /* goes up when no entry so far may be replaced */
    uint32_t n_appends;     /* by callers, to the open batch */
    uint32_t n_replaced;    /* of these, without a byte more */
    bool is_open;           /* a batch takes entries */
    bool is_noting;         /* latest is kept of it */
    bool is_short;          /* of memory */
    bool is_guarded;        /* nothing is appended, batches are added whole */

    unsigned n_spare;
    struct wal_chunk *head;  /* owned list, never empty */
    struct wal_chunk *spare; /* owned list of WAL_CHUNK_BYTES each */
    const struct alloc *alloc;
    size_t open_at;             /* of its header in tail */
    struct wal_mark closed;     /* behind the last batch that takes none */
    uint64_t appends, replaced; /* the sums of closed batches */
    uint64_t of_bytes[WAL_LATENCIES];   /* how many of them had < 2^i bytes */
    uint64_t of_appends[WAL_LATENCIES]; /* and appends */
    struct wal_latest latest[1 << WAL_LATEST_BITS]; /* those of this era */
};

int wal__stream_init(
    struct wal_stream *stream, const struct alloc *alloc, uint64_t last_seq);
void wal__stream_fini(struct wal_stream *stream);
uint64_t wal__stream_append(
    struct wal_stream *stream, const void *entries, size_t len);
/* wal__stream_append_rows, for a batch that is looked at for repeats. */
void wal__stream_append_noted(struct wal_stream *stream, const void *entries,
    size_t len, const struct wal_row *row, size_t n);
/* Opens a batch that has room for len bytes of payload. */
void wal__stream_open(struct wal_stream *stream, size_t len);

/* Copies behind what the open batch has, or opens one for it. */
static inline void
wal__stream_put(struct wal_stream *stream, const void *entries, size_t len)
{
    if (__builtin_expect(stream->room < len, 0)) {
        wal__stream_open(stream, len);
    }
    memcpy(stream->end, entries, len);
    stream->end += len;
    stream->appended += len;
    stream->room -= (uint32_t)len;
}

/* See wal_append_rows. */
static inline void
wal__stream_append_rows(struct wal_stream *stream, const void *entries,
    size_t len, const struct wal_row *row, size_t n)
{
    if (stream->is_noting || stream->room < len) {
        wal__stream_append_noted(stream, entries, len, row, n);
    } else {
        wal__stream_put(stream, entries, len);
    }
    stream->n_appends++;
}

/* What is appended from now on is in another batch. */
void wal__stream_close(struct wal_stream *stream);
/* Sees to it that wal__stream_add finds memory for len bytes; no batch is
 * open. False: it is out. */
bool wal__stream_make_room(struct wal_stream *stream, size_t len);
/* Adds a batch with that payload (1..FRAME_PAYLOAD_MAX bytes), also where the
 * stream is guarded; no batch is open, and there is room. */
void wal__stream_add(
    struct wal_stream *stream, const void *payload, size_t len);
/* The next batch has number seq, SEQ_GAP or more above the one that was due; no
 * batch is open. */
void wal__stream_jump(struct wal_stream *stream, uint64_t seq);
/* Frees what is before *mark. */
void wal__stream_drop(struct wal_stream *stream, const struct wal_mark *mark);
/* Sees to the spare chunks; is_short tells how that went. */
void wal__stream_stock(struct wal_stream *stream);

/* Moves *to back so far that there are at most bytes from from on; false where
 * it could stay. */
bool wal__stream_clip(
    const struct wal_mark *from, struct wal_mark *to, uint64_t bytes);

/* Asserts that chunks, positions and counts agree: head is where *synced is,
 * and between two positions lie as many bytes as they say. */
void wal__stream_verify(const struct wal_stream *stream,
    const struct wal_mark *synced, const struct wal_mark *written);

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

/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes that were appended and may still have to be written once more: a
 * list of chunks that hold batches exactly as they stand in a file.
 *
 *   head                               tail
 *   [ batch | batch | batch |  ] -> [ batch | batch | open batch ...      ]
 *                   ^synced          ^written       ^closed      ^fill
 *
 * A batch never spans chunks, so it is sealed in place and many of them are
 * written by one call. An append copies its entries behind the open batch; a
 * batch that is open becomes closed when somebody wants to write it, or when
 * it or its chunk is full. Closing notes length and number in its header,
 * where sealing finds them, the first time and when the batch is written again
 * to another file.
 *
 * Who seals has the turn to write and no lock: it looks only at batches that
 * are closed, and at the fill of a chunk only where a closed batch is in a
 * later one; both do not change any more.
 *
 * Of each of some records it is known where its last entry in the open batch
 * lies (latest): a place in that table has the last entry of all records that
 * hash there, so if it is of a record it is the last of that record. A change
 * of the same columns is put in its place, if it is as long: what came between
 * the two is of other records, and a batch is read wholly or not at all, so
 * that what it leads to is the same. Entries of before the batch was opened, or
 * before one of a counter, are left alone: their era is over. Where hardly
 * anything repeats the table costs more than it gains, first of all where
 * several threads append: its cache lines go from one to the other. So it is
 * kept of one batch in WAL_NOTED_BATCHES, and of the next ones as long as one
 * append in WAL_REPEATS or more found its place.
 *
 * What can go wrong: memory. Some chunks are kept in store; once they cannot
 * be replaced is_short makes the log say so and changes are refused, and only
 * what was already on its way still takes them. */
#include "wal/wal_stream.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "wal/entry.h"
#include "wal/seq.h"

#include <string.h>

/* Where frame.h has these in a batch's header. */
enum { BATCH_LEN_AT = 4, BATCH_SEQ_AT = 8 };

static struct wal_chunk *
make_chunk(const struct alloc *alloc, size_t capacity)
{
    struct wal_chunk *chunk =
        alloc_zeroed(alloc, sizeof(struct wal_chunk) + capacity);
    if (chunk != NULL) {
        chunk->capacity = capacity;
    }
    return chunk;
}

static void
free_chunk(const struct alloc *alloc, struct wal_chunk *chunk)
{
    alloc_free(alloc, chunk, sizeof(struct wal_chunk) + chunk->capacity);
}

static void
free_chunks(const struct alloc *alloc, struct wal_chunk *chunk)
{
    while (chunk != NULL) {
        struct wal_chunk *next = chunk->next;
        free_chunk(alloc, chunk);
        chunk = next;
    }
}

void
wal__stream_stock(struct wal_stream *stream)
{
    while (stream->n_spare < WAL_SPARE_CHUNKS) {
        struct wal_chunk *chunk = make_chunk(stream->alloc, WAL_CHUNK_BYTES);
        if (chunk == NULL) {
            break;
        }
        chunk->next = stream->spare;
        stream->spare = chunk;
        stream->n_spare++;
    }
    stream->is_short = stream->n_spare < WAL_SPARE_CHUNKS;
}

int
wal__stream_init(
    struct wal_stream *stream, const struct alloc *alloc, uint64_t last_seq)
{
    *stream = (struct wal_stream){
        .alloc = alloc, .era = 1, .seq = last_seq + 1, .is_noting = true};
    stream->tail = make_chunk(alloc, WAL_CHUNK_BYTES);
    stream->head = stream->tail;
    wal__stream_stock(stream);
    if (stream->tail == NULL || stream->is_short) {
        wal__stream_fini(stream);
        return ERR_NO_MEMORY;
    }
    stream->closed = (struct wal_mark){stream->tail, 0, last_seq, 0};
    return 0;
}

void
wal__stream_fini(struct wal_stream *stream)
{
    free_chunks(stream->alloc, stream->head);
    free_chunks(stream->alloc, stream->spare);
    *stream = (struct wal_stream){0};
}

static void
end_era(struct wal_stream *stream)
{
    if (++stream->era == 0) {
        memset(stream->latest, 0, sizeof(stream->latest));
        stream->era = 1;
    }
}

void
wal__stream_close(struct wal_stream *stream)
{
    struct wal_chunk *tail = stream->tail;
    uint8_t *head = tail->bytes + stream->open_at;
    if (!stream->is_open) {
        return;
    }
    size_t len = (size_t)(stream->end - head);
    ASSERT(len > FRAME_BATCH_BYTES);
    ASSERT(stream->closed.stream + len == stream->appended);
    tail->fill = stream->open_at + len;
    bytes_put_u32(head + BATCH_LEN_AT, (uint32_t)(len - FRAME_BATCH_BYTES));
    bytes_put_u64(head + BATCH_SEQ_AT, stream->closed.seq + 1);
    stream->is_open = false;
    stream->room = 0;
    end_era(stream);
    stream->closed =
        (struct wal_mark){tail, tail->fill, stream->seq, stream->appended};
    stream->seq++;
    stream->is_noting = stream->seq % WAL_NOTED_BATCHES == 0 ||
        stream->n_replaced * (uint64_t)WAL_REPEATS > stream->n_appends;
    stream->of_bytes[wal_latency_of(len)]++;
    stream->of_appends[wal_latency_of(stream->n_appends)]++;
    stream->appends += stream->n_appends;
    stream->replaced += stream->n_replaced;
    stream->n_appends = 0;
    stream->n_replaced = 0;
}

/* Whether the tail has room for a batch with len bytes of payload. */
static bool
has_room(const struct wal_stream *stream, size_t len)
{
    return stream->tail->fill + FRAME_BATCH_BYTES + len <=
        stream->tail->capacity;
}

/* Makes a new tail that takes a batch with len bytes of payload. False: memory
 * is out. */
static bool
extend(struct wal_stream *stream, size_t len)
{
    struct wal_chunk *chunk = NULL;
    if (FRAME_BATCH_BYTES + len > WAL_CHUNK_BYTES) {
        chunk = make_chunk(stream->alloc, FRAME_BATCH_BYTES + len);
    } else if (stream->spare != NULL) {
        chunk = stream->spare;
        stream->spare = chunk->next;
        stream->n_spare--;
    }
    if (chunk == NULL) {
        return false;
    }
    chunk->next = NULL;
    chunk->fill = 0;
    stream->tail->next = chunk;
    stream->tail = chunk;
    if (stream->n_spare < WAL_SPARE_CHUNKS) {
        wal__stream_stock(stream);
    }
    return true;
}

bool
wal__stream_make_room(struct wal_stream *stream, size_t len)
{
    ASSERT(!stream->is_open);
    return has_room(stream, len) || extend(stream, len);
}

/* Opens a batch in the tail, which has room. */
static void
open_batch(struct wal_stream *stream, size_t len)
{
    struct wal_chunk *tail = stream->tail;
    ASSERT(!stream->is_open && has_room(stream, len));
    stream->is_open = true;
    stream->open_at = tail->fill;
    stream->end = tail->bytes + tail->fill + FRAME_BATCH_BYTES;
    stream->appended += FRAME_BATCH_BYTES;
    size_t room = tail->capacity - tail->fill - FRAME_BATCH_BYTES;
    stream->room =
        room > FRAME_PAYLOAD_MAX ? FRAME_PAYLOAD_MAX : (uint32_t)room;
}

void
wal__stream_open(struct wal_stream *stream, size_t len)
{
    ASSERT(!stream->is_guarded);
    wal__stream_close(stream);
    bool is_there = wal__stream_make_room(stream, len);
    /* wal_fault has said so for a while */
    ASSERT(is_there);
    open_batch(stream, len);
}

void
wal__stream_add(struct wal_stream *stream, const void *payload, size_t len)
{
    ASSERT(len > 0 && len <= FRAME_PAYLOAD_MAX);
    open_batch(stream, len);
    wal__stream_put(stream, payload, len);
    stream->n_appends++;
    wal__stream_close(stream);
}

void
wal__stream_jump(struct wal_stream *stream, uint64_t seq)
{
    ASSERT(!stream->is_open && seq > stream->seq);
    ASSERT(seq - stream->seq >= SEQ_GAP);
    stream->seq = seq;
    stream->closed.seq = seq - 1;
}

uint64_t
wal__stream_append(struct wal_stream *stream, const void *entries, size_t len)
{
    end_era(stream);
    wal__stream_put(stream, entries, len);
    return stream->seq;
}

/* The place of a record: the high bits of a product with 2^64 over the golden
 * ratio (Knuth 6.4). */
static inline struct wal_latest *
latest_of(struct wal_stream *stream, const struct wal_row *row)
{
    uint64_t hash = (row->id + row->counter) * UINT64_C(0x9e3779b97f4a7c15);
    return &stream->latest[hash >> (64 - WAL_LATEST_BITS)];
}

void
wal__stream_append_noted(struct wal_stream *stream, const void *entries,
    size_t len, const struct wal_row *row, size_t n)
{
    if (n == 1) {
        const struct wal_latest *latest = latest_of(stream, row);
        if (latest->id == row->id && latest->era == stream->era &&
            entry__replace(stream->tail->bytes + latest->at, entries)) {
            stream->n_replaced++;
            return;
        }
    }
    wal__stream_put(stream, entries, len);
    if (!stream->is_noting) { /* which a batch that was full may have been */
        return;
    }
    uint32_t at =
        (uint32_t)(stream->end - stream->tail->bytes - (ptrdiff_t)len);
    for (size_t i = 0; i < n; i++) {
        *latest_of(stream, &row[i]) =
            (struct wal_latest){row[i].id, stream->era, at + row[i].at};
    }
}

void
wal__stream_drop(struct wal_stream *stream, const struct wal_mark *mark)
{
    while (stream->head != mark->chunk) {
        struct wal_chunk *chunk = stream->head;
        stream->head = chunk->next;
        ASSERT(stream->head != NULL);
        if (chunk->capacity == WAL_CHUNK_BYTES &&
            stream->n_spare < WAL_KEPT_CHUNKS) {
            chunk->next = stream->spare;
            stream->spare = chunk;
            stream->n_spare++;
        } else {
            free_chunk(stream->alloc, chunk);
        }
    }
    stream->is_short = stream->n_spare < WAL_SPARE_CHUNKS;
}

bool
wal__stream_clip(
    const struct wal_mark *from, struct wal_mark *to, uint64_t bytes)
{
    struct wal_mark at = *from;
    if (to->stream - from->stream <= bytes) {
        return false;
    }
    for (;;) {
        if (at.at == at.chunk->fill) {
            at.chunk = at.chunk->next;
            ASSERT(at.chunk != NULL);
            at.at = 0;
        }
        size_t len = FRAME_BATCH_BYTES +
            bytes_get_u32(at.chunk->bytes + at.at + BATCH_LEN_AT);
        if (at.stream + len - from->stream > bytes) {
            break;
        }
        at.at += len;
        at.stream += len;
        at.seq++;
    }
    ASSERT(at.stream < to->stream && at.seq < to->seq);
    *to = at;
    return true;
}

/* The bytes of the list before a position. */
static uint64_t
bytes_before(const struct wal_stream *stream, const struct wal_mark *mark)
{
    const struct wal_chunk *chunk = stream->head;
    uint64_t bytes = 0;
    while (chunk != mark->chunk) {
        bytes += chunk->fill;
        chunk = chunk->next;
        ASSERT(chunk != NULL);
    }
    ASSERT(mark->at <= chunk->fill);
    return bytes + mark->at;
}

static void
verify_chunks(const struct wal_stream *stream)
{
    const struct wal_chunk *chunk;
    unsigned n_spare = 0;
    for (chunk = stream->head; chunk != stream->tail; chunk = chunk->next) {
        ASSERT(chunk->fill <= chunk->capacity);
        ASSERT(chunk->next != NULL);
    }
    ASSERT(stream->tail->fill <= stream->tail->capacity);
    ASSERT(stream->tail->next == NULL);
    for (chunk = stream->spare; chunk != NULL; chunk = chunk->next) {
        ASSERT(chunk->capacity == WAL_CHUNK_BYTES);
        n_spare++;
    }
    ASSERT(n_spare == stream->n_spare);
    ASSERT(stream->is_short == (n_spare < WAL_SPARE_CHUNKS));
}

void
wal__stream_verify(const struct wal_stream *stream,
    const struct wal_mark *synced, const struct wal_mark *written)
{
    const struct wal_mark *closed = &stream->closed;
    const struct wal_chunk *tail = stream->tail;
    const struct wal_mark end = {.chunk = stream->tail, .at = tail->fill};
    verify_chunks(stream);
    ASSERT(stream->head == synced->chunk);
    uint64_t before = bytes_before(stream, synced);
    ASSERT(bytes_before(stream, written) - before ==
        written->stream - synced->stream);
    ASSERT(bytes_before(stream, closed) - before ==
        closed->stream - synced->stream);
    ASSERT(bytes_before(stream, closed) == bytes_before(stream, &end));
    if (!stream->is_open) {
        ASSERT(stream->room == 0);
        ASSERT(stream->appended == closed->stream);
        return;
    }
    size_t len = (size_t)(stream->end - tail->bytes) - tail->fill;
    ASSERT(stream->open_at == tail->fill);
    ASSERT(stream->appended - closed->stream == len);
    ASSERT(stream->room <= tail->capacity - tail->fill - len);
}

bool
wal__stream_seal(struct wal_mark *from, const struct wal_mark *to,
    const struct frame_file *file, uint64_t synced_seq, struct wal_run *run,
    uint64_t *batches)
{
    ASSERT(from->stream <= to->stream);
    if (from->stream == to->stream) {
        return false;
    }
    if (from->chunk != to->chunk && from->at == from->chunk->fill) {
        from->chunk = from->chunk->next;
        from->at = 0;
        return wal__stream_seal(from, to, file, synced_seq, run, batches);
    }
    size_t end = from->chunk == to->chunk ? to->at : from->chunk->fill;
    *run = (struct wal_run){from->chunk->bytes + from->at, end - from->at};
    while (from->at < end) {
        uint8_t *head = from->chunk->bytes + from->at;
        struct frame_batch batch = {.seq = bytes_get_u64(head + BATCH_SEQ_AT),
            .synced_seq = synced_seq,
            .payload_bytes = bytes_get_u32(head + BATCH_LEN_AT)};
        ASSERT(batch.seq == from->seq + 1);
        frame_batch_put(file, &batch, head);
        from->seq = batch.seq;
        from->at += FRAME_BATCH_BYTES + batch.payload_bytes;
        (*batches)++;
    }
    ASSERT(from->at == end);
    from->stream += run->len;
    return true;
}

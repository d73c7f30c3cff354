/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the log that both callers and its thread take: they write,
 * publish what is committed, and begin the next file. All of it is under
 * wal->lock, which is let go around every call to the disk; the turn to write
 * (wal_moves.c) then keeps others off the file. */
#include "wal/wal_priv.h"

#include "base/assert.h"
#include "base/err.h"

enum { NS_PER_MS = 1000000, NS_PER_US = 1000 };

void
wal__wake(struct wal *wal)
{
    if (wal->sleep_ns != 0) {
        wal->sleep_ns = 0;
        lock_cond_call(&wal->wake, &wal->lock);
    }
}

uint64_t
wal__oldest_ns(const struct wal *wal)
{
    return wal->syncing_ns != 0 ? wal->syncing_ns : wal->since_ns;
}

uint64_t
wal__last(const struct wal *wal)
{
    const struct wal_stream *stream = &wal->stream;
    if (stream->is_open) {
        return stream->closed.seq + 1;
    }
    bool is_mark = wal->mark_seq != 0 && stream->closed.seq == wal->mark_seq;
    return stream->closed.seq - is_mark;
}

uint64_t
wal__unsynced(const struct wal *wal)
{
    lock_assert_held(&wal->lock);
    return wal->synced.seq >= wal__last(wal)
        ? 0
        : wal->stream.appended - wal->synced.stream;
}

/* Whether so much waits for a sync that hangs that no more is to be taken. */
static bool
is_stuck(const struct wal *wal)
{
    lock_assert_held(&wal->lock);
    uint64_t oldest = wal__oldest_ns(wal);
    return (wal->stream.appended - wal->synced.stream) / 2 >
        wal->config.unsynced_bytes_max &&
        oldest != 0 &&
        wal__now_ns(wal) - oldest > wal->config.stuck_ms * NS_PER_MS;
}

void
wal__show_fault(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    int fault = wal->disk_fault;
    if (fault == 0 && wal->stream.is_short) {
        fault = ERR_NO_MEMORY;
    }
    if (fault == 0 && is_stuck(wal)) {
        fault = ERR_LOG_FULL;
    }
    /* relaxed: nothing else is read on the strength of it */
    atomic_store_explicit(&wal->fault, fault, memory_order_relaxed);
}

void
wal__fail(struct wal *wal, const struct wal_failure *failure)
{
    lock_assert_held(&wal->lock);
    wal->stats.sync_failures++;
    if (!wal__is_failing(wal)) {
        wal__move(
            wal, failure->may_sync ? WAL_STATE_NO_ROOM : WAL_STATE_FAILED);
        wal->failure = *failure;
        wal->retry_ns = 0;
    } else if (wal->state == WAL_STATE_NO_ROOM && !failure->may_sync) {
        wal__move(wal, WAL_STATE_FAILED);
    }
    wal__wake(wal);
}

bool
wal__is_slow(struct wal *wal)
{
    if (wal->slow_until_ns != 0 && wal__now_ns(wal) >= wal->slow_until_ns) {
        wal->slow_until_ns = 0;
    }
    return wal->slow_until_ns != 0;
}

bool
wal__allocate_is_due(const struct wal *wal)
{
    const struct wal_file *file = &wal->file;
    /* a file that is empty may stay so */
    return wal->written.stream > file->start && !wal->is_stopping &&
        wal__file_lacks_room(wal, file, wal__file_offset(file, &wal->written));
}

bool
wal__is_held(const struct wal *wal, uint64_t now_ns)
{
    uint64_t since = wal__oldest_ns(wal);
    if (wal->stream.appended - wal->synced.stream >
        wal->config.unsynced_bytes_max) {
        return true;
    }
    if (wal->config.sync != WAL_SYNC_INTERVAL || since == 0) {
        return false;
    }
    now_ns = now_ns != 0 ? now_ns : wal__now_ns(wal);
    return now_ns > since + wal->config.interval_ms * NS_PER_MS;
}

bool
wal__publish(struct wal *wal, uint64_t now_ns)
{
    /* relaxed, here and below: written under the lock only, and the number
     * itself is all that it tells */
    uint64_t old = atomic_load_explicit(&wal->committed, memory_order_relaxed);
    uint64_t new = wal->synced.seq;
    if (wal->config.sync == WAL_SYNC_NONE) {
        new = wal__is_held(wal, now_ns) ? new : UINT64_MAX;
    } else if (wal->config.sync == WAL_SYNC_INTERVAL) {
        new = wal__is_failing(wal) || wal__is_held(wal, now_ns)
            ? new
            : wal->written.seq;
        new = new < old ? old : new;
    }
    ASSERT(new >= old || wal->config.sync == WAL_SYNC_NONE);
    if (new != old) {
        atomic_store_explicit(&wal->committed, new, memory_order_relaxed);
    }
    return new > old && wal->wanted > old;
}

void
wal__settle(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    bool is_news = wal__publish(wal, 0);
    bool is_more = wal__take_more(wal);
    if (!is_news && !is_more) {
        return;
    }
    wal__unlock(wal);
    if (is_news) {
        wal__notify(wal);
    }
    if (is_more) {
        wal__tell_follows(wal);
    }
    wal__lock(wal);
}

/* Remembers how long a write took. */
static void
note_write(struct wal *wal, uint64_t begun_ns, uint64_t ended_ns)
{
    if (ended_ns - begun_ns > wal->config.slow_ms * NS_PER_MS) {
        wal->stats.slow_writes++;
        wal->slow_until_ns = ended_ns + WAL_CALM_MS * (uint64_t)NS_PER_MS;
    }
}

uint64_t
wal__write(struct wal *wal, uint64_t now_ns)
{
    lock_assert_held(&wal->lock);
    struct wal_written written = {0};
    struct wal_failure failure;
    ASSERT(wal__is_taken(wal));
    wal__stream_close(&wal->stream);
    struct wal_mark from = wal->written, to = wal->stream.closed;
    uint64_t synced_seq = wal->synced.seq;
    if (from.stream == to.stream || wal__is_failing(wal)) {
        return now_ns;
    }
    if (wal__stream_clip(&from, &to,
            wal__file_limit(&wal->file) -
                wal__file_offset(&wal->file, &from))) {
        if (wal->state != WAL_STATE_FULL) {
            wal__move(wal, WAL_STATE_FULL);
        }
        if (wal->since_ns == 0) { /* some stay behind */
            wal->since_ns = wal->syncing_ns;
        }
        wal__wake(wal);
    }
    if (from.stream == to.stream) {
        return now_ns;
    }
    wal__unlock(wal);
    bool is_done = wal__file_write(
        wal, &wal->file, &from, &to, synced_seq, &written, &failure);
    uint64_t ended_ns = wal__now_ns(wal);
    wal__lock(wal);
    note_write(wal, now_ns, ended_ns);
    wal->stats.writes += written.writes;
    wal->stats.batches += written.batches;
    if (is_done) {
        wal__set_written(wal, &to);
    } else {
        wal__fail(wal, &failure);
    }
    return ended_ns;
}

void
wal__set_synced(struct wal *wal, const struct wal_mark *mark)
{
    lock_assert_held(&wal->lock);
    struct wal_stream *stream = &wal->stream;
    wal__set_durable(wal, mark);
    if (wal->syncing_ns != 0) {
        uint64_t now_ns = wal__now_ns(wal);
        uint64_t us = now_ns > wal->syncing_ns
            ? (now_ns - wal->syncing_ns) / NS_PER_US
            : 0;
        wal->stats.synced_us[wal_latency_of(us)]++;
    }
    wal->syncing_ns = 0;
    if (stream->appended == mark->stream) { /* perhaps for long */
        wal->idle_ns = wal__now_ns(wal) + wal->config.idle_ms * NS_PER_MS;
    }
    if (stream->appended == mark->stream &&
        wal->written.chunk == mark->chunk && !stream->is_open &&
        stream->tail == mark->chunk) {
        wal__begin_again(wal); /* nothing is left: the same memory again */
    }
    wal__stream_drop(stream, &wal->synced);
    wal__show_fault(wal);
    lock_cond_call(&wal->moved, &wal->lock);
}

void
wal__take_turn(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    if (wal->turn == WAL_TURN_TAKEN) {
        wal__move_turn(wal, WAL_TURN_AWAITED);
        while (wal->turn != WAL_TURN_LEFT) {
            lock_cond_wait(
                &wal->left, &wal->lock, wal->config.clock, LOCK_NEVER);
        }
    }
    wal__move_turn(wal, WAL_TURN_TAKEN);
}

void
wal__give_turn(struct wal *wal)
{
    if (wal->turn == WAL_TURN_AWAITED) {
        wal__move_turn(wal, WAL_TURN_LEFT);
        lock_cond_call(&wal->left, &wal->lock);
    } else {
        wal__move_turn(wal, WAL_TURN_FREE);
    }
}

/* What the switch to a new file makes so; the old one is handed out. */
static void
switch_file(struct wal *wal, const struct wal_file *file,
    const struct wal_mark *end, struct wal_file *old)
{
    lock_assert_held(&wal->lock);
    *old = wal->file;
    if (old->fd >= 0) {
        wal->old_bytes += file->head.before_end;
    }
    wal->file = *file;
    wal->made[file->head.number % WAL_MADE] =
        (struct wal_made){file->head.number, file->is};
    wal__move(wal, WAL_STATE_WELL);
    wal->disk_fault = 0;
    wal__set_written(wal, end);
    wal__set_synced(wal, end);
}

/* Has done what must be before the first file. Without the lock; who calls has
 * the turn. */
static bool
prepare(struct wal *wal, struct wal_failure *failure)
{
    const struct wal_config *config = &wal->config;
    if (wal->is_prepared || config->prepare_fn == NULL) {
        return true;
    }
    int err = config->prepare_fn(config->context);
    *failure = (struct wal_failure){
        "sync", err, config->start.next_number - 1, false, false};
    wal->is_prepared = err == 0;
    return wal->is_prepared;
}

bool
wal__begin_file(
    struct wal *wal, uint64_t before_end, struct wal_failure *failure)
{
    lock_assert_held(&wal->lock);
    struct wal_written written = {0};
    struct wal_file file, old;
    bool was_failing = wal->file.fd >= 0 && wal__is_failing(wal);
    ASSERT(wal__is_taken(wal));
    wal__stream_close(&wal->stream);
    struct wal_mark from = wal->synced, to = wal->stream.closed;
    struct frame_file head = {.epoch = wal->config.start.epoch,
        .number = wal->file.head.number + 1,
        .first_seq = from.seq + 1,
        .before_end = before_end};
    if (wal->syncing_ns == 0) {
        wal->syncing_ns = wal->since_ns;
    }
    wal->since_ns = 0;
    wal__unlock(wal);
    bool is_done = prepare(wal, failure) &&
        wal__file_begin(wal, &head, &from, &to, &file, &written, failure);
    wal__lock(wal);
    wal->stats.writes += written.writes;
    if (!is_done) {
        return false;
    }
    wal->stats.batches += to.seq - wal->written.seq;
    switch_file(wal, &file, &to, &old);
    wal__verify(wal);
    wal__unlock(wal);
    wal__file_trim(wal, &old, before_end);
    if (!was_failing) {
        wal__file_note_next(wal, &old, &head);
    }
    wal__file_close(wal, &old);
    wal__lock(wal);
    return true;
}

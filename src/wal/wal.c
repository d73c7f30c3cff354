/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's writing end, as its callers see it.
 *
 *   wal_append   wal_commit                 the log's thread
 *       |            |                             |
 *       v            v                             v
 *   [stream] --close--> closed --seal, write--> written --sync--> synced
 *                                   (one at a time)
 *
 * An append copies entries to the stream's open batch under wal->lock. Who has
 * the turn to write closes that batch, lets go of the lock, seals all closed
 * batches and hands them to the file. Under WAL_SYNC_INTERVAL that is the
 * first who commits; those who come meanwhile are left to him and told when it
 * is done, so one write serves them all. Everything else, first of all every
 * sync, is the thread's (wal_thread.c).
 *
 * A write is a copy into the page cache, unless the kernel holds it up: too
 * much that is dirty, or a disk that hangs. It holds up whoever calls, an
 * event loop with all its readers. So after one that was slow the thread
 * writes, until WAL_CALM_MS have passed without another one: one caller may be
 * held up once, at the beginning.
 *
 * Invariants: synced <= written <= closed <= appended, in the order of the
 * stream. wal_moves.c checks that, and has the states of the file under way and
 * of the turn to write. What is not synced is in memory. Batches reach files in
 * their order, so what is on disk is a prefix. A file gets no batch before the
 * one before it is synced up to where it ends. committed never goes back, but
 * under WAL_SYNC_NONE.
 *
 * A copy of another server's directory appends nothing of its own: it is given
 * batches with their numbers (wal_replica.c).
 *
 * What can go wrong: memory (wal_stream.c), files (wal_file.c), and what
 * follows from that for those who wait (wal_thread.c). */
#include "wal/wal.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/wal_priv.h"
#include "wal/wal_refuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    NS_PER_MS = 1000000,
    COMMIT_ROUNDS = 4, /* writes of one wal_commit; then it is the thread's */
    INTERVAL_MS_MIN = 10
};

/* ---- making and ending it ---- */

static void
init_locks(struct wal *wal)
{
    rwlock_init(&wal->listen_lock);
    mutex_init(&wal->forget_lock);
}

static void
destroy(struct wal *wal)
{
    wal__file_close(wal, &wal->file);
    wal__stream_fini(&wal->stream);
    mutex_fini(&wal->forget_lock);
    rwlock_fini(&wal->listen_lock);
    wal->magic = 0;
    free(wal);
}

/* Which batch a replica's log begins with. */
static int
note_first(struct wal *wal)
{
    const struct wal_start *start = &wal->config.start;
    struct frame_file head = {.first_seq = start->next_seq};
    int err = 0;
    if (start->is_replica && wal->first_file < start->next_number) {
        err = wal__file_head(wal->config.disk, wal->first_file, &head);
    }
    wal->first_seq = start->is_replica ? head.first_seq : 0;
    return err == 0 ? 0 : disk_err(err);
}

/* Makes the first file; nobody else knows the log yet. */
static int
begin(struct wal *wal)
{
    const struct wal_start *start = &wal->config.start;
    struct wal_failure failure;
    int err = wal__file_count(wal->config.disk, start->first_number,
        &wal->first_file, &wal->old_bytes);
    if (err != 0) {
        return disk_err(err);
    }
    if (wal->first_file > start->next_number) {
        wal->first_file = start->next_number;
    }
    wal->old_bytes += start->before_end;
    err = note_first(wal);
    if (err != 0) {
        return err;
    }
    wal->file = (struct wal_file){
        .head = {.number = start->next_number - 1}, .fd = -1};
    wal->written = wal->stream.closed;
    wal->synced = wal->stream.closed;
    wal__lock(wal);
    wal__take_turn(wal);
    bool is_done = wal__begin_file(wal, start->before_end, &failure);
    wal__give_turn(wal);
    if (!is_done) { /* the thread tries again */
        wal__move(wal, WAL_STATE_REFUSED);
        wal->failure = failure;
        wal->disk_fault = disk_err(failure.err);
        wal->retry_ns = wal__now_ns(wal) + wal->config.retry_ms * NS_PER_MS;
        wal__show_fault(wal);
    }
    if (is_done || wal->config.sync == WAL_SYNC_NONE) {
        /* else what there was before is not known to be durable */
        (void)wal__publish(wal, 0);
    }
    wal__unlock(wal);
    if (!is_done) {
        wal__say_failed(wal, &failure, disk_err(failure.err));
    }
    return 0;
}

int
wal_open(const struct wal_config *config, struct wal **out)
{
    struct wal *wal = aligned_alloc(WAL_LINE_BYTES, sizeof(struct wal));
    int err = ERR_NO_MEMORY;
    ASSERT(config->start.epoch != 0 && config->start.next_number > 0 &&
        config->start.next_seq > 0);
    ASSERT(config->interval_ms >= INTERVAL_MS_MIN &&
        config->file_bytes >= WAL_FILE_BYTES_MIN);
    if (wal == NULL) {
        return ERR_NO_MEMORY;
    }
    memset(wal, 0, sizeof(*wal));
    wal->magic = WAL_MAGIC;
    wal->config = *config;
    if (wal->config.retry_ms == 0) {
        wal->config.retry_ms = WAL_RETRY_MS;
    }
    if (wal->config.idle_ms == 0) {
        wal->config.idle_ms = WAL_IDLE_MS;
    }
    if (wal->config.stuck_ms == 0) {
        wal->config.stuck_ms = WAL_STUCK_MS;
    }
    if (wal->config.slow_ms == 0) {
        wal->config.slow_ms = WAL_SLOW_MS;
    }
    wal->config.clock = clock_or_system(config->clock);
    wal->file.fd = -1;
    init_locks(wal);
    if (wal__stream_init(
            &wal->stream, config->alloc, config->start.next_seq - 1) != 0) {
        goto err_after_locks;
    }
    wal->stream.is_guarded = config->start.is_replica;
    if (config->start.terms != NULL) {
        wal->terms = *config->start.terms;
    }
    err = begin(wal);
    if (err != 0) {
        goto err_after_locks;
    }
    if (pthread_create(&wal->thread, NULL, wal__run, wal) != 0) {
        err = ERR_NO_THREAD;
        goto err_after_locks;
    }
    *out = wal;
    return 0;
err_after_locks:
    destroy(wal);
    return err;
}

int
wal_close(struct wal **wal)
{
    struct wal *it = *wal;
    ASSERT(it->magic == WAL_MAGIC);
    wal__lock(it);
    it->is_stopping = true;
    wal__wake(it);
    wal__unlock(it);
    int rv = pthread_join(it->thread, NULL);
    ASSERT(rv == 0);
    ASSERT(it->listeners == NULL && it->pins == NULL);
    ASSERT(it->follows == NULL);
    int err = 0;
    wal__lock(it); /* nobody else has it, which wal__unsynced does not know */
    /* ENOENT: the file is gone, or the directory, with what was synced */
    if (wal__is_failing(it) &&
        (wal__unsynced(it) > 0 || it->failure.err == ENOENT)) {
        err = it->disk_fault != 0 ? it->disk_fault : disk_err(it->failure.err);
    }
    wal__verify(it);
    wal__unlock(it);
    destroy(it);
    *wal = NULL;
    return err;
}

/* ---- what every change does ---- */

int
wal_fault(const struct wal *wal)
{
    int fault = wal_write_fault(wal);
    /* relaxed: as there */
    return fault != 0
        ? fault
        : atomic_load_explicit(&wal->refused, memory_order_relaxed);
}

int
wal_write_fault(const struct wal *wal)
{
    /* relaxed: a refusal may come a moment later */
    return atomic_load_explicit(&wal->fault, memory_order_relaxed);
}

void
wal_refuse(struct wal *wal, int err)
{
    /* relaxed: as above */
    atomic_store_explicit(&wal->refused, err, memory_order_relaxed);
    wal__notify(wal);
}

/* What note_append does where something is due. */
static __attribute__((noinline)) void
note_due(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    uint64_t appended = wal->stream.appended;
    if (wal->since_ns == 0) {
        wal->since_ns = wal__now_ns(wal);
        if (wal->sleep_ns > wal->since_ns + wal__due_ns(wal) &&
            !wal__is_failing(wal)) {
            wal__wake(wal);
        }
    }
    if (appended - wal->synced.stream > wal->config.unsynced_bytes_max / 2 &&
        !wal__is_failing(wal)) {
        wal__wake(wal);
    }
    if (appended - wal->synced.stream > wal->config.unsynced_bytes_max) {
        wal__show_fault(wal);
    }
    if (wal->config.sync == WAL_SYNC_NONE) {
        if (appended - wal->written.stream >= WAL_LAZY_BYTES &&
            !wal__is_failing(wal)) {
            wal__wake(wal);
        }
        (void)wal__publish(wal, 0);
    }
}

/* Sees to it that what was just appended does not lie for ever. */
static inline void
note_append(struct wal *wal, bool was_short)
{
    if (__builtin_expect(wal->stream.is_short != was_short, 0)) {
        wal__show_fault(wal);
        wal__wake(wal);
    }
    if (wal->since_ns == 0 || wal->config.sync == WAL_SYNC_NONE ||
        wal->stream.appended - wal->synced.stream >
            wal->config.unsynced_bytes_max / 2) {
        note_due(wal);
    }
}

void
wal__note_append(struct wal *wal, bool was_short)
{
    note_append(wal, was_short);
}

uint64_t
wal_append(struct wal *wal, const void *entries, size_t len)
{
    ASSERT(len > 0 && len <= FRAME_PAYLOAD_MAX / 2);
    wal__lock(wal);
    bool was_short = wal->stream.is_short;
    uint64_t seq = wal__stream_append(&wal->stream, entries, len);
    wal->stream.n_appends++;
    note_append(wal, was_short);
    wal__unlock(wal);
    return seq;
}

uint64_t
wal_append_rows(struct wal *wal, const void *entries, size_t len,
    const struct wal_row *row, size_t n)
{
    ASSERT(n > 0 && len > 0 && len <= FRAME_PAYLOAD_MAX / 2);
    wal__lock(wal);
    bool was_short = wal->stream.is_short;
    wal__stream_append_rows(&wal->stream, entries, len, row, n);
    note_append(wal, was_short);
    uint64_t seq = wal->stream.seq;
    wal__unlock(wal);
    return seq;
}

uint64_t
wal_last(struct wal *wal)
{
    wal__lock(wal);
    uint64_t seq = wal__last(wal);
    wal__unlock(wal);
    return seq;
}

uint64_t
wal_cut(struct wal *wal)
{
    wal__lock(wal);
    wal__stream_close(&wal->stream);
    /* not a mark behind it, which nobody need ever sync */
    uint64_t seq = wal__last(wal);
    wal__unlock(wal);
    return seq;
}

enum wal_outcome
wal_outcome(struct wal *wal, uint64_t seq)
{
    /* relaxed, both: who is told by a listener comes after the store through
     * whatever the listener woke it with, and else it is told later */
    if (seq <= atomic_load_explicit(&wal->committed, memory_order_relaxed)) {
        return WAL_COMMITTED;
    }
    int fault = atomic_load_explicit(&wal->fault, memory_order_relaxed);
    return fault == 0 || fault == ERR_NO_MEMORY || fault == ERR_LOG_FULL
        ? WAL_WAITS
        : WAL_FAILED;
}

/* The same for who holds the lock; that somebody waits is noted. */
static enum wal_outcome
outcome(struct wal *wal, uint64_t seq)
{
    /* relaxed: stored under the lock */
    if (seq <= atomic_load_explicit(&wal->committed, memory_order_relaxed)) {
        return WAL_COMMITTED;
    }
    if (wal->disk_fault != 0) {
        return WAL_FAILED;
    }
    if (wal->wanted < seq) {
        wal->wanted = seq;
    }
    if (!wal__is_taken(wal)) {
        wal__wake(wal);
    }
    return WAL_WAITS;
}

/* Writes what there is, and what others want meanwhile. True: tell them. */
static bool
write_here(struct wal *wal, uint64_t now_ns)
{
    unsigned rounds = 0;
    wal__move_turn(wal, WAL_TURN_TAKEN);
    do {
        now_ns = wal__write(wal, now_ns);
    } while (++rounds < COMMIT_ROUNDS && wal->wanted > wal->written.seq &&
        wal->state == WAL_STATE_WELL && wal->turn == WAL_TURN_TAKEN &&
        !wal__is_slow(wal));
    bool lacks_room = wal__allocate_is_due(wal);
    wal__give_turn(wal);
    if (lacks_room || wal->wanted > wal->written.seq ||
        wal__is_held(wal, now_ns) ||
        wal__file_offset(&wal->file, &wal->written) >=
            wal->config.file_bytes) {
        wal__wake(wal);
    }
    return wal__publish(wal, now_ns);
}

enum wal_outcome
wal_commit(struct wal *wal, uint64_t seq)
{
    bool is_news = false;
    /* relaxed: as in wal_outcome */
    if (seq <= atomic_load_explicit(&wal->committed, memory_order_relaxed)) {
        return WAL_COMMITTED;
    }
    wal__lock(wal);
    ASSERT(seq <= wal->stream.closed.seq + wal->stream.is_open);
    if (wal->config.sync == WAL_SYNC_INTERVAL && wal->turn == WAL_TURN_FREE &&
        !wal__is_failing(wal) && seq > wal->written.seq) {
        uint64_t now_ns = wal__now_ns(wal);
        if (!wal__is_held(wal, now_ns) && !wal__is_slow(wal)) {
            is_news = write_here(wal, now_ns);
        }
    }
    enum wal_outcome found = outcome(wal, seq);
    bool is_more = wal__take_more(wal);
    wal__unlock(wal);
    if (is_news) {
        wal__notify(wal);
    }
    if (is_more) {
        wal__tell_follows(wal);
    }
    return found;
}

/* ---- what takes longer ---- */

int
wal_sync_up_to(struct wal *wal, uint64_t seq)
{
    wal__lock(wal);
    ASSERT(seq <= wal->stream.closed.seq + wal->stream.is_open);
    if (wal->sync_wanted < seq) {
        wal->sync_wanted = seq;
    }
    wal__wake(wal);
    while (wal__synced_seq(wal) < seq && wal->disk_fault == 0) {
        lock_cond_wait(&wal->moved, &wal->lock, wal->config.clock, LOCK_NEVER);
    }
    int err = wal__synced_seq(wal) < seq ? wal->disk_fault : 0;
    wal__unlock(wal);
    return err;
}

int
wal_rotate(struct wal *wal, uint64_t *number, uint64_t *seq)
{
    wal__lock(wal);
    wal__stream_close(&wal->stream);
    uint64_t last = wal->stream.closed.seq;
    if (wal->rotate_wanted < last) {
        wal->rotate_wanted = last;
    }
    uint64_t n_unrotated = wal->n_unrotated;
    wal->is_look_wanted = true;
    wal__wake(wal);
    while ((wal->is_look_wanted || wal__is_failing(wal) ||
               wal->file.head.first_seq <= last) &&
        wal->disk_fault == 0 && wal->n_unrotated == n_unrotated) {
        lock_cond_wait(&wal->moved, &wal->lock, wal->config.clock, LOCK_NEVER);
    }
    int err = 0;
    if (wal->file.head.first_seq <= last || wal__is_failing(wal)) {
        err = wal->disk_fault != 0 ? wal->disk_fault : wal->rotate_fault;
        wal->rotate_wanted = 0; /* the caller does not wait any more */
    }
    *number = wal->file.head.number;
    *seq = wal->file.head.first_seq - 1;
    wal__unlock(wal);
    return err;
}

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void
wal_stats(struct wal *wal, struct wal_stats *out)
{
    wal__lock(wal);
    *out = wal->stats;
    out->appends = wal->stream.appends + wal->stream.n_appends;
    out->replaced = wal->stream.replaced + wal->stream.n_replaced;
    memcpy(out->batch_bytes, wal->stream.of_bytes, sizeof out->batch_bytes);
    memcpy(
        out->batch_appends, wal->stream.of_appends, sizeof out->batch_appends);
    out->bytes = wal->stream.appended;
    out->unsynced_bytes = wal__unsynced(wal);
    uint64_t oldest = wal__oldest_ns(wal);
    out->unsynced_ms =
        oldest == 0 ? 0 : (wal__now_ns(wal) - oldest) / NS_PER_MS;
    out->last_seq = wal__last(wal);
    out->mark_seq = wal->mark_seq <= wal->written.seq ? wal->mark_seq : 0;
    out->written_seq = min_u64(wal->written.seq, out->last_seq);
    out->synced_seq = min_u64(wal__synced_seq(wal), out->last_seq);
    out->first_file = wal->first_file;
    out->file = wal->file.head.number;
    out->file_bytes = wal__file_offset(&wal->file, &wal->written);
    out->live_bytes = wal->old_bytes + out->file_bytes;
    wal__unlock(wal);
}

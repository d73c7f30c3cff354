/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's thread: it syncs, and does what callers leave to it.
 *
 * It looks what is due, does the first of these and looks again: take over
 * from a file that failed; look whether the file is still there, where somebody
 * asks; begin the next file; allocate room ahead; sync; write; write a mark,
 * where all is synced and nothing has come for a while; sleep until something
 * may be due or somebody wakes it. The states that it moves through are drawn
 * in wal_moves.c.
 *
 * A sync covers what was written when it began, and callers go on writing
 * beside it. Before the next file begins they must wait: all is written and
 * synced, the new file says where the old one ends, and only then does it take
 * batches. That is short because most was synced just before.
 *
 * After a failure nothing is ever written in that file again, nor synced, but
 * that after a write for which there was no room a sync saves what came before.
 * The next file says that the old one is void from the last good sync on and
 * holds all that came since; whoever waits does not notice, unless that fails,
 * too. Then changes are refused and batches that are not committed count as
 * failed, and the thread tries again from time to time, each time with a new
 * inode. */
#include "wal/wal_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/entry.h"
#include "wal/names.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LOOK "finding the file" /* what has failed */

enum {
    NS_PER_MS = 1000000,
    NS_PER_US = 1000,
    LAZY_MS = 100,   /* WAL_SYNC_NONE: written by then */
    LOOK_ROUNDS = 4, /* of retry_ms, between looks whether the file is there */
    SYNC_AHEAD_BYTES = 64 << 10, /* more is synced before callers must wait */
    STOP_TRIES = 2               /* new files that wal_close tries */
};

uint64_t
wal__due_ns(const struct wal *wal)
{
    uint64_t due_ms = wal->config.sync == WAL_SYNC_NONE
        ? LAZY_MS
        : wal->config.interval_ms / 2;
    return due_ms * NS_PER_MS;
}

static bool
is_old(const struct wal *wal, uint64_t now)
{
    lock_assert_held(&wal->lock);
    return wal->since_ns != 0 && now >= wal->since_ns + wal__due_ns(wal);
}

static bool
rotate_is_due(const struct wal *wal, uint64_t now)
{
    lock_assert_held(&wal->lock);
    const struct wal_file *file = &wal->file;
    if (now < wal->rotate_ns && wal->state != WAL_STATE_FULL) {
        return false;
    }
    return file->head.first_seq <= wal->rotate_wanted ||
        wal->state == WAL_STATE_FULL ||
        (wal->written.stream > file->start &&
            wal__file_offset(file, &wal->written) >= wal->config.file_bytes);
}

static bool
sync_is_due(const struct wal *wal, uint64_t now)
{
    lock_assert_held(&wal->lock);
    uint64_t unsynced = wal__unsynced(wal);
    if (unsynced == 0) {
        return false;
    }
    if (wal->is_stopping || wal->sync_wanted > wal->synced.seq ||
        unsynced > wal->config.unsynced_bytes_max / 2) {
        return true;
    }
    switch (wal->config.sync) {
    case WAL_SYNC_ALWAYS:
        return wal->wanted > wal->synced.seq || is_old(wal, now);
    case WAL_SYNC_INTERVAL:
        return is_old(wal, now);
    case WAL_SYNC_NONE:
        break;
    }
    return false;
}

static bool
write_is_due(const struct wal *wal, uint64_t now)
{
    lock_assert_held(&wal->lock);
    uint64_t unwritten = wal->stream.appended - wal->written.stream;
    if (unwritten == 0) {
        return false;
    }
    return wal->wanted > wal->written.seq ||
        (wal->config.sync == WAL_SYNC_NONE &&
            (unwritten >= WAL_LAZY_BYTES || is_old(wal, now)));
}

/* Whether somebody has removed the file, or cut it off: then a sync of it saves
 * nothing. Seen once a second, with the usual retry_ms, and at_once. Without
 * the lock; file is a copy. */
static bool
is_spoilt(struct wal *wal, const struct wal_file *file, bool at_once)
{
    uint64_t gap_ns = LOOK_ROUNDS * wal->config.retry_ms * NS_PER_MS;
    uint64_t now = wal__now_ns(wal);
    if (!at_once && now - wal->looked_ns < gap_ns) {
        return false;
    }
    wal->looked_ns = now;
    return !wal__file_stands(wal, file);
}

static void
say_spoilt(const struct wal *wal, uint64_t number)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_LOG, number);
    log_line(wal->config.logger, LOG_ERROR,
        "%s was removed, replaced or changed while it was in use; where a new "
        "file can be made a checkpoint saves all counters in it, until then a "
        "start would not find them: leave the server running, and the data "
        "directory alone",
        name);
}

static bool
mark_is_due(struct wal *wal, uint64_t now)
{
    lock_assert_held(&wal->lock);
    if (wal->idle_ns == 0 || now < wal->idle_ns) {
        return false;
    }
    wal->idle_ns = 0; /* the next sync that leaves nothing sets it again */
    return !wal->stream.is_guarded &&
        wal->stream.appended == wal->synced.stream &&
        wal->file.head.first_seq <= wal->synced.seq;
}

/* Syncs the file, which has all up to what is written now. The lock is let go
 * meanwhile. */
static void
sync_file(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    struct disk *disk = wal->config.disk;
    struct wal_mark mark = wal->written;
    struct wal_failure failure = {
        "sync", 0, wal->file.head.number, false, false};
    struct wal_file file = wal->file;
    wal__unlock(wal);
    uint64_t begun_ns = clock_monotonic_ns();
    failure.err = disk->calls->sync(disk, file.fd);
    bool is_gone = failure.err == 0 && is_spoilt(wal, &file, false);
    if (is_gone) {
        failure.what = LOOK;
        failure.err = ENOENT;
        say_spoilt(wal, failure.number);
    }
    uint64_t us = (clock_monotonic_ns() - begun_ns) / NS_PER_US;
    wal__lock(wal);
    wal->stats.syncs++;
    wal->stats.removed_files += is_gone;
    wal->stats.sync_us[wal_latency_of(us)]++;
    if (failure.err != 0) {
        wal__fail(wal, &failure);
    } else {
        wal__set_synced(wal, &mark);
    }
}

/* The same where there is something to sync, and the file is well. */
static void
sync_written(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    if (wal->written.stream != wal->synced.stream && !wal__is_failing(wal)) {
        sync_file(wal);
    }
}

/* A full disk refused a write, but has what was written before: synced, that
 * need not be written again, for which there would be no room. The caller has
 * the turn. */
static void
save_written(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    uint64_t syncing_ns = wal->syncing_ns;
    if (wal->state == WAL_STATE_NO_ROOM) {
        wal__move(wal, WAL_STATE_FAILED);
        if (wal->written.stream != wal->synced.stream) {
            sync_file(wal);
        }
    }
    if (wal->since_ns == 0 && wal->syncing_ns == 0 &&
        wal->stream.appended != wal->synced.stream) {
        wal->since_ns = syncing_ns; /* of what is left */
    }
}

/* Writes all there is; the caller has the turn. is_to_sync: a sync of it comes
 * next. */
static void
write_all(struct wal *wal, bool is_to_sync)
{
    lock_assert_held(&wal->lock);
    if (wal__is_failing(wal)) {
        return;
    }
    if (is_to_sync) {
        wal->syncing_ns = wal->since_ns;
    }
    wal->since_ns = 0;
    (void)wal__write(wal, wal__now_ns(wal));
}

static void
do_write(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    bool is_lazy = wal->config.sync == WAL_SYNC_NONE;
    wal__take_turn(wal);
    if (is_lazy) {
        uint64_t since_ns = wal->since_ns;
        wal->syncing_ns = since_ns; /* they wait for the write */
        write_all(wal, false);
        if (wal__is_failing(wal) && wal->since_ns == 0) {
            wal->since_ns = since_ns;
        }
        wal->syncing_ns = 0;
    } else {
        (void)wal__write(wal, wal__now_ns(wal));
    }
    wal__give_turn(wal);
    wal__settle(wal);
}

/* With the turn, so that no caller writes meanwhile: it would wait in the
 * kernel for this to end. */
static void
do_allocate(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    wal__take_turn(wal);
    if (!wal__is_failing(wal)) {
        uint64_t end = wal__file_offset(&wal->file, &wal->written);
        wal__unlock(wal);
        wal__file_allocate(wal, &wal->file, end);
        wal__lock(wal);
    }
    wal__give_turn(wal);
}

static void
do_sync(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    wal__take_turn(wal);
    write_all(wal, true);
    wal__give_turn(wal);
    if (wal->config.sync == WAL_SYNC_INTERVAL || wal->is_more) {
        wal__settle(wal);
    }
    sync_written(wal);
    wal__settle(wal);
}

/* The next file could not be made. Where it has certainly not got its name
 * nothing is wrong with the one under way: it goes on, as long as there is
 * room in it. */
static void
stay(struct wal *wal, const struct wal_failure *failure)
{
    lock_assert_held(&wal->lock);
    char name[NAMES_BYTES];
    if (failure->may_stand || wal->state == WAL_STATE_FULL ||
        failure->err == DISK_TAKEN) {
        wal__fail(wal, failure);
        return;
    }
    if (wal->since_ns == 0) { /* wal__begin_file took it for covered */
        wal->since_ns = wal->syncing_ns;
        wal->syncing_ns = 0;
    }
    wal->rotate_fault = disk_err(failure->err);
    wal->rotate_ns = wal__now_ns(wal) + wal->config.retry_ms * NS_PER_MS;
    wal->stats.sync_failures++;
    wal->n_unrotated++;
    if (!wal->is_staying) {
        wal->is_staying = true;
        names_make(name, NAMES_LOG, failure->number);
        log_line(wal->config.logger, LOG_WARNING,
            "%s of %s failed: %s; the log goes on in the file before",
            failure->what, name, disk_say(wal->config.disk, failure->err));
    }
    lock_cond_call(&wal->moved, &wal->lock);
}

/* Says in the file that all before was synced, which else only the next batch
 * would say: what is damaged then cannot be taken for what a crash left. */
static void
do_mark(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    uint8_t entry[ENTRY_MARK_BYTES];
    entry_put_mark(entry, ENTRY_MARK_IDLE);
    wal__take_turn(wal);
    bool is_idle = wal->stream.appended == wal->synced.stream &&
        !wal__is_failing(wal) && !wal->stream.is_short &&
        !wal->stream.is_guarded;
    if (is_idle) {
        uint64_t seq = wal__stream_append(&wal->stream, entry, sizeof entry);
        wal->mark_seq = seq;
        (void)wal__write(wal, wal__now_ns(wal));
        bool is_done = wal->written.seq == seq;
        wal->stats.batches -= is_done;
        wal->stats.marks += is_done;
    }
    wal__give_turn(wal);
    wal__settle(wal);
}

/* The last look at a file that all is in: later ones look at the next. */
static void
look_at_end(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    struct wal_failure failure = {
        LOOK, ENOENT, wal->file.head.number, false, false};
    struct wal_failure refusal;
    struct wal_file file = wal->file;
    bool is_gone = wal->spoilt == file.head.number;
    wal__unlock(wal);
    is_gone = is_spoilt(wal, &file, true) || is_gone;
    if (is_gone) {
        say_spoilt(wal, failure.number);
    }
    bool may = wal__file_may_begin(wal, failure.number, &refusal);
    wal__lock(wal);
    wal->stats.removed_files += is_gone;
    if (!may) {
        wal__fail(wal, &refusal);
    } else if (is_gone) {
        wal__fail(wal, &failure);
    }
}

/* Somebody begins anew behind this file, which may be empty and stay. */
static void
do_look(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    wal__take_turn(wal);
    wal->is_look_wanted = false;
    look_at_end(wal);
    wal__give_turn(wal);
    lock_cond_call(&wal->moved, &wal->lock);
}

/* Writes and syncs all there is, for the last time in this file if it is still
 * well then. The caller has the turn. */
static void
end_file(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    write_all(wal, true);
    if (wal->config.sync == WAL_SYNC_INTERVAL || wal->is_more) {
        wal__settle(wal);
    }
    sync_written(wal);
    if (!wal__is_failing(wal)) {
        look_at_end(wal);
    }
}

static void
do_rotate(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    struct wal_failure failure;
    if (wal->written.stream - wal->synced.stream > SYNC_AHEAD_BYTES) {
        do_sync(wal);
    }
    wal__take_turn(wal);
    end_file(wal);
    if (!wal__is_failing(wal)) {
        uint64_t end = wal__file_offset(&wal->file, &wal->synced);
        if (wal__begin_file(wal, end, &failure)) {
            wal->is_staying = false;
        } else {
            stay(wal, &failure);
        }
    }
    wal__give_turn(wal);
    wal__settle(wal);
}

/* Once all before it is synced, takes the batch of wal->jump with its number:
 * the first one of the next file, which gets its name with the batch in it.
 * From there on it is a batch as any other, and where that file cannot be made
 * it is in a later one (take_over). */
static void
do_jump(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    struct wal_failure failure;
    wal__take_turn(wal);
    end_file(wal);
    struct wal_jump *jump = wal->jump; /* who waits may have given up */
    if (jump != NULL && !wal__is_failing(wal) &&
        wal->stream.appended == wal->synced.stream) {
        uint64_t end = wal__file_offset(&wal->file, &wal->synced);
        bool was_short = wal->stream.is_short;
        wal->jump = NULL;
        jump->is_short = !wal__stream_make_room(&wal->stream, jump->len);
        if (!jump->is_short) {
            wal__set_next(wal, jump->seq);
            wal__stream_add(&wal->stream, jump->payload, jump->len);
            wal->terms = *jump->terms; /* at once, for who looks at both */
            wal__note_append(wal, was_short);
            if (!wal__begin_file(wal, end, &failure)) {
                wal__fail(wal, &failure);
            }
        }
    }
    wal__give_turn(wal);
    wal__settle(wal);
    lock_cond_call(&wal->moved, &wal->lock);
}

static const char *
advice(int fault)
{
    switch (fault) {
    case ERR_DISK_FULL:
        return "make room on the disk";
    case ERR_FILE_SIZE:
        return "raise the limit of file sizes (ulimit -f)";
    case ERR_DIR_TAKEN:
        return "stop one of the two servers";
    default:
        return "look at the disk and the kernel's messages";
    }
}

void
wal__say_failed(struct wal *wal, const struct wal_failure *first, int fault)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_LOG, first->number);
    log_line(wal->config.logger, LOG_ERROR,
        "%s of %s failed: %s; changes of counters are refused until the log "
        "can be written again: %s",
        first->what, name, disk_say(wal->config.disk, first->err),
        advice(fault));
}

static void
say_well(struct wal *wal, const struct wal_failure *first, bool was_refused)
{
    char name[NAMES_BYTES];
    if (was_refused) {
        names_make(name, NAMES_LOG, wal->file.head.number);
        log_line(wal->config.logger, LOG_WARNING,
            "the log can be written again, in %s; nothing that was "
            "acknowledged is lost",
            name);
        return;
    }
    names_make(name, NAMES_LOG, first->number);
    log_line(wal->config.logger, LOG_WARNING,
        "%s of %s failed: %s; the log goes on in the next file, nothing is "
        "lost",
        first->what, name, disk_say(wal->config.disk, first->err));
}

/* Goes on in a new file. */
static void
take_over(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    struct wal_failure first = wal->failure, failure;
    bool was_refused = wal->disk_fault != 0;
    wal__take_turn(wal);
    save_written(wal);
    bool has_file = wal->file.fd >= 0; /* else the first one is still to be */
    uint64_t before_end = has_file ? wal__file_offset(&wal->file, &wal->synced)
                                   : wal->config.start.before_end;
    uint64_t written_end = wal__file_offset(&wal->file, &wal->written);
    /* a full disk may have the room that was allocated ahead */
    wal__unlock(wal);
    wal__file_trim(wal, &wal->file, written_end);
    wal__lock(wal);
    bool is_done = wal__begin_file(wal, before_end, &failure);
    wal__give_turn(wal);
    if (is_done) {
        wal__settle(wal);
    } else {
        wal->stats.sync_failures++;
        wal__move(wal, WAL_STATE_REFUSED);
        wal->disk_fault = disk_err(failure.err);
        wal->retry_ns = wal__now_ns(wal) + wal->config.retry_ms * NS_PER_MS;
        wal__show_fault(wal);
        lock_cond_call(&wal->moved, &wal->lock);
    }
    int fault = wal->disk_fault;
    wal__unlock(wal);
    if (is_done) {
        say_well(wal, &first, was_refused);
    } else if (!was_refused) {
        wal__say_failed(wal, &first, fault);
    }
    if (was_refused == is_done) {
        wal__notify(wal); /* what has failed, or has not */
    }
    wal__lock(wal);
}

/* Sleeps until something may be due. */
static void
doze(struct wal *wal, uint64_t now)
{
    lock_assert_held(&wal->lock);
    uint64_t until = LOCK_NEVER;
    if (wal__is_failing(wal)) {
        until = wal->retry_ns;
    } else if (wal->since_ns != 0) {
        until = wal->since_ns + wal__due_ns(wal);
    }
    if (wal->idle_ns != 0 && !wal__is_failing(wal) && until > wal->idle_ns) {
        until = wal->idle_ns;
    }
    if (wal->rotate_ns > now && until > wal->rotate_ns) {
        until = wal->rotate_ns;
    }
    if (wal->stream.is_short && until > now + WAL_RETRY_MS * NS_PER_MS) {
        until = now + WAL_RETRY_MS * NS_PER_MS;
    }
    wal->sleep_ns = until;
    lock_cond_wait(&wal->wake, &wal->lock, wal->config.clock, until);
    wal->sleep_ns = 0;
}

/* Does what is due; false where that is nothing. */
static bool
step(struct wal *wal, uint64_t now)
{
    lock_assert_held(&wal->lock);
    if (wal__is_failing(wal)) {
        if (now < wal->retry_ns) {
            return false;
        }
        take_over(wal);
    } else if (wal->is_look_wanted) {
        do_look(wal);
    } else if (rotate_is_due(wal, now)) {
        do_rotate(wal);
    } else if (wal->jump != NULL) {
        do_jump(wal);
    } else if (wal__allocate_is_due(wal)) {
        do_allocate(wal);
    } else if (sync_is_due(wal, now)) {
        do_sync(wal);
    } else if (write_is_due(wal, now)) {
        do_write(wal);
    } else if (mark_is_due(wal, now)) {
        do_mark(wal);
    } else {
        return false;
    }
    return true;
}

/* Leaves all synced and an empty file behind it, if that can be done. */
static void
finish(struct wal *wal)
{
    lock_assert_held(&wal->lock);
    for (unsigned tries = 0; tries < STOP_TRIES;) {
        if (wal__is_failing(wal)) {
            tries++;
            wal->retry_ns = 0;
        } else {
            wal->rotate_wanted = wal->stream.closed.seq + wal->stream.is_open;
        }
        if (!step(wal, wal__now_ns(wal))) {
            break;
        }
    }
}

void *
wal__run(void *arg)
{
    struct wal *wal = arg;
    ASSERT(wal->magic == WAL_MAGIC);
    wal__lock(wal);
    while (!wal->is_stopping) {
        uint64_t now = wal__now_ns(wal);
        if (wal->stream.is_short) {
            wal__stream_stock(&wal->stream);
            wal__show_fault(wal);
        }
        if (!step(wal, now)) {
            doze(wal, now);
        }
    }
    finish(wal);
    uint64_t end = wal->file.fd >= 0 && !wal__is_failing(wal)
        ? wal__file_offset(&wal->file, &wal->written)
        : UINT64_MAX;
    wal__unlock(wal);
    /* room for the next start, where there is little */
    wal__file_trim(wal, &wal->file, end);
    return NULL;
}

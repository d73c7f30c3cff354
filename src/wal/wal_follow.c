/* SPDX-License-Identifier: BSD-3-Clause */
/* Follows the log through its files.
 *
 *   log-5                log-6                       log-7, under way
 *   | batches |B void    | first_seq, before_end = B | batches | written
 *                 ^at                                          ^ end
 *
 * In the file under way a batch counts up to where it is written, which only
 * the log knows; in an earlier one up to the offset that its successor names.
 * A file that has been given up is left alone until its successor is there:
 * what the kernel says of it may be anything after a failed sync. The successor
 * begins with what was not synced, some of which may have been given out
 * before: that is passed over. Its number may also be far above the next one: a
 * term began, or the server had been started anew.
 *
 * Who finds nothing more says so under the lock (follows_wait), where the log
 * moves on as well; so no call of more_fn is missed.
 *
 * What can go wrong: the disk, memory; the reader is too far behind, and files
 * have gone. */
#include "wal/wal_follow.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/names.h"
#include "wal/wal_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What an errno value of the disk is. */
static int
err_of(int error)
{
    return error == 0      ? 0
        : error == ENOENT  ? ERR_LOG_GONE
        : error == EBADMSG ? ERR_CORRUPT
                           : ERR_DISK;
}

/* Opens a file, and begins at its first batch. *follow is as before where it
 * is not 0. */
static int
open_file(struct wal_follow *follow, uint64_t number)
{
    struct disk *disk = follow->wal->config.disk;
    struct frame_file head;
    char name[NAMES_BYTES];
    int fd;
    names_make(name, NAMES_LOG, number);
    int error = disk->calls->open(disk, name, DISK_READ, &fd);
    if (error != 0) {
        return err_of(error);
    }
    error = wal__file_head(disk, number, &head);
    if (error != 0 || head.number != number) {
        disk->calls->close(disk, fd);
        return error != 0 ? err_of(error) : ERR_CORRUPT;
    }
    if (follow->fd >= 0) {
        disk->calls->close(disk, follow->fd);
    }
    follow->fd = fd;
    follow->head = head;
    follow->at = FRAME_FILE_BYTES;
    follow->n = 0;
    follow->used = 0;
    return 0;
}

int
wal_follow_open(struct wal *wal, struct wal_follow *follow, uint64_t from_seq,
    uint64_t bytes_max, void (*more_fn)(struct wal_follow *follow))
{
    *follow = (struct wal_follow){.wal = wal,
        .fd = -1,
        .next_seq = from_seq,
        .capacity = WAL_FOLLOW_BYTES,
        .more_fn = more_fn};
    int err = wal_pin(wal, &follow->pin, from_seq, bytes_max);
    if (err != 0) {
        return err;
    }
    follow->bytes = malloc(follow->capacity);
    err = follow->bytes == NULL ? ERR_NO_MEMORY
                                : open_file(follow, follow->pin.number);
    if (err != 0) {
        free(follow->bytes);
        wal_unpin(wal, &follow->pin);
        return err;
    }
    rwlock_write(&wal->listen_lock);
    follow->next = wal->follows;
    wal->follows = follow;
    rwlock_leave(&wal->listen_lock);
    return 0;
}

void
wal_follow_close(struct wal_follow *follow)
{
    struct wal *wal = follow->wal;
    rwlock_write(&wal->listen_lock);
    struct wal_follow **at = &wal->follows;
    while (*at != follow) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = follow->next;
    rwlock_leave(&wal->listen_lock);
    wal_unpin(wal, &follow->pin);
    wal->config.disk->calls->close(wal->config.disk, follow->fd);
    free(follow->bytes);
    *follow = (struct wal_follow){.fd = -1};
}

void
wal__tell_follows(struct wal *wal)
{
    rwlock_read(&wal->listen_lock);
    for (struct wal_follow *it = wal->follows; it != NULL; it = it->next) {
        it->more_fn(it);
    }
    rwlock_leave(&wal->listen_lock);
}

/* How far the file is to be read. *end is 0 where it has a successor, which
 * says so; *is_all: no more than has been read is written. */
static void
look_at_log(struct wal_follow *follow, uint64_t *end, bool *is_all)
{
    struct wal *wal = follow->wal;
    *end = 0;
    *is_all = false;
    wal__lock(wal);
    ASSERT(follow->head.number <= wal->file.head.number);
    if (follow->head.number == wal->file.head.number) {
        *end = wal__file_offset(&wal->file, &wal->written);
        *is_all = wal__is_failing(wal) || *end <= follow->at;
        wal->follows_wait |= *is_all;
    }
    wal__unlock(wal);
}

/* Goes on to the next file, whose header is *head. */
static int
next_file(struct wal_follow *follow, const struct frame_file *head)
{
    uint64_t first_seq = head->first_seq;
    if (first_seq > follow->next_seq &&
        first_seq - follow->next_seq < SEQ_GAP) {
        return ERR_CORRUPT;
    }
    int err = open_file(follow, head->number);
    if (err != 0) {
        return err;
    }
    if (first_seq > follow->next_seq) {
        follow->next_seq = first_seq;
    }
    err = wal_pin__move(follow->wal, &follow->pin, follow->next_seq);
    return err == ERR_DISK ? 0 : err; /* it keeps one file more */
}

/* Finds out up to where the file is to be read, and goes on to the next one
 * where that has been done, or to the one that the pin keeps: later ones may
 * begin with what was given out from an earlier one, and what lies before the
 * last of these goes. *end as above: 0 where there is no more yet. */
static int
find_end(struct wal_follow *follow, uint64_t *end)
{
    for (;;) {
        struct frame_file next;
        bool is_all;
        int err = follow->head.number < follow->pin.number
            ? open_file(follow, follow->pin.number)
            : 0;
        if (err != 0) {
            return err;
        }
        look_at_log(follow, end, &is_all);
        if (is_all || *end != 0) {
            *end = is_all ? 0 : *end;
            return 0;
        }
        int error = wal__file_head(
            follow->wal->config.disk, follow->head.number + 1, &next);
        if (error != 0) {
            return err_of(error);
        }
        if (next.before_end > follow->at) {
            *end = next.before_end;
            return 0;
        }
        err = next_file(follow, &next);
        if (err != 0) {
            return err;
        }
    }
}

/* Reads from the next batch on, up to end; at least all of that batch. */
static int
read_bytes(struct wal_follow *follow, uint64_t end)
{
    struct disk *disk = follow->wal->config.disk;
    struct frame_batch batch;
    follow->n = 0;
    follow->used = 0;
    for (;;) {
        size_t n = 0;
        uint64_t all = end - follow->at;
        size_t len = all < follow->capacity ? (size_t)all : follow->capacity;
        int error = disk->calls->read(
            disk, follow->fd, follow->bytes, len, follow->at, &n);
        if (error != 0) {
            return err_of(error);
        }
        if (n < FRAME_BATCH_BYTES ||
            !frame_batch_peek(follow->bytes, &batch) ||
            FRAME_BATCH_BYTES + (size_t)batch.payload_bytes <=
                follow->capacity) {
            follow->n = n;
            return 0;
        }
        size_t more = FRAME_BATCH_BYTES + (size_t)batch.payload_bytes;
        uint8_t *bytes = realloc(follow->bytes, more);
        if (bytes == NULL) {
            return ERR_NO_MEMORY;
        }
        follow->bytes = bytes;
        follow->capacity = more;
    }
}

/* The next batch that has been read. *is_there: there is one. */
static int
take_batch(
    struct wal_follow *follow, struct wal_follow_batch *out, bool *is_there)
{
    const uint8_t *at = follow->bytes + follow->used;
    struct frame_batch batch;
    *is_there = follow->used < follow->n &&
        frame_batch_get(&follow->head, at, follow->n - follow->used, &batch) ==
            FRAME_OK;
    if (!*is_there) {
        return 0;
    }
    size_t len = FRAME_BATCH_BYTES + (size_t)batch.payload_bytes;
    follow->used += len;
    follow->at += len;
    *out = (struct wal_follow_batch){
        batch.seq, at + FRAME_BATCH_BYTES, batch.payload_bytes};
    return batch.seq > follow->next_seq ? ERR_CORRUPT : 0;
}

/* No sound batch is where one was written. That is so for a moment where the
 * file is just being given up. */
static int
look_again(struct wal_follow *follow, uint64_t end)
{
    struct wal *wal = follow->wal;
    wal__lock(wal);
    bool is_well =
        follow->head.number == wal->file.head.number && !wal__is_failing(wal);
    wal__unlock(wal);
    if (is_well) {
        return ERR_CORRUPT;
    }
    uint64_t now;
    uint64_t number = follow->head.number;
    int err = find_end(follow, &now);
    return err != 0                                   ? err
        : number == follow->head.number && now >= end ? ERR_CORRUPT
                                                      : 0;
}

int
wal_follow_next(struct wal_follow *follow, struct wal_follow_batch *out)
{
    uint64_t end = 0;
    for (bool was_read = false;;) {
        bool is_there;
        int err = take_batch(follow, out, &is_there);
        if (err == 0 && is_there && out->seq == follow->next_seq) {
            follow->next_seq++;
            return 0;
        }
        if (err == 0 && !is_there) {
            err = was_read ? look_again(follow, end) : 0;
            err = err != 0 ? err : find_end(follow, &end);
            if (err == 0 && end == 0) {
                *out = (struct wal_follow_batch){0};
                return 0;
            }
            err = err != 0 ? err : read_bytes(follow, end);
        }
        if (err != 0) {
            return err;
        }
        was_read = !is_there;
    }
}

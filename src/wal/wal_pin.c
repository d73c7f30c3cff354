/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes log files that nobody needs any more, and keeps those of readers.
 *
 *   first_file       pin->number        forgotten          file under way
 *       |   goes         |     pinned       |    not in images    |
 *
 * wal_forget says what checkpoints do not need any more (forgotten). Files
 * before that and before all pins are removed, lowest first, so that what is
 * left is always without gaps. What lies between a pin and forgotten is kept
 * for that reader alone; where it is more than the pin's limit the pin is
 * broken, which is noticed when files are forgotten.
 *
 * forget_lock is held for all of it, disk calls included, so that a pin is
 * never set on a file that is just being removed. wal->lock is taken inside.
 *
 * What can go wrong: a file that cannot be removed stays, and is tried again
 * next time; one of which cannot be told what is in it counts as empty. */
#include "wal/wal_pin.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/names.h"
#include "wal/wal_priv.h"

#include <errno.h>
#include <inttypes.h>

/* Breaks pins that keep too much; returns the file from which on all stay. */
static uint64_t
settle_pins(struct wal *wal)
{
    mutex_assert_held(&wal->forget_lock);
    uint64_t keep = wal->forgotten;
    for (struct wal_pin *pin = wal->pins; pin != NULL; pin = pin->next) {
        uint64_t bytes = 0;
        if (pin->is_broken) {
            continue;
        }
        for (uint64_t at = pin->number; at < wal->forgotten; at++) {
            bytes += wal__file_bytes(wal->config.disk, at);
        }
        if (bytes > pin->bytes_max) {
            pin->is_broken = true;
            log_line(wal->config.logger, LOG_WARNING,
                "a reader of the log is %" PRIu64
                " bytes behind the last checkpoint and loses its place",
                bytes);
        } else if (pin->number < keep) {
            keep = pin->number;
        }
    }
    return keep;
}

/* Which batch a replica's log begins with, now that file number is its first
 * one; where that cannot be read, the one under way is sure to be there. */
static void
note_first(struct wal *wal, uint64_t number)
{
    mutex_assert_held(&wal->forget_lock);
    struct frame_file head;
    if (wal->first_seq == 0 || number == wal->noted_file) {
        return;
    }
    int error = wal__file_head(wal->config.disk, number, &head);
    wal->noted_file = error == 0 ? number : 0;
    wal__lock(wal);
    wal->first_seq = error == 0 ? head.first_seq : wal->file.head.first_seq;
    wal__unlock(wal);
}

/* Removes what nobody keeps. */
static void
sweep(struct wal *wal)
{
    mutex_assert_held(&wal->forget_lock);
    struct disk *disk = wal->config.disk;
    char name[NAMES_BYTES];
    uint64_t keep = settle_pins(wal);
    uint64_t pinned = 0;
    wal__lock(wal);
    uint64_t first = wal->first_file;
    wal__unlock(wal);
    ASSERT(keep <= wal->forgotten);
    for (; first < keep; first++) {
        names_make(name, NAMES_LOG, first);
        uint64_t bytes = wal__file_bytes(disk, first);
        int err = disk->calls->unlink(disk, name);
        if (err != 0 && err != ENOENT) {
            break;
        }
        wal__lock(wal);
        ASSERT(wal->first_file == first && first < wal->file.head.number);
        wal->first_file = first + 1;
        wal->old_bytes -= bytes < wal->old_bytes ? bytes : wal->old_bytes;
        wal__unlock(wal);
    }
    note_first(wal, first);
    for (uint64_t at = keep; at < wal->forgotten; at++) {
        pinned += wal__file_bytes(disk, at);
    }
    wal__lock(wal);
    wal->stats.pinned_bytes = pinned;
    wal__unlock(wal);
}

void
wal_forget(struct wal *wal, uint64_t number)
{
    wal__lock(wal);
    ASSERT(number <= wal->file.head.number);
    wal__unlock(wal);
    mutex_lock(&wal->forget_lock);
    ASSERT(wal->magic == WAL_MAGIC);
    if (wal->forgotten < number) {
        wal->forgotten = number;
    }
    sweep(wal);
    mutex_unlock(&wal->forget_lock);
}

/* The number of the first batch of a file. 0, ERR_LOG_GONE where there is no
 * such file (a power cut may bring an earlier one back), or ERR_DISK. */
static int
first_seq_of(struct wal *wal, uint64_t number, uint64_t *first_seq)
{
    struct frame_file head;
    int err = wal__file_head(wal->config.disk, number, &head);
    if (err != 0) {
        return err == ENOENT ? ERR_LOG_GONE : ERR_DISK;
    }
    *first_seq = head.first_seq;
    return 0;
}

/* The file that has batch seq, or will have it: the last one that begins at or
 * before it, since what an earlier one has from there on is void. */
static int
find_file(struct wal *wal, uint64_t seq, uint64_t *number)
{
    mutex_assert_held(&wal->forget_lock);
    wal__lock(wal);
    uint64_t first_file = wal->first_file;
    uint64_t last = wal->stream.closed.seq + wal->stream.is_open;
    uint64_t first_seq = wal->file.head.first_seq;
    uint64_t at = wal->file.head.number;
    bool has_file = wal->file.fd >= 0;
    wal__unlock(wal);
    if (seq == 0 || seq > last + 1) {
        return ERR_LOG_GONE;
    }
    if (!has_file) { /* the first one could not be made yet */
        return ERR_DISK;
    }
    while (seq < first_seq) {
        if (at == first_file) {
            return ERR_LOG_GONE;
        }
        int err = first_seq_of(wal, --at, &first_seq);
        if (err != 0) {
            return err;
        }
    }
    ASSERT(first_file <= at && first_seq <= seq);
    *number = at;
    return 0;
}

int
wal_pin(struct wal *wal, struct wal_pin *pin, uint64_t next_seq,
    uint64_t bytes_max)
{
    *pin = (struct wal_pin){.bytes_max = bytes_max};
    mutex_lock(&wal->forget_lock);
    int err = find_file(wal, next_seq, &pin->number);
    if (err == 0) {
        pin->next = wal->pins;
        wal->pins = pin;
    }
    mutex_unlock(&wal->forget_lock);
    return err;
}

int
wal_pin__move(struct wal *wal, struct wal_pin *pin, uint64_t next_seq)
{
    uint64_t number;
    mutex_lock(&wal->forget_lock);
    int err =
        pin->is_broken ? ERR_LOG_GONE : find_file(wal, next_seq, &number);
    if (err == 0) {
        ASSERT(number >= pin->number);
        pin->number = number;
        sweep(wal);
    }
    mutex_unlock(&wal->forget_lock);
    return err;
}

int
wal_pin_check(struct wal *wal, const struct wal_pin *pin)
{
    mutex_lock(&wal->forget_lock);
    int err = pin->is_broken ? ERR_LOG_GONE : 0;
    mutex_unlock(&wal->forget_lock);
    return err;
}

void
wal_unpin(struct wal *wal, struct wal_pin *pin)
{
    mutex_lock(&wal->forget_lock);
    struct wal_pin **link = &wal->pins;
    while (*link != pin) {
        ASSERT(*link != NULL);
        link = &(*link)->next;
    }
    *link = pin->next;
    pin->next = NULL;
    sweep(wal);
    mutex_unlock(&wal->forget_lock);
}

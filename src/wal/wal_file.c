/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's files, as far as the disk is concerned.
 *
 * A file is made under its name with .new, gets its header and, after a
 * failure, all batches that must not be lost; it is synced, renamed and the
 * names are synced. So at each point a crash leaves the old chain of files or
 * the whole new one. A leftover .new of an attempt that failed is removed and
 * never written to again: its inode may have lost bytes that it does not tell
 * about.
 *
 * A file that has a successor says so itself: behind its end, where nothing
 * counts any more, stands a mark. So a newest file that is gone is missed. It
 * is not written where the file had failed, and is never synced.
 *
 * Room is allocated ahead in steps, so that a commit need not make the file
 * longer: by the log's thread, when less than half a step is left. Where it
 * comes late a write makes the file longer itself. Where there is little room
 * the steps become smaller, and a disk that cannot allocate is asked once a
 * file; none of this is an error before a write says so. */
#include "wal/wal_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/entry.h"
#include "wal/names.h"

#include <errno.h>

enum { STEP_BYTES_MAX = 4 << 20, STEP_BYTES_MIN = 64 << 10 };

uint64_t
wal__file_offset(const struct wal_file *file, const struct wal_mark *mark)
{
    ASSERT(mark->stream >= file->start);
    return FRAME_FILE_BYTES + mark->stream - file->start;
}

bool
wal__file_lacks_room(
    const struct wal *wal, const struct wal_file *file, uint64_t end)
{
    return file->step > 0 && file->allocated < wal->config.file_bytes &&
        file->allocated < end + file->step / 2;
}

void
wal__file_allocate(struct wal *wal, struct wal_file *file, uint64_t end)
{
    struct disk *disk = wal->config.disk;
    while (wal__file_lacks_room(wal, file, end)) {
        uint64_t to = end + file->step;
        if (to > wal->config.file_bytes) {
            to = wal->config.file_bytes;
        }
        int err = disk->calls->allocate(
            disk, file->fd, file->allocated, to - file->allocated);
        if (err == 0) {
            file->allocated = to;
        } else if (disk_err(err) == ERR_DISK || file->step <= STEP_BYTES_MIN) {
            file->step = 0;
        } else {
            file->step /= 2;
        }
    }
}

bool
wal__file_write(struct wal *wal, struct wal_file *file,
    const struct wal_mark *from, const struct wal_mark *to,
    uint64_t synced_seq, struct wal_written *written,
    struct wal_failure *failure)
{
    struct disk *disk = wal->config.disk;
    struct wal_mark at = *from;
    struct wal_run run;
    for (uint64_t offset = wal__file_offset(file, &at); wal__stream_seal(
             &at, to, &file->head, synced_seq, &run, &written->batches);
         offset += run.len) {
        int err =
            disk->calls->write(disk, file->fd, run.bytes, run.len, offset);
        written->writes++;
        if (err != 0) {
            *failure =
                (struct wal_failure){"write", err, file->head.number, false};
            return false;
        }
    }
    return true;
}

/* Header and batches, synced. */
static bool
fill(struct wal *wal, struct wal_file *file, const struct wal_mark *from,
    const struct wal_mark *to, struct wal_written *written,
    struct wal_failure *failure)
{
    struct disk *disk = wal->config.disk;
    uint8_t head[FRAME_FILE_BYTES];
    frame_file_put(&file->head, head);
    int err = disk->calls->write(disk, file->fd, head, FRAME_FILE_BYTES, 0);
    if (err != 0) {
        *failure =
            (struct wal_failure){"write", err, file->head.number, false};
        return false;
    }
    if (from->stream < to->stream) {
        wal__file_allocate(wal, file, wal__file_offset(file, to));
    }
    if (!wal__file_write(wal, file, from, to, from->seq, written, failure)) {
        return false;
    }
    err = disk->calls->sync(disk, file->fd);
    *failure = (struct wal_failure){"sync", err, file->head.number, false};
    return err == 0;
}

/* Gives the file its place. */
static bool
place(struct wal *wal, uint64_t number, const char *new_name,
    struct wal_failure *failure)
{
    struct disk *disk = wal->config.disk;
    char name[NAMES_BYTES];
    names_make(name, NAMES_LOG, number);
    int err = disk->calls->rename(disk, new_name, name);
    *failure = (struct wal_failure){"rename", err, number, true};
    if (err == 0) {
        err = disk->calls->sync_names(disk);
        *failure =
            (struct wal_failure){"sync of the directory", err, number, true};
    }
    return err == 0;
}

bool
wal__file_begin(struct wal *wal, const struct frame_file *head,
    const struct wal_mark *from, const struct wal_mark *to,
    struct wal_file *out, struct wal_written *written,
    struct wal_failure *failure)
{
    struct disk *disk = wal->config.disk;
    char new_name[NAMES_BYTES];
    *out = (struct wal_file){.head = *head,
        .fd = -1,
        .start = from->stream,
        .allocated = FRAME_FILE_BYTES,
        .step = STEP_BYTES_MAX};
    names_make(new_name, NAMES_LOG_NEW, head->number);
    (void)disk->calls->unlink(disk, new_name);
    int err = disk->calls->open(disk, new_name, DISK_CREATE, &out->fd);
    if (err != 0) {
        *failure = (struct wal_failure){"making", err, head->number, false};
        return false;
    }
    if (fill(wal, out, from, to, written, failure) &&
        place(wal, head->number, new_name, failure)) {
        return true;
    }
    wal__file_close(wal, out);
    /* gives its room back; where it has its place already it stays */
    (void)disk->calls->unlink(disk, new_name);
    return false;
}

uint64_t
wal__file_note_next(
    struct wal *wal, const struct wal_file *old, const struct frame_file *next)
{
    struct disk *disk = wal->config.disk;
    struct frame_file head = {.epoch = next->epoch, .number = next->before};
    struct frame_batch batch = {.seq = next->first_seq,
        .synced_seq = next->first_seq - 1,
        .payload_bytes = ENTRY_MARK_BYTES};
    uint8_t bytes[FRAME_BATCH_BYTES + ENTRY_MARK_BYTES];
    char name[NAMES_BYTES];
    int fd = old->fd;
    if (next->before == 0) {
        return 0;
    }
    names_make(name, NAMES_LOG, next->before);
    if (fd < 0 && disk->calls->open(disk, name, DISK_WRITE, &fd) != 0) {
        return 0;
    }
    entry_put_mark(bytes + FRAME_BATCH_BYTES, ENTRY_MARK_FOLLOWED);
    frame_batch_put(&head, &batch, bytes);
    int err =
        disk->calls->write(disk, fd, bytes, sizeof bytes, next->before_end);
    if (fd != old->fd) {
        disk->calls->close(disk, fd);
    }
    return err == 0 ? sizeof bytes : 0;
}

void
wal__file_trim(struct wal *wal, struct wal_file *file, uint64_t end)
{
    struct disk *disk = wal->config.disk;
    if (file->fd >= 0 && file->allocated > end) {
        (void)disk->calls->truncate(disk, file->fd, end);
        file->allocated = end;
    }
}

void
wal__file_close(struct wal *wal, struct wal_file *file)
{
    struct disk *disk = wal->config.disk;
    if (file->fd >= 0) {
        disk->calls->close(disk, file->fd);
        file->fd = -1;
    }
}

uint64_t
wal__file_bytes(struct disk *disk, const char *name)
{
    uint64_t bytes = 0;
    int fd;
    if (disk->calls->open(disk, name, DISK_READ, &fd) == 0) {
        if (disk->calls->size(disk, fd, &bytes) != 0) {
            bytes = 0;
        }
        disk->calls->close(disk, fd);
    }
    return bytes;
}

struct counting {
    struct disk *disk;
    uint64_t first_number;
    uint64_t bytes;
};

static void
count_name(void *context, const char *name)
{
    struct counting *counting = context;
    enum names_kind kind;
    uint64_t number;
    if (!names_parse(name, &kind, &number) || kind != NAMES_LOG) {
        return;
    }
    counting->bytes += wal__file_bytes(counting->disk, name);
    if (number < counting->first_number) {
        counting->first_number = number;
    }
}

int
wal__file_count(struct disk *disk, uint64_t *first_number, uint64_t *bytes)
{
    struct counting counting = {disk, UINT64_MAX, 0};
    int err = disk->calls->list(disk, count_name, &counting);
    *first_number = counting.first_number;
    *bytes = counting.bytes;
    return err;
}

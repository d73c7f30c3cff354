/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes, writes and closes the log's files.
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
 * A file has its full length from the beginning, twice what makes it be
 * followed by the next, and its header says so; it never becomes shorter. So
 * one that is shorter was cut off by somebody. Nothing is written behind that
 * length: what does not fit goes to the next file. The length is a hole and
 * takes no room; room that was allocated in vain is given back by making holes.
 *
 * Room is allocated ahead in steps, so that a commit need not ask for it: by
 * the log's thread, when less than half a step is left. Where it comes late a
 * write takes it itself. Where there is little room the steps become smaller,
 * and a disk that cannot allocate is asked once a file; none of this is an
 * error before a write says so. On a full disk a file takes what it needs and
 * no more: others need the rest to make room. */
#include "wal/wal_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/names.h"
#include "wal/note.h"

#include <errno.h>
#include <string.h>

enum {
    STEP_BYTES_MAX = 4 << 20,
    STEP_BYTES_MIN = 64 << 10,
    LENGTHS = 2,     /* of config.file_bytes: what a file is made with */
    MORE_MIN = 4096, /* than what it begins with */
};

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Room is allocated up to there: usually no more is needed. */
static uint64_t
room_max(const struct wal *wal, const struct wal_file *file)
{
    return min_u64(wal->config.file_bytes, wal__file_limit(file));
}

bool
wal__file_lacks_room(
    const struct wal *wal, const struct wal_file *file, uint64_t end)
{
    return file->step > 0 && file->allocated < room_max(wal, file) &&
        file->allocated < end + file->step / 2;
}

void
wal__file_allocate(struct wal *wal, struct wal_file *file, uint64_t end)
{
    struct disk *disk = wal->config.disk;
    while (wal__file_lacks_room(wal, file, end)) {
        uint64_t to = min_u64(end + file->step, room_max(wal, file));
        ASSERT(file->allocated < to && to <= file->head.bytes);
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
    ASSERT(wal__file_offset(file, to) <= wal__file_limit(file));
    for (uint64_t offset = wal__file_offset(file, &at); wal__stream_seal(
             &at, to, &file->head, synced_seq, &run, &written->batches);
         offset += run.len) {
        int err =
            disk->calls->write(disk, file->fd, run.bytes, run.len, offset);
        written->writes++;
        if (err != 0) {
            *failure = (struct wal_failure){.what = "write",
                .err = err,
                .number = file->head.number,
                .may_sync = disk_err(err) == ERR_DISK_FULL};
            return false;
        }
    }
    return true;
}

/* Gives an empty file its length, which has room for what is to be in it up to
 * end and some more; less where files may not be so long. An errno value. */
static int
lengthen(struct wal *wal, struct wal_file *file, uint64_t end)
{
    struct disk *disk = wal->config.disk;
    uint64_t more = LENGTHS * wal->config.file_bytes;
    uint64_t least = end + NOTE_BYTES;
    int err;
    more = more > least + wal->config.file_bytes ? more - least
                                                 : wal->config.file_bytes;
    do {
        file->head.bytes = least + more;
        err = disk->calls->truncate(disk, file->fd, file->head.bytes);
        more /= 2;
    } while (err == EFBIG && more >= MORE_MIN);
    return err;
}

/* Length, header and batches, synced. */
static bool
fill(struct wal *wal, struct wal_file *file, const struct wal_mark *from,
    const struct wal_mark *to, struct wal_written *written,
    struct wal_failure *failure)
{
    struct disk *disk = wal->config.disk;
    uint8_t head[FRAME_FILE_BYTES];
    int err = lengthen(wal, file, wal__file_offset(file, to));
    if (err == 0) {
        frame_file_put(&file->head, head);
        err = disk->calls->write(disk, file->fd, head, FRAME_FILE_BYTES, 0);
    }
    if (err != 0) {
        *failure = (struct wal_failure){
            "write", err, file->head.number, false, false};
        return false;
    }
    if (from->stream < to->stream) {
        wal__file_allocate(wal, file, wal__file_offset(file, to));
    }
    if (!wal__file_write(wal, file, from, to, from->seq, written, failure)) {
        return false;
    }
    /* all that is to be in it, and that was not in a file that is given up */
    ASSERT(written->batches == to->seq - from->seq);
    err = disk->calls->sync(disk, file->fd);
    *failure =
        (struct wal_failure){"sync", err, file->head.number, false, false};
    return err == 0;
}

bool
wal__file_may_begin(
    struct wal *wal, uint64_t number, struct wal_failure *failure)
{
    const struct wal_config *config = &wal->config;
    int err = config->may_fn == NULL ? 0 : config->may_fn(config->context);
    *failure = (struct wal_failure){"use", err, number, false, false};
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
    *failure = (struct wal_failure){"rename", err, number, true, false};
    if (err == 0) {
        err = disk->calls->sync_names(disk);
        *failure = (struct wal_failure){
            "sync of the directory", err, number, true, false};
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
        .step = wal_fault(wal) == ERR_DISK_FULL ? 0 : STEP_BYTES_MAX};
    ASSERT(head->number > 0 && head->epoch == wal->config.start.epoch);
    ASSERT(head->first_seq == from->seq + 1 && from->seq <= to->seq);
    names_make(new_name, NAMES_LOG_NEW, head->number);
    if (!wal__file_may_begin(wal, head->number, failure)) {
        return false;
    }
    (void)disk->calls->unlink(disk, new_name);
    int err = disk->calls->open(disk, new_name, DISK_CREATE, &out->fd);
    if (err != 0) {
        *failure =
            (struct wal_failure){"making", err, head->number, false, false};
        return false;
    }
    if (fill(wal, out, from, to, written, failure) &&
        wal__file_may_begin(wal, head->number, failure) &&
        place(wal, head->number, new_name, failure)) {
        if (disk->calls->look(disk, NULL, out->fd, &out->is) != 0) {
            out->is.inode = 0;
        }
        return true;
    }
    wal__file_close(wal, out);
    /* gives its room back; where it has its place already it stays */
    (void)disk->calls->unlink(disk, new_name);
    return false;
}

bool
wal__file_stands(struct wal *wal, const struct wal_file *file)
{
    struct disk *disk = wal->config.disk;
    struct disk_file is;
    return disk->calls->look(disk, NULL, file->fd, &is) != 0 ||
        (is.names > 0 && is.bytes >= file->head.bytes);
}

/* True where nothing stands there. What a write left that a disk failed at may:
 * one that fails in the midst of a note over it would leave a mixture of both,
 * which can look like a note with some bits turned over (note.c). */
static bool
is_blank(struct disk *disk, int fd, uint64_t at)
{
    static const uint8_t zeroes[NOTE_BYTES];
    uint8_t bytes[NOTE_BYTES];
    size_t n = 0;
    int err = disk->calls->read(disk, fd, bytes, sizeof bytes, at, &n);
    ASSERT(n <= sizeof bytes);
    return err == 0 && memcmp(bytes, zeroes, n) == 0;
}

void
wal__file_note_next(
    struct wal *wal, const struct wal_file *old, const struct frame_file *next)
{
    struct disk *disk = wal->config.disk;
    uint8_t bytes[NOTE_BYTES];
    char name[NAMES_BYTES];
    int fd = old->fd;
    const struct wal_start *start = &wal->config.start;
    uint64_t epoch = fd >= 0       ? old->head.epoch
        : start->before_epoch != 0 ? start->before_epoch
                                   : start->epoch;
    if (next->before_end == 0) {
        return;
    }
    /* behind all that counts in the file before */
    ASSERT(fd < 0 || next->number == old->head.number + 1);
    ASSERT(fd < 0 || next->before_end <= wal__file_limit(old));
    names_make(name, NAMES_LOG, next->number - 1);
    if (fd < 0 && disk->calls->open(disk, name, DISK_WRITE, &fd) != 0) {
        return;
    }
    if (is_blank(disk, fd, next->before_end)) {
        note__put(next, epoch, bytes);
        (void)disk->calls->write(
            disk, fd, bytes, sizeof bytes, next->before_end);
    }
    if (fd != old->fd) {
        disk->calls->close(disk, fd);
    }
}

void
wal__file_trim(struct wal *wal, struct wal_file *file, uint64_t end)
{
    struct disk *disk = wal->config.disk;
    if (file->fd >= 0 && file->allocated > end) {
        ASSERT(end >= FRAME_FILE_BYTES && end <= file->head.bytes);
        disk_hole(disk, file->fd, end, file->head.bytes);
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

int
wal__file_head(struct disk *disk, uint64_t number, struct frame_file *head)
{
    uint8_t bytes[FRAME_FILE_BYTES];
    char name[NAMES_BYTES];
    size_t n = 0;
    int fd;
    names_make(name, NAMES_LOG, number);
    int err = disk->calls->open(disk, name, DISK_READ, &fd);
    if (err != 0) {
        return err;
    }
    err = disk->calls->read(disk, fd, bytes, sizeof bytes, 0, &n);
    disk->calls->close(disk, fd);
    return err == 0 && frame_file_get(bytes, n, head) != FRAME_OK ? EBADMSG
                                                                  : err;
}

uint64_t
wal__file_bytes(struct disk *disk, uint64_t number)
{
    struct frame_file next;
    int err = wal__file_head(disk, number + 1, &next);
    return err == 0 ? next.before_end : 0;
}

struct counting {
    struct disk *disk;
    uint64_t from_number;
    uint64_t first_number;
    uint64_t bytes;
};

static void
count_name(void *context, const char *name)
{
    struct counting *counting = context;
    enum names_kind kind;
    uint64_t number;
    if (!names_parse(name, &kind, &number) || kind != NAMES_LOG ||
        number < counting->from_number) {
        return;
    }
    counting->bytes += wal__file_bytes(counting->disk, number);
    if (number < counting->first_number) {
        counting->first_number = number;
    }
}

int
wal__file_count(struct disk *disk, uint64_t from_number,
    uint64_t *first_number, uint64_t *bytes)
{
    struct counting counting = {disk, from_number, UINT64_MAX, 0};
    int err = disk->calls->list(disk, count_name, &counting);
    *first_number = counting.first_number;
    *bytes = counting.bytes;
    return err;
}

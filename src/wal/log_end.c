/* SPDX-License-Identifier: BSD-3-Clause */
/* A start makes the last log file durable.
 *
 * What is in it may be in the page cache only, read there by a start as by the
 * process that has died: it must last before anything is built on it (a second
 * crash would take it back). Where a sync had failed, the cache may count as
 * written what is not on the disk: so it is written once more, over itself,
 * and synced.
 *
 * Where that fails the inode is never synced again. The next try copies the
 * file to log-N.wal.new, syncs that and gives it the name. Since the cache may
 * have dropped what was never written, each batch is checked on the way: a copy
 * has all that was found, or does not get the name. */
#include "wal/log_end.h"

#include "base/assert.h"
#include "wal/frame.h"
#include "wal/names.h"
#include "wal/window.h"

#include <errno.h>
#include <stdlib.h>

enum { PIECE_BYTES = 1 << 20 /* written again at a time */ };

/* Writes the first bytes of a file over themselves. An errno value. */
static int
write_again(struct log_end *end, int fd)
{
    struct disk *disk = end->disk;
    uint8_t *piece = malloc(PIECE_BYTES);
    int error = piece == NULL ? ENOMEM : 0;
    for (uint64_t at = 0; error == 0 && at < end->end;) {
        size_t n = 0;
        size_t len = end->end - at < PIECE_BYTES ? (size_t)(end->end - at)
                                                 : PIECE_BYTES;
        error = disk->calls->read(disk, fd, piece, len, at, &n);
        if (error == 0 && n < len) {
            error = EIO; /* it was read up to there just now */
        }
        if (error == 0) {
            error = disk->calls->write(disk, fd, piece, len, at);
            end->is_suspect = error != 0;
        }
        at += len;
    }
    free(piece);
    return error;
}

/* The file as it is. An errno value. */
static int
keep_here(struct log_end *end, const char *name)
{
    struct disk *disk = end->disk;
    uint64_t size;
    int fd;
    int error = disk->calls->open(disk, name, DISK_WRITE, &fd);
    if (error != 0) {
        return error;
    }
    if (end->end > FRAME_FILE_BYTES) { /* else it was made so, synced */
        error = write_again(end, fd);
    }
    if (error == 0) {
        error = disk->calls->sync(disk, fd);
        end->is_suspect = error != 0;
    }
    if (error == 0 && disk->calls->size(disk, fd, &size) == 0) {
        /* room for the next file, where there is little */
        disk_hole(disk, fd, end->end, size);
    }
    disk->calls->close(disk, fd);
    return error;
}

/* The length of the run of sound frames in the window; 0: there is none. *seq:
 * of the next batch, 0 where the header is still to come. */
static size_t
sound_run(struct window *window, struct frame_file *file, uint64_t *seq)
{
    size_t len = 0;
    struct frame_batch batch;
    if (*seq == 0) {
        if (frame_file_get(window->bytes, window->n, file) != FRAME_OK) {
            return 0;
        }
        *seq = file->first_seq;
        len = FRAME_FILE_BYTES;
    }
    while (frame_batch_get(file, window->bytes + len, window->n - len,
               &batch) == FRAME_OK &&
        batch.seq == *seq) {
        len += FRAME_BATCH_BYTES + batch.payload_bytes;
        ++*seq;
    }
    return len;
}

/* Copies the frames up to the end, all of them, and makes the copy as long as
 * its header says that it is. An errno value. */
static int
copy_frames(struct log_end *end, int from, int to)
{
    struct disk *disk = end->disk;
    struct window window;
    struct frame_file file = {0};
    uint64_t seq = 0;
    int error = window_init(&window, disk) == 0 ? 0 : ENOMEM;
    if (error == 0) {
        window_open(&window, from, 0, end->end);
    }
    while (error == 0 && window.at < end->end) {
        error = window_need(&window, FRAME_BATCH_BYTES + FRAME_PAYLOAD_MAX);
        size_t len = error == 0 ? sound_run(&window, &file, &seq) : 0;
        if (error == 0 &&
            (len == 0 || file.epoch != end->epoch ||
                file.number != end->number)) {
            error = EIO; /* it was there when the log was read */
        }
        if (error == 0) {
            error = disk->calls->write(disk, to, window.bytes, len, window.at);
            window_skip(&window, len);
        }
    }
    ASSERT(error != 0 || window.at == end->end);
    window_fini(&window);
    return error == 0 ? disk->calls->truncate(disk, to, file.bytes) : error;
}

/* Fills the open file and syncs it. An errno value. */
static int
fill_copy(struct log_end *end, const char *name, int to)
{
    struct disk *disk = end->disk;
    int from;
    int error = disk->calls->open(disk, name, DISK_READ, &from);
    if (error != 0) {
        return error;
    }
    error = copy_frames(end, from, to);
    disk->calls->close(disk, from);
    return error == 0 ? disk->calls->sync(disk, to) : error;
}

/* A new file in the place of one that has failed. An errno value. */
static int
keep_copy(struct log_end *end, const char *name)
{
    struct disk *disk = end->disk;
    char new_name[NAMES_BYTES];
    int fd;
    names_make(new_name, NAMES_LOG_NEW, end->number);
    (void)disk->calls->unlink(disk, new_name);
    int error = disk->calls->open(disk, new_name, DISK_CREATE, &fd);
    if (error != 0) {
        return error;
    }
    error = fill_copy(end, name, fd);
    disk->calls->close(disk, fd);
    if (error == 0) {
        error = disk->calls->rename(disk, new_name, name);
    }
    if (error != 0) {
        (void)disk->calls->unlink(disk, new_name);
    }
    return error;
}

int
log_end_keep(struct log_end *end)
{
    char name[NAMES_BYTES];
    if (end->number == 0) {
        return 0;
    }
    ASSERT(end->end >= FRAME_FILE_BYTES);
    names_make(name, NAMES_LOG, end->number);
    if (!end->is_synced) {
        int error =
            end->is_suspect ? keep_copy(end, name) : keep_here(end, name);
        if (error != 0) {
            return error;
        }
        end->is_synced = true;
    }
    return end->disk->calls->sync_names(end->disk);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a snapshot and reads from it.
 *
 * What is in it never changes. A checkpoint file may grow by later steps; the
 * bytes that a manifest can name were synced before it. Of a log file only
 * those count that its successor says, or, of the last one, those that are
 * synced: they stay as they are, while notes and holes come behind them
 * (wal/wal_place.h). A manifest says nothing that is in a later batch than the
 * last that was synced when it was written. So these files are a directory that
 * a start takes as it is.
 *
 * What can go wrong: the disk, memory, no more files that may be open, a file
 * that somebody has removed. */
#include "durable/snapshot.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/disk_whole.h"
#include "base/err.h"
#include "durable/checkpoint.h"
#include "wal/frame.h"
#include "wal/wal_place.h"

#include <errno.h>
#include <stdlib.h>

/* An error of the disk about a file that must be there. */
static int
err_of(int error)
{
    return error == ENOENT ? ERR_CORRUPT
        : error == ENOMEM  ? ERR_NO_MEMORY
        : error == 0       ? 0
                           : ERR_DISK;
}

static int
open_files(struct snapshot *snapshot)
{
    struct disk *disk = snapshot->disk;
    char name[NAMES_BYTES];
    int error = 0;
    snapshot->fd = calloc(snapshot->files.n, sizeof *snapshot->fd);
    if (snapshot->fd == NULL) {
        return ERR_NO_MEMORY;
    }
    while (error == 0 && snapshot->n_open < snapshot->files.n) {
        size_t i = snapshot->n_open;
        struct snapshot_file *file = &snapshot->files.file[i];
        snapshot_file_name(file, name);
        error = disk->calls->open(disk, name, DISK_READ, &snapshot->fd[i]);
        if (error == 0) {
            snapshot->n_open++;
            error = disk->calls->size(disk, snapshot->fd[i], &file->bytes);
        }
    }
    return err_of(error);
}

/* How much of each log file counts: what its successor says, and of the last
 * one what is synced. */
static int
cut_log(struct snapshot *snapshot, uint64_t end)
{
    struct snapshot_files *files = &snapshot->files;
    uint8_t bytes[FRAME_FILE_BYTES];
    struct frame_file head;
    size_t i = 0;
    for (size_t k = 0; k < files->n && files->file[k].kind == SNAPSHOT_LOG;
         k++) {
        if (files->file[k].bytes < sizeof bytes) {
            return ERR_CORRUPT;
        }
    }
    for (; i + 1 < files->n && files->file[i + 1].kind == SNAPSHOT_LOG; i++) {
        int err = snapshot_read(snapshot, i + 1, 0, bytes, sizeof bytes);
        if (err != 0) {
            return err;
        }
        if (frame_file_get(bytes, sizeof bytes, &head) != FRAME_OK ||
            head.number != files->file[i + 1].number ||
            head.before_end < FRAME_FILE_BYTES ||
            head.before_end > files->file[i].bytes) {
            return ERR_CORRUPT;
        }
        files->file[i].bytes = head.before_end;
    }
    ASSERT(files->file[i].kind == SNAPSHOT_LOG);
    if (end < FRAME_FILE_BYTES || end > files->file[i].bytes) {
        return ERR_CORRUPT;
    }
    files->file[i].bytes = end;
    return 0;
}

/* The manifest on the disk. */
static int
take_manifest(struct snapshot *snapshot, uint64_t last_log)
{
    struct manifest manifest;
    uint8_t *bytes;
    size_t len;
    int error = disk_whole_read(
        snapshot->disk, MANIFEST_NAME, SIZE_MAX - 1, &bytes, &len);
    if (error != 0) {
        return err_of(error);
    }
    manifest_init(&manifest);
    int err = manifest_decode(bytes, len, &manifest);
    if (err == 0) {
        err = snapshot_files__of(&manifest, last_log, &snapshot->files);
    }
    buf_add(&snapshot->manifest, bytes, len);
    free(bytes);
    manifest_fini(&manifest);
    return err == 0 && snapshot->manifest.failed ? ERR_NO_MEMORY : err;
}

static void
close_files(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n_open; i++) {
        snapshot->disk->calls->close(snapshot->disk, snapshot->fd[i]);
    }
    free(snapshot->fd);
    snapshot->fd = NULL;
    snapshot->n_open = 0;
}

static void
let_go(struct snapshot *snapshot)
{
    close_files(snapshot);
    buf_fini(&snapshot->manifest);
    snapshot_files_fini(&snapshot->files);
}

int
snapshot__open(struct snapshot *snapshot, struct checkpointer *owner)
{
    struct durable *durable = owner->durable;
    struct wal_place place;
    ASSERT(owner->magic == CHECKPOINTER_MAGIC);
    ASSERT(!owner->is_foreign);
    snapshot->owner = owner;
    snapshot->disk = durable->disk;
    snapshot->wal = durable->wal;
    wal_place(durable->wal, &place);
    int err =
        place.end == 0 ? ERR_DISK : take_manifest(snapshot, place.number);
    if (err == 0) {
        err = open_files(snapshot);
    }
    if (err == 0) {
        err = cut_log(snapshot, place.end);
    }
    snapshot->last_seq = place.seq;
    if (err == 0 && snapshot->keeps_names) {
        close_files(snapshot);
    } else if (err == 0) {
        err = wal_pin(durable->wal, &snapshot->pin, place.seq + 1,
            snapshot->pin_bytes_max);
    }
    if (err != 0) {
        let_go(snapshot);
    }
    return err;
}

int
snapshot_read(
    struct snapshot *snapshot, size_t i, uint64_t at, void *bytes, size_t len)
{
    struct disk *disk = snapshot->disk;
    size_t n = 0;
    ASSERT(i < snapshot->n_open);
    uint64_t end = snapshot->files.file[i].bytes;
    ASSERT(at <= end && len <= end - at);
    int error = disk->calls->read(disk, snapshot->fd[i], bytes, len, at, &n);
    if (error == 0 && disk->calls->uncache != NULL) {
        disk->calls->uncache(disk, snapshot->fd[i], at, len);
    }
    return error != 0 ? err_of(error) : n < len ? ERR_CORRUPT : 0;
}

int
snapshot_hash(struct snapshot *snapshot, size_t i, uint64_t *xxh3)
{
    struct checksum_stream *stream = checksum_stream_create();
    uint8_t *bytes = malloc(SNAPSHOT_READ_BYTES);
    int err = stream == NULL || bytes == NULL ? ERR_NO_MEMORY : 0;
    uint64_t end = snapshot->files.file[i].bytes;
    for (uint64_t at = 0; err == 0 && at < end;) {
        size_t len = end - at < SNAPSHOT_READ_BYTES ? (size_t)(end - at)
                                                    : SNAPSHOT_READ_BYTES;
        err = snapshot_read(snapshot, i, at, bytes, len);
        if (err == 0) {
            checksum_stream_add(stream, bytes, len);
        }
        at += len;
    }
    if (err == 0) {
        *xxh3 = checksum_stream_sum(stream);
    }
    checksum_stream_destroy(&stream);
    free(bytes);
    return err;
}

void
snapshot_close(struct snapshot *snapshot)
{
    struct checkpointer *owner = snapshot->owner;
    ASSERT(owner->magic == CHECKPOINTER_MAGIC);
    ASSERT((snapshot->fd == NULL) == snapshot->keeps_names);
    if (!snapshot->keeps_names) {
        wal_unpin(snapshot->wal, &snapshot->pin);
    }
    let_go(snapshot);
    checkpointer__end_snapshot(owner, snapshot);
}

int
snapshot_check(const struct snapshot *snapshot)
{
    ASSERT(snapshot->keeps_names);
    mutex_lock(&snapshot->owner->lock);
    int err = snapshot->has_let_go ? ERR_BACKUP_GONE : 0;
    mutex_unlock(&snapshot->owner->lock);
    return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The manifest as a file; manifest_code.c has its bytes.
 *
 * It is replaced as a whole: MANIFEST.new is written and synced, takes the name
 * MANIFEST, and the directory is synced. Until that returns, a power cut may
 * leave the one or the other. A MANIFEST.new that is found is of a try that did
 * not get so far, and is removed before the next.
 *
 * What can go wrong: memory, damage, the disk. Where a write fails the caller
 * keeps the files of both manifests. */
#include "wal/manifest.h"

#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define FILE_BYTES_MAX (UINT64_C(1) << 32)
#define NAME_NEW MANIFEST_NAME ".new"

void
manifest_init(struct manifest *manifest)
{
    *manifest = (struct manifest){0};
}

bool
manifest_names_log(const struct manifest *manifest)
{
    return manifest->next_file >= MANIFEST_NEXT_FILE_MIN ||
        manifest->images.n > 0 || manifest->last_segment > 0 ||
        manifest->schema_seq > 0 || manifest->log_number != 1;
}

void
manifest_fini(struct manifest *manifest)
{
    free(manifest->counter);
    images_fini(&manifest->images);
    segments_fini(&manifest->segments);
    producers_list_fini(&manifest->producers);
    *manifest = (struct manifest){
        .images = manifest->images, .segments = manifest->segments};
}

/* What an errno of the disk is. */
static int
err_of(int error)
{
    switch (error) {
    case 0:
        return 0;
    case ENOENT:
        return ERR_NOT_FOUND;
    case ENOMEM:
        return ERR_NO_MEMORY;
    default:
        return disk_err(error);
    }
}

/* All of an open file; *bytes is the caller's. */
static int
read_all(struct disk *disk, int fd, uint8_t **bytes, size_t *len, int *error)
{
    uint64_t size;

    *error = disk->calls->size(disk, fd, &size);
    if (*error != 0) {
        return err_of(*error);
    }
    if (size > FILE_BYTES_MAX || size > SIZE_MAX - 1) {
        return ERR_CORRUPT;
    }
    *bytes = malloc((size_t)size + 1);
    if (*bytes == NULL) {
        return ERR_NO_MEMORY;
    }
    *error = disk->calls->read(disk, fd, *bytes, (size_t)size, 0, len);
    if (*error != 0) {
        free(*bytes);
    }
    return err_of(*error);
}

int
manifest_read(struct disk *disk, struct manifest *out, int *error)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    int fd, err, ignored;

    error = error == NULL ? &ignored : error;
    *error = disk->calls->open(disk, MANIFEST_NAME, DISK_READ, &fd);
    if (*error != 0) {
        return err_of(*error);
    }
    err = read_all(disk, fd, &bytes, &len, error);
    disk->calls->close(disk, fd);
    if (err != 0) {
        return err == ERR_NOT_FOUND ? ERR_DISK : err;
    }
    err = manifest_decode(bytes, len, out);
    free(bytes);
    return err;
}

/* Makes MANIFEST.new of it, synced. An errno value. */
static int
write_new(struct disk *disk, const struct buf *bytes)
{
    int fd;
    int error = disk->calls->unlink(disk, NAME_NEW);

    if (error != 0 && error != ENOENT) {
        return error;
    }
    error = disk->calls->open(disk, NAME_NEW, DISK_CREATE, &fd);
    if (error != 0) {
        return error;
    }
    error = disk->calls->write(disk, fd, bytes->data, bytes->len, 0);
    if (error == 0) {
        error = disk->calls->sync(disk, fd);
    }
    disk->calls->close(disk, fd);
    return error;
}

/* Puts bytes in the place of MANIFEST. An errno value. */
static int
replace(struct disk *disk, const struct buf *bytes)
{
    int error = write_new(disk, bytes);

    if (error == 0) {
        error = disk->calls->rename(disk, NAME_NEW, MANIFEST_NAME);
    }
    if (error == 0) {
        return disk->calls->sync_names(disk);
    }
    /* gives its room back; the next try does so too */
    (void)disk->calls->unlink(disk, NAME_NEW);
    return error;
}

int
manifest_write(struct disk *disk, const struct manifest *manifest,
    uint64_t *bytes, int *error)
{
    struct buf out = {0};
    int err = manifest_encode(manifest, &out);
    int ignored;

    error = error == NULL ? &ignored : error;
    *error = 0;
    if (err == 0) {
        *error = replace(disk, &out);
        err = err_of(*error);
    }
    if (err == 0 && bytes != NULL) {
        *bytes = out.len;
    }
    buf_fini(&out);
    return err == ERR_NOT_FOUND ? ERR_DISK : err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and replaces small files. A new file that is found is of a try that
 * came to its end before it had its name, and is removed before the next. */
#include "base/disk_whole.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* All of an open file; *bytes is the caller's. */
static int
read_all(struct disk *disk, int fd, uint64_t bytes_max, uint8_t **bytes,
    size_t *len)
{
    uint64_t size;
    int error = disk->calls->size(disk, fd, &size);
    if (error != 0) {
        return error;
    }
    if (size > bytes_max || size > SIZE_MAX - 1) {
        return EFBIG;
    }
    uint8_t *room = malloc((size_t)size + 1);
    if (room == NULL) {
        return ENOMEM;
    }
    error = disk->calls->read(disk, fd, room, (size_t)size, 0, len);
    if (error != 0) {
        free(room);
        return error;
    }
    *bytes = room;
    return 0;
}

int
disk_whole_read(struct disk *disk, const char *name, uint64_t bytes_max,
    uint8_t **bytes, size_t *len)
{
    int fd;
    *bytes = NULL;
    *len = 0;
    int error = disk->calls->open(disk, name, DISK_READ, &fd);
    if (error == 0) {
        error = read_all(disk, fd, bytes_max, bytes, len);
        disk->calls->close(disk, fd);
    }
    return error;
}

/* Makes a file of that name, synced. */
static int
write_new(struct disk *disk, const char *name, const void *bytes, size_t len,
    struct disk_file *file)
{
    int fd;
    int error = disk->calls->unlink(disk, name);
    if (error != 0 && error != ENOENT) {
        return error;
    }
    error = disk->calls->open(disk, name, DISK_CREATE, &fd);
    if (error != 0) {
        return error;
    }
    error = disk->calls->write(disk, fd, bytes, len, 0);
    if (error == 0) {
        error = disk->calls->sync(disk, fd);
    }
    if (error == 0 && file != NULL &&
        disk->calls->look(disk, NULL, fd, file) != 0) {
        file->inode = 0;
    }
    disk->calls->close(disk, fd);
    return error;
}

int
disk_whole_replace(struct disk *disk, const char *name, const char *name_new,
    const void *bytes, size_t len, struct disk_file *file)
{
    ASSERT(len > 0 && strcmp(name, name_new) != 0);
    int error = write_new(disk, name_new, bytes, len, file);
    if (error == 0) {
        error = disk->calls->rename(disk, name_new, name);
    }
    if (error == 0) {
        return disk->calls->sync_names(disk);
    }
    /* gives its room back; the next try does so too */
    (void)disk->calls->unlink(disk, name_new);
    return error;
}

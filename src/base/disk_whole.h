/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_DISK_WHOLE_H
#define BASE_DISK_WHOLE_H

#include "base/disk.h"

#include <stddef.h>
#include <stdint.h>

/* Files that are read, and replaced, as a whole. Any thread; one at a time for
 * one name. */

/* All of a file. *bytes is the caller's, NULL after an error. 0 or an errno
 * value: ENOENT; EFBIG where it has more than bytes_max; ENOMEM. */
int disk_whole_read(struct disk *disk, const char *name, uint64_t bytes_max,
    uint8_t **bytes, size_t *len);

/* Puts bytes in the place of the file of that name, durably: a file name_new is
 * made and synced, takes the name, and the directory is synced. *file (may be
 * NULL): which file it is then, inode 0 where that is not known. 0 or an errno
 * value: then the old one may or may not have been replaced, but one of both
 * is there, whole. */
int disk_whole_replace(struct disk *disk, const char *name,
    const char *name_new, const void *bytes, size_t len,
    struct disk_file *file);

#endif

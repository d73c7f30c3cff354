/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_FILES_HELP_H
#define UNIT_FILES_HELP_H

/* The files of a fake disk, taken out to be damaged and put on another. */

#include "unit/durable_help.h"

#include <stdio.h>

enum { FILES_MAX = 64 };

struct files {
    struct file {
        char name[FAKE_NAME_BYTES];
        uint8_t *bytes; /* owned */
        uint64_t len;
    } file[FILES_MAX];
    size_t n;
};

static inline void
files__note_name(void *context, const char *name)
{
    struct files *files = context;
    if (strcmp(name, "ballast") != 0) {
        EXPECT(files->n < FILES_MAX, "too many files");
        (void)snprintf(
            files->file[files->n++].name, FAKE_NAME_BYTES, "%s", name);
    }
}

static inline void
read_files(struct disk *disk, struct files *files)
{
    *files = (struct files){0};
    ck_assert_int_eq(disk->calls->list(disk, files__note_name, files), 0);
    for (size_t i = 0; i < files->n; i++) {
        struct file *file = &files->file[i];
        size_t n;
        int fd;
        int err = disk->calls->open(disk, file->name, DISK_READ, &fd);
        err |= disk->calls->size(disk, fd, &file->len);
        file->bytes = calloc(1, file->len + 1);
        ck_assert_ptr_nonnull(file->bytes);
        err |= disk->calls->read(disk, fd, file->bytes, file->len, 0, &n);
        disk->calls->close(disk, fd);
        ck_assert_int_eq(err, 0);
        ck_assert_uint_eq(n, file->len);
    }
}

static inline void
free_files(struct files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        free(files->file[i].bytes);
    }
}

/* A disk with these files; files without bytes are left out. */
static inline struct fake_disk *
disk_of(const struct files *files)
{
    struct fake_disk *fake = fake_disk_create(1);
    struct disk *disk = fake_disk_as_disk(fake);
    for (size_t i = 0; i < files->n; i++) {
        const struct file *file = &files->file[i];
        int fd;
        if (file->bytes == NULL) {
            continue;
        }
        int err = disk->calls->open(disk, file->name, DISK_CREATE, &fd);
        err |= disk->calls->write(disk, fd, file->bytes, file->len, 0);
        err |= disk->calls->sync(disk, fd);
        EXPECT(err == 0, "cannot copy %s", file->name);
        disk->calls->close(disk, fd);
    }
    (void)disk->calls->sync_names(disk);
    return fake;
}

static inline bool
is_log(const struct file *file)
{
    return strncmp(file->name, "log-", 4) == 0;
}

static inline bool
is_last_log(const struct files *files, const struct file *file)
{
    for (size_t i = 0; i < files->n; i++) {
        if (is_log(&files->file[i]) &&
            strcmp(files->file[i].name, file->name) > 0) {
            return false;
        }
    }
    return is_log(file);
}

/* Up to the last byte that is not zero. */
static inline uint64_t
used_bytes(const struct file *file)
{
    uint64_t n = file->len;
    while (n > 0 && file->bytes[n - 1] == 0) {
        n--;
    }
    return n;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_DISK_FRONT_H
#define BASE_DISK_FRONT_H

#include "base/disk.h"

#include <stdint.h>

/* A disk in front of another one, on which files have other names, or of which
 * some calls do more. Calls about open files go straight through; those that
 * take or tell a name do so where names stay as they are. */

/* Makes one. calls: static; those about open files as in
 * DISK_FRONT_FILE_CALLS. context: of the module that makes it, or NULL. *out is
 * the caller's, freed by disk_front_destroy; under must outlive it. 0 or
 * ENOMEM. */
int disk_front_create(const struct disk_calls *calls, struct disk *under,
    void *context, struct disk **out);
/* NULL is fine. */
void disk_front_destroy(struct disk **disk);

/* What disk, of disk_front_create, is in front of. */
struct disk *disk_front_under(struct disk *disk);

/* What it was made with. */
void *disk_front_context(struct disk *disk);

/* The calls that go straight through; as in struct disk_calls. */
void disk_front_close(struct disk *disk, int fd);
int disk_front_read(struct disk *disk, int fd, void *bytes, size_t len,
    uint64_t at, size_t *n_read);
int disk_front_write(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at);
int disk_front_allocate(struct disk *disk, int fd, uint64_t at, uint64_t len);
int disk_front_truncate(struct disk *disk, int fd, uint64_t len);
int disk_front_punch(struct disk *disk, int fd, uint64_t at, uint64_t len);
int disk_front_next_data(
    struct disk *disk, int fd, uint64_t at, uint64_t *from, uint64_t *to);
int disk_front_size(struct disk *disk, int fd, uint64_t *len);
int disk_front_room(struct disk *disk, uint64_t *bytes);
int disk_front_sync(struct disk *disk, int fd);
int disk_front_sync_names(struct disk *disk);
int disk_front_ring(
    struct disk *disk, unsigned n_reads, struct disk_ring **out);
const char *disk_front_text(struct disk *disk, int error);
void disk_front_uncache(struct disk *disk, int fd, uint64_t at, uint64_t len);

/* Likewise, where names are those of the disk behind. */
int disk_front_open(
    struct disk *disk, const char *name, enum disk_open how, int *fd);
int disk_front_look(
    struct disk *disk, const char *name, int fd, struct disk_file *out);
int disk_front_rename(struct disk *disk, const char *from, const char *to);
int disk_front_unlink(struct disk *disk, const char *name);
int disk_front_list(struct disk *disk,
    void (*name_fn)(void *context, const char *name), void *context);

#define DISK_FRONT_FILE_CALLS                                                 \
    .close = disk_front_close, .read = disk_front_read,                       \
    .write = disk_front_write, .allocate = disk_front_allocate,               \
    .truncate = disk_front_truncate, .punch = disk_front_punch,               \
    .next_data = disk_front_next_data, .size = disk_front_size,               \
    .room = disk_front_room, .sync = disk_front_sync,                         \
    .sync_names = disk_front_sync_names, .ring = disk_front_ring,             \
    .text = disk_front_text, .uncache = disk_front_uncache

#endif

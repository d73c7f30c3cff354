/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands calls about open files on to the disk behind.
 *
 * What can go wrong: what can go wrong with the disk behind. */
#include "base/disk_front.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>

enum { FRONT_MAGIC = 0x01dd15c0 };

struct disk_front {
    struct disk disk; /* first: what callers hold */
    uint32_t magic;   /* FRONT_MAGIC */
    struct disk *under;
    void *context; /* whoever made it */
};

int
disk_front_create(const struct disk_calls *calls, struct disk *under,
    void *context, struct disk **out)
{
    struct disk_front *it = malloc(sizeof *it);
    if (it == NULL) {
        return ENOMEM;
    }
    *it = (struct disk_front){{calls}, FRONT_MAGIC, under, context};
    *out = &it->disk;
    return 0;
}

void
disk_front_destroy(struct disk **disk)
{
    if (*disk != NULL) {
        (void)disk_front_under(*disk);
        ((struct disk_front *)*disk)->magic = 0;
    }
    free(*disk);
    *disk = NULL;
}

struct disk *
disk_front_under(struct disk *disk)
{
    const struct disk_front *it = (const struct disk_front *)disk;
    ASSERT(it->magic == FRONT_MAGIC);
    return it->under;
}

void *
disk_front_context(struct disk *disk)
{
    const struct disk_front *it = (const struct disk_front *)disk;
    ASSERT(it->magic == FRONT_MAGIC);
    return it->context;
}

void
disk_front_close(struct disk *disk, int fd)
{
    struct disk *under = disk_front_under(disk);
    under->calls->close(under, fd);
}

int
disk_front_read(struct disk *disk, int fd, void *bytes, size_t len,
    uint64_t at, size_t *n_read)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->read(under, fd, bytes, len, at, n_read);
}

int
disk_front_write(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->write(under, fd, bytes, len, at);
}

int
disk_front_allocate(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->allocate(under, fd, at, len);
}

int
disk_front_truncate(struct disk *disk, int fd, uint64_t len)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->truncate(under, fd, len);
}

int
disk_front_punch(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->punch(under, fd, at, len);
}

int
disk_front_next_data(
    struct disk *disk, int fd, uint64_t at, uint64_t *from, uint64_t *to)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->next_data(under, fd, at, from, to);
}

int
disk_front_size(struct disk *disk, int fd, uint64_t *len)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->size(under, fd, len);
}

int
disk_front_room(struct disk *disk, uint64_t *bytes)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->room(under, bytes);
}

int
disk_front_sync(struct disk *disk, int fd)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->sync(under, fd);
}

int
disk_front_sync_names(struct disk *disk)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->sync_names(under);
}

int
disk_front_ring(struct disk *disk, unsigned n_reads, struct disk_ring **out)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->ring == NULL
        ? ENOSYS
        : under->calls->ring(under, n_reads, out);
}

const char *
disk_front_text(struct disk *disk, int error)
{
    return disk_say(disk_front_under(disk), error);
}

void
disk_front_uncache(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    struct disk *under = disk_front_under(disk);
    if (under->calls->uncache != NULL) {
        under->calls->uncache(under, fd, at, len);
    }
}

int
disk_front_open(
    struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->open(under, name, how, fd);
}

int
disk_front_look(
    struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->look(under, name, fd, out);
}

int
disk_front_rename(struct disk *disk, const char *from, const char *to)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->rename(under, from, to);
}

int
disk_front_unlink(struct disk *disk, const char *name)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->unlink(under, name);
}

int
disk_front_list(struct disk *disk,
    void (*name_fn)(void *context, const char *name), void *context)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->list(under, name_fn, context);
}

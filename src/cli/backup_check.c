/* SPDX-License-Identifier: BSD-3-Clause */
/* The check of a backup's files reads them through a disk in front of theirs,
 * which keeps the rate. The check has one thread; so has that disk.
 *
 * What can go wrong: damage, and the disk. */
#include "cli/backup_priv.h"

#include "base/disk_front.h"
#include "base/err.h"
#include "offline/data_check.h"

static int
open_file(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->open(under, name, how, fd);
}

static int
look(struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->look(under, name, fd, out);
}

static int
rename_file(struct disk *disk, const char *from, const char *to)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->rename(under, from, to);
}

static int
unlink_file(struct disk *disk, const char *name)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->unlink(under, name);
}

static int
list(struct disk *disk, void (*name_fn)(void *context, const char *name),
    void *context)
{
    struct disk *under = disk_front_under(disk);
    return under->calls->list(under, name_fn, context);
}

/* Nobody is told by the tick of a copy that is only read. */
static int
read_at_rate(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    int error = disk_front_read(disk, fd, bytes, len, at, n_read);
    if (error == 0) {
        (void)backup_copy_count(disk_front_context(disk), *n_read);
    }
    return error;
}

bool
backup__check(struct backup_copy *copy, int dir, struct logger *logger,
    struct buf *found)
{
    struct disk_calls calls = {DISK_FRONT_FILE_CALLS, .open = open_file,
        .look = look, .rename = rename_file, .unlink = unlink_file,
        .list = list};
    struct disk *real, *disk;
    calls.read = read_at_rate;
    calls.ring = NULL; /* its reads would keep no rate */
    if (disk_real_create(dir, &real) != 0) {
        return backup_copy_fail(copy, "out of memory");
    }
    if (disk_front_create(&calls, real, copy, &disk) != 0) {
        disk_real_destroy(&real);
        return backup_copy_fail(copy, "out of memory");
    }
    int err = data_check_disk(disk, logger, found);
    disk_front_destroy(&disk);
    disk_real_destroy(&real);
    return err == 0 || backup_copy_fail(copy, "%s", err_file_text(err));
}

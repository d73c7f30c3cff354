/* SPDX-License-Identifier: BSD-3-Clause */
/* The check of a backup's files, at the rate of the copy. It has one thread.
 *
 * What can go wrong: damage, and the disk. */
#include "cli/backup_priv.h"

#include "base/disk_counted.h"
#include "base/err.h"
#include "offline/data_check.h"

/* A copy that is only read has nobody who would stop it by its tick. */
static void
count(void *context, size_t bytes)
{
    (void)backup_copy_count(context, bytes);
}

bool
backup__check(struct backup_copy *copy, int dir, struct logger *logger,
    struct buf *found)
{
    struct disk_counted counted = {count, copy};
    struct disk *real, *disk;
    if (disk_real_create(dir, &real) != 0) {
        return backup_copy_fail(copy, "out of memory");
    }
    if (disk_counted_create(real, &counted, &disk) != 0) {
        disk_real_destroy(&real);
        return backup_copy_fail(copy, "out of memory");
    }
    int err = data_check_disk(disk, logger, found);
    disk_counted_destroy(&disk);
    disk_real_destroy(&real);
    return err == 0 || backup_copy_fail(copy, "%s", err_file_text(err));
}

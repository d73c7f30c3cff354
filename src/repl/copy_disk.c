/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk in front of another one that reads nothing any more once a copy is to
 * stop: so whoever reads a whole directory through it ends soon.
 *
 * What can go wrong: what can go wrong with the disk behind. */
#include "repl/copy_priv.h"

#include "base/disk_front.h"

#include <errno.h>

static int
copy_read(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    return copy__is_stopping(disk_front_context(disk))
        ? ECANCELED
        : disk_front_read(disk, fd, bytes, len, at, n_read);
}

static const char *
copy_text(struct disk *disk, int error)
{
    return error == ECANCELED ? "the copy is given up"
                              : disk_front_text(disk, error);
}

static const struct disk_calls copy_calls = {.open = disk_front_open,
    .close = disk_front_close,
    .read = copy_read,
    .write = disk_front_write,
    .allocate = disk_front_allocate,
    .truncate = disk_front_truncate,
    .punch = disk_front_punch,
    .next_data = disk_front_next_data,
    .size = disk_front_size,
    .room = disk_front_room,
    .look = disk_front_look,
    .sync = disk_front_sync,
    .rename = disk_front_rename,
    .unlink = disk_front_unlink,
    .sync_names = disk_front_sync_names,
    .list = disk_front_list,
    .ring = disk_front_ring,
    .text = copy_text,
    .uncache = disk_front_uncache};

int
copy__disk_create(struct disk *under, struct copy_end *end, struct disk **out)
{
    return disk_front_create(&copy_calls, under, end, out);
}

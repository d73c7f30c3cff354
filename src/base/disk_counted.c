/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands all calls on to the disk behind, and tells of reads.
 *
 * What can go wrong: what can go wrong with the disk behind. */
#include "base/disk_counted.h"

#include "base/disk_front.h"

static int
counted_read(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    const struct disk_counted *counted = disk_front_context(disk);
    int error = disk_front_read(disk, fd, bytes, len, at, n_read);
    if (error == 0) {
        counted->read_fn(counted->context, *n_read);
    }
    return error;
}

static const struct disk_calls counted_calls = {
    .open = disk_front_open,
    .close = disk_front_close,
    .read = counted_read,
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
    .text = disk_front_text,
    .uncache = disk_front_uncache,
};

int
disk_counted_create(
    struct disk *under, struct disk_counted *counted, struct disk **out)
{
    return disk_front_create(&counted_calls, under, counted, out);
}

void
disk_counted_destroy(struct disk **disk)
{
    disk_front_destroy(disk);
}

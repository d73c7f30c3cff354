/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder as a disk in front of the data directory's. */
#include "durable/snapshot_folder.h"

#include "base/assert.h"
#include "base/disk_front.h"

#include <stdio.h>
#include <string.h>

enum { PREFIX_BYTES = sizeof SNAPSHOT_PREFIX - 1 };

bool
snapshot_folder__has(const char *name)
{
    return strncmp(name, SNAPSHOT_PREFIX, PREFIX_BYTES) == 0;
}

static const char *
name_of(const char *name, char out[SNAPSHOT_NAME_BYTES])
{
    int n = snprintf(out, SNAPSHOT_NAME_BYTES, SNAPSHOT_PREFIX "%s", name);
    ASSERT(n > 0 && n < SNAPSHOT_NAME_BYTES);
    return out;
}

static int
folder_open(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    struct disk *under = disk_front_under(disk);
    char room[SNAPSHOT_NAME_BYTES];
    return under->calls->open(under, name_of(name, room), how, fd);
}

static int
folder_look(struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    struct disk *under = disk_front_under(disk);
    char room[SNAPSHOT_NAME_BYTES];
    return under->calls->look(
        under, name == NULL ? NULL : name_of(name, room), fd, out);
}

static int
folder_rename(struct disk *disk, const char *from, const char *to)
{
    struct disk *under = disk_front_under(disk);
    char room[SNAPSHOT_NAME_BYTES], other[SNAPSHOT_NAME_BYTES];
    return under->calls->rename(
        under, name_of(from, room), name_of(to, other));
}

static int
folder_unlink(struct disk *disk, const char *name)
{
    struct disk *under = disk_front_under(disk);
    char room[SNAPSHOT_NAME_BYTES];
    return under->calls->unlink(under, name_of(name, room));
}

struct listing {
    void (*name_fn)(void *context, const char *name);
    void *context;
};

static void
hand_on(void *context, const char *name)
{
    const struct listing *listing = context;
    if (snapshot_folder__has(name)) {
        listing->name_fn(listing->context, name + PREFIX_BYTES);
    }
}

static int
folder_list(struct disk *disk,
    void (*name_fn)(void *context, const char *name), void *context)
{
    struct disk *under = disk_front_under(disk);
    struct listing listing = {name_fn, context};
    return under->calls->list(under, hand_on, &listing);
}

static const struct disk_calls folder_calls = {DISK_FRONT_FILE_CALLS,
    .open = folder_open, .look = folder_look, .rename = folder_rename,
    .unlink = folder_unlink, .list = folder_list};

int
snapshot_folder__create(struct disk *under, struct disk **out)
{
    return disk_front_create(&folder_calls, under, NULL, out);
}

void
snapshot_folder__destroy(struct disk **folder)
{
    disk_front_destroy(folder);
}

int
snapshot_folder__give(struct disk *folder, const char *name)
{
    struct disk *under = disk_front_under(folder);
    char room[SNAPSHOT_NAME_BYTES];
    ASSERT(folder->calls == &folder_calls);
    return under->calls->rename(under, name_of(name, room), name);
}

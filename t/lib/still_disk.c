/* SPDX-License-Identifier: BSD-3-Clause */
/* A file descriptor is the file's place in the array. Calls that a reader must
 * not make are not there: they would be a jump to NULL. */
#include "lib/still_disk.h"

#include "base/assert.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct still_disk *
still_of(struct disk *disk)
{
    return (struct still_disk *)(void *)disk; /* it is the first member */
}

static bool
fails(struct still_disk *still)
{
    return ++still->n_calls == still->fail_at;
}

static int
still_open(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    struct still_disk *still = still_of(disk);

    ASSERT(how == DISK_READ);
    if (fails(still)) {
        return EIO;
    }
    for (int i = 0; i < STILL_FILES_MAX; i++) {
        if (still->file[i].name != NULL &&
            strcmp(still->file[i].name, name) == 0) {
            still->n_open++;
            *fd = i;
            return 0;
        }
    }
    return ENOENT;
}

static void
still_close(struct disk *disk, int fd)
{
    ASSERT(fd >= 0 && fd < STILL_FILES_MAX && still_of(disk)->n_open > 0);
    still_of(disk)->n_open--;
}

static int
still_read(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    struct still_disk *still = still_of(disk);
    const struct still_file *file = &still->file[fd];

    if (fails(still)) {
        return EIO;
    }
    *n_read = at < file->len ? (size_t)(file->len - at) : 0;
    *n_read = *n_read < len ? *n_read : len;
    if (*n_read > 0) {
        memcpy(bytes, file->bytes + at, *n_read);
    }
    return 0;
}

static int
still_size(struct disk *disk, int fd, uint64_t *len)
{
    struct still_disk *still = still_of(disk);

    *len = still->file[fd].len;
    return fails(still) ? EIO : 0;
}

static int
still_next_data(
    struct disk *disk, int fd, uint64_t at, uint64_t *from, uint64_t *to)
{
    struct still_disk *still = still_of(disk);

    *from = at;
    *to = at < still->file[fd].len ? still->file[fd].len : at;
    return fails(still) ? EIO : 0;
}

static int
still_list(struct disk *disk, void (*name_fn)(void *context, const char *name),
    void *context)
{
    struct still_disk *still = still_of(disk);

    if (fails(still)) {
        return EIO;
    }
    for (int i = 0; i < STILL_FILES_MAX; i++) {
        if (still->file[i].name != NULL) {
            name_fn(context, still->file[i].name);
        }
    }
    return 0;
}

static const struct disk_calls calls = {
    .open = still_open,
    .close = still_close,
    .read = still_read,
    .size = still_size,
    .next_data = still_next_data,
    .list = still_list,
};

void
still_disk_init(struct still_disk *still)
{
    memset(still, 0, sizeof *still);
    still->disk.calls = &calls;
}

void
still_disk_add(struct still_disk *still, const char *name,
    const uint8_t *bytes, uint64_t len)
{
    for (int i = 0; i < STILL_FILES_MAX; i++) {
        if (still->file[i].name == NULL) {
            still->file[i] = (struct still_file){name, bytes, len};
            return;
        }
    }
    ASSERT(false); /* no room: STILL_FILES_MAX */
}

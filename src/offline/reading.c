/* SPDX-License-Identifier: BSD-3-Clause */
/* All that there is are the bytes of the files that a start could read: of log
 * files what is in them, which is little of their length. */
#include "offline/reading.h"

#include "base/err.h"
#include "cold/segment_head.h"
#include "wal/names.h"
#include "wal/names_old.h"

#include <string.h>

uint64_t
reading__data_end(struct disk *disk, const char *name)
{
    uint64_t from = 0, to = 0, end = 0;
    int fd;
    if (disk->calls->open(disk, name, DISK_READ, &fd) != 0) {
        return 0;
    }
    while (
        disk->calls->next_data(disk, fd, to, &from, &to) == 0 && from < to) {
        end = to;
    }
    disk->calls->close(disk, fd);
    return end;
}

struct sizes {
    struct disk *disk;
    uint64_t bytes;
};

static void
note_name(void *context, const char *name)
{
    struct sizes *sizes = context;
    char now[NAMES_BYTES];
    const char *today = names_old_parse(name, now) ? now : name;
    enum names_kind kind;
    uint64_t number;
    bool is_new = false;
    if ((names_parse(today, &kind, &number) && kind != NAMES_CUT &&
            kind != NAMES_CUT_NEW) ||
        (segment_name_parse(today, &number, &is_new) && !is_new)) {
        sizes->bytes += reading__data_end(sizes->disk, name);
    }
}

static void
note_read(void *context, size_t bytes)
{
    progress_add(context, bytes, bytes);
}

int
reading_begin(struct reading *reading, struct disk *under,
    struct logger *logger, const struct clock *clock, const char *what,
    struct disk **out)
{
    struct sizes sizes = {.disk = under};
    if (under->calls->list(under, note_name, &sizes) != 0) {
        return ERR_DISK;
    }
    reading->counted = (struct disk_counted){note_read, &reading->progress};
    if (disk_counted_create(under, &reading->counted, out) != 0) {
        return ERR_NO_MEMORY;
    }
    progress_begin(
        &reading->progress, logger, clock, what, "bytes", sizes.bytes);
    return 0;
}

void
reading_end(struct reading *reading, struct disk **disk)
{
    disk_counted_destroy(disk);
    progress_end(&reading->progress);
}

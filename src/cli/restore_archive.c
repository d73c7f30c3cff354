/* SPDX-License-Identifier: BSD-3-Clause */
/* Log files of an archive, behind those of a backup. The backup's last one was
 * being written; the archive has all of it.
 *
 *   backup    log-7   log-8 (its beginning)
 *   archive   log-6-H log-7-H log-8-H log-9-H log-10-J
 *   restored  log-7   log-8           log-9   log-10
 *
 * What can go wrong: a file is missing among the others; two have one number,
 * where the directory went on from two states, and which is meant only the
 * operator knows. That each goes on where the one before ends, and that all
 * their batches are sound, is seen when the log is read. */
#include "base/err.h"
#include "base/num.h"
#include "cli/backup_priv.h"
#include "durable/archive.h"
#include "wal/frame.h"
#include "wal/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CAPACITY_MIN = 64, LINE_BYTES = 64 };

struct archived {
    uint64_t number, history;
};

struct archive_list {
    struct archived *file; /* owned, n of capacity, ascending */
    size_t n, capacity;
};

static bool
add(struct archive_list *list, const struct archived *file)
{
    if (list->n == list->capacity) {
        size_t n = list->capacity == 0 ? CAPACITY_MIN : 2 * list->capacity;
        struct archived *more = realloc(list->file, n * sizeof *more);
        if (more == NULL) {
            return false;
        }
        list->file = more;
        list->capacity = n;
    }
    list->file[list->n++] = *file;
    return true;
}

static int
compare(const void *a, const void *b)
{
    const struct archived *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Those from number first on. */
static bool
list_files(struct backup_copy *copy, int fd, const char *path, uint64_t first,
    struct archive_list *list)
{
    int again = dup(fd);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    bool is_well = dir != NULL;
    for (struct dirent *entry; is_well && (entry = readdir(dir)) != NULL;) {
        struct archived file;
        if (archive_name_parse(entry->d_name, &file.number, &file.history) &&
            file.number >= first) {
            is_well = add(list, &file);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    } else if (again >= 0) {
        (void)close(again);
    }
    if (list->n > 0) {
        qsort(list->file, list->n, sizeof *list->file, compare);
    }
    return is_well || backup_copy_fail(copy, "cannot read %.150s", path);
}

/* Each number once, without a gap, from first on. */
static bool
look_over(struct backup_copy *copy, const char *path, uint64_t first,
    const struct archive_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct archived *file = &list->file[i];
        char name[ARCHIVE_NAME_BYTES], other[ARCHIVE_NAME_BYTES];
        archive_name(name, file->number, file->history);
        if (i > 0 && file[-1].number == file->number) {
            archive_name(other, file[-1].number, file[-1].history);
            return backup_copy_fail(copy,
                "%.100s has %s and %s: the directory went on from two states; "
                "put aside the files of the one that is not wanted",
                path, other, name);
        }
        if (file->number != first + i) {
            return backup_copy_fail(copy,
                "%.100s has no log file %" PRIu64 ", but %s: restore a later "
                "backup, or put aside what is behind the gap",
                path, first + i, name);
        }
    }
    return true;
}

static bool
bring(struct backup_copy *copy, int from, int to, const struct archived *file,
    struct manifest *manifest)
{
    char source[ARCHIVE_NAME_BYTES], name[NAMES_BYTES];
    uint8_t bytes[FRAME_FILE_BYTES];
    struct frame_file head;
    struct stat is;
    uint64_t xxh3;
    archive_name(source, file->number, file->history);
    names_make(name, NAMES_LOG, file->number);
    int fd = openat(from, source, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_sound = fd >= 0 && fstat(fd, &is) == 0 &&
        read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes &&
        frame_file_get(bytes, sizeof bytes, &head) == FRAME_OK &&
        head.number == file->number && head.epoch == file->history &&
        (uint64_t)is.st_size == head.bytes;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!is_sound) {
        return backup_copy_fail(copy, "%s of the archive is damaged", source);
    }
    if (histories_epoch(&manifest->histories, file->number, manifest->epoch) !=
            file->history &&
        histories_add(&manifest->histories, file->number, file->history) !=
            0) {
        return backup_copy_fail(copy, "out of memory");
    }
    copy->all_bytes += BACKUP_READINGS * head.bytes;
    return backup_copy_file(copy, from, source, to, name, head.bytes, &xxh3);
}

/* ---- notes of times ---- */

/* Reads notes of one history: *until is the last batch before the first note
 * that is later; true then in *is_found. A line that is cut off does not
 * count. */
static void
read_times(FILE *file, uint64_t until_ms, uint64_t *until, bool *is_found)
{
    char line[LINE_BYTES];
    while (!*is_found && fgets(line, sizeof line, file) != NULL) {
        const char *space = strchr(line, ' ');
        const char *end = strchr(line, '\n');
        uint64_t ms, seq;
        if (space == NULL || end == NULL || space > end ||
            !num_parse_id(line, (size_t)(space - line), &ms) ||
            !num_parse_id(space + 1, (size_t)(end - space) - 1, &seq)) {
            continue;
        }
        *is_found = ms > until_ms;
        if (!*is_found) {
            *until = seq;
        }
    }
}

/* The batch that is meant by a time. */
static bool
find_time(struct backup_copy *copy, int fd, const struct archive_list *list,
    uint64_t until_ms, uint64_t *until)
{
    bool is_found = false;
    *until = 0;
    if (list->n == 0) {
        return backup_copy_fail(copy,
            "the archive has no log file from behind the backup, so nothing "
            "tells what there was at that time: without --until all that the "
            "backup has is restored");
    }
    for (size_t i = 0; !is_found && i < list->n; i++) {
        char name[ARCHIVE_NAME_BYTES];
        if (i > 0 && list->file[i - 1].history == list->file[i].history) {
            continue;
        }
        archive_times_name(name, list->file[i].history);
        int times = openat(fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        FILE *file = times < 0 ? NULL : fdopen(times, "r");
        if (file == NULL) {
            if (times >= 0) {
                (void)close(times);
            }
            return backup_copy_fail(copy,
                "cannot open %s of the archive, which has the times: %s; "
                "give --until a batch",
                name, strerror(errno));
        }
        read_times(file, until_ms, until, &is_found);
        (void)fclose(file);
    }
    return *until != 0 ||
        backup_copy_fail(copy,
            "the archive has nothing from before that time: restore an "
            "earlier backup");
}

bool
backup__take_archive(struct backup_copy *copy,
    const struct backup_setup *setup, int to, uint64_t first,
    struct manifest *manifest, size_t *n, uint64_t *until)
{
    const char *path = setup->archive;
    struct archive_list list = {0};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return backup_copy_fail(
            copy, "cannot open %.150s: %s", path, strerror(errno));
    }
    bool is_done = list_files(copy, fd, path, first, &list) &&
        look_over(copy, path, first, &list);
    if (is_done && list.n > 0 &&
        list.file[0].history !=
            histories_epoch(&manifest->histories, first, manifest->epoch)) {
        is_done = backup_copy_fail(copy,
            "log file %" PRIu64 " of %.100s is not of this backup's "
            "directory: it went on from another state",
            first, path);
    }
    for (size_t i = 0; is_done && i < list.n; i++) {
        is_done = bring(copy, fd, to, &list.file[i], manifest);
    }
    if (is_done && setup->until_ms != 0) {
        is_done = find_time(copy, fd, &list, setup->until_ms, until);
    }
    *n = list.n;
    free(list.file);
    (void)close(fd);
    return is_done;
}

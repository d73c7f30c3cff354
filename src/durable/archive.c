/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy is made as NAME.new, synced, and renamed; holes of the log file are
 * holes of the copy. One that is there whole is left as it is, so after a crash
 * it is only looked at again.
 *
 * What can go wrong: the other disk, which is told now and then, and tried
 * again; a log file that somebody has removed: that is told as a gap, and the
 * archive goes on behind it. */
#include "durable/archive.h"

#include "base/assert.h"
#include "wal/frame.h"
#include "wal/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

enum {
    PIECE_BYTES = 1 << 20,
    RETRY_S = 5,
    SAY_S = 600,
    NUMBER_DIGITS = 20,
    HISTORY_DIGITS = 16,
    LINE_BYTES = 64
};

void
archive_name(char out[ARCHIVE_NAME_BYTES], uint64_t number, uint64_t history)
{
    int n = snprintf(out, ARCHIVE_NAME_BYTES,
        "log-%020" PRIu64 "-%016" PRIx64 ".wal", number, history);
    ASSERT(n > 0 && n < ARCHIVE_NAME_BYTES);
}

bool
archive_name_parse(const char *name, uint64_t *number, uint64_t *history)
{
    static const char prefix[] = "log-";
    char again[ARCHIVE_NAME_BYTES];
    size_t at = sizeof prefix - 1;
    if (strncmp(name, prefix, at) != 0 ||
        strspn(name + at, "0123456789") != NUMBER_DIGITS ||
        name[at + NUMBER_DIGITS] != '-' ||
        strspn(name + at + NUMBER_DIGITS + 1, "0123456789abcdef") !=
            HISTORY_DIGITS) {
        return false;
    }
    errno = 0;
    *number = strtoull(name + at, NULL, 10);
    *history = strtoull(name + at + NUMBER_DIGITS + 1, NULL, 16);
    if (errno != 0) {
        return false;
    }
    archive_name(again, *number, *history);
    return strcmp(name, again) == 0;
}

static void
note_lowest(void *context, const char *name)
{
    struct archive *archive = context;
    enum names_kind kind;
    uint64_t number;
    if (names_parse(name, &kind, &number) && kind == NAMES_LOG &&
        number < archive->next) {
        archive->next = number;
    }
}

void
archive__begin(struct archive *archive, struct disk *disk, struct disk *from,
    struct logger *logger, uint64_t first)
{
    *archive = (struct archive){.disk = disk,
        .from = from,
        .logger = logger,
        .next = first,
        .first = first};
    if (disk != NULL) {
        (void)from->calls->list(from, note_lowest, archive);
    }
}

/* The data of a file, without its holes. */
static int
copy_data(const struct archive *archive, int in, int out, uint64_t bytes)
{
    struct disk *from = archive->from;
    uint8_t *piece = malloc(PIECE_BYTES);
    uint64_t at = 0, end = 0;
    int error = piece == NULL ? ENOMEM : 0;
    while (error == 0) {
        size_t n = 0;
        if (at == end) {
            error = from->calls->next_data(from, in, at, &at, &end);
            if (error != 0 || at == end || at >= bytes) {
                break;
            }
            end = end < bytes ? end : bytes;
        }
        size_t len = end - at < PIECE_BYTES ? (size_t)(end - at) : PIECE_BYTES;
        error = from->calls->read(from, in, piece, len, at, &n);
        if (error == 0 && n < len) {
            error = EIO; /* it is shorter than it was */
        }
        if (error == 0) {
            error = archive->disk->calls->write(
                archive->disk, out, piece, len, at);
        }
        at += len;
    }
    free(piece);
    return error;
}

static int
make_copy(
    const struct archive *archive, int in, const char *name, uint64_t bytes)
{
    struct disk *disk = archive->disk;
    char name_new[ARCHIVE_NAME_BYTES + 4];
    int out;
    (void)snprintf(name_new, sizeof name_new, "%s.new", name);
    int error = disk->calls->unlink(disk, name_new);
    if (error != 0 && error != ENOENT) {
        return error;
    }
    error = disk->calls->open(disk, name_new, DISK_CREATE, &out);
    if (error != 0) {
        return error;
    }
    error = copy_data(archive, in, out, bytes);
    if (error == 0) {
        error = disk->calls->truncate(disk, out, bytes);
    }
    if (error == 0) {
        error = disk->calls->sync(disk, out);
    }
    disk->calls->close(disk, out);
    if (error == 0) {
        error = disk->calls->rename(disk, name_new, name);
    }
    if (error == 0) {
        return disk->calls->sync_names(disk);
    }
    (void)disk->calls->unlink(disk, name_new);
    return error;
}

/* A file that is open. */
static int
put_open(const struct archive *archive, int in, uint64_t number)
{
    struct disk *from = archive->from;
    uint8_t bytes[FRAME_FILE_BYTES];
    char name[ARCHIVE_NAME_BYTES];
    struct frame_file head;
    struct disk_file there;
    size_t n = 0;
    int error = from->calls->read(from, in, bytes, sizeof bytes, 0, &n);
    if (error != 0) {
        return error;
    }
    if (frame_file_get(bytes, n, &head) != FRAME_OK || head.number != number) {
        return EIO; /* damaged: a salvage is about that */
    }
    archive_name(name, number, head.epoch);
    error = archive->disk->calls->look(archive->disk, name, -1, &there);
    if (error == 0 && there.bytes == head.bytes) {
        return archive->disk->calls->sync_names(archive->disk);
    }
    return error == 0 || error == ENOENT
        ? make_copy(archive, in, name, head.bytes)
        : error;
}

/* 0 or an errno value; ENOENT: there is no such log file. */
static int
put(const struct archive *archive, uint64_t number)
{
    struct disk *from = archive->from;
    char name[NAMES_BYTES];
    int in;
    names_make(name, NAMES_LOG, number);
    int error = from->calls->open(from, name, DISK_READ, &in);
    if (error != 0) {
        return error;
    }
    error = put_open(archive, in, number);
    from->calls->close(from, in);
    if (error == 0 && number < archive->first) {
        (void)from->calls->unlink(from, name);
    }
    return error == ENOENT ? EIO : error;
}

static void
note_failure(
    struct archive *archive, uint64_t number, int error, uint64_t now_ns)
{
    archive->n_failures++;
    archive->retry_ns = now_ns + RETRY_S * NS_PER_S;
    if (archive->is_failing && now_ns < archive->say_ns) {
        return;
    }
    archive->is_failing = true;
    archive->say_ns = now_ns + SAY_S * NS_PER_S;
    log_line(archive->logger, LOG_ERROR,
        "cannot copy log file %" PRIu64 " to --wal-archive: %s; log files are "
        "kept until it can, and the log grows: see to the archive's disk",
        number, disk_say(archive->disk, error));
}

void
archive__up_to(struct archive *archive, uint64_t end, uint64_t now_ns)
{
    if (archive->is_failing && now_ns < archive->retry_ns) {
        return;
    }
    while (archive->next < end) {
        int error = put(archive, archive->next);
        if (error == ENOENT && archive->next >= archive->first) {
            log_line(archive->logger, LOG_ERROR,
                "log file %" PRIu64 " was removed before it was copied to "
                "--wal-archive: what is there has a gap, take a backup",
                archive->next);
        } else if (error != 0 && error != ENOENT) {
            note_failure(archive, archive->next, error, now_ns);
            return;
        }
        archive->n_files += error == 0;
        archive->next++;
    }
    if (archive->is_failing) {
        archive->is_failing = false;
        log_line(archive->logger, LOG_WARNING,
            "log files are copied to --wal-archive again");
    }
}

void
archive_times_name(char out[ARCHIVE_NAME_BYTES], uint64_t history)
{
    int n = snprintf(out, ARCHIVE_NAME_BYTES, "times-%016" PRIx64, history);
    ASSERT(n > 0 && n < ARCHIVE_NAME_BYTES);
}

void
archive__note_time(struct archive *archive, uint64_t history, uint64_t seq,
    uint64_t unix_ms, uint64_t now_ns)
{
    struct disk *disk = archive->disk;
    char name[ARCHIVE_NAME_BYTES], line[LINE_BYTES];
    uint64_t at = 0;
    int fd;
    if (seq <= archive->noted_seq || now_ns < archive->note_ns) {
        return;
    }
    archive->noted_seq = seq;
    archive->note_ns = now_ns + NS_PER_S;
    archive_times_name(name, history);
    int error = disk->calls->open(disk, name, DISK_WRITE, &fd);
    if (error == ENOENT) {
        error = disk->calls->open(disk, name, DISK_CREATE, &fd);
    }
    if (error != 0) {
        return;
    }
    int n =
        snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", unix_ms, seq);
    ASSERT(n > 0 && n < LINE_BYTES);
    if (disk->calls->size(disk, fd, &at) == 0) {
        (void)disk->calls->write(disk, fd, line, (size_t)n, at);
    }
    disk->calls->close(disk, fd);
}

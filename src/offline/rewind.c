/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts the log in place: what is behind the last batch that stays becomes a
 * hole, as it is behind the end of any log, and later files go.
 *
 * What can go wrong: a log that does not reach as far; the disk; damage. */
#include "offline/rewind.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/recover.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/names.h"
#include "wal/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct walk {
    struct disk *disk;
    uint64_t last; /* log files with larger numbers go */
    int error;
    uint64_t seq; /* of the last batch */
    bool has_terms;
};

static int
note_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct walk *walk = context;
    walk->seq = seq;
    walk->has_terms |=
        len > 0 && payload[0] == ENTRY_TERM; /* it comes first */
    return 0;
}

static void
remove_later(void *context, const char *name)
{
    struct walk *walk = context;
    enum names_kind kind;
    uint64_t number;
    if (names_parse(name, &kind, &number) && kind == NAMES_LOG &&
        number > walk->last) {
        int error = walk->disk->calls->unlink(walk->disk, name);
        walk->error = walk->error == 0 ? error : walk->error;
    }
}

/* Nothing is in the file from there on. */
static int
clear_end(struct disk *disk, uint64_t number, uint64_t end)
{
    char name[NAMES_BYTES];
    uint64_t bytes = 0;
    int fd;
    names_make(name, NAMES_LOG, number);
    int error = disk->calls->open(disk, name, DISK_WRITE, &fd);
    if (error != 0) {
        return error;
    }
    error = disk->calls->size(disk, fd, &bytes);
    ASSERT(error != 0 || (end >= FRAME_FILE_BYTES && end <= bytes));
    if (error == 0) {
        error = disk->calls->truncate(disk, fd, end);
    }
    if (error == 0) {
        error = disk->calls->truncate(disk, fd, bytes);
    }
    if (error == 0) {
        error = disk->calls->sync(disk, fd);
    }
    disk->calls->close(disk, fd);
    return error;
}

static int
cut(const struct rewind *rewind, struct walk *walk,
    const struct replay_end *end)
{
    struct disk *disk = rewind->disk;
    walk->disk = disk;
    walk->last = end->number;
    walk->error = disk->calls->list(disk, remove_later, walk);
    if (walk->error == 0) {
        walk->error = clear_end(disk, end->number, end->end);
    }
    if (walk->error == 0) {
        walk->error = disk->calls->sync_names(disk);
    }
    return walk->error == 0     ? 0
        : walk->error == ENOMEM ? ERR_NO_MEMORY
                                : disk_err(walk->error);
}

static void
note_last(void *context, const char *name)
{
    struct walk *walk = context;
    enum names_kind kind;
    uint64_t number;
    if (names_parse(name, &kind, &number) && kind == NAMES_LOG &&
        number > walk->last) {
        walk->last = number;
    }
}

/* The next batch of a file: FRAME_OK, FRAME_END or FRAME_DAMAGED. bytes has
 * room for the largest. *error: of the disk. */
static enum frame_fault
read_batch(struct disk *disk, int fd, const struct frame_file *head,
    uint64_t at, uint8_t *bytes, struct frame_batch *batch, int *error)
{
    size_t n = 0;
    size_t len = FRAME_BATCH_BYTES;
    *error = disk->calls->read(disk, fd, bytes, len, at, &n);
    if (*error == 0 && n == len && frame_batch_peek(bytes, batch)) {
        len += batch->payload_bytes;
        *error = disk->calls->read(disk, fd, bytes, len, at, &n);
    }
    return frame_batch_get(head, bytes, n, batch);
}

/* The last batch of a file that is open, without the mark that another file
 * follows. */
static int
find_last(
    struct disk *disk, int fd, uint8_t *bytes, uint64_t *last, struct buf *why)
{
    struct frame_file head;
    struct frame_batch batch;
    enum frame_fault fault = FRAME_OK;
    size_t n = 0;
    int error = disk->calls->read(disk, fd, bytes, FRAME_FILE_BYTES, 0, &n);
    if (error != 0 || frame_file_get(bytes, n, &head) != FRAME_OK) {
        return error != 0 ? ERR_DISK : ERR_CORRUPT;
    }
    *last = head.first_seq - 1;
    for (uint64_t at = FRAME_FILE_BYTES; fault == FRAME_OK;
         at += FRAME_BATCH_BYTES + batch.payload_bytes) {
        fault = read_batch(disk, fd, &head, at, bytes, &batch, &error);
        if (error != 0) {
            return ERR_DISK;
        }
        if (fault == FRAME_OK &&
            entry_mark_of(bytes + FRAME_BATCH_BYTES, batch.payload_bytes) ==
                ENTRY_MARK_FOLLOWED) {
            return 0;
        }
        if (fault == FRAME_OK) {
            *last = batch.seq;
        }
    }
    if (fault == FRAME_DAMAGED) {
        buf_addf(why,
            "the last log file is damaged behind batch %" PRIu64
            ", or a crash has cut it off there: see --until",
            *last);
        return ERR_CORRUPT;
    }
    return 0;
}

static int
find_end(struct disk *disk, uint64_t *last, struct buf *why)
{
    struct walk walk = {0};
    char name[NAMES_BYTES];
    int fd;
    uint8_t *bytes = malloc(FRAME_BATCH_BYTES + FRAME_PAYLOAD_MAX);
    if (bytes == NULL) {
        return ERR_NO_MEMORY;
    }
    int err = disk->calls->list(disk, note_last, &walk) == 0 ? 0 : ERR_DISK;
    names_make(name, NAMES_LOG, walk.last);
    if (err == 0 && disk->calls->open(disk, name, DISK_READ, &fd) != 0) {
        err = ERR_DISK;
    } else if (err == 0) {
        err = find_last(disk, fd, bytes, last, why);
        disk->calls->close(disk, fd);
    }
    free(bytes);
    return err;
}

int
rewind_log(const struct rewind *rewind, struct rewound *out, struct buf *why)
{
    const struct manifest *manifest = rewind->manifest;
    struct walk walk = {0};
    struct replay_end end;
    uint64_t newest = recover_newest(manifest);
    uint64_t until = rewind->until;
    if (until == 0 && rewind->is_followed) {
        int err = find_end(rewind->disk, &until, why);
        if (err != 0) {
            return err;
        }
    }
    if (until != 0 && until < newest) {
        buf_addf(why,
            "batch %" PRIu64 " is too early: the images and segments of this "
            "backup have changes up to batch %" PRIu64 ": restore an earlier "
            "backup",
            until, newest);
        return ERR_LOG_GONE;
    }
    const struct replay replay = {.disk = rewind->disk,
        .logger = rewind->logger,
        .epoch = manifest->epoch,
        .histories = &manifest->histories,
        .number = manifest->log_number,
        .last_seq = until,
        .batch_fn = note_batch,
        .context = &walk};
    int err = replay_run(&replay, &end);
    if (err != 0) {
        return err;
    }
    *out = (struct rewound){.last_seq = walk.seq > newest ? walk.seq : newest,
        .has_terms = walk.has_terms};
    if (until == 0) {
        return 0;
    }
    if (out->last_seq < until) {
        buf_addf(why,
            "there is no batch %" PRIu64 ": the log ends with batch %" PRIu64,
            until, out->last_seq);
        return ERR_LOG_GONE;
    }
    return end.number == 0 ? ERR_CORRUPT : cut(rewind, &walk, &end);
}

/* Files from before there were histories have the old epoch. */
static int
name_old(struct manifest *manifest)
{
    struct histories old = manifest->histories;
    struct histories histories = {0};
    bool is_first_named =
        old.n > 0 && old.entry[0].from <= manifest->log_number;
    int err = is_first_named
        ? 0
        : histories_add(&histories, manifest->log_number, manifest->epoch);
    for (size_t i = 0; err == 0 && i < old.n; i++) {
        err =
            histories_add(&histories, old.entry[i].from, old.entry[i].history);
    }
    if (err != 0) {
        histories_fini(&histories);
        return err;
    }
    histories_fini(&manifest->histories);
    manifest->histories = histories;
    for (size_t i = 0; i < manifest->segments.n; i++) {
        struct manifest_segment *segment = &manifest->segments.segment[i];
        segment->history = manifest_segment_epoch(manifest, segment);
    }
    return 0;
}

int
rewind_part(struct manifest *manifest, const struct rewound *log)
{
    uint64_t epoch = 0;
    if (manifest->terms.n == 0 && !log->has_terms) {
        return 0;
    }
    int err = name_old(manifest);
    if (err == 0) {
        err = histories_draw(&epoch);
    }
    if (err == 0) {
        manifest->epoch = epoch;
        if (manifest->committed_seq > log->last_seq) {
            manifest->committed_seq = log->last_seq;
        }
    }
    return err;
}

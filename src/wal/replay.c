/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the log, from the file that the manifest names to its end.
 *
 * All headers are looked at first, so that a log that does not hang together
 * is refused before anything of it is given out. Then file by file:
 *
 *   log-5                      log-6 (before_end = B)       log-7, the last
 *   | header | batches |B void | header | batches | ...     | batches | torn |
 *                                                                     ^ end
 *
 * Up to the offset that its successor names a file must be sound, for it was
 * synced before the successor got its name. What is behind that offset is
 * void, sound or not: after a failed sync it was written again, to the
 * successor. Else a note stands there (wal/note.c), which no bit may change.
 *
 * A file is as long as its header says that it was made, whatever is in it:
 * one that is shorter has been cut off, which no crash does.
 *
 * The batches of the last file may end anyhow, for what was not synced may be
 * there in part, in any order. But each batch says up to which one all was
 * synced when it was sealed. So behind the first one that is missing is looked
 * for any other, byte by byte, and if one says that the missing one was
 * synced, then it was no crash that took it away. Where no batch came later, a
 * mark says it (do_mark in wal_thread.c). Other batches behind a hole are
 * given up with it, and counted: they were never acknowledged as synced.
 *
 * A file that is taken for the last one, but has a mark that it was followed,
 * is not: its successor is missing.
 *
 * What can go wrong: every byte may be other than it was written, which must
 * come out as damage or as an earlier end, never as a batch. */
#include "wal/replay.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/names.h"
#include "wal/note.h"
#include "wal/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 384 /* of a line for the operator */ };

/* What may have come about where files do not follow each other. */
#define PUT_OVER                                                              \
    "where a backup was put over files that are newer than its MANIFEST, "    \
    "restore it into an empty directory; else restore the data directory "    \
    "from a copy, or see --salvage"

/* A file and what its header says. */
struct link {
    struct frame_file file;
    uint64_t size;
    int fd; /* -1: closed */
};

struct run {
    const struct replay *replay;
    const struct disk_calls *calls;
    struct window window; /* owned */
    struct replay_end end;
    uint64_t last;   /* number of the last file there is; 0: none */
    bool has_first;  /* replay->number is there */
    uint64_t all;    /* bytes of all files, about */
    uint64_t done;   /* of these, bytes of files that have been read */
    uint64_t n_read; /* window.n_read when progress_fn was called last */
    bool is_enough;  /* replay->last_seq has been given out */
};

/* A line for the operator about a file. */
static void __attribute__((format(printf, 4, 5))) report(struct run *run,
    enum log_level level, uint64_t number, const char *format, ...)
{
    char name[NAMES_BYTES], text[TEXT_BYTES];
    va_list args;

    if (run->replay->logger == NULL) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    names_make(name, NAMES_LOG, number);
    log_line(run->replay->logger, level, "%s %s", name, text);
}

static int
damaged(struct run *run, uint64_t number, uint64_t at, const char *what)
{
    report(run, LOG_ERROR, number,
        "is damaged at offset %" PRIu64
        ": %s; restore the data directory from a copy, or see --salvage",
        at, what);
    return ERR_CORRUPT;
}

/* Its header is sound, but no server wrote it that the manifest knows of. */
static int
is_foreign(struct run *run, uint64_t number)
{
    report(run, LOG_ERROR, number, "%s", HISTORIES_FOREIGN);
    return ERR_CORRUPT;
}

static int
cut_off(struct run *run, uint64_t number, const struct link *link)
{
    report(run, LOG_ERROR, number,
        "is cut off at offset %" PRIu64 ": it was made with %" PRIu64
        " bytes; restore the data directory from a copy, or see --salvage",
        link->size, link->file.bytes);
    return ERR_CORRUPT;
}

/* Says which other file is there: it may be that one which is wrong. */
static int
file_missing(struct run *run, uint64_t number)
{
    char other[NAMES_BYTES];

    names_make(other, NAMES_LOG, run->last);
    report(run, LOG_ERROR, number, "is missing, and %s is there; %s", other,
        number < run->last
            ? PUT_OVER
            : "restore the data directory from a copy, or see --salvage");
    return ERR_CORRUPT;
}

/* The file ends as if it were the last one. */
static int
ends_early(struct run *run, uint64_t number, uint64_t at)
{
    char next[NAMES_BYTES];

    names_make(next, NAMES_LOG, number + 1);
    report(run, LOG_ERROR, number,
        "ends at offset %" PRIu64 ", and %s, which is there, is newer; %s", at,
        next, PUT_OVER);
    return ERR_CORRUPT;
}

static int
not_regular(struct run *run, uint64_t number)
{
    report(run, LOG_ERROR, number, "cannot be read: %s",
        disk_text(DISK_NOT_REGULAR));
    return ERR_CORRUPT;
}

static int
read_failed(struct run *run, uint64_t number, int error)
{
    report(run, LOG_ERROR, number,
        "cannot be read: %s; see to the disk and start again",
        disk_text(error));
    return ERR_DISK;
}

static void
note_name(void *context, const char *name)
{
    struct run *run = context;
    enum names_kind kind;
    uint64_t number;

    if (names_parse(name, &kind, &number) && kind == NAMES_LOG) {
        run->has_first = run->has_first || number == run->replay->number;
        run->last = number > run->last ? number : run->last;
    }
}

static void
link_close(struct run *run, struct link *link)
{
    if (link->fd >= 0) {
        run->calls->close(run->replay->disk, link->fd);
        link->fd = -1;
    }
}

/* Checks the n bytes that there are of a header, and what stands in it against
 * the place where the file is and its size. */
static int
check_header(struct run *run, uint64_t number, const uint8_t *head, size_t n,
    struct link *link)
{
    const struct frame_file *file = &link->file;
    enum frame_fault fault = frame_file_get(head, n, &link->file);

    if (fault == FRAME_NEWER) {
        report(run, LOG_ERROR, number,
            "was written by a newer tallyd; start that one");
        return ERR_NEWER_FORMAT;
    }
    if (fault != FRAME_OK) {
        return damaged(run, number, n < FRAME_FILE_BYTES ? n : 0,
            n < FRAME_FILE_BYTES ? "its header is cut off"
                                 : "its header is not what was written");
    }
    if (file->epoch !=
        histories_epoch(run->replay->histories, number, run->replay->epoch)) {
        return is_foreign(run, number);
    }
    if (file->number != number) {
        return damaged(run, number, 24, "its header has another number");
    }
    if (number > run->replay->number && file->before_end == 0) {
        return damaged(run, number, 48, "it does not follow the file before");
    }
    if (link->size < file->bytes) {
        return cut_off(run, number, link);
    }
    return 0;
}

/* Reads size and header of an open file. */
static int
link_read(struct run *run, uint64_t number, struct link *link)
{
    struct disk *disk = run->replay->disk;
    uint8_t head[FRAME_FILE_BYTES];
    size_t n = 0;
    int error = run->calls->size(disk, link->fd, &link->size);

    if (error == 0) {
        error = run->calls->read(disk, link->fd, head, sizeof head, 0, &n);
    }
    if (error != 0) {
        return read_failed(run, number, error);
    }
    return check_header(run, number, head, n, link);
}

/* Opens file number, which must be there, and checks its header; the caller
 * closes it. */
static int
link_open(struct run *run, uint64_t number, struct link *link)
{
    char name[NAMES_BYTES];
    int err, error;

    names_make(name, NAMES_LOG, number);
    error = run->calls->open(run->replay->disk, name, DISK_READ, &link->fd);
    if (error != 0) {
        link->fd = -1;
        return error == ENOENT          ? file_missing(run, number)
            : error == DISK_NOT_REGULAR ? not_regular(run, number)
                                        : read_failed(run, number, error);
    }
    err = link_read(run, number, link);
    if (err != 0) {
        link_close(run, link);
    }
    return err;
}

/* The bytes of an open file that take room. 0 or ERR_DISK. */
static int
count_data(
    struct run *run, uint64_t number, const struct link *link, uint64_t *bytes)
{
    uint64_t from, to = 0;

    *bytes = 0;
    for (;;) {
        int error =
            run->calls->next_data(run->replay->disk, link->fd, to, &from, &to);

        if (error != 0) {
            return read_failed(run, number, error);
        }
        if (from == to) {
            return 0;
        }
        *bytes += to - from;
    }
}

/* Finds the files and looks at all their headers. */
static int
survey(struct run *run)
{
    struct disk *disk = run->replay->disk;
    struct link link;
    int error = run->calls->list(disk, note_name, run);

    if (error != 0) {
        return read_failed(run, run->replay->number, error);
    }
    if (run->last == 0) {
        return 0;
    }
    if (!run->has_first) {
        return file_missing(run, run->replay->number);
    }
    for (uint64_t number = run->replay->number; number <= run->last;
         number++) {
        int err = link_open(run, number, &link);
        uint64_t bytes = 0;

        if (err != 0) {
            return err;
        }
        if (number > run->replay->number) { /* of the file before */
            run->all += link.file.before_end;
        }
        if (number == run->last) {
            err = count_data(run, number, &link, &bytes);
            run->all += bytes;
        }
        link_close(run, &link);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

/* Tells where reading is, whenever the disk has been read. */
static void
report_progress(struct run *run)
{
    const struct replay *replay = run->replay;

    if (replay->progress_fn != NULL && run->n_read != run->window.n_read) {
        uint64_t at = run->done + run->window.at;

        run->n_read = run->window.n_read;
        replay->progress_fn(
            replay->context, at < run->all ? at : run->all, run->all);
    }
}

/* Gets the batch at the window's place, all of it, into the window. 0 and
 * *fault, or ERR_DISK. */
static int
next_batch(struct run *run, const struct link *link, struct frame_batch *batch,
    enum frame_fault *fault)
{
    struct window *window = &run->window;
    int error = window_need(window, FRAME_BATCH_BYTES);

    if (error == 0 && window->n >= FRAME_BATCH_BYTES &&
        frame_batch_peek(window->bytes, batch)) {
        error = window_need(window, FRAME_BATCH_BYTES + batch->payload_bytes);
    }
    if (error != 0) {
        return read_failed(run, link->file.number, error);
    }
    *fault = frame_batch_get(&link->file, window->bytes, window->n, batch);
    return 0;
}

/* What is asked for has been given out. */
static void
end_here(struct run *run, const struct link *link)
{
    ASSERT(run->window.at >= FRAME_FILE_BYTES);
    run->end.number = link->file.number;
    run->end.epoch = link->file.epoch;
    run->end.end = run->window.at;
    run->is_enough = true;
}

/* True where the batch in the window says that its file has a successor. */
static bool
says_followed(const struct run *run, const struct frame_batch *batch)
{
    return entry_mark_of(run->window.bytes + FRAME_BATCH_BYTES,
               batch->payload_bytes) >= ENTRY_MARK_FOLLOWED_OLD;
}

/* Gives out batch after batch up to the first that is not sound, or to the
 * window's end. next: as of replay_file. */
static int
give_batches(
    struct run *run, const struct link *link, const struct frame_file *next)
{
    const struct replay *replay = run->replay;
    struct window *window = &run->window;
    struct frame_batch batch;
    enum frame_fault fault;

    for (;;) {
        int err = next_batch(run, link, &batch, &fault);

        if (err != 0 || fault != FRAME_OK) {
            return err;
        }
        if (next == NULL && says_followed(run, &batch)) {
            return file_missing(run, link->file.number + 1);
        }
        if (batch.seq != run->end.next_seq ||
            (next != NULL && batch.seq >= next->first_seq)) {
            return damaged(run, link->file.number, window->at,
                "the sequence number of a batch is not the next");
        }
        if (replay->batch_fn != NULL && batch.seq >= replay->from_seq) {
            err = replay->batch_fn(replay->context, batch.seq,
                window->bytes + FRAME_BATCH_BYTES, batch.payload_bytes);
            if (err != 0) {
                return err;
            }
        }
        run->end.next_seq++;
        run->end.batches++;
        window_skip(window, FRAME_BATCH_BYTES + batch.payload_bytes);
        report_progress(run);
        if (batch.seq == replay->last_seq) {
            end_here(run, link);
            return 0;
        }
    }
}

/* Up to the last byte of bytes[0..n) that is not zero. */
static size_t
length_without_zeroes(const uint8_t *bytes, size_t n)
{
    if (n > 0 && bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0) {
        return 0; /* preallocated, mostly */
    }
    while (n > 0 && bytes[n - 1] == 0) {
        n--;
    }
    return n;
}

/* Whether there is nothing but zeroes in bytes from..to of the file. 0 or
 * ERR_DISK. */
static int
look_for_data(struct run *run, const struct link *link, uint64_t from,
    uint64_t to, bool *is_blank)
{
    struct window *window = &run->window;

    *is_blank = true;
    window_open(window, link->fd, from, to);
    for (;;) {
        int error = window_need(window, 1);

        if (error != 0) {
            return read_failed(run, link->file.number, error);
        }
        if (window->n == 0 || !*is_blank) {
            return 0;
        }
        *is_blank = length_without_zeroes(window->bytes, window->n) == 0;
        window_skip(window, window->n);
    }
}

/* The file, up to its end, is not what its successor says. */
static int
is_incomplete(
    struct run *run, const struct link *link, const struct frame_file *next)
{
    uint64_t at = run->window.at;
    bool is_blank;
    int err = look_for_data(run, link, at, next->before_end, &is_blank);

    if (err != 0) {
        return err;
    }
    return is_blank ? ends_early(run, link->file.number, at)
                    : damaged(run, link->file.number, at,
                          "a batch is not what was written");
}

/* A file that has a successor: all up to its end must be there, and what is
 * there must not be a note of the successor with a bit turned over. */
static int
check_complete(
    struct run *run, const struct link *link, const struct frame_file *next)
{
    struct window *window = &run->window;
    uint64_t end = next->before_end;
    int error;

    if (window->at < end) {
        return is_incomplete(run, link, next);
    }
    window_open(window, link->fd, end, end + NOTE_BYTES);
    error = window_need(window, NOTE_BYTES);
    if (error != 0) {
        return read_failed(run, link->file.number, error);
    }
    if (window->n == NOTE_BYTES &&
        note_is_damaged(next, link->file.epoch, window->bytes)) {
        return damaged(run, link->file.number, end,
            "the note of the next file is not what was written");
    }
    return 0;
}

/* Looks at bytes from..to of the file; *torn becomes the bytes from the end of
 * the log to the last one that is not zero. 0 or ERR_DISK. */
static int
measure_data(struct run *run, const struct link *link, uint64_t from,
    uint64_t to, uint64_t *torn)
{
    struct window *window = &run->window;

    window_open(window, link->fd, from, to);
    for (;;) {
        int error = window_need(window, 1);
        size_t n;

        if (error != 0) {
            return read_failed(run, link->file.number, error);
        }
        if (window->n == 0) {
            return 0;
        }
        n = length_without_zeroes(window->bytes, window->n);
        if (n > 0) {
            ASSERT(window->at >= run->end.end);
            *torn = window->at + n - run->end.end;
        }
        window_skip(window, window->n);
    }
}

/* *torn: the bytes from the end of the log to the last one that is not zero.
 * Most of what is behind is a hole, which is not read. 0 or ERR_DISK. */
static int
measure_tail(struct run *run, const struct link *link, uint64_t *torn)
{
    uint64_t from, to = run->end.end;

    *torn = 0;
    for (;;) {
        int error =
            run->calls->next_data(run->replay->disk, link->fd, to, &from, &to);
        int err;

        if (error != 0) {
            return read_failed(run, link->file.number, error);
        }
        if (from == to) {
            return 0;
        }
        err = measure_data(run, link, from, to, torn);
        if (err != 0) {
            return err;
        }
    }
}

/* True where a batch at offset at may have followed the first missing one in
 * this file: that one and all after it stood between the log's end and this. */
static bool
is_later(const struct run *run, const struct frame_batch *batch, uint64_t at)
{
    uint64_t missing = run->end.next_seq;

    ASSERT(at >= run->end.end);
    return batch->seq >= missing &&
        batch->seq - missing <= (at - run->end.end) / (FRAME_BATCH_BYTES + 1);
}

/* What a sound batch behind the log's end means. 0 or ERR_CORRUPT. */
static int
judge_later(
    struct run *run, const struct link *link, const struct frame_batch *batch)
{
    if (says_followed(run, batch)) {
        return file_missing(run, link->file.number + 1);
    }
    if (!is_later(run, batch, run->window.at)) {
        return 0;
    }
    if (batch->synced_seq >= run->end.next_seq) {
        return damaged(run, link->file.number, run->end.end,
            "a batch that was on the disk already is not there");
    }
    run->end.left_out++;
    return 0;
}

/* Looks at every place behind the log's end. 0, ERR_CORRUPT where a sound
 * batch says that the first missing one was synced, ERR_DISK. */
static int
search_tail(struct run *run, const struct link *link)
{
    struct window *window = &run->window;
    uint64_t stop = run->end.end + run->end.torn_bytes;

    window_open(window, link->fd, run->end.end, link->size);
    while (window->at < stop) {
        struct frame_batch batch;
        enum frame_fault fault = FRAME_DAMAGED;
        size_t len = 1;
        int error = window_need(window, FRAME_BATCH_BYTES);

        if (error != 0) {
            return read_failed(run, link->file.number, error);
        }
        if (window->n < FRAME_BATCH_BYTES) {
            return 0;
        }
        if (frame_batch_peek(window->bytes, &batch) &&
            (batch.payload_bytes == ENTRY_MARK_BYTES || /* of any number */
                is_later(run, &batch, window->at))) {
            int err = next_batch(run, link, &batch, &fault);

            if (err == 0 && fault == FRAME_OK) {
                err = judge_later(run, link, &batch);
                len = FRAME_BATCH_BYTES + batch.payload_bytes;
            }
            if (err != 0) {
                return err;
            }
        }
        window_skip(window, len);
        window_skip(window, frame_batch_seek(window->bytes, window->n));
    }
    return 0;
}

/* The last file: where it ends, and whether a crash can have made it so. */
static int
find_end(struct run *run, const struct link *link)
{
    int err;

    run->end.number = link->file.number;
    run->end.epoch = link->file.epoch;
    run->end.end = run->window.at;
    ASSERT(run->end.end >= FRAME_FILE_BYTES);
    ASSERT(run->end.end <= link->file.bytes);
    err = measure_tail(run, link, &run->end.torn_bytes);
    if (err == 0 && run->end.torn_bytes > 0) {
        err = search_tail(run, link);
    }
    if (err == 0 && run->end.torn_bytes > 0) {
        report(run, LOG_WARNING, link->file.number,
            "ends at offset %" PRIu64 ": the %" PRIu64
            " bytes behind were not all on the disk when tallyd stopped, and"
            " are left out, %" PRIu64 " sound batches among them",
            run->end.end, run->end.torn_bytes, run->end.left_out);
    }
    return err;
}

/* Replays an open file; next is its successor's header, NULL for the last. */
static int
replay_file(
    struct run *run, const struct link *link, const struct frame_file *next)
{
    uint64_t until = link->file.bytes;
    int err;

    if (next != NULL && next->before_end < until) {
        until = next->before_end;
    }
    if (run->end.next_seq == 0) {
        run->end.next_seq = link->file.first_seq;
    }
    if (link->file.first_seq != run->end.next_seq &&
        (link->file.first_seq < run->end.next_seq ||
            link->file.first_seq - run->end.next_seq < REPLAY_SEQ_GAP)) {
        return damaged(run, link->file.number, 32,
            "its first sequence number is not the next");
    }
    run->end.next_seq = link->file.first_seq;
    ASSERT(until >= FRAME_FILE_BYTES && until <= link->size);
    window_open(&run->window, link->fd, FRAME_FILE_BYTES, until);
    if (run->replay->last_seq != 0 &&
        run->replay->last_seq < link->file.first_seq) {
        end_here(run, link);
        return 0;
    }
    err = give_batches(run, link, next);
    if (err != 0 || run->is_enough) {
        return err;
    }
    return next == NULL ? find_end(run, link)
                        : check_complete(run, link, next);
}

/* Opens file number and reads its successor's header. */
static int
replay_number(struct run *run, uint64_t number)
{
    struct link link, next;
    bool is_last = number == run->last;
    int err = link_open(run, number, &link);

    if (err != 0) {
        return err;
    }
    if (!is_last) {
        err = link_open(run, number + 1, &next);
        link_close(run, &next);
    }
    if (err == 0) {
        err = replay_file(run, &link, is_last ? NULL : &next.file);
    }
    link_close(run, &link);
    run->done += err == 0 && !is_last ? next.file.before_end : 0;
    return err;
}

static int
replay_files(struct run *run)
{
    for (uint64_t number = run->replay->number; number <= run->last;
         number++) {
        int err = replay_number(run, number);

        if (err != 0 || run->is_enough) {
            return err;
        }
    }
    if (run->replay->progress_fn != NULL) {
        run->replay->progress_fn(run->replay->context, run->all, run->all);
    }
    return 0;
}

int
replay_run(const struct replay *replay, struct replay_end *out)
{
    struct run run = {.replay = replay, .calls = replay->disk->calls};
    int err;

    ASSERT(replay->epoch != 0 && replay->number != 0);
    err = survey(&run);
    if (err == 0 && run.last == 0) {
        *out = (struct replay_end){.next_seq = 1};
        return 0;
    }
    if (err == 0) {
        err = window_init(&run.window, replay->disk);
    }
    if (err == 0) {
        err = replay_files(&run);
    }
    window_fini(&run.window);
    if (err == 0) {
        ASSERT(run.end.next_seq > 0);
        ASSERT(run.end.number == run.last || run.is_enough);
        *out = run.end;
    }
    return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the log behind damage, and gives out each sound batch in order of the
 * sequence numbers.
 *
 * A batch can be told wherever it stands: its checksum is over the history and
 * the number of its file, too. So behind bytes that are none the next one is
 * looked for at each place, and sequence numbers say how many are missing
 * between them. A header is needed for little: history and number are known,
 * and where the file before is void from on can be seen, but later, by the
 * sequence numbers that come again.
 *
 *   log-5                       log-6, header lost       log-7, the last
 *   | header | batches | void   | ? | batches | # | ..   | batches | torn |
 *                      ^ numbers of log-6      ^ hole                ^
 *
 * In the last file, and in one whose successor is lost, a hole is a torn end
 * unless a batch behind it says that what is missing was synced: batches behind
 * a torn end do not count, as in replay.c. Void batches in front of a hole are
 * those that the successor had again, so they may be given out in its place.
 *
 * A log file that follows nobody, and is not the first, is where a salvage had
 * begun to write and has not come to its end: the log ends before it. No
 * manifest names the history of that. */
#include "offline/glean.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/names.h"
#include "wal/note.h"
#include "wal/replay.h"
#include "wal/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct header {
    struct frame_file file; /* number and epoch in any case */
    uint64_t size;
    int fd;        /* -1: closed */
    bool is_known; /* all of file */
    bool is_turned, is_foreign;
    bool follows_nobody; /* of whatever history */
    uint64_t turned_at;
};

/* The numbers of the files that are there, from glean->number on, ascending:
 * those of which none is there may be very many. */
struct glean_numbers {
    uint64_t *number; /* owned */
    size_t n, capacity;
    bool is_short; /* of memory */
};

struct run {
    const struct glean *glean;
    const struct disk_calls *calls;
    struct window window;       /* owned */
    struct glean_numbers files; /* owned */
    uint64_t last;              /* number of the last file; 0: none */
    uint64_t due;               /* sequence number that comes next; 0: any */
    uint64_t from_number, from, hole_to; /* of the hole before what comes */
    bool is_hole;
    bool is_followed; /* the last file says so */
    bool has_synced;  /* synced is known */
    uint64_t synced;  /* what the last file says of itself */
    int *error;
};

/* A file under way. */
struct piece_of_log {
    struct header head;
    uint64_t until;    /* nothing counts from there on */
    uint64_t void_seq; /* batches from that number on are void; 0: none is */
    bool is_last;
    bool is_open; /* nobody knows where it ends: the next one's header is
                   * lost, or there is none */
};

static int
disk_failed(struct run *run, int error)
{
    *run->error = error;
    return error == ENOMEM ? ERR_NO_MEMORY : ERR_DISK;
}

static void
tell(struct run *run, const struct glean_piece *piece)
{
    run->glean->piece_fn(run->glean->context, piece);
}

static void
note_name(void *context, const char *name)
{
    struct run *run = context;
    struct glean_numbers *files = &run->files;
    enum names_kind kind;
    uint64_t number;
    if (!names_parse(name, &kind, &number) || kind != NAMES_LOG ||
        number < run->glean->number) {
        return;
    }
    if (files->n == files->capacity) {
        size_t n = files->capacity == 0 ? 16 : 2 * files->capacity;
        uint64_t *more = realloc(files->number, n * sizeof *more);
        if (more == NULL) {
            files->is_short = true;
            return;
        }
        files->number = more;
        files->capacity = n;
    }
    files->number[files->n++] = number;
}

static int
by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

struct header_try {
    uint8_t bytes[FRAME_FILE_BYTES];
    struct frame_file file;
};

static bool
header_is_right(void *context)
{
    struct header_try *try = context;
    return frame_file_get(try->bytes, sizeof try->bytes, &try->file) !=
        FRAME_DAMAGED;
}

/* What the bytes of a header say, if need be with one bit turned back. */
static int
judge_header(struct run *run, struct header_try *try, size_t n,
    uint64_t number, struct header *out)
{
    const struct flip flip = {.bytes = try->bytes,
        .n = sizeof try->bytes,
        .cost = sizeof try->bytes,
        .is_right_fn = header_is_right,
        .context = try};
    size_t at = 0;
    bool is_whole = n == sizeof try->bytes;
    bool is_right = is_whole && header_is_right(try);
    if (!is_right && is_whole) {
        is_right = flip_find(&flip, run->glean->budget, &at);
        out->is_turned = is_right;
        out->turned_at = at;
    }
    if (is_right && frame_file_get(try->bytes, n, &try->file) == FRAME_NEWER) {
        return ERR_NEWER_FORMAT;
    }
    out->is_foreign = is_right &&
        (try->file.epoch != out->file.epoch || try->file.number != number);
    out->is_known = is_right && !out->is_foreign;
    out->follows_nobody =
        is_right && try->file.number == number && try->file.before_end == 0;
    if (out->is_known) {
        out->file = try->file;
    }
    return 0;
}

/* Opens a file and reads its header. *is_there: there is one. */
static int
open_header(
    struct run *run, uint64_t number, struct header *out, bool *is_there)
{
    struct disk *disk = run->glean->disk;
    struct header_try try;
    char name[NAMES_BYTES];
    size_t n = 0;
    *out = (struct header){
        .file = {.epoch = histories_epoch(
                     run->glean->histories, number, run->glean->epoch),
            .number = number},
        .fd = -1};
    names_make(name, NAMES_LOG, number);
    int error = run->calls->open(disk, name, DISK_READ, &out->fd);
    *is_there = error == 0;
    if (error != 0) {
        out->fd = -1;
        return error == ENOENT || error == DISK_NOT_REGULAR
            ? 0
            : disk_failed(run, error);
    }
    error = run->calls->size(disk, out->fd, &out->size);
    if (error == 0) {
        error = run->calls->read(
            disk, out->fd, try.bytes, sizeof try.bytes, 0, &n);
    }
    return error != 0 ? disk_failed(run, error)
                      : judge_header(run, &try, n, number, out);
}

static void
close_header(struct run *run, struct header *head)
{
    if (head->fd >= 0) {
        run->calls->close(run->glean->disk, head->fd);
        head->fd = -1;
    }
}

/* Which files there are; the log ends before one of a salvage. */
static int
survey(struct run *run)
{
    struct glean_numbers *files = &run->files;
    int error = run->calls->list(run->glean->disk, note_name, run);
    if (error == 0 && files->is_short) {
        error = ENOMEM;
    }
    if (error != 0) {
        return disk_failed(run, error);
    }
    if (files->n > 0) {
        qsort(files->number, files->n, sizeof files->number[0], by_number);
    }
    for (size_t i = 0; i < files->n; i++) {
        struct header head;
        bool is_there;
        int err = open_header(run, files->number[i], &head, &is_there);
        close_header(run, &head);
        if (err != 0) {
            return err;
        }
        if (files->number[i] > run->glean->number && head.follows_nobody) {
            files->n = i;
        }
    }
    run->last = files->n == 0 ? 0 : files->number[files->n - 1];
    return 0;
}

struct batch_try {
    const struct frame_file *file;
    const uint8_t *bytes;
    size_t n;
    struct frame_batch batch;
};

static bool
batch_is_right(void *context)
{
    struct batch_try *try = context;
    return frame_batch_get(try->file, try->bytes, try->n, &try->batch) ==
        FRAME_OK;
}

/* Gets the batch at the window's place into it. */
static int
get_batch(struct run *run, const struct frame_file *file,
    struct frame_batch *batch, enum frame_fault *fault)
{
    struct window *window = &run->window;
    int error = window_need(window, FRAME_BATCH_BYTES);
    if (error == 0 && window->n >= FRAME_BATCH_BYTES &&
        frame_batch_peek(window->bytes, batch)) {
        error = window_need(window, FRAME_BATCH_BYTES + batch->payload_bytes);
    }
    *fault = error != 0
        ? FRAME_DAMAGED
        : frame_batch_get(file, window->bytes, window->n, batch);
    return error != 0 ? disk_failed(run, error) : 0;
}

/* Turns back a bit of the batch at the window's place: of its header, whose
 * length may be what is wrong, else of the payload. */
static int
turn_batch(struct run *run, const struct frame_file *file,
    struct frame_batch *batch, bool *is_right)
{
    struct window *window = &run->window;
    int error = window_need(window, WINDOW_NEED_MAX);
    *is_right = false;
    if (error != 0) {
        return disk_failed(run, error);
    }
    struct batch_try try = {
        .file = file, .bytes = window->bytes, .n = window->n};
    struct flip flip = {.bytes = window->room + (window->bytes - window->room),
        .n = FRAME_BATCH_BYTES,
        .cost = FRAME_BATCH_BYTES,
        .is_right_fn = batch_is_right,
        .context = &try};
    struct glean_piece piece = {.kind = GLEAN_TURNED, .number = file->number};
    size_t at = 0;
    if (window->n < FRAME_BATCH_BYTES) {
        return 0;
    }
    *is_right = flip_find(&flip, run->glean->budget, &at);
    if (!*is_right && frame_batch_peek(window->bytes, batch) &&
        batch->payload_bytes <= window->n - FRAME_BATCH_BYTES) {
        flip.bytes += FRAME_BATCH_BYTES;
        flip.n = batch->payload_bytes;
        flip.cost = FRAME_BATCH_BYTES + flip.n;
        *is_right = flip_find(&flip, run->glean->budget, &at);
        at += FRAME_BATCH_BYTES;
    }
    if (*is_right) {
        *batch = try.batch;
        piece.at = window->at + at;
        piece.to = piece.at + 1;
        piece.seq = batch->seq;
        tell(run, &piece);
    }
    return 0;
}

/* Moves the window to the next sound batch that may count, or to its end. */
static int
seek(struct run *run, const struct frame_file *file, bool *is_found)
{
    struct window *window = &run->window;
    *is_found = false;
    for (;;) {
        struct frame_batch batch;
        enum frame_fault fault;
        int error = window_need(window, FRAME_BATCH_BYTES);
        if (error != 0) {
            return disk_failed(run, error);
        }
        if (window->n < FRAME_BATCH_BYTES) {
            window_skip(window, window->n);
            return 0;
        }
        window_skip(window, frame_batch_seek(window->bytes, window->n));
        int err = get_batch(run, file, &batch, &fault);
        if (err != 0) {
            return err;
        }
        if (fault == FRAME_OK && batch.seq >= run->due) {
            *is_found = true;
            return 0;
        }
        if (window->n > 0) {
            window_skip(window, 1);
        }
    }
}

/* What batches from the window's place on say was synced, which stays. */
static int
find_synced(struct run *run, const struct piece_of_log *log)
{
    struct window *window = &run->window;
    uint64_t at = window->at;
    bool is_found = !run->has_synced;
    int err = 0;
    while (err == 0 && is_found) {
        err = seek(run, &log->head.file, &is_found);
        if (err == 0 && is_found) {
            struct frame_batch batch;
            (void)frame_batch_peek(window->bytes, &batch);
            uint64_t synced =
                entry_mark_of(window->bytes + FRAME_BATCH_BYTES,
                    batch.payload_bytes) >= ENTRY_MARK_FOLLOWED_OLD
                ? batch.seq - 1
                : batch.synced_seq;
            run->synced = synced > run->synced ? synced : run->synced;
            window_skip(window, 1);
        }
    }
    run->has_synced = true;
    window_open(window, log->head.fd, at, log->until);
    return err;
}

/* Begins a hole at an offset of a file, unless there is one. */
static void
begin_hole(struct run *run, uint64_t number, uint64_t at)
{
    if (!run->is_hole) {
        run->is_hole = true;
        run->from_number = number;
        run->from = at;
    }
}

/* The batch that comes next has number seq, in file number at offset at. */
static void
end_hole(struct run *run, uint64_t number, uint64_t at, uint64_t seq)
{
    ASSERT(!run->is_hole || run->from_number <= number);
    bool is_gap =
        run->due != 0 && seq > run->due && seq - run->due < REPLAY_SEQ_GAP;
    struct glean_piece piece = {.kind = GLEAN_HOLE,
        .number = run->is_hole ? run->from_number : number,
        .at = run->is_hole ? run->from : at,
        .n_batches = is_gap ? seq - run->due : 0,
        .seq = run->due,
        /* numbers left out by a start hide what was before it */
        .may_be_more = run->is_hole && !is_gap && seq != run->due};
    if (run->is_hole && run->from_number == number) {
        piece.to = at;
    } else {
        piece.to = run->is_hole ? run->hole_to : at;
    }
    /* else it was no batch of its own: bytes at the end of a file */
    if (is_gap || piece.may_be_more) {
        tell(run, &piece);
    }
    run->is_hole = false;
}

/* Gives out the sound batch in the window. *is_void: it does not count, nor
 * does what follows in this file. */
static int
take_batch(struct run *run, const struct piece_of_log *log,
    const struct frame_batch *batch, bool *is_void)
{
    struct window *window = &run->window;
    ASSERT(window->n >= FRAME_BATCH_BYTES + batch->payload_bytes);
    struct glean_batch out = {.seq = batch->seq,
        .synced_seq = batch->synced_seq,
        .number = log->head.file.number,
        .at = window->at,
        .payload = window->bytes + FRAME_BATCH_BYTES,
        .len = batch->payload_bytes};
    if (entry_mark_of(out.payload, out.len) >= ENTRY_MARK_FOLLOWED_OLD) {
        run->is_followed |= log->is_last;
        *is_void = true;
        return 0;
    }
    *is_void = log->void_seq != 0 && batch->seq >= log->void_seq;
    if (*is_void || batch->seq < run->due) {
        return 0;
    }
    end_hole(run, out.number, out.at, out.seq);
    run->due = batch->seq + 1;
    return run->glean->batch_fn(run->glean->context, &out);
}

/* The window is where no batch is, at the end of a file's batches or in a
 * hole. *is_end: nothing that counts follows in this file. */
static int
pass_hole(struct run *run, const struct piece_of_log *log, bool *is_end)
{
    struct window *window = &run->window;
    uint64_t at = window->at;
    bool is_found;
    int err = log->is_open ? find_synced(run, log) : 0;
    if (err != 0) {
        return err;
    }
    if (log->is_open && run->synced < run->due && run->due != 0) {
        *is_end = true; /* as after a crash */
        return 0;
    }
    err = seek(run, &log->head.file, &is_found);
    *is_end = !is_found;
    ASSERT(window->at >= at);
    if (err == 0) {
        begin_hole(run, log->head.file.number, at);
        run->hole_to = window->at;
    }
    return err;
}

static int
glean_batches(struct run *run, const struct piece_of_log *log)
{
    struct window *window = &run->window;
    bool is_end = false;
    window_open(window, log->head.fd, FRAME_FILE_BYTES, log->until);
    while (!is_end) {
        struct frame_batch batch;
        enum frame_fault fault;
        int err = get_batch(run, &log->head.file, &batch, &fault);
        if (err == 0 && fault == FRAME_DAMAGED) {
            bool is_right;
            err = turn_batch(run, &log->head.file, &batch, &is_right);
            fault = is_right ? FRAME_OK : fault;
        }
        if (err == 0 && fault == FRAME_OK) {
            err = take_batch(run, log, &batch, &is_end);
            if (!is_end) {
                window_skip(window, FRAME_BATCH_BYTES + batch.payload_bytes);
            }
        } else if (err == 0 && window->at >= log->until) {
            is_end = true;
        } else if (err == 0) {
            err = pass_hole(run, log, &is_end);
        }
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

/* The first sequence number in a file whose header is lost; 0: none. */
static int
first_seq(struct run *run, const struct header *head, uint64_t *seq)
{
    struct frame_batch batch;
    bool is_found;
    *seq = 0;
    if (head->size <= FRAME_FILE_BYTES) {
        return 0;
    }
    window_open(&run->window, head->fd, FRAME_FILE_BYTES, head->size);
    int err = seek(run, &head->file, &is_found);
    if (err == 0 && is_found) {
        (void)frame_batch_peek(run->window.bytes, &batch);
        *seq = batch.seq;
    }
    return err;
}

/* Where the file before `next` ends, and whether its note is as it was. */
static int
take_successor(
    struct run *run, struct piece_of_log *log, const struct header *next)
{
    if (!next->is_known) {
        return next->is_foreign ? 0 : first_seq(run, next, &log->void_seq);
    }
    uint64_t end = next->file.before_end;
    log->void_seq = next->file.first_seq;
    if (end < log->until) {
        uint8_t note[NOTE_BYTES];
        size_t n = 0;
        int error = run->calls->read(
            run->glean->disk, log->head.fd, note, sizeof note, end, &n);
        if (error != 0) {
            return disk_failed(run, error);
        }
        if (n == sizeof note &&
            note_is_damaged(&next->file, log->head.file.epoch, note)) {
            tell(run,
                &(struct glean_piece){.kind = GLEAN_NOTE,
                    .number = log->head.file.number,
                    .at = end,
                    .to = end + n});
        }
        log->until = end;
    }
    return 0;
}

static void
tell_header(struct run *run, const struct piece_of_log *log)
{
    const struct header *head = &log->head;
    struct glean_piece piece = {.number = head->file.number};
    if (head->is_turned) {
        piece.kind = GLEAN_TURNED;
        piece.at = head->turned_at;
        piece.to = piece.at + 1;
        tell(run, &piece);
    } else if (!head->is_known) {
        piece.kind = GLEAN_HEADER;
        piece.to = FRAME_FILE_BYTES;
        tell(run, &piece);
    }
}

/* Tells of a file that is too short; what it has lost, where others follow, a
 * hole says. */
static void
tell_cut(struct run *run, const struct piece_of_log *log)
{
    uint64_t made = log->head.is_known ? log->head.file.bytes : log->until;
    if (log->head.size < made) {
        tell(run,
            &(struct glean_piece){.kind = GLEAN_CUT,
                .number = log->head.file.number,
                .at = log->head.size,
                .to = made,
                .may_be_more = log->is_last});
    }
}

static int
glean_open_file(struct run *run, struct piece_of_log *log)
{
    uint64_t number = log->head.file.number;
    bool is_there = false;
    int err = 0;
    log->until = log->head.size;
    log->is_open = true;
    run->has_synced = false;
    if (!log->is_last) {
        struct header next;
        err = open_header(run, number + 1, &next, &is_there);
        if (err == 0 && is_there) {
            log->is_open = !next.is_known;
            err = take_successor(run, log, &next);
        }
        close_header(run, &next);
    }
    if (err != 0) {
        return err;
    }
    ASSERT(log->until <= log->head.size);
    tell_header(run, log);
    if (log->head.is_known && run->due < log->head.file.first_seq) {
        end_hole(run, number, 0, log->head.file.first_seq);
        run->due = log->head.file.first_seq;
    }
    if (!log->head.is_known && log->until <= FRAME_FILE_BYTES) {
        begin_hole(run, number, 0);
        run->hole_to = log->until;
    }
    err = log->until < FRAME_FILE_BYTES ? 0 : glean_batches(run, log);
    if (err == 0) {
        tell_cut(run, log);
    }
    return err;
}

static int
glean_file(struct run *run, uint64_t number)
{
    struct piece_of_log log = {.is_last = number == run->last};
    bool is_there;
    int err = open_header(run, number, &log.head, &is_there);
    if (err == 0 && (!is_there || log.head.is_foreign)) {
        tell(run,
            &(struct glean_piece){
                .kind = is_there ? GLEAN_FOREIGN : GLEAN_MISSING,
                .number = number,
                .may_be_more = true});
    } else if (err == 0) {
        err = glean_open_file(run, &log);
    }
    close_header(run, &log.head);
    return err;
}

/* File by file; what is missing between two is told at once. */
static int
glean_files(struct run *run)
{
    uint64_t due = run->glean->number;
    int err = 0;
    for (size_t i = 0; err == 0 && i < run->files.n; i++) {
        uint64_t number = run->files.number[i];
        if (number > due) {
            tell(run,
                &(struct glean_piece){.kind = GLEAN_MISSING,
                    .number = due,
                    .to_number = number - 1,
                    .may_be_more = true});
        }
        err = glean_file(run, number);
        due = number + 1;
    }
    return err;
}

/* What is behind the last batch. */
static void
tell_end(struct run *run)
{
    if (run->is_hole) {
        bool is_known =
            run->synced >= run->due && run->synced - run->due < REPLAY_SEQ_GAP;
        tell(run,
            &(struct glean_piece){.kind = GLEAN_HOLE,
                .number = run->from_number,
                .at = run->from,
                .to = run->hole_to,
                .n_batches = is_known ? run->synced + 1 - run->due : 0,
                .seq = run->due,
                .may_be_more = true});
    }
    if (run->is_followed) {
        tell(run,
            &(struct glean_piece){.kind = GLEAN_MISSING,
                .number = run->last + 1,
                .may_be_more = true});
    }
}

int
glean_run(const struct glean *glean, int *error)
{
    struct run run = {
        .glean = glean, .calls = glean->disk->calls, .error = error};
    *error = 0;
    int err = survey(&run);
    if (err == 0) {
        err = window_init(&run.window, glean->disk);
    }
    if (err == 0 && run.last == 0) {
        run.is_followed = true; /* not even the first one is there */
        run.last = glean->number - 1;
    }
    if (err == 0) {
        err = glean_files(&run);
    }
    if (err == 0) {
        tell_end(&run);
    }
    window_fini(&run.window);
    free(run.files.number);
    return err;
}

bool
glean_is_loss(const struct glean_piece *piece)
{
    return piece->n_batches > 0 || piece->may_be_more;
}

static void
say_loss(const struct glean_piece *piece, struct buf *out)
{
    if (piece->n_batches > 0) {
        buf_addf(out,
            ": %" PRIu64 " batches are lost, from number %" PRIu64 " on",
            piece->n_batches, piece->seq);
    }
    if (piece->may_be_more) {
        buf_addf(out, "%s nobody knows what was there",
            piece->n_batches > 0 ? ", and behind them" : ":");
    } else if (piece->n_batches == 0) {
        buf_add_text(out, ": no batch is lost");
    }
}

void
glean_say(const struct glean_piece *piece, struct buf *out)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_LOG, piece->number);
    buf_add_text(out, name);
    switch (piece->kind) {
    case GLEAN_TURNED:
        buf_addf(
            out, ", offset %" PRIu64 ": one bit was turned over", piece->at);
        break;
    case GLEAN_HEADER:
        buf_add_text(out, ", offset 0: the header is not what was written");
        break;
    case GLEAN_NOTE:
        buf_addf(out,
            ", offset %" PRIu64
            ": the note of the next file is not what was written",
            piece->at);
        break;
    case GLEAN_MISSING:
        if (piece->to_number > piece->number) {
            names_make(name, NAMES_LOG, piece->to_number);
            buf_addf(out, " to %s are", name);
        } else {
            buf_add_text(out, " is");
        }
        buf_add_text(out, " missing, or no regular file");
        break;
    case GLEAN_FOREIGN:
        buf_add_text(
            out, " is of another data directory or history, or was renamed");
        break;
    case GLEAN_CUT:
        buf_addf(out,
            " is cut off at offset %" PRIu64 ": it was made with %" PRIu64
            " bytes",
            piece->at, piece->to);
        break;
    case GLEAN_HOLE:
        buf_addf(out, ", offset %" PRIu64 " to %" PRIu64 ": no sound batch",
            piece->at, piece->to);
        break;
    }
    say_loss(piece, out);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts a log behind batch c.
 *
 *   log-5             log-6                 log-7       log-8
 *   | batches |B      | batches | c | ... | | batches | | batches |
 *                               ^ end: void from here  \________/ go, 8 first
 *
 * First what is behind c is copied to cut files, each whole and synced before
 * it gets its name; then the files behind that of c go, the last one first and
 * each durably, so that no crash leaves a gap. The file of c is not touched:
 * the next one says where it ends, as after a sync that failed. Nothing that
 * stays is written anew.
 *
 * A crash on the way leaves the log as it was or with fewer files at its end.
 * The last one has a mark that it was followed, so that a start that does not
 * know of the cut refuses it; who does knows where to stop reading. Batches may
 * be in cut files twice then.
 *
 * What can go wrong: the log does not have c, the disk, memory. What is behind
 * c may be damaged: as much as can be read is kept. */
#include "wal/log_cut.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "wal/frame.h"
#include "wal/names.h"
#include "wal/window.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 20 /* written at a time */ };

/* The cut files, and the one that is being written. */
struct keeping {
    const struct log_cut *cut;
    uint64_t last;      /* number of the last cut file that there is */
    uint64_t written;   /* bytes of those of this cut, headers with them */
    uint64_t batches;   /* that are cut */
    uint64_t n_kept;    /* of these, in cut files */
    uint64_t number;    /* of the file that is written; 0: none */
    uint64_t first_seq; /* in it */
    uint64_t next_seq;  /* likewise */
    uint64_t at;        /* bytes of it that are written */
    struct buf bytes;   /* owned: not written yet */
    int fd;
    bool is_full; /* keep_bytes are reached */
};

/* What an errno value of the disk is. */
static int
err_of(int error)
{
    return error == 0 ? 0 : error == ENOMEM ? ERR_NO_MEMORY : disk_err(error);
}

/* ---- where the cut is ---- */

struct finding {
    uint64_t seq; /* of the last batch that was given out */
};

static int
note_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct finding *finding = context;
    (void)payload;
    (void)len;
    finding->seq = seq;
    return 0;
}

/* The end of batch cut->seq; it may be the one before all that are there. */
static int
find_end(const struct log_cut *cut, struct replay_end *end)
{
    struct finding finding = {0};
    const struct replay replay = {.disk = cut->disk,
        .logger = cut->logger,
        .epoch = cut->epoch,
        .histories = cut->histories,
        .number = cut->number,
        .last_seq = cut->seq,
        .batch_fn = note_batch,
        .context = &finding};
    int err = replay_run(&replay, end);
    if (err != 0) {
        return err;
    }
    bool is_there = finding.seq == cut->seq ||
        (end->number == cut->number && end->batches == 0 &&
            end->next_seq == cut->seq + 1);
    return is_there && end->number != 0 ? 0 : ERR_LOG_GONE;
}

/* ---- what is kept ---- */

static int
write_bytes(struct keeping *keeping)
{
    struct disk *disk = keeping->cut->disk;
    int error = keeping->bytes.len == 0
        ? 0
        : disk->calls->write(disk, keeping->fd, keeping->bytes.data,
              keeping->bytes.len, keeping->at);
    keeping->at += keeping->bytes.len;
    buf_clear(&keeping->bytes);
    return err_of(error);
}

static int
begin_file(struct keeping *keeping, uint64_t seq)
{
    struct disk *disk = keeping->cut->disk;
    char name[NAMES_BYTES];
    names_make(name, NAMES_CUT_NEW, keeping->last + 1);
    int error = disk->calls->unlink(disk, name);
    if (error == 0 || error == ENOENT) {
        error = disk->calls->open(disk, name, DISK_CREATE, &keeping->fd);
    }
    if (error == 0) {
        keeping->number = keeping->last + 1;
        keeping->first_seq = seq;
        keeping->next_seq = seq;
        keeping->at = FRAME_FILE_BYTES;
        keeping->written += FRAME_FILE_BYTES;
    }
    return err_of(error);
}

/* Header, sync, name. */
static int
finish_file(struct keeping *keeping)
{
    struct disk *disk = keeping->cut->disk;
    uint8_t head[FRAME_FILE_BYTES];
    char name[NAMES_BYTES], new_name[NAMES_BYTES];
    int err = write_bytes(keeping);
    if (err != 0) {
        return err;
    }
    const struct frame_file file = {.epoch = keeping->cut->epoch,
        .number = keeping->number,
        .first_seq = keeping->first_seq,
        .bytes = keeping->at};
    frame_file_put(&file, head);
    int error = disk->calls->write(disk, keeping->fd, head, sizeof head, 0);
    if (error == 0) {
        error = disk->calls->sync(disk, keeping->fd);
    }
    names_make(new_name, NAMES_CUT_NEW, keeping->number);
    names_make(name, NAMES_CUT, keeping->number);
    if (error == 0) {
        error = disk->calls->rename(disk, new_name, name);
    }
    return err_of(error);
}

/* Ends the file that is written, if there is one; err: of what went before. */
static int
end_file(struct keeping *keeping, int err)
{
    struct disk *disk = keeping->cut->disk;
    char name[NAMES_BYTES];
    if (keeping->number == 0) {
        return err;
    }
    if (err == 0) {
        err = finish_file(keeping);
    }
    disk->calls->close(disk, keeping->fd);
    if (err == 0) {
        keeping->last = keeping->number;
        err = err_of(disk->calls->sync_names(disk));
    } else {
        names_make(name, NAMES_CUT_NEW, keeping->number);
        (void)disk->calls->unlink(disk, name);
    }
    keeping->number = 0;
    return err;
}

static int
put_batch(
    struct keeping *keeping, uint64_t seq, const uint8_t *payload, size_t len)
{
    const struct frame_file file = {
        .epoch = keeping->cut->epoch, .number = keeping->number};
    const struct frame_batch batch = {
        .seq = seq, .payload_bytes = (uint32_t)len};
    char *head = buf_reserve(&keeping->bytes, FRAME_BATCH_BYTES + len);
    if (head == NULL) {
        return ERR_NO_MEMORY;
    }
    memcpy(head + FRAME_BATCH_BYTES, payload, len);
    frame_batch_put(&file, &batch, (uint8_t *)head);
    keeping->bytes.len += FRAME_BATCH_BYTES + len;
    keeping->written += FRAME_BATCH_BYTES + len;
    keeping->next_seq = seq + 1;
    keeping->n_kept++;
    return keeping->bytes.len < PIECE_BYTES ? 0 : write_bytes(keeping);
}

/* A batch that is cut. */
static int
keep_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct keeping *keeping = context;
    uint64_t more = FRAME_FILE_BYTES + FRAME_BATCH_BYTES + (uint64_t)len;
    int err = 0;
    ASSERT(len > 0 && len <= FRAME_PAYLOAD_MAX);
    keeping->batches++;
    keeping->is_full |= keeping->written + more > keeping->cut->keep_bytes;
    if (keeping->is_full) {
        return 0;
    }
    if (keeping->number != 0 && seq != keeping->next_seq) {
        err = end_file(keeping, 0); /* a term began, or the server */
    }
    if (err == 0 && keeping->number == 0) {
        err = begin_file(keeping, seq);
    }
    return err != 0 ? err : put_batch(keeping, seq, payload, len);
}

/* Copies what is behind the cut, from the file on where it is. */
static int
keep(struct keeping *keeping, const struct replay_end *end)
{
    const struct log_cut *cut = keeping->cut;
    struct replay_end ignored;
    const struct replay replay = {.disk = cut->disk,
        .epoch = cut->epoch,
        .histories = cut->histories,
        .number = end->number,
        .from_seq = cut->seq + 1,
        .batch_fn = keep_batch,
        .context = keeping};
    int err = replay_run(&replay, &ignored);
    if (err == ERR_CORRUPT || err == ERR_NEWER_FORMAT) {
        err = 0; /* as far as it goes */
    }
    err = end_file(keeping, err);
    buf_fini(&keeping->bytes);
    return err;
}

/* ---- names ---- */

struct listing {
    struct disk *disk;
    uint64_t last_log, last_cut, first_cut; /* 0: none */
    uint64_t cut_bytes;                     /* of all cut files */
};

static uint64_t
size_of(struct disk *disk, const char *name)
{
    struct disk_file file;
    return disk->calls->look(disk, name, -1, &file) == 0 ? file.bytes : 0;
}

static void
note_name(void *context, const char *name)
{
    struct listing *listing = context;
    enum names_kind kind;
    uint64_t number;
    if (!names_parse(name, &kind, &number) || number > NAMES_NUMBER_MAX) {
        return;
    }
    if (kind == NAMES_LOG && number > listing->last_log) {
        listing->last_log = number;
    }
    if (kind != NAMES_CUT) {
        return;
    }
    listing->cut_bytes += size_of(listing->disk, name);
    if (number > listing->last_cut) {
        listing->last_cut = number;
    }
    if (listing->first_cut == 0 || number < listing->first_cut) {
        listing->first_cut = number;
    }
}

static int
list(struct disk *disk, struct listing *listing)
{
    *listing = (struct listing){.disk = disk};
    return err_of(disk->calls->list(disk, note_name, listing));
}

/* Removes the oldest cut files, until all are within the bytes. */
static int
tidy(const struct log_cut *cut)
{
    struct disk *disk = cut->disk;
    struct listing listing;
    char name[NAMES_BYTES];
    int err = list(disk, &listing);
    while (err == 0 && listing.cut_bytes > cut->keep_bytes &&
        listing.first_cut != 0) {
        names_make(name, NAMES_CUT, listing.first_cut);
        err = err_of(disk->calls->unlink(disk, name));
        if (err == 0) {
            err = list(disk, &listing);
        }
    }
    return err;
}

/* Removes the log files behind number, the last one first. */
static int
remove_files(struct disk *disk, uint64_t number, uint64_t last)
{
    char name[NAMES_BYTES];
    int error = 0;
    for (; error == 0 && last > number; last--) {
        names_make(name, NAMES_LOG, last);
        error = disk->calls->unlink(disk, name);
        if (error == 0 || error == ENOENT) {
            error = disk->calls->sync_names(disk);
        }
    }
    return err_of(error);
}

int
log_cut_run(const struct log_cut *cut, struct replay_end *end)
{
    struct keeping keeping = {.cut = cut};
    struct listing listing;
    ASSERT(cut->seq > 0 && cut->number > 0 && cut->epoch != 0);
    if (cut->manifest_seq > cut->seq) {
        return ERR_LOG_GONE;
    }
    int err = find_end(cut, end);
    if (err == 0) {
        err = list(cut->disk, &listing);
    }
    if (err != 0) {
        return err;
    }
    ASSERT(listing.last_log >= end->number);
    keeping.last = listing.last_cut;
    err = keep(&keeping, end);
    if (err == 0) {
        err = tidy(cut);
    }
    if (err == 0) {
        err = remove_files(cut->disk, end->number, listing.last_log);
    }
    if (err == 0 && cut->logger != NULL) {
        log_line(cut->logger, LOG_WARNING,
            "the log is cut behind batch %" PRIu64 ": %" PRIu64
            " batches do not count any more, %" PRIu64
            " of them are kept in cut files",
            cut->seq, keeping.batches, keeping.n_kept);
    }
    return err;
}

/* ---- reading a cut file ---- */

static int
read_batches(struct window *window, const struct frame_file *file,
    int (*batch_fn)(
        void *context, uint64_t seq, const uint8_t *payload, size_t len),
    void *context)
{
    for (;;) {
        struct frame_batch batch;
        int error = window_need(window, WINDOW_NEED_MAX);
        if (error != 0) {
            return err_of(error);
        }
        if (window->n == 0) {
            return 0;
        }
        if (frame_batch_get(file, window->bytes, window->n, &batch) !=
            FRAME_OK) {
            return ERR_CORRUPT;
        }
        int err = batch_fn(context, batch.seq,
            window->bytes + FRAME_BATCH_BYTES, batch.payload_bytes);
        if (err != 0) {
            return err;
        }
        window_skip(window, FRAME_BATCH_BYTES + batch.payload_bytes);
    }
}

int
log_cut_read(struct disk *disk, uint64_t number,
    int (*batch_fn)(
        void *context, uint64_t seq, const uint8_t *payload, size_t len),
    void *context)
{
    struct window window;
    struct frame_file file;
    char name[NAMES_BYTES];
    int fd;
    names_make(name, NAMES_CUT, number);
    int error = disk->calls->open(disk, name, DISK_READ, &fd);
    if (error != 0) {
        return err_of(error);
    }
    int err = window_init(&window, disk);
    if (err == 0) {
        window_open(&window, fd, 0, UINT64_MAX);
        err = err_of(window_need(&window, FRAME_FILE_BYTES));
    }
    if (err == 0) {
        enum frame_fault fault = frame_file_get(window.bytes, window.n, &file);
        err = fault == FRAME_NEWER                       ? ERR_NEWER_FORMAT
            : fault != FRAME_OK || file.number != number ? ERR_CORRUPT
                                                         : 0;
    }
    if (err == 0) {
        window_skip(&window, FRAME_FILE_BYTES);
        err = read_batches(&window, &file, batch_fn, context);
    }
    window_fini(&window);
    disk->calls->close(disk, fd);
    return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes new log files of batches that are given in order of their numbers.
 *
 * They are written as log-N.wal.new, header last, and synced; then they take
 * their names, the first one first, each durably: its header follows nobody, by
 * which glean.c knows what a salvage that was interrupted has left. */
#include "offline/rewrite.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/names.h"
#include "wal/replay.h"

#include <errno.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 20 /* written at a time */ };

static int
failed(struct rewrite *rewrite, int error)
{
    rewrite->error = error;
    return error == 0 ? 0 : error == ENOMEM ? ERR_NO_MEMORY : disk_err(error);
}

static int
flush(struct rewrite *rewrite)
{
    struct disk *disk = rewrite->disk;
    ASSERT(rewrite->written >= FRAME_FILE_BYTES); /* the header comes last */
    int error = rewrite->bytes.len == 0
        ? 0
        : disk->calls->write(disk, rewrite->fd, rewrite->bytes.data,
              rewrite->bytes.len, rewrite->written);
    rewrite->written += rewrite->bytes.len;
    buf_clear(&rewrite->bytes);
    return failed(rewrite, error);
}

/* Begins a file whose first batch has number seq. */
static int
begin_file(struct rewrite *rewrite, uint64_t seq)
{
    struct disk *disk = rewrite->disk;
    char name[NAMES_BYTES];
    ASSERT(rewrite->next_seq == 0 && rewrite->bytes.len == 0);
    rewrite->at_number =
        rewrite->at_number == 0 ? rewrite->number : rewrite->at_number + 1;
    names_make(name, NAMES_LOG_NEW, rewrite->at_number);
    int error = disk->calls->unlink(disk, name);
    if (error == 0 || error == ENOENT) {
        error = disk->calls->open(disk, name, DISK_CREATE, &rewrite->fd);
    }
    if (error == 0) {
        rewrite->first_seq = seq;
        rewrite->next_seq = seq;
        rewrite->written = FRAME_FILE_BYTES;
    }
    return failed(rewrite, error);
}

/* Writes what is left of the file under way, its header, and syncs it. */
static int
end_file(struct rewrite *rewrite)
{
    struct disk *disk = rewrite->disk;
    uint8_t head[FRAME_FILE_BYTES];
    int err = flush(rewrite);
    const struct frame_file file = {.epoch = rewrite->epoch,
        .number = rewrite->at_number,
        .first_seq = rewrite->first_seq,
        .bytes = rewrite->written,
        .before_end = rewrite->before_end};
    if (err == 0) {
        ASSERT(rewrite->bytes.len == 0);
        ASSERT(rewrite->next_seq >= rewrite->first_seq);
        frame_file_put(&file, head);
        int error =
            disk->calls->write(disk, rewrite->fd, head, sizeof head, 0);
        if (error == 0) {
            error = disk->calls->sync(disk, rewrite->fd);
        }
        err = failed(rewrite, error);
    }
    disk->calls->close(disk, rewrite->fd);
    rewrite->before_end = rewrite->written;
    rewrite->next_seq = 0;
    return err;
}

static int
put(struct rewrite *rewrite, uint64_t synced_seq, const uint8_t *payload,
    uint32_t len)
{
    const struct frame_file file = {
        .epoch = rewrite->epoch, .number = rewrite->at_number};
    const struct frame_batch batch = {.seq = rewrite->next_seq,
        .synced_seq = synced_seq,
        .payload_bytes = len};
    ASSERT(rewrite->next_seq >= rewrite->first_seq && rewrite->first_seq > 0);
    ASSERT(len > 0 && len <= FRAME_PAYLOAD_MAX);
    char *head = buf_reserve(&rewrite->bytes, FRAME_BATCH_BYTES + len);
    if (head == NULL) {
        return failed(rewrite, ENOMEM);
    }
    memcpy(head + FRAME_BATCH_BYTES, payload, len);
    frame_batch_put(&file, &batch, (uint8_t *)head);
    rewrite->bytes.len += FRAME_BATCH_BYTES + len;
    rewrite->next_seq++;
    return rewrite->bytes.len < PIECE_BYTES ? 0 : flush(rewrite);
}

/* A file is under way, and seq is its next number. */
static int
go_to(struct rewrite *rewrite, uint64_t seq)
{
    uint8_t mark[ENTRY_MARK_BYTES];
    uint64_t next = rewrite->next_seq;
    bool is_jump = next != 0 && seq - next >= REPLAY_SEQ_GAP;
    bool is_full = rewrite->written >= rewrite->file_bytes;
    int err = 0;
    if (next != 0 && (is_jump || is_full)) {
        err = end_file(rewrite);
    }
    if (err == 0 && (next == 0 || is_jump || is_full)) {
        err = begin_file(rewrite, is_full && !is_jump ? next : seq);
    }
    entry_put_mark(mark, ENTRY_MARK_IDLE);
    while (err == 0 && rewrite->next_seq < seq) {
        err = put(rewrite, rewrite->next_seq - 1, mark, sizeof mark);
    }
    ASSERT(err != 0 || rewrite->next_seq == seq);
    return err;
}

int
rewrite_add(struct rewrite *rewrite, uint64_t seq, uint64_t synced_seq,
    const uint8_t *payload, uint32_t len)
{
    ASSERT(seq >= rewrite->next_seq && seq > 0);
    int err = go_to(rewrite, seq);
    return err != 0 ? err : put(rewrite, synced_seq, payload, len);
}

/* Gives all files their names. */
static int
name_files(struct rewrite *rewrite)
{
    struct disk *disk = rewrite->disk;
    int error = 0;
    ASSERT(rewrite->next_seq == 0); /* all are closed */
    ASSERT(rewrite->at_number >= rewrite->number && rewrite->number > 0);
    for (uint64_t number = rewrite->number;
         error == 0 && number <= rewrite->at_number; number++) {
        char from[NAMES_BYTES], to[NAMES_BYTES];
        names_make(from, NAMES_LOG_NEW, number);
        names_make(to, NAMES_LOG, number);
        error = disk->calls->rename(disk, from, to);
        if (error == 0) {
            error = disk->calls->sync_names(disk);
        }
    }
    return failed(rewrite, error);
}

int
rewrite_end(struct rewrite *rewrite, uint64_t seq)
{
    uint64_t next = rewrite->next_seq;
    int err = 0;
    if (next == 0 || next <= seq) {
        err = go_to(rewrite, next == 0 ? seq + 1 : seq + 1 + REPLAY_SEQ_GAP);
    }
    if (err == 0) {
        err = end_file(rewrite);
    }
    if (err == 0) {
        err = name_files(rewrite);
    }
    if (err != 0) {
        rewrite_abort(rewrite);
    }
    buf_fini(&rewrite->bytes);
    return err;
}

void
rewrite_abort(struct rewrite *rewrite)
{
    struct disk *disk = rewrite->disk;
    if (rewrite->next_seq != 0) {
        disk->calls->close(disk, rewrite->fd);
        rewrite->next_seq = 0;
    }
    for (uint64_t number = rewrite->number; number <= rewrite->at_number;
         number++) {
        char name[NAMES_BYTES];
        names_make(name, NAMES_LOG_NEW, number);
        (void)disk->calls->unlink(disk, name);
    }
    buf_fini(&rewrite->bytes);
}

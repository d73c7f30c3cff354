/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the readers of the log. The first byte says what the rest is:
 *
 *   bit 1  a payload, which goes to entry_next as it is
 *   else   a log file, or several, each beginning with "TALLYLOG"; they are
 *          replayed as files with the number in the first header, and those
 *          that follow by one
 *   bit 0  before that, lengths in headers, and the checksums of all headers
 *          and batches that can be found, are made right, so that what is
 *          behind them is reached
 *
 * Every entry that is read is written and read again. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "lib/log_make.h"
#include "lib/still_disk.h"
#include "offline/glean.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/names.h"
#include "wal/replay.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEALED = 1,
    PAYLOAD = 2,
    FILES_MAX = 4,
    SMALL_BYTES_MAX = ENTRY_ABOUT_BYTES_MAX + ENTRY_MOVED_BYTES_MAX +
        ENTRY_PRODUCER_JOINED_BYTES_MAX, /* any */
    GLEAN_BUDGET = 1 << 22               /* some ms of vain search */
};

struct seen {
    uint64_t n;
    uint64_t seq; /* of the last */
};

static void
check_cells(const struct entry_cells *cells)
{
    uint8_t bytes[ENTRY_CELLS_BYTES_MAX];
    uint64_t before = cells->id * 3; /* any */
    size_t len = log_make_cells(bytes, cells, &before);
    struct entry_reader reader = {
        .at = bytes, .end = bytes + len, .id = before};
    struct entry again;

    ASSERT(len <= sizeof bytes && entry_next(&reader, &again));
    ASSERT(reader.at == reader.end && again.kind == ENTRY_CELLS);
    ASSERT(again.cells.id == cells->id && again.cells.n == cells->n);
    ASSERT(memcmp(again.cells.serial, cells->serial,
               cells->n * sizeof *cells->serial) == 0);
    ASSERT(memcmp(again.cells.value, cells->value,
               cells->n * sizeof *cells->value) == 0);
}

static void
check_other(const struct entry *entry)
{
    uint8_t bytes[ENTRY_COUNTER_BYTES_MAX], twice[ENTRY_COUNTER_BYTES_MAX];
    struct entry again;
    bool is_counter = entry->kind == ENTRY_COUNTER;
    size_t len = is_counter
        ? entry_put_counter(bytes, &entry->counter, entry->last_serial)
        : entry_put_dropped(bytes, entry->counter_serial, entry->last_serial);
    struct entry_reader reader = {.at = bytes, .end = bytes + len};

    ASSERT(entry_next(&reader, &again) && reader.at == reader.end);
    ASSERT(again.kind == entry->kind);
    if (is_counter) {
        ASSERT(entry_put_counter(twice, &again.counter, again.last_serial) ==
            len);
    } else {
        ASSERT(entry_put_dropped(
                   twice, again.counter_serial, again.last_serial) == len);
    }
    ASSERT(memcmp(bytes, twice, len) == 0);
}

static size_t
put_small(uint8_t *out, const struct entry *entry)
{
    switch (entry->kind) {
    case ENTRY_NUMBER:
        return entry_put_number(
            out, entry->producer, entry->shard, entry->number);
    case ENTRY_PRODUCER:
        return entry_put_producer(out, entry->producer, &entry->name);
    case ENTRY_PRODUCER_JOINED:
        return entry_put_producer_joined(out, entry->producer, &entry->seen);
    case ENTRY_TERM:
        return entry__put_term(out, &entry->term);
    case ENTRY_ABOUT:
        return entry_put_about(out, &entry->about);
    case ENTRY_ABOUT_ROLLED:
        return entry_put_rolled(out, &entry->rolled);
    case ENTRY_NAME:
        return entry_put_name(out, entry->named.shard, entry->named.number,
            entry->named.bytes, entry->named.len);
    case ENTRY_MOVED:
        return entry_put_moved(out, &entry->moved);
    default:
        ASSERT(entry->kind == ENTRY_PRODUCER_DROPPED);
        return entry_put_producer_dropped(out, entry->producer);
    }
}

static void
check_small(const struct entry *entry)
{
    uint8_t bytes[SMALL_BYTES_MAX], twice[SMALL_BYTES_MAX];
    struct entry again;
    size_t len = put_small(bytes, entry);
    struct entry_reader reader = {.at = bytes, .end = bytes + len};

    ASSERT(entry_next(&reader, &again) && reader.at == reader.end);
    ASSERT(again.kind == entry->kind && put_small(twice, &again) == len);
    ASSERT(memcmp(bytes, twice, len) == 0);
}

static void
read_payload(const uint8_t *bytes, size_t len)
{
    struct entry_reader reader = {.at = bytes, .end = bytes + len};
    struct entry entry;

    while (entry_next(&reader, &entry) && entry.kind != ENTRY_END) {
        ASSERT(reader.at > bytes && reader.at <= reader.end);
        if (entry.kind == ENTRY_CELLS) {
            check_cells(&entry.cells);
        } else if (entry.kind == ENTRY_COUNTER ||
            entry.kind == ENTRY_DROPPED) {
            check_other(&entry);
        } else {
            check_small(&entry);
        }
    }
}

static int
see_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct seen *seen = context;

    ASSERT(seen->n == 0 || seq == seen->seq + 1);
    ASSERT(len > 0 && len <= FRAME_PAYLOAD_MAX);
    seen->n++;
    seen->seq = seq;
    read_payload(payload, len);
    return 0;
}

/* Where the next file begins, or len. */
static size_t
next_file(const uint8_t *bytes, size_t at, size_t len)
{
    const uint8_t *found = memmem(bytes + at, len - at, "TALLYLOG", 8);

    return found == NULL ? len : (size_t)(found - bytes);
}

/* Makes the checksums of one file right. */
static void
seal(uint8_t *bytes, size_t len)
{
    struct frame_file file;
    struct frame_batch batch;

    if (len < FRAME_FILE_BYTES) {
        return;
    }
    if (bytes_get_u64(bytes + 40) > len) { /* not all are to be cut off */
        bytes_put_u64(bytes + 40, len);
    }
    bytes_put_u64(bytes + 56, checksum64(bytes, 56, 0));
    if (frame_file_get(bytes, len, &file) != FRAME_OK) {
        return;
    }
    for (size_t at = FRAME_FILE_BYTES; len - at >= FRAME_BATCH_BYTES;) {
        if (!frame_batch_peek(bytes + at, &batch) ||
            batch.payload_bytes > len - at - FRAME_BATCH_BYTES) {
            at += 1 + frame_batch_seek(bytes + at + 1, len - at - 1);
            continue;
        }
        frame_batch_put(&file, &batch, bytes + at);
        at += FRAME_BATCH_BYTES + batch.payload_bytes;
    }
}

static void
replay(struct still_disk *still, const uint8_t *head, uint64_t number)
{
    uint64_t epoch = bytes_get_u64(head + 16);
    struct seen seen = {0};
    struct replay_end end;
    int err = replay_run(&(struct replay){.disk = &still->disk,
                             .epoch = epoch == 0 ? 1 : epoch,
                             .number = number,
                             .batch_fn = see_batch,
                             .context = &seen},
        &end);

    ASSERT(still->n_open == 0);
    ASSERT(err == 0 || err == ERR_CORRUPT || err == ERR_NEWER_FORMAT);
    if (err == 0) {
        ASSERT(end.batches == seen.n);
        /* higher where a file without batches leaves numbers out */
        ASSERT(seen.n == 0 || end.next_seq > seen.seq);
        ASSERT(end.number >= number && end.end >= FRAME_FILE_BYTES);
    }
}

static int
see_gleaned(void *context, const struct glean_batch *batch)
{
    struct seen *seen = context;

    ASSERT(seen->n == 0 || batch->seq > seen->seq);
    seen->n++;
    seen->seq = batch->seq;
    read_payload(batch->payload, batch->len);
    return 0;
}

static void
see_piece(void *context, const struct glean_piece *piece)
{
    struct buf line = {0};

    (void)context;
    glean_say(piece, &line);
    buf_fini(&line);
}

/* What a salvage reads of the same files. */
static void
glean(struct still_disk *still, const uint8_t *head, uint64_t number)
{
    uint64_t epoch = bytes_get_u64(head + 16);
    struct seen seen = {0};
    struct flip_budget budget = {GLEAN_BUDGET};
    int error;
    int err = glean_run(&(struct glean){.disk = &still->disk,
                            .epoch = epoch == 0 ? 1 : epoch,
                            .number = number,
                            .budget = &budget,
                            .batch_fn = see_gleaned,
                            .piece_fn = see_piece,
                            .context = &seen},
        &error);

    ASSERT(still->n_open == 0);
    ASSERT(err == 0 || err == ERR_NEWER_FORMAT);
}

static void
read_files(uint8_t *bytes, size_t len, bool is_sealed)
{
    struct still_disk still;
    char name[FILES_MAX][NAMES_BYTES];
    uint64_t number;

    if (len < FRAME_FILE_BYTES) {
        return;
    }
    number = bytes_get_u64(bytes + 24);
    number = number == 0 || number > UINT64_MAX - FILES_MAX ? 1 : number;
    still_disk_init(&still);
    for (size_t i = 0, at = 0; i < FILES_MAX && at < len; i++) {
        size_t end = next_file(bytes, at + 1, len);

        if (is_sealed) {
            seal(bytes + at, end - at);
        }
        names_make(name[i], NAMES_LOG, number + i);
        still_disk_add(&still, name[i], bytes + at, end - at);
        at = end;
    }
    replay(&still, bytes, number);
    glean(&still, bytes, number);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t *copy;

    if (len < 2) {
        return 0;
    }
    copy = malloc(len - 1);
    ASSERT(copy != NULL);
    memcpy(copy, bytes + 1, len - 1);
    if ((bytes[0] & PAYLOAD) != 0) {
        read_payload(copy, len - 1);
    } else {
        read_files(copy, len - 1, (bytes[0] & SEALED) != 0);
    }
    free(copy);
    return 0;
}

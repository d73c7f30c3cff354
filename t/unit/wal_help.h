/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_WAL_HELP_H
#define UNIT_WAL_HELP_H

/* What the tests of the log's writing end share. What is appended are the
 * numbers 0, 1, 2 ..., eight bytes each, so that what is found says by itself
 * whether it is a prefix. */

#include "base/bytes.h"
#include "base/err.h"
#include "lib/fake_disk.h"
#include "unit/check_help.h"
#include "wal/frame.h"
#include "wal/names.h"
#include "wal/wal.h"

enum { EPOCH = 77, FILES_MAX = 512 };

/* What a walk over the files finds; by hand, not with the module that the
 * server has for it. */
struct found {
    uint64_t n; /* numbers, from 0 on */
    uint64_t next_seq;
    uint64_t batches;
    uint64_t first, number; /* first and last file; 0: none */
    uint64_t end;           /* in the last file */
    uint64_t synced_seq;    /* as the last batch knew it */
    uint64_t shortest;      /* file that was made, in bytes */
};

struct found_names {
    uint64_t number[FILES_MAX];
    size_t n;
};

static inline void
find_name(void *context, const char *name)
{
    struct found_names *names = context;
    enum names_kind kind;
    uint64_t number;
    if (names_parse(name, &kind, &number) && kind == NAMES_LOG) {
        ck_assert_uint_lt(names->n, FILES_MAX);
        size_t i = names->n++;
        for (; i > 0 && names->number[i - 1] > number; i--) {
            names->number[i] = names->number[i - 1];
        }
        names->number[i] = number;
    }
}

static inline uint8_t *
read_log(struct disk *disk, uint64_t number, size_t *len)
{
    char name[NAMES_BYTES];
    uint64_t size;
    int fd;
    names_make(name, NAMES_LOG, number);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_READ, &fd), 0);
    ck_assert_int_eq(disk->calls->size(disk, fd, &size), 0);
    uint8_t *bytes = malloc(size + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(disk->calls->read(disk, fd, bytes, size, 0, len), 0);
    ck_assert_uint_eq(*len, size);
    disk->calls->close(disk, fd);
    return bytes;
}

static inline void
take_numbers(struct found *found, const uint8_t *payload, size_t len)
{
    uint64_t wrong = len % 8;
    for (size_t i = 0; i < len; i += 8) {
        wrong += bytes_get_u64(payload + i) != found->n++;
    }
    /* once, because it costs a system call */
    ck_assert_uint_eq(wrong, 0);
}

/* No batch behind a torn end knew that what is torn had been synced. */
static inline void
expect_clean_end(const struct found *found, const struct frame_file *file,
    const uint8_t *bytes, size_t len)
{
    struct frame_batch batch;
    for (size_t at = found->end; at + FRAME_BATCH_BYTES <= len; at++) {
        const uint8_t *next = memchr(bytes + at, 'T', len - at);
        if (next == NULL) {
            break;
        }
        at = (size_t)(next - bytes);
        if (frame_batch_get(file, next, len - at, &batch) == FRAME_OK) {
            ck_assert_uint_lt(batch.synced_seq, found->next_seq);
        }
    }
}

/* Takes the batches of one file before limit, which is where the next one says
 * that it ends; of the last file all that are sound. */
static inline void
walk_file(struct found *found, const struct frame_file *file,
    const uint8_t *bytes, size_t len, uint64_t limit)
{
    struct frame_batch batch;
    found->end = FRAME_FILE_BYTES;
    while (found->end < limit && found->end < len &&
        frame_batch_get(file, bytes + found->end, len - found->end, &batch) ==
            FRAME_OK) {
        ck_assert_uint_eq(batch.seq, found->next_seq);
        ck_assert_uint_lt(batch.synced_seq, batch.seq);
        take_numbers(found, bytes + found->end + FRAME_BATCH_BYTES,
            batch.payload_bytes);
        found->next_seq++;
        found->batches++;
        found->synced_seq = batch.synced_seq;
        found->end += FRAME_BATCH_BYTES + batch.payload_bytes;
    }
    if (limit != UINT64_MAX) {
        ck_assert_uint_eq(found->end, limit);
    } else {
        expect_clean_end(found, file, bytes, len);
    }
}

/* Walks the log from its oldest file; fails the test where something in it is
 * not as it must be after a crash. The numbers before n_gone were in files
 * that have been removed, as were batches before next_seq. */
static inline struct found
walk(struct disk *disk, uint64_t n_gone, uint64_t next_seq)
{
    struct found_names names = {0};
    struct found found = {.n = n_gone, .next_seq = next_seq};
    struct frame_file file, next;
    ck_assert_int_eq(disk->calls->list(disk, find_name, &names), 0);
    for (size_t i = 0; i < names.n; i++) {
        size_t len, next_len = 0;
        uint8_t *bytes = read_log(disk, names.number[i], &len);
        ck_assert_int_eq(frame_file_get(bytes, len, &file), FRAME_OK);
        ck_assert_uint_eq(file.epoch, EPOCH);
        ck_assert_uint_eq(file.number, names.number[i]);
        ck_assert_uint_eq(file.first_seq, found.next_seq);
        ck_assert_uint_eq(file.bytes, len);
        if (found.shortest == 0 || found.shortest > len) {
            found.shortest = len;
        }
        uint64_t limit = UINT64_MAX;
        if (i + 1 < names.n) {
            uint8_t *head = read_log(disk, names.number[i + 1], &next_len);
            ck_assert_int_eq(frame_file_get(head, next_len, &next), FRAME_OK);
            ck_assert_uint_eq(next.number, file.number + 1);
            limit = next.before_end;
            free(head);
        } else {
            found.number = file.number;
        }
        walk_file(&found, &file, bytes, len, limit);
        free(bytes);
    }
    found.first = names.n > 0 ? names.number[0] : 0;
    return found;
}

/* Makes what was found durable, as recovery must before the log goes on. */
static inline struct wal_start
start_behind(struct disk *disk, const struct found *found)
{
    char name[NAMES_BYTES];
    int fd;
    if (found->number != 0) {
        names_make(name, NAMES_LOG, found->number);
        ck_assert_int_eq(disk->calls->open(disk, name, DISK_WRITE, &fd), 0);
        ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
        disk->calls->close(disk, fd);
        ck_assert_int_eq(disk->calls->sync_names(disk), 0);
    }
    return (struct wal_start){.epoch = EPOCH,
        .next_number = found->number + 1,
        .next_seq = found->next_seq,
        .before_end = found->end};
}

#endif

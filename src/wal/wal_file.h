/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_FILE_H
#define WAL_WAL_FILE_H

#include "base/assert.h"
#include "wal/frame.h"
#include "wal/note.h"
#include "wal/wal.h"
#include "wal/wal_stream.h"

#include <stdbool.h>
#include <stdint.h>

/* The log's files, see wal_file.c. Without a lock. */

struct wal_file {
    struct frame_file head;
    int fd;              /* -1: none */
    struct disk_file is; /* when it got its name */
    uint64_t start;      /* stream position of its first batch */
    uint64_t allocated;  /* it has room up to there at least */
    uint64_t step;       /* to allocate at once; 0: not at all */
};

/* What went wrong, and where. */
struct wal_failure {
    const char *what; /* "write", static */
    int err;          /* errno value */
    uint64_t number;  /* of the file */
    bool may_stand;   /* a new file may have got its name all the same */
    bool may_sync;    /* what was written before can still be synced */
};

struct wal_written {
    uint64_t writes, batches;
};

/* Where in the file mark is. */
static inline uint64_t
wal__file_offset(const struct wal_file *file, const struct wal_mark *mark)
{
    ASSERT(mark->stream >= file->start);
    return FRAME_FILE_BYTES + mark->stream - file->start;
}

/* Batches end there at the latest. */
static inline uint64_t
wal__file_limit(const struct wal_file *file)
{
    return file->head.bytes - NOTE_BYTES;
}

/* Whether room is to be allocated in a file that is written up to end. */
bool wal__file_lacks_room(
    const struct wal *wal, const struct wal_file *file, uint64_t end);
/* Takes room beyond end by a step, as well as that goes. */
void wal__file_allocate(struct wal *wal, struct wal_file *file, uint64_t end);
/* Writes the batches from *from to *to, which is within the limit. Counts on in
 * *written. False: see *failure. */
bool wal__file_write(struct wal *wal, struct wal_file *file,
    const struct wal_mark *from, const struct wal_mark *to,
    uint64_t synced_seq, struct wal_written *written,
    struct wal_failure *failure);
/* Whether files may be made, as may_fn says. False: *failure says why. */
bool wal__file_may_begin(
    struct wal *wal, uint64_t number, struct wal_failure *failure);
/* Makes the file of *head, whose bytes it sets, with the batches from *from to
 * *to, all durable. */
bool wal__file_begin(struct wal *wal, const struct frame_file *head,
    const struct wal_mark *from, const struct wal_mark *to,
    struct wal_file *out, struct wal_written *written,
    struct wal_failure *failure);
/* Says in the file before *next, of which old may be open, that this one
 * follows. That it cannot be done is no failure. */
void wal__file_note_next(struct wal *wal, const struct wal_file *old,
    const struct frame_file *next);
/* Gives the room behind end back, as well as that goes; the length stays. */
void wal__file_trim(struct wal *wal, struct wal_file *file, uint64_t end);
void wal__file_close(struct wal *wal, struct wal_file *file);
/* Reads the header of a file. 0 or an errno value; EBADMSG: it is not sound. */
int wal__file_head(
    struct disk *disk, uint64_t number, struct frame_file *head);
/* Whether an open file that has its name still is as long as it was made, so
 * that what was synced in it is there. */
bool wal__file_stands(struct wal *wal, const struct wal_file *file);
/* What counts in a file, as its successor says; 0 where that cannot be told. */
uint64_t wal__file_bytes(struct disk *disk, uint64_t number);
/* Looks which log files are there, from from_number on; *bytes of those that
 * have successors. 0 or an errno value. */
int wal__file_count(struct disk *disk, uint64_t from_number,
    uint64_t *first_number, uint64_t *bytes);

#endif

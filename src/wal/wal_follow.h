/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_FOLLOW_H
#define WAL_WAL_FOLLOW_H

#include "wal/frame.h"
#include "wal/wal_pin.h"

#include <stddef.h>
#include <stdint.h>

/* Reads a log while it is written: batch after batch, from any one on, as soon
 * as it is written, synced or not. What a failed sync made void is read from
 * the file that has it anew; no batch is given out twice, and all of a number
 * are the same. Files are read as they stand, by pieces; nothing is copied but
 * these. What is behind the place of the reader may go (wal_pin.h), what is
 * before it stays up to a limit. */

enum {
    WAL_FOLLOW_BYTES = 256 << 10 /* read at once; more for a larger batch */
};

/* The caller's memory; all fields are wal_follow.c's but the last two. */
struct wal_follow {
    struct wal *wal;
    struct wal_follow *next; /* the log's */
    struct wal_pin pin;
    struct frame_file head; /* of the file that is read */
    int fd;                 /* -1: none */
    uint64_t at;            /* offset of the next batch in it */
    uint8_t *bytes;         /* owned: what has been read, from there on */
    size_t n, used, capacity;
    uint64_t next_seq; /* the batch that comes next has this number or, behind
                        * the end of a term, a higher one */
    /* Told, on any thread, when there may be more, after wal_follow_next has
     * said that there is none; also without cause. It must not block, and must
     * not call the log. */
    void (*more_fn)(struct wal_follow *follow);
};

struct wal_follow_batch {
    uint64_t seq;
    const uint8_t *payload; /* until the next call; NULL: there is no more */
    uint32_t len;
};

/* Begins with batch from_seq, which is there or comes next. bytes_max as in
 * wal_pin. 0, what wal_pin says, ERR_NO_MEMORY or ERR_DISK; *follow is to be
 * closed only after 0. It must stay where it is. Any thread; not for event
 * loops. */
int wal_follow_open(struct wal *wal, struct wal_follow *follow,
    uint64_t from_seq, uint64_t bytes_max,
    void (*more_fn)(struct wal_follow *follow));

/* The next batch, or that there is none yet. 0; ERR_LOG_GONE: it has fallen too
 * far behind; ERR_DISK, ERR_NO_MEMORY: may be tried again; ERR_CORRUPT: a file
 * is not what was written. Reads the disk; one thread at a time. */
int wal_follow_next(struct wal_follow *follow, struct wal_follow_batch *out);

/* When it returns more_fn is not being called, and will not be. Before
 * wal_close. */
void wal_follow_close(struct wal_follow *follow);

#endif

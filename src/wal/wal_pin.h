/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_PIN_H
#define WAL_WAL_PIN_H

#include "wal/wal.h"

#include <stdbool.h>
#include <stdint.h>

/* Readers of a log that is being written. A reader (replay.h, from number and
 * from_seq on) holds a pin at the batch that it reads next: files from the one
 * with that batch on stay, also those that checkpoints have let go of. How much
 * is kept for it alone has a limit that it sets itself; a reader that falls
 * behind farther loses its place, and has to begin anew with what a checkpoint
 * says. Pins last as long as the process: the next start keeps nothing for
 * anybody. In the server a snapshot of the directory holds one; wal_follow.h
 * reads so, which in the server nobody does yet.
 *
 * All these calls may look at the disk: not for event loops. Any thread; one
 * pin is used by one thread at a time. */

/* The reader's memory; it must outlive its stay. */
struct wal_pin {
    struct wal_pin *next; /* the log's, as is the rest but number */
    uint64_t number; /* of the file with the batch: where a replay begins */
    uint64_t bytes_max;
    bool is_broken;
};

/* Holds the files from the one with batch next_seq on. While more than
 * bytes_max bytes are in files that no checkpoint needs any more, the pin may
 * break. 0; ERR_LOG_GONE where that batch is in no file any more, or is none
 * that is there or comes next; ERR_DISK where the file that it should be in
 * cannot be read. Not pinned unless 0. */
int wal_pin(struct wal *wal, struct wal_pin *pin, uint64_t next_seq,
    uint64_t bytes_max);

/* The reader has got on to batch next_seq, and does not go back. What only it
 * kept is removed. 0; ERR_LOG_GONE where the pin has broken; ERR_DISK, and the
 * pin stays where it was. */
int wal_pin__move(struct wal *wal, struct wal_pin *pin, uint64_t next_seq);

/* 0, or ERR_LOG_GONE where the pin has broken: files from its place on may be
 * missing now, which a replay would take for damage. Ask after one that
 * failed. */
int wal_pin_check(struct wal *wal, const struct wal_pin *pin);

/* Lets go, of a broken pin too. What only it kept is removed. */
void wal_unpin(struct wal *wal, struct wal_pin *pin);

#endif

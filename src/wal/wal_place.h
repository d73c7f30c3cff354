/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_WAL_PLACE_H
#define WAL_WAL_PLACE_H

#include "wal/wal.h"

/* Which files the log has made and where it is in them, for whoever looks
 * whether they are what they were. */

/* The last files that were made, each at its number modulo this; number 0:
 * none. */
enum { WAL_MADE = 16 };
struct wal_made {
    uint64_t number;
    struct disk_file is; /* as below */
};

/* Where the log is. */
struct wal_place {
    uint64_t number; /* of the file under way; all before it are complete */
    struct disk_file is; /* when it was made; inode 0: not known */
    bool is_given_up;    /* it is not written to any more, and the next one is
                          * not there yet */
    uint64_t bytes;      /* as long as it was made, and is at least */
    uint64_t end;        /* what is before it was synced and stays as it is */
    uint64_t seq;        /* of the last batch before end */
    bool is_calm;        /* files before it are not written to any more */
    struct wal_made made[WAL_MADE];
};

/* Any thread. */
void wal_place(struct wal *wal, struct wal_place *out);

/* Gives file number up, if it is the one under way: somebody has found that it
 * is no longer what the log has made. The log goes on in the next one. What was
 * synced in it is the caller's to save. Any thread. */
void wal_spoilt(struct wal *wal, uint64_t number);

/* Has the log ask may_fn (wal_config) now: where it refuses, the file under way
 * is given up, and changes are refused until it does not. Any thread. */
void wal_ask(struct wal *wal);

/* Whether the file's header can be read, and is not sound or says more than
 * bytes. Of a file that cannot be opened or read nothing is known: false. */
bool wal_is_broken(struct disk *disk, uint64_t number, uint64_t bytes);

#endif

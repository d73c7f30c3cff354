/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_SNAPSHOT_H
#define DURABLE_SNAPSHOT_H

#include "base/buf.h"
#include "call/call.h"
#include "durable/snapshot_files.h"
#include "wal/wal_pin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A data directory as it is at one moment while a server runs on it: the
 * manifest, and all files that it names, open, with the log up to a batch that
 * is synced. Together they are what a backup taken at that moment would be. The
 * server goes on, seals, tidies and makes checkpoints, and removes files; what
 * is open here stays until snapshot_close, and takes its room on the disk. The
 * log behind is kept for a follower by a pin, up to a limit.
 *
 * Or its files keep their names until snapshot_close, for others to read, and
 * none is open: no log file goes then either, whatever checkpoints are made,
 * unless the disk is full.
 *
 * One of each kind at a time for a store. Memory: the manifest, and some 40
 * bytes a file. */

enum { SNAPSHOT_READ_BYTES = 256 << 10 /* at once, of snapshot_hash */ };

struct checkpointer; /* durable/checkpoint.h */

struct snapshot {
    struct store_call call; /* the caller's: done_fn is called on the
                             * checkpointer's thread, and does not wait */
    uint64_t pin_bytes_max; /* of wal_pin; the caller's, likewise: */
    bool keeps_names;       /* files keep their names, none is open, and
                             * there is no pin */
    /* out: */
    int err; /* 0; else all below is empty: ERR_CLOSED at a stop, ERR_DISK and
              * ERR_DISK_FULL, ERR_NO_MEMORY, ERR_NO_DATA_DIR, ERR_LOADING,
              * ERR_DIR_TAKEN, ERR_CORRUPT (a file is missing),
              * ERR_BACKUP_BUSY (keeps_names: there is another one) */
    struct buf manifest;         /* its bytes; owned */
    struct snapshot_files files; /* owned */
    uint64_t last_seq;           /* the last batch in them */
    struct wal_pin pin;          /* at the batch behind that one */
    bool has_let_go; /* keeps_names: the disk was full, and files may be gone;
                      * under the checkpointer's lock */
    /* its own: */
    struct checkpointer *owner;
    struct disk *disk;
    struct wal *wal;
    int *fd; /* owned; one a file, n_open of them are open */
    size_t n_open;
};

/* Reads len bytes of file number i (below files.n) from offset at on; all of
 * them lie within its bytes. What was read need not stay in the page cache. 0,
 * ERR_DISK, ERR_CORRUPT (the file is shorter than it was). One thread at a time
 * for one file. */
int snapshot_read(
    struct snapshot *snapshot, size_t i, uint64_t at, void *bytes, size_t len);

/* XXH3 (64 bits, seed 0) of all bytes of file number i, which are read for it.
 * As above, and ERR_NO_MEMORY. */
int snapshot_hash(struct snapshot *snapshot, size_t i, uint64_t *xxh3);

/* Closes its files and lets go of the log. After an answer with err 0, and
 * before the store is destroyed. Any thread. May look at the disk, but for one
 * that keeps names. */
void snapshot_close(struct snapshot *snapshot);

/* Of one that keeps names, which is not closed: 0, or ERR_BACKUP_GONE where
 * some may be gone since, for want of room. Any thread. */
int snapshot_check(const struct snapshot *snapshot);

/* ---- the checkpointer's ---- */

/* Opens one of what is on the disk now: the caller sees to it that neither the
 * manifest nor a file that it names goes meanwhile. 0 or ERR_, and then it
 * holds nothing. */
int snapshot__open(struct snapshot *snapshot, struct checkpointer *owner);

#endif

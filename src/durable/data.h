/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DATA_H
#define DURABLE_DATA_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/log.h"
#include "wal/wal.h"

#include <stdbool.h>
#include <stdint.h>

/* The data directory, and how counters are kept in it. */

/* An open and locked directory: all zero but for dir_fd = -1 is none. */
struct data_dir {
    int dir_fd;  /* -1: none */
    int lock_fd; /* of the file "lock" in it; -1: only looked at, and there is
                  * none. Both are locked while they are open */
};

/* How a directory is made and taken. */
struct data_dir_terms {
    const char *user;  /* whose it will be where the process is root; "": the
                        * process's own */
    int log_fd;        /* this file may be in it without being a stranger's;
                        * -1: there is none */
    bool must_be_used; /* one that is not there, or has no counters and never
                        * had, is refused */
    bool no_lock;      /* one that cannot be locked is none the less taken; a
                        * lock that somebody else has counts all the same */
};

/* Makes the directory path (mode 0700, its parent must exist) unless it is
 * there. 0, ERR_NO_DATA_DIR where there is none and none can be made, or
 * ERR_SYSTEM, also where there is none and it must be used; why says what went
 * wrong and what to do. *dir_fd is the caller's; *is_made: it was not there,
 * and nobody else has made it. Called before the user is dropped. */
int data_dir_make(const char *path, const struct data_dir_terms *terms,
    int *dir_fd, bool *is_made, struct buf *why);

/* Takes dir_fd over, locks the directory, writes the process id into the lock,
 * and takes others' rights away. A directory with files of others and without
 * a manifest is refused and not touched, sockets do not count; so is one
 * without any file of a server, where it must be used, and one that cannot be
 * locked, unless terms say otherwise. 0, ERR_SYSTEM, ERR_DIR_IN_USE; dir_fd is
 * closed then. */
int data_dir_lock(int dir_fd, const char *path,
    const struct data_dir_terms *terms, struct data_dir *out, struct buf *why);

/* Removes the directory path that data_dir_make has made, and the lock in it
 * where dir is locked; one that has other files, or that the process may not
 * remove, stays. dir is closed. */
void data_dir_unmake(struct data_dir *dir, const char *path);

/* True for the name of a file or directory that is made only where there has
 * been a manifest: where that is missing now, it is lost. */
bool data_dir__is_remains(const char *name);

/* Opens a directory to look at it, without writing to it or making anything:
 * a server cannot take it meanwhile, others may look as well. Without a lock
 * file that can be read it is taken for a copy, which the logger is told. 0,
 * ERR_SYSTEM, ERR_DIR_IN_USE. */
int data_dir_look(const char *path, struct data_dir *out,
    struct logger *logger, struct buf *why);

/* Unlocks and closes; none is fine. */
void data_dir_close(struct data_dir *dir);

struct seal_tidy_bounds; /* tier/seal_tidy.h */

/* Who reads blocks of the cold tier that are not in its cache: for gets each
 * worker by an io_uring of its own, where there is one, also past the page
 * cache; only threads. */
enum cold_io { COLD_IO_AUTO, COLD_IO_RING, COLD_IO_DIRECT, COLD_IO_POOL };

struct data_config {
    struct data_dir dir; /* the store's from then on */
    const char *path;    /* of dir, for the log; NULL: it has no name. It
                          * outlives the store */
    struct disk *disk;   /* NULL: the one in dir; else the caller's, for tests,
                          * and dir is none */
    struct disk
        *archive;    /* gets copies of log files (durable/archive.h); NULL:
                           * nothing does. The caller's, outlives the store */
    bool is_missing; /* dir is none, but there should be one: counters
                          * cannot be added */
    enum wal_sync sync;
    uint64_t interval_ms;           /* see wal_config */
    uint64_t log_file_bytes;        /* see wal_config */
    uint64_t unsynced_bytes_max;    /* see wal_config */
    uint64_t retry_ms;              /* see wal_config; 0 but in tests */
    uint64_t idle_ms;               /* the same */
    uint64_t checkpoint_log_bytes;  /* a checkpoint when the log has so many */
    uint64_t checkpoint_ms;         /* and so long after the last; 0: never */
    uint64_t checkpoint_step_bytes; /* of images between two manifests; 0: the
                                     * usual, but in tests */
    uint64_t checkpoint_file_bytes; /* of a file, then the next; the same */
    unsigned cold_threads;          /* of struct fetch_config */
    uint64_t cold_cache_bytes;      /* likewise */
    enum cold_io cold_io;           /* RING, DIRECT: as AUTO, but the logger is
                                     * told where there is none */
    unsigned cold_codec;            /* enum block_codec, likewise */
    int cold_level;                 /* likewise */
    uint64_t seal_records;          /* in a range that is sealed, about; 0:
                                     * by the hot memory, but in tests */
    bool seals_when_told;           /* and not by itself; but in tests */
    bool has_whole_records; /* every entry of a record in the log has all its
                             * columns: who applies the log to copies that seal
                             * by themselves needs no read for it. Set of a
                             * directory that is replicated */
    bool is_replicated; /* others have copies of it: its log has what theirs
                         * have, under the same numbers, so a start leaves
                         * none out; implies has_whole_records */
    bool leaves_group;  /* of a directory that was replicated, and is not to be
                         * any more: REPLICA is removed, and numbers are its
                         * own from now on */
    uint64_t keep_cut_bytes; /* see log_cut.keep_bytes */
    /* How cold ranges are joined and so on; NULL: the usual, but in tests. It
     * outlives the store. */
    const struct seal_tidy_bounds *tidy;
    unsigned threads;          /* that load; >= 1 */
    const struct clock *clock; /* NULL: the system's; store_create puts its
                                * own here */
    struct logger *logger;
    /* Called once, on a thread of the store, when all is loaded (err 0) or
     * cannot be. The store goes on refusing with ERR_LOADING until
     * store_begin. NULL: nobody waits. */
    void (*loaded_fn)(void *context, int err);
    void *context;
};

#endif

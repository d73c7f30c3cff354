/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_SNAPSHOT_PUT_H
#define DURABLE_SNAPSHOT_PUT_H

#include "base/log.h"
#include "durable/snapshot_plan.h"

#include <stddef.h>
#include <stdint.h>

/* Puts a snapshot of another server's directory together, beside the data
 * directory that is here and may be in use; checks it; and gives the order to
 * exchange both, which the next start carries out (snapshot_exchange.h).
 *
 *   open -> begin -> { file -> write ... -> end } -> exchange -> close
 *
 * It goes on where it was, after a crash too: files that are here whole stay,
 * while they are of the same source, kind, number and length; whoever copies
 * compares their XXH3. Until the exchange nothing of the old directory is
 * touched, whatever fails. One thread at a time; all calls may wait for the
 * disk. Memory: the plan, and a buffer of SNAPSHOT_PUT_BYTES. */

enum { SNAPSHOT_PUT_BYTES = 256 << 10 };

/* As all zero, but folder, after an error of snapshot_put_open. */
struct snapshot_put {
    struct logger *logger;     /* told what the disk refuses, and of damage */
    struct disk *folder;       /* owned */
    struct snapshot_plan plan; /* what is here: to be read by the caller */
    uint64_t epoch;            /* the caller's: that a manifest must be of; 0:
                                * any, as at first */
    bool is_begun;             /* the plan is of a snapshot_put_begin */
    bool is_in_doubt;          /* the plan on the disk may be another one */
    /* The file under way. */
    size_t i;                       /* its place in the plan */
    int fd;                         /* -1: there is none */
    uint64_t at;                    /* so much of it has come */
    struct checksum_stream *stream; /* owned; of that */
};

/* disk: the data directory's; it must outlive put. What an earlier process has
 * put there is in the plan, which is empty where there is nothing, or nothing
 * of use. 0, ERR_NO_MEMORY, ERR_DISK, ERR_NEWER_FORMAT; ERR_CLOSED: an exchange
 * has been ordered, and the process is to end: the next start finishes it. */
int snapshot_put_open(
    struct snapshot_put *put, struct disk *disk, struct logger *logger);

/* What is here stays. */
void snapshot_put_close(struct snapshot_put *put);

/* A source (its name: 1..SNAPSHOT_SOURCE_MAX characters) has a snapshot with
 * that manifest and these files. What is here of another source or directory,
 * or not among these files, goes. 0; ERR_CORRUPT, ERR_NEWER_FORMAT (the files
 * and the manifest do not go together, or that cannot be read, or is of another
 * directory), ERR_NO_MEMORY: nothing has changed; ERR_DISK, ERR_DISK_FULL,
 * ERR_FILE_SIZE: to be tried again. */
int snapshot_put_begin(struct snapshot_put *put, const char *source,
    const void *manifest, size_t manifest_bytes,
    const struct snapshot_files *files);

/* File number i of the plan comes now, from its start on, whether it is here or
 * not. One that was under way is given up. 0 or ERR_DISK, ERR_DISK_FULL,
 * ERR_NO_MEMORY. */
int snapshot_put_file(struct snapshot_put *put, size_t i);

/* More of it, in order. 0; ERR_CORRUPT where there is no file under way, at is
 * not where it stands, or it gets too long: nothing has changed; ERR_DISK,
 * ERR_DISK_FULL: the file is given up. */
int snapshot_put_write(
    struct snapshot_put *put, uint64_t at, const void *bytes, size_t len);

/* That was all of it, and what it must sum up to. 0, and it is here whole,
 * durably; ERR_CORRUPT: it is short, or another one, and is given up; ERR_DISK,
 * ERR_DISK_FULL, ERR_FILE_SIZE, ERR_NO_MEMORY: likewise. */
int snapshot_put_end(struct snapshot_put *put, uint64_t xxh3);

/* Removes all that is here, and begins with nothing. 0 or ERR_DISK. */
int snapshot_put_drop(struct snapshot_put *put);

/* Who reads a directory as a start would, from a disk on which the snapshot
 * looks like one: data_check_disk. 0 or ERR_. */
typedef int snapshot_check_fn(
    void *context, struct disk *disk, struct logger *logger);

/* Reads all that is here once more, compares it to its XXH3 and has check_fn
 * read it; then orders the exchange. From then on what the process still does
 * in the data directory comes to nothing, and it is to end; the next start
 * makes the snapshot the directory. 0; ERR_NOT_FOUND: not all files are here;
 * ERR_CORRUPT: files that are not what they were are not here any more; what
 * check_fn says; ERR_NO_MEMORY; ERR_DISK: it may be ordered or not. */
int snapshot_put_exchange(
    struct snapshot_put *put, snapshot_check_fn *check_fn, void *context);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_ARCHIVE_H
#define DURABLE_ARCHIVE_H

#include "base/disk.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

/* Copies of all log files that are complete, in another directory
 * (--wal-archive): with a backup they make what the directory was at any batch
 * since. No log file goes before its copy is there, synced: where none can be
 * made the log grows. One thread: the checkpointer's. */

enum { ARCHIVE_NAME_BYTES = 56 };

struct archive {
    struct disk *disk; /* of the copies; NULL: there is no archive */
    struct disk *from; /* the data directory's */
    struct logger *logger;
    uint64_t next;  /* the first file that has no copy yet */
    uint64_t first; /* files below it are no more than copied: then they go */
    uint64_t retry_ns; /* behind a failure: not before */
    uint64_t say_ns;   /* likewise */
    uint64_t n_files;  /* copied */
    uint64_t n_failures;
    uint64_t note_ns;   /* the next note of the time: not before, */
    uint64_t noted_seq; /* and only of a batch behind this one */
    bool is_failing;
};

/* The name of a copy: log-N-HISTORY.wal, so that files of two histories do not
 * meet under one. Pure. */
void archive_name(
    char out[ARCHIVE_NAME_BYTES], uint64_t number, uint64_t history);

/* True where name is one that archive_name makes. Pure. */
bool archive_name_parse(const char *name, uint64_t *number, uint64_t *history);

/* Begins with the lowest log file that there is; first: that which the manifest
 * names. */
void archive__begin(struct archive *archive, struct disk *disk,
    struct disk *from, struct logger *logger, uint64_t first);

/* The name of the notes of who writes log files of that history. */
void archive_times_name(char out[ARCHIVE_NAME_BYTES], uint64_t history);

/* Notes that batch seq is the last one that is synced at that time, at most
 * once a second: a line UNIX_MS SEQ. The notes are a help to find a batch: they
 * are not synced, and where one cannot be written it is left out. */
void archive__note_time(struct archive *archive, uint64_t history,
    uint64_t seq, uint64_t unix_ms, uint64_t now_ns);

/* Copies files up to `end`, without it, until one fails; after a failure not
 * before some seconds have passed. May take as long as the disks do. */
void archive__up_to(struct archive *archive, uint64_t end, uint64_t now_ns);

#endif

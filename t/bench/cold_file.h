/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COLD_FILE_H
#define BENCH_COLD_FILE_H

#include "base/disk.h"
#include "bench/cold_worlds.h"
#include "cold/segment.h"

/* A segment file of a world's records, as the programs that measure the cold
 * tier make it: one a directory, written anew each time. What goes wrong ends
 * the program. */

enum { COLD_FILE_EPOCH = 1, COLD_FILE_NUMBER = 1 };

/* Writes all records, and syncs them. level: of zstd. */
void cold_file_write(struct disk *disk, const struct cold_records *records,
    enum block_codec codec, int level);

/* Opens it; segment_close closes it. */
struct segment *cold_file_open(struct disk *disk);

/* Removes it, if it is there. */
void cold_file_remove(struct disk *disk);

/* The disk of a directory, open as *fd; both are the caller's. */
struct disk *cold_file_disk(const char *directory, int *fd);

#endif

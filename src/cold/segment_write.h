/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_SEGMENT_WRITE_H
#define COLD_SEGMENT_WRITE_H

#include "base/disk.h"
#include "base/log.h"
#include "cold/block_build.h"
#include "cold/segment_head.h"

/* Sorted records into a segment file. It is written under its name with .new
 * and takes its name when it is whole and synced: nothing half-written ever
 * has that name. Calls wait for the disk. One thread at a time. */

struct segment_write_config {
    struct disk *disk;
    struct logger *logger;     /* NULL: logs nothing */
    const struct alloc *alloc; /* NULL: the heap */
    enum block_codec codec;    /* BLOCK_AUTO: the smallest for each block */
    int level;                 /* of zstd */
};

struct segment_writer;

/* Begins the file that head names, a sound one; what is known of it only at
 * the end is not looked at. A file with its name and .new is one of a try that
 * did not end, and goes. Takes 1.1 MB and 128 KB a column (block_build.h), and
 * 3 to 8 bytes a block. Config and what it points to must outlive the writer.
 * 0, ERR_NO_MEMORY, ERR_DISK_FULL, ERR_FILE_SIZE, ERR_DISK. */
int segment_write_begin(const struct segment_write_config *config,
    const struct segment_head *head, struct segment_writer **out);

/* Adds a record: id above all before it, a code for each column in the order
 * of the head (the value where the default is 0, else the zigzag of the
 * distance to it). Errors as above, ERR_FILE_SIZE also for more than
 * SEGMENT_BLOCKS_MAX blocks; after one all calls say the same. */
int segment_write_add(
    struct segment_writer *writer, uint64_t id, const uint64_t *code);

/* Writes the rest, at least one record, makes the file and its name durable,
 * and frees the writer; *out is the head. On an error, as above, there is no
 * file of that name or, if the disk refuses that too, a whole one that a new
 * file of the same number replaces. */
int segment_write_end(
    struct segment_writer **writer, struct segment_head *out);

/* Frees it and removes what it has written; NULL in it is fine. */
void segment_write_abort(struct segment_writer **writer);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_SEGMENT_SCAN_H
#define COLD_SEGMENT_SCAN_H

#include "cold/segment.h"

/* All records of a segment in order, and the check of a whole file. Calls wait
 * for the disk. One thread at a time for one scan. */

struct segment_scan;

/* The records of one block. */
struct segment_records {
    size_t n;                                 /* 0: there are no more */
    const uint64_t *id;                       /* n, ascending */
    const uint64_t *code[SCHEMA_COLUMNS_MAX]; /* n of each column */
};

/* Begins with block number `block` (n_blocks: there is nothing). The segment
 * must stay open. Takes 256 KB from alloc (NULL: the heap), later what the
 * largest block takes decoded: 8 bytes a number. 0 or ERR_NO_MEMORY. */
int segment_scan_create(const struct segment *segment, uint32_t block,
    const struct alloc *alloc, struct segment_scan **out);

/* Frees it; NULL in it is fine. */
void segment_scan_destroy(struct segment_scan **scan);

/* The records of the next block, which stay until the next call. What is given
 * out ascends over all calls. Errors as of segment__try_block, and
 * ERR_NO_MEMORY; ERR_CORRUPT also where blocks, index and head do not agree.
 * The scan is at its end then. */
int segment_scan_next(struct segment_scan *scan, struct segment_records *out);

/* It ends in front of the first block that only has ids above last_id: what is
 * behind it is not read. Before the first call of segment_scan_next. */
void segment_scan_until(struct segment_scan *scan, uint64_t last_id);

/* From now on reads one block at a time: where a read of several fails, which
 * one it was is not known. Before the first call of segment_scan_next. */
void segment_scan_narrow(struct segment_scan *scan);

/* The block that segment_scan_next has failed at, or the first one of several
 * that it has read at once. After an error. */
uint32_t segment_scan_failed(const struct segment_scan *scan);

/* Reads all of the file and checks that each record is where it would be looked
 * for, that they are as many as the head says, and that there is nothing
 * between the blocks. Errors as above. */
int segment_check(const struct segment *segment, const struct alloc *alloc);

#endif

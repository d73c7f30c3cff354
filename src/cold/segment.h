/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_SEGMENT_H
#define COLD_SEGMENT_H

#include "base/disk.h"
#include "base/disk_ring.h"
#include "base/log.h"
#include "cold/segment_head.h"

/* A segment file, read: its head and the first id of each block are in memory,
 * a block is one read of 4,096 bytes. What is not as it was written is
 * ERR_CORRUPT and a line to the logger that names file and offset, and never a
 * wrong number. */

struct segment_config {
    struct disk *disk;
    bool
        is_direct; /* rings read past the page cache, where that can be done */
    struct logger *logger;     /* NULL: logs nothing */
    const struct alloc *alloc; /* NULL: the heap */
};

/* Immutable once opened: any number of threads may ask and read. */
struct segment;

/* Opens the file of that number and checks head, index and length; its blocks
 * are not looked at. Config is copied, what it points to must outlive the
 * segment. The file stays open, twice where it is read past the page cache.
 * 0, ERR_CORRUPT (also where it is missing),
 * ERR_NEWER_FORMAT, ERR_NO_MEMORY, ERR_DISK. */
int segment_open(const struct segment_config *config, uint64_t epoch,
    uint64_t number, struct segment **out);

/* Frees it; NULL in it is fine. No thread may be in a call, or in a scan. */
void segment_close(struct segment **segment);

/* True where segment__block_read goes past the page cache. */
bool segment__is_direct(const struct segment *segment);

/* What is in it. Valid until it is closed. */
const struct segment_head *segment_head(const struct segment *segment);

/* Bytes of memory that it takes. */
size_t segment_memory(const struct segment *segment);

/* The one block that may have this id; false where no block can. Within the
 * segment's ids there is always one: of the ids between two records one in as
 * many as a block has records is between two blocks, and to know the last id of
 * each would take as much memory again. */
bool segment_find(const struct segment *segment, uint64_t id, uint32_t *block);

/* The first block that may have this id or one above; n_blocks where none
 * can. */
uint32_t segment_from(const struct segment *segment, uint64_t id);

/* The first id of a block (below n_blocks). */
uint64_t segment_first_id(const struct segment *segment, uint32_t block);

/* What was wrong with a block, before somebody is told. */
struct segment_fault {
    uint64_t at;      /* offset in the file */
    int error;        /* errno value of a read that failed; else 0 */
    const char *what; /* of damage; static storage */
};

/* Reads and checks block number `block`, which is where *out points into:
 * bytes has BLOCK_BYTES_MAX, the caller's. 0, ERR_CORRUPT, ERR_NEWER_FORMAT,
 * ERR_DISK: logs nothing, what there is to say is in *fault then. */
int segment__try_block(const struct segment *segment, uint32_t block,
    uint8_t *bytes, struct block *out, struct segment_fault *fault);

/* For who has the block read by a ring: the read of it, into bytes as above
 * and, where it goes past the page cache, aligned to DISK_DIRECT_BYTES, which
 * the caller keeps until it has come. */
void segment__block_read(const struct segment *segment, uint32_t block,
    uint8_t *bytes, struct disk_read *read);

/* Checks what has come: all of the block in bytes, where *out points into. As
 * segment__try_block otherwise, but for ERR_DISK. */
int segment__check_block(const struct segment *segment, uint32_t block,
    const uint8_t *bytes, struct block *out, struct segment_fault *fault);

/* Has the logger say it, with the name of the file. */
void segment__log_fault(
    const struct segment *segment, const struct segment_fault *fault);

/* For modules that read segments: logs that block `block` is not what was
 * written. Returns err. */
int segment__log_block(
    const struct segment *segment, uint32_t block, int err, const char *what);

/* Reads n blocks from number `block` on as they are, all that the file has of
 * them. 0, ERR_CORRUPT (the file is too short), ERR_DISK. */
int segment__read(
    const struct segment *segment, uint32_t block, uint32_t n, uint8_t *bytes);

/* Checks the bytes of one block as segment__try_block does, and tells what is
 * wrong. */
int segment__open_block(const struct segment *segment, uint32_t block,
    const uint8_t *bytes, struct block *out);

#endif

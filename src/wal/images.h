/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_IMAGES_H
#define WAL_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The live images: for each counter and shard which rows are found in which
 * block of which checkpoint file. Live images of one counter and shard never
 * overlap: a newer one takes its rows away from older ones, of which what is
 * left on either side stays live (the block is the same, the rows are fewer).
 * One thread at a time. */

struct images_entry {
    uint64_t first_row, last_row; /* rows that count in that block */
    uint64_t history;             /* as in the block */
    uint64_t seq;                 /* as in the block */
    uint64_t file;                /* number of the checkpoint file */
    uint64_t offset;
    uint32_t len; /* of the block */
    uint32_t n;   /* records in the block */
    uint16_t shard;
    uint8_t counter; /* slot */
    bool part;       /* fewer rows count than the block has: set here; in
                      * what is added only where it is a copy of an entry */
};

struct alloc; /* base/alloc.h */

/* All zero is empty. */
struct images {
    const struct alloc *alloc; /* NULL: the heap */
    struct images_list *list;  /* owned; by counter and shard */
    size_t n_lists;
    size_t lists_capacity;
    size_t n; /* entries in all */
};

/* Empties it; alloc stays. */
void images_fini(struct images *images);

/* Makes entry live, and takes its rows from all others of its counter and
 * shard. 0 or ERR_NO_MEMORY (nothing has changed). */
int images_add(struct images *images, const struct images_entry *entry);

/* Takes rows first..last of a counter and shard from whatever has them: no
 * record is there. 0 or ERR_NO_MEMORY (nothing has changed). */
int images_drop(struct images *images, uint8_t counter, uint16_t shard,
    uint64_t first_row, uint64_t last_row);

/* The live entry that has this row, or NULL; valid until the next change. */
const struct images_entry *images_find(const struct images *images,
    uint8_t counter, uint16_t shard, uint64_t row);

/* Calls entry_fn for all, by counter, shard and rows. */
void images_each(const struct images *images,
    void (*entry_fn)(void *context, const struct images_entry *entry),
    void *context);

/* Bytes of blocks in that file that are live; a block with two live entries
 * counts once. */
uint64_t images_file_bytes(const struct images *images, uint64_t file);

/* A copy, the caller's; what was in *out is not looked at. 0 or ERR_NO_MEMORY
 * (*out is as it was). */
int images_copy(const struct images *from, struct images *out);

/* Asserts the invariants. */
void images_verify(const struct images *images);

#endif

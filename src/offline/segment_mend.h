/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_SEGMENT_MEND_H
#define OFFLINE_SEGMENT_MEND_H

#include "base/disk.h"
#include "base/flip.h"
#include "cold/segment_scan.h"

/* Reads what is sound in a segment that segment.h refuses. Blocks are checked
 * as there, each for its own place in this file of this directory; head and
 * index can be done without, if somebody knows the columns. Nothing is
 * written. Calls wait for the disk. One thread at a time. */

enum segment_mend_kind {
    SEGMENT_MEND_MISSING, /* there is no such file, or it is another's */
    SEGMENT_MEND_HEAD,    /* the head is lost */
    SEGMENT_MEND_INDEX,   /* the index is; nothing is lost by that */
    SEGMENT_MEND_TURNED,  /* one bit was another, and is not any more */
    SEGMENT_MEND_BLOCKS   /* blocks are lost */
};

struct segment_mend_piece {
    enum segment_mend_kind kind;
    uint64_t number;            /* of the file */
    uint64_t at;                /* offset in it */
    uint64_t n_blocks;          /* lost; of them, what was in */
    uint64_t first_id, last_id; /* these ids, is lost */
};

struct segment_mend_config {
    struct disk *disk;
    uint64_t epoch, number;
    struct flip_budget *budget; /* NULL: bits are not turned back */
    /* Which columns the file has, and whose it is, where its own head cannot be
     * read: a sound one (segment_head__is_sound), or of 0 columns where nobody
     * knows; then a file without a head is lost. */
    const struct segment_head *guess;
    void (*piece_fn)(void *context, const struct segment_mend_piece *piece);
    void *context;
};

struct segment_mend;

/* Opens it. 0 and *out, which is NULL where all of the file is lost, and that
 * told; ERR_NO_MEMORY, ERR_NEWER_FORMAT, ERR_DISK. */
int segment_mend_open(
    const struct segment_mend_config *config, struct segment_mend **out);

/* Frees it; NULL in it is fine. */
void segment_mend_close(struct segment_mend **mend);

/* What a file of the sound records needs: epoch, columns, counter and sequence
 * number are right, the rest is not known. */
const struct segment_head *segment_mend_head(const struct segment_mend *mend);

/* The records of the next sound block, ascending over all calls; n is 0 at the
 * end. Errors as above. */
int segment_mend_next(struct segment_mend *mend, struct segment_records *out);

/* Records that were given out. */
uint64_t segment_mend_given(const struct segment_mend *mend);

#endif

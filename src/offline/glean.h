/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_GLEAN_H
#define OFFLINE_GLEAN_H

#include "base/buf.h"
#include "base/disk.h"
#include "base/flip.h"
#include "wal/histories.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads what is sound in a log that replay.h refuses, and says what is not.
 * Batches are checked as there: none is given out whose checksum is not right.
 * Nothing is written. */

enum glean_kind {
    GLEAN_TURNED,  /* one bit was another: the batch or header is as written */
    GLEAN_HEADER,  /* a file's header is lost; its batches are not */
    GLEAN_NOTE,    /* the note of a successor is not what was written */
    GLEAN_MISSING, /* a file is not there */
    GLEAN_FOREIGN, /* it is of another directory or history, or number */
    GLEAN_CUT,     /* it is shorter than it was made */
    GLEAN_HOLE     /* bytes at .. to are no batches */
};

struct glean_piece {
    enum glean_kind kind;
    uint64_t number; /* of the file */
    uint64_t
        to_number;   /* GLEAN_MISSING: up to that one none is there; 0: it is
                         * one */
    uint64_t at, to; /* offsets */
    uint64_t n_batches; /* lost; 0: none, or it is unknown */
    uint64_t seq;       /* of the first one of them, or of the one turned */
    bool may_be_more;   /* what was at the end nobody knows */
};

struct glean_batch {
    uint64_t seq, synced_seq;
    uint64_t number, at; /* file and offset */
    const uint8_t *payload;
    uint32_t len;
};

struct glean {
    struct disk *disk;
    uint64_t epoch;                    /* of the directory, not 0 */
    const struct histories *histories; /* as of replay.h */
    uint64_t number;                   /* of the first file */
    struct flip_budget *budget;        /* NULL: bits are not turned back */
    /* Each sound batch in order, with ascending sequence numbers, marks that
     * nothing follows (entry.h) not among them. 0, or an ERR_ that ends all. */
    int (*batch_fn)(void *context, const struct glean_batch *batch);
    /* In between, what is not sound. */
    void (*piece_fn)(void *context, const struct glean_piece *piece);
    void *context;
};

/* Takes some 2 MB. 0, ERR_NO_MEMORY, ERR_DISK (*error is an errno value then,
 * else 0), ERR_NEWER_FORMAT, or what batch_fn returned. */
int glean_run(const struct glean *glean, int *error);

/* Appends a piece as one line for people, without a newline. */
void glean_say(const struct glean_piece *piece, struct buf *out);

/* True where changes are lost by it, or may be. */
bool glean_is_loss(const struct glean_piece *piece);

#endif

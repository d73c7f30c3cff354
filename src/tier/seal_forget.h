/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEAL_FORGET_H
#define TIER_SEAL_FORGET_H

#include "engine/cover.h"
#include "tier/forgotten.h"
#include "tier/seal.h"
#include "tier/seal_merge.h"

/* Takes forgotten marks (forget=) out of a range before it is sealed, so that
 * the new segment does not have them. Part of the store; nobody else calls it.
 * The thread that seals, not an online reader. */

enum { SEAL_FORGET_BATCH = 64 };

struct seal_forget {
    struct seal *seal;
    struct forgotten marks;
    struct qsbr_reader reader;       /* registered */
    uint8_t at[SCHEMA_COLUMNS_MAX];  /* of marks.mark: its column of head */
    uint8_t own[SCHEMA_COLUMNS_MAX]; /* its source's, where that is of the same
                                      * id */
    uint64_t n_forgotten;            /* so far */
    uint64_t n_may_take; /* cold records that may still come into memory */
    uint64_t taken_id;   /* the last one that has, where any_taken */
    bool any_taken;
    unsigned n; /* found, and still to be taken out: */
    struct seal_forget_one {
        unsigned mark; /* of marks */
        bool is_cold;  /* base is the record in the segment */
        struct forgotten_found as;
        struct engine_base base;
    } found[SEAL_FORGET_BATCH];
};

/* *out is NULL where nothing may be taken out: the counter with that head has
 * no such marks, or only some whose source is so low now that none is
 * forgotten; the server is a replica, whose marks go as its primary's do, or
 * the log is at fault; or there is no memory for it. n_rows: records of the
 * range that are in memory. */
void seal_forget_begin(struct seal *seal, const struct segment_head *head,
    uint64_t n_rows, struct seal_forget **out);

/* Looks at a record that merge has given out, from the engine or from the
 * segment that it is at. */
void seal_forget_look(struct seal_forget *it, const struct seal_merge *merge,
    uint64_t id, const uint64_t code[SCHEMA_COLUMNS_MAX], bool is_hot);

/* Takes out what was found and is still forgotten, by changes that the log is
 * told, and counts it. Takes edit_lock. What is in a segment alone comes into
 * memory for that: so many records that with those of the range they are a
 * seal's share (seal_pick__chunk), and none where room is made. The rest stays,
 * for another seal. */
void seal_forget_flush(struct seal_forget *it);

/* Frees it; NULL in it is fine. */
void seal_forget_end(struct seal_forget **out);

#endif

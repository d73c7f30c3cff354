/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_SALVAGE_MEMBERS_H
#define OFFLINE_SALVAGE_MEMBERS_H

#include "offline/member_ids.h"
#include "offline/rewrite.h"
#include "offline/salvage_priv.h"

/* The part of a salvage's new log that is about members. One thread. */

struct salvage_members {
    struct salvage *salvage;
    struct engine *engine; /* owned; knows where ids are */
    struct member_ids ids;
    struct recover_reader reader;
    bool has_before; /* in this batch cells were put, those of ... */
    uint64_t before; /* ... this id last */
    struct rewrite *rewrite;
    uint64_t seq;                /* of the first batch of its own, at least */
    bool has_batch;              /* there is one */
    struct buf bytes;            /* owned; of the next one */
    uint64_t n_counts;           /* made right */
    uint64_t n_notes;            /* that members were given up, taken back */
    const struct schema *schema; /* not owned; at the end of the log */
    uint64_t n_left_out;         /* changes */
};

/* Begins with the segments and images of the salvage's manifest, as it is
 * mended; schema is the manifest's. 0, ERR_NO_MEMORY, or an error of these
 * reads; in all cases salvage_members_fini is to be called. */
int salvage_members_begin(struct salvage_members *it, struct salvage *salvage,
    const struct schema *schema);
void salvage_members_fini(struct salvage_members *it);

/* Cells of a batch of the log, with the schema as it is there. is_first: none
 * of the batch came before. *is_put: what is to be kept of them has been
 * appended to out, by whatever came before; else they are to be kept as they
 * are. 0 or ERR_NO_MEMORY. */
int salvage_members_take(struct salvage_members *it,
    const struct recover_schema *recover, const struct entry_cells *cells,
    uint64_t seq, bool is_first, struct buf *out, bool *is_put);

/* All of the log has been taken, and added to rewrite: adds what makes counts
 * right, above max_seq, and says what has been done. schema: as it is at the
 * end. 0, ERR_NO_MEMORY, or an error of recover_read, recover_each_segment or
 * rewrite_add. */
int salvage_members_end(struct salvage_members *it,
    const struct schema *schema, struct rewrite *rewrite, uint64_t max_seq);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_SALVAGE_NAMES_H
#define OFFLINE_SALVAGE_NAMES_H

#include "offline/data_names.h"
#include "offline/rewrite.h"
#include "offline/salvage_priv.h"

/* The part of a salvage's new log that is about names. One thread. */

struct salvage_names {
    struct salvage *salvage;
    struct data_names names;
    struct numbers ids;  /* owned; of records in the log, whose ids numbers of
                          * names make */
    uint64_t n_left_out; /* entries */
};

/* Begins with the images of the salvage's manifest, as it is mended. 0,
 * ERR_NO_MEMORY, or an error of these reads; in all cases salvage_names_fini is
 * to be called. */
int salvage_names_begin(struct salvage_names *it, struct salvage *salvage);
void salvage_names_fini(struct salvage_names *it);

/* An entry of the log. *is_kept: it may stay. 0 or ERR_NO_MEMORY. */
int salvage_names_take(struct salvage_names *it, const struct entry_name *name,
    uint64_t seq, bool *is_kept);

/* Cells of the log. 0 or ERR_NO_MEMORY. */
int salvage_names_note(struct salvage_names *it,
    const struct recover_schema *recover, const struct entry_cells *cells);

/* All of the log has been taken, and the schema is as it is at the end: of two
 * numbers with one name the first keeps it, and a record without a name gets
 * one; rewrite gets that, above max_seq. Says what has been done. 0,
 * ERR_NO_MEMORY, or an error of recover_read, recover_each_segment or
 * rewrite_add. */
int salvage_names_end(struct salvage_names *it, const struct schema *schema,
    struct rewrite *rewrite, uint64_t max_seq);

/* True of a schema with counters whose ids are names. */
bool salvage_names_has(const struct schema *schema);

#endif

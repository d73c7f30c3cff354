/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_ANSWERED_H
#define LIB_ANSWERED_H

#include "engine/cell.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one client was answered, step by step, slow and obvious; it judges what
 * a store holds after a stop or a crash: the state after some step that is not
 * before the last one that had to survive. Of a step of several changes some
 * may be there, since the log may hold them in several batches. One thread. */

enum { ANSWERED_SERIALS = 1024 };

struct answered_step; /* a change, several of them, or an edit */
struct answered_cell; /* what a cell has become */

struct answered {
    uint64_t *id; /* n_ids, ascending; owned */
    size_t n_ids;
    uint64_t *base[ANSWERED_SERIALS]; /* [serial][id], owned: before step 0 */
    char *base_schema;                /* owned */
    struct answered_step *step;       /* owned */
    size_t n_steps, steps_capacity;
    struct answered_cell *cell; /* owned */
    size_t n_cells, cells_capacity;
};

/* All of a schema as text, serials and slots too; the caller's, to free. */
char *answered_schema_text(const struct schema *schema);

/* No counter yet. id: ascending. */
void answered_init(struct answered *history, const uint64_t *id, size_t n_ids);
void answered_fini(struct answered *history);

/* Changes that one call did, of these ids; those with an err did nothing. seq:
 * what the store said they are committed with. */
void answered_change(struct answered *history, const struct change *change,
    size_t n, uint64_t seq);

/* The schema has become this. seq: 0 where the edit was answered without an
 * error, so that it must survive; UINT64_MAX where it was not. */
void answered_edit(
    struct answered *history, const struct schema *schema, uint64_t seq);

/* The seq of step number k. */
uint64_t answered_seq(const struct answered *history, size_t k);

/* What is found afterwards. */
struct answered_found {
    const struct schema *schema;
    /* of the cell of id number i in the column of that serial */
    uint64_t (*value_fn)(void *context, uint32_t serial, size_t i);
    void *context;
};

/* NULL, or what is wrong. At least the first n_steps must be there. Where
 * nothing is wrong and is_new, the history begins anew with what was found. */
const char *answered_judge(struct answered *history, size_t n_steps,
    const struct answered_found *found, bool is_new);

#endif

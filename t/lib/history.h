/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_HISTORY_H
#define LIB_HISTORY_H

#include "engine/cell.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one client was answered, step by step, slow and obvious; it judges what
 * a store holds after a stop or a crash: the state after some step that is not
 * before the last one that had to survive. Of a step of several changes some
 * may be there, since the log may hold them in several batches. One thread. */

enum { HISTORY_SERIALS = 1024 };

struct history_step; /* a change, several of them, or an edit */
struct history_cell; /* what a cell has become */

struct history {
    uint64_t *id; /* n_ids, ascending; owned */
    size_t n_ids;
    uint64_t *base[HISTORY_SERIALS]; /* [serial][id], owned: before step 0 */
    char *base_schema;               /* owned */
    struct history_step *step;       /* owned */
    size_t n_steps, steps_capacity;
    struct history_cell *cell; /* owned */
    size_t n_cells, cells_capacity;
};

/* All of a schema as text, serials and slots too; the caller's, to free. */
char *history_schema_text(const struct schema *schema);

/* No counter yet. id: ascending. */
void history_init(struct history *history, const uint64_t *id, size_t n_ids);
void history_fini(struct history *history);

/* Changes that one call did, of these ids; those with an err did nothing. seq:
 * what the store said they are committed with. */
void history_change(struct history *history, const struct change *change,
    size_t n, uint64_t seq);

/* The schema has become this. seq: 0 where the edit was answered without an
 * error, so that it must survive; UINT64_MAX where it was not. */
void history_edit(
    struct history *history, const struct schema *schema, uint64_t seq);

/* The seq of step number k. */
uint64_t history_seq(const struct history *history, size_t k);

/* What is found afterwards. */
struct history_found {
    const struct schema *schema;
    /* of the cell of id number i in the column of that serial */
    uint64_t (*value_fn)(void *context, uint32_t serial, size_t i);
    void *context;
};

/* NULL, or what is wrong. At least the first n_steps must be there. Where
 * nothing is wrong and is_new, the history begins anew with what was found. */
const char *history_judge(struct history *history, size_t n_steps,
    const struct history_found *found, bool is_new);

#endif

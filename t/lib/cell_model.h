/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_CELL_MODEL_H
#define LIB_CELL_MODEL_H

#include "engine/cell.h"
#include "lib/dist.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an engine should hold of one counter, slow and obvious: a sorted array
 * of all ids that a test uses and the 16 values of each. It judges what an
 * engine answers, and makes random changes for it. No engine in it. */

enum { CELL_MODEL_NONE = -1 };

struct cell_model {
    struct schema_counter def;
    size_t n;
    uint64_t *id;                          /* [n], ascending; owned */
    uint64_t (*value)[SCHEMA_COLUMNS_MAX]; /* [n], by slot; owned */
    size_t records;                        /* ids that have one */
    uint64_t largest;                      /* id that has had one */
    bool has_largest;
    uint32_t last_serial;
    uint32_t old_serial; /* of a dropped column, 0: none yet */
    uint8_t old_slot;
};

/* How random changes are made. */
struct cell_mood {
    unsigned value_bits;   /* 1..64: what is set has mostly no more */
    unsigned resets_of_16; /* so many of 16 changes reset the whole record */
    unsigned climbs_of_16; /* so many of 16 double a value, or more */
    bool has_stale;        /* some changes name a dropped column */
};

/* A counter without columns, and n ids of a family (lib/id_family.h). */
void cell_model_init(struct cell_model *model, unsigned slot, unsigned family,
    uint64_t seed, size_t n);
void cell_model_fini(struct cell_model *model);

/* Forgets all records, columns stay: drop and re-add of the counter. */
void cell_model_clear(struct cell_model *model);

/* The place of id, or CELL_MODEL_NONE. */
ptrdiff_t cell_model_find(const struct cell_model *model, uint64_t id);

/* The column in a slot, or NULL. */
const struct schema_column *cell_model_column(
    const struct cell_model *model, unsigned slot);

/* Adds a column of random attributes in a random free slot; n_columns < 16. */
struct schema_column *cell_model_add_column(
    struct cell_model *model, struct dist_rng *rng);

/* Drops column i of the definition and its values. */
void cell_model_drop_column(struct cell_model *model, unsigned i);

/* Gives column i a new serial and a new default, in its old slot. */
void cell_model_renew_column(
    struct cell_model *model, unsigned i, struct dist_rng *rng);

/* Drops, adds or renews a random column, of which there is one; the last two
 * are not dropped. */
void cell_model_redefine(struct cell_model *model, struct dist_rng *rng);

/* What reading key must give. key->counter is the model's. */
enum cell_state cell_model_get(const struct cell_model *model,
    const struct cell_key *key, uint64_t *value_out);

/* A random change of id number i. */
void cell_model_random_change(const struct cell_model *model,
    struct dist_rng *rng, const struct cell_mood *mood, size_t i,
    struct change *out);

/* Judges a change of id number i that the engine has done, and does it in the
 * model, if it was done. NULL when all is right, else what is wrong. may_fail:
 * ERR_NO_MEMORY and ERR_HOT_FULL are right, but for changes that only reset.
 * Where an id is beyond maxjump a change that would make no record, or that
 * has another fault, may say so or not. */
const char *cell_model_judge(struct cell_model *model, size_t i,
    const struct change *done, bool may_fail);

#endif

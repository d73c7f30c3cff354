/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_COVER_HELP_H
#define UNIT_COVER_HELP_H

/* An engine beside a cold tier of which there is only what it says of ids: one
 * range is covered, or none. There is one shard, so a row is an id. */

#include "engine/cover.h"
#include "lib/fault_alloc.h"
#include "lib/replica.h"
#include "unit/engine_help.h"

enum { SLOT = 7, COLUMNS = 3, VERSION = 5, MANY = 1000, TABLE_RECORDS = 64 };

struct rig {
    struct engine_cover cover; /* first: the seam */
    uint64_t version;          /* of ids first..last; 0: none */
    uint64_t first, last;
    struct engine *engine;
    struct fault_alloc fault;
    struct journal journal;
    struct schema_counter def;
    struct engine_rows rows;
    struct engine_base base;
    /* what publish does: */
    uint64_t next_version;
    unsigned publications;
    size_t n_told; /* by then */
};

static inline uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    const struct rig *rig = (const struct rig *)cover;
    ck_assert(slot == SLOT && shard == 0);
    return row >= rig->first && row <= rig->last ? rig->version : 0;
}

static inline bool
is_any_covered(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    const struct rig *rig = (const struct rig *)cover;
    ck_assert(slot == SLOT && shard == 0);
    return rig->version != 0 && first_row <= rig->last &&
        last_row >= rig->first;
}

static inline void
rig_define(struct rig *rig)
{
    ck_assert_int_eq(engine_define(rig->engine, &rig->def), 0);
}

static inline void
rig_init_tables(struct rig *rig, uint64_t hot_bytes, bool is_counted,
    unsigned table_records)
{
    memset(rig, 0, sizeof *rig);
    fault_alloc_init(&rig->fault);
    struct engine_config config = {.shards = 1,
        .seed = 1,
        .hot_bytes = hot_bytes,
        .alloc = is_counted ? &rig->fault.alloc : NULL,
        .table_records_max = table_records};
    rig->engine = engine_of(&config);
    rig->rows.alloc = config.alloc;
    rig->cover = (struct engine_cover){
        .version_fn = version_of, .any_fn = is_any_covered};
    rig->next_version = VERSION + 1;
    rig->def = plain_counter(SLOT, COLUMNS);
    rig->def.column[2].default_value = 5;
    journal_init(&rig->journal);
    engine_set_sink(rig->engine, &rig->journal.sink);
    engine_set_cover(rig->engine, &rig->cover);
    rig_define(rig);
}

static inline void
rig_init_of(struct rig *rig, uint64_t hot_bytes, bool is_counted)
{
    rig_init_tables(rig, hot_bytes, is_counted, TABLE_RECORDS);
}

static inline void
rig_init(struct rig *rig)
{
    rig_init_of(rig, ROOMY_BYTES, false);
}

static inline void
rig_fini(struct rig *rig)
{
    engine_rows_fini(&rig->rows);
    finish_engine(&rig->engine);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
    journal_fini(&rig->journal);
}

static inline void
cover(struct rig *rig, uint64_t first, uint64_t last, uint64_t version)
{
    rig->first = first;
    rig->last = last;
    rig->version = version;
}

/* The record of the segment: values 10, 20 and, zigzag from 5, 30. */
static inline const struct engine_base *
base_of(struct rig *rig, uint64_t version, bool is_there)
{
    rig->base = (struct engine_base){.version = version,
        .is_there = is_there,
        .n_columns = 4,
        .serial = {3, 99, 1, 2}, /* in any order, one of them unknown */
        .code = {2 * (30 - 5), 77, 10, 20}};
    return &rig->base;
}

/* Does a change of the first n columns with a base, which is made one of that
 * id; NULL: none. Returns err. */
static inline int
change_with(struct rig *rig, enum change_op op, uint64_t id, unsigned n,
    uint64_t operand, const struct engine_base *base)
{
    struct change change = change_of(&rig->def, op, id, n, operand);
    struct engine_base of_id;
    if (base != NULL) {
        of_id = *base;
        of_id.id = id;
        change.base = &of_id;
    }
    engine_change(rig->engine, &change, 1);
    return change.err;
}

static inline void
set(struct rig *rig, uint64_t id, uint64_t value)
{
    ck_assert_int_eq(
        change_with(rig, CHANGE_SET, id, COLUMNS, value, NULL), 0);
}

static inline struct engine_found
look(struct rig *rig, uint64_t id, uint64_t *value)
{
    struct cell_key key[COLUMNS];
    uint8_t state[COLUMNS];
    struct engine_found found;
    for (unsigned k = 0; k < COLUMNS; k++) {
        key[k] = key_of(&rig->def, k, id);
    }
    engine_look(rig->engine, key, COLUMNS, value, state, &found);
    for (unsigned k = 0; k < COLUMNS; k++) {
        expect_value(rig->engine, &rig->def, k, id, value[k]);
        ck_assert_int_eq(state[k],
            value[k] == rig->def.column[k].default_value ? CELL_DEFAULT
                                                         : CELL_SET);
    }
    return found;
}

static inline void
expect_here(struct rig *rig, uint64_t id, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t value[COLUMNS];
    struct engine_found found = look(rig, id, value);
    ck_assert_uint_eq(found.is_here, true);
    ck_assert_uint_eq(value[0], a);
    ck_assert_uint_eq(value[1], b);
    ck_assert_uint_eq(value[2], c);
}

static inline void
expect_absent(struct rig *rig, uint64_t id, uint64_t version)
{
    uint64_t value[COLUMNS];
    struct engine_found found = look(rig, id, value);
    ck_assert_uint_eq(found.is_here, false);
    ck_assert_uint_eq(found.version, version);
    ck_assert_uint_eq(value[0], 0);
    ck_assert_uint_eq(value[2], 5);
}

static inline uint64_t
records(struct rig *rig)
{
    return sum_of(rig->engine, SLOT).records;
}

#endif

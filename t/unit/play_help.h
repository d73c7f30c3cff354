/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_PLAY_HELP_H
#define UNIT_PLAY_HELP_H

/* What the tests of the meaning of changes share: a counter of two columns, and
 * scripts of changes that are played for several ids. */

#include "unit/engine_help.h"

enum { SLOT = 3, SMALL = 0, LARGE = 5, RECORDS_MAX = 64 };

/* Ids whose places differ most. */
static const uint64_t PLAY_IDS[] = {
    1234, 0, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(400000000) << 22};

/* Counter in slot 3: a column of 8 bits with default 0, one of 64 bits with
 * default 100. Serials are 10 and 11. */
static inline struct schema_counter
two_columns(void)
{
    struct schema_counter def = {.slot = SLOT, .serial = 1, .n_columns = 2};
    def.column[0] = (struct schema_column){
        .serial = 10, .slot = SMALL, .hint_bits = 8, .max_bits = 8};
    def.column[1] = (struct schema_column){.serial = 11,
        .slot = LARGE,
        .hint_bits = 16,
        .max_bits = 64,
        .default_value = 100};
    return def;
}

static inline struct engine *
make_engine(const struct schema_counter *def)
{
    struct engine *engine = small_engine(4, RECORDS_MAX);
    ck_assert_int_eq(engine_define(engine, def), 0);
    return engine;
}

static inline struct change
one(enum change_op op, unsigned slot, uint64_t operand)
{
    return (struct change){.op = op,
        .counter = SLOT,
        .n_columns = 1,
        .column = {(uint8_t)slot},
        .serial = {slot == SMALL ? 10 : 11},
        .operand = {operand}};
}

static inline struct change
both(enum change_op op, uint64_t small, uint64_t large)
{
    return (struct change){.op = op,
        .counter = SLOT,
        .n_columns = 2,
        .column = {LARGE, SMALL},
        .serial = {11, 10},
        .operand = {large, small}};
}

static inline struct change
cas(unsigned slot, uint64_t operand, uint64_t unique)
{
    struct change change = one(CHANGE_CAS, slot, operand);
    change.cas = unique;
    return change;
}

static inline void
check_cells(struct engine *engine, uint64_t id, uint64_t small, uint64_t large)
{
    const struct cell_key key[] = {
        {.id = id, .serial = 10, .counter = SLOT, .column = SMALL},
        {.id = id, .serial = 11, .counter = SLOT, .column = LARGE}};
    uint64_t value[2];
    uint8_t state[2];
    engine_get(engine, key, 2, value, state);
    ck_assert_uint_eq(value[0], small);
    ck_assert_uint_eq(value[1], large);
    ck_assert_int_eq(state[0], small == 0 ? CELL_DEFAULT : CELL_SET);
    ck_assert_int_eq(state[1], large == 100 ? CELL_DEFAULT : CELL_SET);
    bool is_record = small != 0 || large != 100;
    ck_assert_uint_eq(sum_of(engine, SLOT).records, is_record);
    engine_verify(engine);
}

/* A script: each line does one change, expects its err, and then the cells. */
struct line {
    struct change change;
    int err;
    uint8_t n_saturated;
    uint64_t small, large;
};

static inline void
play_id(struct engine *engine, uint64_t id, const struct line *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct change change = line[i].change;
        change.id = id;
        change.err = -1;
        change.n_saturated = 99;
        engine_change(engine, &change, 1);
        if (change.err != line[i].err) {
            ck_abort_msg("line %zu: %s", i, err_text(change.err));
        }
        ck_assert_uint_eq(change.n_saturated, line[i].n_saturated);
        for (unsigned k = 0; change.err == 0 && k < change.n_columns; k++) {
            bool is_small = change.column[k] == SMALL;
            ck_assert_uint_eq(
                change.value[k], is_small ? line[i].small : line[i].large);
        }
        check_cells(engine, id, line[i].small, line[i].large);
    }
}

/* The script for each id in turn; its last line is followed by a reset. */
static inline void
play(struct engine *engine, const struct line *line, size_t n)
{
    for (size_t i = 0; i < COUNT_OF(PLAY_IDS); i++) {
        struct change reset = both(CHANGE_DELETE, 0, 0);
        play_id(engine, PLAY_IDS[i], line, n);
        reset.id = PLAY_IDS[i];
        engine_change(engine, &reset, 1);
        check_cells(engine, PLAY_IDS[i], 0, 100);
    }
}

#define PLAY(engine, lines) play(engine, lines, COUNT_OF(lines))

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_TABLE_HELP_H
#define UNIT_TABLE_HELP_H

/* What the tests of engine/table, build and ranges share: what a table needs
 * of its shard, and what it should hold, as a plain array. */

#include "base/err.h"
#include "engine/table.h"
#include "engine/table_each.h"
#include "lib/fault_alloc.h"
#include "unit/check_help.h"

#include <check.h>

/* No test reaches it by accident. */
#define TABLE_RIG_BYTES (UINT64_C(1) << 30)

struct table_rig {
    struct fault_alloc fault; /* all memory is from it */
    struct pool pool;         /* without readers: garbage goes at once */
    struct perm perm;
    struct stripes stripes;
    struct table_owner owner;
    uint64_t n_rewritten; /* changes that table_rewrite was enough for */
    uint64_t n_reshaped;  /* other shapes that table_rewrite_cell has given */
    uint64_t n_flipped;   /* codes in a stash that it has changed */
};

/* The rig must stay where it is. */
static inline void
table_rig_init(struct table_rig *rig, uint64_t seed, bool has_stripes)
{
    fault_alloc_init(&rig->fault);
    rig->n_rewritten = rig->n_reshaped = rig->n_flipped = 0;
    ck_assert_int_eq(
        pool_init(&rig->pool, &rig->fault.alloc, NULL, TABLE_RIG_BYTES), 0);
    rig->perm = perm_make(seed);
    memset(&rig->stripes, 0, sizeof rig->stripes);
    rig->owner = (struct table_owner){.pool = &rig->pool,
        .perm = &rig->perm,
        .stripes = has_stripes ? &rig->stripes : NULL};
}

/* Nothing may be left. */
static inline void
table_rig_fini(struct table_rig *rig)
{
    ck_assert_uint_eq(atomic_load(&rig->pool.used_bytes), 0);
    pool_fini(&rig->pool);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
}

enum { MODEL_ROWS_MAX = 1 << 15 };

/* Rows, ascending, and what is stored for each: all 0 is no record. */
struct table_model {
    size_t n;
    size_t n_records;
    uint64_t *row;
    uint64_t (*code)[SHAPES_COLUMNS_MAX];
};

static inline void
table_model_init(struct table_model *model, size_t n)
{
    ck_assert_uint_le(n, MODEL_ROWS_MAX);
    *model = (struct table_model){.n = n,
        .row = calloc(n, sizeof *model->row),
        .code = calloc(n, sizeof *model->code)};
    ck_assert(model->row != NULL && model->code != NULL);
}

static inline void
table_model_fini(struct table_model *model)
{
    free(model->row);
    free(model->code);
}

static inline int
compare_rows(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Puts the rows in order and leaves out what is there twice. */
static inline void
table_model_sort(struct table_model *model)
{
    size_t n = 0;
    qsort(model->row, model->n, sizeof *model->row, compare_rows);
    for (size_t i = 0; i < model->n; i++) {
        if (n == 0 || model->row[n - 1] != model->row[i]) {
            model->row[n++] = model->row[i];
        }
    }
    model->n = n;
}

static inline bool
code_is_empty(const uint64_t *code)
{
    uint64_t any = 0;
    for (int i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        any |= code[i];
    }
    return any == 0;
}

/* What row i holds from now on. */
static inline void
table_model_set(struct table_model *model, size_t i, const uint64_t *code)
{
    model->n_records -= !code_is_empty(model->code[i]);
    memcpy(model->code[i], code, sizeof model->code[i]);
    model->n_records += !code_is_empty(code);
}

/* The place of a row; it is there. */
static inline size_t
table_model_find(const struct table_model *model, uint64_t row)
{
    const uint64_t *at =
        bsearch(&row, model->row, model->n, sizeof *model->row, compare_rows);
    if (at == NULL) {
        ck_abort_msg("unknown row %llx", (unsigned long long)row);
    }
    return (size_t)(at - model->row);
}

/* Codes for the columns of a mask: each has up to bits bits, and is 0 with a
 * chance of one in three. Never all 0. */
static inline void
random_codes(uint64_t *random, uint32_t columns, unsigned bits, uint64_t *code)
{
    memset(code, 0, SHAPES_COLUMNS_MAX * sizeof *code);
    for (uint32_t rest = columns; rest != 0; rest &= rest - 1) {
        if (random_below(random, 3) > 0) {
            unsigned width = 1 + (unsigned)random_below(random, bits);
            code[__builtin_ctz(rest)] =
                random_below(random, UINT64_MAX) >> (64 - width);
        }
    }
    if (code_is_empty(code)) {
        code[__builtin_ctz(columns)] = 1;
    }
}

struct each_of_model {
    const struct table_model *model;
    size_t n;
    uint8_t *seen;
};

static inline void
expect_each(void *context, uint64_t row, const uint64_t *code)
{
    struct each_of_model *each = context;
    size_t i = table_model_find(each->model, row);
    const uint64_t *expected = each->model->code[i];
    if (each->seen[i] != 0 ||
        memcmp(code, expected, sizeof each->model->code[i]) != 0) {
        ck_abort_msg("row %llx comes wrong", (unsigned long long)row);
    }
    each->seen[i] = 1;
    each->n++;
}

/* The table must hold just that. */
static inline void
expect_table(const struct table_rig *rig, const struct table *table,
    const struct table_model *model)
{
    struct each_of_model each = {.model = model, .seen = calloc(model->n, 1)};
    struct table_spot spot;
    table_verify(&rig->owner, table);
    ck_assert_uint_eq(table->n_records, model->n_records);
    for (size_t i = 0; i < model->n; i++) {
        table_find(&rig->owner, table, model->row[i], &spot);
        if ((spot.where == TABLE_NOWHERE) != code_is_empty(model->code[i]) ||
            spot.row != model->row[i] ||
            memcmp(spot.record.code, model->code[i], sizeof model->code[i]) !=
                0) {
            ck_abort_msg(
                "row %llx is wrong", (unsigned long long)model->row[i]);
        }
    }
    table_each(&rig->owner, table, expect_each, &each);
    ck_assert_uint_eq(each.n, model->n_records);
    free(each.seen);
}

#endif

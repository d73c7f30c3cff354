/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/table: random changes against a plain array, for every width of the
 * range, in tables that become full; what stays where it is, what is far or in
 * the stash; nothing changed where something failed; sequence counters even
 * again, and moved for every line that was written. Each test is run with a set
 * of 16 shapes, and with a single one. */
#include "engine/table.h"
#include "engine/table_each.h"

#include "engine/edits.h"
#include "engine/table_change.h"
#include "engine/table_place.h"
#include "unit/table_help.h"

#include <stdio.h>

enum { COLUMNS = 0x7, HINT_BITS = 6, SUM_BITS_MAX = 240 };

/* Which sets a test makes. */
static bool is_single;

/* A set for three columns in such a table; the caller's. */
static struct shapes_set *
make_set(struct table_rig *rig, unsigned width, uint32_t n_lines)
{
    static const uint8_t hint_bits[SHAPES_COLUMNS_MAX] = {
        HINT_BITS, HINT_BITS, HINT_BITS};
    static const uint64_t code[SHAPES_COLUMNS_MAX] = {
        1 << (HINT_BITS - 1), 1 << (HINT_BITS - 1), 1 << (HINT_BITS - 1)};
    unsigned bits_max =
        SUM_BITS_MAX - table_extra_bits(width, n_lines, is_single);
    struct shapes shapes;
    struct shapes_set *set;
    shapes_from_hints(&shapes, hint_bits, COLUMNS, bits_max);
    if (is_single) {
        struct shapes_sample sample;
        struct shapes_need need = shapes_need_all(code);
        shapes_sample_init(&sample);
        shapes_sample_add(&sample, &need);
        shapes_train_single(&shapes, &sample, COLUMNS, bits_max);
    }
    ck_assert_int_eq(
        shapes_set_create(&rig->pool, &shapes, POOL_NEW, &set), 0);
    return set;
}

static struct table *
make_table(
    struct table_rig *rig, uint64_t base, unsigned width, uint32_t n_lines)
{
    struct table *table;
    struct shapes_set *set = make_set(rig, width, n_lines);
    ck_assert_int_eq(
        table_create(&rig->pool, base, width, n_lines, set, POOL_NEW, &table),
        0);
    shapes_set_drop(&rig->pool, set);
    return table;
}

/* How a table, its lines and its sequence counters were. */
struct before {
    struct stripes stripes;
    uint64_t moves, used_bytes;
    uint32_t n_lines;
    struct line_copy *line;
    struct table head; /* last: it ends in a table's pieces */
};

static void
before_init(struct before *before, const struct table_rig *rig,
    const struct table *table)
{
    before->head = *table;
    before->stripes = rig->stripes;
    before->moves = rig->owner.moves;
    before->used_bytes = atomic_load(&rig->pool.used_bytes);
    before->n_lines = table->n_lines;
    before->line = calloc(table->n_lines, sizeof *before->line);
    for (uint32_t i = 0; i < table->n_lines; i++) {
        line_load(table_line(table, i), &before->line[i]);
    }
}

/* Lines differ from before only where their counter has moved on; all counters
 * are even. is_same: nothing may differ at all. */
static void
before_check(const struct before *before, const struct table_rig *rig,
    const struct table *table, bool is_same)
{
    struct line_copy copy;
    for (uint32_t i = 0; i < table->n_lines; i++) {
        uint32_t at = i % TABLE_STRIPES;
        uint32_t was = before->stripes.line[at];
        uint32_t now = rig->stripes.line[at];
        line_load(table_line(table, i), &copy);
        bool differs = memcmp(&copy, &before->line[i], sizeof copy) != 0;
        bool has_moved = now != was || rig->owner.stripes == NULL;
        if (now % 2 != 0 || (differs && (is_same || !has_moved))) {
            ck_abort_msg("line %u is not as it should be", i);
        }
    }
    ck_assert_uint_eq(rig->stripes.stash % 2, 0);
    if (is_same) {
        ck_assert_mem_eq(&before->head, table, sizeof before->head);
        ck_assert_uint_eq(before->moves, rig->owner.moves);
        ck_assert_uint_eq(
            before->used_bytes, atomic_load(&rig->pool.used_bytes));
    }
}

static void
before_fini(struct before *before)
{
    free(before->line);
}

/* True where a record's shape stays: no code is shorter, all are within their
 * fields. Whether it is a tombstone is not asked for, there are none. */
static bool
keeps_shape(const struct table *table, const struct table_spot *spot,
    const uint64_t *code)
{
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        unsigned bits = shapes_bits(code[i]);
        if (bits < shapes_bits(spot->record.code[i]) ||
            bits > table->form.shapes->field[i][spot->record.shape].width) {
            return false;
        }
    }
    return true;
}

/* As the engine does: in place if that will do. */
static int
rewrite_or_put(struct table_rig *rig, struct table *table,
    const struct table_spot *spot, const uint64_t *code)
{
    bool is_easy = spot->where == TABLE_LINE && keeps_shape(table, spot, code);
    bool is_done = table_rewrite(&rig->owner, table, spot, code, UINT16_MAX);
    ck_assert_int_eq(is_done, is_easy);
    rig->n_rewritten += is_done;
    return is_done ? 0 : table_put(&rig->owner, table, spot, code, POOL_NEW);
}

/* Gives one column of row i another code as the engine counts: where the
 * record stays where it is; false, and nothing has changed, else. */
static bool
put_cell(struct table_rig *rig, struct table *table, struct table_model *model,
    size_t i, unsigned column, uint64_t value)
{
    struct table_spot whole;
    struct table_cell cell;
    struct before before;
    uint64_t code[SHAPES_COLUMNS_MAX];
    memcpy(code, model->code[i], sizeof code);
    table_find(&rig->owner, table, model->row[i], &whole);
    struct line_pair pair = table_pair(table, rig->owner.perm, whole.row);
    ck_assert_uint_eq(pair.number[0], whole.place.line_1);
    ck_assert_uint_eq(pair.number[1], whole.place.line_2);
    bool is_found = table_seek_cell(table, whole.row, &pair, column, &cell);
    ck_assert_int_eq(is_found,
        whole.where == TABLE_LINE ||
            (whole.where == TABLE_STASH && code[column] != 0));
    if (!is_found) {
        return false;
    }
    ck_assert_int_eq(cell.is_stashed, whole.where == TABLE_STASH);
    ck_assert_uint_eq(cell.code, code[column]);
    bool is_shorter = shapes_bits(value) < shapes_bits(code[column]);
    bool is_longer = shapes_bits(value) > shapes_bits(code[column]);
    code[column] = value;
    struct shapes_need need = shapes_need_all(code);
    int shape = shapes_fit(table->form.shapes, &need);
    if (shape >= 0) {
        shape = (int)line_shape(
            &table->form, whole.place.remainder, (unsigned)shape);
    }
    before_init(&before, rig, table);
    bool is_done =
        table_rewrite_cell(&rig->owner, table, &pair, &cell, column, value);
    before_check(&before, rig, table, !is_done);
    before_fini(&before);
    if (cell.is_stashed || is_shorter || !is_longer) {
        ck_assert_int_eq(
            is_done, !is_shorter && !(cell.is_stashed && is_longer));
    } else {
        ck_assert(is_done || shape != whole.record.shape);
        ck_assert(!is_done || shape >= 0);
        rig->n_reshaped += is_done && shape != whole.record.shape;
    }
    rig->n_flipped += is_done && cell.is_stashed;
    if (is_done) {
        table_model_set(model, i, code);
    }
    return is_done;
}

/* Gives row i these codes, in both, if the table takes them. */
static int
put(struct table_rig *rig, struct table *table, struct table_model *model,
    size_t i, const uint64_t *code)
{
    struct table_spot spot;
    struct before before;
    table_find(&rig->owner, table, model->row[i], &spot);
    ck_assert_mem_eq(spot.record.code, model->code[i], sizeof model->code[i]);
    before_init(&before, rig, table);
    int err = i % 2 == 0
        ? rewrite_or_put(rig, table, &spot, code)
        : table_put(&rig->owner, table, &spot, code, POOL_NEW);
    before_check(&before, rig, table, err != 0);
    before_fini(&before);
    if (err == 0) {
        table_model_set(model, i, code);
    }
    return err;
}

static void
take_out(struct table_rig *rig, struct table *table, struct table_model *model,
    size_t i)
{
    static const uint64_t none[SHAPES_COLUMNS_MAX];
    struct table_spot spot;
    struct before before;
    table_find(&rig->owner, table, model->row[i], &spot);
    ck_assert_int_ne(spot.where, TABLE_NOWHERE);
    before_init(&before, rig, table);
    table_remove(&rig->owner, table, &spot);
    before_check(&before, rig, table, false);
    before_fini(&before);
    table_model_set(model, i, none);
}

/* Up to n rows of the range: its ends, and some in between. */
static void
choose_rows(struct table_model *model, const struct table *table, size_t n,
    uint64_t *random)
{
    table_model_init(model, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t at = i == 0 ? 0
            : i == 1         ? table->mask
                             : random_below(random, UINT64_MAX) & table->mask;
        model->row[i] = table->base + at;
    }
    table_model_sort(model);
}

/* What was met on the way. */
struct met {
    unsigned rewritten, reshaped, flipped;
    unsigned far, moves, full, narrow, misfit, wide;
};

static void
meet(struct met *met, const struct table_rig *rig, const struct table *table,
    int err)
{
    met->rewritten += rig->n_rewritten > 0;
    met->reshaped += rig->n_reshaped > 0;
    met->flipped += rig->n_flipped > 0;
    met->far += table->n_far > 0;
    met->moves += rig->owner.moves > 0;
    met->full += err == TABLE_FULL;
    met->narrow += table->n_stash[TABLE_NARROW] > 0;
    met->misfit += table->n_stash[TABLE_MISFIT] > 0;
    met->wide += table->n_stash[TABLE_WIDE] > 0;
}

/* One random change of a random row: mostly small numbers in the columns of
 * the set, now and then a wide one or another column. */
static int
change_one(struct table_rig *rig, struct table *table,
    struct table_model *model, uint64_t *random, unsigned bits)
{
    size_t i = random_below(random, model->n);
    uint64_t code[SHAPES_COLUMNS_MAX];
    unsigned dice = (unsigned)random_below(random, 200);
    if (!code_is_empty(model->code[i]) && dice < 50) {
        take_out(rig, table, model, i);
        return 0;
    }
    random_codes(random, COLUMNS, bits, code);
    if (dice >= 140 && !code_is_empty(model->code[i])) {
        unsigned column = (unsigned)random_below(random, 3);
        uint64_t was = model->code[i][column];
        /* a count up, and anything else that is not 0 */
        uint64_t value =
            dice < 190 ? was + random_below(random, 4) : code[0] | 1;
        if (put_cell(rig, table, model, i, column, value)) {
            return 0;
        }
        memcpy(code, model->code[i], sizeof code);
        code[column] = value;
        if (code_is_empty(code)) {
            return 0;
        }
    }
    if (dice == 50) {
        random_codes(random, UINT16_MAX, 64, code);
    } else if (dice == 51) {
        random_codes(random, 0x11, 7, code);
    } else if (dice == 52) {
        random_codes(random, COLUMNS, 64, code);
    }
    return put(rig, table, model, i, code);
}

/* The range of a table of that width at one of some places. */
static uint64_t
some_base(uint64_t *random, unsigned w)
{
    uint64_t place = random_below(random, 3);
    uint64_t at = place == 0 ? 0
        : place == 1         ? UINT64_MAX
                             : random_below(random, UINT64_MAX);
    return at & ~perm_mask(w);
}

static void
run_random(unsigned w, uint32_t n_lines, unsigned bits, uint64_t seed,
    struct met *met)
{
    enum { CHANGES = 1500 };
    struct table_rig rig;
    struct table_model model;
    uint64_t random = seed;
    table_rig_init(&rig, seed, seed % 2 == 0);
    struct table *table = make_table(&rig, some_base(&random, w), w, n_lines);
    table->n_misfits_max = 3;
    choose_rows(&model, table, n_lines * 16, &random);
    for (int i = 0; i < CHANGES; i++) {
        int err = change_one(&rig, table, &model, &random, bits);
        ck_assert(err == 0 || err == TABLE_FULL);
        meet(met, &rig, table, err);
        if (i % 500 == 0) {
            expect_table(&rig, table, &model);
        }
    }
    expect_table(&rig, table, &model);
    table_destroy(&rig.pool, &table);
    ck_assert_ptr_null(table);
    table_model_fini(&model);
    table_rig_fini(&rig);
}

START_TEST(test_every_width)
{
    is_single = _i == 1;
    static const uint32_t lines[] = {2, 4, 16, 132};
    struct met met = {0};
    for (unsigned w = 1; w <= 64; w++) {
        for (size_t i = 0; i + (w % 8 != 0) < COUNT_OF(lines); i++) {
            run_random(w, lines[i], HINT_BITS, w * 10 + i, &met);
        }
    }
    ck_assert_uint_gt(met.rewritten, 0);
    ck_assert_int_eq(met.reshaped > 0, !is_single);
    ck_assert_uint_gt(met.flipped, 0);
    ck_assert_uint_gt(met.far, 0);
    ck_assert_uint_gt(met.moves, 0);
    ck_assert_uint_gt(met.full, 0);
    ck_assert_uint_gt(met.narrow, 0);
    ck_assert_uint_gt(met.misfit, 0);
    ck_assert_uint_gt(met.wide, 0);
}
END_TEST

/* Nearly everything refused, stored over, or taken out again. */
START_TEST(test_wide_codes)
{
    is_single = _i == 1;
    struct met met = {0};
    for (unsigned bits = 1; bits <= 64; bits += 7) {
        run_random(40, 16, bits, bits, &met);
    }
    ck_assert_uint_gt(met.full, 0);
    ck_assert_uint_gt(met.far, 0);
}
END_TEST

/* Puts rows from i on, of one small number, until one is refused; returns
 * which. */
static size_t
fill(struct table_rig *rig, struct table *table, struct table_model *model,
    size_t i)
{
    const uint64_t code[SHAPES_COLUMNS_MAX] = {5, 9, 3};
    for (; i < model->n; i++) {
        int err = put(rig, table, model, i, code);
        if (err != 0) {
            ck_assert_int_eq(err, TABLE_FULL);
            return i;
        }
    }
    ck_abort_msg("never full");
    return 0;
}

static double
load_of(const struct table *table)
{
    return (double)table->used_bits /
        ((double)table->n_lines * LINE_USABLE_BITS);
}

/* Records of one size fill a table to the last few per cent before it is
 * called full, and what is there can still be changed and removed. */
START_TEST(test_full)
{
    is_single = _i == 1;
    const uint64_t other[SHAPES_COLUMNS_MAX] = {1, 1, 1};
    struct table_rig rig;
    struct table_model model;
    uint64_t random = 7;
    table_rig_init(&rig, 7, true);
    struct table *table = make_table(&rig, UINT64_C(5) << 30, 30, 128);
    choose_rows(&model, table, 128 * LINE_RECORDS_MAX, &random);
    size_t n = fill(&rig, table, &model, 0);
    ck_assert_uint_eq(table->n_records, n);
    printf("# full at %.3f, far %.3f, stash %.4f\n", load_of(table),
        (double)table->n_far / (double)n,
        (double)table->n_stash[TABLE_NARROW] / (double)n);
    ck_assert(load_of(table) > 0.93);
    ck_assert_uint_gt(table->n_far, n / 50);
    ck_assert_uint_gt(table->n_stash[TABLE_NARROW], 0);
    ck_assert_uint_le(
        (uint64_t)table->n_stash[TABLE_NARROW] * TABLE_STASH_SHARE, n);
    expect_table(&rig, table, &model);
    /* where two may be moved for one it takes more, and not to the stash */
    unsigned n_stash = table->n_stash[TABLE_NARROW];
    rig.owner.is_thorough = true;
    size_t more = fill(&rig, table, &model, n);
    ck_assert_uint_gt(more, n + n / 100);
    ck_assert_uint_le(table->n_stash[TABLE_NARROW], n_stash + 1);
    expect_table(&rig, table, &model);
    rig.owner.is_thorough = false;
    n = more;
    for (size_t i = 0; i < n; i += 3) {
        ck_assert_int_eq(put(&rig, table, &model, i, other), 0);
    }
    expect_table(&rig, table, &model);
    for (size_t i = 0; i < n; i++) {
        take_out(&rig, table, &model, i);
    }
    ck_assert_uint_eq(table->n_records, 0);
    ck_assert_uint_eq(table->used_bits, 0);
    expect_table(&rig, table, &model);
    table_destroy(&rig.pool, &table);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* Mask bits that stand for nothing: those set, less those that a far record
 * or one in the stash asks for. */
struct needed {
    const struct table_rig *rig;
    const struct table *table;
    uint16_t *mask;
};

static void
note_needed(void *context, uint64_t row, const uint64_t *code)
{
    struct needed *needed = context;
    struct table_spot spot;
    (void)code;
    table_find(&needed->rig->owner, needed->table, row, &spot);
    uint16_t bit = (uint16_t)(1 << spot.place.bit);
    if (spot.where == TABLE_STASH || spot.record.is_far) {
        needed->mask[spot.place.line_1] |= bit;
    }
    if (spot.where == TABLE_STASH) {
        needed->mask[spot.place.line_2] |= bit;
    }
}

static unsigned
count_stale(const struct table_rig *rig, const struct table *table)
{
    struct needed needed = {
        rig, table, calloc(table->n_lines, sizeof *needed.mask)};
    unsigned n = 0;
    table_each(&rig->owner, table, note_needed, &needed);
    for (uint32_t i = 0; i < table->n_lines; i++) {
        struct line_copy copy;
        line_load(table_line(table, i), &copy);
        unsigned set = (unsigned)(copy.word[0] & UINT16_MAX);
        ck_assert_uint_eq(needed.mask[i] & ~set, 0);
        n += (unsigned)__builtin_popcount(set & ~(unsigned)needed.mask[i]);
    }
    free(needed.mask);
    return n;
}

/* How many records are in the stash, by kind. */
static void
expect_stash(
    const struct table *table, unsigned narrow, unsigned misfit, unsigned wide)
{
    ck_assert_uint_eq(table->n_stash[TABLE_NARROW], narrow);
    ck_assert_uint_eq(table->n_stash[TABLE_MISFIT], misfit);
    ck_assert_uint_eq(table->n_stash[TABLE_WIDE], wide);
}

/* A record goes from a line to the stash and back as its codes ask. */
START_TEST(test_kinds)
{
    is_single = _i == 1;
    const uint64_t small[SHAPES_COLUMNS_MAX] = {1, 2, 3};
    const uint64_t misfit[SHAPES_COLUMNS_MAX] = {1, 0, 0, 4};
    uint64_t wide[SHAPES_COLUMNS_MAX];
    struct table_rig rig;
    struct table_model model;
    uint64_t random = 8;
    memset(wide, 0xff, sizeof wide);
    table_rig_init(&rig, 8, true);
    struct table *table = make_table(&rig, 0, 20, 4);
    choose_rows(&model, table, 6, &random);
    table->n_misfits_max = 2;
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(put(&rig, table, &model, 0, small), 0);
        expect_stash(table, 0, 0, 0);
        ck_assert_int_eq(put(&rig, table, &model, 0, misfit), 0);
        expect_stash(table, 0, 1, 0);
        ck_assert_int_eq(put(&rig, table, &model, 1, misfit), 0);
        /* a third one asks for other shapes, new or not */
        ck_assert_int_eq(put(&rig, table, &model, 2, misfit), TABLE_FULL);
        ck_assert_int_eq(put(&rig, table, &model, 2, wide), 0);
        ck_assert_int_eq(put(&rig, table, &model, 0, wide), 0);
        expect_stash(table, 0, 1, 2);
        expect_table(&rig, table, &model);
        ck_assert_int_eq(put(&rig, table, &model, 2, misfit), 0);
        ck_assert_int_eq(put(&rig, table, &model, 2, small), 0);
        ck_assert_int_eq(put(&rig, table, &model, 1, small), 0);
        expect_stash(table, 0, 0, 1);
        take_out(&rig, table, &model, 0);
        take_out(&rig, table, &model, 1);
        take_out(&rig, table, &model, 2);
        expect_stash(table, 0, 0, 0);
        expect_table(&rig, table, &model);
        /* bits are left of when they were in the stash */
        ck_assert_uint_gt(count_stale(&rig, table), 0);
        ck_assert_uint_le(count_stale(&rig, table), table->n_stale);
    }
    table_destroy(&rig.pool, &table);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* Forgets columns in the model. */
static void
clear_model(struct table_model *model, uint32_t columns)
{
    uint64_t code[SHAPES_COLUMNS_MAX];
    for (size_t i = 0; i < model->n; i++) {
        for (unsigned k = 0; k < SHAPES_COLUMNS_MAX; k++) {
            code[k] = (columns >> k & 1) != 0 ? 0 : model->code[i][k];
        }
        table_model_set(model, i, code);
    }
}

START_TEST(test_clear)
{
    is_single = _i == 1;
    static const uint32_t columns[] = {
        0x1, 0x2, 0x4, 0x3, 0x7, 0xfff8, 0x10, 0xffff, 0};
    struct met met = {0};
    for (size_t k = 0; k < COUNT_OF(columns); k++) {
        struct table_rig rig;
        struct table_model model;
        uint64_t random = k;
        table_rig_init(&rig, k, true);
        struct table *table = make_table(&rig, 0, 24, 64);
        table->n_misfits_max = 50;
        choose_rows(&model, table, 1000, &random);
        for (int i = 0; i < 2500; i++) {
            int err = change_one(&rig, table, &model, &random, HINT_BITS);
            ck_assert(err == 0 || err == TABLE_FULL);
        }
        meet(&met, &rig, table, 0);
        struct before before;
        before_init(&before, &rig, table);
        ck_assert_int_eq(table_clear(&rig.owner, table, columns[k], NULL), 0);
        before_check(&before, &rig, table, columns[k] == 0);
        before_fini(&before);
        clear_model(&model, columns[k]);
        expect_table(&rig, table, &model);
        table_destroy(&rig.pool, &table);
        table_model_fini(&model);
        table_rig_fini(&rig);
    }
    ck_assert_uint_gt(met.far, 0);
    ck_assert_uint_gt(met.misfit, 0);
    ck_assert_uint_gt(met.wide, 0);
}
END_TEST

/* Removing and adding leaves bits behind; before they are 5 % of all the table
 * says so. */
START_TEST(test_worn_by_changes)
{
    is_single = _i == 1;
    struct table_rig rig;
    struct table_model model;
    uint64_t random = 10;
    unsigned rounds = 0;
    table_rig_init(&rig, 10, false);
    struct table *table = make_table(&rig, 0, 30, 64);
    choose_rows(&model, table, 64 * LINE_RECORDS_MAX, &random);
    size_t n = fill(&rig, table, &model, 0);
    for (size_t i = 0; i < n; i += 20) {
        take_out(&rig, table, &model, i);
    }
    ck_assert(!table_is_worn(table));
    while (!table_is_worn(table)) {
        const uint64_t code[SHAPES_COLUMNS_MAX] = {5, 9, 3};
        unsigned stale = count_stale(&rig, table);
        ck_assert_uint_le(stale, table->n_lines * LINE_MASK_BITS / 20);
        ck_assert_uint_le(stale, table->n_stale);
        size_t i = random_below(&random, n);
        if (code_is_empty(model.code[i]) || random_below(&random, 2) == 0) {
            (void)put(&rig, table, &model, i, code);
        } else {
            take_out(&rig, table, &model, i);
        }
        ck_assert_uint_lt(rounds++, 100000);
    }
    printf("# worn after %u changes, %u bits of %u\n", rounds,
        count_stale(&rig, table), table->n_lines * LINE_MASK_BITS);
    expect_table(&rig, table, &model);
    table_destroy(&rig.pool, &table);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* Too large a part of a table in its stash. */
START_TEST(test_worn_by_stash)
{
    is_single = _i == 1;
    struct table_rig rig;
    struct table_model model;
    uint64_t random = 11;
    table_rig_init(&rig, 11, false);
    struct table *table = make_table(&rig, 0, 30, 128);
    choose_rows(&model, table, 128 * LINE_RECORDS_MAX, &random);
    size_t n = fill(&rig, table, &model, 0);
    table->n_stale = 0;
    size_t left = n;
    for (size_t i = 0; i < n && !table_is_worn(table); i++) {
        struct table_spot spot;
        table_find(&rig.owner, table, model.row[i], &spot);
        if (spot.where == TABLE_LINE && !spot.record.is_far) {
            take_out(&rig, table, &model, i);
            left--;
        }
    }
    ck_assert(table_is_worn(table));
    ck_assert_uint_eq(table->n_stale, 0);
    uint64_t in_stash = table->n_stash[TABLE_NARROW];
    ck_assert_uint_gt(in_stash * TABLE_STASH_SHARE, left);
    ck_assert_uint_le((in_stash - 1) * TABLE_STASH_SHARE, left);
    table_destroy(&rig.pool, &table);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* Fails the n-th allocation of making a table of several pieces. */
START_TEST(test_create_out_of_memory)
{
    is_single = _i == 1;
    enum { LINES = 2 * TABLE_PIECE_LINES + 8 };
    struct table_rig rig;
    struct table *table = NULL;
    table_rig_init(&rig, 12, true);
    struct shapes_set *set = make_set(&rig, 40, LINES);
    uint64_t used = atomic_load(&rig.pool.used_bytes);
    for (size_t n = 1; table == NULL; n++) {
        rig.fault.fail_from = rig.fault.fail_to = rig.fault.calls + n;
        int err = table_create(
            &rig.pool, UINT64_C(3) << 40, 40, LINES, set, POOL_NEW, &table);
        rig.fault.fail_from = rig.fault.fail_to = 0;
        if (err != 0) {
            ck_assert_int_eq(err, ERR_NO_MEMORY);
            ck_assert_ptr_null(table);
            ck_assert_uint_eq(atomic_load(&rig.pool.used_bytes), used);
            ck_assert_uint_eq(set->refs, 1);
        }
    }
    ck_assert_uint_eq(rig.fault.failures, 4); /* a head and three pieces */
    ck_assert_uint_eq(set->refs, 2);
    ck_assert_uint_eq(table_line_bytes(table), LINES * LINE_BYTES);
    ck_assert_uint_ge(atomic_load(&rig.pool.used_bytes) - used,
        table_line_bytes(table) + table_other_bytes(table));
    table_verify(&rig.owner, table);
    shapes_set_drop(&rig.pool, set);
    table_retire(&rig.pool, table);
    table_retire(&rig.pool, NULL);
    shapes_set_drop(&rig.pool, NULL);
    table_rig_fini(&rig);
}
END_TEST

/* A stash that finds no memory, or no budget, to become larger: the record
 * stays as it was. Clearing then leaves some, and says so. */
START_TEST(test_stash_out_of_memory)
{
    is_single = _i == 1;
    enum { ROWS = 200 };
    uint64_t wide[SHAPES_COLUMNS_MAX];
    struct table_rig rig;
    struct table_model model;
    uint64_t random = 13;
    memset(wide, 0xff, sizeof wide);
    table_rig_init(&rig, 13, true);
    struct table *table = make_table(&rig, 0, 30, 16);
    choose_rows(&model, table, ROWS, &random);
    unsigned refused = 0;
    for (size_t i = 0; i < model.n; i++) {
        size_t failures = rig.fault.failures;
        fault_alloc_arm(&rig.fault, 1);
        int err = put(&rig, table, &model, i, wide);
        rig.fault.fail_from = rig.fault.fail_to = 0;
        ck_assert_int_eq(
            err, rig.fault.failures > failures ? ERR_NO_MEMORY : 0);
        if (err != 0) {
            refused++;
            rig.pool.limit_bytes = atomic_load(&rig.pool.used_bytes);
            ck_assert_int_eq(put(&rig, table, &model, i, wide), ERR_HOT_FULL);
            rig.pool.limit_bytes = TABLE_RIG_BYTES;
            ck_assert_int_eq(put(&rig, table, &model, i, wide), 0);
        }
    }
    ck_assert_uint_gt(refused, 3);
    expect_stash(table, 0, 0, ROWS);
    expect_table(&rig, table, &model);
    ck_assert_int_eq(table_clear(&rig.owner, table, 0xfffe, NULL), 0);
    clear_model(&model, 0xfffe);
    expect_table(&rig, table, &model);
    table_destroy(&rig.pool, &table);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_every_width, test_wide_codes, test_full,
        test_kinds, test_clear, test_worn_by_changes, test_worn_by_stash,
        test_create_out_of_memory, test_stash_out_of_memory};
    return run_tests_often("table", tests, COUNT_OF(tests), 2);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/build: every record of the sources is in the new table, whatever the
 * records look like; how full tables become, for the posts of lib/dist; parts
 * of a range, two sources, memory that is out; when a table is single, and when
 * it is not any more. */
#include "engine/build.h"

#include "lib/dist.h"
#include "unit/table_help.h"

#include <stdio.h>

enum { COLUMNS = 0x7, SHARDS_LOG2 = 4 };

/* Posts of the main distribution, as one of 16 shards sees them: n records,
 * ascending. Numbers as they are stored, zigzag of a difference from 0. */
static void
model_of_posts(struct table_model *model, size_t n)
{
    struct dist dist = {.seed = 1, .kind = DIST_MAIN};
    table_model_init(model, n);
    size_t i = 0;
    for (uint64_t post = 0; i < n; post++) {
        uint64_t code[SHAPES_COLUMNS_MAX] = {0};
        dist_values(&dist, post << SHARDS_LOG2, DIST_COLUMNS, code);
        for (unsigned k = 0; k < DIST_COLUMNS; k++) {
            code[k] <<= 1;
        }
        if (!code_is_empty(code)) {
            model->row[i] = dist_id(&dist, post << SHARDS_LOG2) >> SHARDS_LOG2;
            table_model_set(model, i++, code);
        }
    }
}

/* The width of the smallest aligned range around all rows. */
static unsigned
width_of(const struct table_model *model)
{
    unsigned width = shapes_bits(model->row[0] ^ model->row[model->n - 1]);
    return width == 0 ? 1 : width;
}

static uint64_t
base_of(const struct table_model *model, unsigned width)
{
    return model->row[0] & ~perm_mask(width);
}

static struct build
build_of(struct table_rig *rig, const struct table *source,
    struct shapes_set **set, int load)
{
    return (struct build){.owner = &rig->owner,
        .source = {source, NULL},
        .columns = COLUMNS,
        .set = set,
        .purpose = POOL_NEW,
        .load = load};
}

/* Builds a table anew for a record that it refused; more lines where that was
 * not enough. */
static struct table *
remade(struct table_rig *rig, struct table *table, const struct build *like,
    int tries)
{
    struct build build = *like;
    struct table *made;
    build.source[0] = table;
    build.n_lines_min = tries > 1 ? table->n_lines + 1 : 0;
    ck_assert_int_lt(tries, 16);
    ck_assert_int_eq(build_table(&build, table->base, table->width, &made), 0);
    ck_assert_uint_eq(made->n_records, table->n_records);
    table_destroy(&rig->pool, &table);
    return made;
}

/* Gives row these codes, in this table or one made anew. */
static struct table *
stored(struct table_rig *rig, struct table *table, struct shapes_set **set,
    struct build_trained *trained, uint32_t columns, uint64_t row,
    const uint64_t *code)
{
    struct build build = build_of(rig, NULL, set, BUILD_LOAD_GROW);
    build.trained = trained;
    build.columns = columns;
    build.code = code;
    build.row = row;
    for (int tries = 0;; tries++) {
        struct table_spot spot;
        table_find(&rig->owner, table, row, &spot);
        build.is_new = spot.where == TABLE_NOWHERE;
        int err = table_put(&rig->owner, table, &spot, code, POOL_NEW);
        if (err == 0) {
            return table;
        }
        ck_assert_int_eq(err, TABLE_FULL);
        table = remade(rig, table, &build, tries);
    }
}

/* A table with all of the model, grown one by one. */
static struct table *
grown(struct table_rig *rig, const struct table_model *model, uint32_t columns,
    struct shapes_set **set, struct build_trained *trained)
{
    unsigned width = width_of(model);
    struct build build = build_of(rig, NULL, set, BUILD_LOAD_GROW);
    struct table *table;
    build.trained = trained;
    ck_assert_int_eq(
        build_table(&build, base_of(model, width), width, &table), 0);
    for (size_t i = 0; i < model->n; i++) {
        table = stored(
            rig, table, set, trained, columns, model->row[i], model->code[i]);
    }
    return table;
}

static double
load_of(const struct table *table)
{
    return (double)table->used_bits /
        ((double)table->n_lines * LINE_USABLE_BITS);
}

/* Builds the whole range anew and checks all that is in it. */
static struct table *
rebuilt(struct table_rig *rig, const struct table *source,
    const struct table_model *model, struct shapes_set **set, int load)
{
    struct build build = build_of(rig, source, set, load);
    struct table *made;
    ck_assert_int_eq(
        build_table(&build, source->base, source->width, &made), 0);
    ck_assert(!table_is_worn(made));
    expect_table(rig, made, model);
    return made;
}

START_TEST(test_loads)
{
    enum { RECORDS = 20000 };
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    table_rig_init(&rig, 1, true);
    model_of_posts(&model, RECORDS);
    struct table *source = grown(&rig, &model, COLUMNS, &set, NULL);
    expect_table(&rig, source, &model);
    struct table *loose = rebuilt(&rig, source, &model, &set, BUILD_LOAD_GROW);
    struct table *tight = rebuilt(&rig, loose, &model, &set, BUILD_LOAD_TIGHT);
    struct table *again = rebuilt(&rig, tight, &model, &set, BUILD_LOAD_TIGHT);
    printf("# loads: grown %.3f, loose %.3f, tight %.3f: %.3f bytes a record, "
           "far %.3f, stash %.4f\n",
        load_of(source), load_of(loose), load_of(tight),
        (double)table_line_bytes(tight) / RECORDS,
        (double)tight->n_far / RECORDS,
        (double)tight->n_stash[TABLE_NARROW] / RECORDS);
    ck_assert(load_of(loose) > 0.78 && load_of(loose) < 0.85);
    ck_assert(load_of(tight) >= 0.93);
    ck_assert_uint_eq(again->n_lines, tight->n_lines);
    ck_assert_uint_lt(
        tight->n_stash[TABLE_NARROW] * TABLE_STASH_SHARE, RECORDS);
    ck_assert_uint_eq(tight->n_stash[TABLE_WIDE], 0);
    /* one in 200 as misfit would be shapes that do not suit */
    ck_assert_uint_lt(tight->n_stash[TABLE_MISFIT], RECORDS / 200);
    struct table *tables[] = {source, loose, tight, again};
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        table_destroy(&rig.pool, &tables[i]);
    }
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* Random rows and codes, with 16 full columns in one of so many records (0:
 * none). */
struct kind {
    unsigned width;
    unsigned bits_min, bits_max; /* of each column */
    uint32_t columns;
    unsigned wide_in;
    size_t n;
};

static const struct kind kinds[] = {
    {20, 1, 1, 0x1, 0, 3000},
    {64, 1, 8, 0x7, 0, 3000},
    {64, 1, 64, 0x8421, 0, 700},
    {30, 1, 12, 0xffff, 0, 1000},
    {40, 1, 5, 0x7, 10, 2000},
    {40, 1, 64, 0xffff, 1, 100},
    {12, 1, 3, 0x3, 0, 3000},
    {11, 1, 64, 0x3, 0, 4000},
    {1, 1, 5, 0x1, 0, 2},
    {50, 1, 64, 0x7, 2, 3},
    /* two in a line, just; then one */
    {24, 54, 54, 0xf, 0, 1000},
    {24, 56, 56, 0xf, 0, 1000},
    {64, 60, 64, 0x7, 0, 1000},
    {20, 50, 60, 0xf, 0, 1000},
    {24, 58, 58, 0xf, 0, 1000},
    {64, 49, 50, 0xf, 0, 1500},
};

static void
codes_of_kind(uint64_t *random, const struct kind *kind, uint64_t *code)
{
    unsigned more = kind->bits_max - kind->bits_min + 1;
    memset(code, 0, SHAPES_COLUMNS_MAX * sizeof *code);
    for (uint32_t rest = kind->columns; rest != 0; rest &= rest - 1) {
        unsigned bits = kind->bits_min + (unsigned)random_below(random, more);
        uint64_t top = UINT64_C(1) << (bits - 1);
        if (more == 1 || random_below(random, 3) > 0) {
            code[__builtin_ctz(rest)] =
                top | (random_below(random, UINT64_MAX) & (top - 1));
        }
    }
    if (code_is_empty(code)) {
        code[__builtin_ctz(kind->columns)] = 1;
    }
}

static void
model_of_kind(struct table_model *model, const struct kind *kind)
{
    uint64_t random = kind->width;
    table_model_init(model, kind->n);
    for (size_t i = 0; i < kind->n; i++) {
        model->row[i] =
            random_below(&random, UINT64_MAX) & perm_mask(kind->width);
    }
    table_model_sort(model);
    for (size_t i = 0; i < model->n; i++) {
        uint64_t code[SHAPES_COLUMNS_MAX];
        codes_of_kind(&random, kind, code);
        if (kind->wide_in != 0 && i % kind->wide_in == 0) {
            memset(code, 0xff, sizeof code);
        }
        table_model_set(model, i, code);
    }
}

START_TEST(test_kinds)
{
    static const int loads[] = {
        BUILD_LOAD_GROW, BUILD_LOAD_TIGHT, BUILD_LOAD_FULL, 300};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct table_rig rig;
        struct table_model model;
        struct shapes_set *set = NULL;
        table_rig_init(&rig, i, true);
        model_of_kind(&model, &kinds[i]);
        struct table *table =
            grown(&rig, &model, kinds[i].columns, &set, NULL);
        expect_table(&rig, table, &model);
        for (size_t k = 0; k < COUNT_OF(loads); k++) {
            struct build build = build_of(&rig, table, &set, loads[k]);
            struct table *made;
            build.columns = kinds[i].columns;
            ck_assert_int_eq(
                build_table(&build, table->base, table->width, &made), 0);
            expect_table(&rig, made, &model);
            unsigned n_wide = 0;
            for (size_t j = 0; kinds[i].wide_in != 0 && j < model.n;
                 j += kinds[i].wide_in) {
                n_wide++;
            }
            ck_assert_uint_ge(made->n_stash[TABLE_WIDE], n_wide);
            table_destroy(&rig.pool, &table);
            table = made;
        }
        table_destroy(&rig.pool, &table);
        shapes_set_drop(&rig.pool, set);
        table_model_fini(&model);
        table_rig_fini(&rig);
    }
}
END_TEST

/* Large records leave much of a line unused: the first number of lines is
 * nearly always right all the same, and there is room to grow. */
START_TEST(test_fills)
{
    static const struct kind large[] = {
        {40, 8, 12, 0xffff, 0, 3000},
        {40, 40, 40, 0x7, 0, 3000},
        {40, 4, 16, 0xff, 0, 3000},
        {24, 54, 54, 0xf, 0, 3000},
        {24, 56, 56, 0xf, 0, 3000},
    };
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        struct table_rig rig;
        struct table_model model;
        struct shapes_set *set = NULL;
        struct build_trained trained = {.n = 0};
        table_rig_init(&rig, i, true);
        model_of_kind(&model, &large[i]);
        struct table *table =
            grown(&rig, &model, large[i].columns, &set, &trained);
        expect_table(&rig, table, &model);
        printf("# %u columns of %u..%u bits: %u fills for %u tables, "
               "load %.3f\n",
            (unsigned)__builtin_popcount(large[i].columns), large[i].bits_min,
            large[i].bits_max, (unsigned)trained.n_fills,
            (unsigned)trained.n_builds, load_of(table));
        ck_assert_uint_le(trained.n_fills, 2 * trained.n_builds);
        ck_assert_uint_lt(trained.n_builds, 60);
        table_destroy(&rig.pool, &table);
        shapes_set_drop(&rig.pool, set);
        table_model_fini(&model);
        table_rig_fini(&rig);
    }
}
END_TEST

/* Records with long remainders, of which a line takes eight or nine: packed,
 * nearly all find room in lines, and few lines are looked at for a hit. */
START_TEST(test_packed)
{
    enum { RECORDS = 24000, WIDTH = 56 };
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    struct build_trained trained = {.n = 0};
    struct dist dist = {.seed = 1, .kind = DIST_MAIN};
    uint64_t random = 1;
    table_rig_init(&rig, 1, true);
    table_model_init(&model, RECORDS);
    for (size_t i = 0; i < RECORDS; i++) {
        model.row[i] = random_below(&random, UINT64_MAX) & perm_mask(WIDTH);
    }
    table_model_sort(&model);
    for (size_t i = 0, post = 0; i < model.n; post++) {
        uint64_t code[SHAPES_COLUMNS_MAX] = {0};
        dist_values(&dist, post, DIST_COLUMNS, code);
        if (!code_is_empty(code)) {
            table_model_set(&model, i++, code);
        }
    }
    struct table *source = grown(&rig, &model, COLUMNS, &set, &trained);
    struct build build = build_of(&rig, source, &set, BUILD_LOAD_TIGHT);
    struct table *made;
    build.trained = &trained;
    ck_assert_int_eq(
        build_table(&build, source->base, source->width, &made), 0);
    expect_table(&rig, made, &model);
    double n = (double)made->n_records;
    double further = made->n_far / n + 2 * table_n_stashed(made) / n;
    printf("# grown %.3f, packed %.3f, lines a hit %.3f, stash %.4f\n",
        load_of(source), load_of(made), 1 + further,
        table_n_stashed(made) / n);
    ck_assert(load_of(made) > 0.9);
    ck_assert(further < 0.16);
    ck_assert_uint_lt(made->n_stash[TABLE_NARROW], made->n_records / 500);
    table_destroy(&rig.pool, &source);
    table_destroy(&rig.pool, &made);
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* A column that comes late: its first numbers fit no shape and go to the
 * stash; soon there are shapes for them. */
START_TEST(test_late_column)
{
    enum { RECORDS = 2000, LATE = 9 };
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    table_rig_init(&rig, 3, true);
    model_of_posts(&model, RECORDS);
    struct table *table = grown(&rig, &model, COLUMNS, &set, NULL);
    const struct table *first = table;
    unsigned most = 0, before = 0;
    for (size_t i = 0; i < RECORDS; i++) {
        uint64_t code[SHAPES_COLUMNS_MAX];
        memcpy(code, model.code[i], sizeof code);
        code[LATE] = 1000;
        table = stored(
            &rig, table, &set, NULL, COLUMNS | 1 << LATE, model.row[i], code);
        table_model_set(&model, i, code);
        uint32_t misfits = table->n_stash[TABLE_MISFIT];
        most = misfits > most ? misfits : most;
        before += table == first;
    }
    printf("# %u as they came, at most %u misfits, in the end %u\n", before,
        most, table->n_stash[TABLE_MISFIT]);
    expect_table(&rig, table, &model);
    ck_assert_uint_lt(most, RECORDS / 20);
    ck_assert_uint_lt(table->n_stash[TABLE_MISFIT], RECORDS / 100);
    ck_assert(load_of(table) > 0.5);
    table_destroy(&rig.pool, &table);
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* The model's rows in a range, as a model of its own. */
static void
part_of(const struct table_model *model, uint64_t base, unsigned width,
    struct table_model *part)
{
    size_t n = 0;
    table_model_init(part, model->n);
    for (size_t i = 0; i < model->n; i++) {
        if (((model->row[i] ^ base) & ~perm_mask(width)) == 0) {
            part->row[n] = model->row[i];
            table_model_set(part, n++, model->code[i]);
        }
    }
    part->n = n;
}

/* Cut in halves down to width least; each part has just its records. */
static void
expect_parts(struct table_rig *rig, const struct table *source,
    const struct table_model *model, struct shapes_set **set, uint64_t base,
    unsigned width, unsigned least)
{
    struct build build = build_of(rig, source, set, BUILD_LOAD_GROW);
    struct table_model part;
    struct table *made;
    ck_assert_int_eq(build_table(&build, base, width, &made), 0);
    part_of(model, base, width, &part);
    expect_table(rig, made, &part);
    table_model_fini(&part);
    if (width > least) {
        uint64_t half = UINT64_C(1) << (width - 1);
        /* each from the whole, or from the part just made */
        expect_parts(rig, source, model, set, base, width - 1, least);
        expect_parts(rig, made, model, set, base + half, width - 1, least);
    }
    table_destroy(&rig->pool, &made);
}

START_TEST(test_parts)
{
    enum { RECORDS = 3000 };
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    table_rig_init(&rig, 4, false);
    model_of_posts(&model, RECORDS);
    struct table *source = grown(&rig, &model, COLUMNS, &set, NULL);
    expect_parts(&rig, source, &model, &set, source->base, source->width,
        source->width - 3);
    expect_table(&rig, source, &model);
    table_destroy(&rig.pool, &source);
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

START_TEST(test_two_sources)
{
    static const struct kind kind = {24, 1, 6, 0x7, 50, 3000};
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    struct table *half[2], *made;
    table_rig_init(&rig, 5, true);
    model_of_kind(&model, &kind);
    struct table *whole = grown(&rig, &model, COLUMNS, &set, NULL);
    for (int i = 0; i < 2; i++) {
        struct build build = build_of(&rig, whole, &set, BUILD_LOAD_TIGHT);
        uint64_t base = (uint64_t)i << (kind.width - 1);
        ck_assert_int_eq(
            build_table(&build, base, kind.width - 1, &half[i]), 0);
    }
    table_destroy(&rig.pool, &whole);
    struct build build = build_of(&rig, half[0], &set, BUILD_LOAD_GROW);
    build.source[1] = half[1];
    ck_assert_int_eq(build_table(&build, 0, kind.width, &made), 0);
    expect_table(&rig, made, &model);
    struct table *tables[] = {half[0], half[1], made};
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        table_destroy(&rig.pool, &tables[i]);
    }
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* More records than all others are too wide for any line of a wide range, and
 * not for those of a narrow one: these are as many as they need. */
START_TEST(test_wide_in_narrow)
{
    enum { SMALL = 500, ROWS = 4000, WIDTH = 50, NARROW = 16 };
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    struct build_trained trained = {.n = 0};
    uint64_t random = 7;
    table_rig_init(&rig, 7, true);
    table_model_init(&model, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        uint64_t code[SHAPES_COLUMNS_MAX] = {1};
        for (int column = 0; column < 4 && i >= SMALL; column++) {
            code[column] = UINT64_MAX >> 8 ^ random_below(&random, 1 << 20);
        }
        model.row[i] = i;
        table_model_set(&model, i, code);
    }
    struct build build = build_of(&rig, NULL, &set, BUILD_LOAD_GROW);
    struct table *source, *made;
    build.columns = 0xf;
    build.n_lines_min = 64;
    ck_assert_int_eq(build_table(&build, 0, WIDTH, &source), 0);
    for (size_t i = 0; i < ROWS; i++) {
        struct table_spot spot;
        table_find(&rig.owner, source, i, &spot);
        ck_assert_int_eq(
            table_put(&rig.owner, source, &spot, model.code[i], POOL_NEW), 0);
    }
    ck_assert_uint_eq(source->n_stash[TABLE_WIDE], ROWS - SMALL);
    build = build_of(&rig, source, &set, BUILD_LOAD_GROW);
    build.columns = 0xf;
    build.trained = &trained;
    ck_assert_int_eq(build_table(&build, 0, NARROW, &made), 0);
    ck_assert_uint_eq(made->n_stash[TABLE_WIDE], 0);
    ck_assert_uint_eq(trained.n_fills, 1);
    expect_table(&rig, made, &model);
    table_destroy(&rig.pool, &source);
    table_destroy(&rig.pool, &made);
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* A table of n rows of a range of that width, whose codes in the first column
 * are of one width, but for one in `few_in` (0: none). */
static struct table *
even_table(struct table_rig *rig, struct table_model *model, unsigned width,
    size_t n, unsigned bits, unsigned few_in, struct shapes_set **set,
    struct build_trained *trained)
{
    struct kind kind = {width, bits, bits, 0x1, 0, n};
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    model_of_kind(model, &kind);
    for (size_t i = few_in - 1; few_in != 0 && i < model->n; i += few_in) {
        code[0] = UINT64_C(0xabcdef) << bits;
        table_model_set(model, i, code);
    }
    struct table *table = grown(rig, model, 0x1, set, trained);
    expect_table(rig, table, model);
    return table;
}

/* Codes of one width: a record takes its tag, 4 bits of its id in the place of
 * a shape, the rest of its id and the code. So do those of its parts, and of
 * what is made of two parts. */
START_TEST(test_single)
{
    static const unsigned bits[] = {1, 7, 31, 64};
    for (size_t i = 0; i < COUNT_OF(bits); i++) {
        struct table_rig rig;
        struct table_model model;
        struct shapes_set *set = NULL;
        struct build_trained trained = {.n = 0};
        struct table *half[2], *made;
        table_rig_init(&rig, i, true);
        struct table *table =
            even_table(&rig, &model, 44, 3000, bits[i], 0, &set, &trained);
        uint64_t extra = table_extra_bits(44, table->n_lines, false) - 4;
        uint64_t n_in_lines = table->n_records - table_n_stashed(table);
        ck_assert(set->shapes.is_single);
        ck_assert_uint_eq(table->form.extra_bits, extra);
        ck_assert_uint_eq(
            table->used_bits, n_in_lines * (20 + extra + bits[i]));
        ck_assert_uint_gt(table->n_far, 0);
        expect_parts(&rig, table, &model, &set, table->base, table->width,
            table->width - 2);
        for (unsigned k = 0; k < 2; k++) {
            struct build build = build_of(&rig, table, &set, BUILD_LOAD_TIGHT);
            build.columns = 0x1;
            ck_assert_int_eq(
                build_table(
                    &build, table->base + ((uint64_t)k << 43), 43, &half[k]),
                0);
            ck_assert_uint_ne(half[k]->form.single, 0);
        }
        struct build build = build_of(&rig, half[0], &set, BUILD_LOAD_TIGHT);
        build.columns = 0x1;
        build.source[1] = half[1];
        ck_assert_int_eq(
            build_table(&build, table->base, table->width, &made), 0);
        ck_assert_uint_ne(made->form.single, 0);
        expect_table(&rig, made, &model);
        struct table *tables[] = {half[0], half[1], made, table};
        for (size_t k = 0; k < COUNT_OF(tables); k++) {
            table_destroy(&rig.pool, &tables[k]);
        }
        shapes_set_drop(&rig.pool, set);
        table_model_fini(&model);
        table_rig_fini(&rig);
    }
}
END_TEST

/* A few that are wider are in the stash; with more of them, or where ids have
 * no bits beyond their tags, or of few records, there are 16 shapes. */
START_TEST(test_single_or_not)
{
    static const struct {
        unsigned width;
        size_t n;
        unsigned bits, few_in;
        bool is_single;
    } cases[] = {{44, 3000, 1, 300, true}, {44, 3000, 1, 20, false},
        {44, 200, 1, 0, false}, {44, 500, 1, 0, true}, {12, 4000, 3, 0, false},
        {30, 3000, 12, 0, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct table_rig rig;
        struct table_model model;
        struct shapes_set *set = NULL;
        struct build_trained trained = {.n = 0};
        table_rig_init(&rig, i, true);
        struct table *table = even_table(&rig, &model, cases[i].width,
            cases[i].n, cases[i].bits, cases[i].few_in, &set, &trained);
        ck_assert_int_eq(set->shapes.is_single, cases[i].is_single);
        ck_assert_int_eq(table->form.single != 0, cases[i].is_single);
        if (cases[i].is_single && cases[i].few_in != 0) {
            ck_assert_uint_ge(table->n_stash[TABLE_MISFIT],
                cases[i].n / cases[i].few_in / 2);
        }
        table_destroy(&rig.pool, &table);
        shapes_set_drop(&rig.pool, set);
        table_model_fini(&model);
        table_rig_fini(&rig);
    }
}
END_TEST

/* Counts that begin with 1 grow, some of them far: the table is made anew a few
 * times, and has 16 shapes in the end. */
START_TEST(test_single_grows_apart)
{
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    struct build_trained trained = {.n = 0};
    uint64_t random = 3;
    unsigned n_changed = 0;
    table_rig_init(&rig, 9, true);
    struct table *table =
        even_table(&rig, &model, 44, 3000, 1, 0, &set, &trained);
    ck_assert_uint_ne(table->form.single, 0);
    uint64_t before = trained.n_builds;
    for (unsigned step = 0; step < 30000; step++) {
        /* the nearer to the first, the more often */
        uint64_t u = random_below(&random, 1 << 20);
        size_t i = (size_t)(u * u >> 20) * model.n >> 20;
        uint64_t code[SHAPES_COLUMNS_MAX] = {model.code[i][0] + 1};
        const struct table *old = table;
        table = stored(&rig, table, &set, &trained, 0x1, model.row[i], code);
        table_model_set(&model, i, code);
        n_changed += table != old;
        if (table != old || step % 5000 == 0) {
            expect_table(&rig, table, &model);
        }
    }
    printf("# counts that grow: %u tables made, in the end %s\n",
        (unsigned)(trained.n_builds - before),
        table->form.single != 0 ? "single" : "of 16 shapes");
    ck_assert_uint_gt(n_changed, 0);
    ck_assert_uint_le(trained.n_builds - before, 30);
    ck_assert_uint_eq(table->form.single, 0);
    expect_table(&rig, table, &model);
    table_destroy(&rig.pool, &table);
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* The record in view is thought of, and not put in; lines at least as many as
 * asked for. */
START_TEST(test_in_view)
{
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    struct table *table;
    uint64_t code[SHAPES_COLUMNS_MAX] = {UINT64_MAX, 1};
    table_rig_init(&rig, 6, true);
    table_model_init(&model, 1);
    struct build build = build_of(&rig, NULL, &set, BUILD_LOAD_GROW);
    build.code = code;
    build.row = 77;
    build.is_new = true;
    build.n_lines_min = 100;
    ck_assert_int_eq(build_table(&build, 0, 40, &table), 0);
    ck_assert_uint_ge(table->n_lines, 100);
    ck_assert_uint_eq(table->n_records, 0);
    struct shapes_need need = shapes_need_of(code, UINT16_MAX);
    ck_assert_int_ge(shapes_fit(&set->shapes, &need), 0);
    model.row[0] = 77;
    expect_table(&rig, table, &model);
    table_destroy(&rig.pool, &table);
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* Fails the n-th allocation, and all from the n-th on; the source stays. */
static void
sweep(struct table_rig *rig, const struct table *source,
    const struct table_model *model, struct shapes_set **set, bool all_from)
{
    for (size_t n = 1;; n++) {
        size_t failures = rig->fault.failures;
        struct build build = build_of(rig, source, set, BUILD_LOAD_FULL);
        struct table *made = NULL;
        build.columns = UINT16_MAX;
        rig->fault.fail_from = rig->fault.calls + n;
        rig->fault.fail_to = all_from ? SIZE_MAX : rig->fault.fail_from;
        int err = build_table(&build, source->base, source->width, &made);
        rig->fault.fail_from = rig->fault.fail_to = 0;
        table_verify(&rig->owner, source);
        if (rig->fault.failures == failures) {
            ck_assert_int_eq(err, 0);
            expect_table(rig, made, model);
            table_destroy(&rig->pool, &made);
            break;
        }
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        ck_assert_ptr_null(made);
    }
    expect_table(rig, source, model);
}

START_TEST(test_out_of_memory)
{
    static const struct kind kind = {40, 1, 9, 0x7, 7, 1500};
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    table_rig_init(&rig, 7, true);
    model_of_kind(&model, &kind);
    struct table *source = grown(&rig, &model, COLUMNS, &set, NULL);
    sweep(&rig, source, &model, &set, false);
    sweep(&rig, source, &model, &set, true);
    /* no budget is another error */
    struct build build = build_of(&rig, source, &set, BUILD_LOAD_GROW);
    struct table *made = NULL;
    rig.pool.limit_bytes = atomic_load(&rig.pool.used_bytes) + 4096;
    ck_assert_int_eq(
        build_table(&build, source->base, source->width, &made), ERR_HOT_FULL);
    rig.pool.limit_bytes = TABLE_RIG_BYTES;
    expect_table(&rig, source, &model);
    table_destroy(&rig.pool, &source);
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

/* All records are too wide for a line: while the new table's stash grows, what
 * it was before goes at once, though somebody reads. */
START_TEST(test_no_garbage)
{
    static const struct kind kind = {40, 1, 9, 0xffff, 1, 1500};
    struct table_rig rig;
    struct table_model model;
    struct shapes_set *set = NULL;
    struct qsbr qsbr;
    struct qsbr_reader reader;
    table_rig_init(&rig, 8, true);
    model_of_kind(&model, &kind);
    struct table *source = grown(&rig, &model, 0xffff, &set, NULL);
    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    qsbr_online(&qsbr, &reader);
    rig.pool.qsbr = &qsbr;
    struct build build = build_of(&rig, source, &set, BUILD_LOAD_GROW);
    struct table *made;
    build.columns = 0xffff;
    ck_assert_int_eq(
        build_table(&build, source->base, source->width, &made), 0);
    ck_assert_uint_eq(made->n_stash[TABLE_WIDE], kind.n);
    ck_assert_uint_le(pool_garbage_bytes(&rig.pool), sizeof *set);
    expect_table(&rig, made, &model);
    qsbr_offline(&reader);
    qsbr_unregister(&qsbr, &reader);
    pool_drain(&rig.pool);
    rig.pool.qsbr = NULL;
    qsbr_fini(&qsbr);
    table_destroy(&rig.pool, &source);
    table_destroy(&rig.pool, &made);
    shapes_set_drop(&rig.pool, set);
    table_model_fini(&model);
    table_rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_loads, test_kinds, test_fills,
        test_packed, test_late_column, test_parts, test_two_sources,
        test_in_view, test_wide_in_narrow, test_single, test_single_or_not,
        test_single_grows_apart, test_out_of_memory, test_no_garbage};
    return run_tests("build", tests, COUNT_OF(tests));
}

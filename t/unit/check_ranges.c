/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/ranges: rows in every order against a plain array; how many tables
 * there are and how full they are; splitting, joining, packing, shrinking;
 * columns forgotten; how often a table is built where records become wide;
 * nothing lost where memory or the budget is out. Each test is run with numbers
 * of many widths, and with numbers of one, for which tables are single. */
#include "engine/ranges.h"

#include "lib/id_family.h"
#include "unit/table_help.h"

#include <stdio.h>

enum { COLUMNS = 0x7, ROW_BITS = 64, RECORDS_MAX = 4096, STILL_MS = 1100 };

struct ranges_rig {
    struct table_rig table;
    struct ranges ranges;
    struct table_model model;
    uint64_t random;
    uint64_t now_ms;
};

/* All numbers of a test have the same width, but for some wide ones. */
static bool is_even;

/* Tables that a test has seen, and how many of them were single. */
static unsigned n_seen, n_single;

/* Codes of that many bits or, where they are to differ, fewer; wide ones differ
 * in any case. */
static void
some_codes(
    struct ranges_rig *rig, uint32_t columns, unsigned bits, uint64_t *code)
{
    random_codes(&rig->random, columns, bits, code);
    for (unsigned i = 0; is_even && bits < 64 && i < SHAPES_COLUMNS_MAX; i++) {
        uint64_t top = UINT64_C(1) << (bits - 1);
        code[i] = (columns >> i & 1) == 0 ? 0 : top | (code[i] & (top - 1));
    }
}

static void
rig_init(struct ranges_rig *rig, uint64_t seed, size_t n_rows)
{
    static const uint8_t hint_bits[SHAPES_COLUMNS_MAX] = {4, 4, 4};
    table_rig_init(&rig->table, seed, true);
    rig->ranges = (struct ranges){.owner = &rig->table.owner,
        .columns = COLUMNS,
        .n_records_max = RECORDS_MAX,
        .row_bits = ROW_BITS};
    ck_assert_int_eq(ranges_hint(&rig->ranges, hint_bits), 0);
    table_model_init(&rig->model, n_rows);
    rig->random = seed;
    rig->now_ms = 1000;
}

static void
rig_fini(struct ranges_rig *rig)
{
    ranges_verify(&rig->ranges);
    ranges_clear(&rig->ranges);
    ck_assert_ptr_null(atomic_load(&rig->ranges.directory));
    table_model_fini(&rig->model);
    table_rig_fini(&rig->table);
}

static size_t
count_tables(const struct ranges_rig *rig)
{
    const struct directory *directory = atomic_load(&rig->ranges.directory);
    return directory == NULL ? 0 : directory_count(directory);
}

static const struct table *
table_at(const struct ranges_rig *rig, size_t i)
{
    return directory_entries(atomic_load(&rig->ranges.directory))[i].table;
}

/* All is there and in order: every row of the model, and no other. */
static void
expect_ranges(const struct ranges_rig *rig)
{
    ranges_verify(&rig->ranges);
    ck_assert_uint_eq(rig->ranges.n_records, rig->model.n_records);
    for (size_t i = 0; i < rig->model.n; i++) {
        struct ranges_look look;
        ranges_find(&rig->ranges, rig->model.row[i], &look);
        bool is_there = look.spot.where != TABLE_NOWHERE;
        if (is_there == code_is_empty(rig->model.code[i]) ||
            memcmp(look.spot.record.code, rig->model.code[i],
                sizeof look.spot.record.code) != 0) {
            ck_abort_msg(
                "row %llx is wrong", (unsigned long long)rig->model.row[i]);
        }
    }
    /* a table is split when it is full and has too many */
    uint32_t most = rig->ranges.n_records_max;
    most += most < 1000 ? most : most / 4;
    for (size_t i = 0; i < count_tables(rig); i++) {
        ck_assert_uint_le(table_at(rig, i)->n_records, most);
        n_single += table_at(rig, i)->form.single != 0;
        n_seen++;
    }
    for (int i = 0; i < TABLE_STRIPES; i++) {
        ck_assert_uint_eq(rig->table.stripes.line[i] % 2, 0);
    }
}

static int
store(struct ranges_rig *rig, size_t i, const uint64_t *code)
{
    struct ranges_look look;
    ranges_find(&rig->ranges, rig->model.row[i], &look);
    int err = ranges_store(&rig->ranges, &look, code);
    if (err == 0) {
        table_model_set(&rig->model, i, code);
    }
    return err;
}

/* Small numbers for row i. */
static void
fill_row(struct ranges_rig *rig, size_t i)
{
    uint64_t code[SHAPES_COLUMNS_MAX];
    some_codes(rig, COLUMNS, 5, code);
    ck_assert_int_eq(store(rig, i, code), 0);
}

static void
fill_all(struct ranges_rig *rig)
{
    for (size_t i = 0; i < rig->model.n; i++) {
        fill_row(rig, i);
    }
}

static void
remove_row(struct ranges_rig *rig, size_t i)
{
    static const uint64_t none[SHAPES_COLUMNS_MAX];
    ck_assert_int_eq(store(rig, i, none), 0);
}

/* One round over all tables; true where something was done. */
static bool
tend_once(struct ranges_rig *rig)
{
    bool any = false;
    ptrdiff_t at = 0;
    while (at >= 0) {
        bool worked = false;
        at = ranges_tend(&rig->ranges, at, rig->now_ms, &worked);
        any |= worked;
    }
    rig->now_ms += STILL_MS;
    return any;
}

/* Until twice nothing is done: a table is looked at twice to be packed. */
static void
tend_all(struct ranges_rig *rig)
{
    enum { ROUNDS_MAX = 100 };
    unsigned idle = 0;
    for (int i = 0; idle < 3; i++) {
        ck_assert_int_lt(i, ROUNDS_MAX);
        idle = tend_once(rig) ? 0 : idle + 1;
    }
}

static double
load_of(const struct ranges_rig *rig)
{
    uint64_t used = 0, lines = 0;
    for (size_t i = 0; i < count_tables(rig); i++) {
        used += table_at(rig, i)->used_bits;
        lines += table_at(rig, i)->n_lines;
    }
    return (double)used / ((double)lines * LINE_USABLE_BITS);
}

/* No table could do with fewer lines at a load of 90 %. */
static void
expect_tight(const struct ranges_rig *rig)
{
    for (size_t i = 0; i < count_tables(rig); i++) {
        const struct table *table = table_at(rig, i);
        double lines = (double)table->used_bits / (0.9 * LINE_USABLE_BITS);
        ck_assert_uint_le(
            table->n_lines, table_lines_round((uint32_t)lines + 1));
    }
}

static double
bytes_a_record(const struct ranges_rig *rig)
{
    return (double)atomic_load(&rig->table.pool.used_bytes) /
        (double)rig->ranges.n_records;
}

static void
family_rows(struct ranges_rig *rig, enum id_family family)
{
    id_family_make(family, 3, rig->model.n, rig->model.row);
}

static void
shuffle(struct table_model *model, uint64_t *random)
{
    for (size_t i = model->n; i > 1; i--) {
        size_t k = random_below(random, i);
        uint64_t row = model->row[i - 1];
        model->row[i - 1] = model->row[k];
        model->row[k] = row;
    }
}

/* In order and in disorder: everything is there, tables are few, and packed
 * when they stand still. */
static void
run_family(enum id_family family, bool shuffled)
{
    enum { ROWS = 12000 };
    struct ranges_rig rig;
    rig_init(&rig, family, ROWS);
    family_rows(&rig, family);
    if (shuffled) {
        shuffle(&rig.model, &rig.random);
    }
    fill_all(&rig);
    expect_ranges(&rig);
    double filled = load_of(&rig);
    size_t tables = count_tables(&rig);
    tend_all(&rig);
    expect_ranges(&rig);
    printf("# %s%s: %u rows, load %.3f in %zu tables, then %.3f in %zu, "
           "%.2f bytes a record\n",
        id_family_name(family), shuffled ? " shuffled" : "",
        (unsigned)rig.model.n, filled, tables, load_of(&rig),
        count_tables(&rig), bytes_a_record(&rig));
    expect_tight(&rig);
    if (family != ID_CLUSTERS) {
        ck_assert(filled > 0.7);
        ck_assert_uint_le(tables, 9 * (ROWS / RECORDS_MAX));
    }
    rig_fini(&rig);
}

START_TEST(test_families)
{
    is_even = _i == 1;
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        run_family((enum id_family)family, false);
        run_family((enum id_family)family, true);
    }
    ck_assert_uint_gt(n_seen, 0);
    ck_assert_int_eq(n_single > n_seen / 4, is_even);
}
END_TEST

/* Even rows in order, a density that is known. */
static void
even_rows(struct ranges_rig *rig, uint64_t first, uint64_t step)
{
    for (size_t i = 0; i < rig->model.n; i++) {
        rig->model.row[i] = first + i * step +
            random_below(&rig->random, step == 0 ? 1 : step);
    }
}

/* What comes in order touches one table at a time, and each is nearly full
 * before the next begins. */
START_TEST(test_ascending)
{
    is_even = _i == 1;
    enum { ROWS = 20000 };
    struct ranges_rig rig;
    rig_init(&rig, 1, ROWS);
    even_rows(&rig, UINT64_C(1) << 44, 226);
    fill_all(&rig);
    expect_ranges(&rig);
    printf("# ascending: %zu tables, %.3f bytes a record, %u rebuilds\n",
        count_tables(&rig), bytes_a_record(&rig),
        (unsigned)rig.ranges.n_rebuilds);
    /* a range is for 3/4 to 3/8 of the most */
    ck_assert_uint_le(count_tables(&rig), 1 + ROWS / (RECORDS_MAX * 3 / 8));
    ck_assert_uint_ge(count_tables(&rig), ROWS / RECORDS_MAX);
    /* the first table covered all rows and has found its place */
    ck_assert_uint_le(table_at(&rig, 0)->width, 22);
    rig_fini(&rig);
}
END_TEST

/* A row far away gets a table of its own, and costs the others nothing. */
START_TEST(test_stray)
{
    is_even = _i == 1;
    enum { ROWS = 4000 };
    static const uint64_t strays[] = {0, UINT64_C(1) << 59, UINT64_MAX};
    static const size_t moments[] = {0, 1, 100, ROWS - 1};
    double plain = 0;
    for (size_t k = 0; k <= COUNT_OF(moments) * COUNT_OF(strays); k++) {
        struct ranges_rig rig;
        rig_init(&rig, 2, ROWS);
        even_rows(&rig, UINT64_C(1) << 44, 226);
        if (k > 0) {
            rig.model.row[moments[(k - 1) / COUNT_OF(strays)]] =
                strays[(k - 1) % COUNT_OF(strays)];
        }
        fill_all(&rig);
        expect_ranges(&rig);
        double bytes = bytes_a_record(&rig);
        if (k == 0) {
            plain = bytes;
        } else {
            ck_assert(bytes < plain * 1.15);
        }
        rig_fini(&rig);
    }
}
END_TEST

START_TEST(test_split)
{
    is_even = _i == 1;
    struct ranges_rig rig;
    rig_init(&rig, 3, 4 * RECORDS_MAX);
    for (size_t i = 0; i < rig.model.n; i++) {
        rig.model.row[i] = random_below(&rig.random, UINT64_MAX);
    }
    for (size_t i = 0; i < RECORDS_MAX; i++) {
        fill_row(&rig, i);
    }
    ck_assert_uint_le(rig.ranges.n_splits, 1);
    ck_assert_uint_le(count_tables(&rig), 2);
    for (size_t i = RECORDS_MAX; i < rig.model.n; i++) {
        fill_row(&rig, i);
        ck_assert_uint_eq(rig.ranges.n_records, i + 1);
    }
    expect_ranges(&rig);
    ck_assert_uint_ge(rig.ranges.n_splits, 3);
    ck_assert_uint_ge(count_tables(&rig), 4);
    ck_assert_uint_le(count_tables(&rig), 16);
    ck_assert_uint_eq(n_single, is_even ? n_seen : 0);
    rig_fini(&rig);
}
END_TEST

/* Most records of many tables go: tables shrink at once, and are joined in the
 * background; with the last record all is gone. */
START_TEST(test_shrink_and_merge)
{
    is_even = _i == 1;
    enum { ROWS = 12000, KEPT = 20 };
    struct ranges_rig rig;
    rig_init(&rig, 4, ROWS);
    even_rows(&rig, UINT64_C(5) << 40, 64);
    fill_all(&rig);
    uint64_t bytes = atomic_load(&rig.table.pool.used_bytes);
    size_t tables = count_tables(&rig);
    for (size_t i = 0; i < ROWS; i++) {
        if (i % KEPT != 0) {
            remove_row(&rig, i);
        }
    }
    expect_ranges(&rig);
    uint64_t shrunk = atomic_load(&rig.table.pool.used_bytes);
    ck_assert_uint_lt(shrunk, bytes / 2);
    tend_all(&rig);
    expect_ranges(&rig);
    printf("# %zu tables, then %zu, %u merges; bytes %u, %u, %u\n", tables,
        count_tables(&rig), (unsigned)rig.ranges.n_merges, (unsigned)bytes,
        (unsigned)shrunk, (unsigned)atomic_load(&rig.table.pool.used_bytes));
    ck_assert_uint_gt(rig.ranges.n_merges, 0);
    ck_assert_uint_le(count_tables(&rig), tables / 4);
    ck_assert_uint_lt(atomic_load(&rig.table.pool.used_bytes), shrunk);
    for (size_t i = 0; i < ROWS; i += KEPT) {
        remove_row(&rig, i);
    }
    expect_ranges(&rig);
    tend_all(&rig);
    ck_assert_uint_eq(count_tables(&rig), 0);
    fill_row(&rig, 77);
    expect_ranges(&rig);
    rig_fini(&rig);
}
END_TEST

/* A table that still grows is left alone; one that stands still is packed once
 * and then left alone too. */
START_TEST(test_tighten)
{
    is_even = _i == 1;
    enum { ROWS = 12000 };
    struct ranges_rig rig;
    rig_init(&rig, 5, ROWS);
    rig.ranges.n_records_max = 4 * ROWS;
    even_rows(&rig, 0, 1000);
    for (size_t i = 0; i < ROWS; i++) {
        fill_row(&rig, i);
        if (i % 1000 == 0) {
            ck_assert(!tend_once(&rig));
        }
    }
    /* it stands still, but not for long enough */
    ck_assert(!tend_once(&rig));
    rig.now_ms -= STILL_MS / 2;
    ck_assert(!tend_once(&rig));
    ck_assert_uint_eq(rig.ranges.n_tightened, 0);
    double load = load_of(&rig);
    tend_all(&rig);
    printf("# %zu tables, load %.3f, then %.3f\n", count_tables(&rig), load,
        load_of(&rig));
    ck_assert_uint_ge(rig.ranges.n_tightened, 1);
    /* records of one size leave in each line what is less than one */
    ck_assert(load_of(&rig) > (is_even ? 0.87 : 0.9));
    expect_tight(&rig);
    uint64_t rebuilds = rig.ranges.n_rebuilds;
    tend_all(&rig);
    ck_assert_uint_eq(rig.ranges.n_rebuilds, rebuilds);
    expect_ranges(&rig);
    /* and it can still be written to */
    for (size_t i = 0; i < ROWS; i++) {
        fill_row(&rig, i);
    }
    expect_ranges(&rig);
    rig_fini(&rig);
}
END_TEST

/* Everything at once: rows come, change, become wide and go; columns are
 * forgotten; the gardener passes by. */
static void
forget(struct ranges_rig *rig, uint32_t columns)
{
    uint64_t row = 0;
    int err = 0;
    while (ranges_drop_columns(&rig->ranges, &row, columns, &err)) {
    }
    ck_assert_int_eq(err, 0);
    for (size_t i = 0; i < rig->model.n; i++) {
        uint64_t code[SHAPES_COLUMNS_MAX];
        for (unsigned k = 0; k < SHAPES_COLUMNS_MAX; k++) {
            code[k] = (columns >> k & 1) != 0 ? 0 : rig->model.code[i][k];
        }
        table_model_set(&rig->model, i, code);
    }
}

static void
random_change(struct ranges_rig *rig)
{
    size_t i = random_below(&rig->random, rig->model.n);
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    unsigned dice = (unsigned)random_below(&rig->random, 100);
    if (dice >= 35) {
        /* where they are even, wide ones must be few */
        bool is_wide =
            dice == 99 && (!is_even || random_below(&rig->random, 8) == 0);
        some_codes(rig, rig->ranges.columns, is_wide ? 64 : 9, code);
    }
    ck_assert_int_eq(store(rig, i, code), 0);
}

START_TEST(test_random)
{
    is_even = _i == 1;
    enum { ROWS = 3000, ROUNDS = 12, CHANGES = 1500 };
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        struct ranges_rig rig;
        rig_init(&rig, 60 + family, ROWS);
        family_rows(&rig, (enum id_family)family);
        rig.ranges.n_records_max = (is_even ? 512U : 64U) << family % 4;
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < (int)long_part(CHANGES); i++) {
                random_change(&rig);
            }
            if (round % 3 == 1) {
                rig.ranges.columns |= 1U << (3 + round);
            } else if (round % 4 == 2) {
                forget(&rig, 1U << random_below(&rig.random, 16));
            } else if (round % 4 == 3) {
                tend_all(&rig);
            }
            expect_ranges(&rig);
        }
        forget(&rig, UINT16_MAX);
        expect_ranges(&rig);
        tend_all(&rig);
        ck_assert_uint_eq(count_tables(&rig), 0);
        rig_fini(&rig);
    }
    ck_assert_int_eq(n_single > 0, is_even);
    ck_assert_uint_lt(n_single, n_seen);
}
END_TEST

/* Fails the n-th allocation of a store, for n = 1, 2, ...: refused, nothing
 * has changed; or done all the same. Returns how many there were. */
static size_t
store_failing(
    struct ranges_rig *rig, size_t i, const uint64_t *code, bool all_from)
{
    struct fault_alloc *fault = &rig->table.fault;
    for (size_t n = 1;; n++) {
        size_t failures = fault->failures;
        fault->fail_from = fault->calls + n;
        fault->fail_to = all_from ? SIZE_MAX : fault->fail_from;
        int err = store(rig, i, code);
        fault->fail_from = fault->fail_to = 0;
        bool has_failed = fault->failures > failures;
        ck_assert(err == 0 || (has_failed && err == ERR_NO_MEMORY));
        /* what frees memory is never refused */
        ck_assert(err == 0 || !code_is_empty(code));
        if (has_failed && (n + i) % 4 == 0) {
            expect_ranges(rig);
        }
        if (err == 0) {
            return n - 1;
        }
    }
}

START_TEST(test_out_of_memory)
{
    is_even = _i == 1;
    enum { ROWS = 1500 };
    static const enum id_family families[] = {ID_SECONDS, ID_RANDOM, ID_STRAY};
    for (size_t k = 0; k < COUNT_OF(families); k++) {
        struct ranges_rig rig;
        uint64_t code[SHAPES_COLUMNS_MAX];
        size_t refused = 0;
        rig_init(&rig, k, ROWS);
        family_rows(&rig, families[k]);
        rig.ranges.n_records_max = 200;
        for (size_t i = 0; i < rig.model.n; i++) {
            some_codes(&rig, COLUMNS, i % 100 == 0 ? 64 : 5, code);
            refused += store_failing(&rig, i, code, i % 2 == 0);
        }
        ck_assert_uint_gt(refused, 100);
        ck_assert_uint_ge(count_tables(&rig), 7);
        memset(code, 0, sizeof code);
        for (size_t i = 0; i < rig.model.n; i += 1 + (i % 2)) {
            store_failing(&rig, i, code, true);
        }
        tend_all(&rig);
        expect_ranges(&rig);
        rig_fini(&rig);
    }
}
END_TEST

/* The gardener without memory leaves all as it was. */
START_TEST(test_tend_out_of_memory)
{
    is_even = _i == 1;
    enum { ROWS = 3000 };
    struct ranges_rig rig;
    rig_init(&rig, 8, ROWS);
    rig.ranges.n_records_max = 500;
    even_rows(&rig, 0, 64);
    fill_all(&rig);
    for (size_t i = 0; i < ROWS; i++) {
        if (i % 10 != 0) {
            remove_row(&rig, i);
        }
    }
    for (size_t n = 1; n < 40; n++) {
        struct fault_alloc *fault = &rig.table.fault;
        fault->fail_from = fault->calls + n;
        fault->fail_to = SIZE_MAX;
        (void)tend_once(&rig);
        fault->fail_from = fault->fail_to = 0;
        expect_ranges(&rig);
    }
    tend_all(&rig);
    expect_ranges(&rig);
    ck_assert_uint_gt(rig.ranges.n_merges, 0);
    rig_fini(&rig);
}
END_TEST

/* A budget: new records are refused beyond it, those there are can still be
 * changed, and what is removed makes room. */
START_TEST(test_budget)
{
    is_even = _i == 1;
    enum { ROWS = 30000, BUDGET_BYTES = 160000 };
    struct ranges_rig rig;
    size_t n = 0;
    uint64_t code[SHAPES_COLUMNS_MAX] = {3, 2, 1};
    rig_init(&rig, 9, ROWS);
    even_rows(&rig, 0, 226);
    /* a plan takes half of it for a moment */
    rig.table.pool.limit_bytes = BUDGET_BYTES;
    while (store(&rig, n, code) == 0) {
        n++;
        ck_assert_uint_lt(n, ROWS);
    }
    ck_assert_int_eq(store(&rig, n, code), ERR_HOT_FULL);
    expect_ranges(&rig);
    ck_assert_uint_gt(n, BUDGET_BYTES / 20);
    code[0] = 2;
    for (size_t i = 0; i < n; i += 7) {
        ck_assert_int_eq(store(&rig, i, code), 0);
    }
    for (size_t i = 0; i < n; i += 2) {
        remove_row(&rig, i);
    }
    expect_ranges(&rig);
    for (size_t i = 0; i < n / 4; i++) {
        ck_assert_int_eq(store(&rig, i, code), 0);
    }
    expect_ranges(&rig);
    rig_fini(&rig);
}
END_TEST

/* Takes shapes for records with one bit in the first column. */
static void
hint_one_bit(struct ranges_rig *rig)
{
    struct shapes_sample sample;
    struct shapes shapes;
    const uint64_t one[SHAPES_COLUMNS_MAX] = {1};
    struct shapes_need need = shapes_need_all(one);
    shapes_sample_init(&sample);
    shapes_sample_add(&sample, &need);
    shapes_train(&shapes, &sample, COLUMNS, SHAPES_BITS_MAX);
    shapes_set_drop(&rig->table.pool, rig->ranges.set);
    ck_assert_int_eq(shapes_set_create(&rig->table.pool, &shapes, POOL_NEW,
                         &rig->ranges.set),
        0);
}

/* Small records, then many more wide ones that their shapes have no room for:
 * they go to the stash, until another set suits the small ones better, which
 * has room for all. A table built then must have lines for what comes out of
 * the stash, or none can be built, or the next record has it built again. */
START_TEST(test_wide_among_small)
{
    is_even = _i == 1;
    enum { STEP = 12, SMALL = 500, ROWS = SMALL * STEP, FILLS_MAX = 50 };
    struct ranges_rig rig;
    uint32_t n_misfits = 0;
    rig_init(&rig, 11, ROWS);
    rig.ranges.n_records_max = 2 * ROWS; /* none is split */
    even_rows(&rig, 0, 1);
    hint_one_bit(&rig);
    for (size_t i = 0; i < ROWS; i += STEP) {
        const uint64_t one[SHAPES_COLUMNS_MAX] = {1};
        ck_assert_int_eq(store(&rig, i, one), 0);
    }
    uint64_t before = rig.ranges.trained.n_fills;
    for (size_t i = 0; i < ROWS; i++) {
        uint64_t code[SHAPES_COLUMNS_MAX] = {0};
        for (size_t j = 0; i == ROWS / 2 && j < ROWS; j += STEP) {
            some_codes(&rig, COLUMNS, 9, code);
            ck_assert_int_eq(store(&rig, j, code), 0);
        }
        if (i % STEP != 0) {
            for (int column = 0; column < 3; column++) {
                code[column] = random_below(&rig.random, UINT64_MAX);
            }
            ck_assert_int_eq(store(&rig, i, code), 0);
        }
        uint32_t n = table_at(&rig, 0)->n_stash[TABLE_MISFIT];
        n_misfits = n > n_misfits ? n : n_misfits;
    }
    uint64_t n_fills = rig.ranges.trained.n_fills - before;
    printf("# wide among small: %u fills, %u misfits at most\n",
        (unsigned)n_fills, n_misfits);
    ck_assert_uint_ge(n_misfits, SMALL);
    ck_assert_uint_le(n_fills, FILLS_MAX);
    expect_ranges(&rig);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_families, test_ascending, test_stray,
        test_split, test_shrink_and_merge, test_tighten, test_random,
        test_out_of_memory, test_tend_out_of_memory, test_budget,
        test_wide_among_small};
    return run_tests_often("ranges", tests, COUNT_OF(tests), 2);
}

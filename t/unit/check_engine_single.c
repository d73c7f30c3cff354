/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine where numbers have one width, so that its tables are single: by
 * each instruction set of the machine, growth and splits, packing, numbers that
 * grow apart, copies that are loaded, evictions and what comes back, against a
 * plain array. */
#include "engine/engine_copy.h"
#include "engine/engine_priv.h"

#include "base/fold.h"
#include "unit/cover_help.h"

enum {
    IDS = 6000,
    ROWS_MAX = 1500, /* of a table */
    PAGE = 100,
    LEAST = 600, /* numbers: 10 bits and, from default 5, 11 */
    SPAN = 400
};

/* Ids anywhere, and what each has in all columns; 0: nothing. */
struct model {
    uint64_t id[IDS];
    uint64_t value[IDS];
};

static bool
is_single(const struct engine *engine)
{
    const struct counter *counter = engine__counter(engine, SLOT);
    bool is = true;
    for (unsigned i = 0; i < engine->n_shards; i++) {
        const struct directory *directory =
            atomic_load(&counter->ranges[i].directory);
        for (size_t k = 0; k < directory_count(directory); k++) {
            is &= directory_entries(directory)[k].table->form.single != 0;
        }
    }
    return is;
}

static struct model *
model_create(void)
{
    struct model *model = calloc(1, sizeof *model);
    ck_assert_ptr_nonnull(model);
    for (size_t i = 0; i < IDS; i++) {
        model->id[i] = fold_id(i) >> 20;
    }
    return model;
}

static void
set_all(struct rig *rig, struct model *model, uint64_t *random)
{
    for (size_t i = 0; i < IDS; i++) {
        model->value[i] = LEAST + random_below(random, SPAN);
        set(rig, model->id[i], model->value[i]);
    }
}

/* Pages of any ids, and of ids that are nowhere. */
static void
check_pages(struct engine *engine, const struct schema_counter *def,
    const struct model *model)
{
    struct cell_key key[PAGE];
    uint64_t value[PAGE], want[PAGE];
    uint8_t state[PAGE];
    for (size_t i = 0; i < IDS; i += PAGE / 2) {
        for (size_t k = 0; k < PAGE; k++) {
            size_t at = (i + k / 2) * 7 % IDS;
            unsigned column = (unsigned)(i % COLUMNS);
            bool is_there = k % 2 == 0;
            key[k] = key_of(def, column,
                is_there ? model->id[at]
                         : model->id[at] ^ UINT64_C(1) << (k / 2 % 44));
            want[k] = is_there ? model->value[at] : 0;
            want[k] =
                want[k] == 0 ? def->column[column].default_value : want[k];
        }
        engine_get(engine, key, PAGE, value, state);
        for (size_t k = 0; k < PAGE; k++) {
            if (value[k] != want[k]) {
                ck_abort_msg("id %llx: %llu, not %llu",
                    (unsigned long long)key[k].id,
                    (unsigned long long)value[k], (unsigned long long)want[k]);
            }
        }
    }
}

/* Packs what stands still. */
static void
tend(struct engine *engine)
{
    for (uint64_t ms = 1000; ms < 12000; ms += 1100) {
        (void)engine_tend(engine, ms);
    }
    engine_verify(engine);
}

/* A rig with hints for the numbers of set_all, read by an instruction set. */
static void
even_rig_init(struct rig *rig, enum reader_isa isa)
{
    rig_init_tables(rig, ROOMY_BYTES, false, ROWS_MAX);
    struct engine_config config = {.shards = 1,
        .seed = 1,
        .hot_bytes = ROOMY_BYTES,
        .isa = isa,
        .table_records_max = ROWS_MAX};
    finish_engine(&rig->engine);
    rig->engine = engine_of(&config);
    engine_set_sink(rig->engine, &rig->journal.sink);
    engine_set_cover(rig->engine, &rig->cover);
    for (unsigned i = 0; i < COLUMNS; i++) {
        rig->def.column[i].hint_bits = 11;
    }
    rig_define(rig);
}

/* What is there, packed, changed in place, with a few that are wide; then all
 * widths: and all the time what is read is right. */
START_TEST(test_numbers)
{
    for (int isa = READER_BEST + 1; isa < READER_ISA_COUNT; isa++) {
        struct rig rig;
        struct model *model = model_create();
        uint64_t random = (uint64_t)isa;
        if (!reader_has((enum reader_isa)isa)) {
            free(model);
            continue;
        }
        even_rig_init(&rig, (enum reader_isa)isa);
        set_all(&rig, model, &random);
        ck_assert_uint_gt(sum_of(rig.engine, SLOT).tables, 3);
        ck_assert(is_single(rig.engine));
        check_pages(rig.engine, &rig.def, model);
        tend(rig.engine);
        ck_assert(is_single(rig.engine));
        check_pages(rig.engine, &rig.def, model);
        set_all(&rig, model, &random);
        for (size_t i = 0; i < IDS; i += 400) {
            model->value[i] = UINT64_C(1) << 40;
            set(&rig, model->id[i], model->value[i]);
        }
        tend(rig.engine);
        ck_assert(is_single(rig.engine));
        ck_assert_uint_gt(sum_of(rig.engine, SLOT).stash_records, 0);
        check_pages(rig.engine, &rig.def, model);
        for (size_t i = 0; i < IDS; i++) {
            model->value[i] = 1 |
                random_below(&random, UINT64_MAX) >> random_below(&random, 64);
            set(&rig, model->id[i], model->value[i]);
            if (i % 1000 == 0) {
                check_pages(rig.engine, &rig.def, model);
            }
        }
        tend(rig.engine);
        ck_assert(!is_single(rig.engine));
        check_pages(rig.engine, &rig.def, model);
        rig_fini(&rig);
        free(model);
    }
}
END_TEST

/* Copies of all tables, loaded into another engine, by tables and as one range:
 * they are single there, too. */
START_TEST(test_copies)
{
    for (unsigned way = 0; way < 2; way++) {
        struct rig rig;
        struct model *model = model_create();
        struct engine *other = small_engine(1, ROWS_MAX);
        struct engine_rows rows = {0};
        enum engine_copied copied = ENGINE_COPY_DONE;
        uint64_t random = way, from = 0;
        even_rig_init(&rig, READER_BEST);
        set_all(&rig, model, &random);
        ck_assert_int_eq(engine_define(other, &rig.def), 0);
        while (copied == ENGINE_COPY_DONE) {
            if (way == 0) {
                ck_assert_int_eq(
                    engine_copy(rig.engine, SLOT, 0, from, &rows, &copied), 0);
            } else {
                ck_assert_int_eq(engine_copy_range(rig.engine, SLOT, 0, 0,
                                     UINT64_MAX, &rows),
                    0);
            }
            if (copied == ENGINE_COPY_DONE) {
                ck_assert_int_eq(engine_load(other, SLOT, 0, &rows), 0);
            }
            if (rows.last_row == UINT64_MAX) {
                break;
            }
            from = rows.last_row + 1;
        }
        engine_rows_fini(&rows);
        engine_verify(other);
        ck_assert_uint_eq(sum_of(other, SLOT).records, IDS);
        ck_assert(is_single(other));
        check_pages(other, &rig.def, model);
        finish_engine(&other);
        rig_fini(&rig);
        free(model);
    }
}
END_TEST

static void
publish(void *context)
{
    struct rig *rig = context;
    cover(rig, rig->rows.first_row, rig->rows.last_row, rig->next_version++);
}

static bool
is_evicted(const struct rig *rig, uint64_t id)
{
    return id >= rig->first && id <= rig->last;
}

/* Record i was evicted: it comes back with two columns changed, is deleted, or
 * stays where it is. */
static void
change_evicted(struct rig *rig, const struct model *model, size_t i)
{
    const struct engine_base *base = base_of(rig, rig->version, true);
    uint64_t id = model->id[i];
    uint64_t value = model->value[i];
    expect_absent(rig, id, rig->version);
    if (i % 3 == 0) {
        ck_assert_int_eq(change_with(rig, CHANGE_SET, id, 2, value, base), 0);
        expect_here(rig, id, value, value, 30);
    } else if (i % 3 == 1) {
        ck_assert_int_eq(
            change_with(rig, CHANGE_DELETE, id, COLUMNS, 0, base), 0);
        expect_here(rig, id, 0, 0, 5);
    }
}

static void
check_evicted(struct rig *rig, const struct model *model, size_t i)
{
    uint64_t id = model->id[i];
    uint64_t value = model->value[i];
    if (!is_evicted(rig, id)) {
        expect_here(rig, id, value, value, value);
    } else if (i % 3 == 0) {
        expect_here(rig, id, value, value, 30);
    } else if (i % 3 == 1) {
        expect_here(rig, id, 0, 0, 5);
    } else {
        expect_absent(rig, id, rig->version);
    }
}

/* Some ids' rows are evicted, and some of these come back with a change. */
START_TEST(test_evict)
{
    struct rig rig;
    struct model *model = model_create();
    uint64_t random = 4;
    even_rig_init(&rig, READER_BEST);
    set_all(&rig, model, &random);
    tend(rig.engine);
    const uint64_t last = UINT64_C(1) << 42;
    ck_assert_int_eq(
        engine_copy_range(rig.engine, SLOT, 0, 1 << 20, last, &rig.rows), 0);
    ck_assert_uint_gt(rig.rows.n, IDS / 8);
    ck_assert_int_eq(
        engine_evict(rig.engine, SLOT, 0, &rig.rows, publish, &rig), 0);
    engine_verify(rig.engine);
    ck_assert_uint_eq(records(&rig), IDS - rig.rows.n);
    for (size_t i = 0; i < IDS; i++) {
        if (is_evicted(&rig, model->id[i])) {
            change_evicted(&rig, model, i);
        }
    }
    tend(rig.engine);
    for (size_t i = 0; i < IDS; i++) {
        check_evicted(&rig, model, i);
    }
    rig_fini(&rig);
    free(model);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_numbers, test_copies, test_evict};
    return run_tests("engine_single", tests, COUNT_OF(tests));
}

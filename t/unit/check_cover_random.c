/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/cover: random changes, definitions and background work in an engine
 * beside a fake cold tier (lib/fake_cover), from which ranges are sealed at
 * random moments, with more of all that between the copy and the eviction.
 *
 * The properties: what the engine has, and where it has nothing the segment,
 * is what lib/cell_model has. And what the sink was told behind each eviction
 * (before it, for rows that nothing covers) gives the same again: record by
 * record with an obvious rule, and in another engine that loads copies of the
 * first one's tables, or none, and is told the rest as a log's replay does.
 *
 * COVER_STEPS=N does N batches in each world instead of STEPS. A fault names
 * family, world and step. */
#include "lib/fake_cover.h"
#include "lib/id_family.h"
#include "lib/replica.h"
#include "unit/engine_help.h"

enum {
    SLOT = 3,
    IDS = 1500,
    STEPS = 1500,
    BATCH_MAX = 32,
    CELLS = 6,
    SEAL_EACH = 10,
    DEFINE_EACH = 200,
    TEND_EACH = 30,
    CHECK_EACH = 300,
    CLEAR_EACH = 1100
};

struct setup {
    enum id_family family;
    unsigned columns, shards;
    uint32_t table_records_max;
    unsigned value_bits;
};

static const struct setup SETUPS[] = {
    {ID_SEQUENTIAL, 1, 1, 64, 3},
    {ID_SEQUENTIAL, 3, 4, 200, 8},
    {ID_SECONDS, 3, 2, 100, 6},
    {ID_SECONDS, 16, 1, 64, 30},
    {ID_MILLIS, 2, 4, 64, 10},
    {ID_RANDOM, 3, 1, 100, 5},
    {ID_RANDOM, 8, 2, 64, 20},
    {ID_MULTIPLES, 5, 2, 64, 4},
    {ID_STRAY, 2, 1, 64, 4},
    {ID_CLUSTERS, 3, 1, 300, 6},
    {ID_SPREAD, 2, 2, 64, 9},
};

struct world {
    const struct setup *setup;
    unsigned step;
    struct engine *engine;
    struct fake_cover fake;
    struct journal journal;
    struct cell_model model;
    struct cell_mood mood;
    struct dist_rng rng;
    uint64_t now_ms;
    size_t begun; /* entries of the journal when the counter was made */
    size_t published[4 * CELLS]; /* and when a cell was */
    unsigned shard, first, last; /* cells that are being sealed */
    uint64_t n_cold, n_stale, n_tombstones, n_seals;
};

static void
blame(const struct world *world, const char *what)
{
    ck_abort_msg("%s: %s, world %zu, step %u", what,
        id_family_name(world->setup->family), (size_t)(world->setup - SETUPS),
        world->step);
}

static unsigned
below(struct world *world, size_t n)
{
    return (unsigned)(dist_rng_u64(&world->rng) % n);
}

/* An id as it is in an engine beside the cold tier. */
struct seen {
    struct engine_found found;
    uint64_t value[SCHEMA_COLUMNS_MAX]; /* of column i of the definition */
    uint64_t here[SCHEMA_COLUMNS_MAX];  /* as the engine says */
};

static void
see(struct world *world, struct engine *engine, size_t i, struct seen *seen)
{
    const struct schema_counter *def = &world->model.def;
    struct cell_key key[SCHEMA_COLUMNS_MAX];
    uint8_t state[SCHEMA_COLUMNS_MAX];
    struct engine_base base;
    unsigned shard;
    uint64_t row;
    for (unsigned k = 0; k < def->n_columns; k++) {
        key[k] = key_of(def, k, world->model.id[i]);
    }
    engine_look(engine, key, def->n_columns, seen->here, state, &seen->found);
    memcpy(seen->value, seen->here, sizeof seen->value);
    if (!seen->found.is_here && seen->found.version != 0) {
        engine_row(engine, key[0].id, &shard, &row);
        uint64_t version = world->fake
                               .cell[shard * CELLS +
                                   fake_cover_cell(&world->fake, shard, row)]
                               ->version;
        CHECK(seen->found.version == version || world->fake.is_loading);
        fake_cover_base(&world->fake, version, row, &base);
        for (unsigned k = 0; k < def->n_columns; k++) {
            seen->value[k] = fake_cover_value(&base, &def->column[k]);
        }
    }
}

/* An engine beside the cold tier must have what the model has. */
static void
check_engine(struct world *world, struct engine *engine)
{
    const struct schema_counter *def = &world->model.def;
    struct seen seen;
    uint64_t n_here = 0;
    for (size_t i = 0; i < IDS; i++) {
        bool is_nothing = true;
        see(world, engine, i, &seen);
        n_here += seen.found.is_here;
        for (unsigned k = 0; k < def->n_columns; k++) {
            struct cell_key key = key_of(def, k, world->model.id[i]);
            uint64_t want, value = 0;
            uint8_t state = 0;
            (void)cell_model_get(&world->model, &key, &want);
            if (seen.value[k] != want) {
                fprintf(stderr, "id %llu, column %u: %llu, not %llu; %s\n",
                    (unsigned long long)key.id, k,
                    (unsigned long long)seen.value[k],
                    (unsigned long long)want,
                    seen.found.is_here ? "here" : "not here");
                blame(world, "wrong value");
            }
            engine_get(engine, &key, 1, &value, &state);
            CHECK(value == seen.here[k]);
            is_nothing &= value == def->column[k].default_value;
        }
        if (seen.found.is_here && is_nothing) {
            world->n_tombstones++;
        }
    }
    CHECK(sum_of(engine, SLOT).records == n_here);
    engine_verify(engine);
}

/* Does changes; those that are refused for want of the record again with it,
 * now and then with an old one first. */
static void
change_some(struct world *world)
{
    struct change change[BATCH_MAX];
    struct engine_base base[BATCH_MAX];
    size_t at[BATCH_MAX];
    unsigned n = 1 + below(world, BATCH_MAX);
    for (unsigned i = 0; i < n; i++) {
        at[i] = i > 0 && below(world, 3) == 0 ? at[0] : below(world, IDS);
        cell_model_random_change(
            &world->model, &world->rng, &world->mood, at[i], &change[i]);
        change[i].base = NULL;
    }
    while (n > 0) {
        unsigned n_left = 0;
        bool is_stale = below(world, 8) == 0;
        engine_change(world->engine, change, n);
        for (unsigned i = 0; i < n; i++) {
            if (change[i].err != ERR_COLD) {
                const char *wrong =
                    cell_model_judge(&world->model, at[i], &change[i], false);
                if (wrong != NULL) {
                    fprintf(stderr, "op %d: %s\n", (int)change[i].op,
                        err_text(change[i].err));
                    blame(world, wrong);
                }
                continue;
            }
            struct seen seen;
            unsigned shard;
            uint64_t row;
            see(world, world->engine, at[i], &seen);
            CHECK(!seen.found.is_here && seen.found.version != 0);
            engine_row(world->engine, change[i].id, &shard, &row);
            fake_cover_base(
                &world->fake, seen.found.version, row, &base[n_left]);
            base[n_left].id = change[i].id;
            base[n_left].version -= is_stale;
            world->n_stale += is_stale;
            world->n_cold++;
            at[n_left] = at[i];
            change[n_left] = change[i];
            change[n_left].base = &base[n_left];
            n_left++;
        }
        n = n_left;
    }
}

static void
define_step(struct world *world)
{
    cell_model_redefine(&world->model, &world->rng);
    ck_assert_int_eq(engine_define(world->engine, &world->model.def), 0);
}

static void
tend_step(struct world *world)
{
    for (unsigned i = below(world, 8); i > 0; i--) {
        (void)engine_tend(world->engine, world->now_ms += 600);
    }
}

static void
meanwhile(void *context)
{
    struct world *world = context;
    for (unsigned i = below(world, 6); i > 0; i--) {
        change_some(world);
    }
    if (below(world, 4) == 0) {
        tend_step(world);
    }
    if (below(world, 16) == 0) {
        define_step(world);
    }
}

static void
published(void *context)
{
    struct world *world = context;
    for (unsigned i = world->first; i <= world->last; i++) {
        world->published[world->shard * CELLS + i] = world->journal.n;
    }
    world->n_seals++;
}

static void
seal_step(struct world *world)
{
    const struct fake_sealing sealing = {meanwhile, published, world};
    world->shard = below(world, world->setup->shards);
    world->first = below(world, CELLS);
    world->last = world->first + below(world, CELLS - world->first);
    world->last = below(world, 2) == 0 ? world->first : world->last;
    ck_assert_int_eq(fake_cover_seal(&world->fake, world->engine, world->shard,
                         world->first, world->last, NULL, &sealing),
        0);
}

/* Where the redo records of a row begin: the first entry of the journal that
 * counts; *base is what was there before. */
static size_t
redo_of(struct world *world, uint64_t id, struct engine_base *base)
{
    unsigned shard;
    uint64_t row;
    engine_row(world->engine, id, &shard, &row);
    unsigned cell = fake_cover_cell(&world->fake, shard, row);
    const struct fake_segment *segment =
        world->fake.cell[shard * CELLS + cell];
    *base = (struct engine_base){.is_there = false};
    if (segment == NULL) {
        return world->begun;
    }
    fake_cover_base(&world->fake, segment->version, row, base);
    return world->published[shard * CELLS + cell];
}

/* The record of an id out of segment and redo records: the first entry makes it
 * whole, from nothing. */
static void
check_redo(struct world *world, const struct engine_write *const *write,
    size_t n, uint64_t id, const struct engine_base *base)
{
    const struct schema_counter *def = &world->model.def;
    for (unsigned k = 0; k < def->n_columns; k++) {
        const struct schema_column *column = &def->column[k];
        uint64_t value =
            n > 0 ? column->default_value : fake_cover_value(base, column);
        uint64_t want;
        for (size_t i = 0; i < n; i++) {
            for (unsigned c = 0; c < write[i]->n; c++) {
                if (write[i]->serial[c] == column->serial) {
                    value = write[i]->value[c];
                }
            }
        }
        struct cell_key key = key_of(def, k, id);
        (void)cell_model_get(&world->model, &key, &want);
        if (value != want) {
            fprintf(stderr, "id %llu, column %u: %llu, not %llu, %zu told\n",
                (unsigned long long)id, k, (unsigned long long)value,
                (unsigned long long)want, n);
            blame(world, "the tale is another one");
        }
    }
}

static void
check_redos(struct world *world)
{
    const struct engine_write **write =
        calloc(world->journal.n + 1, sizeof(*write));
    size_t *next = calloc(world->journal.n + 1, sizeof *next);
    size_t *last = calloc(IDS, sizeof *last);
    ck_assert(write != NULL && next != NULL && last != NULL);
    /* next[i] - 1 is the entry before entry i - 1 of the same id */
    for (size_t i = 0; i < world->journal.n; i++) {
        ptrdiff_t at =
            cell_model_find(&world->model, world->journal.entry[i].write.id);
        CHECK(at >= 0);
        next[i + 1] = last[at];
        last[at] = i + 1;
    }
    for (size_t at = 0; at < IDS; at++) {
        struct engine_base base;
        uint64_t id = world->model.id[at];
        size_t from = redo_of(world, id, &base);
        size_t n = 0;
        for (size_t i = last[at]; i > from; i = next[i]) {
            n++;
        }
        size_t k = n;
        for (size_t i = last[at]; i > from; i = next[i]) {
            write[--k] = &world->journal.entry[i - 1].write;
        }
        check_redo(world, write, n, id, &base);
    }
    free(write);
    free(next);
    free(last);
}

/* All tables of one engine into another. */
static void
copy_tables(struct world *world, struct engine *to)
{
    struct engine_rows rows = {0};
    uint64_t last = UINT64_MAX >> __builtin_ctz(world->setup->shards);
    for (unsigned shard = 0; shard < world->setup->shards; shard++) {
        enum engine_copied copied = ENGINE_COPY_DONE;
        for (uint64_t from = 0; copied != ENGINE_COPY_END; from++) {
            engine_mark(world->engine, SLOT, shard, from, last);
            ck_assert_int_eq(
                engine_copy(world->engine, SLOT, shard, from, &rows, &copied),
                0);
            CHECK(copied != ENGINE_COPY_CLEAN);
            ck_assert_int_eq(engine_load(to, SLOT, shard, &rows), 0);
            from = rows.last_row;
            if (from == last) {
                break;
            }
        }
    }
    engine_rows_fini(&rows);
}

/* Tells an engine what the journal has behind the evictions, as a replay. */
static void
replay(struct world *world, struct engine *to)
{
    for (size_t i = 0; i < world->journal.n; i++) {
        const struct engine_write *write = &world->journal.entry[i].write;
        struct engine_base base;
        struct change change = {
            .id = write->id, .op = CHANGE_SET, .counter = SLOT};
        if (i < redo_of(world, write->id, &base)) {
            continue;
        }
        for (unsigned c = 0; c < write->n; c++) {
            for (unsigned k = 0; k < world->model.def.n_columns; k++) {
                const struct schema_column *column =
                    &world->model.def.column[k];
                if (column->serial == write->serial[c]) {
                    change.column[change.n_columns] = column->slot;
                    change.serial[change.n_columns] = column->serial;
                    change.operand[change.n_columns++] = write->value[c];
                }
            }
        }
        if (change.n_columns > 0) {
            engine_change(to, &change, 1);
            ck_assert_int_eq(change.err, 0);
        }
    }
}

/* Another engine, loaded and told, must have all that this one has. */
static void
check_recovery(struct world *world, bool with_images)
{
    struct engine *other =
        small_engine(world->setup->shards, world->setup->table_records_max);
    engine_set_cover(other, &world->fake.cover);
    ck_assert_int_eq(engine_define(other, &world->model.def), 0);
    world->fake.is_loading = true;
    engine_begin_loading(other);
    if (with_images) {
        copy_tables(world, other);
    } else {
        replay(world, other);
    }
    engine_end_loading(other);
    check_engine(world, other);
    for (size_t i = 0; i < IDS; i++) {
        struct seen a, b;
        see(world, world->engine, i, &a);
        see(world, other, i, &b);
        /* all columns that were told may have been dropped since */
        CHECK(a.found.is_here || !b.found.is_here);
        CHECK(b.found.is_here || !a.found.is_here || !with_images);
    }
    world->fake.is_loading = false;
    finish_engine(&other);
}

static void
check_all(struct world *world)
{
    check_engine(world, world->engine);
    check_redos(world);
    check_recovery(world, true);
    check_recovery(world, false);
}

/* The counter goes and comes again, with nothing covered. */
static void
clear_step(struct world *world)
{
    engine_undefine(world->engine, SLOT);
    fake_cover_clear(&world->fake);
    cell_model_clear(&world->model);
    world->begun = world->journal.n;
    ck_assert_int_eq(engine_define(world->engine, &world->model.def), 0);
}

static void
run_world(const struct setup *setup, unsigned steps)
{
    struct world *world = calloc(1, sizeof *world);
    ck_assert_ptr_nonnull(world);
    world->setup = setup;
    world->engine = small_engine(setup->shards, setup->table_records_max);
    dist_rng_init(&world->rng, 11, (uint64_t)(setup - SETUPS));
    journal_init(&world->journal);
    cell_model_init(&world->model, SLOT, setup->family, 1, IDS);
    for (unsigned i = 0; i < setup->columns; i++) {
        (void)cell_model_add_column(&world->model, &world->rng);
    }
    fake_cover_init(&world->fake, world->engine, SLOT, setup->shards, CELLS,
        world->model.id, IDS);
    engine_set_cover(world->engine, &world->fake.cover);
    engine_set_sink(world->engine, &world->journal.sink);
    ck_assert_int_eq(engine_define(world->engine, &world->model.def), 0);
    for (world->step = 0; world->step < steps; world->step++) {
        if (world->step % CHECK_EACH == 0) {
            world->mood = (struct cell_mood){.value_bits = below(world, 3) == 0
                    ? 1 + below(world, 64)
                    : setup->value_bits,
                .resets_of_16 = below(world, 12),
                .climbs_of_16 = below(world, 3),
                .has_stale = true};
        }
        change_some(world);
        if (below(world, SEAL_EACH) == 0) {
            seal_step(world);
        }
        if (below(world, TEND_EACH) == 0) {
            tend_step(world);
        }
        if (below(world, DEFINE_EACH) == 0) {
            define_step(world);
        }
        if (below(world, CLEAR_EACH) == 0) {
            clear_step(world);
        }
        if (world->step % CHECK_EACH == CHECK_EACH - 1) {
            check_all(world);
        }
    }
    check_all(world);
    CHECK(world->n_cold > 0 && world->n_stale > 0 && world->n_seals > 0);
    CHECK(world->n_tombstones > 0);
    finish_engine(&world->engine);
    fake_cover_fini(&world->fake);
    cell_model_fini(&world->model);
    journal_fini(&world->journal);
    free(world);
}

START_TEST(test_worlds)
{
    const char *text = getenv("COVER_STEPS");
    run_world(
        &SETUPS[_i], text == NULL ? long_part(STEPS) : (unsigned)atoi(text));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_worlds};
    return run_tests_often(
        "cover_random", tests, COUNT_OF(tests), COUNT_OF(SETUPS));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/engine: random changes, reads and definitions against lib/cell_model,
 * for all families of ids, with small tables so that they split, merge and
 * are made anew all the time.
 *
 * A world has two counters and one or more engines that are told the same; the
 * first is judged by the model, the others (one for each instruction set of
 * the machine) must answer as it does. Time passes in engine_tend.
 *
 * ENGINE_STEPS=N does N changes in each world instead of STEPS, or of a third
 * of them in a short run; beyond some millions set CK_TIMEOUT_MULTIPLIER as
 * well. ENGINE_SEED=N begins with other random numbers. A fault names family,
 * world, seed and step; for an assertion of the engine run with CK_FORK=no in a
 * debugger and look at *world. */
#include "lib/id_family.h"
#include "unit/engine_help.h"

enum {
    COUNTERS = 2,
    STEPS = SWEEP_PART(90000),
    BATCH_MAX = 24,
    GETS_MAX = 300,
    PHASE_STEPS_MAX = 12000,
    SUM_EACH = 16, /* batches */
    VERIFY_EACH = 1500,
    DEFINE_EACH = 1200,
    CLEAR_EACH = 12000,
    TEND_EACH = 40
};

/* What a world does for a while. */
enum phase {
    PHASE_FILL,  /* ids that are new, and some of the newest */
    PHASE_COUNT, /* the newest are the hottest */
    PHASE_CLIMB, /* a few ids up to their max */
    PHASE_CHURN, /* ids anywhere, every second change a reset */
    PHASE_EMPTY, /* nearly nothing but resets */
    PHASE_COUNT_OF
};

struct setup {
    enum id_family family;
    unsigned columns; /* at first */
    unsigned shards;
    uint32_t table_records_max;
    unsigned value_bits;
    uint32_t n;        /* ids of each counter */
    bool is_shuffled;  /* they come in random order */
    bool has_readers;  /* qsbr: the thread is a reader like others */
    bool has_all_isas; /* an engine for each */
    uint64_t max_jump;
};

static const struct setup SETUPS[] = {
    {ID_SEQUENTIAL, 1, 1, 64, 3, 6000, false, false, true, 0},
    {ID_SEQUENTIAL, 3, 16, 1000, 8, 30000, true, true, false, 0},
    {ID_SECONDS, 3, 2, 300, 6, 20000, false, true, false, 0},
    {ID_SECONDS, 16, 1, 500, 3, 8000, false, false, true, 0},
    {ID_MILLIS, 2, 1, 200, 5, 15000, false, true, false, 0},
    {ID_MILLIS, 4, 16, 64, 10, 15000, true, false, false, 0},
    {ID_RANDOM, 3, 1, 1000, 5, 20000, true, true, false, 0},
    {ID_RANDOM, 8, 2, 64, 20, 5000, true, false, true, 0},
    {ID_MULTIPLES, 1, 2, 300, 12, 12000, false, false, false, 0},
    {ID_MULTIPLES, 5, 16, 100, 4, 10000, true, true, false, 0},
    {ID_STRAY, 2, 1, 64, 4, 6000, false, true, false, 0},
    {ID_STRAY, 3, 2, 1000, 4, 20000, true, false, false, 0},
    {ID_SEQUENTIAL, 2, 4, 200, 4, 8000, false, false, false, 100},
    {ID_CLUSTERS, 3, 1, 128, 6, 12000, true, true, false, 0},
    {ID_CLUSTERS, 16, 16, 1000, 16, 6000, false, false, false, 0},
    {ID_SPREAD, 2, 2, 64, 9, 4000, true, false, false, 0},
    {ID_SPREAD, 3, 1, 700, 5, 10000, false, true, false, 0},
};

struct world {
    const struct setup *setup;
    uint64_t seed;
    uint64_t step;
    uint64_t batches;
    enum phase phase;
    struct cell_mood mood;
    struct dist_rng rng;
    struct qsbr qsbr;
    struct qsbr_reader reader;
    uint64_t now_ms;
    unsigned n_engines;
    struct engine *engine[READER_ISA_COUNT];
    struct cell_model model[COUNTERS];
    size_t *order[COUNTERS]; /* in which ids come */
    size_t newest[COUNTERS]; /* so many have come */
};

static void
blame(const struct world *world, const char *what)
{
    ck_abort_msg("%s: %s, world %zu, seed %llu, step %llu, phase %d", what,
        id_family_name(world->setup->family), (size_t)(world->setup - SETUPS),
        (unsigned long long)world->seed, (unsigned long long)world->step,
        (int)world->phase);
}

static unsigned
below(struct world *world, size_t n)
{
    return (unsigned)(dist_rng_u64(&world->rng) % n);
}

static uint64_t
number_of(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    return text == NULL ? usual : strtoull(text, NULL, 10);
}

/* While offline the thread holds no pointers into the engine. */
static void
go_offline(struct world *world)
{
    if (world->setup->has_readers) {
        qsbr_offline(&world->reader);
    }
}

static void
go_online(struct world *world)
{
    if (world->setup->has_readers) {
        qsbr_online(&world->qsbr, &world->reader);
    }
}

static void
check_sums(struct world *world)
{
    for (unsigned e = 0; e < world->n_engines; e++) {
        for (unsigned c = 0; c < COUNTERS; c++) {
            const struct cell_model *model = &world->model[c];
            struct engine_sum sum = sum_of(world->engine[e], model->def.slot);
            const char *fault = sum_fault(&sum, model->records);
            if (fault != NULL) {
                fprintf(stderr, "records %zu, in stashes %llu, wide %llu\n",
                    model->records, (unsigned long long)sum.stash_records,
                    (unsigned long long)sum.stash_wide);
                blame(world, fault);
            }
        }
    }
}

static void
verify(struct world *world)
{
    for (unsigned e = 0; e < world->n_engines; e++) {
        engine_verify(world->engine[e]);
    }
}

/* Reads keys from each engine and compares. */
static void
check_keys(struct world *world, const struct cell_key *key, size_t n)
{
    uint64_t value[GETS_MAX];
    uint8_t state[GETS_MAX];
    for (unsigned e = 0; e < world->n_engines; e++) {
        memset(value, 0xa5, n * sizeof(*value));
        memset(state, 0xa5, n);
        go_online(world);
        engine_get(world->engine[e], key, n, value, state);
        for (size_t i = 0; i < n; i++) {
            unsigned c = key[i].counter == world->model[0].def.slot ? 0 : 1;
            uint64_t want;
            enum cell_state want_state =
                cell_model_get(&world->model[c], &key[i], &want);
            if (value[i] != want || state[i] != want_state) {
                fprintf(stderr,
                    "engine %u: id %llu slot %u: %llu (state %d), not %llu "
                    "(state %d)\n",
                    e, (unsigned long long)key[i].id, key[i].column,
                    (unsigned long long)value[i], state[i],
                    (unsigned long long)want, want_state);
                blame(world, "wrong cell");
            }
        }
    }
}

/* All cells of all ids. */
static void
check_all(struct world *world)
{
    struct cell_key key[GETS_MAX] = {0};
    size_t n = 0;
    for (unsigned c = 0; c < COUNTERS; c++) {
        const struct cell_model *model = &world->model[c];
        for (size_t i = 0; i < model->n; i++) {
            for (unsigned k = 0; k < model->def.n_columns; k++) {
                key[n++] = key_of(&model->def, k, model->id[i]);
            }
            if (n > GETS_MAX - SCHEMA_COLUMNS_MAX) {
                check_keys(world, key, n);
                n = 0;
            }
        }
    }
    check_keys(world, key, n);
    check_sums(world);
    verify(world);
}

/* An id that has come, the newest hottest. */
static size_t
pick_known(struct world *world, unsigned c, enum dist_age age)
{
    size_t n = world->newest[c] == 0 ? 1 : world->newest[c];
    return world->order[c][dist_pick(&world->rng, age, n)];
}

/* Some columns of ids anywhere, of neighbours of ids that may be absent, of
 * the same id again, of dropped columns. */
static void
get_step(struct world *world)
{
    struct cell_key key[GETS_MAX] = {0};
    unsigned n = 1 + below(world, below(world, 4) == 0 ? GETS_MAX : 20);
    for (unsigned i = 0; i < n; i++) {
        if (i > 0 && below(world, 3) > 0) {
            key[i] = key[i - 1];
        } else {
            unsigned c = below(world, COUNTERS);
            size_t at = below(world, 4) == 0
                ? below(world, world->model[c].n)
                : pick_known(world, c, DIST_AGE_NEWEST);
            key[i].id = world->model[c].id[at];
            key[i].counter = world->model[c].def.slot;
            if (below(world, 8) == 0) {
                key[i].id ^= UINT64_C(1) << below(world, 64);
            } else if (below(world, 64) == 0) {
                key[i].id = dist_rng_u64(&world->rng);
            }
        }
        const struct cell_model *model =
            &world->model[key[i].counter == world->model[0].def.slot ? 0 : 1];
        unsigned k = below(world, model->def.n_columns);
        key[i].column = model->def.column[k].slot;
        key[i].serial = model->def.column[k].serial;
        if (below(world, 32) == 0) {
            key[i].column = model->old_slot;
            key[i].serial = model->old_serial;
        }
    }
    check_keys(world, key, n);
}

/* Puts something into a key of a page that the others do not have. */
static void
spoil(struct world *world, const struct cell_model *model,
    struct cell_key *key, const struct cell_model *other)
{
    switch (below(world, 4)) {
    case 0:
        key->id ^= UINT64_C(1) << below(world, 64);
        break;
    case 1:
        key->column = model->old_slot;
        key->serial = model->old_serial;
        break;
    case 2:
        key->serial ^= 1U << below(world, 32);
        break;
    default:
        key->counter = other->def.slot;
        key->column = other->def.column[0].slot;
        key->serial = other->def.column[0].serial;
        break;
    }
}

/* A page: the same columns of several ids; now and then one key is not like
 * that, or one of each id. */
static void
get_page_step(struct world *world)
{
    struct cell_key key[GETS_MAX] = {0};
    unsigned c = below(world, COUNTERS);
    const struct cell_model *model = &world->model[c];
    unsigned columns = 1 + below(world, model->def.n_columns);
    unsigned from = below(world, model->def.n_columns);
    unsigned ids = 1 + below(world, GETS_MAX / columns);
    unsigned n = ids * columns - below(world, columns);
    for (unsigned i = 0; i < n; i++) {
        unsigned k = (from + i % columns) % model->def.n_columns;
        size_t at = pick_known(world, c, DIST_AGE_NEWEST);
        uint64_t id = i % columns == 0 ? model->id[at] : key[i - 1].id;
        key[i] = key_of(&model->def, k, id);
    }
    unsigned odd = below(world, n);
    if (below(world, 2) == 0) {
        spoil(world, model, &key[odd], &world->model[(c + 1) % COUNTERS]);
    }
    unsigned alike = below(world, 2) == 0 ? n : 0;
    for (unsigned i = odd % columns; i < alike; i += columns) {
        uint64_t id = key[i].id;
        key[i] = key[odd];
        key[i].id = id;
    }
    check_keys(world, key, n);
}

/* The next id for a change, as the phase has it. */
static size_t
pick_id(struct world *world, unsigned c)
{
    size_t n = world->model[c].n;
    switch (world->phase) {
    case PHASE_FILL:
        if (world->newest[c] < n && below(world, 4) > 0) {
            return world->order[c][world->newest[c]++];
        }
        return pick_known(world, c, DIST_AGE_NEWEST);
    case PHASE_COUNT:
        return pick_known(world, c, DIST_AGE_NEWEST);
    case PHASE_CLIMB:
        return (world->seed * 37 + below(world, 40) * 11) % n;
    default:
        return pick_known(world, c, DIST_AGE_FLAT);
    }
}

static bool
is_same_answer(const struct change *a, const struct change *b)
{
    return a->err == b->err && a->n_saturated == b->n_saturated &&
        (a->err != 0 ||
            memcmp(a->value, b->value, a->n_columns * sizeof(*a->value)) == 0);
}

static void
check_change(struct world *world, unsigned c, size_t at,
    const struct change *done, struct change other[][BATCH_MAX], unsigned i)
{
    for (unsigned e = 1; e < world->n_engines; e++) {
        if (!is_same_answer(done, &other[e][i])) {
            blame(world, "engines answer differently");
        }
    }
    const char *fault = cell_model_judge(&world->model[c], at, done, false);
    if (fault != NULL) {
        fprintf(stderr, "change %u: id %llu, op %d, %u columns: %s\n", i,
            (unsigned long long)done->id, (int)done->op, done->n_columns,
            err_text(done->err));
        blame(world, fault);
    }
}

/* A batch of changes, some of one id. */
static void
change_step(struct world *world)
{
    static struct change change[READER_ISA_COUNT][BATCH_MAX];
    unsigned counter[BATCH_MAX];
    size_t at[BATCH_MAX];
    bool is_single = below(world, 3) == 0;
    unsigned n = is_single ? 1 : 1 + below(world, BATCH_MAX);
    for (unsigned i = 0; i < n; i++) {
        bool is_again = i > 0 && below(world, 4) == 0;
        unsigned from = is_again ? below(world, i) : 0;
        counter[i] = is_again ? counter[from] : below(world, 4) == 0;
        at[i] = is_again ? at[from] : pick_id(world, counter[i]);
        cell_model_random_change(&world->model[counter[i]], &world->rng,
            &world->mood, at[i], &change[0][i]);
    }
    for (unsigned e = 1; e < world->n_engines; e++) {
        memcpy(change[e], change[0], n * sizeof(change[0][0]));
    }
    for (unsigned e = 0; e < world->n_engines; e++) {
        engine_change(world->engine[e], change[e], n);
    }
    for (unsigned i = 0; i < n; i++) {
        check_change(world, counter[i], at[i], &change[0][i], change, i);
    }
    world->step += n;
}

static void
define(struct world *world, const struct cell_model *model)
{
    go_offline(world);
    for (unsigned e = 0; e < world->n_engines; e++) {
        ck_assert_int_eq(engine_define(world->engine[e], &model->def), 0);
    }
}

/* A column comes, goes, goes and comes in its old slot; an option changes. */
static void
define_step(struct world *world)
{
    unsigned c = below(world, COUNTERS);
    struct cell_model *model = &world->model[c];
    unsigned n = model->def.n_columns;
    unsigned most = 2 * world->setup->columns;
    most = most > SCHEMA_COLUMNS_MAX ? SCHEMA_COLUMNS_MAX : most;
    switch (below(world, 4)) {
    case 0:
        model->def.overflow_is_error = below(world, 2) == 0;
        model->def.absent_is_miss = below(world, 2) == 0;
        break;
    case 1:
        cell_model_renew_column(model, below(world, n), &world->rng);
        break;
    case 2:
        if (n > 1) {
            cell_model_drop_column(model, below(world, n));
            break;
        }
        /* fallthrough */
    default:
        if (n < most) {
            (void)cell_model_add_column(model, &world->rng);
        } else {
            cell_model_drop_column(model, below(world, n));
        }
    }
    define(world, model);
    check_sums(world);
}

/* The counter is dropped and comes again. */
static void
clear_step(struct world *world)
{
    unsigned c = below(world, COUNTERS);
    go_offline(world);
    for (unsigned e = 0; e < world->n_engines; e++) {
        engine_undefine(world->engine[e], world->model[c].def.slot);
    }
    cell_model_clear(&world->model[c]);
    define(world, &world->model[c]);
    world->newest[c] = 0;
}

static void
tend_step(struct world *world)
{
    unsigned rounds = below(world, 16) == 0 ? 40 : 1;
    go_offline(world);
    for (unsigned i = 0; i < rounds; i++) {
        world->now_ms += below(world, 1500);
        for (unsigned e = 0; e < world->n_engines; e++) {
            (void)engine_tend(world->engine[e], world->now_ms);
        }
    }
    check_sums(world);
}

static void
begin_phase(struct world *world)
{
    static const struct cell_mood moods[PHASE_COUNT_OF] = {
        [PHASE_FILL] = {.resets_of_16 = 0, .climbs_of_16 = 0},
        [PHASE_COUNT] = {.resets_of_16 = 1, .climbs_of_16 = 1},
        [PHASE_CLIMB] = {.resets_of_16 = 0, .climbs_of_16 = 15},
        [PHASE_CHURN] = {.resets_of_16 = 8, .climbs_of_16 = 0},
        [PHASE_EMPTY] = {.resets_of_16 = 15, .climbs_of_16 = 0},
    };
    bool is_full = world->newest[0] > world->model[0].n / 2;
    world->phase = (enum phase)below(world, PHASE_COUNT_OF);
    if (world->phase == PHASE_EMPTY && !is_full) {
        world->phase = PHASE_FILL;
    }
    world->mood = moods[world->phase];
    world->mood.has_stale = true;
    world->mood.value_bits = world->setup->value_bits;
    if (below(world, 8) == 0) {
        world->mood.value_bits = 1 + below(world, 64);
    }
}

static void
world_run(struct world *world, uint64_t steps)
{
    while (world->step < steps) {
        begin_phase(world);
        uint64_t end = world->step + 1 + below(world, PHASE_STEPS_MAX);
        end = end < steps ? end : steps;
        while (world->step < end) {
            change_step(world);
            world->batches++;
            if (below(world, 4) == 0) {
                get_step(world);
                get_page_step(world);
            }
            if (world->batches % SUM_EACH == 0) {
                check_sums(world);
            }
            if (world->batches % VERIFY_EACH == 0) {
                verify(world);
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
        }
        check_all(world);
    }
}

static void
make_order(struct world *world, unsigned c)
{
    size_t n = world->model[c].n;
    size_t *order = calloc(n, sizeof(*order));
    ck_assert_ptr_nonnull(order);
    for (size_t i = 0; i < n; i++) {
        size_t k = world->setup->is_shuffled ? below(world, i + 1) : i;
        order[i] = order[k];
        order[k] = i;
    }
    world->order[c] = order;
}

static void
make_engines(struct world *world)
{
    const struct setup *setup = world->setup;
    struct engine_config config = {.shards = setup->shards,
        .seed = world->seed,
        .hot_bytes = ROOMY_BYTES,
        .qsbr = setup->has_readers ? &world->qsbr : NULL,
        .table_records_max = setup->table_records_max};
    world->engine[world->n_engines++] = engine_of(&config);
    for (int isa = READER_BEST + 1; isa < READER_ISA_COUNT; isa++) {
        config.isa = (enum reader_isa)isa;
        if (setup->has_all_isas && reader_has(config.isa)) {
            world->engine[world->n_engines++] = engine_of(&config);
        }
    }
}

static struct world *
world_create(const struct setup *setup, uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    ck_assert_ptr_nonnull(world);
    world->setup = setup;
    world->seed = seed;
    dist_rng_init(&world->rng, seed, 1);
    qsbr_init(&world->qsbr);
    qsbr_register(&world->qsbr, &world->reader);
    make_engines(world);
    for (unsigned c = 0; c < COUNTERS; c++) {
        struct cell_model *model = &world->model[c];
        cell_model_init(model, c == 0 ? 0 : 255, setup->family, seed + c,
            c == 0 ? setup->n : setup->n / 4);
        model->def.max_jump = setup->max_jump;
        for (unsigned i = 0; i < setup->columns; i++) {
            (void)cell_model_add_column(model, &world->rng);
        }
        make_order(world, c);
        define(world, model);
    }
    return world;
}

static void
world_destroy(struct world *world)
{
    go_offline(world);
    for (unsigned e = 0; e < world->n_engines; e++) {
        engine_destroy(&world->engine[e]);
    }
    for (unsigned c = 0; c < COUNTERS; c++) {
        cell_model_fini(&world->model[c]);
        free(world->order[c]);
    }
    qsbr_unregister(&world->qsbr, &world->reader);
    qsbr_fini(&world->qsbr);
    free(world);
}

/* Every world of a family. */
static void
run_family(enum id_family family)
{
    uint64_t seed = number_of("ENGINE_SEED", 1);
    for (size_t i = 0; i < COUNT_OF(SETUPS); i++) {
        if (SETUPS[i].family == family) {
            struct world *world = world_create(&SETUPS[i], seed + i);
            world_run(world, number_of("ENGINE_STEPS", plain_part(STEPS)));
            world_destroy(world);
        }
    }
}

#define FAMILY_TEST(name, text)                                               \
    START_TEST(test_##name)                                                   \
    {                                                                         \
        run_family(ID_##name);                                                \
    }                                                                         \
    END_TEST

ID_FAMILIES(FAMILY_TEST)

int
main(void)
{
    const TTest *const tests[] = {
#define X(name, text) test_##name,
        ID_FAMILIES(X)
#undef X
    };
    return run_tests("engine_random", tests, COUNT_OF(tests));
}

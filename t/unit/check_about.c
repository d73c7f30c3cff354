/* SPDX-License-Identifier: BSD-3-Clause */
/* about: against a set that forgets nothing, over many closes: nothing that was
 * added is ever out, above the window; the share of wrong looks is what the
 * figures say; what is logged makes the same tables, from wherever it is read
 * again. Ids that jump, memory that changes, no memory at all. */
#include "about/about_life.h"

#include "base/err.h"
#include "lib/fault_alloc.h"
#include "unit/check_help.h"

enum {
    LINES = 64, /* of a table */
    MEMORY = ABOUT_TABLES * LINES * ABOUT_LINE_BYTES,
    ADDS = 400000,
    LATE = 2000 /* ids that still get members */
};

/* What a sink was told: pairs, and where tables began. */
struct told {
    struct about_pair pair; /* of a table: its first id, and the lowest */
    bool is_roll;
};

struct rig {
    struct about_sink sink;
    struct qsbr qsbr;
    struct qsbr_reader reader;
    struct about *about;
    struct told *told;
    size_t n, capacity;
};

static struct told *
tell(struct rig *rig)
{
    if (rig->n == rig->capacity) {
        rig->capacity = rig->capacity == 0 ? 1024 : 2 * rig->capacity;
        rig->told = realloc(rig->told, rig->capacity * sizeof *rig->told);
        ck_assert_ptr_nonnull(rig->told);
    }
    return &rig->told[rig->n++];
}

static uint64_t
tell_adds(struct about_sink *sink, const struct about_pair *pair, size_t n)
{
    struct rig *rig = (struct rig *)sink;
    ck_assert(n >= 1 && n <= ABOUT_BATCH);
    for (size_t i = 0; i < n; i++) {
        *tell(rig) = (struct told){.pair = pair[i]};
    }
    return rig->n;
}

static uint64_t
tell_last(struct about_sink *sink)
{
    return ((struct rig *)sink)->n;
}

static void
tell_roll(struct about_sink *sink, uint64_t first, uint64_t lowest)
{
    struct told *told = tell((struct rig *)sink);
    *told = (struct told){.pair = {first, lowest}, .is_roll = true};
}

static struct about_config
config_of(struct rig *rig, unsigned error)
{
    return (struct about_config){.memory_bytes = MEMORY,
        .error = error,
        .seed = 77,
        .serial = 5,
        .qsbr = &rig->qsbr,
        .sink = &rig->sink};
}

static void
rig_init(struct rig *rig, unsigned error)
{
    *rig = (struct rig){
        .sink = {
            .add_fn = tell_adds, .last_fn = tell_last, .roll_fn = tell_roll}};
    qsbr_init(&rig->qsbr);
    qsbr_register(&rig->qsbr, &rig->reader);
    struct about_config config = config_of(rig, error);
    ck_assert_int_eq(about_create(&config, &rig->about), 0);
    qsbr_online(&rig->qsbr, &rig->reader);
}

static void
rig_fini(struct rig *rig)
{
    about_verify(rig->about);
    qsbr_offline(&rig->reader);
    about_destroy(&rig->about);
    ck_assert_ptr_null(rig->about);
    qsbr_unregister(&rig->qsbr, &rig->reader);
    qsbr_fini(&rig->qsbr);
    free(rig->told);
}

static enum about_said
add(struct rig *rig, uint64_t id, uint64_t member)
{
    struct about_pair pair = {id, member};
    uint8_t said;
    (void)about_add(rig->about, &pair, 1, 0, &said);
    return said;
}

static enum about_said
get(const struct about *about, uint64_t id, uint64_t member)
{
    struct about_pair pair = {id, member};
    uint8_t said;
    about_get(about, &pair, 1, &said);
    return said;
}

/* All n pairs are in, or below the window; returns how many are in. */
static size_t
expect_all(const struct about *about, const struct about_pair *pair, size_t n)
{
    static uint8_t said[ADDS];
    struct about_figures figures;
    size_t n_in = 0;
    about_figures(about, &figures);
    about_get(about, pair, n, said);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(
            said[i], pair[i].id < figures.first_id ? ABOUT_BELOW : ABOUT_IN);
        n_in += said[i] == ABOUT_IN;
    }
    return n_in;
}

/* Members of ids that go up, most of the last ones; in batches of any size. */
static void
fill(struct rig *rig, struct about_pair *pair, size_t n, uint64_t *random)
{
    static uint8_t said[200];
    struct about_figures figures;
    about_figures(rig->about, &figures);
    uint64_t from = figures.largest_id + LATE;
    uint64_t seq = 0;
    for (size_t at = 0; at < n;) {
        size_t batch = 1 + random_below(random, 200);
        batch = batch < n - at ? batch : n - at;
        for (size_t i = at; i < at + batch; i++) {
            uint64_t newest = from + i / 10;
            uint64_t back = random_below(random, 4) == 0
                ? random_below(random, LATE)
                : random_below(random, 20);
            pair[i] = (struct about_pair){
                newest - back, random_below(random, UINT64_C(1) << 40)};
        }
        uint64_t got = about_add(rig->about, pair + at, batch, 0, said);
        ck_assert_uint_ge(got, seq);
        seq = rig->n;
        for (size_t i = 0; i < batch; i++) {
            ck_assert(said[i] <= ABOUT_BELOW);
        }
        qsbr_online(&rig->qsbr, &rig->reader);
        at += batch;
    }
}

/* Looks for what is no member: one in how many is wrong. */
static uint64_t
measure(const struct about *about, uint64_t *random)
{
    enum { LOOKS = 200000 };
    struct about_figures figures;
    uint64_t n_wrong = 0;
    about_figures(about, &figures);
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t id = figures.first_id +
            random_below(random, figures.largest_id - figures.first_id + 1);
        n_wrong +=
            get(about, id,
                random_below(random, 1 << 20) | UINT64_C(1) << 60) == ABOUT_IN;
    }
    return n_wrong == 0 ? UINT64_MAX : LOOKS / n_wrong;
}

static void
expect_near(uint64_t a, uint64_t b)
{
    ck_assert_msg(a * 5 >= b * 4 && a * 4 <= b * 5, "%llu and %llu",
        (unsigned long long)a, (unsigned long long)b);
}

static void
check_model(unsigned error)
{
    static struct about_pair pair[ADDS];
    uint64_t random = 7;
    struct rig rig;
    struct about_figures figures;
    rig_init(&rig, error);
    fill(&rig, pair, ADDS, &random);
    size_t n_in = expect_all(rig.about, pair, ADDS);
    about_figures(rig.about, &figures);
    ck_assert_uint_eq(figures.tables, ABOUT_TABLES);
    ck_assert_uint_gt(figures.forgotten, 3);
    ck_assert_uint_eq(figures.closed + 1, figures.forgotten + figures.tables);
    ck_assert_uint_gt(n_in, ADDS / 10);
    ck_assert_uint_le(figures.members, n_in);
    /* most of what it is for, and not much more */
    ck_assert_uint_gt(
        figures.members, figures.members_max * figures.tables * 7 / 10);
    ck_assert_uint_lt(figures.fullest, figures.members_max * 5 / 4);
    ck_assert_uint_ge(figures.wrong_one_in, error * 9 / 10);
    if (error <= 100) {
        expect_near(measure(rig.about, &random), figures.wrong_one_in);
    }
    rig_fini(&rig);
}

START_TEST(test_model)
{
    check_model(ABOUT_ERROR_MIN);
    check_model(50);
    check_model(100);
    check_model(ABOUT_ERROR_MAX);
}
END_TEST

static void
redo(struct about *about, const struct told *told)
{
    if (told->is_roll) {
        ck_assert_int_eq(
            about_redo_roll(about, told->pair.id, told->pair.member), 0);
    } else {
        about_redo(about, &told->pair, 1);
    }
}

/* What was logged makes the same window and no member less; and so does its
 * second part when it comes again. */
START_TEST(test_redo)
{
    static struct about_pair pair[ADDS];
    uint64_t random = 3;
    struct rig rig;
    struct about *again;
    struct about_figures figures, same;
    rig_init(&rig, 100);
    fill(&rig, pair, ADDS, &random);
    struct about_config config = config_of(&rig, 100);
    config.sink = NULL;
    ck_assert_int_eq(about_create(&config, &again), 0);
    for (size_t i = 0; i < rig.n; i++) {
        redo(again, &rig.told[i]);
    }
    for (size_t i = rig.n / 2; i < rig.n; i++) {
        redo(again, &rig.told[i]);
    }
    about_figures(rig.about, &figures);
    about_figures(again, &same);
    ck_assert_uint_eq(same.first_id, figures.first_id);
    ck_assert_uint_eq(same.tables, figures.tables);
    ck_assert_uint_eq(same.largest_id, figures.largest_id);
    ck_assert_uint_eq(same.wrong_one_in, figures.wrong_one_in);
    (void)expect_all(again, pair, ADDS);
    about_destroy(&again);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_answers)
{
    struct rig rig;
    struct about_pair pair[] = {{5, 1}, {5, 1}, {2000, 1}, {1005, 2}};
    uint8_t said[4];
    rig_init(&rig, 100);
    ck_assert_uint_eq(get(rig.about, 5, 1), ABOUT_OUT);
    /* the first id may be any; a refused one raises nothing */
    ck_assert_uint_eq(about_add(rig.about, pair, 4, 1000, said), 3);
    ck_assert_uint_eq(said[0], ABOUT_OUT);
    ck_assert_uint_eq(said[1], ABOUT_IN); /* twice in a batch */
    ck_assert_uint_eq(said[2], ABOUT_JUMP);
    ck_assert_uint_eq(said[3], ABOUT_OUT);
    ck_assert_uint_eq(get(rig.about, 2000, 1), ABOUT_OUT);
    ck_assert_uint_eq(get(rig.about, 1005, 2), ABOUT_IN);
    /* what is in is logged no more, but waits for who has logged it */
    ck_assert_uint_eq(about_add(rig.about, pair, 1, 0, said), 3);
    ck_assert_uint_eq(said[0], ABOUT_IN);
    ck_assert_uint_eq(rig.n, 3);
    ck_assert_uint_eq(add(&rig, UINT64_MAX, UINT64_MAX), ABOUT_OUT);
    ck_assert_uint_eq(get(rig.about, UINT64_MAX, UINT64_MAX), ABOUT_IN);
    rig_fini(&rig);
}
END_TEST

/* What a look says before, an add says too, and then it is in: also where two
 * of a member's bits are one. */
START_TEST(test_says_the_same)
{
    struct rig rig;
    unsigned n_in = 0;
    rig_init(&rig, ABOUT_ERROR_MAX);
    for (uint64_t id = 0; id < 5000; id++) {
        enum about_said was = get(rig.about, id, id % 7);
        ck_assert_int_eq(add(&rig, id, id % 7), was);
        ck_assert_int_eq(add(&rig, id, id % 7), ABOUT_IN);
        n_in += was == ABOUT_IN;
    }
    ck_assert_uint_lt(n_in, 10);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_resize)
{
    static struct about_pair pair[ADDS];
    uint64_t random = 11;
    struct rig rig;
    struct about_figures figures;
    rig_init(&rig, 100);
    fill(&rig, pair, ADDS / 2, &random);
    about_resize(rig.about, MEMORY / 4);
    qsbr_online(&rig.qsbr, &rig.reader);
    about_tend(rig.about);
    about_figures(rig.about, &figures);
    ck_assert_uint_eq(figures.tables, ABOUT_TABLES / 4);
    ck_assert_uint_eq(figures.bytes, MEMORY / 4);
    (void)expect_all(rig.about, pair, ADDS / 2);
    about_resize(rig.about, 2 * MEMORY);
    fill(&rig, pair, ADDS, &random);
    about_figures(rig.about, &figures);
    ck_assert_uint_gt(figures.tables, ABOUT_TABLES);
    (void)expect_all(rig.about, pair, ADDS);
    about_resize(rig.about, 1);
    about_figures(rig.about, &figures);
    ck_assert_uint_eq(figures.tables, ABOUT_TABLES_MIN);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_no_memory)
{
    static struct about_pair pair[ADDS / 8];
    uint64_t random = 13;
    struct rig rig;
    struct about *about = NULL;
    struct about_figures figures;
    struct fault_alloc fault;
    fault_alloc_init(&fault);
    fault.fail_from = fault.fail_to = 1;
    rig_init(&rig, 100);
    struct about_config config = config_of(&rig, 100);
    config.alloc = &fault.alloc;
    ck_assert_int_eq(about_create(&config, &about), ERR_NO_MEMORY);
    fault.fail_from = 5;
    fault.fail_to = SIZE_MAX;
    ck_assert_int_eq(about_create(&config, &about), 0);
    ck_assert_int_eq(about_redo_roll(about, 5, 0), 0);
    struct about *full = rig.about;
    rig.about = about;
    fill(&rig, pair, ADDS / 8, &random);
    about_figures(about, &figures);
    ck_assert_uint_eq(figures.tables, 3);
    (void)expect_all(about, pair, ADDS / 8);
    ck_assert_int_eq(about_redo_roll(about, UINT64_MAX, 0), ERR_NO_MEMORY);
    fault.fail_from = fault.fail_to = 0;
    ck_assert_int_eq(about_redo_roll(about, UINT64_MAX, 0), 0);
    rig.about = full;
    about_destroy(&about);
    ck_assert_uint_eq(fault.live_bytes, 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_model, test_redo, test_answers,
        test_says_the_same, test_resize, test_no_memory};
    return run_tests("about", tests, COUNT_OF(tests));
}

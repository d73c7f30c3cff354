/* SPDX-License-Identifier: BSD-3-Clause */
/* about: threads that add, each in front of the other, and look, while tables
 * close, go and are freed. Nobody ever misses what he or another has added; of
 * those who add one pair at once one has it as new; and what they logged, in
 * its order, makes the same members. Ids of the next table wait while one
 * closes. */
#include "about/about_life.h"

#include "base/err.h"
#include "base/mutex.h"
#include "unit/check_help.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    ADDERS = 3,
    LINES = 16,
    MEMORY = ABOUT_TABLES * LINES * ABOUT_LINE_BYTES,
    ROUNDS = SANITIZER_THREAD ? 2500 : 6000,
    BATCH = 10,
    YIELDS = 1000,
    ADDS = ROUNDS * BATCH,
    TOLD_MAX = 2 * ADDERS * ADDS
};

/* What the sink was told; of a table its first id and the lowest. */
struct told {
    struct about_pair pair;
    bool is_roll;
};

struct race {
    struct about_sink sink;
    struct qsbr qsbr;
    struct about *about;
    struct mutex lock; /* what was told */
    struct told *told;
    size_t n;
    _Atomic uint64_t newest;           /* ids are about there */
    _Atomic uint64_t n_common[ROUNDS]; /* who had the pair of all as new */
};

struct adder {
    struct race *race;
    unsigned number;
    struct about_pair pair[ADDS];
};

static uint64_t
tell_adds(struct about_sink *sink, const struct about_pair *pair, size_t n)
{
    struct race *race = (struct race *)sink;
    mutex_lock(&race->lock);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_lt(race->n, TOLD_MAX);
        race->told[race->n++] = (struct told){.pair = pair[i]};
    }
    uint64_t last = race->n;
    mutex_unlock(&race->lock);
    return last;
}

static uint64_t
tell_last(struct about_sink *sink)
{
    struct race *race = (struct race *)sink;
    mutex_lock(&race->lock);
    uint64_t last = race->n;
    mutex_unlock(&race->lock);
    return last;
}

static void
tell_roll(struct about_sink *sink, uint64_t first, uint64_t lowest)
{
    struct race *race = (struct race *)sink;
    mutex_lock(&race->lock);
    race->told[race->n++] =
        (struct told){.pair = {first, lowest}, .is_roll = true};
    mutex_unlock(&race->lock);
}

/* All of these are in, or below the window. */
static void
expect_all(const struct about *about, const struct about_pair *pair, size_t n)
{
    uint8_t said[ADDS];
    about_get(about, pair, n, said);
    for (size_t i = 0; i < n; i++) {
        ck_assert(said[i] == ABOUT_IN || said[i] == ABOUT_BELOW);
    }
}

static void
add_round(struct adder *adder, unsigned round, uint64_t *random)
{
    struct race *race = adder->race;
    struct about_pair *pair = &adder->pair[round * BATCH];
    uint8_t said[BATCH];
    uint64_t newest = atomic_fetch_add(&race->newest, 1);
    for (unsigned i = 0; i < BATCH - 1; i++) {
        uint64_t id = newest + random_below(random, 3);
        pair[i] = (struct about_pair){
            random_below(random, 5) > 0 ? id : random_below(random, id + 1),
            random_below(random, UINT64_C(1) << 40)};
    }
    pair[BATCH - 1] = (struct about_pair){ADDERS * (uint64_t)round, round};
    (void)about_add(race->about, pair, BATCH, 0, said);
    atomic_fetch_add(
        &race->n_common[round], said[BATCH - 1] == ABOUT_OUT ? 1 : 0);
    expect_all(race->about, pair, BATCH);
    unsigned back = (unsigned)random_below(random, round + 1);
    expect_all(race->about, &adder->pair[back * BATCH], BATCH);
}

static void *
add_all(void *context)
{
    struct adder *adder = context;
    struct qsbr_reader reader;
    uint64_t random = adder->number;
    qsbr_register(&adder->race->qsbr, &reader);
    for (unsigned round = 0; round < ROUNDS; round++) {
        qsbr_online(&adder->race->qsbr, &reader);
        add_round(adder, round, &random);
        if (random_below(&random, 8) == 0) {
            qsbr_offline(&reader);
        }
    }
    qsbr_offline(&reader);
    qsbr_unregister(&adder->race->qsbr, &reader);
    return NULL;
}

static void
expect_logged(const struct race *race, const struct about_config *config,
    const struct adder *adder)
{
    struct about_config quiet = *config;
    struct about *again;
    quiet.sink = NULL;
    ck_assert_int_eq(about_create(&quiet, &again), 0);
    for (size_t i = 0; i < race->n; i++) {
        const struct about_pair *pair = &race->told[i].pair;
        if (race->told[i].is_roll) {
            ck_assert_int_eq(
                about_redo_roll(again, pair->id, pair->member), 0);
        } else {
            about_redo(again, pair, 1);
        }
    }
    for (unsigned i = 0; i < ADDERS; i++) {
        expect_all(again, adder[i].pair, ADDS);
    }
    about_destroy(&again);
}

START_TEST(test_threads)
{
    struct race *race = calloc(1, sizeof *race);
    struct adder *adder = calloc(ADDERS, sizeof *adder);
    pthread_t thread[ADDERS];
    ck_assert(race != NULL && adder != NULL);
    race->told = calloc(TOLD_MAX, sizeof *race->told);
    ck_assert_ptr_nonnull(race->told);
    race->sink = (struct about_sink){tell_adds, tell_last, tell_roll};
    mutex_init(&race->lock);
    qsbr_init(&race->qsbr);
    struct about_config config = {.memory_bytes = MEMORY,
        .error = 100,
        .seed = 1,
        .serial = 1,
        .qsbr = &race->qsbr,
        .sink = &race->sink};
    ck_assert_int_eq(about_create(&config, &race->about), 0);
    for (unsigned i = 0; i < ADDERS; i++) {
        adder[i].race = race;
        adder[i].number = i;
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, add_all, &adder[i]), 0);
    }
    for (unsigned i = 0; i < ADDERS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    struct about_figures figures;
    about_verify(race->about);
    about_tend(race->about);
    about_figures(race->about, &figures);
    ck_assert_uint_gt(figures.closed, 8);
    /* what has gone was freed */
    ck_assert_uint_eq(
        figures.bytes, figures.tables * LINES * ABOUT_LINE_BYTES);
    for (unsigned i = 0; i < ROUNDS; i++) {
        ck_assert_uint_le(atomic_load(&race->n_common[i]), 1);
    }
    expect_logged(race, &config, adder);
    about_destroy(&race->about);
    qsbr_fini(&race->qsbr);
    mutex_fini(&race->lock);
    free(race->told);
    free(adder);
    free(race);
}
END_TEST

/* A table that closes, and one who adds an id of the next one meanwhile. */
struct closing {
    struct about_sink sink; /* first */
    struct qsbr qsbr;
    struct about *about;
    struct about_pair pair;
    pthread_t thread;
    _Atomic bool is_added;
    unsigned n_rolls;
};

static uint64_t
tell_nobody(struct about_sink *sink, const struct about_pair *pair, size_t n)
{
    (void)sink;
    (void)pair;
    return n;
}

static uint64_t
know_nothing(struct about_sink *sink)
{
    (void)sink;
    return 0;
}

static void
add_in_turn(struct closing *closing, struct about_pair pair)
{
    struct qsbr_reader reader;
    uint8_t said;
    qsbr_register(&closing->qsbr, &reader);
    qsbr_online(&closing->qsbr, &reader);
    (void)about_add(closing->about, &pair, 1, 0, &said);
    qsbr_offline(&reader);
    qsbr_unregister(&closing->qsbr, &reader);
}

static void *
add_next(void *context)
{
    struct closing *closing = context;
    add_in_turn(closing, closing->pair);
    atomic_store(&closing->is_added, true);
    return NULL;
}

static void
add_while_it_closes(struct about_sink *sink, uint64_t first, uint64_t lowest)
{
    struct closing *closing = (struct closing *)sink;
    struct about_figures figures;
    (void)lowest;
    if (closing->n_rolls++ > 0) {
        return;
    }
    closing->pair = (struct about_pair){first + 1, 7};
    ck_assert_int_eq(
        pthread_create(&closing->thread, NULL, add_next, closing), 0);
    do {
        sched_yield();
        about_figures(closing->about, &figures);
    } while (figures.largest_id <= first);
    /* it is in the call and must wait; else it would be through, soon */
    for (unsigned i = 0; i < YIELDS; i++) {
        ck_assert(!atomic_load(&closing->is_added));
        sched_yield();
    }
}

START_TEST(test_close)
{
    struct closing closing = {
        .sink = {tell_nobody, know_nothing, add_while_it_closes}};
    struct qsbr_reader reader;
    uint8_t said;
    qsbr_init(&closing.qsbr);
    const struct about_config config = {.memory_bytes = MEMORY,
        .error = 100,
        .seed = 1,
        .serial = 1,
        .qsbr = &closing.qsbr,
        .sink = &closing.sink};
    ck_assert_int_eq(about_create(&config, &closing.about), 0);
    for (uint64_t i = 0; closing.n_rolls == 0; i++) {
        add_in_turn(&closing, (struct about_pair){i / 8, i});
    }
    ck_assert_int_eq(pthread_join(closing.thread, NULL), 0);
    qsbr_register(&closing.qsbr, &reader);
    qsbr_online(&closing.qsbr, &reader);
    about_get(closing.about, &closing.pair, 1, &said);
    ck_assert_int_eq(said, ABOUT_IN);
    qsbr_offline(&reader);
    qsbr_unregister(&closing.qsbr, &reader);
    about_destroy(&closing.about);
    qsbr_fini(&closing.qsbr);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_threads, test_close};
    return run_tests("about_threads", tests, COUNT_OF(tests));
}

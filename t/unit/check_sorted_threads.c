/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/sorted: readers beside a writer, who keeps what can be seen between
 * bounds. */
#include "unit/sorted_help.h"

#include <pthread.h>
#include <stdatomic.h>

enum { READERS = 3, ROUNDS = 20000, WINDOW = 40, READ_IDS = 3 };

struct race {
    struct rig rig;
    struct qsbr qsbr;
    _Atomic uint64_t added[READ_IDS]; /* the largest member there is, or will
                                       * be in a moment */
    _Atomic uint64_t seen[READ_IDS];  /* the largest one that is there */
    _Atomic bool stop;
    struct mutex making; /* one at a time */
};

static int
pin_in_race(struct race *race, struct walk *walk, const struct sorted_key *key,
    struct sorted_pin *pin)
{
    int err = 0;
    if (!engine_pin(race->rig.engine, key, pin)) {
        mutex_lock(&race->making);
        err = engine_make_sorted(race->rig.engine, key, &walk->walk, pin);
        mutex_unlock(&race->making);
    }
    return err;
}

/* What is seen is never less than what was there before, nor more than what
 * was there after. */
static void *
read_all(void *context)
{
    struct race *race = context;
    struct qsbr_reader reader;
    struct walk walk = walk_of(&race->rig);
    uint64_t random = (uintptr_t)&reader;
    qsbr_register(&race->qsbr, &reader);
    while (!atomic_load(&race->stop)) {
        uint64_t id = random_below(&random, READ_IDS);
        struct sorted_pin pin;
        qsbr_online(&race->qsbr, &reader);
        struct sorted_key key = sorted_key_of(&race->rig, id);
        if (key.number == 0) {
            qsbr_offline(&reader);
            continue;
        }
        uint64_t from = atomic_load(&race->seen[id]);
        CHECK(pin_in_race(race, &walk, &key, &pin) == 0);
        uint64_t until = atomic_load(&race->added[id]);
        qsbr_offline(&reader); /* a pin outlives that */
        uint64_t top = sorted_largest(&pin);
        CHECK(top >= from && top <= until);
        uint64_t n = sorted_above(&pin, 0);
        CHECK(n == WINDOW || n == WINDOW + 1);
        CHECK(sorted_above(&pin, top - 1) == 1);
        engine_unpin(race->rig.engine, &pin);
    }
    qsbr_unregister(&race->qsbr, &reader);
    return NULL;
}

/* Each id has its WINDOW newest members. */
static void
write_all(struct race *race)
{
    uint64_t now_ms = 0;
    for (uint64_t m = WINDOW + 1; m < ROUNDS; m++) {
        for (uint64_t id = 0; id < READ_IDS; id++) {
            atomic_store(&race->added[id], m);
            ck_assert_int_eq(
                change_member(&race->rig, CHANGE_MEMBER_SET, id, m, 1), 0);
            atomic_store(&race->seen[id], m);
            ck_assert_int_eq(change_member(&race->rig, CHANGE_MEMBER_DELETE,
                                 id, m - WINDOW, 1),
                0);
        }
        if (m % 64 == 0) {
            (void)engine_tend(race->rig.engine, now_ms += 50);
        }
    }
}

START_TEST(test_threads)
{
    struct race race;
    pthread_t thread[READERS];
    memset(&race, 0, sizeof race);
    qsbr_init(&race.qsbr);
    mutex_init(&race.making);
    rig_form(&race.rig, 2, 33, 1);
    rig_make(&race.rig, NULL, &race.qsbr);
    engine_set_sink(race.rig.engine, NULL);
    struct qsbr_reader own;
    qsbr_register(&race.qsbr, &own);
    qsbr_offline(&own);
    for (uint64_t id = 0; id < READ_IDS; id++) {
        for (uint64_t m = 1; m <= WINDOW; m++) {
            ck_assert_int_eq(
                change_member(&race.rig, CHANGE_MEMBER_SET, id, m, 1), 0);
        }
        atomic_store(&race.seen[id], WINDOW);
        atomic_store(&race.added[id], WINDOW);
    }
    for (unsigned i = 0; i < READERS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_all, &race), 0);
    }
    write_all(&race);
    atomic_store(&race.stop, true);
    for (unsigned i = 0; i < READERS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    qsbr_unregister(&race.qsbr, &own);
    rig_fini(&race.rig);
    mutex_fini(&race.making);
    qsbr_fini(&race.qsbr);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_threads};
    return run_tests("sorted_threads", tests, COUNT_OF(tests));
}

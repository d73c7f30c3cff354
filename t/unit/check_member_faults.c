/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/member: memory that runs out, and several threads. */
#include "lib/fault_alloc.h"
#include "unit/member_help.h"

#include <pthread.h>
#include <stdatomic.h>

enum { FAULT_IDS = 40, FAULT_MEMBERS = 6, SWEEPS_MAX = 4000 };

/* What there is, by looks; the count is that of the members. */
struct image {
    uint64_t likes[FAULT_IDS];
    uint64_t number[FAULT_IDS];
    uint8_t value[FAULT_IDS][FAULT_MEMBERS];
};

static uint64_t
fault_id(unsigned i)
{
    return i * UINT64_C(0x100000001);
}

static void
take_image(struct rig *rig, struct image *image)
{
    for (unsigned i = 0; i < FAULT_IDS; i++) {
        unsigned n = 0;
        image->likes[i] = likes_of(rig, fault_id(i));
        image->number[i] = number_of(rig, fault_id(i));
        for (unsigned m = 0; m < FAULT_MEMBERS; m++) {
            image->value[i][m] = (uint8_t)value_of(rig, fault_id(i), m);
            n += image->value[i][m] != 0;
        }
        CHECK(image->likes[i] == n);
    }
}

/* One run of changes of which the n-th allocation fails, and with for_ever all
 * behind it: false where it never came. What is refused leaves record and pair
 * as they were, and the sink is not told. */
static bool
sweep(size_t n, bool for_ever)
{
    struct rig rig;
    struct fault_alloc fault;
    struct image before, after;
    struct engine_given_up given;
    uint64_t random = 5;
    fault_alloc_init(&fault);
    rig_form(&rig, 2, 33, 2);
    rig_make(&rig, &fault.alloc, NULL);
    fault.fail_from = fault.calls + n;
    fault.fail_to = for_ever ? SIZE_MAX : fault.fail_from;
    take_image(&rig, &before);
    for (unsigned i = 0; i < 600; i++) {
        enum change_op op = random_below(&random, 3) == 0 ? CHANGE_MEMBER_DECR
                                                          : CHANGE_MEMBER_INCR;
        unsigned at = (unsigned)random_below(&random, FAULT_IDS);
        struct change change = member_of(
            &rig, op, fault_id(at), random_below(&random, FAULT_MEMBERS), 1);
        size_t n_told = rig.journal.n, n_failed = fault.failures;
        if (random_below(&random, 12) == 0) {
            change = forget_of(&rig, fault_id(at));
        }
        engine_change(rig.engine, &change, 1);
        if (change.err != 0 && change.err != ERR_NOT_FOUND) {
            ck_assert_int_eq(change.err, ERR_NO_MEMORY);
            ck_assert_uint_gt(fault.failures, n_failed);
            ck_assert_uint_eq(rig.journal.n, n_told);
            take_image(&rig, &after);
            CHECK(memcmp(&before, &after, sizeof before) == 0);
        } else {
            take_image(&rig, &before);
        }
        if (i % 100 == 0) {
            (void)engine_take_out(rig.engine);
        }
    }
    bool has_failed = fault.failures > 0;
    fault.fail_from = fault.fail_to = 0;
    engine_given_up(rig.engine, &given);
    ck_assert_uint_le(given.lost, fault.failures);
    uint64_t now_ms = 0, n_pairs = 0;
    tend_all(rig.engine, &now_ms);
    take_image(&rig, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    for (unsigned i = 0; i < FAULT_IDS; i++) {
        n_pairs += after.likes[i];
    }
    if (given.lost == 0) {
        uint64_t records = sum_of(rig.engine, PAIRS).records;
        CHECK(records >= n_pairs && records <= n_pairs + 2);
    }
    engine_verify(rig.engine);
    rig_restart(&rig);
    take_image(&rig, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    rig_fini(&rig);
    ck_assert_uint_eq(fault.live_bytes, 0);
    return has_failed;
}

START_TEST(test_one_fails)
{
    size_t n = 1;
    while (sweep(n, false)) {
        n += 1 + n / (tests_are_long() ? 16 : 5);
        ck_assert_uint_lt(n, SWEEPS_MAX);
    }
    ck_assert_uint_gt(n, 40); /* fewer would prove little */
}
END_TEST

START_TEST(test_all_fail)
{
    size_t n = 1;
    while (sweep(n, true)) {
        n += 1 + n / (tests_are_long() ? 16 : 5);
        ck_assert_uint_lt(n, SWEEPS_MAX);
    }
}
END_TEST

/* A budget that is used up: refused whole, and what exists goes on. */
START_TEST(test_full)
{
    struct rig rig;
    uint64_t id = 0, n_told = 0;
    int err = 0;
    rig_form(&rig, 1, 33, 1);
    struct engine_config config = {
        .shards = 1, .seed = 3, .hot_bytes = ENGINE_HOT_BYTES_MIN};
    rig.engine = engine_of(&config);
    rig_define(&rig);
    journal_init(&rig.journal);
    engine_set_sink(rig.engine, &rig.journal.sink);
    struct change change[64];
    while (err == 0) {
        for (unsigned i = 0; i < COUNT_OF(change); i++) {
            change[i] = member_of(&rig, CHANGE_MEMBER_SET, id, id * 64 + i, 1);
        }
        n_told = rig.journal.n;
        engine_change(rig.engine, change, COUNT_OF(change));
        for (unsigned i = 0; i < COUNT_OF(change) && err == 0; i++) {
            err = change[i].err;
        }
        id++;
    }
    ck_assert_int_eq(err, ERR_HOT_FULL);
    unsigned n = 0;
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        ck_assert_uint_eq(
            value_of(&rig, id - 1, (id - 1) * 64 + i), change[i].err == 0);
        n += change[i].err == 0;
    }
    ck_assert_uint_eq(likes_of(&rig, id - 1), n);
    ck_assert_uint_le(rig.journal.n, n_told + 2 * n + 1);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_DELETE, 0, 3, 0), 0);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 0, 2, 1), 0);
    ck_assert_uint_eq(likes_of(&rig, 0), 63);
    rig_fini(&rig);
}
END_TEST

/* Threads that change members of the same ids, one that tends, and readers. */
enum { WRITERS = 4, THREAD_IDS = 50, ROUNDS = 6000, OWN = 5 };

struct crowd {
    struct rig rig;
    struct qsbr qsbr;
    _Atomic bool is_over;
};

struct writer {
    struct crowd *crowd;
    unsigned number;
    uint8_t value[THREAD_IDS][OWN]; /* of the members that only it changes */
};

static void *
write_some(void *arg)
{
    struct writer *it = arg;
    struct rig *rig = &it->crowd->rig;
    struct qsbr_reader reader = {0};
    uint64_t random = it->number + 1;
    qsbr_register(&it->crowd->qsbr, &reader);
    for (unsigned i = 0; i < long_part(ROUNDS); i++) {
        struct change change[3];
        unsigned at[3], m[3];
        for (unsigned k = 0; k < 3; k++) {
            at[k] = (unsigned)random_below(&random, THREAD_IDS);
            m[k] = (unsigned)random_below(&random, OWN);
            change[k] = member_of(rig,
                random_below(&random, 3) == 0 ? CHANGE_MEMBER_SET
                                              : CHANGE_MEMBER_INCR,
                at[k], m[k] * WRITERS + it->number, random_below(&random, 2));
        }
        qsbr_online(&it->crowd->qsbr, &reader);
        engine_change(rig->engine, change, 3);
        for (unsigned k = 0; k < 3; k++) {
            ASSERT(change[k].err == 0);
            it->value[at[k]][m[k]] = (uint8_t)change[k].value[0];
        }
        qsbr_offline(&reader);
    }
    qsbr_unregister(&it->crowd->qsbr, &reader);
    return NULL;
}

static void *
read_some(void *arg)
{
    struct crowd *crowd = arg;
    struct rig *rig = &crowd->rig;
    struct qsbr_reader reader = {0};
    uint64_t random = 99;
    qsbr_register(&crowd->qsbr, &reader);
    while (!atomic_load(&crowd->is_over)) {
        uint64_t id = random_below(&random, THREAD_IDS);
        uint64_t member[WRITERS * OWN], value[WRITERS * OWN];
        qsbr_online(&crowd->qsbr, &reader);
        ASSERT(value_of(rig, id, random_below(&random, WRITERS * OWN)) <= 3);
        ASSERT(likes_of(rig, id) <= WRITERS * OWN);
        size_t n = engine_members(rig->engine, PAIRS, id, number_of(rig, id),
            rig->bits, 0, WRITERS * OWN, member, value);
        for (size_t i = 1; i < n; i++) {
            ASSERT(member[i - 1] < member[i]);
        }
        qsbr_offline(&reader);
    }
    qsbr_unregister(&crowd->qsbr, &reader);
    return NULL;
}

static void *
tend_some(void *arg)
{
    struct crowd *crowd = arg;
    uint64_t now_ms = 0;
    while (!atomic_load(&crowd->is_over)) {
        (void)engine_tend(crowd->rig.engine, now_ms += 400);
    }
    return NULL;
}

START_TEST(test_threads)
{
    static struct crowd crowd;
    static struct writer writer[WRITERS];
    pthread_t thread[WRITERS], reader, tender;
    struct qsbr_reader self = {0};
    qsbr_init(&crowd.qsbr);
    rig_form(&crowd.rig, 4, 33, 2);
    rig_make(&crowd.rig, NULL, &crowd.qsbr);
    for (unsigned i = 0; i < WRITERS; i++) {
        writer[i].crowd = &crowd;
        writer[i].number = i;
        pthread_create(&thread[i], NULL, write_some, &writer[i]);
    }
    pthread_create(&reader, NULL, read_some, &crowd);
    pthread_create(&tender, NULL, tend_some, &crowd);
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(thread[i], NULL);
    }
    atomic_store(&crowd.is_over, true);
    pthread_join(reader, NULL);
    pthread_join(tender, NULL);
    qsbr_register(&crowd.qsbr, &self);
    for (unsigned round = 0; round < 2; round++) {
        qsbr_online(&crowd.qsbr, &self);
        for (unsigned id = 0; id < THREAD_IDS; id++) {
            unsigned n = 0;
            for (unsigned i = 0; i < WRITERS * OWN; i++) {
                unsigned want = writer[i % WRITERS].value[id][i / WRITERS];
                CHECK(value_of(&crowd.rig, id, i) == want);
                n += want != 0;
            }
            CHECK(likes_of(&crowd.rig, id) == n);
        }
        qsbr_offline(&self);
        if (round == 0) {
            rig_restart(&crowd.rig); /* with what was told */
        }
    }
    qsbr_unregister(&crowd.qsbr, &self);
    rig_fini(&crowd.rig);
    qsbr_fini(&crowd.qsbr);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_one_fails, test_all_fail, test_full, test_threads};
    return run_tests("member_faults", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* t/lib/park: it answers every call once, later or at once, with what the
 * store behind it says; both happen. */
#include "lib/park.h"

#include "unit/store_help.h"

#include <pthread.h>
#include <stdio.h>

static const char *const weibo[] = {"add counter weibo",
    "add column weibo weibo_id primarykey", "add column weibo a max=64",
    "add column weibo b max=64"};

/* What one thread does, call after call. */
struct caller {
    struct store *store;
    struct cell_key a;
    uint64_t id;
    unsigned n_later;
    pthread_t thread;
};

enum { CALLERS = 4, ROUNDS = 400 };

/* Waits where it has to; then the answer has come once. */
static void
settle(struct caller *caller, struct answer *answer, enum store_answer given)
{
    if (given == STORE_LATER) {
        answer_wait(answer);
        caller->n_later++;
    }
    ck_assert_uint_eq(atomic_load(&answer->n), given == STORE_LATER);
    atomic_store(&answer->n, 0);
}

static void
count_once(struct caller *caller, struct answer *answer, uint64_t expected)
{
    struct change change = change_of(&caller->a, CHANGE_INCR, 1);
    struct store_change call = {
        .call = call_of(answer), .n = 1, .change = &change};
    settle(caller, answer, store_change(caller->store, &call));
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(change.value[0], expected);
}

static void
read_once(struct caller *caller, struct answer *answer, uint64_t expected)
{
    struct store_get get = {
        .call = call_of(answer), .n = 2, .key = {caller->a, caller->a}};
    get.key[1].id = 1000;
    settle(caller, answer, store_get(caller->store, &get));
    ck_assert_uint_eq(get.value[0], expected);
    ck_assert_uint_eq(get.value[1], 0);
}

static void
edit_once(struct caller *caller, struct answer *answer, bool adds)
{
    char line[64];
    unsigned long long id = caller->id;
    snprintf(line, sizeof line,
        adds ? "add counter c%llu" : "drop counter c%llu c%llu", id, id);
    struct store_edit call = {
        .call = call_of(answer), .edit = edit_of(line), .err = -1};
    settle(caller, answer, store_edit(caller->store, &call));
    ck_assert_int_eq(call.err, 0);
}

static void *
run_caller(void *arg)
{
    struct caller *caller = arg;
    struct answer answer;
    answer_init(&answer);
    for (unsigned i = 0; i < ROUNDS; i++) {
        count_once(caller, &answer, i + 1);
        read_once(caller, &answer, i + 1);
        if (i % 10 == 0) {
            edit_once(caller, &answer, i % 20 == 0);
        }
    }
    answer_fini(&answer);
    return NULL;
}

START_TEST(test_every_call_once)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct store *inner = small_store(NULL);
        struct store *store;
        struct caller caller[CALLERS];
        unsigned n_later = 0;
        edit_all(inner, weibo, COUNT_OF(weibo));
        ck_assert_int_eq(park_create(inner, seed, &store), 0);
        struct cell_key a = cell_of(quiet_schema(store), 0, "a");
        for (unsigned i = 0; i < CALLERS; i++) {
            a.id = i;
            caller[i] = (struct caller){.store = store, .a = a, .id = i};
            ck_assert_int_eq(pthread_create(&caller[i].thread, NULL,
                                 run_caller, &caller[i]),
                0);
        }
        for (unsigned i = 0; i < CALLERS; i++) {
            pthread_join(caller[i].thread, NULL);
            n_later += caller[i].n_later;
        }
        /* edits are always answered later, two of five others are enough */
        ck_assert_uint_gt(n_later, CALLERS * ROUNDS * 2 * 2 / 5);
        ck_assert_uint_lt(n_later, CALLERS * ROUNDS * 2 * 4 / 5);
        ck_assert_uint_eq(
            store_sum(store, a.counter).records, (uint64_t)CALLERS);
        park_destroy(&store);
        ck_assert_ptr_null(store);
        store_verify(inner);
        store_destroy(&inner);
    }
}
END_TEST

/* Calls that are still parked are done when it goes. */
START_TEST(test_destroy_answers)
{
    enum { CALLS = 200 };
    struct store *inner = small_store(NULL);
    struct store *store;
    struct answer answer[CALLS];
    struct change change[CALLS];
    struct store_change call[CALLS];
    bool later[CALLS];
    edit_all(inner, weibo, COUNT_OF(weibo));
    ck_assert_int_eq(park_create(inner, 5, &store), 0);
    struct cell_key a = cell_of(quiet_schema(store), 1, "a");
    for (unsigned i = 0; i < CALLS; i++) {
        answer_init(&answer[i]);
        change[i] = change_of(&a, CHANGE_INCR, 1);
        call[i] = (struct store_change){
            .call = call_of(&answer[i]), .n = 1, .change = &change[i]};
        later[i] = store_change(store, &call[i]) == STORE_LATER;
    }
    park_destroy(&store);
    for (unsigned i = 0; i < CALLS; i++) {
        ck_assert_uint_eq(atomic_load(&answer[i].n), later[i]);
        ck_assert_int_eq(change[i].err, 0);
        answer_fini(&answer[i]);
    }
    expect_cell(inner, &a, CELL_SET, CALLS);
    store_destroy(&inner);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_every_call_once, test_destroy_answers};
    return run_tests("park", tests, COUNT_OF(tests));
}

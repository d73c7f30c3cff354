/* SPDX-License-Identifier: BSD-3-Clause */
/* items/: values on loan. What is lent stays as it is, whatever becomes of the
 * item; it is bounded, and all others find room beside it. */
#include "base/err.h"
#include "items/core.h"
#include "unit/items_help.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEN = 100000 };

/* What the value under a key is made of, in its nth version. */
static char
byte_of(unsigned key, unsigned version, size_t at)
{
    return (char)('a' + (key * 7 + version * 3 + at / 64) % 26);
}

static int
put_version(struct items *items, unsigned key, unsigned version, size_t len)
{
    char name[32], *value = malloc(len);
    struct items_store store = {.op = ITEMS_SET, .key = name};
    int err;

    snprintf(name, sizeof name, "key%u", key);
    store.key_len = strlen(name);
    for (size_t i = 0; i < len; i++) {
        value[i] = byte_of(key, version, i);
    }
    store.value = value;
    store.value_len = len;
    err = store_item(items, &store, NOW, NULL);
    free(value);
    return err;
}

static void
expect_version(
    const struct item *item, unsigned key, unsigned version, size_t len)
{
    ck_assert_uint_eq(item->value_len, len);
    for (size_t i = 0; i < len; i++) {
        if (item->value[i] != byte_of(key, version, i)) {
            ck_abort_msg("key %u, version %u, byte %zu", key, version, i);
        }
    }
}

/* The item under key, lent; NULL where it is not there, or may not be. */
static const struct item *
borrow(struct items *items, unsigned key)
{
    char name[32];
    const struct item *item;

    snprintf(name, sizeof name, "key%u", key);
    item = pin_at(items, name, NOW);
    if (item != NULL && !items_lend(items, item)) {
        items_unpin(items, item);
        item = NULL;
    }
    return item;
}

static struct items_lent
lent_of(struct items *items)
{
    struct items_lent lent;

    items_lent(items, &lent);
    return lent;
}

/* More than the limit, of values of len bytes, none of which may fail. */
static void
flood(struct items *items, const char *name, size_t len, uint64_t bytes)
{
    static char filler[MIB];
    char key[48];

    for (unsigned i = 0; i < bytes / len; i++) {
        struct items_store store = {.op = ITEMS_SET, .key = key};

        snprintf(key, sizeof key, "%s%u", name, i);
        store.key_len = strlen(key);
        store.value = filler;
        store.value_len = len;
        ck_assert_int_eq(store_item(items, &store, NOW, NULL), 0);
    }
}

enum change {
    SET,
    SET_SHORTER,
    APPEND,
    PREPEND,
    DELETE,
    EMPTY,
    OUTDATE,
    FLUSH,
    EXPIRE,
    EVICT,
    SHRINK,
    CHANGES
};

static void
do_change(struct items *items, enum change change)
{
    struct items_terms terms = {
        .empties = change == EMPTY, .outdates = change == OUTDATE};

    switch (change) {
    case SET:
        ck_assert_int_eq(put_version(items, 0, 2, LEN), 0);
        break;
    case SET_SHORTER:
        ck_assert_int_eq(put_version(items, 0, 2, LEN - 10), 0);
        break;
    case APPEND:
        ck_assert_int_eq(put(items, ITEMS_APPEND, "key0", "more"), 0);
        break;
    case PREPEND:
        ck_assert_int_eq(put(items, ITEMS_PREPEND, "key0", "more"), 0);
        break;
    case DELETE:
    case EMPTY:
    case OUTDATE:
        ck_assert_int_eq(items_delete(items, "key0", 4, &terms, NOW), 0);
        break;
    case FLUSH:
        items_flush(items, 0, NOW);
        break;
    case EXPIRE:
        ck_assert_int_eq(touch(items, "key0", NOW + 1, NOW), 0);
        ck_assert(!has(items, "key0", NOW + 1));
        break;
    case EVICT:
        break;
    case SHRINK:
        items_set_limit(items, MIB);
        break;
    case CHANGES:
        break;
    }
}

/* Whatever is done to it, and however much comes after, the borrower reads the
 * old bytes; others see the change at once. */
START_TEST(test_lent_bytes_stay)
{
    struct items *items = make(8 * MIB);
    enum change change = (enum change)_i;
    const struct item *item;
    char old[32] = "";

    ck_assert_int_eq(put_version(items, 0, 1, LEN), 0);
    item = borrow(items, 0);
    ck_assert_ptr_nonnull(item);
    ck_assert_uint_eq(lent_of(items).loans, 1);
    ck_assert_uint_ge(lent_of(items).lent_bytes, LEN);
    do_change(items, change);
    expect_version(item, 0, 1, LEN);
    if (change != EVICT && change != SHRINK && change != OUTDATE) {
        const struct item *now = pin_at(items, "key0", NOW + 1);

        snprintf(old, sizeof old, "%p", (const void *)item);
        ck_assert_msg(now != item, "%s is still there", old);
        if (now != NULL) {
            items_unpin(items, now);
        }
    }
    flood(items, "small", 500, 20 * MIB);
    flood(items, "large", 50000, 20 * MIB);
    expect_version(item, 0, 1, LEN);
    items_verify(items);
    items_unlend(items, item);
    ck_assert_uint_eq(lent_of(items).loans, 0);
    ck_assert_uint_eq(lent_of(items).lent_bytes, 0);
    flood(items, "large", 50000, 20 * MIB);
    ck_assert_uint_le(
        stats_of(items).held_bytes, change == SHRINK ? MIB : 8 * MIB);
    finish(&items);
}
END_TEST

/* A number that is lent is counted on beside it. */
START_TEST(test_lent_number)
{
    struct items *items = make(8 * MIB);
    struct items_arith arith = {.key = "n", .key_len = 1, .delta = 1};
    struct items_number number;
    const struct item *item;

    ck_assert_int_eq(put(items, ITEMS_SET, "n", "41"), 0);
    item = pin_at(items, "n", NOW);
    ck_assert(items_lend(items, item));
    ck_assert_int_eq(items_arith(items, &arith, NOW, &number), 0);
    ck_assert_uint_eq(number.value, 42);
    ck_assert_uint_eq(item->value_len, 2);
    ck_assert_mem_eq(item->value, "41", 2);
    expect_item(items, "n", "42");
    items_unlend(items, item);
    finish(&items);
}
END_TEST

/* So much is lent and no more, whatever the sizes; all others find room beside
 * it, and it goes when it is given back. */
START_TEST(test_bound)
{
    static const size_t lens[] = {900000, 200000, 40000, 5000};
    enum { MOST = 4000, LIMIT_MIB = 16 };
    size_t len = lens[_i];
    unsigned n = 0, n_keys = (unsigned)(LIMIT_MIB * MIB * 3 / 4 / len);
    struct items *items = make(LIMIT_MIB * MIB);
    const struct item **lent = calloc(MOST, sizeof *lent);

    for (unsigned key = 0; key < n_keys && n < MOST; key++) {
        ck_assert_int_eq(put_version(items, key, 1, len), 0);
        lent[n] = borrow(items, key);
        n += lent[n] != NULL;
    }
    ck_assert_uint_lt(n, n_keys);
    ck_assert_uint_eq(lent_of(items).loans, n);
    ck_assert_uint_le(lent_of(items).lent_bytes, LIMIT_MIB * MIB * 3 / 8);
    ck_assert_uint_ge(
        lent_of(items).lent_bytes, LIMIT_MIB * MIB * 3 / 8 - 2 * MIB);
    for (unsigned round = 0; round < long_part(3); round++) {
        flood(items, "a", 1000000, 40 * MIB);
        flood(items, "b", 30000, 40 * MIB);
        flood(items, "c", 300, 40 * MIB);
        ck_assert_uint_le(stats_of(items).held_bytes, LIMIT_MIB * MIB);
        items_verify(items);
    }
    for (unsigned i = 0; i < n; i++) {
        items_unlend(items, lent[i]);
    }
    ck_assert_uint_eq(lent_of(items).lent_bytes, 0);
    flood(items, "d", 1000000, 40 * MIB);
    free(lent);
    finish(&items);
}
END_TEST

/* One value may be lent many times, but not for ever. */
START_TEST(test_many_loans_of_one)
{
    struct items *items = make(8 * MIB);
    const struct item *item = NULL, *next;
    unsigned n = 0;

    ck_assert_int_eq(put_version(items, 0, 1, LEN), 0);
    while ((next = borrow(items, 0)) != NULL) {
        item = next;
        n++;
    }
    ck_assert_uint_ge(n, 10000);
    ck_assert_uint_lt(lent_of(items).lent_bytes, 2 * LEN);
    ck_assert(has(items, "key0", NOW));
    while (n > 0) {
        items_unlend(items, item);
        n--;
    }
    ck_assert(borrow(items, 0) == item);
    items_unlend(items, item);
    finish(&items);
}
END_TEST

/* The limit falls below what is lent: stores go on, nothing more is lent, and
 * the limit is kept when it can be. */
START_TEST(test_lowered_below_what_is_lent)
{
    enum { KEYS = 20 };
    struct items *items = make(64 * MIB);
    const struct item *lent[KEYS];

    for (unsigned key = 0; key < KEYS; key++) {
        ck_assert_int_eq(put_version(items, key, 1, 1000000), 0);
        lent[key] = borrow(items, key);
        ck_assert_ptr_nonnull(lent[key]);
    }
    flood(items, "a", 10000, 64 * MIB);
    items_set_limit(items, 8 * MIB);
    for (unsigned round = 0; round < long_part(3); round++) {
        flood(items, "b", 300, 10 * MIB);
        flood(items, "c", 100000, 10 * MIB);
        items_verify(items);
    }
    ck_assert_uint_le(
        stats_of(items).held_bytes, lent_of(items).lent_bytes + 8 * MIB);
    ck_assert_int_eq(put_version(items, 100, 1, LEN), 0);
    ck_assert_ptr_null(borrow(items, 100));
    for (unsigned key = 0; key < KEYS; key++) {
        expect_version(lent[key], key, 1, 1000000);
        items_unlend(items, lent[key]);
        flood(items, "d", 100000, MIB);
    }
    flood(items, "e", 100000, 10 * MIB);
    ck_assert_uint_le(stats_of(items).held_bytes, 8 * MIB);
    finish(&items);
}
END_TEST

/* What is used stays, and what is fresh is given its time, with a loan as
 * without one. */
START_TEST(test_a_loan_does_not_turn_the_queues)
{
    enum { READ = 2000, FRESH = 2000 };
    unsigned there[2];

    for (unsigned with = 0; with < 2; with++) {
        struct items *items = make(8 * MIB);
        const struct item *item = NULL;
        char key[32];

        ck_assert_int_eq(put_version(items, 0, 1, LEN), 0);
        flood(items, "read", 1000, READ * 1000);
        for (unsigned i = 0; i < READ; i++) {
            snprintf(key, sizeof key, "read%u", i);
            items_unpin(items, pin_at(items, key, NOW));
        }
        if (with) {
            item = borrow(items, 0);
            ck_assert_ptr_nonnull(item);
        }
        flood(items, "passing", 1000, 30 * MIB);
        flood(items, "fresh", 1000, FRESH * 1000);
        there[with] = count_many(items, "read", READ) +
            count_many(items, "fresh", FRESH);
        if (with) {
            items_unlend(items, item);
        }
        finish(&items);
    }
    ck_assert_uint_gt(there[0], (READ + FRESH) * 9 / 10);
    ck_assert_uint_gt(there[1], (READ + FRESH) * 9 / 10);
}
END_TEST

/* Threads that store, delete and flush while others lend and look. */
enum { THREADS = 4, THREAD_KEYS = 8, THREAD_STEPS = 3000 };

static void *
run_thread(void *context)
{
    struct items *items = context;
    const struct item *held[THREAD_KEYS] = {NULL};
    char first[THREAD_KEYS] = {0};
    uint64_t random = (uintptr_t)&held | 1;

    for (unsigned step = 0; step < long_part(THREAD_STEPS); step++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned key = (unsigned)(random >> 40) % THREAD_KEYS;
        unsigned what = (unsigned)(random >> 50) % 16;
        char name[32];

        snprintf(name, sizeof name, "key%u", key);
        if (held[key] != NULL) {
            ck_assert(held[key]->value[0] == first[key]);
            ck_assert(held[key]->value[held[key]->value_len - 1] ==
                held[key]->value[held[key]->value_len / 2]);
            items_unlend(items, held[key]);
            held[key] = NULL;
        } else if (what < 8) {
            held[key] = borrow(items, key);
            first[key] = held[key] == NULL ? 0 : held[key]->value[0];
        } else if (what == 8) {
            (void)items_delete(items, name, strlen(name), NULL, NOW);
        } else if (what == 9 && step % 16 == 0) {
            items_flush(items, 0, NOW);
        } else {
            size_t len = 20000 + (random >> 20) % 200000;
            struct items_store store = {.op = ITEMS_SET, .key = name};
            char *value = malloc(len);

            memset(value, 'a' + (int)(random >> 30 & 15), len);
            store.key_len = strlen(name);
            store.value = value;
            store.value_len = len;
            (void)store_item(items, &store, NOW, NULL);
            free(value);
        }
    }
    for (unsigned key = 0; key < THREAD_KEYS; key++) {
        if (held[key] != NULL) {
            items_unlend(items, held[key]);
        }
    }
    return NULL;
}

START_TEST(test_threads)
{
    struct items *items = make(4 * MIB);
    pthread_t thread[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert(pthread_create(&thread[i], NULL, run_thread, items) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert(pthread_join(thread[i], NULL) == 0);
    }
    ck_assert_uint_eq(lent_of(items).loans, 0);
    ck_assert_uint_eq(lent_of(items).lent_bytes, 0);
    finish(&items);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("items_loans");
    TCase *loans = tcase_create("loans");

    tcase_add_loop_test(loans, test_lent_bytes_stay, 0, CHANGES);
    tcase_add_test(loans, test_lent_number);
    tcase_add_loop_test(loans, test_bound, 0, 4);
    tcase_add_test(loans, test_many_loans_of_one);
    tcase_add_test(loans, test_lowered_below_what_is_lent);
    tcase_add_test(loans, test_a_loan_does_not_turn_the_queues);
    tcase_add_test(loans, test_threads);
    tcase_set_timeout(loans, HELP_TIMEOUT_S);
    suite_add_tcase(s, loans);
    return s;
}

int
main(void)
{
    return run_suite(suite());
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* items/: what each operation answers, expiry, flush, eviction and pins, one
 * thread. check_items_model.c has the property test, the threads and failing
 * allocations. */
#include "base/err.h"
#include "unit/items_help.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A set of len bytes, all of them fill. */
static int
put_filled(struct items *items, const char *key, size_t len, int fill)
{
    struct items_store store = store_of(ITEMS_SET, key, "");
    char *value = malloc(len);
    int err;

    ck_assert_ptr_nonnull(value);
    memset(value, fill, len);
    store.value = value;
    store.value_len = len;
    err = store_item(items, &store, NOW, NULL);
    free(value);
    return err;
}

static uint64_t
cas_of(struct items *items, const char *key)
{
    const struct item *item = pin_at(items, key, NOW);
    uint64_t cas;

    ck_assert_ptr_nonnull(item);
    cas = item->cas;
    items_unpin(items, item);
    return cas;
}

START_TEST(test_set_and_get)
{
    struct items *items = make(ROOMY);
    struct items_store store = store_of(ITEMS_SET, "a", "one");
    const struct item *item;
    uint64_t cas = 0;

    ck_assert_ptr_null(pin_at(items, "a", NOW));
    store.flags = 4;
    ck_assert_int_eq(store_item(items, &store, NOW, &cas), 0);
    item = pin_at(items, "a", NOW);
    ck_assert_ptr_nonnull(item);
    ck_assert_uint_eq(item->flags, 4);
    ck_assert_uint_eq(item->cas, cas);
    items_unpin(items, item);
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "another"), 0);
    expect_item(items, "a", "another");
    ck_assert_uint_gt(cas_of(items, "a"), cas);
    ck_assert_int_eq(put(items, ITEMS_SET, "empty", ""), 0);
    expect_item(items, "empty", "");
    finish(&items);
}
END_TEST

START_TEST(test_any_bytes_in_keys)
{
    struct items *items = make(ROOMY);
    char key[ITEMS_KEY_MAX], other[ITEMS_KEY_MAX];
    struct items_store store = store_of(ITEMS_SET, "", "v");

    memset(key, 0, sizeof key);
    memset(other, 0, sizeof other);
    other[sizeof other - 1] = ' ';
    store.key = key;
    store.key_len = sizeof key;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), 0);
    ck_assert(items_has(items, key, sizeof key, NOW));
    ck_assert(!items_has(items, key, sizeof key - 1, NOW));
    ck_assert(!items_has(items, other, sizeof other, NOW));
    finish(&items);
}
END_TEST

START_TEST(test_add_and_replace)
{
    struct items *items = make(ROOMY);

    ck_assert_int_eq(put(items, ITEMS_REPLACE, "a", "x"), ERR_NOT_STORED);
    ck_assert_int_eq(put(items, ITEMS_ADD, "a", "one"), 0);
    ck_assert_int_eq(put(items, ITEMS_ADD, "a", "two"), ERR_NOT_STORED);
    expect_item(items, "a", "one");
    ck_assert_int_eq(put(items, ITEMS_REPLACE, "a", "three"), 0);
    expect_item(items, "a", "three");
    finish(&items);
}
END_TEST

START_TEST(test_append_and_prepend)
{
    struct items *items = make(ROOMY);
    struct items_store store = store_of(ITEMS_SET, "a", "mid");
    const struct item *item;

    ck_assert_int_eq(put(items, ITEMS_APPEND, "a", "x"), ERR_NOT_STORED);
    ck_assert_int_eq(put(items, ITEMS_PREPEND, "a", "x"), ERR_NOT_STORED);
    store.flags = 9;
    store.expiry_s = NOW + 5;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), 0);
    ck_assert_int_eq(put(items, ITEMS_APPEND, "a", "dle"), 0);
    ck_assert_int_eq(put(items, ITEMS_PREPEND, "a", "the "), 0);
    ck_assert_int_eq(put(items, ITEMS_APPEND, "a", ""), 0);
    expect_item(items, "a", "the middle");
    item = pin_at(items, "a", NOW + 4);
    ck_assert_ptr_nonnull(item);
    ck_assert_uint_eq(item->flags, 9);
    items_unpin(items, item);
    ck_assert(!has(items, "a", NOW + 5));
    finish(&items);
}
END_TEST

START_TEST(test_cas)
{
    struct items *items = make(ROOMY);
    struct items_store store = store_of(ITEMS_CAS, "a", "new");
    uint64_t cas;

    store.cas = 1;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), ERR_NOT_FOUND);
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "old"), 0);
    store.cas = cas_of(items, "a") + 1;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), ERR_EXISTS);
    expect_item(items, "a", "old");
    store.cas = cas_of(items, "a");
    ck_assert_int_eq(store_item(items, &store, NOW, &cas), 0);
    ck_assert_uint_gt(cas, store.cas);
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), ERR_EXISTS);
    expect_item(items, "a", "new");
    finish(&items);
}
END_TEST

START_TEST(test_largest_value)
{
    struct items *items = make(ROOMY);
    size_t most = MIB - ITEMS_HEADER_BYTES - 1;

    ck_assert_int_eq(put_filled(items, "a", most, 'v'), 0);
    ck_assert(has(items, "a", NOW));
    ck_assert_int_eq(put(items, ITEMS_APPEND, "a", "x"), ERR_NOT_STORED);
    ck_assert_int_eq(put(items, ITEMS_PREPEND, "a", "x"), ERR_NOT_STORED);
    ck_assert_int_eq(put(items, ITEMS_APPEND, "a", ""), 0);
    ck_assert(has(items, "a", NOW));
    ck_assert_int_eq(put_filled(items, "a", most + 1, 'v'), ERR_TOO_LARGE);
    ck_assert(!has(items, "a", NOW));
    ck_assert_int_eq(put_filled(items, "ab", most, 'v'), ERR_TOO_LARGE);
    finish(&items);
}
END_TEST

START_TEST(test_too_large_add_keeps_the_old_value)
{
    struct items *items = make(ROOMY);
    struct items_store store = store_of(ITEMS_REPLACE, "a", "old");

    ck_assert_int_eq(put(items, ITEMS_SET, "a", "old"), 0);
    store.value_len = SIZE_MAX;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), ERR_TOO_LARGE);
    store.op = ITEMS_APPEND;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), ERR_TOO_LARGE);
    expect_item(items, "a", "old");
    finish(&items);
}
END_TEST

struct arith_row {
    const char *before;
    bool negative;
    uint64_t delta;
    int err;
    const char *after;
};

static const struct arith_row arith_rows[] = {
    {"18446744073709551615", false, 1, 0, "0"},
    {"18446744073709551616", false, 1, ERR_NOT_NUMERIC, NULL},
    {"99", false, UINT64_MAX, 0, "98"},
    {"5", true, 10, 0, "0"},
    {"100", true, 1, 0, "99"},
    {"9", false, 1, 0, "10"},
    {" 10 ", false, 1, 0, "11"},
    {"007", false, 1, 0, "8"},
    {"1 1", false, 1, 0, "2"},
    {"+3", false, 1, 0, "4"},
    {"0", true, 0, 0, "0"},
    {"-5", false, 1, ERR_NOT_NUMERIC, NULL},
    {"1.5", false, 1, ERR_NOT_NUMERIC, NULL},
    {"0x10", false, 1, ERR_NOT_NUMERIC, NULL},
    {"", false, 1, ERR_NOT_NUMERIC, NULL},
    {"0", false, UINT64_MAX, 0, "18446744073709551615"},
};

START_TEST(test_arith)
{
    const struct arith_row *row = &arith_rows[_i];
    struct items *items = make(ROOMY);
    uint64_t number = 77, cas;

    ck_assert_int_eq(put(items, ITEMS_SET, "n", row->before), 0);
    cas = cas_of(items, "n");
    ck_assert_int_eq(
        arith_at(items, "n", row->negative, row->delta, NOW, &number),
        row->err);
    if (row->err == 0) {
        expect_item(items, "n", row->after);
        ck_assert_uint_eq(number, strtoull(row->after, NULL, 10));
        ck_assert_uint_gt(cas_of(items, "n"), cas);
    } else {
        expect_item(items, "n", row->before);
        ck_assert_uint_eq(number, 77);
        ck_assert_uint_eq(cas_of(items, "n"), cas);
    }
    finish(&items);
}
END_TEST

START_TEST(test_arith_keeps_flags_and_expiry)
{
    struct items *items = make(ROOMY);
    struct items_store store = store_of(ITEMS_SET, "n", "9");
    const struct item *item;
    uint64_t number = 0;

    ck_assert_int_eq(add_number(items, "n", 1, &number), ERR_NOT_FOUND);
    store.flags = 2;
    store.expiry_s = NOW + 1;
    ck_assert_int_eq(store_item(items, &store, NOW, NULL), 0);
    for (uint64_t n = 10; n < 13; n++) {
        ck_assert_int_eq(add_number(items, "n", 1, &number), 0);
        ck_assert_uint_eq(number, n);
        item = pin_at(items, "n", NOW);
        ck_assert_uint_eq(item->flags, 2);
        items_unpin(items, item);
    }
    ck_assert(!has(items, "n", NOW + 1));
    finish(&items);
}
END_TEST

START_TEST(test_delete_and_touch)
{
    struct items *items = make(ROOMY);

    ck_assert_int_eq(items_delete(items, "a", 1, NULL, NOW), ERR_NOT_FOUND);
    ck_assert_int_eq(touch(items, "a", 0, NOW), ERR_NOT_FOUND);
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "x"), 0);
    ck_assert_int_eq(touch(items, "a", NOW + 3, NOW), 0);
    ck_assert(has(items, "a", NOW + 2));
    ck_assert_int_eq(items_delete(items, "a", 1, NULL, NOW), 0);
    ck_assert_int_eq(items_delete(items, "a", 1, NULL, NOW), ERR_NOT_FOUND);
    ck_assert_uint_eq(stats_of(items).bytes, 0);
    finish(&items);
}
END_TEST

START_TEST(test_expiry_edges)
{
    struct items *items = make(ROOMY);
    const struct item *item;
    uint64_t number;

    ck_assert_int_eq(put_until(items, ITEMS_SET, "a", "1", NOW + 1), 0);
    ck_assert(has(items, "a", NOW));
    ck_assert(!has(items, "a", NOW + 1));
    ck_assert(!has(items, "a", NOW)); /* it was given up */
    ck_assert_int_eq(put_until(items, ITEMS_SET, "a", "1", NOW), 0);
    ck_assert_ptr_null(pin_at(items, "a", NOW));
    ck_assert_int_eq(put_until(items, ITEMS_SET, "a", "1", NOW), 0);
    ck_assert_int_eq(add_number(items, "a", 1, &number), ERR_NOT_FOUND);
    ck_assert_int_eq(put_until(items, ITEMS_SET, "a", "1", NOW), 0);
    ck_assert_int_eq(put(items, ITEMS_REPLACE, "a", "2"), ERR_NOT_STORED);
    ck_assert_int_eq(put_until(items, ITEMS_SET, "a", "1", NOW), 0);
    ck_assert_int_eq(put(items, ITEMS_ADD, "a", "2"), 0);
    item = items_get(items, "a", 1, NOW, true, NOW + 9);
    ck_assert_ptr_nonnull(item);
    items_unpin(items, item);
    ck_assert(has(items, "a", NOW + 8));
    item = items_get(items, "a", 1, NOW, true, 1);
    ck_assert_ptr_nonnull(item);
    items_unpin(items, item);
    ck_assert(!has(items, "a", NOW));
    finish(&items);
}
END_TEST

struct expiry_row {
    int64_t exptime;
    int64_t unix_now_s;
    uint64_t expiry_s; /* at NOW */
};

static const struct expiry_row expiry_rows[] = {
    {0, 1700000000, ITEMS_NEVER},
    {1, 1700000000, NOW + 1},
    {2592000, 1700000000, NOW + 2592000},
    {2592001, 1700000000, 1},
    {1700000000, 1700000000, 1},
    {1700000001, 1700000000, NOW + 1},
    {1700000000 + 2592005, 1700000000, NOW + 2592005},
    {-1, 1700000000, 1},
    {INT64_MIN, 1700000000, 1},
    {INT64_MAX, 1700000000, NOW + (uint64_t)INT64_MAX - 1700000000},
    {INT64_MAX, INT64_MIN, UINT64_MAX},
};

START_TEST(test_expiry_of_exptime)
{
    const struct expiry_row *row = &expiry_rows[_i];

    ck_assert_uint_eq(
        items_expiry(row->exptime, NOW, row->unix_now_s), row->expiry_s);
}
END_TEST

START_TEST(test_flush_now)
{
    struct items *items = make(ROOMY);
    uint64_t number;

    items_flush(items, 0, NOW);
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "1"), 0);
    ck_assert_int_eq(put(items, ITEMS_SET, "b", "1"), 0);
    ck_assert_int_eq(put(items, ITEMS_APPEND, "b", "1"), 0);
    ck_assert_int_eq(add_number(items, "b", 1, &number), 0);
    items_flush(items, 0, NOW);
    ck_assert(!has(items, "a", NOW));
    ck_assert_int_eq(add_number(items, "b", 1, &number), ERR_NOT_FOUND);
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "2"), 0);
    ck_assert_int_eq(put(items, ITEMS_APPEND, "a", "3"), 0);
    ck_assert_int_eq(put(items, ITEMS_REPLACE, "a", "4"), 0);
    expect_item(items, "a", "4");
    items_flush(items, NOW, NOW); /* a time that has come */
    ck_assert(!has(items, "a", NOW));
    finish(&items);
}
END_TEST

START_TEST(test_flush_delayed)
{
    struct items *items = make(ROOMY);

    ck_assert_int_eq(put(items, ITEMS_SET, "a", "1"), 0);
    items_flush(items, NOW + 5, NOW);
    ck_assert_int_eq(put(items, ITEMS_SET, "b", "1"), 0);
    ck_assert(has(items, "a", NOW + 4));
    ck_assert(!has(items, "a", NOW + 5));
    ck_assert(!has(items, "b", NOW + 4)); /* it is done, whoever asks */
    ck_assert_int_eq(put(items, ITEMS_SET, "c", "1"), 0);
    ck_assert(has(items, "c", NOW + 6)); /* once only */
    finish(&items);
}
END_TEST

START_TEST(test_flush_replaced)
{
    struct items *items = make(ROOMY);

    ck_assert_int_eq(put(items, ITEMS_SET, "a", "1"), 0);
    items_flush(items, NOW + 5, NOW);
    items_flush(items, NOW + 9, NOW);
    ck_assert(has(items, "a", NOW + 8));
    items_flush(items, 0, NOW + 8);
    ck_assert(!has(items, "a", NOW + 8));
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "1"), 0);
    ck_assert(has(items, "a", NOW + 10)); /* the pending one went too */
    items_flush(items, NOW + 20, NOW + 10);
    items_flush(items, NOW + 40, NOW + 30); /* the first had come due */
    ck_assert(!has(items, "a", NOW + 30));
    finish(&items);
}
END_TEST

START_TEST(test_pins_outlive_removal)
{
    struct items *items = make(4 * MIB);
    const struct item *was[3];
    uint64_t number;
    char key[16];

    ck_assert_int_eq(put(items, ITEMS_SET, "deleted", "10"), 0);
    was[0] = pin_at(items, "deleted", NOW);
    ck_assert_int_eq(put(items, ITEMS_SET, "changed", "20"), 0);
    was[1] = pin_at(items, "changed", NOW);
    ck_assert_int_eq(put(items, ITEMS_SET, "evicted", "30"), 0);
    was[2] = peek_at(items, "evicted", NOW); /* no use: it does not stay */
    ck_assert_int_eq(items_delete(items, "deleted", 7, NULL, NOW), 0);
    ck_assert_int_eq(add_number(items, "changed", 1, &number), 0);
    expect_item(items, "changed", "21");
    for (unsigned i = 0; has(items, "evicted", NOW); i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_int_eq(put_filled(items, key, 10000, 'x'), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        char expected[2] = {(char)('1' + i), '0'};

        ck_assert_uint_eq(was[i]->value_len, 2);
        ck_assert_mem_eq(was[i]->value, expected, 2);
    }
    for (unsigned i = 0; i < 3; i++) {
        items_unpin(items, was[i]);
    }
    finish(&items);
}
END_TEST

START_TEST(test_memory_that_is_all_pinned)
{
    struct items *items = make(4 * MIB);
    const struct item *was[4];

    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(put_filled(items, "a", 1000000, 'v'), 0);
        was[i] = pin_at(items, "a", NOW);
        ck_assert_ptr_nonnull(was[i]);
    }
    ck_assert_int_eq(put_filled(items, "a", 1000000, 'v'), ERR_NO_MEMORY);
    ck_assert(!has(items, "a", NOW));
    ck_assert_uint_le(stats_of(items).held_bytes, 4 * MIB);
    items_unpin(items, was[0]);
    ck_assert_int_eq(put_filled(items, "a", 1000000, 'v'), 0);
    for (unsigned i = 1; i < 4; i++) {
        items_unpin(items, was[i]);
    }
    finish(&items);
}
END_TEST

START_TEST(test_one_too_large_for_the_limit)
{
    struct items *items = make(MIB / 2);

    ck_assert_int_eq(put(items, ITEMS_SET, "other", "1"), 0);
    ck_assert_int_eq(put(items, ITEMS_SET, "a", "1"), 0);
    ck_assert_int_eq(put_filled(items, "a", MIB / 2, 'v'), ERR_NO_MEMORY);
    ck_assert(!has(items, "a", NOW));
    expect_item(items, "other", "1");
    ck_assert_uint_eq(stats_of(items).evictions, 0);
    finish(&items);
}
END_TEST

START_TEST(test_read_items_survive)
{
    struct items *items = make(2 * MIB);
    struct items_stats stats;
    char key[16];

    ck_assert_int_eq(put(items, ITEMS_SET, "hot", "h"), 0);
    for (unsigned i = 0; i < 40000; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_int_eq(put_filled(items, key, 100, 'x'), 0);
        if (i % 20 == 0) {
            expect_item(items, "hot", "h");
        }
        ck_assert(has(items, key, NOW));
        ck_assert_uint_le(stats_of(items).held_bytes, 2 * MIB);
    }
    ck_assert(!has(items, "k0", NOW));
    stats = stats_of(items);
    ck_assert_uint_eq(stats.total_items, 40001);
    ck_assert_uint_eq(stats.evictions, 40001 - stats.curr_items);
    ck_assert_uint_eq(stats.evicted_unfetched, stats.evictions);
    ck_assert_uint_gt(stats.curr_items, 5000);
    ck_assert_uint_eq(stats.reclaimed, 0);
    finish(&items);
}
END_TEST

START_TEST(test_expired_ones_make_room)
{
    struct items *items = make(MIB);
    struct items_stats stats;
    char key[16];

    for (unsigned i = 0; i < 3000; i++) {
        snprintf(key, sizeof key, "e%u", i);
        ck_assert_int_eq(put_until(items, ITEMS_SET, key, "", NOW), 0);
    }
    for (unsigned i = 0; i < 60; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_int_eq(put_filled(items, key, 20000, 'x'), 0);
    }
    stats = stats_of(items);
    ck_assert_uint_gt(stats.reclaimed, 1000);
    ck_assert_uint_eq(stats.expired_unfetched, stats.reclaimed);
    ck_assert_uint_le(stats.held_bytes, MIB);
    finish(&items);
}
END_TEST

START_TEST(test_large_through_a_small_limit)
{
    struct items *items = make(48 * MIB);
    size_t len = MIB - ITEMS_HEADER_BYTES - 16;
    char key[16];

    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "big%u", i);
        ck_assert_int_eq(put_filled(items, key, len, 'v'), 0);
        ck_assert(has(items, key, NOW));
        ck_assert_uint_le(stats_of(items).held_bytes, 48 * MIB);
    }
    ck_assert_uint_ge(stats_of(items).curr_items, 40);
    items_verify(items);
    items_set_limit(items, 10 * MIB);
    ck_assert_int_eq(put(items, ITEMS_SET, "small", "1"), 0);
    ck_assert_uint_lt(stats_of(items).held_bytes, 46 * MIB);
    for (unsigned i = 0; i < 10; i++) { /* bit by bit */
        (void)items_tend(items, NOW, 10);
    }
    ck_assert_uint_le(stats_of(items).held_bytes, 10 * MIB);
    ck_assert_int_eq(put(items, ITEMS_SET, "small", "1"), 0);
    expect_item(items, "small", "1");
    finish(&items);
}
END_TEST

START_TEST(test_large_among_small)
{
    struct items *items = make(64 * MIB);
    char key[16];

    for (unsigned i = 0; stats_of(items).evictions == 0; i++) {
        snprintf(key, sizeof key, "small%u", i);
        ck_assert_int_eq(put_filled(items, key, 700, 's'), 0);
    }
    for (unsigned i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "big%u", i);
        ck_assert_int_eq(put_filled(items, key, MIB - 100, 'v'), 0);
        ck_assert(has(items, key, NOW));
        ck_assert_uint_le(stats_of(items).held_bytes, 64 * MIB);
    }
    ck_assert_uint_gt(stats_of(items).bytes, 62 * MIB);
    finish(&items);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("items");
    TCase *basic = tcase_create("basic");
    TCase *room = tcase_create("room");

    tcase_add_test(basic, test_set_and_get);
    tcase_add_test(basic, test_any_bytes_in_keys);
    tcase_add_test(basic, test_add_and_replace);
    tcase_add_test(basic, test_append_and_prepend);
    tcase_add_test(basic, test_cas);
    tcase_add_test(basic, test_largest_value);
    tcase_add_test(basic, test_too_large_add_keeps_the_old_value);
    tcase_add_loop_test(
        basic, test_arith, 0, (int)(sizeof arith_rows / sizeof arith_rows[0]));
    tcase_add_test(basic, test_arith_keeps_flags_and_expiry);
    tcase_add_test(basic, test_delete_and_touch);
    tcase_add_test(basic, test_expiry_edges);
    tcase_add_loop_test(basic, test_expiry_of_exptime, 0,
        (int)(sizeof expiry_rows / sizeof expiry_rows[0]));
    tcase_add_test(basic, test_flush_now);
    tcase_add_test(basic, test_flush_delayed);
    tcase_add_test(basic, test_flush_replaced);
    tcase_add_test(room, test_pins_outlive_removal);
    tcase_add_test(room, test_memory_that_is_all_pinned);
    tcase_add_test(room, test_one_too_large_for_the_limit);
    tcase_add_test(room, test_read_items_survive);
    tcase_add_test(room, test_expired_ones_make_room);
    tcase_add_test(room, test_large_through_a_small_limit);
    tcase_add_test(room, test_large_among_small);
    tcase_set_timeout(room, HELP_TIMEOUT_S);
    suite_add_tcase(s, basic);
    suite_add_tcase(s, room);
    return s;
}

int
main(void)
{
    return run_suite(suite());
}

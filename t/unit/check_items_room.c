/* SPDX-License-Identifier: BSD-3-Clause */
/* items/: what stays and what goes where room is short, whatever sizes come;
 * what is tended, shown and counted; work that is bounded. */
#include "base/err.h"
#include "items/classes.h"
#include "items/core.h"
#include "unit/items_help.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char filler[MIB];

static int
put_len(struct items *items, const char *key, size_t len, uint64_t expiry_s,
    uint64_t now_s)
{
    struct items_store store = store_of(ITEMS_SET, key, "");

    store.value = filler;
    store.value_len = len;
    store.expiry_s = expiry_s;
    return store_item(items, &store, now_s, NULL);
}

static void
put_many(struct items *items, const char *name, unsigned n, size_t len)
{
    char key[48];

    for (unsigned i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%s%u", name, i);
        ck_assert_int_eq(put_len(items, key, len, ITEMS_NEVER, NOW), 0);
    }
}

static void
read_it(struct items *items, const char *key)
{
    const struct item *item = pin_at(items, key, NOW);

    ck_assert_msg(item != NULL, "%s is missing", key);
    items_unpin(items, item);
}

/* What is read now and then outlives many times the memory of what is not. */
START_TEST(test_read_ones_stay)
{
    enum { READ = 300, ROUNDS = 100, PASSING = 1000 };
    struct items *items = make(2 * MIB);
    char key[32], name[16];

    put_many(items, "read", READ, 100);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < READ; i++) {
            snprintf(key, sizeof key, "read%u", i);
            read_it(items, key);
        }
        snprintf(name, sizeof name, "round%u-", round);
        put_many(items, name, PASSING, 100);
        ck_assert_uint_le(stats_of(items).held_bytes, 2 * MIB);
    }
    ck_assert_uint_eq(count_many(items, "read", READ), READ);
    ck_assert_uint_eq(count_many(items, "round0-", PASSING), 0);
    ck_assert_uint_gt(stats_of(items).evictions, ROUNDS * PASSING / 2);
    ck_assert_uint_gt(stats_of(items).moves_to_warm, READ / 2);
    finish(&items);
}
END_TEST

/* Nobody reads: the oldest go first. */
START_TEST(test_oldest_go_first)
{
    enum { MANY = 20000 };
    struct items *items = make(2 * MIB);
    unsigned first = 0;
    char key[48];

    put_many(items, "k", MANY, 100);
    for (;; first++) {
        snprintf(key, sizeof key, "k%u", first);
        if (has(items, key, NOW)) {
            break;
        }
    }
    ck_assert_uint_gt(first, 1000);
    ck_assert_uint_eq(count_many(items, "k", MANY), MANY - first);
    finish(&items);
}
END_TEST

/* All are read once: there is nothing to choose by, and nothing stays longer
 * than that one use is worth. */
START_TEST(test_a_use_is_spent)
{
    enum { MANY = 40000, FIRST = 5000 };
    struct items *items = make(2 * MIB);
    char key[48];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert(put_len(items, key, 100, ITEMS_NEVER, NOW) == 0);
        read_it(items, key);
    }
    ck_assert_uint_eq(count_many(items, "k", FIRST), 0);
    /* a few, when all memory was fresh, and one store would have had to move
     * half of it */
    ck_assert_uint_lt(stats_of(items).evicted_active, MANY / 100);
    finish(&items);
}
END_TEST

/* Sizes after one another, each filling the memory: it stays within the limit
 * and is used. */
START_TEST(test_any_sizes)
{
    static const size_t sizes[] = {
        1, 100000, 300, 4000, 60, 1000000, 2000, 30000, 150, 9000};
    struct items *items = make(16 * MIB);
    uint64_t random = 1;
    uint64_t bytes = (tests_are_long() ? 40 : 20) * MIB; /* of each size */
    struct items_stats stats;
    char key[48];

    for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint64_t end = bytes / (sizes[s] + 100);

        for (uint64_t i = 0; i < end; i++) {
            snprintf(key, sizeof key, "%zu-%u", sizes[s], (unsigned)i);
            ck_assert_int_eq(
                put_len(items, key, sizes[s], ITEMS_NEVER, NOW), 0);
            snprintf(key, sizeof key, "%zu-%u", sizes[s],
                (unsigned)random_below(&random, i + 1));
            (void)has(items, key, NOW);
            if (random_below(&random, 4) == 0) {
                const struct item *item = pin_at(items, key, NOW);

                if (item != NULL) {
                    items_unpin(items, item);
                }
            }
        }
        stats = stats_of(items);
        ck_assert_uint_le(stats.held_bytes, 16 * MIB);
        ck_assert_uint_gt(stats.bytes, 11 * MIB); /* tables do not shrink */
        items_verify(items);
    }
    finish(&items);
}
END_TEST

/* Values that are replaced by others of another size leave dead bytes behind;
 * live items must not pay for that. */
START_TEST(test_overwritten_ones_make_room)
{
    enum { KEYS = 6000, CHANGES = 300000 };
    struct items *items = make(4 * MIB);
    unsigned n = long_part(CHANGES);
    uint64_t random = 1;
    char key[48];

    put_many(items, "k", KEYS, 300);
    for (unsigned i = 0; i < n; i++) {
        snprintf(
            key, sizeof key, "k%u", (unsigned)random_below(&random, KEYS));
        ck_assert(put_len(items, key, random_below(&random, 2) ? 300 : 400,
                      ITEMS_NEVER, NOW) == 0);
    }
    ck_assert_uint_eq(count_many(items, "k", KEYS), KEYS);
    ck_assert_uint_eq(stats_of(items).evictions, 0);
    ck_assert_uint_gt(stats_of(items).moves_within_lru, KEYS);
    finish(&items);
}
END_TEST

START_TEST(test_keeping)
{
    struct items_config config = {
        .limit_bytes = 2 * MIB, .item_bytes_max = MIB, .keeps = true};
    struct items *items = items_create(&config);
    unsigned n = 0;
    char key[48];
    int err = 0;

    for (; err == 0; n++) {
        snprintf(key, sizeof key, "k%u", n);
        err = put_len(items, key, 500, n % 2 == 0 ? NOW + 5 : 0, NOW);
    }
    ck_assert_int_eq(err, ERR_NO_MEMORY);
    ck_assert_uint_eq(count_many(items, "k", n), n - 1);
    ck_assert_uint_gt(stats_of(items).bytes, 2 * MIB * 9 / 10);
    ck_assert_uint_eq(stats_of(items).evictions, 0);
    ck_assert_int_eq(put_len(items, "more", 500, 0, NOW), ERR_NO_MEMORY);
    /* half of them have expired */
    for (unsigned i = 0; i < n / 4; i++) {
        snprintf(key, sizeof key, "late%u", i);
        ck_assert_int_eq(put_len(items, key, 500, 0, NOW + 5), 0);
    }
    ck_assert_uint_eq(stats_of(items).evictions, 0);
    ck_assert_uint_ge(stats_of(items).reclaimed, n / 4);
    finish(&items);
}
END_TEST

static unsigned
tend_all(struct items *items, uint64_t now_s, unsigned n_max)
{
    unsigned n = 1;

    while (items_tend(items, now_s, n_max)) {
        n++;
        ck_assert_uint_lt(n, 1000000);
    }
    return n;
}

START_TEST(test_tend)
{
    enum { MANY = 3000 };
    struct items *items = make(ROOMY);
    struct items_stats stats;
    char key[48];

    (void)tend_all(items, NOW, 100); /* the first pass finds nothing */
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_int_eq(
            put_len(items, key, 10, i % 3 == 0 ? NOW + 10 : 0, NOW), 0);
    }
    stats = stats_of(items);
    ck_assert(!items_tend(items, NOW + 9, 100));
    ck_assert_uint_eq(stats_of(items).crawler_items_checked,
        stats.crawler_items_checked); /* it costs nothing */
    ck_assert_uint_gt(tend_all(items, NOW + 10, 100), 20); /* in pieces */
    stats = stats_of(items);
    ck_assert_uint_eq(stats.curr_items, MANY - MANY / 3);
    ck_assert_uint_eq(stats.crawler_reclaimed, MANY / 3);
    ck_assert_uint_eq(stats.crawler_items_checked, MANY);
    ck_assert(!items_tend(items, NOW + 11, 100));
    (void)touch(items, "k1", NOW + 20, NOW + 11);
    items_flush(items, 0, NOW + 12);
    (void)tend_all(items, NOW + 12, 1000);
    ck_assert_uint_eq(stats_of(items).curr_items, 0);
    ck_assert(!items_tend(items, NOW + 30, 100));
    finish(&items);
}
END_TEST

/* One that comes in the middle of a pass, behind it, is met by the next. */
START_TEST(test_tend_meets_late_ones)
{
    enum { MANY = 2000 };
    struct items *items = make(ROOMY);
    char key[48];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_int_eq(put_len(items, key, 10, NOW + 1 + i % 50, NOW), 0);
    }
    for (uint64_t now_s = NOW; now_s <= NOW + 120; now_s++) {
        for (unsigned i = 0; i < 5 && items_tend(items, now_s, 150); i++) {
            snprintf(key, sizeof key, "late%u-%u", (unsigned)now_s, i);
            if (now_s < NOW + 60) {
                ck_assert_int_eq(put_len(items, key, 10, now_s + 3, now_s), 0);
            }
        }
    }
    (void)tend_all(items, NOW + 121, 1000);
    ck_assert_uint_eq(stats_of(items).curr_items, 0);
    finish(&items);
}
END_TEST

struct shown {
    unsigned times[8000];
    unsigned n_call; /* in one call */
};

static void
note(void *context, const struct items_seen *seen)
{
    struct shown *shown = context;
    char text[16] = "";
    unsigned i;

    shown->n_call++;
    if (seen->key[0] != 'k') {
        return;
    }
    memcpy(text, seen->key + 1, seen->key_len - 1);
    i = (unsigned)strtoul(text, NULL, 10);
    ck_assert_uint_eq(seen->item->value_len, i % 100);
    ck_assert_uint_ge(seen->class_, 1);
    shown->times[i]++;
}

/* While the cache grows and items are moved, none that stays is left out. */
START_TEST(test_each)
{
    enum { MANY = 8000, A_CALL = 50 };
    struct items *items = make(ROOMY);
    struct shown *shown = calloc(1, sizeof *shown);
    uint64_t cursor = 0;
    unsigned n_calls = 0;
    char key[48];

    ck_assert_ptr_nonnull(shown);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_int_eq(put_len(items, key, i % 100, 0, NOW), 0);
    }
    do {
        shown->n_call = 0;
        cursor = items_each(items, cursor, A_CALL, NOW, note, shown);
        ck_assert_uint_lt(shown->n_call, 4 * A_CALL);
        for (unsigned i = 0; i < 40; i++) {
            snprintf(key, sizeof key, "other%u-%u", n_calls, i);
            ck_assert_int_eq(put_len(items, key, 1, 0, NOW), 0);
        }
        n_calls++;
    } while (cursor != 0);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_uint_ge(shown->times[i], 1);
        ck_assert_uint_le(shown->times[i], 2);
    }
    free(shown);
    finish(&items);
}
END_TEST

/* The class of any size is the first whose chunks hold it, or the last. */
START_TEST(test_class_of)
{
    static const uint64_t most[] = {1024, 1025, 1200, 5000, MIB};
    struct classes *classes = malloc(sizeof *classes);
    ck_assert_ptr_nonnull(classes);
    for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
        memset(classes, 0, sizeof *classes);
        items__classes_init(classes, most[m]);
        for (size_t len = 0; len < 6000; len++) {
            unsigned wanted = 1;
            while (wanted < classes->last &&
                classes->chunk_bytes[wanted] < items__classes_bytes(3, len)) {
                wanted++;
            }
            ck_assert_uint_eq(items__classes_of(classes, 3, len), wanted);
        }
    }
    free(classes);
}
END_TEST

START_TEST(test_classes)
{
    struct items *items = make(4 * MIB);
    struct items_class classes[ITEMS_CLASSES];
    unsigned small = items_class_of(items, 2, 10);
    unsigned large = items_class_of(items, 2, MIB - 100);
    uint64_t number;

    ck_assert_uint_eq(small, 1);
    ck_assert_int_eq(put(items, ITEMS_SET, "aa", "0123456789"), 0);
    ck_assert_int_eq(put(items, ITEMS_SET, "aa", "0123456789"), 0);
    ck_assert_int_eq(put(items, ITEMS_SET, "bb", "1"), 0);
    expect_item(items, "aa", "0123456789");
    ck_assert_int_eq(add_number(items, "bb", 1, &number), 0);
    ck_assert_int_eq(put_len(items, "cc", MIB - 100, ITEMS_NEVER, NOW + 1), 0);
    items_classes(items, classes);
    ck_assert_uint_eq(classes[1].chunk_bytes, 96);
    ck_assert_uint_eq(classes[2].chunk_bytes, 120);
    ck_assert_uint_eq(classes[0].chunk_bytes, 0);
    ck_assert_uint_eq(classes[small].number, 2);
    ck_assert_uint_eq(classes[small].mem_requested,
        items__classes_bytes(2, 10) + items__classes_bytes(2, 1));
    ck_assert_uint_eq(classes[small].cmd_set, 3);
    ck_assert_uint_eq(classes[small].get_hits, 1);
    ck_assert_uint_eq(classes[small].incr_hits, 1);
    ck_assert_uint_eq(classes[small].oldest_s, NOW);
    ck_assert_uint_eq(classes[large].number, 1);
    ck_assert_uint_eq(classes[large].oldest_s, NOW + 1);
    ck_assert_int_eq(items_delete(items, "aa", 2, NULL, NOW), 0);
    put_many(items, "big", 10, MIB - 100);
    items_classes(items, classes);
    ck_assert_uint_eq(classes[small].delete_hits, 1);
    ck_assert_uint_gt(classes[large].evicted, 5);
    ck_assert_uint_eq(classes[large].number + classes[large].evicted, 11);
    items_stats_reset(items);
    items_classes(items, classes);
    ck_assert_uint_eq(classes[large].evicted, 0);
    ck_assert_uint_gt(classes[large].number, 0);
    ck_assert_uint_eq(stats_of(items).evictions, 0);
    ck_assert_uint_gt(stats_of(items).curr_items, 0);
    finish(&items);
}
END_TEST

/* What one store does for the tables does not depend on how many there are: it
 * adds one bucket of its stripe at most. */
START_TEST(test_growth_is_bucket_by_bucket)
{
    enum { MANY = 300000 };
    struct items *items = make(ROOMY);
    uint64_t before[ITEMS__STRIPES];
    unsigned n = long_part(MANY);
    char key[48];

    for (unsigned i = 0; i < n; i++) {
        uint64_t n_added = 0;

        for (unsigned s = 0; i % 16 == 0 && s < ITEMS__STRIPES; s++) {
            before[s] = items->stripe[s].table.n_buckets;
        }
        snprintf(key, sizeof key, "k%u", i);
        ck_assert(put_len(items, key, 1, 0, NOW) == 0);
        for (unsigned s = 0; i % 16 == 0 && s < ITEMS__STRIPES; s++) {
            n_added += items->stripe[s].table.n_buckets - before[s];
        }
        ck_assert(n_added <= 1);
    }
    for (unsigned s = 0; s < ITEMS__STRIPES; s++) {
        ck_assert_uint_eq(
            items->stripe[s].table.n_buckets, items->stripe[s].table.n);
    }
    finish(&items);
}
END_TEST

/* Large ones that were all read are spared at first, where they are: that is
 * no reason to refuse a larger one. */
START_TEST(test_large_ones_that_were_read)
{
    enum { MANY = 400, LARGER = 40 };
    struct items *items = make(16 * MIB);
    char key[48];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_int_eq(put_len(items, key, 40000, ITEMS_NEVER, NOW), 0);
        read_it(items, key);
    }
    put_many(items, "larger", LARGER, 1000000);
    finish(&items);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("items_room");
    TCase *room = tcase_create("room");
    TCase *walks = tcase_create("walks");

    tcase_add_test(room, test_read_ones_stay);
    tcase_add_test(room, test_oldest_go_first);
    tcase_add_test(room, test_a_use_is_spent);
    tcase_add_test(room, test_any_sizes);
    tcase_add_test(room, test_overwritten_ones_make_room);
    tcase_add_test(room, test_large_ones_that_were_read);
    tcase_add_test(room, test_keeping);
    tcase_add_test(room, test_growth_is_bucket_by_bucket);
    tcase_add_test(walks, test_tend);
    tcase_add_test(walks, test_tend_meets_late_ones);
    tcase_add_test(walks, test_each);
    tcase_add_test(walks, test_class_of);
    tcase_add_test(walks, test_classes);
    tcase_set_timeout(room, HELP_TIMEOUT_S);
    tcase_set_timeout(walks, HELP_TIMEOUT_S);
    suite_add_tcase(s, room);
    suite_add_tcase(s, walks);
    return s;
}

int
main(void)
{
    return run_suite(suite());
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* stats/prefix: what is counted under which name, and what is not. */
#include "stats/prefix.h"

#include "unit/check_help.h"

#include <stdio.h>

enum { THREADS = 4, KEYS = 20000 };

/* What prefixes_each has found. */
struct found {
    unsigned n;
    const char *name; /* whose counts are wanted; NULL: the sum of all */
    struct prefix_counts counts;
};

static void
note(void *context, const char *name, size_t len,
    const struct prefix_counts *counts)
{
    struct found *found = context;
    found->n++;
    if (found->name == NULL ||
        (strlen(found->name) == len && memcmp(name, found->name, len) == 0)) {
#define X(field, text) found->counts.field += counts->field;
        PREFIX_COUNTS(X)
#undef X
    }
}

static struct found
look(struct prefixes *prefixes, const char *name)
{
    struct found found = {.name = name};
    prefixes_each(prefixes, note, &found);
    return found;
}

static void
add(struct prefixes *prefixes, const char *key, uint64_t get, uint64_t set)
{
    const struct prefix_counts counts = {.get = get, .set = set};
    prefixes_add(prefixes, key, strlen(key), &counts);
}

START_TEST(test_counts)
{
    struct prefixes prefixes;
    prefixes_init(&prefixes, ':', false);
    ck_assert(!prefixes_are_on(&prefixes));
    prefixes_switch(&prefixes, true);
    ck_assert(prefixes_are_on(&prefixes));
    add(&prefixes, "a:1", 1, 0);
    add(&prefixes, "a:2:3", 2, 7);
    add(&prefixes, "ab:1", 10, 0);
    add(&prefixes, ":1", 100, 0);
    add(&prefixes, "none", 1000, 0);
    add(&prefixes, "", 1000, 0);
    ck_assert_uint_eq(look(&prefixes, "a").n, 3);
    ck_assert_uint_eq(look(&prefixes, "a").counts.get, 3);
    ck_assert_uint_eq(look(&prefixes, "a").counts.set, 7);
    ck_assert_uint_eq(look(&prefixes, "ab").counts.get, 10);
    ck_assert_uint_eq(look(&prefixes, "").counts.get, 100);
    prefixes_switch(&prefixes, false);
    ck_assert_uint_eq(look(&prefixes, NULL).counts.get, 113);
    prefixes_clear(&prefixes);
    ck_assert_uint_eq(look(&prefixes, NULL).n, 0);
    add(&prefixes, "a:1", 1, 0);
    ck_assert_uint_eq(look(&prefixes, "a").counts.get, 1);
    prefixes_fini(&prefixes);
}
END_TEST

START_TEST(test_delimiter)
{
    struct prefixes prefixes;
    prefixes_init(&prefixes, '/', true);
    ck_assert(prefixes_are_on(&prefixes));
    add(&prefixes, "a:1/2", 1, 0);
    ck_assert_uint_eq(look(&prefixes, "a:1").counts.get, 1);
    prefixes_fini(&prefixes);
}
END_TEST

/* Whatever keys there are: so many prefixes and no more, and those that are
 * there go on counting. */
START_TEST(test_bounds)
{
    struct prefixes prefixes;
    char key[PREFIX_KEY_BYTES + 2];
    prefixes_init(&prefixes, ':', true);
    memset(key, 'k', sizeof key);
    key[PREFIX_KEY_BYTES] = ':';
    prefixes_add(&prefixes, key, sizeof key - 1, &(struct prefix_counts){0});
    ck_assert_uint_eq(look(&prefixes, NULL).n, 0);
    key[PREFIX_KEY_BYTES - 1] = ':';
    prefixes_add(&prefixes, key, PREFIX_KEY_BYTES, &(struct prefix_counts){0});
    ck_assert_uint_eq(look(&prefixes, NULL).n, 1);
    for (unsigned i = 0; i < 2 * PREFIX_MAX; i++) {
        snprintf(key, sizeof key, "%u:", i);
        add(&prefixes, key, 1, 0);
    }
    ck_assert_uint_eq(look(&prefixes, NULL).n, PREFIX_MAX);
    ck_assert_uint_eq(look(&prefixes, NULL).counts.get, PREFIX_MAX - 1);
    add(&prefixes, "5:x", 1, 0);
    ck_assert_uint_eq(look(&prefixes, "5").counts.get, 2);
    prefixes_fini(&prefixes);
}
END_TEST

static void *
count_keys(void *arg)
{
    struct prefixes *prefixes = arg;
    char key[32];
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "%u:%u", i % 100, i);
        add(prefixes, key, prefixes_are_on(prefixes), 1);
        if (i % 1000 == 0) {
            look(prefixes, NULL);
        }
    }
    return NULL;
}

START_TEST(test_threads)
{
    struct prefixes prefixes;
    pthread_t thread[THREADS];
    prefixes_init(&prefixes, ':', true);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, count_keys, &prefixes), 0);
    }
    prefixes_switch(&prefixes, true);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    ck_assert_uint_eq(look(&prefixes, NULL).n, 100);
    ck_assert_uint_eq(look(&prefixes, NULL).counts.get, THREADS * KEYS);
    ck_assert_uint_eq(look(&prefixes, "7").counts.set, THREADS * KEYS / 100);
    prefixes_fini(&prefixes);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_counts, test_delimiter, test_bounds, test_threads};
    return run_tests("prefix", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* tier/seal_aside: how long ranges wait that could not be sealed, and which
 * are known. */
#include "tier/seal_aside.h"

#include "unit/check_help.h"

static struct seal_range
range_of(unsigned slot, uint64_t first_id, uint64_t last_id)
{
    return (struct seal_range){
        .slot = slot, .first_id = first_id, .last_id = last_id};
}

static bool
add(struct seal_aside *aside, unsigned slot, uint64_t first, uint64_t last)
{
    const struct seal_range range = range_of(slot, first, last);
    return seal_aside_add(aside, &range);
}

/* The first id of the range that is found, or 0. */
static uint64_t
find(const struct seal_aside *aside, unsigned slot, uint64_t first,
    uint64_t last)
{
    const struct seal_aside_range *it =
        seal_aside_find(aside, slot, first, last);
    return it == NULL ? 0 : it->first_id;
}

START_TEST(test_find)
{
    struct seal_aside aside = {.now_s = 5};
    ck_assert_uint_eq(find(&aside, 0, 0, UINT64_MAX), 0);
    ck_assert(add(&aside, 3, 300, UINT64_MAX));
    ck_assert(add(&aside, 3, 100, 199));
    ck_assert(add(&aside, 4, 10, 19));
    ck_assert_uint_eq(find(&aside, 3, 0, UINT64_MAX), 100);
    ck_assert_uint_eq(find(&aside, 3, 0, 100), 100);
    ck_assert_uint_eq(find(&aside, 3, 199, 299), 100);
    ck_assert_uint_eq(find(&aside, 3, 0, 99), 0);
    ck_assert_uint_eq(find(&aside, 3, 200, 299), 0);
    ck_assert_uint_eq(find(&aside, 3, 200, 300), 300);
    ck_assert_uint_eq(find(&aside, 3, UINT64_MAX, UINT64_MAX), 300);
    ck_assert_uint_eq(find(&aside, 4, 0, UINT64_MAX), 10);
    ck_assert_uint_eq(find(&aside, 5, 0, UINT64_MAX), 0);
}
END_TEST

/* Each pause is twice as long as the one before, up to the longest; what is
 * known is no news, also when its pause is over. */
START_TEST(test_pauses)
{
    struct seal_aside aside = {.now_s = 1};
    uint64_t pause = SEAL_ASIDE_LEAST_S;
    ck_assert(add(&aside, 0, 100, 199));
    for (unsigned i = 0; i < 10; i++) {
        aside.now_s += pause - 1;
        ck_assert_uint_eq(find(&aside, 0, 0, UINT64_MAX), 100 + i);
        aside.now_s++;
        ck_assert_uint_eq(find(&aside, 0, 0, UINT64_MAX), 0);
        ck_assert(!add(&aside, 0, 101 + i, 199 + i)); /* about the same */
        ck_assert_uint_eq(aside.n, 1);
        pause = 2 * pause < SEAL_ASIDE_MOST_S ? 2 * pause : SEAL_ASIDE_MOST_S;
    }
    ck_assert_uint_eq(pause, SEAL_ASIDE_MOST_S);
}
END_TEST

START_TEST(test_drop)
{
    struct seal_aside aside = {0};
    struct seal_range part = range_of(0, 100, 198);
    struct seal_range other = range_of(1, 0, UINT64_MAX);
    struct seal_range all = range_of(0, 100, 199);
    ck_assert(add(&aside, 0, 100, 199));
    seal_aside_drop(&aside, &part);
    seal_aside_drop(&aside, &other);
    ck_assert_uint_eq(find(&aside, 0, 0, UINT64_MAX), 100);
    seal_aside_drop(&aside, &all);
    ck_assert_uint_eq(find(&aside, 0, 0, UINT64_MAX), 0);
    ck_assert(add(&aside, 0, 100, 199)); /* news again */
}
END_TEST

/* Where there are too many, the one that would wait the least goes. */
START_TEST(test_many)
{
    struct seal_aside aside = {0};
    for (uint64_t i = 1; i <= SEAL_ASIDE_MAX; i++) {
        aside.now_s = i == 7 ? 0 : 1;
        ck_assert(add(&aside, 0, 10 * i, 10 * i + 9));
    }
    aside.now_s = 1;
    ck_assert(add(&aside, 1, 10, 19));
    ck_assert_uint_eq(aside.n, SEAL_ASIDE_MAX);
    ck_assert_uint_eq(find(&aside, 1, 0, UINT64_MAX), 10);
    for (uint64_t i = 1; i <= SEAL_ASIDE_MAX; i++) {
        ck_assert_uint_eq(
            find(&aside, 0, 10 * i, 10 * i), i == 7 ? 0 : 10 * i);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_find, test_pauses, test_drop, test_many};
    return run_tests("seal_aside", tests, COUNT_OF(tests));
}

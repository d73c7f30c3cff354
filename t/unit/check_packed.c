/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/packed: what is packed comes back, whatever the numbers; nothing is read
 * behind the end. Groups lie in heap blocks of exactly their size and slack,
 * so that ASan sees a read past them. */
#include "wal/packed.h"

#include "unit/check_help.h"

enum { ROUNDS = 20000 };

struct group {
    uint64_t value[PACKED_GROUP];
    size_t n;
    uint8_t bytes[PACKED_GROUP_BYTES_MAX + PACKED_SLACK];
    size_t len;
};

/* Reads just len of the bytes, with slack behind them. */
static bool
read_cut(const struct group *group, size_t len, uint64_t *value)
{
    uint8_t *copy = malloc(len + PACKED_SLACK);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, group->bytes, len);
    memset(copy + len, 0xff, PACKED_SLACK);
    const uint8_t *at = copy;
    bool good = packed_get(&at, copy + len, value, group->n);
    ck_assert(!good || at <= copy + len);
    free(copy);
    return good;
}

static void
check_group(struct group *group)
{
    uint64_t value[PACKED_GROUP];
    group->len = packed_put(group->bytes, group->value, group->n);
    ck_assert_uint_ge(group->len, PACKED_GROUP_BYTES_MIN);
    ck_assert_uint_le(
        group->len, PACKED_GROUP_BYTES_MIN + group->n * sizeof *value);
    memset(value, 0xa5, sizeof value);
    ck_assert(read_cut(group, group->len, value));
    ck_assert_mem_eq(value, group->value, group->n * sizeof *value);
    ck_assert(!read_cut(group, group->len - 1, value));
}

static uint64_t
bits(uint64_t *random, unsigned width)
{
    uint64_t low = random_below(random, UINT64_MAX);
    return width == 0 ? 0 : low >> (64 - width);
}

START_TEST(test_every_width_comes_back)
{
    uint64_t random = 1;
    for (unsigned width = 0; width <= 64; width++) {
        for (size_t n = 1; n <= PACKED_GROUP; n++) {
            struct group group = {.n = n};
            for (size_t i = 0; i < n; i++) {
                group.value[i] = bits(&random, width);
            }
            group.value[n - 1] = width == 0 ? 0 : UINT64_MAX >> (64 - width);
            check_group(&group);
        }
    }
}
END_TEST

START_TEST(test_random_mixtures_come_back)
{
    uint64_t random = 2;
    for (int round = 0; round < ROUNDS; round++) {
        struct group group = {.n = 1 + random_below(&random, PACKED_GROUP)};
        unsigned usual = (unsigned)random_below(&random, 65);
        unsigned rare = (unsigned)random_below(&random, 65);
        uint64_t share = 1 + random_below(&random, 100);
        for (size_t i = 0; i < group.n; i++) {
            bool is_rare = random_below(&random, share) == 0;
            group.value[i] = bits(&random, is_rare ? rare : usual);
        }
        check_group(&group);
    }
}
END_TEST

START_TEST(test_one_large_number_does_not_widen_the_rest)
{
    struct group group = {.n = PACKED_GROUP};
    for (size_t i = 0; i < group.n; i++) {
        group.value[i] = i % 16;
    }
    check_group(&group);
    ck_assert_uint_eq(group.len, 2 + PACKED_GROUP / 2);
    group.value[77] = 1000000; /* 20 bits: 7 + 16 of them as an exception */
    check_group(&group);
    ck_assert_uint_eq(group.len, 2 + PACKED_GROUP / 2 + 1 + 3);
}
END_TEST

START_TEST(test_bytes_that_make_no_group)
{
    static const uint8_t bad[][8] = {
        {65, 0},        /* width of the numbers */
        {0, 3, 8},      /* three exceptions of two numbers */
        {0, 1, 7, 0},   /* an exception without a bit */
        {0, 1, 65, 0},  /* or with too many */
        {60, 1, 12, 0}, /* above bit 64 */
        {0, 1, 8, 2},   /* in the third of two places */
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct group group = {.n = 2};
        uint64_t value[PACKED_GROUP];
        memcpy(group.bytes, bad[i], sizeof bad[i]);
        ck_assert_msg(!read_cut(&group, 80, value), "number %zu", i);
    }
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_every_width_comes_back,
        test_random_mixtures_come_back,
        test_one_large_number_does_not_widen_the_rest,
        test_bytes_that_make_no_group};
    return run_tests("packed", test, COUNT_OF(test));
}

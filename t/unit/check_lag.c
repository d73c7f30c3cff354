/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/lag: since when somebody lacks something, against a list of all
 * batches. */
#include "repl/lag.h"

#include "unit/check_help.h"

enum { SEEDS = 12, LOOKS = 6000, BATCHES = 4 * LOOKS, BEGIN = 100 };

START_TEST(test_rules)
{
    static struct lag lag;
    uint64_t from_us, bytes;
    lag_begin(&lag, 10, 1000, 50);
    ck_assert(lag_of(&lag, 10, &from_us, &bytes));
    ck_assert_uint_eq(from_us, 0);
    ck_assert_uint_eq(bytes, 0);
    lag_look(&lag, 10, 1000, 70000);
    lag_look(&lag, 12, 1200, 80000);
    ck_assert(!lag_of(&lag, 9, &from_us, &bytes));
    ck_assert(lag_of(&lag, 10, &from_us, &bytes));
    ck_assert_uint_eq(from_us, 70000); /* the log was looked at */
    ck_assert_uint_eq(bytes, 200);
    ck_assert(lag_of(&lag, 11, &from_us, &bytes)); /* at most */
    ck_assert_uint_eq(from_us, 70000);
    ck_assert_uint_eq(bytes, 200);
    lag_look(&lag, 12, 1200, 90000);
    lag_look(&lag, 13, 1250, 95000);
    ck_assert(lag_of(&lag, 12, &from_us, &bytes));
    ck_assert_uint_eq(from_us, 90000);
    ck_assert_uint_eq(bytes, 50);
    ck_assert(lag_of(&lag, 13, &from_us, &bytes));
    ck_assert_uint_eq(from_us, 0);
    lag_begin(&lag, 20, 3, 96000);
    ck_assert(!lag_of(&lag, 13, &from_us, &bytes));
    ck_assert(lag_of(&lag, 20, &from_us, &bytes));
}
END_TEST

struct model {
    struct lag lag;
    uint64_t now_us, bytes, gap_us; /* gap: the longest between two looks */
    unsigned n;
    uint64_t at_us[BATCHES], end[BATCHES]; /* of batch BEGIN + 1 + i */
};

/* Time passes, some batches are written, and the log is looked at. */
static void
go_on(struct model *model, uint64_t *random)
{
    uint64_t gap_us = 1 + random_below(random, 1U << random_below(random, 18));
    unsigned n = (unsigned)random_below(random, 4);
    for (unsigned i = 0; i < n; i++) {
        model->bytes += 1 + random_below(random, 100);
        model->at_us[model->n] = model->now_us + gap_us * (i + 1) / n;
        model->end[model->n++] = model->bytes;
    }
    model->now_us += gap_us;
    model->gap_us = gap_us > model->gap_us ? gap_us : model->gap_us;
    lag_look(&model->lag, BEGIN + model->n, model->bytes, model->now_us);
}

static void
compare(struct model *model, unsigned n_has)
{
    uint64_t from_us, bytes, age_us, told_us;
    ck_assert(lag_of(&model->lag, BEGIN + n_has, &from_us, &bytes));
    if (n_has == model->n) {
        ck_assert_uint_eq(from_us, 0);
        ck_assert_uint_eq(bytes, 0);
        return;
    }
    age_us = model->now_us - model->at_us[n_has];
    told_us = model->now_us - from_us;
    ck_assert_uint_le(age_us, told_us);
    ck_assert_uint_le(
        told_us, age_us + age_us / 8 + model->gap_us + LAG_STEP_US);
    ck_assert_uint_ge(
        bytes, model->bytes - (n_has == 0 ? 0 : model->end[n_has - 1]));
    ck_assert_uint_le(bytes, model->bytes);
}

START_TEST(test_model)
{
    static struct model model;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        uint64_t random = seed;
        model.now_us = 1000 * seed;
        model.n = 0;
        model.bytes = model.gap_us = 0;
        lag_begin(&model.lag, BEGIN, 0, model.now_us);
        for (unsigned i = 0; i < LOOKS; i++) {
            go_on(&model, &random);
            compare(&model, (unsigned)random_below(&random, model.n + 1));
        }
        for (unsigned i = 0; i <= model.n; i++) {
            compare(&model, i);
        }
        ck_assert_uint_eq(model.lag.n, LAG_KEPT);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_rules, test_model};
    return run_tests("lag", tests, COUNT_OF(tests));
}

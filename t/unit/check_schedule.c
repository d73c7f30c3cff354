/* SPDX-License-Identifier: BSD-3-Clause */

/* The times of an open loop: as many as were asked for, at random as those of
 * clients that do not know of each other, and from the seed alone. */

#include "bench/schedule.h"
#include "unit/check_help.h"

#include <math.h>

enum { STEPS = 200000, RATE = 50000, BEGIN_NS = 1000000007 };

#define NS_PER_S 1e9

START_TEST(test_mean_and_spread)
{
    struct schedule schedule;
    double sum = 0.0;
    double squares = 0.0;
    double above = 0.0;
    double mean_ns = NS_PER_S / RATE;
    uint64_t last_ns = BEGIN_NS;
    int backwards = 0;
    schedule_init(&schedule, RATE, 1, 0, BEGIN_NS);
    for (int i = 0; i < STEPS; i++) {
        backwards += schedule.next_ns < last_ns;
        double gap = (double)(schedule.next_ns - last_ns);
        last_ns = schedule.next_ns;
        sum += gap;
        squares += gap * gap;
        above += gap > mean_ns;
        schedule_step(&schedule);
    }
    ck_assert_int_eq(backwards, 0);
    double mean = sum / STEPS;
    double deviation = sqrt(squares / STEPS - mean * mean);
    ck_assert(fabs(mean / mean_ns - 1.0) < 0.01);
    /* exponential: as wide as its mean, and 1/e of it above that */
    ck_assert(fabs(deviation / mean_ns - 1.0) < 0.02);
    ck_assert(fabs(above / STEPS - exp(-1.0)) < 0.005);
}
END_TEST

START_TEST(test_from_the_seed_alone)
{
    struct schedule first, again, other, stream;
    schedule_init(&first, RATE, 1, 0, BEGIN_NS);
    schedule_init(&again, RATE, 1, 0, 2 * (uint64_t)BEGIN_NS);
    schedule_init(&other, RATE, 2, 0, BEGIN_NS);
    schedule_init(&stream, RATE, 1, 1, BEGIN_NS);
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(again.next_ns - first.next_ns, BEGIN_NS);
        same += other.next_ns == first.next_ns;
        same += stream.next_ns == first.next_ns;
        schedule_step(&first);
        schedule_step(&again);
        schedule_step(&other);
        schedule_step(&stream);
    }
    ck_assert_int_lt(same, 10);
}
END_TEST

/* Small steps are not lost behind a long run. */
START_TEST(test_after_a_day)
{
    struct schedule schedule;
    schedule_init(&schedule, 1e8, 1, 0, 0);
    schedule.past_ns = 86400e9;
    schedule_step(&schedule);
    uint64_t begin_ns = schedule.next_ns;
    for (int i = 0; i < STEPS; i++) {
        schedule_step(&schedule);
    }
    double mean = (double)(schedule.next_ns - begin_ns) / STEPS;
    ck_assert(fabs(mean - 10.0) < 0.1);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_mean_and_spread, test_from_the_seed_alone, test_after_a_day};
    return run_tests("schedule", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* net/alarm: timers of a loop by the system's clock and by one that jumps. */
#include "net/alarm.h"

#include "lib/fake_clock.h"
#include "unit/check_help.h"

enum { HOUR_MS = 3600000, AGAIN = 3 };

struct world {
    struct alarm alarm; /* first */
    uv_loop_t loop;
    unsigned n_due;
    uint64_t in_ms; /* set again, AGAIN times in all; 0: not */
};

static void
on_due(struct alarm *alarm)
{
    struct world *world = (struct world *)alarm;
    ck_assert(!alarm_is_set(alarm));
    world->n_due++;
    if (world->in_ms != 0 && world->n_due < AGAIN) {
        alarm_set(alarm, world->in_ms);
    }
}

static void
begin(struct world *world, const struct clock *clock)
{
    *world = (struct world){0};
    ck_assert_int_eq(uv_loop_init(&world->loop), 0);
    alarm_init(&world->alarm, &world->loop, clock, on_due);
    ck_assert(!alarm_is_set(&world->alarm));
}

static void
end(struct world *world)
{
    alarm_close(&world->alarm);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&world->loop), 0);
}

START_TEST(test_system)
{
    struct world world;
    begin(&world, &clock_system);
    ck_assert_uint_eq(alarm_now_ms(&world.alarm), uv_now(&world.loop));
    uint64_t begun_ms = uv_now(&world.loop);
    world.in_ms = 2;
    alarm_set(&world.alarm, 2);
    ck_assert(alarm_is_set(&world.alarm));
    uv_run(&world.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(world.n_due, AGAIN);
    ck_assert_uint_ge(uv_now(&world.loop), begun_ms + 2 * AGAIN);

    world.in_ms = 0;
    alarm_set(&world.alarm, 0);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(world.n_due, AGAIN + 1);

    end(&world);
}
END_TEST

/* It goes off when the hour has been passed, and not before; looking whether
 * that is so takes the loop one round a millisecond. */
START_TEST(test_fake)
{
    struct fake_clock fake;
    struct world world;
    fake_clock_init(&fake);
    fake_clock_stand(&fake);
    begin(&world, &fake.clock);
    alarm_set(&world.alarm, HOUR_MS);
    fake_clock_pass(&fake, HOUR_MS - 1);
    uint64_t begun_ms = uv_now(&world.loop);
    unsigned n_rounds = 20;
    for (unsigned i = 0; i < n_rounds; i++) {
        uv_run(&world.loop, UV_RUN_ONCE);
    }
    uv_update_time(&world.loop);
    ck_assert_uint_ge(uv_now(&world.loop), begun_ms + n_rounds / 2);
    ck_assert_uint_eq(world.n_due, 0);
    ck_assert(alarm_is_set(&world.alarm));
    fake_clock_pass(&fake, 1);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(world.n_due, 1);
    end(&world);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_system, test_fake};
    return run_tests("alarm", tests, COUNT_OF(tests));
}

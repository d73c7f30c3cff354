/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/change: cas uniques, and what changes do at defaults. */
#include "unit/play_help.h"

START_TEST(test_cas)
{
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
    const struct line lines[] = {
        {cas(SMALL, 5, 0), ERR_EXISTS, 0, 0, 100},
        {cas(SMALL, 256, 1), ERR_OVER_MAX, 0, 0, 100},
        {cas(SMALL, 5, 1), 0, 0, 5, 100},
        {cas(SMALL, 6, 5), ERR_EXISTS, 0, 5, 100},
        {cas(SMALL, 0, 6), 0, 0, 0, 100},
        {cas(LARGE, UINT64_MAX, 101), 0, 0, 0, UINT64_MAX},
        {cas(LARGE, 1, 0), ERR_EXISTS, 0, 0, UINT64_MAX},
        {cas(LARGE, UINT64_MAX - 1, UINT64_MAX), 0, 0, 0, UINT64_MAX - 1},
        {cas(LARGE, 100, UINT64_MAX), 0, 0, 0, 100},
    };
    PLAY(engine, lines);
    def.absent_is_miss = true;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    const struct line miss[] = {
        {cas(LARGE, 1, 101), ERR_NOT_FOUND, 0, 0, 100},
        {one(CHANGE_SET, LARGE, 1), 0, 0, 0, 1},
        {cas(SMALL, 1, 1), ERR_NOT_FOUND, 0, 0, 1},
        {cas(LARGE, 2, 2), 0, 0, 0, 2},
    };
    PLAY(engine, miss);
    finish_engine(&engine);
}
END_TEST

static struct change
compared(enum change_op op, unsigned slot, uint64_t operand, uint64_t unique)
{
    struct change change = one(op, slot, operand);
    change.compares = true;
    change.cas = unique;
    return change;
}

/* A cas unique may go with every change of one column. */
START_TEST(test_compares)
{
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
    const struct line lines[] = {
        {compared(CHANGE_SET, SMALL, 256, 9), ERR_OVER_MAX, 0, 0, 100},
        {compared(CHANGE_SET, SMALL, 5, 2), ERR_EXISTS, 0, 0, 100},
        {compared(CHANGE_SET, SMALL, 5, 1), 0, 0, 5, 100},
        {compared(CHANGE_ADD, SMALL, 7, 6), ERR_NOT_STORED, 0, 5, 100},
        {compared(CHANGE_INCR, SMALL, 1, 5), ERR_EXISTS, 0, 5, 100},
        {compared(CHANGE_INCR, SMALL, 1, 6), 0, 0, 6, 100},
        {compared(CHANGE_DECR, SMALL, 1, 6), ERR_EXISTS, 0, 6, 100},
        {compared(CHANGE_DECR, SMALL, 2, 7), 0, 0, 4, 100},
        {compared(CHANGE_REPLACE, SMALL, 3, 5), 0, 0, 3, 100},
        {compared(CHANGE_DELETE, SMALL, 0, 3), ERR_EXISTS, 0, 3, 100},
        {compared(CHANGE_DELETE, SMALL, 0, 4), 0, 0, 0, 100},
        {compared(CHANGE_DELETE, SMALL, 0, 1), ERR_NOT_FOUND, 0, 0, 100},
    };
    PLAY(engine, lines);
    finish_engine(&engine);
}
END_TEST

static struct change
starting(enum change_op op, unsigned slot, uint64_t initial)
{
    struct change change = one(op, slot, 3);
    change.absent = CHANGE_TO_INITIAL;
    change.initial = initial;
    return change;
}

static struct change
existing(enum change_op op, unsigned slot)
{
    struct change change = one(op, slot, 3);
    change.absent = CHANGE_NOT_ABSENT;
    return change;
}

/* What a column at its default may do but count from there, where that is the
 * same as to be absent. */
START_TEST(test_absent)
{
    struct schema_counter def = two_columns();
    def.absent_is_miss = true;
    struct engine *engine = make_engine(&def);
    const struct line lines[] = {
        {existing(CHANGE_INCR, SMALL), ERR_NOT_FOUND, 0, 0, 100},
        {existing(CHANGE_DECR, LARGE), ERR_NOT_FOUND, 0, 0, 100},
        {starting(CHANGE_INCR, SMALL, 256), ERR_OVER_MAX, 0, 0, 100},
        {starting(CHANGE_INCR, SMALL, 0), 0, 0, 0, 100},
        {starting(CHANGE_INCR, SMALL, 255), 0, 0, 255, 100},
        {starting(CHANGE_INCR, SMALL, 7), 0, 1, 255, 100},
        {starting(CHANGE_DECR, SMALL, 7), 0, 0, 252, 100},
        {existing(CHANGE_DECR, SMALL), 0, 0, 249, 100},
        {starting(CHANGE_DECR, LARGE, UINT64_MAX), 0, 0, 249, UINT64_MAX},
        {existing(CHANGE_INCR, LARGE), 0, 1, 249, UINT64_MAX},
        {existing(CHANGE_DECR, LARGE), 0, 0, 249, UINT64_MAX - 3},
        {one(CHANGE_SET, LARGE, 105), 0, 0, 249, 105},
        {one(CHANGE_SET, SMALL, 0), 0, 0, 0, 105},
        {existing(CHANGE_DECR, SMALL), ERR_NOT_FOUND, 0, 0, 105},
    };
    PLAY(engine, lines);
    finish_engine(&engine);
}
END_TEST

/* Elsewhere it counts, but where an initial value is above the default. */
START_TEST(test_never_absent)
{
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
    const struct line lines[] = {
        {existing(CHANGE_INCR, SMALL), 0, 0, 3, 100},
        {one(CHANGE_SET, SMALL, 0), 0, 0, 0, 100},
        {existing(CHANGE_INCR, SMALL), 0, 0, 3, 100},
        {existing(CHANGE_DECR, SMALL), 0, 0, 0, 100},
        {existing(CHANGE_DECR, SMALL), 0, 0, 0, 100},
        {existing(CHANGE_DECR, LARGE), 0, 0, 0, 97},
        {starting(CHANGE_INCR, LARGE, 500), 0, 0, 0, 100},
        {starting(CHANGE_INCR, LARGE, 99), 0, 0, 0, 103},
        {one(CHANGE_DELETE, LARGE, 0), 0, 0, 0, 100},
        {starting(CHANGE_INCR, LARGE, 100), 0, 0, 0, 103},
        {one(CHANGE_SET, LARGE, 100), 0, 0, 0, 100},
        {starting(CHANGE_INCR, LARGE, 101), 0, 0, 0, 101},
        {starting(CHANGE_INCR, SMALL, 256), ERR_OVER_MAX, 0, 0, 101},
        {starting(CHANGE_INCR, SMALL, 0), 0, 0, 3, 101},
        {starting(CHANGE_INCR, SMALL, 0), 0, 0, 6, 101},
        {starting(CHANGE_DECR, SMALL, 9), 0, 0, 3, 101},
        {starting(CHANGE_DECR, SMALL, 9), 0, 0, 0, 101},
        {starting(CHANGE_DECR, SMALL, 0), 0, 0, 0, 101},
        {starting(CHANGE_DECR, SMALL, 9), 0, 0, 9, 101},
    };
    PLAY(engine, lines);
    finish_engine(&engine);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_cas, test_compares, test_absent, test_never_absent};
    return run_tests("change", tests, COUNT_OF(tests));
}

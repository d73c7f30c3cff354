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

/* The unique of the record with these values, in the order of both(). */
static uint64_t
unique_of(uint64_t small, uint64_t large)
{
    const uint32_t serial[] = {11, 10};
    const uint64_t value[] = {large, small};
    return record_cas(serial, value, 2);
}

static struct change
both_if(enum change_op op, uint64_t small, uint64_t large, uint64_t unique)
{
    struct change change = both(op, small, large);
    change.compares = op != CHANGE_CAS;
    change.cas = unique;
    return change;
}

/* Of several columns: the whole record changes, or nothing. */
START_TEST(test_cas_of_record)
{
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
    uint64_t none = unique_of(0, 100), some = unique_of(5, 7);
    const struct line lines[] = {
        {both_if(CHANGE_CAS, 5, 7, 0), ERR_EXISTS, 0, 0, 100},
        {both_if(CHANGE_CAS, 5, 7, 1), ERR_EXISTS, 0, 0, 100},
        {both_if(CHANGE_CAS, 256, 7, none), ERR_OVER_MAX, 0, 0, 100},
        {both_if(CHANGE_CAS, 5, 7, none), 0, 0, 5, 7},
        {both_if(CHANGE_CAS, 9, 9, none), ERR_EXISTS, 0, 5, 7},
        {one(CHANGE_INCR, SMALL, 1), 0, 0, 6, 7},
        {both_if(CHANGE_CAS, 9, 9, some), ERR_EXISTS, 0, 6, 7},
        {both_if(CHANGE_DELETE, 0, 0, some), ERR_EXISTS, 0, 6, 7},
        {one(CHANGE_DECR, SMALL, 1), 0, 0, 5, 7},
        {both_if(CHANGE_INCR, 1, 1, some), 0, 0, 6, 8},
        {both_if(CHANGE_ADD, 1, 1, unique_of(6, 8)), ERR_NOT_STORED, 0, 6, 8},
        {both_if(CHANGE_DELETE, 0, 0, unique_of(6, 8)), 0, 0, 0, 100},
        {both_if(CHANGE_CAS, 0, 100, none), 0, 0, 0, 100},
    };
    PLAY(engine, lines);
    def.absent_is_miss = true;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    const struct line miss[] = {
        {both_if(CHANGE_CAS, 5, 7, none), ERR_NOT_FOUND, 0, 0, 100},
        {one(CHANGE_SET, LARGE, 7), 0, 0, 0, 7},
        {both_if(CHANGE_CAS, 5, 8, none), ERR_EXISTS, 0, 0, 7},
        {both_if(CHANGE_CAS, 5, 8, unique_of(0, 7)), 0, 0, 5, 8},
    };
    PLAY(engine, miss);
    finish_engine(&engine);
}
END_TEST

static struct change
keeping(struct change change, unsigned kept)
{
    change.kept = (uint16_t)kept;
    return change;
}

/* A column that is kept is compared, and stays; of a delete it goes, and is not
 * compared. */
START_TEST(test_kept)
{
    enum { SMALL_ONE = 2, LARGE_ONE = 1 }; /* as both_if has them */
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
    uint64_t none = unique_of(0, 100), some = unique_of(9, 7);
    const struct line lines[] = {
        {keeping(both_if(CHANGE_CAS, 0, 7, none), SMALL_ONE), 0, 0, 0, 7},
        {one(CHANGE_SET, SMALL, 9), 0, 0, 9, 7},
        {keeping(both_if(CHANGE_CAS, 0, 8, unique_of(0, 7)), SMALL_ONE),
            ERR_EXISTS, 0, 9, 7},
        {keeping(both_if(CHANGE_CAS, 5, 0, some), LARGE_ONE), 0, 0, 5, 7},
        {keeping(both_if(CHANGE_CAS, 0, 8, unique_of(5, 7)), SMALL_ONE), 0, 0,
            5, 8},
        {keeping(both_if(CHANGE_ADD, 0, 3, unique_of(5, 8)), SMALL_ONE),
            ERR_NOT_STORED, 0, 5, 8},
        {keeping(both_if(CHANGE_INCR, 1, 1, unique_of(5, 8)), LARGE_ONE), 0, 0,
            6, 9},
        {keeping(both_if(CHANGE_DELETE, 0, 0, unique_of(6, 9)), LARGE_ONE),
            ERR_EXISTS, 0, 6, 9},
        {keeping(both_if(CHANGE_DELETE, 0, 0, 7), LARGE_ONE), 0, 0, 0, 100},
    };
    PLAY(engine, lines);
    finish_engine(&engine);
}
END_TEST

/* Whatever one bit of one value or serial is changed, or a column comes or
 * goes, the unique is another one. */
START_TEST(test_record_unique)
{
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint64_t value[SCHEMA_COLUMNS_MAX];
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        serial[i] = i + 2;
        value[i] = 0;
    }
    for (uint64_t only = 0; only < 10; only++) {
        ck_assert_uint_eq(record_cas(serial, &only, 1), only + 1);
    }
    for (unsigned n = 2; n <= SCHEMA_COLUMNS_MAX; n++) {
        uint64_t unique = record_cas(serial, value, n);
        ck_assert_uint_ne(unique, 0);
        ck_assert_uint_le(unique, INT64_MAX);
        ck_assert_uint_ne(unique, record_cas(serial, value, n - 1));
        for (unsigned i = 0; i < n; i++) {
            for (unsigned bit = 0; bit < 64; bit++) {
                value[i] ^= UINT64_C(1) << bit;
                ck_assert_uint_ne(unique, record_cas(serial, value, n));
                value[i] ^= UINT64_C(1) << bit;
                serial[i] ^= UINT32_C(1) << bit % 32;
                ck_assert_uint_ne(unique, record_cas(serial, value, n));
                serial[i] ^= UINT32_C(1) << bit % 32;
            }
        }
        ck_assert_uint_eq(unique, record_cas(serial, value, n));
        value[n - 1] = n; /* so that the order of two counts, too */
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_cas, test_compares, test_absent,
        test_never_absent, test_cas_of_record, test_kept, test_record_unique};
    return run_tests("change", tests, COUNT_OF(tests));
}

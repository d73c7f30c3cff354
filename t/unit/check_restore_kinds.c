/* SPDX-License-Identifier: BSD-3-Clause */
/* schema/restore of marks and lists: counters come back in any order, a source
 * that is missing is seen in the end, and what no edit could have made is
 * refused, by itself or with all others. */
#include "schema/restore.h"

#include "unit/kinds_help.h"

static int
restore(struct schema **schema, const struct schema_counter *counter)
{
    struct schema *next = NULL;
    int err = schema_restore(*schema, counter, 20, &next);
    if (err == 0) {
        schema_destroy(schema);
        *schema = next;
    }
    return err;
}

/* In any order of counters; it is whole only with the last one. */
START_TEST(test_it_is_restored)
{
    struct schema *old = full_schema();
    for (unsigned first = 0; first < 3; first++) {
        for (unsigned step = 1; step < 3; step++) {
            struct schema *made = schema_create();
            bool has_user = false;
            for (unsigned i = 0; i < 3; i++) {
                unsigned slot = (first + i * step) % 3;
                has_user = has_user || slot == 2;
                ck_assert_int_eq(
                    restore(&made, schema_counter_at(old, slot)), 0);
                ck_assert_int_eq(
                    schema_check(made), has_user && i < 2 ? ERR_CORRUPT : 0);
            }
            for (unsigned slot = 0; slot < 3; slot++) {
                ck_assert_mem_eq(schema_counter_at(old, slot),
                    schema_counter_at(made, slot),
                    sizeof(struct schema_counter));
            }
            ck_assert(found(made, "unat").is_unread);
            schema_destroy(&made);
        }
    }
    schema_destroy(&old);
}
END_TEST

/* What has no source any more is found. */
START_TEST(test_a_source_that_goes_is_missed)
{
    struct schema *schema = full_schema();
    struct schema *next;
    ck_assert_int_eq(schema_restore_drop(schema, 1, 20, &next), 0);
    ck_assert_int_eq(schema_check(next), ERR_CORRUPT);
    schema_destroy(&next);
    ck_assert_int_eq(schema_restore_drop(schema, 3, 20, &next), 0);
    ck_assert_int_eq(schema_check(next), ERR_CORRUPT);
    schema_destroy(&next);
    ck_assert_int_eq(schema_restore_drop(schema, 5, 20, &next), 0);
    ck_assert_int_eq(schema_check(next), 0);
    schema_destroy(&next);
    schema_destroy(&schema);
}
END_TEST

enum { SEEN_AT = 1, DOT_AT, FEED_AT }; /* columns of user */

/* What no number has. */
static bool
spoil_number(struct schema_counter *user, unsigned how)
{
    struct schema_column *number = &user->column[0];
    switch (how) {
    case 0:
        number->unread = (struct schema_name){3, "una"};
        return true;
    case 1:
        number->unmarked_is_none = true;
        return true;
    case 2:
        number->forget = 1;
        return true;
    case 3:
        number->source.serial = 2;
        return true;
    case 4:
        number->source.is_fixed = true;
        return true;
    case 5:
        number->source.id = 1;
        return true;
    case 6:
        user->cold_is_never = user->cold_is_quietest = true;
        return true;
    case 7:
        user->cold_is_never = true;
        user->cold_after = 1;
        return true;
    default:
        return false;
    }
}

/* What no mark has. */
static bool
spoil_mark(struct schema_counter *user, unsigned how)
{
    struct schema_column *seen = &user->column[SEEN_AT];
    struct schema_column *dot = &user->column[DOT_AT];
    switch (how) {
    case 0:
        seen->unread = (struct schema_name){0};
        return true;
    case 1:
        seen->unread.text[1] = '-';
        return true;
    case 2:
        seen->unread = seen->suffix;
        return true;
    case 3:
        seen->unread = user->key_name;
        return true;
    case 4:
        seen->unread = dot->name;
        return true;
    case 5:
        seen->unread = dot->unread;
        return true;
    case 6:
        seen->unread = (struct schema_name){3, "dot"};
        return true;
    case 7:
        seen->default_value = 1;
        return true;
    case 8:
        seen->source.id = 1;
        return true;
    case 9:
        seen->source.serial = 0;
        return true;
    case 10:
        seen->source.serial = seen->serial;
        return true;
    case 11:
        seen->source.serial = dot->serial;
        return true;
    case 12:
        dot->unmarked_is_none = false;
        return true;
    case 13:
        seen->kind = (enum schema_kind)3;
        return true;
    default:
        return false;
    }
}

/* What no list has. */
static bool
spoil_list(struct schema_counter *user, unsigned how)
{
    struct schema_column *feed = &user->column[FEED_AT];
    switch (how) {
    case 0:
        feed->max_bits = 2;
        return true;
    case 1:
        feed->hint_bits = 1;
        return true;
    case 2:
        feed->default_value = 1;
        return true;
    case 3:
        feed->unread = (struct schema_name){3, "una"};
        return true;
    case 4:
        feed->source.is_fixed = true;
        return true;
    case 5:
        feed->source.serial = 0;
        return true;
    case 6:
        feed->source.serial = feed->serial;
        return true;
    case 7:
        feed->forget = 1;
        return true;
    case 8:
        feed->unmarked_is_none = true;
        return true;
    default:
        return false;
    }
}

/* What only the schema as a whole shows. */
static bool
spoil_source(struct schema_counter *user, unsigned how)
{
    struct schema_column *seen = &user->column[SEEN_AT];
    struct schema_column *dot = &user->column[DOT_AT];
    struct schema_column *feed = &user->column[FEED_AT];
    switch (how) {
    case 0:
        seen->max_bits = 47;
        return true;
    case 1:
        seen->hint_bits = 8;
        return true;
    case 2:
        seen->source.serial = 5; /* a counter */
        return true;
    case 3:
        seen->source.serial = 2; /* another one's */
        return true;
    case 4:
        dot->source.serial = 7; /* a mark */
        return true;
    case 5:
        dot->source.serial = 1;
        return true;
    case 6:
        dot->max_bits = 41;
        return true;
    case 7:
        feed->source.serial = 6; /* it may get cold */
        return true;
    case 8:
        feed->source.serial = 7;
        return true;
    case 9:
        feed->source.serial = 3;
        return true;
    default:
        return false;
    }
}

typedef bool spoil_fn(struct schema_counter *user, unsigned how);

/* Each way in which fn spoils a counter is found: by itself, or only with all
 * others. */
static void
check_spoilt(spoil_fn *fn, bool is_alone, unsigned n_ways)
{
    struct schema *schema = full_schema();
    struct schema_counter user = *counter_of(schema, "user");
    unsigned how;
    for (how = 0; fn(&user, how); how++) {
        struct schema *next = NULL;
        int err = schema_restore(schema, &user, 20, &next);
        ck_assert_msg(err == (is_alone ? ERR_CORRUPT : 0), "way %u", how);
        if (!is_alone) {
            ck_assert_msg(schema_check(next) == ERR_CORRUPT, "way %u", how);
        }
        schema_destroy(&next);
        user = *counter_of(schema, "user");
    }
    ck_assert_uint_eq(how, n_ways);
    schema_destroy(&schema);
}

START_TEST(test_what_no_edit_makes_is_refused)
{
    check_spoilt(spoil_number, true, 8);
    check_spoilt(spoil_mark, true, 14);
    check_spoilt(spoil_list, true, 9);
    check_spoilt(spoil_source, false, 10);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_it_is_restored,
        test_a_source_that_goes_is_missed, test_what_no_edit_makes_is_refused};
    return run_tests("restore_kinds", test, COUNT_OF(test));
}

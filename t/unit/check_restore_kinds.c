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
    case 8:
        number->counts = 2;
        return true;
    case 9:
        number->pairs = 9;
        return true;
    case 10:
        user->members_of = 3;
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
        seen->kind = (enum schema_kind)4;
        return true;
    case 14:
        seen->counts = 6;
        return true;
    case 15:
        seen->member_bits = 33;
        return true;
    case 16:
        seen->value_bits = 1;
        return true;
    case 17:
        seen->pairs = 9;
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
    case 9:
        feed->value_bits = 1;
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
    check_spoilt(spoil_number, true, 11);
    check_spoilt(spoil_mark, true, 18);
    check_spoilt(spoil_list, true, 10);
    check_spoilt(spoil_source, false, 10);
}
END_TEST

/* ---- members ---- */

enum { SCORE_AT = 1, LIKED_AT, SHARED_AT }; /* columns of weibo */

/* weibo, whose members are in slots 1 and 3, and other in 2. */
static struct schema *
members_schema(void)
{
    static const char *const lines[] = {
        "add counter weibo cold=never absent=miss",                  /* 1 */
        "add column weibo wid primarykey", "add column weibo likes", /* 2 */
        "add column weibo score default=7",                          /* 3 */
        "add column weibo liked members=exact counts=likes",     /* 4, 5, 6 */
        "add counter other", "add column other oid primarykey",  /* 7 */
        "add column weibo shared members=exact max=8 member=48", /* 8, 9, 10 */
        "add column other n hint=8 max=8"};                      /* 11 */
    struct schema *schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&schema, lines[i]);
    }
    return schema;
}

static void
expect_equal(const struct schema *a, const struct schema *b)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *one = schema_counter_at(a, slot);
        const struct schema_counter *two = schema_counter_at(b, slot);
        ck_assert_int_eq(one == NULL, two == NULL);
        if (one != NULL) {
            ck_assert_mem_eq(one, two, sizeof *one);
        }
    }
}

/* The counters of pairs come of themselves: in what is made anew, and where a
 * counter is replaced. */
START_TEST(test_members_are_restored)
{
    struct schema *old = members_schema();
    for (unsigned turn = 0; turn < 2; turn++) {
        struct schema *made = schema_create();
        ck_assert_int_eq(
            restore(&made, counter_of(old, turn == 0 ? "weibo" : "other")), 0);
        ck_assert_int_eq(
            restore(&made, counter_of(old, turn == 0 ? "other" : "weibo")), 0);
        ck_assert_int_eq(schema_check(made), 0);
        expect_equal(made, old);
        ck_assert_int_eq(restore(&made, counter_of(old, "weibo")), 0);
        expect_equal(made, old);
        /* they are not stored, so they are not restored or dropped */
        struct schema *next = NULL;
        ck_assert_int_eq(
            restore(&made, schema_counter_at(old, 1)), ERR_CORRUPT);
        ck_assert_int_eq(schema_restore_drop(made, 5, 20, &next), ERR_CORRUPT);
        ck_assert_int_eq(schema_restore_drop(made, 1, 20, &next), 0);
        for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
            ck_assert_int_eq(schema_counter_at(next, slot) != NULL, slot == 2);
        }
        schema_destroy(&next);
        schema_destroy(&made);
    }
    schema_destroy(&old);
}
END_TEST

/* A column that is gone from its counter takes its pairs along. */
START_TEST(test_a_column_of_members_goes)
{
    struct schema *schema = members_schema();
    struct schema_counter weibo = *counter_of(schema, "weibo");
    weibo.column[LIKED_AT] = weibo.column[SHARED_AT];
    weibo.n_columns = 3;
    ck_assert_int_eq(restore(&schema, &weibo), 0);
    ck_assert_int_eq(schema_check(schema), 0);
    ck_assert_ptr_null(schema_counter_at(schema, 1));
    ck_assert_uint_eq(schema_counter_at(schema, 3)->members_of, 8);
    /* and two may change places */
    struct schema *other = members_schema();
    weibo = *counter_of(other, "weibo");
    weibo.column[LIKED_AT].pairs = 3;
    weibo.column[SHARED_AT].pairs = 1;
    ck_assert_int_eq(restore(&other, &weibo), 0);
    ck_assert_uint_eq(schema_counter_at(other, 3)->members_of, 4);
    ck_assert_uint_eq(schema_counter_at(other, 1)->members_of, 8);
    schema_destroy(&other);
    schema_destroy(&schema);
}
END_TEST

/* What no column of members has, or no counter that has one. */
static bool
spoil_members(struct schema_counter *weibo, unsigned how)
{
    struct schema_column *liked = &weibo->column[LIKED_AT];
    struct schema_column *shared = &weibo->column[SHARED_AT];
    switch (how) {
    case 0:
        liked->max_bits = 32;
        return true;
    case 1:
        liked->hint_bits = 15;
        return true;
    case 2:
        liked->default_value = 1;
        return true;
    case 3:
        liked->member_bits = 15;
        liked->max_bits = 49;
        return true;
    case 4:
        liked->member_bits = 49;
        liked->max_bits = 15;
        liked->hint_bits = 15;
        return true;
    case 5:
        liked->value_bits = 0;
        return true;
    case 6:
        liked->value_bits = 9;
        return true;
    case 7:
        liked->counts = 3; /* its default is 7 */
        return true;
    case 8:
        liked->counts = 1;
        return true;
    case 9:
        liked->counts = 4;
        return true;
    case 10:
        liked->counts = 11; /* another counter's */
        return true;
    case 11:
        shared->counts = 2; /* liked counts there */
        return true;
    case 12:
        shared->counts = 4; /* no number */
        return true;
    default:
        return false;
    }
}

/* Slots and serials that are others', and what only other kinds have. */
static bool
spoil_places(struct schema_counter *weibo, unsigned how)
{
    struct schema_column *liked = &weibo->column[LIKED_AT];
    struct schema_column *shared = &weibo->column[SHARED_AT];
    switch (how) {
    case 0:
        liked->pairs = 0; /* weibo's own */
        return true;
    case 1:
        liked->pairs = 2; /* of other */
        return true;
    case 2:
        liked->pairs = 3; /* of shared */
        return true;
    case 3:
        liked->unread = (struct schema_name){3, "una"};
        return true;
    case 4:
        liked->source.serial = 2;
        return true;
    case 5:
        liked->serial = 7; /* those of its pairs are others' */
        return true;
    case 6:
        shared->serial = 5;
        return true;
    case 7:
        shared->serial = 6;
        return true;
    case 8:
        shared->serial = 19; /* the last is 20 */
        return true;
    case 9:
        shared->serial = UINT32_MAX;
        return true;
    case 10:
        weibo->serial = 6;
        return true;
    case 11:
        weibo->column[SCORE_AT].serial = 9;
        return true;
    default:
        return false;
    }
}

static void
check_spoilt_members(spoil_fn *fn, unsigned n_ways)
{
    struct schema *schema = members_schema();
    struct schema_counter weibo = *counter_of(schema, "weibo");
    unsigned how;
    for (how = 0; fn(&weibo, how); how++) {
        struct schema *next = NULL;
        int err = schema_restore(schema, &weibo, 20, &next);
        ck_assert_msg(err == ERR_CORRUPT, "way %u", how);
        weibo = *counter_of(schema, "weibo");
    }
    ck_assert_uint_eq(how, n_ways);
    schema_destroy(&schema);
}

START_TEST(test_what_no_edit_makes_of_members)
{
    check_spoilt_members(spoil_members, 13);
    check_spoilt_members(spoil_places, 12);
}
END_TEST

/* Others keep away from the slots and the serials of pairs, and nothing is
 * about them. */
START_TEST(test_others_keep_away_from_pairs)
{
    struct schema *schema = members_schema();
    struct schema_counter other = *counter_of(schema, "other");
    for (unsigned serial = 5; serial <= 6; serial++) {
        other.column[0].serial = serial;
        ck_assert_int_eq(restore(&schema, &other), ERR_CORRUPT);
    }
    other = *counter_of(schema, "other");
    other.serial = 12;
    other.column[0].serial = 13;
    other.name.text[0] = 'O';
    other.column[0].name.text[0] = 'N';
    other.slot = 3;
    ck_assert_int_eq(restore(&schema, &other), ERR_CORRUPT);
    other.slot = 4;
    ck_assert_int_eq(restore(&schema, &other), 0);
    other.column[0].kind = SCHEMA_MARK;
    other.column[0].unread = (struct schema_name){3, "una"};
    other.column[0].source =
        (struct schema_source){.serial = 10, .is_fixed = true, .id = 1};
    ck_assert_int_eq(restore(&schema, &other), 0);
    ck_assert_int_eq(schema_check(schema), ERR_CORRUPT);
    schema_destroy(&schema);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_it_is_restored,
        test_a_source_that_goes_is_missed, test_what_no_edit_makes_is_refused,
        test_members_are_restored, test_a_column_of_members_goes,
        test_what_no_edit_makes_of_members, test_others_keep_away_from_pairs};
    return run_tests("restore_kinds", test, COUNT_OF(test));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of members=about in the schema: each refusal by its error, what is
 * made, what may be changed of it, what nobody can mark, lines that load again,
 * what no file may have. */
#include "schema/schema.h"

#include "schema/print.h"
#include "schema/restore.h"
#include "unit/kinds_help.h"

#include <stdio.h>

#define MEGA (UINT64_C(1) << 20)

/* weibo with two numbers, and whom it was shown to. */
static struct schema *
about_schema(void)
{
    static const char *const lines[] = {"add counter weibo",
        "add column weibo wid primarykey", "add column weibo views", /* 2 */
        "add column weibo score default=7",                          /* 3 */
        "add column weibo seen members=about memory=8g counts=views"};
    struct schema *schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&schema, lines[i]);
    }
    return schema;
}

static const struct parsed parsed[] = {
    {0, "add column u m members=about memory=16m"},
    {0,
        "add column u m flags=9 suffix=s counts=n member=16 max=1 error=1000 "
        "memory=64t members=about"},
    {0, "add column u m members=about memory=16777216 error=20"},
    {0, "add column u m members=about memory=16384k"},
    {ERR_ABOUT_MEMORY, "add column u m members=about"},
    {ERR_ABOUT_MEMORY, "add column u m members=about memory="},
    {ERR_ABOUT_MEMORY, "add column u m members=about memory=g"},
    {ERR_ABOUT_MEMORY, "add column u m members=about memory=15m"},
    {ERR_ABOUT_MEMORY, "add column u m members=about memory=16777215"},
    {ERR_ABOUT_MEMORY, "add column u m members=about memory=65t"},
    {ERR_ABOUT_MEMORY, "add column u m members=about memory=16G"},
    {ERR_ABOUT_MEMORY, "add column u m members=about memory=1.5g"},
    {ERR_ABOUT_MEMORY,
        "add column u m members=about memory=18446744073709551615t"},
    {ERR_ABOUT_ERROR, "add column u m members=about memory=16m error=19"},
    {ERR_ABOUT_ERROR, "add column u m members=about memory=16m error=1001"},
    {ERR_ABOUT_ERROR, "add column u m members=about memory=16m error=x"},
    {ERR_ABOUT_MAX, "add column u m members=about memory=16m max=2"},
    {ERR_ABOUT_MAX, "add column u m members=about memory=16m max=0"},
    {ERR_MEMBERS_BITS, "add column u m members=about memory=16m member=15"},
    {ERR_MEMBERS_OPTIONS, "add column u m members=about memory=16m hint=1"},
    {ERR_MEMBERS_OPTIONS,
        "add column u m members=about memory=16m marks=n unread=un"},
    {ERR_BAD_OPTION, "add column u m members=about memory=16m memory=16m"},
    {ERR_NOT_ABOUT, "add column u m members=exact memory=16m"},
    {ERR_NOT_ABOUT, "add column u m members=exact error=100"},
    {ERR_NOT_ABOUT, "add column u m memory=16m"},
    {ERR_NOT_ABOUT, "add column u m marks=n unread=un error=100"},
    {ERR_LIST_OPTIONS, "add column u m follows=n memory=16m"},
    {ERR_KEY_WIDTH, "add column u k primarykey memory=16m"},
    {0, "change column u m memory=16m"},
    {ERR_BAD_NAME, "change column u"},
    {ERR_BAD_NAME, "change column u 9 memory=16m"},
    {ERR_CHANGE_OPTIONS, "change column u m"},
    {ERR_ABOUT_MEMORY, "change column u m memory=15m"},
    {ERR_BAD_OPTION, "change column u m memory"},
    {ERR_CHANGE_OPTIONS, "change column u m error=100"},
    {ERR_CHANGE_OPTIONS, "change column u m memory=16m error=100"},
};

START_TEST(test_what_words_are_refused)
{
    expect_parsed(parsed, COUNT_OF(parsed));
}
END_TEST

/* It has neither pairs nor a number. */
START_TEST(test_what_is_made)
{
    struct schema *schema = about_schema();
    const struct schema_counter *weibo = counter_of(schema, "weibo");
    const struct schema_column *seen = found(schema, "seen").column;
    ck_assert_int_eq(seen->kind, SCHEMA_ABOUT);
    ck_assert_uint_eq(seen->serial, 4);
    ck_assert_uint_eq(schema_last_serial(schema), 4);
    ck_assert_uint_eq(seen->counts, 2);
    ck_assert_uint_eq(seen->member_bits, 33);
    ck_assert_uint_eq(seen->value_bits, 1);
    ck_assert_uint_eq(seen->max_bits, 1);
    ck_assert_uint_eq(seen->hint_bits, 0);
    ck_assert_uint_eq(seen->error, 100);
    ck_assert_uint_eq(seen->memory, 8192 * MEGA);
    ck_assert_uint_eq(seen->pairs, 0);
    ck_assert(!schema_is_in_record(seen));
    ck_assert_ptr_null(schema_counter_at(schema, 1));
    ck_assert_ptr_eq(
        schema_counted_by(weibo, found(schema, "views").column), seen);
    ck_assert_int_eq(schema_check(schema), 0);
    apply(&schema, "drop column weibo seen seen");
    apply(&schema, "drop column weibo views views");
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_what_edits_are_refused)
{
    static const struct {
        int err;
        const char *line;
    } cases[] = {
        {ERR_ABOUT_SOURCE, "add column weibo m marks=seen unread=un"},
        {ERR_ABOUT_SOURCE, "add column weibo m marks=1.seen unread=un"},
        {ERR_ABOUT_SOURCE, "add column weibo m follows=seen"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=views"},
        {ERR_BAD_COUNTS,
            "add column weibo m members=about memory=16m counts=views"},
        {ERR_BAD_COUNTS,
            "add column weibo m members=about memory=16m counts=score"},
        {ERR_BAD_COUNTS,
            "add column weibo m members=about memory=16m counts=seen"},
        {ERR_IN_USE, "drop column weibo views views"},
        {ERR_NAME_TAKEN, "add column weibo seen members=about memory=16m"},
        {ERR_NO_COUNTER, "change column nobody seen memory=16m"},
        {ERR_NO_COLUMN, "change column weibo nothing memory=16m"},
        {ERR_NOT_ABOUT, "change column weibo views memory=16m"},
    };
    struct schema *schema = about_schema();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t version = schema_version(schema);
        int err = try(&schema, cases[i].line);
        ck_assert_msg(err == cases[i].err, "%s: \"%s\" instead of \"%s\"",
            cases[i].line, err_text(err), err_text(cases[i].err));
        ck_assert_uint_eq(schema_version(schema), version);
    }
    schema_destroy(&schema);
}
END_TEST

static bool
is_same(const struct schema *schema, const char *line)
{
    struct schema_edit edit = edit_of(line);
    return schema_has_same(schema, &edit);
}

/* Of a column that is there only its memory is another, and the line that made
 * it is no other one for that. */
START_TEST(test_its_memory_is_changed)
{
    static const char made[] =
        "add column weibo seen members=about memory=8g counts=views";
    struct schema *schema = about_schema();
    struct schema_column was = *found(schema, "seen").column;
    ck_assert(is_same(schema, made));
    ck_assert(is_same(schema, "change column weibo seen memory=8192m"));
    ck_assert(!is_same(schema, "change column weibo seen memory=9g"));
    ck_assert(!is_same(schema, "change column weibo views memory=8g"));
    ck_assert(!is_same(schema, "change column weibo nothing memory=8g"));
    apply(&schema, "change column weibo seen memory=9g");
    was.memory = 9216 * MEGA;
    ck_assert_mem_eq(found(schema, "seen").column, &was, sizeof was);
    ck_assert(is_same(schema, made));
    ck_assert(!is_same(schema,
        "add column weibo seen members=about memory=9g error=99 "
        "counts=views"));
    ck_assert(
        !is_same(schema, "add column weibo seen members=about memory=9g"));
    ck_assert(
        !is_same(schema, "add column weibo seen members=exact counts=views"));
    schema_destroy(&schema);
}
END_TEST

static const char printed[] =
    "add counter weibo\r\n"
    "add column weibo wid hint=64 max=64 default=0 primarykey\r\n"
    "add column weibo views hint=16 max=32 default=0\r\n"
    "add column weibo score hint=16 max=32 default=7\r\n"
    "add column weibo seen members=about member=33 counts=views memory=8g "
    "error=100\r\n"
    "add column weibo met members=about member=48 memory=16777217 error=20 "
    "suffix=m flags=3\r\n"
    "add column weibo far members=about member=16 memory=1025m error=1000"
    "\r\n";

/* The lines, and all of them made again by themselves. */
START_TEST(test_print)
{
    struct schema *schema = about_schema(), *again = schema_create();
    struct buf text = {0}, second = {0};
    apply(&schema,
        "add column weibo met members=about memory=16777217 member=48 "
        "error=20 flags=3 suffix=m");
    apply(&schema,
        "add column weibo far members=about memory=1025m member=16 "
        "error=1000");
    ck_assert_int_eq(schema_print_all(schema, &text), 0);
    ck_assert_uint_eq(text.len, strlen(printed));
    ck_assert_mem_eq(text.data, printed, text.len);
    for (const char *at = printed; *at != '\0';) {
        char line[128];
        size_t len = strcspn(at, "\r");
        snprintf(line, sizeof line, "%.*s", (int)len, at);
        apply(&again, line);
        at += len + 2;
    }
    ck_assert_int_eq(schema_print_all(again, &second), 0);
    ck_assert_uint_eq(second.len, text.len);
    ck_assert_mem_eq(second.data, text.data, text.len);
    buf_fini(&text);
    buf_fini(&second);
    schema_destroy(&schema);
    schema_destroy(&again);
}
END_TEST

/* What no column of members=about has; false behind the last one. */
static bool
spoil(struct schema_column *seen, unsigned how)
{
    switch (how) {
    case 0:
        seen->max_bits = 2;
        return true;
    case 1:
        seen->hint_bits = 1;
        return true;
    case 2:
        seen->value_bits = 2;
        return true;
    case 3:
        seen->member_bits = 49;
        return true;
    case 4:
        seen->pairs = 7;
        return true;
    case 5:
        seen->error = SCHEMA_ERROR_MIN - 1;
        return true;
    case 6:
        seen->error = SCHEMA_ERROR_MAX + 1;
        return true;
    case 7:
        seen->memory = SCHEMA_MEMORY_MIN - 1;
        return true;
    case 8:
        seen->memory = SCHEMA_MEMORY_MAX + 1;
        return true;
    case 9:
        seen->counts = 3; /* its default is not 0 */
        return true;
    case 10:
        seen->kind = SCHEMA_MEMBERS;
        return true;
    case 11:
        seen->source.serial = 2;
        return true;
    default:
        return false;
    }
}

START_TEST(test_it_is_restored)
{
    struct schema *schema = about_schema(), *made = NULL, *empty;
    struct schema_counter weibo = *counter_of(schema, "weibo");
    empty = schema_create();
    ck_assert_int_eq(schema_restore(empty, &weibo, 4, &made), 0);
    ck_assert_int_eq(schema_check(made), 0);
    ck_assert_mem_eq(counter_of(made, "weibo"), &weibo, sizeof weibo);
    schema_destroy(&made);
    for (unsigned how = 0;; how++) {
        weibo = *counter_of(schema, "weibo");
        if (!spoil(&weibo.column[2], how)) {
            break;
        }
        int err = schema_restore(empty, &weibo, 4, &made);
        ck_assert_msg(err == ERR_CORRUPT, "%u", how);
    }
    schema_destroy(&empty);
    schema_destroy(&schema);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_what_words_are_refused,
        test_what_is_made, test_what_edits_are_refused,
        test_its_memory_is_changed, test_print, test_it_is_restored};
    return run_tests("schema_about", tests, COUNT_OF(tests));
}

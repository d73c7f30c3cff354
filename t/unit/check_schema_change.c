/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of counters and columns: what words are refused, what state, what
 * stays as it was, and the change that makes what is there what a line says. */
#include "schema/schema.h"

#include "schema/print.h"
#include "schema/restore.h"
#include "unit/kinds_help.h"

#include <string.h>

static const struct parsed parsed[] = {
    {0, "change column u n name=m suffix=s max=64 hint=64 flags=4294967295"},
    {0, "change column u n hint=0"},
    {ERR_BAD_NAME, "change column u"},
    {ERR_BAD_NAME, "change column 9 n max=8"},
    {ERR_CHANGE_OPTIONS, "change column u n"},
    {ERR_CHANGE_OPTIONS, "change column u n primarykey"},
    {ERR_CHANGE_OPTIONS, "change column u n max=8 marks=m"},
    {ERR_CHANGE_OPTIONS, "change column u n member=20"},
    {0, "change column u n default=18446744073709551615"},
    {ERR_BAD_DEFAULT, "change column u n default=18446744073709551616"},
    {ERR_BAD_DEFAULT, "change column u n default="},
    {ERR_BAD_OPTION, "change column u n name=a name=b"},
    {ERR_BAD_OPTION, "change column u n what=8"},
    {ERR_BAD_NAME, "change column u n name="},
    {ERR_BAD_NAME, "change column u n name=7up"},
    {ERR_RESERVED_NAME, "change column u n name=column"},
    {ERR_RESERVED_NAME, "change column u n suffix=noreply"},
    {ERR_BAD_MAX, "change column u n max=0"},
    {ERR_BAD_MAX, "change column u n max=65"},
    {ERR_BAD_HINT, "change column u n hint=65"},
    {ERR_BAD_FLAGS, "change column u n flags=4294967296"},
    {ERR_BAD_OPTION, "add column u n name=m"},
    {0, "change counter u absent=miss overflow=error exptime=ignore"},
    {0, "change counter u maxjump=0 cold=oldest cold_after=99999999999"},
    {ERR_BAD_NAME, "change counter 9 maxjump=1"},
    {ERR_BAD_OPTION, "change counter u"},
    {ERR_BAD_OPTION, "change counter u largest=7"},
    {ERR_BAD_OPTION, "change counter u maxjump=1 largest=7"},
    {ERR_BAD_OPTION, "change counter u maxjump=1 maxjump=1"},
    {ERR_BAD_OPTION, "change counter u cold=oldest cold=never"},
    {ERR_BAD_OPTION, "change counter u name=m"},
};

START_TEST(test_what_words_are_refused)
{
    expect_parsed(parsed, COUNT_OF(parsed));
}
END_TEST

START_TEST(test_what_edits_are_refused)
{
    static const struct {
        int err;
        const char *line;
    } cases[] = {
        {ERR_NO_COUNTER, "change column nobody n max=64"},
        {ERR_NO_COUNTER, "change counter nobody maxjump=1"},
        {ERR_NO_COUNTER, "change counter at_num maxjump=1"},
        {ERR_NO_COLUMN, "change column user nothing max=64"},
        {ERR_NO_COLUMN, "change column user at max=64"},
        {ERR_NO_COLUMN, "change column user dot max=64"},
        {ERR_CHANGE_KEY, "change column user uid hint=9"},
        {ERR_NOT_ABOUT, "change column author posts memory=16m"},
        {ERR_CHANGE_DOWN, "change column author posts max=31"},
        {ERR_BAD_HINT, "change column author posts hint=33"},
        {ERR_BAD_HINT, "change column author posts max=40 hint=41"},
        /* marks have the widths of these, and have no others */
        {ERR_CHANGE_WIDTH, "change column user at_num max=64"},
        {ERR_CHANGE_WIDTH, "change column board dot hint=8"},
        {ERR_CHANGE_WIDTH, "change column user at_seen max=64"},
        {ERR_CHANGE_WIDTH, "change column user feed hint=0"},
        /* something is about these, or behind them */
        {ERR_CHANGE_FIXED, "change column author posts default=1"},
        {ERR_CHANGE_FIXED, "change column board dot default=1"},
        {ERR_CHANGE_FIXED, "change column user at_num default=1"},
        {ERR_CHANGE_FIXED, "change column user at_seen default=1"},
        {ERR_CHANGE_KEY, "change column user uid default=1"},
        {ERR_NAME_TAKEN, "change column author posts name=user"},
        {ERR_NAME_TAKEN, "change column author posts name=aid"},
        {ERR_NAME_TAKEN, "change column author posts name=at"},
        {ERR_NAME_TAKEN, "change column author posts suffix=unat"},
        {ERR_NAME_TAKEN, "change column author posts suffix=aid"},
        {ERR_NAME_TAKEN, "change column user at_seen name=unat"},
        {ERR_CHANGE_COLD, "change counter user cold=never"},
        {ERR_COLD_AFTER, "change counter author cold_after=1"},
        {ERR_IN_USE, "change counter author cold=oldest"},
    };
    struct schema *schema = full_schema();
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

/* Does it, and looks that nothing else has changed, that it is the same then,
 * and that a restored counter is it. */
static void
change(struct schema **schema, const char *line, const char *counter,
    const struct schema_counter *want)
{
    struct schema *restored = NULL;
    ck_assert(!is_same(*schema, line));
    apply(schema, line);
    ck_assert_mem_eq(counter_of(*schema, counter), want, sizeof *want);
    ck_assert_int_eq(schema_check(*schema), 0);
    ck_assert_int_eq(schema_restore(*schema, counter_of(*schema, counter),
                         schema_last_serial(*schema), &restored),
        0);
    ck_assert_int_eq(schema_check(restored), 0);
    schema_destroy(&restored);
}

static void
name(struct schema_name *out, const char *text)
{
    *out = (struct schema_name){.len = (uint8_t)strlen(text)};
    memcpy(out->text, text, out->len);
}

START_TEST(test_names)
{
    struct schema *schema = full_schema();
    struct schema_counter want = *counter_of(schema, "user");
    struct schema_target target;
    ck_assert_uint_eq(want.column[0].serial, 6);
    name(&want.column[0].name, "ats");
    change(&schema, "change column user at_num name=ats", "user", &want);
    ck_assert(!schema_find(schema, "at_num", 6, &target));
    ck_assert_uint_eq(found(schema, "ats").column->serial, 6);
    /* the mark still marks it */
    ck_assert(schema_source(schema, counter_of(schema, "user"),
        found(schema, "at_seen").column, &target));
    ck_assert_uint_eq(target.column->serial, 6);
    /* both at once, each the other's; then one that says both */
    name(&want.column[0].name, "at");
    name(&want.column[0].suffix, "ats");
    change(
        &schema, "change column user ats suffix=ats name=at", "user", &want);
    name(&want.column[0].name, "ats");
    want.column[0].suffix = (struct schema_name){0};
    change(&schema, "change column user at name=ats", "user", &want);
    ck_assert(is_same(schema, "change column user ats suffix=ats"));
    name(&want.column[0].suffix, "at_num");
    change(&schema, "change column user ats suffix=at_num", "user", &want);
    apply(&schema, "add column user at max=8"); /* free again */
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_widths_and_flags)
{
    struct schema *schema = full_schema();
    struct schema_counter want = *counter_of(schema, "author");
    want.column[0].max_bits = 64;
    change(&schema, "change column author posts max=64", "author", &want);
    want.column[0].hint_bits = 40;
    want.column[0].flags = 9;
    change(&schema, "change column author posts hint=40 flags=9", "author",
        &want);
    want = *counter_of(schema, "user");
    want.column[1].flags = 0;
    change(&schema, "change column user at_seen flags=0", "user", &want);
    schema_destroy(&schema);
}
END_TEST

/* A column that gets another default is another one, as are those behind it:
 * serials grow from column to column. */
START_TEST(test_defaults)
{
    struct schema *schema = full_schema();
    struct schema_counter want;
    uint32_t last;
    apply(&schema, "add counter tag");
    apply(&schema, "add column tag tid primarykey");
    apply(&schema, "add column tag a");
    apply(&schema, "add column tag b max=8 default=9");
    apply(&schema, "add column tag c");
    want = *counter_of(schema, "tag");
    last = schema_last_serial(schema);
    ck_assert(is_same(schema, "change column tag b default=9"));
    ck_assert_int_eq(
        try(&schema, "change column tag b default=256"), ERR_BAD_DEFAULT);
    want.column[1].default_value = 255;
    want.column[1].serial = last + 1;
    want.column[2].serial = last + 2;
    change(&schema, "change column tag b default=255", "tag", &want);
    ck_assert_uint_eq(schema_last_serial(schema), last + 2);
    name(&want.column[2].name, "e");
    want.column[2].default_value = UINT64_C(1) << 32;
    want.column[2].max_bits = 33;
    want.column[2].serial = last + 3;
    change(&schema, "change column tag c name=e max=33 default=4294967296",
        "tag", &want);
    /* the index has it under its new serial */
    ck_assert_uint_eq(found(schema, "e").column->serial, last + 3);
    apply(&schema, "add column tag seen marks=a unread=una");
    ck_assert_int_eq(
        try(&schema, "change column tag e default=0"), ERR_CHANGE_FIXED);
    apply(&schema, "drop column tag seen seen");
    apply(&schema, "change column tag e default=0");
    schema_destroy(&schema);
}
END_TEST

/* Pairs have the options of the counter that has their column. */
START_TEST(test_options)
{
    struct schema *schema = full_schema();
    struct schema_counter want = *counter_of(schema, "board");
    want.absent_is_miss = want.overflow_is_error = true;
    want.exptime_is_ignored = want.cold_is_quietest = true;
    want.max_jump = 7;
    want.cold_after = 8;
    change(&schema,
        "change counter board absent=miss overflow=error exptime=ignore "
        "maxjump=7 cold=quietest cold_after=8",
        "board", &want);
    want.overflow_is_error = want.cold_is_quietest = false;
    want.max_jump = 0;
    change(&schema,
        "change counter board overflow=saturate cold=oldest maxjump=0",
        "board", &want);
    apply(&schema, "add column board who members=exact");
    want = *counter_of(schema, "board");
    ck_assert_int_eq(try(&schema, "change counter board absent=default"),
        ERR_CHANGE_MEMBERS);
    want.exptime_is_ignored = false;
    want.cold_is_quietest = true;
    change(&schema, "change counter board exptime=refuse cold=quietest",
        "board", &want);
    const struct schema_counter *pairs =
        schema_pairs(schema, found(schema, "who").column);
    ck_assert(!pairs->exptime_is_ignored && pairs->cold_is_quietest);
    ck_assert_uint_eq(pairs->members_of, found(schema, "who").column->serial);
    apply(&schema, "drop column user feed feed");
    apply(&schema, "change counter author cold=oldest cold_after=5");
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_what_change_there_is)
{
    static const struct {
        const char *add, *change; /* NULL: there is none */
    } cases[] = {
        {"add counter board", NULL},
        {"add counter board cold=quietest cold_after=3",
            "change counter board cold=quietest cold_after=3"},
        {"add counter board cold=never", "change counter board cold=never"},
        {"add counter author absent=miss",
            "change counter author absent=miss cold=oldest"},
        {"add counter nobody maxjump=3", NULL},
        {"add column board bid hint=9 primarykey",
            "change column board bid hint=9"},
        {"add column board other primarykey", NULL},
        {"add column board dot hint=8 max=41 default=3 flags=2",
            "change column board dot hint=8 max=41 suffix=dot flags=2"},
        {"add column board dot hint=7 max=40 default=4 suffix=d",
            "change column board dot default=4"},
        {"add column board dot hint=8 max=40 default=4 suffix=d",
            "change column board dot hint=8 default=4"},
        {"add column board new", NULL},
        {"add column user feed suffix=f flags=7 follows=posts",
            "change column user feed flags=7"},
        {"add column user feed suffix=f flags=7 follows=dot", NULL},
    };
    struct schema *schema = full_schema();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct schema_edit add = edit_of(cases[i].add), change;
        struct buf line = {0};
        bool is_one = schema_change_for(schema, &add, &change);
        ck_assert_msg(is_one == (cases[i].change != NULL), "%s", cases[i].add);
        if (is_one) {
            schema_print_change(&change, &line);
            buf_add(&line, "", 1);
            ck_assert_str_eq(line.data, cases[i].change);
        }
        buf_fini(&line);
    }
    schema_destroy(&schema);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_what_words_are_refused,
        test_what_edits_are_refused, test_names, test_widths_and_flags,
        test_defaults, test_options, test_what_change_there_is};
    return run_tests("schema_change", tests, COUNT_OF(tests));
}

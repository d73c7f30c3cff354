/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters whose ids are names in the schema: each refusal by its error, lines
 * that load again, what no file may have. */
#include "schema/schema.h"

#include "schema/print.h"
#include "schema/restore.h"
#include "unit/kinds_help.h"

static struct schema *
names_schema(void)
{
    static const char *const lines[] = {"add counter post cold=never",
        "add column post pid primarykey", "add column post n",
        "add counter site cold=quietest absent=miss",
        "add column site url primarykey=text", "add column site hits",
        "add column site met members=exact counts=hits",
        "add column site seen marks=hits unread=new",
        "add column site at marks=1.n unread=away"};
    struct schema *schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&schema, lines[i]);
    }
    return schema;
}

static const struct parsed parsed[] = {
    {0, "add column u m primarykey=text"},
    {ERR_BAD_OPTION, "add column u m primarykey="},
    {ERR_BAD_OPTION, "add column u m primarykey=Text"},
    {ERR_BAD_OPTION, "add column u m primarykey=text primarykey"},
    {ERR_NAME_OPTIONS, "add column u m primarykey=text hint=64"},
    {ERR_NAME_OPTIONS, "add column u m primarykey=text max=64"},
    {ERR_NAME_OPTIONS, "add column u m default=0 primarykey=text"},
    {ERR_KEY_WIDTH, "add column u m primarykey=text suffix=s"},
    {ERR_KEY_WIDTH, "add column u m primarykey=text flags=1"},
};

START_TEST(test_what_words_are_refused)
{
    expect_parsed(parsed, COUNT_OF(parsed));
}
END_TEST

static const struct parsed refused[] = {
    {ERR_TWO_KEYS, "add column site url2 primarykey=text"},
    {ERR_NAMES_ORDER, "change counter site maxjump=9"},
    {ERR_NAMES_ORDER, "change counter site cold_after=9"},
    {ERR_NAMES_KIND, "add column site of follows=n"},
    {ERR_NAMES_KIND, "add column site m members=about memory=16m"},
    {ERR_NAMES_KIND, "add column site m marks=met unread=um"},
    {ERR_NAMES_SOURCE, "add column site m marks=1.hits unread=um"},
    {ERR_NAMES_SOURCE, "add column post m marks=1.hits unread=um"},
    {ERR_NAMES_SOURCE, "add column post m marks=1.met unread=um"},
};

START_TEST(test_what_edits_are_refused)
{
    struct schema *schema = names_schema();
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        int err = try(&schema, refused[i].line);
        ck_assert_msg(
            err == refused[i].err, "%s: %s", refused[i].line, err_text(err));
    }
    ck_assert(schema_has_text(schema));
    ck_assert_int_eq(try(&schema, "change counter site maxjump=0"), 0);
    apply(&schema, "add counter early maxjump=5");
    ck_assert_int_eq(
        try(&schema, "add column early e primarykey=text"), ERR_NAMES_ORDER);
    apply(&schema, "change counter early maxjump=0 cold_after=5");
    ck_assert_int_eq(
        try(&schema, "add column early e primarykey=text"), ERR_NAMES_ORDER);
    apply(&schema, "change counter early cold_after=0");
    apply(&schema, "add column early e primarykey=text");
    apply(&schema, "drop counter early early");
    apply(&schema, "drop counter site site");
    ck_assert(!schema_has_text(schema));
    schema_destroy(&schema);
}
END_TEST

/* The same key again is no edit, one of numbers is another. */
START_TEST(test_same_again)
{
    struct schema *schema = names_schema();
    struct schema_edit edit = edit_of("add column site url primarykey=text");
    struct schema_edit change;
    ck_assert(schema_has_same(schema, &edit));
    ck_assert(!schema_change_for(schema, &edit, &change));
    edit = edit_of("add column site url primarykey");
    ck_assert(!schema_has_same(schema, &edit));
    ck_assert(schema_change_for(schema, &edit, &change));
    ck_assert_int_eq(schema_apply(schema, &change, &(struct schema *){NULL}),
        ERR_CHANGE_KEY);
    edit = edit_of("add column post pid primarykey=text");
    ck_assert(!schema_has_same(schema, &edit));
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_print)
{
    struct schema *schema = names_schema();
    struct buf out = {0};
    ck_assert_int_eq(
        schema_print(schema, schema_counter(schema, "site", 4), &out), 0);
    buf_add(&out, "", 1);
    ck_assert_ptr_nonnull(
        strstr(out.data, "\nadd column site url primarykey=text\r\n"));
    buf_fini(&out);
    schema_destroy(&schema);
}
END_TEST

/* What a file has of such a counter is looked at. */
START_TEST(test_restore)
{
    struct schema *schema = names_schema();
    const struct schema_counter *site = schema_counter(schema, "site", 4);
    for (unsigned i = 0; i < 5; i++) {
        struct schema *empty = schema_create();
        struct schema *out = NULL;
        struct schema_counter counter = *site;
        counter.max_jump = i == 1;
        counter.cold_after = i == 2;
        counter.key_name.len = i == 3 ? 0 : counter.key_name.len;
        if (i == 4) {
            counter.column[0].kind = SCHEMA_ABOUT;
        }
        int err = schema_restore(empty, &counter, 100, &out);
        ck_assert_int_eq(err, i == 0 ? 0 : ERR_CORRUPT);
        ck_assert(err != 0 || schema_has_text(out));
        schema_destroy(&out);
        schema_destroy(&empty);
    }
    schema_destroy(&schema);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_what_words_are_refused,
        test_what_edits_are_refused, test_same_again, test_print,
        test_restore};
    return run_tests("schema_names", tests, COUNT_OF(tests));
}

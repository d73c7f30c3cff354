/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks and lists in the schema: each refusal by its error, what is found under
 * which name, what cannot be dropped, what is the same, lines that load again
 * in every order of counters, and counters with cold=never. How they are
 * restored: check_restore_kinds.c. */
#include "schema/schema.h"

#include "lib/fault_alloc.h"
#include "schema/print.h"
#include "schema/restore.h"
#include "unit/kinds_help.h"

#include <stdio.h>

/* ---- what words make ---- */

static const struct parsed parsed[] = {
    {0, "add column u m marks=n unread=un"},
    {0, "add column u m unread=un suffix=s flags=1 marks=n unmarked=all"},
    {0, "add column u m marks=0.n unread=un unmarked=none forget=0"},
    {0,
        "add column u m marks=18446744073709551615.n unread=un "
        "forget=18446744073709551615 unmarked=none"},
    {0, "add column u m follows=n flags=1 suffix=s"},
    {ERR_BAD_SOURCE, "add column u m marks= unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=. unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=1. unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=.n unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=1 unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=01.n unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=-1.n unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=18446744073709551616.n unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=1.n.n unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=u.n unread=un"},
    {ERR_BAD_SOURCE, "add column u m marks=n*n unread=un"},
    {ERR_MARK_NEEDS, "add column u m marks=n"},
    {ERR_MARK_NEEDS, "add column u m marks=n unread=un forget=1"},
    {ERR_MARK_NEEDS, "add column u m marks=n unread=un forget=0"},
    {ERR_MARK_NEEDS, "add column u m marks=n unread=un forget=1 unmarked=all"},
    {ERR_MARK_WIDTH, "add column u m marks=n unread=un max=32"},
    {ERR_MARK_WIDTH, "add column u m marks=n unread=un hint=16"},
    {ERR_MARK_WIDTH, "add column u m marks=n unread=un default=0"},
    {ERR_NOT_A_MARK, "add column u m unread=un"},
    {ERR_NOT_A_MARK, "add column u m unmarked=none max=3"},
    {ERR_NOT_A_MARK, "add column u m forget=7"},
    {ERR_BAD_NAME, "add column u m marks=n unread="},
    {ERR_BAD_NAME, "add column u m marks=n unread=1.n"},
    {ERR_RESERVED_NAME, "add column u m marks=n unread=counter"},
    {ERR_BAD_OPTION, "add column u m marks=n unread=un unread=un"},
    {ERR_BAD_OPTION, "add column u m marks=n marks=n unread=un"},
    {ERR_BAD_OPTION, "add column u m marks unread=un"},
    {ERR_BAD_OPTION, "add column u m marks=n unread"},
    {ERR_BAD_OPTION, "add column u m marks=n unread=un unmarked=some"},
    {ERR_BAD_OPTION, "add column u m marks=n unread=un unmarked="},
    {ERR_BAD_OPTION,
        "add column u m marks=n unread=un unmarked=none forget=-1"},
    {ERR_BAD_OPTION,
        "add column u m marks=n unread=un unmarked=none "
        "forget=18446744073709551616"},
    {ERR_BAD_FLAGS, "add column u m marks=n unread=un flags=x"},
    {ERR_BAD_NAME, "add column u m marks=n unread=un suffix=7"},
    {ERR_LIST_OPTIONS, "add column u m follows=n max=1"},
    {ERR_LIST_OPTIONS, "add column u m follows=n hint=0"},
    {ERR_LIST_OPTIONS, "add column u m follows=n default=0"},
    {ERR_LIST_OPTIONS, "add column u m follows=n unread=un"},
    {ERR_LIST_OPTIONS, "add column u m follows=n unmarked=none"},
    {ERR_LIST_OPTIONS, "add column u m follows=n forget=1"},
    {ERR_LIST_OPTIONS, "add column u m follows=n marks=n unread=un"},
    {ERR_NO_FOLLOWED, "add column u m follows="},
    {ERR_NO_FOLLOWED, "add column u m follows=1.n"},
    {ERR_BAD_OPTION, "add column u m follows"},
    {ERR_BAD_FLAGS, "add column u m follows=n flags=4294967296"},
    {ERR_RESERVED_NAME, "add column u m follows=n suffix=columns"},
    {ERR_KEY_WIDTH, "add column u k primarykey marks=n"},
    {ERR_KEY_WIDTH, "add column u k primarykey unread=un"},
    {ERR_KEY_WIDTH, "add column u k primarykey unmarked=none"},
    {ERR_KEY_WIDTH, "add column u k primarykey forget=1"},
    {ERR_KEY_WIDTH, "add column u k primarykey follows=n"},
    /* a word that is not known yet */
    {ERR_BAD_OPTION, "add column u k primarykey=word"},
    {0, "add counter u cold=never"},
    {0, "add counter u cold=never cold_after=0 maxjump=7"},
    {ERR_COLD_AFTER, "add counter u cold=never cold_after=1"},
    {ERR_COLD_AFTER, "add counter u cold_after=1 cold=never"},
    {ERR_BAD_OPTION, "add counter u cold=never cold=never"},
    {ERR_BAD_OPTION, "add counter u cold=never cold=oldest"},
    {ERR_BAD_OPTION, "add counter u cold=quietest cold=never"},
    {ERR_BAD_OPTION, "add counter u cold=Never"},
};

START_TEST(test_what_words_are_refused)
{
    expect_parsed(parsed, COUNT_OF(parsed));
}
END_TEST

/* ---- what an edit makes ---- */

START_TEST(test_what_is_made)
{
    struct schema *schema = full_schema();
    struct schema_target source;
    struct schema_target at = found(schema, "atseen");
    const struct schema_column *mark = at.column;
    ck_assert_int_eq(mark->kind, SCHEMA_MARK);
    ck_assert_uint_eq(mark->source.serial, 6);
    ck_assert(!mark->source.is_fixed && mark->source.id == 0);
    ck_assert_uint_eq(mark->max_bits, 48);
    ck_assert_uint_eq(mark->hint_bits, 9);
    ck_assert_uint_eq(mark->default_value, 0);
    ck_assert_uint_eq(mark->flags, 5);
    ck_assert(!mark->unmarked_is_none && mark->forget == 0);
    ck_assert_uint_eq(mark->serial, 7);
    ck_assert_uint_eq(mark->slot, 1);
    ck_assert(schema_source(schema, at.counter, mark, &source));
    ck_assert_str_eq(source.column->name.text, "at_num");
    mark = found(schema, "dot_seen").column;
    ck_assert(mark->source.is_fixed && mark->source.id == 1);
    ck_assert_uint_eq(mark->source.serial, 2);
    ck_assert_uint_eq(mark->max_bits, 40);
    ck_assert_uint_eq(mark->hint_bits, 7);
    ck_assert_uint_eq(mark->default_value, 0);
    ck_assert(mark->unmarked_is_none && mark->forget == 2592000);
    ck_assert(schema_source(schema, at.counter, mark, &source));
    ck_assert_str_eq(source.counter->name.text, "board");
    const struct schema_column *list = found(schema, "f").column;
    ck_assert_int_eq(list->kind, SCHEMA_FOLLOWS);
    ck_assert_uint_eq(list->source.serial, 4);
    ck_assert(!list->source.is_fixed);
    ck_assert_uint_eq(list->max_bits, 1);
    ck_assert_uint_eq(list->hint_bits, 0);
    ck_assert_uint_eq(list->flags, 6);
    ck_assert_uint_eq(list->slot, 3);
    ck_assert_int_eq(schema_check(schema), 0);
    schema_destroy(&schema);
}
END_TEST

static void
expect_source(
    const struct schema *schema, const char *name, const char *wanted)
{
    struct schema_target source;
    struct schema_target it = found(schema, name);
    ck_assert(schema_source(schema, it.counter, it.column, &source));
    ck_assert_ptr_eq(source.counter, found(schema, wanted).counter);
    ck_assert_ptr_eq(source.column, found(schema, wanted).column);
    /* and at once */
    const struct schema_source *noted = &it.column->source;
    ck_assert_uint_eq(noted->counter, source.counter->slot);
    ck_assert_ptr_eq(schema_source_in(source.counter, noted), source.column);
}

/* Columns move up where one before them is dropped. */
START_TEST(test_a_source_is_found_where_it_moves)
{
    static const char *const edits[] = {"add counter last",
        "add column last lid primarykey", "add column last lx",
        "add column last ly", "add counter own cold=never",
        "add column own oid primarykey", "add column own ox",
        "add column own oy", "add column own omark marks=oy unread=uno",
        "add column own lmark marks=1.ly unread=unl",
        "add column own list follows=oy", "drop column last lx lx",
        "drop column own ox ox", "add column last lx", "add counter more",
        "drop counter more more"};
    struct schema *schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(edits); i++) {
        apply(&schema, edits[i]);
        if (i >= 10) {
            expect_source(schema, "omark", "oy");
            expect_source(schema, "lmark", "ly");
            expect_source(schema, "list", "oy");
        }
    }
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_what_is_unread_has_a_name)
{
    struct schema *schema = full_schema();
    struct schema_target target = found(schema, "unat");
    ck_assert(target.is_unread);
    ck_assert_str_eq(target.column->name.text, "at_seen");
    ck_assert_str_eq(target.counter->name.text, "user");
    target = found(schema, "undot");
    ck_assert(target.is_unread);
    ck_assert_str_eq(target.column->name.text, "dot_seen");
    ck_assert(!found(schema, "at_seen").is_unread);
    ck_assert(!found(schema, "atseen").is_unread);
    ck_assert(!found(schema, "user").is_unread);
    ck_assert_ptr_null(
        schema_counter_column(counter_of(schema, "user"), "unat", 4));
    ck_assert_ptr_null(schema_counter(schema, "unat", 4));
    apply(&schema, "drop column user at_seen at_seen");
    ck_assert(!schema_find(schema, "unat", 4, &target));
    ck_assert(!schema_find(schema, "atseen", 6, &target));
    apply(&schema, "add column user unat");
    ck_assert(!found(schema, "unat").is_unread);
    schema_destroy(&schema);
}
END_TEST

/* A source by its name or its suffix, of this counter or any other's. */
START_TEST(test_a_source_by_its_suffix)
{
    struct schema *schema = some_schema();
    apply(&schema, "add column user a marks=at unread=una");
    apply(&schema, "add column user b marks=7.d unread=unb");
    apply(&schema, "add column user c marks=9.at unread=unc");
    ck_assert_uint_eq(found(schema, "a").column->source.serial, 6);
    ck_assert_uint_eq(found(schema, "b").column->source.serial, 2);
    ck_assert_uint_eq(found(schema, "c").column->source.serial, 6);
    ck_assert(found(schema, "c").column->source.is_fixed);
    apply(&schema, "add column author own follows=posts");
    ck_assert_uint_eq(found(schema, "own").column->source.serial, 4);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_what_edits_are_refused)
{
    static const struct {
        int err;
        const char *line;
    } cases[] = {
        {ERR_NO_COUNTER, "add column nobody m marks=at_num unread=un"},
        {ERR_NO_KEY, "add column bare m marks=1.dot unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=nothing unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=dot unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=m unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=uid unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=user unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=unat unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=1.nothing unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=1.board unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=1.unat unread=un"},
        {ERR_BAD_SOURCE, "add column user m marks=1.uid unread=un"},
        {ERR_SOURCE_KIND, "add column user m marks=at_seen unread=un"},
        {ERR_SOURCE_KIND, "add column user m marks=feed unread=un"},
        {ERR_SOURCE_KIND, "add column user m marks=1.at_seen unread=un"},
        {ERR_SOURCE_KIND, "add column user m marks=1.f unread=un"},
        {ERR_NO_FOLLOWED, "add column user m follows=nothing"},
        {ERR_NO_FOLLOWED, "add column user m follows=author"},
        {ERR_NO_FOLLOWED, "add column user m follows=aid"},
        {ERR_NO_FOLLOWED, "add column user m follows=unat"},
        {ERR_SOURCE_KIND, "add column user m follows=at_seen"},
        {ERR_SOURCE_KIND, "add column user m follows=feed"},
        {ERR_FOLLOW_COLD, "add column user m follows=dot"},
        {ERR_FOLLOW_COLD, "add column user m follows=at_num"},
        {ERR_NAME_TAKEN, "add column user m marks=at_num unread=unat"},
        {ERR_NAME_TAKEN, "add column user m marks=at_num unread=at_num"},
        {ERR_NAME_TAKEN, "add column user m marks=at_num unread=d"},
        {ERR_NAME_TAKEN, "add column user m marks=at_num unread=board"},
        {ERR_NAME_TAKEN, "add column user m marks=at_num unread=uid"},
        {ERR_NAME_TAKEN, "add column user m marks=at_num unread=m"},
        {ERR_NAME_TAKEN, "add column user m marks=at_num unread=s suffix=s"},
        {ERR_NAME_TAKEN, "add column user unat"},
        {ERR_NAME_TAKEN, "add column board n suffix=undot"},
        {ERR_NAME_TAKEN, "add counter unat"},
        {ERR_IN_USE, "drop column user at_num at_num"},
        {ERR_IN_USE, "drop column board dot dot"},
        {ERR_IN_USE, "drop counter board board"},
        {ERR_IN_USE, "drop column author posts posts"},
        {ERR_IN_USE, "drop counter author author"},
        {ERR_NO_COLUMN, "drop column user unat unat"},
    };
    struct schema *schema = full_schema();
    apply(&schema, "add counter bare");
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

START_TEST(test_what_is_about_others_goes_first)
{
    struct schema *schema = full_schema();
    apply(&schema, "drop column user dot_seen dot_seen");
    apply(&schema, "drop column board dot dot");
    apply(&schema, "drop column user feed feed");
    apply(&schema, "drop counter author author");
    /* its mark is about its own column, and goes with it */
    apply(&schema, "drop counter user user");
    apply(&schema, "drop counter board board");
    ck_assert(schema_is_empty(schema));
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_16_columns_are_the_limit_for_marks_too)
{
    struct schema *schema = full_schema();
    char line[80];
    for (unsigned i = 4; i < SCHEMA_COLUMNS_MAX; i++) {
        snprintf(line, sizeof line,
            "add column user m%u suffix=s%u marks=at_num unread=u%u", i, i, i);
        apply(&schema, line);
    }
    ck_assert_int_eq(
        try(&schema, "add column user more marks=at unread=unmore"),
        ERR_TOO_MANY_COLUMNS);
    ck_assert_int_eq(try(&schema, "add column user more follows=posts"),
        ERR_TOO_MANY_COLUMNS);
    ck_assert(found(schema, "u15").is_unread);
    schema_destroy(&schema);
}
END_TEST

static bool
is_same(const struct schema *schema, const char *line)
{
    struct schema_edit edit = edit_of(line);
    return schema_has_same(schema, &edit);
}

START_TEST(test_what_is_the_same)
{
    static const char *const other[] = {
        "add column user at_seen suffix=atseen flags=5 marks=1.at_num "
        "unread=unat",
        "add column user at_seen suffix=atseen flags=5 marks=at_num unread=un",
        "add column user at_seen suffix=atseen flags=6 marks=at_num "
        "unread=unat",
        "add column user at_seen suffix=as flags=5 marks=at_num unread=unat",
        "add column user at_seen suffix=atseen flags=5 marks=nobody "
        "unread=unat",
        "add column user at_seen suffix=atseen flags=5 marks=other "
        "unread=unat",
        "add column user at_seen suffix=atseen flags=5 marks=at_num "
        "unread=unat unmarked=none",
        "add column user at_seen suffix=atseen flags=5 hint=9 max=48",
        "add column user dot_seen marks=2.dot unread=undot unmarked=none "
        "forget=2592000",
        "add column user dot_seen marks=1.dot unread=undot unmarked=none",
        "add column user dot_seen marks=1.dot unread=undot",
        "add column user feed suffix=f flags=6 hint=0 max=1",
        "add column user feed suffix=f flags=6 follows=more_posts",
        "add column user feed suffix=f flags=6 follows=nobody",
        "add column user at_num suffix=at marks=other unread=un",
        "add counter author", "add counter author cold=quietest",
        "add counter board cold=never"};
    struct schema *schema = full_schema();
    apply(&schema, "add column user other hint=9 max=48");
    apply(&schema, "add column author more_posts");
    for (size_t i = 0; i < COUNT_OF(other); i++) {
        ck_assert_msg(!is_same(schema, other[i]), "%s", other[i]);
    }
    ck_assert(is_same(schema, SEEN));
    ck_assert(is_same(schema, SEEN " unmarked=all"));
    ck_assert(is_same(schema,
        "add column user at_seen suffix=atseen flags=5 marks=at unread=unat"));
    ck_assert(is_same(schema, DOT));
    ck_assert(is_same(schema, FEED));
    ck_assert(is_same(schema, "add counter author cold=never"));
    schema_destroy(&schema);
}
END_TEST

/* ---- lines that load again ---- */

static void
check_text(const struct buf *text, const char *expected)
{
    ck_assert_msg(text->len == strlen(expected) &&
            memcmp(text->data, expected, text->len) == 0,
        "%.*s", (int)text->len, text->data);
}

START_TEST(test_print)
{
    struct schema *schema = full_schema();
    struct buf text = {0};
    ck_assert_int_eq(
        schema_print(schema, counter_of(schema, "user"), &text), 0);
    check_text(&text,
        "add counter user\r\n"
        "add column user uid hint=64 max=64 default=0 primarykey\r\n"
        "add column user at_num hint=9 max=48 default=0 suffix=at\r\n"
        "add column user at_seen suffix=atseen flags=5 marks=at_num "
        "unread=unat\r\n"
        "add column user dot_seen marks=1.dot unread=undot unmarked=none "
        "forget=2592000\r\n"
        "add column user feed suffix=f flags=6 follows=posts\r\n");
    buf_clear(&text);
    ck_assert_int_eq(
        schema_print(schema, counter_of(schema, "author"), &text), 0);
    check_text(&text,
        "add counter author cold=never\r\n"
        "add column author aid hint=64 max=64 default=0 primarykey\r\n"
        "add column author posts hint=16 max=32 default=0\r\n");
    buf_fini(&text);
    schema_destroy(&schema);
}
END_TEST

/* Two schemas that mean the same, though serials are others. */
static void
check_loads_again(const struct schema *schema)
{
    struct schema *again = schema_create();
    struct buf text = {0}, text_again = {0};
    ck_assert_int_eq(schema_print_all(schema, &text), 0);
    for (size_t at = 0; at < text.len;) {
        const char *start = text.data + at;
        char *end = memchr(start, '\r', text.len - at);
        ck_assert_ptr_nonnull(end);
        char line[300];
        ck_assert_uint_lt((size_t)(end - start), sizeof line);
        memcpy(line, start, (size_t)(end - start));
        line[end - start] = '\0';
        apply(&again, line);
        ck_assert(is_same(schema, line));
        at += (size_t)(end - start) + 2;
    }
    ck_assert_int_eq(schema_print_all(again, &text_again), 0);
    ck_assert_uint_eq(text.len, text_again.len);
    ck_assert_mem_eq(text.data, text_again.data, text.len);
    /* the columns of each stand in their order */
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *a = schema_counter_at(schema, slot);
        const struct schema_counter *b = a == NULL
            ? NULL
            : schema_counter(again, a->name.text, a->name.len);
        ck_assert_int_eq(a == NULL, b == NULL);
        for (unsigned i = 0; a != NULL && i < a->n_columns; i++) {
            ck_assert_str_eq(a->column[i].name.text, b->column[i].name.text);
        }
    }
    buf_fini(&text);
    buf_fini(&text_again);
    schema_destroy(&again);
}

START_TEST(test_print_all_by_slot_where_that_loads)
{
    struct schema *schema = full_schema();
    struct buf text = {0}, one = {0};
    ck_assert_int_eq(schema_print_all(schema, &text), 0);
    for (unsigned slot = 0; slot < 3; slot++) {
        ck_assert_int_eq(
            schema_print(schema, schema_counter_at(schema, slot), &one), 0);
    }
    ck_assert_uint_eq(text.len, one.len);
    ck_assert_mem_eq(text.data, one.data, one.len);
    check_loads_again(schema);
    buf_fini(&text);
    buf_fini(&one);
    schema_destroy(&schema);
}
END_TEST

/* Each is about the other, and one about a counter behind it. */
START_TEST(test_print_all_where_two_are_about_each_other)
{
    static const char *const lines[] = {"add counter a cold=never",
        "add column a ka primarykey", "add counter b cold=never",
        "add column b kb primarykey", "add column b b1",
        "add column a a1 marks=5.b1 unread=ua1", "add column a a2",
        "add column b b2 follows=a2", "add column b b3",
        "add column a a3 marks=7.b3 unread=ua3", "add column a a4"};
    struct schema *schema = schema_create();
    struct buf text = {0};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&schema, lines[i]);
    }
    ck_assert_int_eq(schema_print_all(schema, &text), 0);
    check_text(&text,
        "add counter a cold=never\r\n"
        "add column a ka hint=64 max=64 default=0 primarykey\r\n"
        "add counter b cold=never\r\n"
        "add column b kb hint=64 max=64 default=0 primarykey\r\n"
        "add column b b1 hint=16 max=32 default=0\r\n"
        "add column a a1 marks=5.b1 unread=ua1\r\n"
        "add column a a2 hint=16 max=32 default=0\r\n"
        "add column b b2 follows=a2\r\n"
        "add column b b3 hint=16 max=32 default=0\r\n"
        "add column a a3 marks=7.b3 unread=ua3\r\n"
        "add column a a4 hint=16 max=32 default=0\r\n");
    check_loads_again(schema);
    buf_fini(&text);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_print_all_without_memory)
{
    struct schema *schema = full_schema();
    struct buf text = {0};
    ck_assert_ptr_null(buf_reserve(&text, SIZE_MAX));
    ck_assert_int_eq(schema_print_all(schema, &text), ERR_NO_MEMORY);
    buf_fini(&text);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_memory_that_is_out)
{
    struct fault_alloc fault;
    fault_alloc_init(&fault);
    struct schema *schema = schema_create_from(&fault.alloc);
    struct schema *next = NULL;
    apply(&schema, "add counter c");
    apply(&schema, "add column c k primarykey");
    apply(&schema, "add column c n");
    struct schema_edit edit = edit_of("add column c m marks=n unread=u");
    fault_alloc_arm(&fault, 1);
    ck_assert_int_eq(schema_apply(schema, &edit, &next), ERR_NO_MEMORY);
    ck_assert_ptr_null(next);
    apply(&schema, "add column c m marks=n unread=u");
    schema_destroy(&schema);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_what_words_are_refused, test_what_is_made,
        test_a_source_is_found_where_it_moves, test_what_is_unread_has_a_name,
        test_a_source_by_its_suffix, test_what_edits_are_refused,
        test_what_is_about_others_goes_first,
        test_16_columns_are_the_limit_for_marks_too, test_what_is_the_same,
        test_print, test_print_all_by_slot_where_that_loads,
        test_print_all_where_two_are_about_each_other,
        test_print_all_without_memory, test_memory_that_is_out};
    return run_tests("schema_kinds", test, COUNT_OF(test));
}

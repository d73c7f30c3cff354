/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of members in the schema, and the counters of pairs that come and go
 * with them: each refusal by its error, what is made, what nobody finds, what
 * cannot be dropped, lines that load again. How they are restored:
 * check_restore_kinds.c. */
#include "schema/schema.h"

#include "lib/fault_alloc.h"
#include "schema/print.h"
#include "schema/restore.h"
#include "unit/kinds_help.h"

#include <stdio.h>

/* weibo with two numbers and its likes, user that gets cold. */
static struct schema *
members_schema(void)
{
    static const char *const lines[] = {
        "add counter weibo cold=never absent=miss overflow=error maxjump=9",
        "add column weibo wid primarykey",            /* 1 is weibo */
        "add column weibo attitude_num suffix=cntan", /* 2 */
        "add column weibo score default=7",           /* 3 */
        "add column weibo liked members=exact counts=attitude_num", /* 4 */
        "add counter user", "add column user uid primarykey",       /* 7 */
        "add column user posts"};                                   /* 8 */
    struct schema *schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&schema, lines[i]);
    }
    return schema;
}

static const struct parsed parsed[] = {
    {0, "add column u m members=exact"},
    {0,
        "add column u m flags=4294967295 suffix=s counts=n member=16 max=8 "
        "members=exact"},
    {0, "add column u m members=exact member=48 max=1"},
    {ERR_BAD_OPTION, "add column u m members=some"},
    {ERR_BAD_OPTION, "add column u m members="},
    {ERR_BAD_OPTION, "add column u m members"},
    {ERR_BAD_OPTION, "add column u m members=exact members=exact"},
    {ERR_MEMBERS_MAX, "add column u m members=exact max=0"},
    {ERR_MEMBERS_MAX, "add column u m members=exact max=9"},
    {ERR_MEMBERS_MAX, "add column u m members=exact max=x"},
    {ERR_MEMBERS_BITS, "add column u m members=exact member=15"},
    {ERR_MEMBERS_BITS, "add column u m members=exact member=49"},
    {ERR_MEMBERS_BITS, "add column u m members=exact member="},
    {ERR_BAD_COUNTS, "add column u m members=exact counts="},
    {ERR_BAD_COUNTS, "add column u m members=exact counts=1.n"},
    {ERR_MEMBERS_OPTIONS, "add column u m members=exact hint=1"},
    {ERR_MEMBERS_OPTIONS, "add column u m members=exact default=0"},
    {ERR_MEMBERS_OPTIONS, "add column u m members=exact marks=n unread=un"},
    {ERR_MEMBERS_OPTIONS, "add column u m members=exact unread=un"},
    {ERR_MEMBERS_OPTIONS, "add column u m members=exact unmarked=none"},
    {ERR_MEMBERS_OPTIONS, "add column u m members=exact forget=1"},
    {ERR_MEMBERS_OPTIONS, "add column u m members=exact follows=n"},
    {ERR_BAD_FLAGS, "add column u m members=exact flags=4294967296"},
    {ERR_RESERVED_NAME, "add column u m members=exact suffix=columns"},
    {ERR_NOT_MEMBERS, "add column u m member=40"},
    {ERR_NOT_MEMBERS, "add column u m counts=n"},
    {ERR_NOT_MEMBERS, "add column u m counts=n max=8 suffix=s"},
    {ERR_NOT_MEMBERS, "add column u m marks=n unread=un member=40"},
    {ERR_NOT_MEMBERS, "add column u m marks=n unread=un counts=n"},
    {ERR_LIST_OPTIONS, "add column u m follows=n member=40"},
    {ERR_LIST_OPTIONS, "add column u m follows=n counts=n"},
    {ERR_KEY_WIDTH, "add column u k primarykey members=exact"},
    {ERR_KEY_WIDTH, "add column u k primarykey member=33"},
    {ERR_KEY_WIDTH, "add column u k primarykey counts=n"},
};

START_TEST(test_what_words_are_refused)
{
    expect_parsed(parsed, COUNT_OF(parsed));
}
END_TEST

START_TEST(test_what_is_made)
{
    struct schema *schema = members_schema();
    const struct schema_column *liked = found(schema, "liked").column;
    ck_assert_int_eq(liked->kind, SCHEMA_MEMBERS);
    ck_assert_uint_eq(liked->serial, 4);
    ck_assert_uint_eq(liked->slot, 2);
    ck_assert_uint_eq(liked->counts, 2);
    ck_assert_uint_eq(liked->member_bits, 33);
    ck_assert_uint_eq(liked->value_bits, 1);
    ck_assert_uint_eq(liked->max_bits, 31);
    ck_assert_uint_eq(liked->hint_bits, 16);
    ck_assert_uint_eq(liked->default_value, 0);
    ck_assert_uint_eq(liked->pairs, 1);
    ck_assert_uint_eq(liked->source.serial, 0);
    ck_assert_uint_eq(counter_of(schema, "user")->slot, 2);
    ck_assert_uint_eq(schema_last_serial(schema), 8);
    const struct schema_counter *weibo = counter_of(schema, "weibo");
    ck_assert(schema_is_counted(weibo, found(schema, "cntan").column));
    ck_assert(!schema_is_counted(weibo, found(schema, "score").column));
    ck_assert(!schema_is_counted(weibo, liked));
    apply(&schema, "add column weibo shared members=exact max=8 member=48");
    const struct schema_column *shared = found(schema, "shared").column;
    ck_assert_uint_eq(shared->serial, 9);
    ck_assert_uint_eq(shared->max_bits, 16);
    ck_assert_uint_eq(shared->hint_bits, 16);
    ck_assert_uint_eq(shared->value_bits, 8);
    ck_assert_uint_eq(shared->counts, 0);
    ck_assert_uint_eq(shared->pairs, 3);
    ck_assert_uint_eq(schema_last_serial(schema), 11);
    ck_assert_int_eq(schema_check(schema), 0);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_the_counter_of_pairs)
{
    struct schema *schema = members_schema();
    struct schema_target target;
    const struct schema_counter *weibo = counter_of(schema, "weibo");
    const struct schema_counter *pairs =
        schema_pairs(schema, found(schema, "liked").column);
    ck_assert_ptr_nonnull(pairs);
    ck_assert_ptr_eq(pairs, schema_counter_at(schema, 1));
    ck_assert_str_eq(pairs->name.text, "#4");
    ck_assert_uint_eq(pairs->members_of, 4);
    ck_assert_uint_eq(pairs->serial, 5);
    ck_assert_uint_eq(pairs->slot, 1);
    ck_assert(pairs->absent_is_miss && pairs->overflow_is_error);
    ck_assert(!pairs->exptime_is_ignored && !pairs->cold_is_quietest);
    ck_assert(pairs->cold_is_never);
    ck_assert(pairs->max_jump == 0 && pairs->cold_after == 0);
    ck_assert_uint_eq(pairs->key_name.len, 0);
    ck_assert_uint_eq(pairs->n_columns, 1);
    ck_assert_uint_eq(pairs->column[0].name.len, 0);
    ck_assert_uint_eq(pairs->column[0].serial, 6);
    ck_assert_uint_eq(pairs->column[0].slot, 0);
    ck_assert_uint_eq(pairs->column[0].max_bits, 1);
    ck_assert_uint_eq(pairs->column[0].hint_bits, 1);
    ck_assert_uint_eq(pairs->column[0].default_value, 0);
    ck_assert_int_eq(pairs->column[0].kind, SCHEMA_NUMBER);
    ck_assert_ptr_eq(schema_owner(schema, pairs), weibo);
    ck_assert_ptr_eq(schema_owner(schema, weibo), weibo);
    ck_assert_uint_eq(weibo->members_of, 0);
    /* nobody finds it */
    ck_assert_ptr_null(schema_counter(schema, "#4", 2));
    ck_assert(!schema_find(schema, "#4", 2, &target));
    ck_assert_int_eq(parse("drop counter #4 #4"), ERR_BAD_NAME);
    ck_assert_int_eq(parse("add column #4 n"), ERR_BAD_NAME);
    schema_destroy(&schema);
}
END_TEST

/* A mark has the widths of what it is about: members, not their numbers. */
START_TEST(test_marks_over_members)
{
    struct schema *schema = members_schema();
    static const char *const lines[] = {
        "add column weibo seen marks=liked unread=unl",
        "add column user far marks=1.liked unread=unf unmarked=none forget=9"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&schema, lines[i]);
        ck_assert_int_eq(schema_check(schema), 0);
    }
    const struct schema_column *liked = found(schema, "liked").column;
    const char *const name[] = {"seen", "far"};
    for (size_t i = 0; i < COUNT_OF(name); i++) {
        const struct schema_column *mark = found(schema, name[i]).column;
        ck_assert_int_eq(mark->kind, SCHEMA_MARK);
        ck_assert_uint_eq(mark->source.serial, liked->serial);
        ck_assert_uint_eq(mark->max_bits, liked->member_bits);
        ck_assert_uint_eq(mark->hint_bits, liked->member_bits);
        struct schema_counter owner = *found(schema, name[i]).counter;
        struct schema *other = NULL;
        unsigned at = owner.n_columns - 1U;
        owner.column[at].max_bits = (uint8_t)(liked->member_bits + 1);
        ck_assert_int_eq(schema_restore(schema, &owner, 40, &other), 0);
        ck_assert_int_eq(schema_check(other), ERR_CORRUPT);
        schema_destroy(&other);
        owner.column[at].max_bits = liked->member_bits;
        owner.column[at].hint_bits--;
        ck_assert_int_eq(schema_restore(schema, &owner, 40, &other), 0);
        ck_assert_int_eq(schema_check(other), ERR_CORRUPT);
        schema_destroy(&other);
        owner.column[at].hint_bits++;
        ck_assert_int_eq(schema_restore(schema, &owner, 40, &other), 0);
        ck_assert_int_eq(schema_check(other), 0);
        schema_destroy(&other);
    }
    struct schema_edit drop = edit_of("drop column weibo liked liked");
    struct schema *other = NULL;
    ck_assert_int_eq(schema_apply(schema, &drop, &other), ERR_IN_USE);
    drop = edit_of("drop counter weibo weibo");
    ck_assert_int_eq(schema_apply(schema, &drop, &other), ERR_IN_USE);
    apply(&schema, "drop column user far far");
    apply(&schema, "drop counter weibo weibo"); /* with its own mark */
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_what_edits_are_refused)
{
    static const struct {
        int err;
        const char *line;
    } cases[] = {
        {ERR_BAD_COUNTS, "add column user m members=exact counts=likes"},
        {ERR_NO_COUNTER, "add column nobody m members=exact"},
        {ERR_NO_KEY, "add column bare m members=exact"},
        {ERR_NAME_TAKEN, "add column weibo cntan members=exact"},
        {ERR_NAME_TAKEN, "add column weibo m members=exact suffix=score"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=nothing"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=m"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=wid"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=weibo"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=posts"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=score"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=liked"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=seen"},
        {ERR_BAD_COUNTS, "add column weibo m members=exact counts=cntan"},
        {ERR_SOURCE_KIND, "add column user m follows=liked"},
        {ERR_BAD_SOURCE, "add column user m marks=liked unread=un"},
        {ERR_IN_USE, "drop column weibo attitude_num attitude_num"},
        {ERR_NAME_TAKEN, "add column weibo liked members=exact"},
    };
    struct schema *schema = members_schema();
    apply(&schema, "add counter bare cold=never");
    apply(&schema, "add column weibo seen marks=score unread=unseen");
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

/* The slots of counters of pairs that one schema has and the other has not. */
static void
expect_beside(const struct schema *schema, const struct schema *other,
    unsigned n, unsigned slot)
{
    uint8_t slots[SCHEMA_COLUMNS_MAX];
    ck_assert_uint_eq(schema_pairs_beside(schema, other, slots), n);
    ck_assert(n == 0 || slots[0] == slot);
}

START_TEST(test_pairs_go_with_the_column)
{
    struct schema *schema = members_schema();
    struct schema_edit edit = edit_of("drop column weibo liked liked");
    struct schema *next;
    ck_assert_int_eq(schema_apply(schema, &edit, &next), 0);
    expect_beside(schema, next, 1, 1);
    expect_beside(next, schema, 0, 0);
    schema_destroy(&schema);
    schema = next;
    ck_assert_ptr_null(schema_counter_at(schema, 1));
    ck_assert_uint_eq(schema_last_serial(schema), 8);
    /* the number that was counted in may go by now */
    apply(&schema, "drop column weibo attitude_num attitude_num");
    /* the slot is used again, the serials are not */
    edit = edit_of("add column weibo liked members=exact");
    ck_assert_int_eq(schema_apply(schema, &edit, &next), 0);
    expect_beside(next, schema, 1, 1);
    expect_beside(schema, next, 0, 0);
    schema_destroy(&schema);
    schema = next;
    ck_assert_uint_eq(schema_counter_at(schema, 1)->serial, 10);
    ck_assert_str_eq(schema_counter_at(schema, 1)->name.text, "#9");
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_pairs_go_with_the_counter)
{
    struct schema *schema = members_schema();
    apply(&schema, "add column weibo other members=exact");
    apply(&schema, "drop counter weibo weibo");
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        ck_assert_int_eq(schema_counter_at(schema, slot) != NULL, slot == 2);
    }
    apply(&schema, "drop counter user user");
    ck_assert(schema_is_empty(schema));
    schema_destroy(&schema);
}
END_TEST

/* They are among the 256. */
START_TEST(test_256_counters_are_the_limit)
{
    struct schema *schema = members_schema();
    char line[80];
    for (unsigned i = 3; i < SCHEMA_COUNTERS_MAX - 1; i++) {
        snprintf(line, sizeof line, "add counter c%u", i);
        apply(&schema, line);
    }
    apply(&schema, "add column weibo last members=exact");
    ck_assert_uint_eq(found(schema, "last").column->pairs, 255);
    ck_assert_int_eq(try(&schema, "add column weibo more members=exact"),
        ERR_TOO_MANY_COUNTERS);
    ck_assert_int_eq(try(&schema, "add counter more"), ERR_TOO_MANY_COUNTERS);
    apply(&schema, "drop counter c77 c77");
    apply(&schema, "add column weibo more members=exact");
    ck_assert_uint_eq(found(schema, "more").column->pairs, 77);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_16_columns_are_the_limit)
{
    struct schema *schema = members_schema();
    struct schema *none = schema_create();
    uint8_t slots[SCHEMA_COLUMNS_MAX];
    char line[80];
    apply(&schema, "drop column weibo score score");
    apply(&schema, "drop column weibo liked liked");
    apply(&schema, "drop column weibo attitude_num attitude_num");
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        snprintf(line, sizeof line, "add column weibo m%u members=exact", i);
        apply(&schema, line);
    }
    ck_assert_int_eq(try(&schema, "add column weibo more members=exact"),
        ERR_TOO_MANY_COLUMNS);
    ck_assert_uint_eq(
        schema_pairs_beside(schema, none, slots), SCHEMA_COLUMNS_MAX);
    ck_assert_uint_eq(slots[15], 17);
    apply(&schema, "drop counter weibo weibo");
    ck_assert_uint_eq(schema_pairs_beside(schema, none, slots), 0);
    schema_destroy(&none);
    schema_destroy(&schema);
}
END_TEST

/* The serials of a column of members are three, and none of them the last. */
START_TEST(test_serials_that_are_out)
{
    struct schema *schema = members_schema();
    struct schema *next;
    ck_assert_int_eq(schema_restore_serial(schema, UINT32_MAX - 3, &next), 0);
    schema_destroy(&schema);
    ck_assert_int_eq(try(&next, "add column weibo more members=exact"),
        ERR_TOO_MANY_COLUMNS);
    apply(&next, "add column weibo more");
    schema_destroy(&next);
    schema = members_schema();
    ck_assert_int_eq(schema_restore_serial(schema, UINT32_MAX - 4, &next), 0);
    apply(&next, "add column weibo more members=exact");
    ck_assert_uint_eq(schema_last_serial(next), UINT32_MAX - 1);
    schema_destroy(&next);
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
    struct schema *schema = members_schema();
    ck_assert(is_same(
        schema, "add column weibo liked members=exact counts=attitude_num"));
    ck_assert(is_same(schema,
        "add column weibo liked counts=cntan max=1 member=33 members=exact"));
    ck_assert(!is_same(schema, "add column weibo liked members=exact"));
    ck_assert(
        !is_same(schema, "add column weibo liked members=exact counts=score"));
    ck_assert(!is_same(
        schema, "add column weibo liked members=exact counts=cntan max=2"));
    ck_assert(!is_same(schema,
        "add column weibo liked members=exact counts=cntan member=32"));
    ck_assert(!is_same(
        schema, "add column weibo liked members=exact counts=cntan suffix=l"));
    ck_assert(!is_same(
        schema, "add column weibo liked members=exact counts=cntan flags=1"));
    ck_assert(!is_same(schema, "add column weibo liked hint=16 max=31"));
    schema_destroy(&schema);
}
END_TEST

static const char printed[] =
    "add counter weibo absent=miss overflow=error cold=never maxjump=9\r\n"
    "add column weibo wid hint=64 max=64 default=0 primarykey\r\n"
    "add column weibo attitude_num hint=16 max=32 default=0 suffix=cntan\r\n"
    "add column weibo score hint=16 max=32 default=7\r\n"
    "add column weibo liked members=exact max=1 member=33 "
    "counts=attitude_num\r\n"
    "add column weibo shared members=exact max=8 member=48 suffix=s "
    "flags=3\r\n";

static void
check_text(const struct buf *text, const char *expected)
{
    ck_assert_msg(text->len == strlen(expected) &&
            memcmp(text->data, expected, text->len) == 0,
        "%.*s", (int)text->len, text->data);
}

/* The lines, and all of them made again by themselves. */
START_TEST(test_print)
{
    struct schema *schema = members_schema();
    struct schema *again = schema_create();
    struct buf text = {0};
    apply(&schema, "drop counter user user");
    apply(&schema,
        "add column weibo shared members=exact max=8 member=48 suffix=s "
        "flags=3");
    ck_assert_int_eq(
        schema_print(schema, counter_of(schema, "weibo"), &text), 0);
    check_text(&text, printed);
    buf_clear(&text);
    ck_assert_int_eq(schema_print_all(schema, &text), 0);
    check_text(&text, printed);
    for (size_t at = 0; at < text.len;) {
        char *start = text.data + at;
        char *end = memchr(start, '\r', text.len - at);
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        apply(&again, start);
        ck_assert(is_same(schema, start));
        at += (size_t)(end - start) + 2;
    }
    buf_clear(&text);
    ck_assert_int_eq(schema_print_all(again, &text), 0);
    check_text(&text, printed);
    buf_fini(&text);
    schema_destroy(&again);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_memory_that_is_out)
{
    static const char *const lines[] = {"add counter c cold=never",
        "add column c k primarykey", "add column c n",
        "add column c m members=exact counts=n", "drop column c m m",
        "add column c o members=exact", "drop counter c c"};
    struct fault_alloc fault;
    fault_alloc_init(&fault);
    struct schema *schema = schema_create_from(&fault.alloc);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        fault_alloc_arm(&fault, 1);
        ck_assert_int_eq(try(&schema, lines[i]), ERR_NO_MEMORY);
        apply(&schema, lines[i]);
    }
    schema_destroy(&schema);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_what_words_are_refused, test_what_is_made,
        test_the_counter_of_pairs, test_marks_over_members,
        test_what_edits_are_refused, test_pairs_go_with_the_column,
        test_pairs_go_with_the_counter, test_256_counters_are_the_limit,
        test_16_columns_are_the_limit, test_serials_that_are_out,
        test_what_is_the_same, test_print, test_memory_that_is_out};
    return run_tests("schema_members", test, COUNT_OF(test));
}

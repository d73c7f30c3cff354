/* SPDX-License-Identifier: BSD-3-Clause */
/* schema: the language with every error, edits with every error, the limits,
 * lookup, printing, slots and serials, and memory that is out. Lines are
 * written as a person types them, without the "add counter" and the like,
 * which stands for the op. Random edits: check_schema_model.c. */
#include "schema/schema.h"

#include "base/err.h"
#include "lib/fault_alloc.h"
#include "schema/print.h"
/* for the sequence of serials, whose end no test can reach by edits */
#include "schema/schema_priv.h"
#include "unit/check_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 16 };

static size_t
split(const char *line, struct schema_word *word)
{
    size_t n = 0, len;

    for (line += strspn(line, " "); *line != '\0'; line += strspn(line, " ")) {
        len = strcspn(line, " ");
        ck_assert_uint_lt(n, WORDS_MAX);
        word[n++] = (struct schema_word){line, len};
        line += len;
    }
    return n;
}

static int
parse(enum schema_edit_op op, const char *line, struct schema_edit *edit)
{
    struct schema_word word[WORDS_MAX];
    size_t n = split(line, word);

    return schema_edit_parse(op, word, n, edit);
}

/* Parses and applies; a new version takes the place of *schema. */
static int
apply(struct schema **schema, enum schema_edit_op op, const char *line)
{
    struct schema_edit edit;
    struct schema *next = NULL;
    int err = parse(op, line, &edit);

    ck_assert_msg(err == 0, "%s: %s", line, err_text(err));
    err = schema_apply(*schema, &edit, &next);
    if (err != 0) {
        ck_assert_ptr_null(next);
        return err;
    }
    ck_assert_uint_eq(schema_version(next), schema_version(*schema) + 1);
    schema_destroy(schema);
    ck_assert_ptr_null(*schema);
    *schema = next;
    return 0;
}

static struct schema *
make_weibo(void)
{
    struct schema *schema = schema_create();

    ck_assert_ptr_nonnull(schema);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, "weibo"), 0);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COLUMN,
                         "weibo weibo_id hint=64 max=64 default=0 primarykey"),
        0);
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COLUMN,
            "weibo comment_num hint=16 max=32 default=0  suffix=cntcm"),
        0);
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COLUMN,
            "weibo repost_num hint=16 max=32 default=0  suffix=cntrn"),
        0);
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COLUMN,
            "weibo attitude_num hint=8 max=32 default=0  suffix=cntan"),
        0);
    return schema;
}

static const struct schema_counter *
counter_named(const struct schema *schema, const char *name)
{
    return schema_counter(schema, name, strlen(name));
}

static bool
find(const struct schema *schema, const char *name,
    struct schema_target *target)
{
    return schema_find(schema, name, strlen(name), target);
}

struct parse_case {
    enum schema_edit_op op;
    int err;
    const char *line;
};

#define NAME_32 "a2345678901234567890123456789012"

static const struct parse_case parse_cases[] = {
    {SCHEMA_ADD_COUNTER, 0, "weibo"},
    {SCHEMA_ADD_COUNTER, 0, "_"},
    {SCHEMA_ADD_COUNTER, 0, "Z9_"},
    {SCHEMA_ADD_COUNTER, 0, NAME_32},
    {SCHEMA_ADD_COUNTER, 0, "weibo absent=miss overflow=error"},
    {SCHEMA_ADD_COUNTER, 0, "w exptime=ignore overflow=saturate absent=miss"},
    {SCHEMA_ADD_COUNTER, 0, "w maxjump=0"},
    {SCHEMA_ADD_COUNTER, 0, "w maxjump=1 absent=miss"},
    {SCHEMA_ADD_COUNTER, 0, "w absent=miss maxjump=18446744073709551615"},
    {SCHEMA_ADD_COUNTER, 0, "w cold=oldest cold_after=0"},
    {SCHEMA_ADD_COUNTER, 0, "w largest=0"},
    {SCHEMA_ADD_COUNTER, 0, "w largest=18446744073709551615 maxjump=1"},
    {SCHEMA_ADD_COUNTER, 0, "w cold_after=18446744073709551615 cold=quietest"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_NAME, ""},
    {SCHEMA_ADD_COUNTER, ERR_BAD_NAME, NAME_32 "3"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_NAME, "9lives"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_NAME, "wei-bo"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_NAME, "wei.bo"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_NAME, "w\xc3\xa9"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_NAME, "absent=miss"},
    {SCHEMA_ADD_COUNTER, ERR_RESERVED_NAME, "counter"},
    {SCHEMA_ADD_COUNTER, ERR_RESERVED_NAME, "counters"},
    {SCHEMA_ADD_COUNTER, ERR_RESERVED_NAME, "column"},
    {SCHEMA_ADD_COUNTER, ERR_RESERVED_NAME, "columns"},
    {SCHEMA_ADD_COUNTER, ERR_RESERVED_NAME, "noreply"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo weibo"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo absent"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo absent="},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo absent=error"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo absent=miss absent=miss"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo absent=default absent=miss"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo color=red"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo =miss"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo maxjump"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo largest"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo largest="},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo largest=-1"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo largest=18446744073709551616"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo largest=1 largest=1"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo largest=1 largest=x"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo maxjump="},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo maxjump=-1"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo maxjump=1k"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo Maxjump=1"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo maxjump=1 maxjump=1"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo maxjump=0 maxjump=1"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo maxjump=18446744073709551616"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold="},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold=newest"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold=oldest cold=quietest"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold_after"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold_after="},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold_after=30d"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold_after=-1"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION, "weibo cold_after=1 cold_after=1"},
    {SCHEMA_ADD_COUNTER, ERR_BAD_OPTION,
        "weibo cold_after=18446744073709551616"},
    {SCHEMA_ADD_COLUMN, 0, "weibo id primarykey"},
    {SCHEMA_ADD_COLUMN, 0, "weibo id primarykey hint=0 default=0 max=64"},
    {SCHEMA_ADD_COLUMN, 0, "weibo n"},
    {SCHEMA_ADD_COLUMN, 0, "weibo n flags=4294967295 suffix=s hint=0 max=1"},
    {SCHEMA_ADD_COLUMN, 0, "weibo n max=64 default=18446744073709551615"},
    {SCHEMA_ADD_COLUMN, 0, "weibo n max=8 default=255 hint=8"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_NAME, ""},
    {SCHEMA_ADD_COLUMN, ERR_BAD_NAME, "weibo"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_NAME, "7 n"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_NAME, "weibo hint=4"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_NAME, "weibo n suffix="},
    {SCHEMA_ADD_COLUMN, ERR_BAD_NAME, "weibo n suffix=7up"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_NAME, "weibo n suffix=a=b"},
    {SCHEMA_ADD_COLUMN, ERR_RESERVED_NAME, "weibo noreply"},
    {SCHEMA_ADD_COLUMN, ERR_RESERVED_NAME, "weibo n suffix=counter"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_OPTION, "weibo n m"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_OPTION, "weibo n hint"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_OPTION, "weibo n primarykey=1"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_OPTION, "weibo n primarykey primarykey"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_OPTION, "weibo n hint=1 max=8 hint=1"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_OPTION, "weibo n Hint=1"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_MAX, "weibo n max=0"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_MAX, "weibo n max=65"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_MAX, "weibo n max="},
    {SCHEMA_ADD_COLUMN, ERR_BAD_MAX, "weibo n max=-1"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_HINT, "weibo n hint=33"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_HINT, "weibo n max=8 hint=9"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_HINT, "weibo n max=64 hint=65"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_HINT, "weibo n hint=x"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_DEFAULT, "weibo n default=4294967296"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_DEFAULT, "weibo n default=2 max=1"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_DEFAULT, "weibo n default=-1"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_DEFAULT,
        "weibo n max=64 default=18446744073709551616"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_FLAGS, "weibo n flags=4294967296"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_FLAGS, "weibo n flags="},
    {SCHEMA_ADD_COLUMN, ERR_KEY_WIDTH, "weibo id primarykey max=63"},
    {SCHEMA_ADD_COLUMN, ERR_KEY_WIDTH, "weibo id primarykey max=65"},
    {SCHEMA_ADD_COLUMN, ERR_KEY_WIDTH, "weibo id primarykey default=1"},
    {SCHEMA_ADD_COLUMN, ERR_KEY_WIDTH, "weibo id suffix=s primarykey"},
    {SCHEMA_ADD_COLUMN, ERR_KEY_WIDTH, "weibo id primarykey flags=0"},
    {SCHEMA_ADD_COLUMN, ERR_BAD_HINT, "weibo id primarykey hint=65"},
    {SCHEMA_DROP_COLUMN, 0, "weibo n n"},
    {SCHEMA_DROP_COLUMN, 0, "counter column column"},
    {SCHEMA_DROP_COLUMN, ERR_BAD_NAME, ""},
    {SCHEMA_DROP_COLUMN, ERR_BAD_NAME, "weibo"},
    {SCHEMA_DROP_COLUMN, ERR_BAD_NAME, "weibo 7 7"},
    {SCHEMA_DROP_COLUMN, ERR_NOT_CONFIRMED, "weibo n"},
    {SCHEMA_DROP_COLUMN, ERR_NOT_CONFIRMED, "weibo n m"},
    {SCHEMA_DROP_COLUMN, ERR_NOT_CONFIRMED, "weibo n nn"},
    {SCHEMA_DROP_COLUMN, ERR_BAD_OPTION, "weibo n n n"},
    {SCHEMA_DROP_COUNTER, 0, "weibo weibo"},
    {SCHEMA_DROP_COUNTER, ERR_BAD_NAME, ""},
    {SCHEMA_DROP_COUNTER, ERR_BAD_NAME, "*"},
    {SCHEMA_DROP_COUNTER, ERR_NOT_CONFIRMED, "weibo"},
    {SCHEMA_DROP_COUNTER, ERR_NOT_CONFIRMED, "weibo Weibo"},
    {SCHEMA_DROP_COUNTER, ERR_BAD_OPTION, "weibo weibo weibo"},
};

START_TEST(test_parse_errors)
{
    const struct parse_case *c = &parse_cases[_i];
    struct schema_edit edit;
    int err = parse(c->op, c->line, &edit);

    ck_assert_msg(err == c->err, "%s: \"%s\" instead of \"%s\"", c->line,
        err_text(err), err_text(c->err));
}
END_TEST

START_TEST(test_parse_attributes)
{
    struct schema_edit edit;

    ck_assert_int_eq(parse(SCHEMA_ADD_COUNTER,
                         "weibo overflow=error absent=default", &edit),
        0);
    ck_assert_int_eq(edit.op, SCHEMA_ADD_COUNTER);
    ck_assert_str_eq(edit.counter.name.text, "weibo");
    ck_assert(!edit.counter.absent_is_miss);
    ck_assert(edit.counter.overflow_is_error);
    ck_assert(!edit.counter.exptime_is_ignored);
    ck_assert_uint_eq(edit.counter.max_jump, 0);
    ck_assert_int_eq(
        parse(SCHEMA_ADD_COUNTER, "weibo maxjump=18446744073709551615", &edit),
        0);
    ck_assert_uint_eq(edit.counter.max_jump, UINT64_MAX);
    ck_assert(!edit.counter.cold_is_quietest);
    ck_assert_uint_eq(edit.counter.cold_after, 0);
    ck_assert_int_eq(
        parse(SCHEMA_ADD_COUNTER, "weibo cold_after=7 cold=quietest", &edit),
        0);
    ck_assert(edit.counter.cold_is_quietest);
    ck_assert_uint_eq(edit.counter.cold_after, 7);
    ck_assert_uint_eq(edit.counter.max_jump, 0);

    ck_assert_int_eq(parse(SCHEMA_ADD_COLUMN, "weibo n", &edit), 0);
    ck_assert_str_eq(edit.counter.name.text, "weibo");
    ck_assert_str_eq(edit.column.name.text, "n");
    ck_assert_uint_eq(edit.column.suffix.len, 0);
    ck_assert_uint_eq(edit.column.max_bits, 32);
    ck_assert_uint_eq(edit.column.hint_bits, 16);
    ck_assert_uint_eq(edit.column.default_value, 0);
    ck_assert_uint_eq(edit.column.flags, 0);
    ck_assert(!edit.is_key);

    ck_assert_int_eq(parse(SCHEMA_ADD_COLUMN, "weibo n max=5", &edit), 0);
    ck_assert_uint_eq(edit.column.hint_bits, 5);

    ck_assert_int_eq(
        parse(SCHEMA_ADD_COLUMN, "weibo id primarykey", &edit), 0);
    ck_assert(edit.is_key);
    ck_assert_uint_eq(edit.column.max_bits, 64);
    ck_assert_uint_eq(edit.column.hint_bits, 64);
}
END_TEST

/* "weibo n suffix=n" and "weibo n" are one and the same. */
START_TEST(test_suffix_like_name)
{
    struct schema *schema = make_weibo();
    struct schema_edit edit;

    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COLUMN, "weibo n suffix=n"), 0);
    ck_assert_int_eq(parse(SCHEMA_ADD_COLUMN, "weibo n", &edit), 0);
    ck_assert(schema_has_same(schema, &edit));
    schema_destroy(&schema);
}
END_TEST

struct apply_case {
    enum schema_edit_op op;
    int err;
    const char *line;
};

/* On the schema of make_weibo, with a counter "bare" that has no key. */
static const struct apply_case apply_cases[] = {
    {SCHEMA_ADD_COUNTER, ERR_NAME_TAKEN, "weibo"},
    {SCHEMA_ADD_COUNTER, ERR_NAME_TAKEN, "comment_num"},
    {SCHEMA_ADD_COUNTER, ERR_NAME_TAKEN, "cntcm"},
    {SCHEMA_ADD_COUNTER, 0, "weibo_id"},
    {SCHEMA_ADD_COUNTER, 0, "Weibo"},
    {SCHEMA_ADD_COLUMN, ERR_NO_COUNTER, "user n"},
    {SCHEMA_ADD_COLUMN, ERR_NO_COUNTER, "user id primarykey"},
    {SCHEMA_ADD_COLUMN, ERR_NO_COUNTER, "cntcm n"},
    {SCHEMA_ADD_COLUMN, ERR_NO_KEY, "bare n"},
    {SCHEMA_ADD_COLUMN, ERR_NO_KEY, "bare cntcm"},
    {SCHEMA_ADD_COLUMN, 0, "bare weibo_id primarykey"},
    {SCHEMA_ADD_COLUMN, 0, "bare weibo primarykey"},
    {SCHEMA_ADD_COLUMN, ERR_TWO_KEYS, "weibo other primarykey"},
    {SCHEMA_ADD_COLUMN, ERR_TWO_KEYS, "weibo weibo_id primarykey"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo weibo"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo bare"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo cntrn"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo repost_num"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo weibo_id"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo n suffix=weibo_id"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo n suffix=cntcm"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo n suffix=repost_num"},
    {SCHEMA_ADD_COLUMN, ERR_NAME_TAKEN, "weibo n suffix=bare"},
    {SCHEMA_ADD_COLUMN, 0, "weibo n suffix=m"},
    {SCHEMA_DROP_COLUMN, ERR_NO_COUNTER, "user n n"},
    {SCHEMA_DROP_COLUMN, ERR_NO_COUNTER, "counter n n"},
    {SCHEMA_DROP_COLUMN, ERR_NO_COLUMN, "weibo n n"},
    {SCHEMA_DROP_COLUMN, ERR_NO_COLUMN, "weibo cntcm cntcm"},
    {SCHEMA_DROP_COLUMN, ERR_NO_COLUMN, "bare comment_num comment_num"},
    {SCHEMA_DROP_COLUMN, ERR_DROP_KEY, "weibo weibo_id weibo_id"},
    {SCHEMA_DROP_COLUMN, 0, "weibo comment_num comment_num"},
    {SCHEMA_DROP_COUNTER, ERR_NO_COUNTER, "user user"},
    {SCHEMA_DROP_COUNTER, ERR_NO_COUNTER, "cntcm cntcm"},
    {SCHEMA_DROP_COUNTER, 0, "weibo weibo"},
};

START_TEST(test_apply_errors)
{
    const struct apply_case *c = &apply_cases[_i];
    struct schema *schema = make_weibo();
    uint64_t version;
    int err;

    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, "bare"), 0);
    version = schema_version(schema);
    err = apply(&schema, c->op, c->line);
    ck_assert_msg(err == c->err, "%s: \"%s\" instead of \"%s\"", c->line,
        err_text(err), err_text(c->err));
    ck_assert_uint_eq(schema_version(schema), version + (err == 0));
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_find)
{
    struct schema *schema = make_weibo();
    const struct schema_counter *weibo = counter_named(schema, "weibo");
    struct schema_target target;

    ck_assert_ptr_nonnull(weibo);
    ck_assert_ptr_eq(schema_counter_at(schema, weibo->slot), weibo);
    ck_assert_ptr_null(schema_counter_at(schema, 1));
    ck_assert_ptr_null(schema_counter_at(schema, 255));
    ck_assert(find(schema, "weibo", &target));
    ck_assert_ptr_eq(target.counter, weibo);
    ck_assert_ptr_null(target.column);
    ck_assert(find(schema, "cntrn", &target));
    ck_assert_ptr_eq(target.counter, weibo);
    ck_assert_ptr_eq(target.column, &weibo->column[1]);
    ck_assert(find(schema, "attitude_num", &target));
    ck_assert_ptr_eq(target.column, &weibo->column[2]);
    ck_assert(!find(schema, "weibo_id", &target));
    ck_assert(!find(schema, "cntr", &target));
    ck_assert(!find(schema, "cntrnn", &target));
    ck_assert(!find(schema, "", &target));
    ck_assert(!find(schema, NAME_32 "3", &target));
    ck_assert_ptr_null(counter_named(schema, "cntrn"));
    ck_assert_ptr_null(counter_named(schema, ""));
    ck_assert_ptr_null(counter_named(schema, NAME_32 "3"));
    ck_assert_ptr_eq(
        schema_counter_column(weibo, "cntan", 5), &weibo->column[2]);
    ck_assert_ptr_eq(
        schema_counter_column(weibo, "comment_num", 11), &weibo->column[0]);
    ck_assert_ptr_null(schema_counter_column(weibo, "", 0));
    ck_assert_ptr_null(schema_counter_column(weibo, "weibo", 5));
    ck_assert_ptr_null(schema_counter_column(weibo, "weibo_id", 8));
    schema_destroy(&schema);
}
END_TEST

static const char weibo_text[] =
    "add counter weibo\r\n"
    "add column weibo weibo_id hint=64 max=64 default=0 primarykey\r\n"
    "add column weibo comment_num hint=16 max=32 default=0 suffix=cntcm\r\n"
    "add column weibo repost_num hint=16 max=32 default=0 suffix=cntrn\r\n"
    "add column weibo attitude_num hint=8 max=32 default=0 suffix=cntan\r\n";

static void
check_printed(
    const struct schema *schema, const char *name, const char *expected)
{
    struct buf buf = {0};

    ck_assert_int_eq(
        schema_print(schema, counter_named(schema, name), &buf), 0);
    ck_assert_uint_eq(buf.len, strlen(expected));
    ck_assert_mem_eq(buf.data, expected, buf.len);
    buf_fini(&buf);
}

START_TEST(test_print)
{
    struct schema *schema = make_weibo();

    check_printed(schema, "weibo", weibo_text);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER,
                         "u exptime=ignore overflow=error absent=miss"),
        0);
    check_printed(schema, "u",
        "add counter u absent=miss overflow=error exptime=ignore\r\n");
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COLUMN, "u k hint=0 primarykey"), 0);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COLUMN,
                         "u n flags=4 default=7 max=3 hint=0"),
        0);
    check_printed(schema, "u",
        "add counter u absent=miss overflow=error exptime=ignore\r\n"
        "add column u k hint=0 max=64 default=0 primarykey\r\n"
        "add column u n hint=0 max=3 default=7 flags=4\r\n");
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COUNTER, "v maxjump=77 overflow=error"), 0);
    check_printed(schema, "v", "add counter v overflow=error maxjump=77\r\n");
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, "w maxjump=0"), 0);
    check_printed(schema, "w", "add counter w\r\n");
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER,
                         "x cold_after=9 cold=quietest maxjump=8"),
        0);
    check_printed(
        schema, "x", "add counter x cold=quietest maxjump=8 cold_after=9\r\n");
    schema_destroy(&schema);
}
END_TEST

/* A buffer that has failed before: the caller learns of it. */
START_TEST(test_print_failed)
{
    struct schema *schema = make_weibo();
    struct buf buf = {0};

    ck_assert_ptr_null(buf_reserve(&buf, SIZE_MAX));
    ck_assert_int_eq(
        schema_print(schema, counter_named(schema, "weibo"), &buf),
        ERR_NO_MEMORY);
    buf_fini(&buf);
    schema_destroy(&schema);
}
END_TEST

static bool
has_same(const struct schema *schema, enum schema_edit_op op, const char *line)
{
    struct schema_edit edit;

    ck_assert_int_eq(parse(op, line, &edit), 0);
    return schema_has_same(schema, &edit);
}

START_TEST(test_has_same)
{
    static const char *const same[] = {"weibo comment_num suffix=cntcm",
        "weibo weibo_id primarykey", "weibo attitude_num hint=8 suffix=cntan"};
    static const char *const other[] = {"weibo comment_num",
        "weibo comment_num suffix=cntc", "weibo cntcm",
        "weibo comment_num suffix=cntcm hint=15",
        "weibo comment_num suffix=cntcm max=33",
        "weibo comment_num suffix=cntcm default=1",
        "weibo comment_num suffix=cntcm flags=1", "weibo weibo_id",
        "weibo weibo_id primarykey hint=63", "weibo id primarykey",
        "user comment_num suffix=cntcm", "weibo comment_num primarykey"};
    struct schema *schema = make_weibo();

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        ck_assert(has_same(schema, SCHEMA_ADD_COLUMN, same[i]));
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        ck_assert_msg(
            !has_same(schema, SCHEMA_ADD_COLUMN, other[i]), "%s", other[i]);
    }
    ck_assert(has_same(schema, SCHEMA_ADD_COUNTER, "weibo"));
    ck_assert(has_same(schema, SCHEMA_ADD_COUNTER, "weibo overflow=saturate"));
    ck_assert(has_same(schema, SCHEMA_ADD_COUNTER, "weibo largest=7"));
    ck_assert(!has_same(schema, SCHEMA_ADD_COUNTER, "weibo absent=miss"));
    ck_assert(!has_same(schema, SCHEMA_ADD_COUNTER, "weibo exptime=ignore"));
    ck_assert(has_same(schema, SCHEMA_ADD_COUNTER, "weibo maxjump=0"));
    ck_assert(!has_same(schema, SCHEMA_ADD_COUNTER, "weibo maxjump=1"));
    ck_assert(has_same(
        schema, SCHEMA_ADD_COUNTER, "weibo cold=oldest cold_after=0"));
    ck_assert(!has_same(schema, SCHEMA_ADD_COUNTER, "weibo cold=quietest"));
    ck_assert(!has_same(schema, SCHEMA_ADD_COUNTER, "weibo cold_after=1"));
    ck_assert(!has_same(schema, SCHEMA_ADD_COUNTER, "user"));
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, "user maxjump=10"), 0);
    ck_assert(has_same(schema, SCHEMA_ADD_COUNTER, "user maxjump=10"));
    ck_assert(!has_same(schema, SCHEMA_ADD_COUNTER, "user maxjump=11"));
    ck_assert(!has_same(schema, SCHEMA_ADD_COUNTER, "user"));
    ck_assert(!has_same(schema, SCHEMA_DROP_COUNTER, "weibo weibo"));
    schema_destroy(&schema);
}
END_TEST

static void
check_column(const struct schema *schema, unsigned place, const char *name,
    unsigned slot, uint32_t serial)
{
    const struct schema_counter *weibo = counter_named(schema, "weibo");

    ck_assert_uint_lt(place, weibo->n_columns);
    ck_assert_str_eq(weibo->column[place].name.text, name);
    ck_assert_uint_eq(weibo->column[place].slot, slot);
    ck_assert_uint_eq(weibo->column[place].serial, serial);
}

START_TEST(test_slots_and_serials)
{
    struct schema *schema = make_weibo();

    ck_assert_uint_eq(counter_named(schema, "weibo")->serial, 1);
    check_column(schema, 0, "comment_num", 0, 2);
    check_column(schema, 1, "repost_num", 1, 3);
    check_column(schema, 2, "attitude_num", 2, 4);
    ck_assert_int_eq(
        apply(&schema, SCHEMA_DROP_COLUMN, "weibo repost_num repost_num"), 0);
    check_column(schema, 0, "comment_num", 0, 2);
    check_column(schema, 1, "attitude_num", 2, 4);
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COLUMN, "weibo repost_num suffix=cntrn"), 0);
    check_column(schema, 2, "repost_num", 1, 5);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COLUMN, "weibo n"), 0);
    check_column(schema, 3, "n", 3, 6);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, "user"), 0);
    ck_assert_uint_eq(counter_named(schema, "user")->slot, 1);
    ck_assert_int_eq(apply(&schema, SCHEMA_DROP_COUNTER, "weibo weibo"), 0);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, "cntcm"), 0);
    ck_assert_uint_eq(counter_named(schema, "cntcm")->slot, 0);
    ck_assert_uint_eq(counter_named(schema, "cntcm")->serial, 8);
    ck_assert_uint_eq(counter_named(schema, "cntcm")->n_columns, 0);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_serials_run_out)
{
    struct schema *schema = make_weibo();

    schema->last_serial = UINT32_MAX - 2;
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COLUMN, "weibo n"), 0);
    check_column(schema, 3, "n", 3, UINT32_MAX - 1);
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COLUMN, "weibo m"), ERR_TOO_MANY_COLUMNS);
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COUNTER, "user"), ERR_TOO_MANY_COLUMNS);
    ck_assert_int_eq(apply(&schema, SCHEMA_DROP_COLUMN, "weibo n n"), 0);
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COLUMN, "weibo n"), ERR_TOO_MANY_COLUMNS);
    schema_destroy(&schema);
}
END_TEST

/* 256 counters of 16 columns with suffixes: all found; no more fit. */
START_TEST(test_limits)
{
    struct schema *schema = schema_create();
    struct schema_target target;
    char line[96];

    for (int i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        snprintf(line, sizeof line, "c%d", i);
        ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, line), 0);
        snprintf(line, sizeof line, "c%d id primarykey", i);
        ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COLUMN, line), 0);
        for (int j = 0; j < SCHEMA_COLUMNS_MAX; j++) {
            snprintf(
                line, sizeof line, "c%d n%d_%d suffix=s%d_%d", i, i, j, i, j);
            ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COLUMN, line), 0);
        }
        snprintf(line, sizeof line, "c%d more", i);
        ck_assert_int_eq(
            apply(&schema, SCHEMA_ADD_COLUMN, line), ERR_TOO_MANY_COLUMNS);
    }
    ck_assert_int_eq(
        apply(&schema, SCHEMA_ADD_COUNTER, "more"), ERR_TOO_MANY_COUNTERS);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, "c7"), ERR_NAME_TAKEN);
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        for (unsigned j = 0; j < SCHEMA_COLUMNS_MAX; j++) {
            snprintf(line, sizeof line, "%c%u_%u", j % 2 ? 'n' : 's', i, j);
            ck_assert(find(schema, line, &target));
            ck_assert_uint_eq(target.counter->slot, i);
            ck_assert_uint_eq(target.column->slot, j);
        }
    }
    ck_assert_int_eq(apply(&schema, SCHEMA_DROP_COUNTER, "c99 c99"), 0);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, "more"), 0);
    ck_assert_uint_eq(counter_named(schema, "more")->slot, 99);
    ck_assert(!find(schema, "s99_3", &target));
    schema_destroy(&schema);
}
END_TEST

/* Every allocation of every kind of edit fails once: the edit says so, the
 * schema is as it was, nothing leaks, and the next try succeeds. */
START_TEST(test_no_memory)
{
    static const struct parse_case edits[] = {
        {SCHEMA_ADD_COUNTER, 0, "weibo"},
        {SCHEMA_ADD_COLUMN, 0, "weibo weibo_id primarykey"},
        {SCHEMA_ADD_COLUMN, 0, "weibo n suffix=s"},
        {SCHEMA_DROP_COLUMN, 0, "weibo n n"},
        {SCHEMA_DROP_COUNTER, 0, "weibo weibo"},
    };
    struct fault_alloc fault;
    struct schema *schema;
    size_t live_bytes;

    fault_alloc_init(&fault);
    fault_alloc_arm(&fault, 1);
    ck_assert_ptr_null(schema_create_from(&fault.alloc));
    schema = schema_create_from(&fault.alloc);
    ck_assert_ptr_nonnull(schema);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        int err = ERR_NO_MEMORY;

        for (size_t nth = 1; err == ERR_NO_MEMORY; nth++) {
            live_bytes = fault.live_bytes;
            fault.fail_from = fault.fail_to = fault.calls + nth;
            err = apply(&schema, edits[i].op, edits[i].line);
            ck_assert_uint_eq(schema_version(schema), i + (err == 0));
            ck_assert(err == 0 || fault.live_bytes == live_bytes);
        }
        ck_assert_int_eq(err, 0);
    }
    ck_assert_uint_eq(fault.failures, 1 + sizeof edits / sizeof edits[0]);
    schema_destroy(&schema);
    schema_destroy(&schema);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

/* A schema is as large as what is in it, whatever was there before. */
START_TEST(test_bytes)
{
    enum { EMPTY_BYTES = 1024, COUNTER_BYTES = 3072 };
    struct fault_alloc fault;
    struct schema *schema;
    char line[96];

    fault_alloc_init(&fault);
    schema = schema_create_from(&fault.alloc);
    for (size_t i = 1; i <= 40; i++) {
        snprintf(line, sizeof line, "c%zu", i);
        ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COUNTER, line), 0);
        ck_assert_uint_le(fault.live_bytes, EMPTY_BYTES + i * COUNTER_BYTES);
    }
    for (size_t i = 1; i < 40; i++) {
        snprintf(line, sizeof line, "c%zu c%zu", i, i);
        ck_assert_int_eq(apply(&schema, SCHEMA_DROP_COUNTER, line), 0);
    }
    ck_assert_uint_eq(counter_named(schema, "c40")->slot, 39);
    ck_assert_int_eq(apply(&schema, SCHEMA_ADD_COLUMN, "c40 i primarykey"), 0);
    ck_assert_uint_le(fault.live_bytes, EMPTY_BYTES + 2 * COUNTER_BYTES);
    schema_destroy(&schema);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("schema");
    TCase *tcase = tcase_create("schema");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_loop_test(tcase, test_parse_errors, 0,
        sizeof parse_cases / sizeof parse_cases[0]);
    tcase_add_test(tcase, test_parse_attributes);
    tcase_add_test(tcase, test_suffix_like_name);
    tcase_add_loop_test(tcase, test_apply_errors, 0,
        sizeof apply_cases / sizeof apply_cases[0]);
    tcase_add_test(tcase, test_find);
    tcase_add_test(tcase, test_print);
    tcase_add_test(tcase, test_print_failed);
    tcase_add_test(tcase, test_has_same);
    tcase_add_test(tcase, test_slots_and_serials);
    tcase_add_test(tcase, test_serials_run_out);
    tcase_add_test(tcase, test_limits);
    tcase_add_test(tcase, test_no_memory);
    tcase_add_test(tcase, test_bytes);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

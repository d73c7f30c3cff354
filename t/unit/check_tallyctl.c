/* SPDX-License-Identifier: BSD-3-Clause */
/* What tallyctl's commands for who looks are made of: figures of an answer, the
 * page of them, JSON, schemas as text, and what is reckoned. */
#include "cli/amount.h"
#include "cli/demo_feed.h"
#include "cli/json.h"
#include "cli/listing.h"
#include "cli/reckon.h"
#include "cli/schema_text.h"
#include "cli/status.h"
#include "cli/top.h"

#include "unit/check_help.h"

#include <check.h>
#include <stdio.h>

static void
take(struct figures *figures, const char *line)
{
    ck_assert_msg(figures_take(figures, line, strlen(line)), "%s", line);
}

START_TEST(test_figures)
{
    struct figures figures = {0};
    char text[8];
    uint64_t value = 1;
    take(&figures, "STAT a 12.75");
    take(&figures, "STAT empty");
    take(&figures, "STAT problem:1 the disk is full; make room");
    take(&figures, "STAT big 18446744073709551616");
    ck_assert(!figures_take(&figures, "STATUS a", 8));
    ck_assert(!figures_take(&figures, "STAT ", 5));
    ck_assert(!figures_take(&figures, "STAT a\0b c", 10));
    ck_assert(figures_u64(&figures, "a", &value));
    ck_assert_uint_eq(value, 12);
    ck_assert(!figures_u64(&figures, "big", &value));
    ck_assert_uint_eq(value, 0);
    ck_assert_str_eq(figures_text(&figures, "empty"), "");
    ck_assert_str_eq(
        figures_text(&figures, "problem:1"), "the disk is full; make room");
    ck_assert_ptr_null(figures_text(&figures, "prob"));
    ck_assert(figures_word("us=5 client=a:1", "client", text, sizeof text));
    ck_assert_str_eq(text, "a:1");
    ck_assert(figures_word("key=123456789", "key", text, sizeof text));
    ck_assert_str_eq(text, "1234567");
    ck_assert(!figures_word("xkey=1 ke=2", "key", text, sizeof text));
    ck_assert_str_eq(figures.error, "");
    take(&figures, "SERVER_ERROR not now");
    ck_assert(!figures.is_name_unknown);
    take(&figures, "ERROR");
    ck_assert(figures.is_name_unknown);
    figures_clear(&figures);
    ck_assert_str_eq(figures.error, "");
    ck_assert_ptr_null(figures_text(&figures, "a"));
    figures_fini(&figures);
}
END_TEST

START_TEST(test_json)
{
    static const char wanted[] =
        "{\n  \"a\\\"\\\\\": [\n    \"\\u0001\\u007f\\u00ff \xc3\xa9\",\n"
        "    true\n  ],\n  \"n\": 12.5,\n  \"z\": \"007\",\n"
        "  \"w\": \"1.\",\n  \"d\": \"9007199254740993\",\n  \"e\": {},\n"
        "  \"u\": 18446744073709551615\n}\n";
    struct buf out = {0};
    struct json json = {.out = &out};
    json_open(&json, NULL, '{');
    json_open(&json, "a\"\\", '[');
    json_text(&json, NULL, "\x01\x7f\xff \xc3\xa9");
    json_bool(&json, NULL, true);
    json_close(&json);
    json_figure(&json, "n", "12.5");
    json_figure(&json, "z", "007");
    json_figure(&json, "w", "1.");
    json_figure(&json, "d", "9007199254740993");
    json_open(&json, "e", '{');
    json_close(&json);
    json_u64(&json, "u", UINT64_MAX);
    json_close(&json);
    buf_add(&out, "", 1);
    ck_assert_str_eq(out.data, wanted);
    buf_fini(&out);
}
END_TEST

/* ---- schemas ---- */

static char why[SCHEMA_TEXT_WHY_MAX];

static struct schema *
read_schema(const char *text)
{
    struct schema *schema = schema_create();
    struct buf lines = {0};
    unsigned n_largest = 0;
    buf_add_text(&lines, text);
    ck_assert_msg(
        schema_text_read(&lines, &schema, &n_largest, why), "%s", why);
    buf_fini(&lines);
    return schema;
}

static void
assert_text(const struct buf *buf, const char *wanted)
{
    ck_assert_msg(buf->len == strlen(wanted) &&
            (buf->len == 0 || memcmp(buf->data, wanted, buf->len) == 0),
        "%.*s", (int)buf->len, buf->data == NULL ? "" : buf->data);
}

#define BASE                                                                  \
    "add counter c\nadd column c id primarykey\nadd column c a max=8\n"       \
    "add column c b\n"

START_TEST(test_schema_read)
{
    static const char *const wrong[][2] = {
        {"\n# what\nadd counter c\nadd colum c id\n", "4: "},
        {"drop counter c c\n", "1: "},
        {"add counter c\nadd column c a\n", "2: "},
        {"add counter c largest=x\n", "1: "},
    };
    struct schema *schema = read_schema(
        "  # a comment\r\n\r\n" BASE BASE "add counter d largest=5");
    struct buf lines = {0}, text = {0};
    unsigned n_largest = 0;
    ck_assert(schema_text_lines(schema, &lines));
    assert_text(&lines,
        "add counter c\n"
        "add column c id hint=64 max=64 default=0 primarykey\n"
        "add column c a hint=8 max=8 default=0\n"
        "add column c b hint=16 max=32 default=0\nadd counter d\n");
    schema_destroy(&schema);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        schema = schema_create();
        buf_clear(&text);
        buf_add_text(&text, wrong[i][0]);
        ck_assert(!schema_text_read(&text, &schema, &n_largest, why));
        ck_assert_msg(
            strncmp(why, wrong[i][1], strlen(wrong[i][1])) == 0, "%s", why);
        schema_destroy(&schema);
    }
    buf_fini(&lines);
    buf_fini(&text);
}
END_TEST

/* What a server and a file have, and what is made of it. */
struct diff_case {
    const char *has, *wants;
    const char *drop, *change, *add; /* in the order in which they are done */
    unsigned n_changed;
    bool is_order_other;
};

#define MARKS                                                                 \
    "add counter m\nadd column m id primarykey\n"                             \
    "add column m seen marks=7.a unread=un unmarked=none\n"

static const struct diff_case diffs[] = {
    {BASE, BASE, "", "", "", 0, false},
    {"", BASE, "", "",
        "add counter c\n"
        "add column c id hint=64 max=64 default=0 primarykey\n"
        "add column c a hint=8 max=8 default=0\n"
        "add column c b hint=16 max=32 default=0\n",
        0, false},
    {BASE, "", "drop counter c c\n", "", "", 0, false},
    {BASE "add column c d\n", BASE, "drop column c d d\n", "", "", 0, false},
    /* the mark goes before what it is about */
    {BASE MARKS, "", "drop counter m m\ndrop counter c c\n", "", "", 0, false},
    {BASE,
        "add counter c maxjump=7\nadd column c id primarykey\n"
        "add column c b hint=17\nadd column c a max=8\n",
        "", "change counter c maxjump=7\nchange column c b hint=17\n", "", 0,
        true},
    {BASE,
        "add counter c cold=never\nadd column c id hint=9 primarykey\n"
        "add column c a max=7\nadd column c b max=33 default=1\n",
        "", "change column c b max=33 default=1\n", "", 3, false},
    {BASE,
        "add counter c\nadd column c id primarykey\nadd column c n\n"
        "add column c a max=8\nadd column c b\n",
        "", "", "add column c n hint=16 max=32 default=0\n", 0, true},
    {"add counter c\nadd column c id primarykey\n", "add counter c\n", "", "",
        "", 1, false},
};

START_TEST(test_schema_diff)
{
    const struct diff_case *diff_case = &diffs[_i];
    struct schema *has = read_schema(diff_case->has);
    struct schema *wants = read_schema(diff_case->wants);
    struct schema_text_diff diff = {0};
    struct buf drop = {0}, changes = {0}, add = {0};
    ck_assert(schema_text_diff_make(has, wants, &diff));
    ck_assert_uint_eq(diff.n_changed, diff_case->n_changed);
    ck_assert_int_eq(diff.is_order_other, diff_case->is_order_other);
    ck_assert_msg(schema_text_apply(&diff.drop, &has, &drop, why), "%s", why);
    ck_assert_msg(
        schema_text_apply(&diff.change, &has, &changes, why), "%s", why);
    ck_assert_msg(schema_text_apply(&diff.add, &has, &add, why), "%s", why);
    assert_text(&drop, diff_case->drop);
    assert_text(&changes, diff_case->change);
    assert_text(&add, diff_case->add);
    schema_text_diff_fini(&diff);
    if (diff_case->n_changed == 0) { /* and then there is no difference */
        diff = (struct schema_text_diff){0};
        ck_assert(schema_text_diff_make(has, wants, &diff));
        ck_assert_uint_eq(
            diff.n_add + diff.n_change + diff.n_drop + diff.n_changed, 0);
        schema_text_diff_fini(&diff);
    }
    buf_fini(&drop);
    buf_fini(&changes);
    buf_fini(&add);
    schema_destroy(&has);
    schema_destroy(&wants);
}
END_TEST

START_TEST(test_schema_in_use)
{
    struct schema *has = read_schema(BASE MARKS);
    struct buf drop = {0}, done = {0};
    buf_add_text(&drop, "drop column c a a\n");
    ck_assert(!schema_text_apply(&drop, &has, &done, why));
    ck_assert_msg(strstr(why, "\"drop column c a a\"") != NULL, "%s", why);
    assert_text(&done, "");
    schema_destroy(&has);
    buf_fini(&drop);
    buf_fini(&done);
}
END_TEST

/* ---- amounts, and what is reckoned ---- */

START_TEST(test_amounts)
{
    char out[AMOUNT_BYTES];
    static const struct {
        double value;
        const char *bytes, *seconds;
    } cases[] = {{0, "0 B", "0.0 s"}, {999, "999 B", "16 min 39 s"},
        {999.6, "1.0 kB", "16 min 39 s"}, {1500, "1.5 kB", "25 min 0 s"},
        {3661, "3.7 kB", "1 h 1 min"}, {90000, "90.0 kB", "1 d 1 h"},
        {999940, "1.0 MB", "11 d 13 h"}, {2e9, "2.0 GB", "23148 d 3 h"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        amount_bytes(cases[i].value, out);
        ck_assert_str_eq(out, cases[i].bytes);
        amount_seconds(cases[i].value, out);
        ck_assert_str_eq(out, cases[i].seconds);
    }
    amount_number(12345, out);
    ck_assert_str_eq(out, "12.3k");
    amount_us(999, out);
    ck_assert_str_eq(out, "999 us");
    amount_us(1500, out);
    ck_assert_str_eq(out, "1.5 ms");
    amount_us(2000000, out);
    ck_assert_str_eq(out, "2.0 s");
}
END_TEST

START_TEST(test_reckon)
{
    struct reckon_question question = {
        .records = 1e6, .columns = 3, .ids = RECKON_SNOWFLAKE, .hot_share = 1};
    struct reckon_answer all, half, other;
    reckon(&question, &all);
    ck_assert_double_eq_tol(all.hot_record, 3.56 * 1.2, 1e-9);
    ck_assert_double_eq_tol(all.hot_memory, 3.56e6 * 1.2 / 0.8, 1e-3);
    ck_assert_double_eq(all.segments, 0);
    ck_assert_double_eq(all.log_day, 0);
    question.hot_share = 0.5;
    question.changes = 1000;
    reckon(&question, &half);
    ck_assert_double_eq_tol(half.hot_memory * 2, all.hot_memory, 1e-3);
    ck_assert_double_eq_tol(half.segments, 2.73 * 1.2 * 5e5, 1e-3);
    ck_assert_double_eq_tol(half.log_day, 1000 * 10.68 * 86400, 1);
    ck_assert(half.start_s_least < half.start_s_most);
    for (unsigned columns = 1; columns < 16; columns++) { /* it only grows */
        question.columns = columns;
        reckon(&question, &half);
        question.columns = columns + 1;
        reckon(&question, &other);
        ck_assert(half.hot_record < other.hot_record);
        ck_assert(half.cold_record < other.cold_record);
    }
    ck_assert_double_eq_tol(other.hot_record, 18.54 * 1.2, 1e-9);
}
END_TEST

/* ---- the page ---- */

START_TEST(test_page)
{
    struct status status = {.server = "a:1", .between_ns = 2000000000};
    struct buf out = {0};
    struct figures *health = &status.health.figures;
    take(health, "STAT state read-only");
    take(health, "STAT problems 2");
    take(health, "STAT problem:1 the disk is full; make room");
    take(health, "STAT problem:2 a replica is behind; look there");
    memcpy(status.health.state, "read-only", sizeof "read-only");
    status.health.n_problems = 2;
    take(&status.before[STATUS_GENERAL], "STAT cmd_get 100");
    take(&status.before[STATUS_COUNTERS], "STAT cell_changes 9");
    take(&status.part[STATUS_GENERAL], "STAT cmd_get 1100");
    take(&status.part[STATUS_COUNTERS], "STAT cell_changes 5"); /* a reset */
    take(&status.part[STATUS_COUNTERS], "STAT c:records 40");
    take(&status.part[STATUS_COUNTERS], "STAT d:records 2");
    take(&status.part[STATUS_REPLICAS],
        "STAT b address=b:2 state=STREAMING lag_ms=5");
    take(&status.part[STATUS_SLOW], "STAT 1 when=1 us=1500 verb=get key=5.x");
    take(&status.part[STATUS_COLD], "ERROR");
    status_page(&status, &out);
    buf_add(&out, "", 1);
    static const char first[] = "a:1: read-only: the disk is full; make room\n"
                                "also: a replica is behind; look there\n\n";
    static const char *const wanted[] = {
        "records      42 in 2 counters\n",
        "replica      b, state STREAMING, address b:2, lag_ms 5\n",
        "a second     gets 500, ",
        "changes ?, ",
        "slow         1.5 ms, verb get, key 5.x\n",
    };
    ck_assert_msg(
        strncmp(out.data, first, strlen(first)) == 0, "%s", out.data);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        ck_assert_msg(strstr(out.data, wanted[i]) != NULL, "%s is not in %s",
            wanted[i], out.data);
    }
    ck_assert_ptr_null(strstr(out.data, "cold "));
    for (unsigned i = 0; i < STATUS_PARTS_N; i++) {
        figures_fini(&status.part[i]);
    }
    for (unsigned i = 0; i <= STATUS_COUNTERS; i++) {
        figures_fini(&status.before[i]);
    }
    health_fini(&status.health);
    buf_fini(&out);
}
END_TEST

/* ---- tables, and what is live ---- */

START_TEST(test_listing)
{
    struct figures conns = {.error = ""}, rows = {.error = ""};
    struct table table = {.n_columns = 0};
    struct buf out = {0};
    take(&conns, "STAT 7:addr tcp:1.2.3.4:1");
    take(&conns, "STAT 7:state conn_listening");
    take(&conns, "STAT 17:addr tcp:1.2.3.4:5");
    take(&conns, "STAT 17:state conn_read");
    take(&conns, "STAT 17:secs_since_last_cmd 61");
    take(&conns, "STAT 9:addr unix:/x");
    take(&conns, "STAT 9:user who");
    listing_join(&conns, &rows);
    listing_table(listing_clients, &rows, &table);
    table_print(&table, 10, &out);
    assert_text(&out,
        "conn  client         user  state           idle\n"
        "  17  tcp:1.2.3.4:5        conn_read  1 min 1 s\n"
        "   9  unix:/x        who\n");
    buf_clear(&out);
    table_print(&table, 1, &out);
    assert_text(&out,
        "conn  client         user  state           idle\n"
        "  17  tcp:1.2.3.4:5        conn_read  1 min 1 s\n");
    buf_clear(&out);
    figures_clear(&rows);
    listing_table(listing_hot, &rows, &table);
    table_print(&table, 10, &out);
    assert_text(&out, "none\n");
    table_fini(&table);
    figures_fini(&conns);
    figures_fini(&rows);
    buf_fini(&out);
}
END_TEST

START_TEST(test_values)
{
    static const struct {
        enum listing_form form;
        const char *value, *shown;
    } cases[] = {{LISTING_US, "1500", "1.5 ms"}, {LISTING_US, "x", "x"},
        {LISTING_SHARE, "0.125", "12.5 %"}, {LISTING_NUMBER, "-1", "-1"},
        {LISTING_BYTES, "1e9", "1.0 GB"}, {LISTING_S, "", ""},
        {LISTING_TEXT, "12000", "12000"}, {LISTING_NUMBER, "nan", "nan"}};
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        listing_value(cases[i].form, cases[i].value, out, sizeof out);
        ck_assert_str_eq(out, cases[i].shown);
    }
}
END_TEST

static struct top top;

static void
assert_has(const struct buf *out, const char *wanted)
{
    ck_assert_msg(memmem(out->data, out->len, wanted, strlen(wanted)) != NULL,
        "%s is not in %.*s", wanted, (int)out->len, out->data);
}

START_TEST(test_top)
{
    struct buf out = {0};
    top = (struct top){
        .server = "a:1", .interval_ms = 500, .between_ns = 2000000000};
    memcpy(top.health.state, "ready", sizeof "ready");
    take(&top.before[TOP_LATENCY], "STAT get:all:count 100");
    take(&top.before[TOP_LATENCY], "STAT get:hot:count 100");
    take(&top.now[TOP_LATENCY], "STAT get:all:count 300");
    take(&top.now[TOP_LATENCY], "STAT get:hot:count 250");
    take(&top.now[TOP_LATENCY], "STAT get:cold:count 50");
    take(&top.now[TOP_LATENCY], "STAT get:all:p99_us 1500");
    take(&top.now[TOP_HOT], "STAT 1 key=5 counter=weibo gets=9 share=0.5");
    for (unsigned i = 0; i < 2; i++) { /* the second one is busier */
        char line[64];
        (void)snprintf(line, sizeof line, "STAT %u:addr tcp:1:%u", 30 + i, i);
        take(&top.before[TOP_CONNS], line);
        take(&top.now[TOP_CONNS], line);
        (void)snprintf(line, sizeof line, "STAT %u:bytes_in 100", 30 + i);
        take(&top.before[TOP_CONNS], line);
        (void)snprintf(
            line, sizeof line, "STAT %u:bytes_in %u", 30 + i, 200 + 200 * i);
        take(&top.now[TOP_CONNS], line);
    }
    top_frame(&top, 50, 200, &out);
    assert_has(&out, "a:1: well\nup 0.0 s, 0 connections of 0");
    assert_has(&out,
        "get          100  75 %  25 %     0 %   0 %  -    1.5 ms  -\n"
        "set            0     -     -       -     -  -         -  -\n");
    assert_has(&out, "5  weibo       9  50.0 %\n");
    assert_has(&out,
        "  31  tcp:1:1  -     -     0.0 s             150\n"
        "  30  tcp:1:0  -     -     0.0 s              50\n");
    buf_clear(&out);
    top_frame(&top, 2, 7, &out);
    assert_text(&out, "a:1: we\nup 0.0 \n");
    buf_clear(&out);
    figures_clear(&top.now[TOP_LATENCY]);
    take(&top.now[TOP_LATENCY], "ERROR");
    top_frame(&top, 50, 200, &out);
    assert_has(&out, "\nverbs are not known: ERROR\n");
    for (unsigned i = 0; i < TOP_PARTS_N; i++) {
        figures_fini(&top.now[i]);
        figures_fini(&top.before[i]);
    }
    buf_fini(&out);
}
END_TEST

/* Ids grow, a post is always the same, and the numbers have the shape that is
 * said of them; pages show what there is, and new posts more often. */
START_TEST(test_demo_feed)
{
    enum { POSTS = 20000, PAGES = 1000 };
    uint64_t last = 0, n_records = 0, n_large = 0, n_new = 0;
    struct demo_post post, again;
    for (uint64_t place = 0; place < POSTS; place++) {
        demo_post(place, &post);
        demo_post(place, &again);
        ck_assert_mem_eq(&post, &again, sizeof post);
        ck_assert_uint_gt(post.id, last);
        last = post.id;
        n_records += demo_is_record(&post);
        n_large += post.number[0] > 100;
    }
    ck_assert_uint_gt(n_records, POSTS * 7 / 10);
    ck_assert_uint_lt(n_records, POSTS * 9 / 10);
    ck_assert_uint_gt(n_large, 0);
    ck_assert_uint_lt(n_large, POSTS / 50);
    for (uint64_t page = 0; page < PAGES; page++) {
        uint64_t place = demo_shown(page, 3, POSTS);
        ck_assert_uint_lt(place, POSTS);
        n_new += place >= POSTS / 2;
        ck_assert_uint_eq(demo_shown(page, 0, 1), 0);
    }
    ck_assert_uint_gt(n_new, PAGES * 6 / 10);
    ck_assert_uint_lt(n_new, PAGES);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("tallyctl");
    tcase_add_test(tcase, test_demo_feed);
    tcase_add_test(tcase, test_figures);
    tcase_add_test(tcase, test_json);
    tcase_add_test(tcase, test_schema_read);
    tcase_add_loop_test(
        tcase, test_schema_diff, 0, (int)(sizeof diffs / sizeof diffs[0]));
    tcase_add_test(tcase, test_schema_in_use);
    tcase_add_test(tcase, test_amounts);
    tcase_add_test(tcase, test_reckon);
    tcase_add_test(tcase, test_page);
    tcase_add_test(tcase, test_listing);
    tcase_add_test(tcase, test_values);
    tcase_add_test(tcase, test_top);
    return run_case("tallyctl", tcase);
}

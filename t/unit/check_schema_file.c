/* SPDX-License-Identifier: BSD-3-Clause */
/* server/schema_file: what a file of --schema may hold, and what is said of
 * one that is wrong. The edits are done by a real store. */
#include "server/schema_file.h"

#include "base/err.h"
#include "engine/engine.h"
#include "unit/check_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARDS = 2 };

static const char demo[] =
    "# a comment\n\n"
    "add counter weibo\r\n"
    "  add column weibo weibo_id primarykey\n"
    "add column weibo comment_num hint=16 max=32 default=0  suffix=cntcm";

static struct store *
make_store(void)
{
    struct store_config config = {.shards = SHARDS,
        .hot_bytes = ENGINE_HOT_BYTES_MIN,
        .items = {.limit_bytes = 1 << 20, .item_bytes_max = 1024}};
    struct store *store;
    ck_assert_int_eq(store_create(&config, &store), 0);
    return store;
}

static int
load_noted(
    struct store *store, const char *lines, struct buf *notes, struct buf *why)
{
    struct buf text = {0};
    buf_add_text(&text, lines);
    int err = schema_file_load(store, "f", &text, notes, why);
    buf_fini(&text);
    return err;
}

/* Where there is nothing to note. */
static int
load(struct store *store, const char *lines, struct buf *why)
{
    struct buf notes = {0};
    int err = load_noted(store, lines, &notes, why);
    ck_assert_uint_eq(notes.len, 0);
    return err;
}

static const struct schema_counter *
weibo(struct store *store)
{
    /* nobody edits now, so the schema stays */
    return schema_counter(store_schema(store), "weibo", 5);
}

START_TEST(test_loads_twice)
{
    struct store *store = make_store();
    struct buf why = {0};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(load(store, demo, &why), 0);
        ck_assert_uint_eq(why.len, 0);
        ck_assert_ptr_nonnull(weibo(store));
        ck_assert_uint_eq(weibo(store)->n_columns, 1);
    }
    ck_assert_int_eq(load(store, "", &why), 0);
    store_destroy(&store);
    buf_fini(&why);
}
END_TEST

static const struct {
    const char *lines;
    int err;
    const char *where;
} wrong[] = {
    {"add counter a\nadd counter 9\n", ERR_BAD_NAME, "f:2: "},
    {"add counter a\n\nadd column a x\n", ERR_NO_KEY, "f:3: "},
    {"drop counter weibo weibo\n", ERR_NOT_SCHEMA, "f:1: "},
    {"set weibo 1 2\n", ERR_NOT_SCHEMA, "f:1: "},
    {"help\n", ERR_NOT_SCHEMA, "f:1: "},
    {"add counter a\r\nadd column a i primarykey\nadd column a x max=65",
        ERR_BAD_MAX, "f:3: "},
    {"add counter a b c d e f g h i j k l m n o", ERR_BAD_OPTION, "f:1: "},
    {"add counter a\nadd column a i primarykey\nadd column a x\n"
     "add column a m marks=x\n",
        ERR_MARK_NEEDS, "f:4: "},
};

START_TEST(test_wrong)
{
    struct store *store = make_store();
    struct buf why = {0};
    ck_assert_int_eq(load(store, wrong[_i].lines, &why), wrong[_i].err);
    buf_add(&why, "", 1);
    ck_assert_int_eq(
        strncmp(why.data, wrong[_i].where, strlen(wrong[_i].where)), 0);
    ck_assert_ptr_nonnull(strstr(why.data, err_text(wrong[_i].err)));
    store_destroy(&store);
    buf_fini(&why);
}
END_TEST

static int
look(const char *lines, bool is_new, struct buf *why)
{
    struct buf text = {0};
    buf_add_text(&text, lines);
    int err = schema_file_check("f", &text, is_new, why);
    buf_fini(&text);
    return err;
}

/* Where there are no counters yet a look finds what loading would; else only
 * what no counters could make right. */
START_TEST(test_look)
{
    struct buf why = {0};
    ck_assert_int_eq(look(wrong[_i].lines, true, &why), wrong[_i].err);
    buf_add(&why, "", 1);
    ck_assert_int_eq(
        strncmp(why.data, wrong[_i].where, strlen(wrong[_i].where)), 0);
    buf_clear(&why);
    ck_assert_int_eq(look(wrong[_i].lines, false, &why),
        wrong[_i].err == ERR_NO_KEY ? 0 : wrong[_i].err);
    buf_clear(&why);
    for (int is_new = 0; is_new < 2; is_new++) {
        ck_assert_int_eq(look(demo, is_new == 1, &why), 0);
        ck_assert_int_eq(
            look("add counter a\nadd counter a\n", is_new == 1, &why), 0);
    }
    ck_assert_uint_eq(why.len, 0);
    buf_fini(&why);
}
END_TEST

/* What is about a column stands behind it, and is the same again. */
START_TEST(test_kinds)
{
    static const char lines[] =
        "add counter a cold=never\nadd column a ai primarykey\n"
        "add column a x\nadd counter b\nadd column b bi primarykey\n"
        "add column b m marks=1.x unread=um unmarked=none forget=9\n"
        "add column b f follows=x suffix=sf\n";
    struct store *store = make_store();
    struct buf why = {0};
    for (int times = 0; times < 2; times++) {
        ck_assert_int_eq(look(lines, times == 0, &why), 0);
        ck_assert_int_eq(load(store, lines, &why), 0);
        ck_assert_uint_eq(why.len, 0);
    }
    /* what has a name already is named by its whole line */
    ck_assert_int_eq(load(store, "add column b n marks=1.x unread=um", &why),
        ERR_NAME_TAKEN);
    buf_add(&why, "", 1);
    ck_assert_ptr_nonnull(strstr(why.data,
        "\"add column b m marks=1.x unread=um unmarked=none forget=9\""));
    buf_clear(&why);
    ck_assert_int_eq(
        load(store, "add column b f follows=x", &why), ERR_NAME_TAKEN);
    buf_add(&why, "", 1);
    ck_assert_ptr_nonnull(
        strstr(why.data, "\"add column b f suffix=sf follows=x\""));
    store_destroy(&store);
    buf_fini(&why);
}
END_TEST

START_TEST(test_differs)
{
    struct store *store = make_store();
    struct buf why = {0};
    ck_assert_int_eq(load(store, demo, &why), 0);
    ck_assert_int_eq(
        load(store, "add column weibo comment_num hint=8 max=16", &why),
        ERR_NAME_TAKEN);
    ck_assert_uint_eq(weibo(store)->column[0].max_bits, 32);
    buf_clear(&why);
    ck_assert_int_eq(load(store, "add column weibo comment_num max=40", &why),
        ERR_NAME_TAKEN);
    buf_add(&why, "", 1);
    ck_assert_ptr_nonnull(strstr(why.data,
        ", or send \"change column weibo comment_num max=40 "
        "suffix=comment_num\""));
    buf_clear(&why);
    ck_assert_int_eq(
        load(store, "change column weibo comment_num name=n", &why),
        ERR_CHANGE_ONCE);
    store_destroy(&store);
    buf_fini(&why);
}
END_TEST

/* The server's stays, a line says so, and what is behind it is read. */
START_TEST(test_other_hint)
{
    struct store *store = make_store();
    struct buf why = {0}, notes = {0};
    ck_assert_int_eq(load(store, demo, &why), 0);
    ck_assert_int_eq(load_noted(store,
                         "add column weibo weibo_id hint=9 primarykey\n"
                         "add column weibo comment_num hint=8 suffix=cntcm\n"
                         "add column weibo more\n"
                         "change column weibo more max=40 hint=3\n",
                         &notes, &why),
        0);
    ck_assert_uint_eq(weibo(store)->n_columns, 2);
    ck_assert_uint_eq(weibo(store)->key_hint_bits, 64);
    ck_assert_uint_eq(weibo(store)->column[0].hint_bits, 16);
    ck_assert_uint_eq(weibo(store)->column[1].hint_bits, 3);
    ck_assert_uint_eq(weibo(store)->column[1].max_bits, 40);
    buf_add(&notes, "", 1);
    ck_assert_str_eq(notes.data,
        "f:1: only the hint differs, which no number depends on, and the "
        "server's stays: write its line, \"add column weibo weibo_id hint=64 "
        "max=64 default=0 primarykey\"\n"
        "f:2: only the hint differs, which no number depends on, and the "
        "server's stays: write its line, \"add column weibo comment_num "
        "hint=16 max=32 default=0 suffix=cntcm\", or send \"change column "
        "weibo comment_num hint=8\"\n"
        "f:3: the column more was added to weibo, which has others: where "
        "one of them was renamed, drop this one and write the new name "
        "here\n");
    store_destroy(&store);
    buf_fini(&notes);
    buf_fini(&why);
}
END_TEST

START_TEST(test_read)
{
    char path[] = "schema-XXXXXX";
    struct buf text = {0};
    struct buf why = {0};
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(
        write(fd, demo, sizeof demo - 1), (ssize_t)sizeof demo - 1);
    ck_assert_int_eq(schema_file_read(path, &text, &why), 0);
    ck_assert_mem_eq(text.data, demo, sizeof demo - 1);
    ck_assert_uint_eq(text.len, sizeof demo - 1);
    buf_clear(&text);
    ck_assert_int_eq(ftruncate(fd, SCHEMA_FILE_BYTES_MAX + 65536), 0);
    ck_assert_int_eq(schema_file_read(path, &text, &why), ERR_TOO_LARGE);
    ck_assert_uint_gt(why.len, 0);
    close(fd);
    unlink(path);
    buf_clear(&why);
    ck_assert_int_eq(schema_file_read(path, &text, &why), ERR_SYSTEM);
    buf_add(&why, "", 1);
    ck_assert_ptr_nonnull(strstr(why.data, path));
    buf_fini(&text);
    buf_fini(&why);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("schema_file");
    TCase *tcase = tcase_create("schema_file");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_test(tcase, test_loads_twice);
    tcase_add_loop_test(
        tcase, test_wrong, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_loop_test(
        tcase, test_look, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(tcase, test_kinds);
    tcase_add_test(tcase, test_differs);
    tcase_add_test(tcase, test_other_hint);
    tcase_add_test(tcase, test_read);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

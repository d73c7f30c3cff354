/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec: what each command does and answers, what is counted, and what
 * happens when the schema changes while a request waits for the store. */
#include "session/exec.h"

#include "lib/fault_alloc.h"
#include "unit/held_help.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define BAD_FORMAT "CLIENT_ERROR bad command line format\r\n"
#define EXPTIME "CLIENT_ERROR a counter does not expire, send exptime 0\r\n"
#define GONE "CLIENT_ERROR the counter or column has been dropped\r\n"
#define MISUSE                                                                \
    "CLIENT_ERROR this is a counter's name: get, set, add, replace, delete, " \
    "incr and decr take it, see help\r\n"

#define KEY_IS_COUNTER                                                         \
    "CLIENT_ERROR three numbers are an item's, which cannot have a counter's " \
    "name: write COLUMN=NUMBER, see help\r\n"

static const struct exchange items[] = {
    {"get a", "END\r\n"},
    {"set a 7 0 5\r\nhello", "STORED\r\n"},
    {"get a", "VALUE a 7 5\r\nhello\r\nEND\r\n"},
    {"add a 0 0 1\r\nx", "NOT_STORED\r\n"},
    {"add b 0 0 1\r\n1", "STORED\r\n"},
    {"replace c 0 0 1\r\nx", "NOT_STORED\r\n"},
    {"replace b 1 0 2\r\n99", "STORED\r\n"},
    {"append a 0 0 1\r\n!", "STORED\r\n"},
    {"prepend a 0 0 1\r\n>", "STORED\r\n"},
    {"append c 0 0 1\r\n!", "NOT_STORED\r\n"},
    {"get a c b a",
        "VALUE a 7 7\r\n>hello!\r\nVALUE b 1 2\r\n99\r\n"
        "VALUE a 7 7\r\n>hello!\r\nEND\r\n"},
    {"incr b 1", "100\r\n"},
    {"decr b 1", "99\r\n"},
    {"decr b 100", "0\r\n"},
    {"incr a 1",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"},
    {"incr c 1", "NOT_FOUND\r\n"},
    {"cas c 0 0 1 1\r\nx", "NOT_FOUND\r\n"},
    {"touch a 100", "TOUCHED\r\n"},
    {"touch c 100", "NOT_FOUND\r\n"},
    {"gat 100 a c", "VALUE a 7 7\r\n>hello!\r\nEND\r\n"},
    {"gat -1 a", "VALUE a 7 7\r\n>hello!\r\nEND\r\n"},
    {"get a", "END\r\n"},
    {"set a 0 -1 1\r\nx", "STORED\r\n"},
    {"get a", "END\r\n"},
    {"delete b", "DELETED\r\n"},
    {"delete b", "NOT_FOUND\r\n"},
    {"set a 0 0 1 noreply\r\nx", ""},
    {"add a 0 0 1 noreply\r\nx", ""},
    {"incr c 1 noreply", ""},
    {"delete c noreply", ""},
    {"touch a 0 noreply", ""},
    {"get a", "VALUE a 0 1\r\nx\r\nEND\r\n"},
    {"flush_all 0 noreply", ""},
    {"get a", "END\r\n"},
    {"set a 0 0 1\r\nx", "STORED\r\n"},
    {"flush_all", "OK\r\n"},
    {"get a", "END\r\n"},
};

START_TEST(test_items)
{
    struct dialog dialog;
    open_new(&dialog);
    PLAY(&dialog, items);
    close_new(&dialog);
}
END_TEST

/* The cas unique that gets shows is the one that cas takes, once. */
START_TEST(test_item_cas)
{
    struct dialog dialog;
    char said[64];
    unsigned long long cas;
    open_new(&dialog);
    exchange(&dialog, "set a 0 0 1\r\nx", "STORED\r\n");
    dialog_say(&dialog, "gets a\r\n", 8);
    buf_add(&dialog.replies, "", 1);
    ck_assert_int_eq(
        sscanf(dialog.replies.data, "VALUE a 0 1 %llu\r\n", &cas), 1);
    buf_clear(&dialog.replies);
    snprintf(said, sizeof said, "cas a 0 0 1 %llu\r\ny", cas);
    exchange(&dialog, said, "STORED\r\n");
    exchange(&dialog, said, "EXISTS\r\n");
    exchange(&dialog, "get a", "VALUE a 0 1\r\ny\r\nEND\r\n");
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_cas_hits), 1);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_cas_badval), 1);
    close_new(&dialog);
}
END_TEST

static const struct exchange cells[] = {
    {"get 1.cntcm", "VALUE 1.cntcm 0 1\r\n0\r\nEND\r\n"},
    {"gets 1.cntcm", "VALUE 1.cntcm 0 1 1\r\n0\r\nEND\r\n"},
    {"incr 1.cntcm 5", "5\r\n"},
    {"decr 1.cntcm 7", "0\r\n"},
    {"set 1.cntcm 99 0 3\r\n111", "STORED\r\n"},
    {"set {1}.cntrn 0 0 3\r\n222", "STORED\r\n"},
    {"set 1|#|.attitude_num 0 0 3\r\n333", "STORED\r\n"},
    {"get 1.weibo {1}.weibo",
        "VALUE 1.weibo 0 11\r\n111 222 333\r\n"
        "VALUE {1}.weibo 0 11\r\n111 222 333\r\nEND\r\n"},
    {"gets 1.cntrn", "VALUE 1.cntrn 0 3 223\r\n222\r\nEND\r\n"},
    {"cas 1.cntrn 0 0 1 7\r\n5", "EXISTS\r\n"},
    {"cas 1.cntrn 0 0 1 223\r\n5", "STORED\r\n"},
    {"add 1.cntrn 0 0 1\r\n6", "NOT_STORED\r\n"},
    {"add 2.cntrn 0 0 1\r\n6", "STORED\r\n"},
    {"replace 3.cntrn 0 0 1\r\n6", "NOT_STORED\r\n"},
    {"replace 2.cntrn 0 0 1\r\n8", "STORED\r\n"},
    {"delete 2.cntrn", "DELETED\r\n"},
    {"delete 2.cntrn", "NOT_FOUND\r\n"},
    {"incr 2.cntrn 4294967295", "4294967295\r\n"},
    {"incr 2.cntrn 18446744073709551615", "4294967295\r\n"},
    {"set 2.cntrn 0 0 10\r\n4294967296",
        "CLIENT_ERROR value is above the column's max\r\n"},
    {"set 2.cntrn 0 0 2\r\n-1",
        "CLIENT_ERROR value must be an unsigned decimal integer\r\n"},
    {"set 2.cntrn 0 0 0\r\n",
        "CLIENT_ERROR value must be an unsigned decimal integer\r\n"},
    {"append 2.cntrn 0 0 1\r\n1",
        "CLIENT_ERROR a counter takes no append or prepend\r\n"},
    {"set 2.cntrn 0 60 1\r\n1", EXPTIME},
    {"touch 2.cntrn 0", "TOUCHED\r\n"},
    {"touch 2.cntrn 60", EXPTIME},
    {"touch 2.cntrn 0 noreply", ""},
    {"touch 2.cntrn 60 noreply", ""},
    {"gat 0 2.cntrn", "VALUE 2.cntrn 0 10\r\n4294967295\r\nEND\r\n"},
    {"gat 60 a 2.cntrn", EXPTIME},
    {"set 4.weibo 0 0 5\r\n1 2 3", "STORED\r\n"},
    {"add 4.weibo 0 0 5\r\n1 2 3", "NOT_STORED\r\n"},
    {"set 4.weibo 0 0 3\r\n1 2",
        "CLIENT_ERROR this is a counter: send its id and one value a "
        "column\r\n"},
    {"replace 4.weibo 0 0 5\r\n1 2 3",
        "CLIENT_ERROR a whole record takes get, set, add, cas and delete "
        "only\r\n"},
    {"incr 4.weibo 1",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"},
    {"delete 4.weibo", "DELETED\r\n"},
    {"flush_all", "OK\r\n"},
    {"get 1.cntcm a 7.cntcm",
        "VALUE 1.cntcm 0 3\r\n111\r\nVALUE 7.cntcm 0 1\r\n0\r\nEND\r\n"},
    {"set 1.cntcm 0 0 1 noreply\r\n7", ""},
    {"set 1.cntcm 0 0 1 noreply\r\nx", ""},
    {"incr 1.cntcm 1 noreply", ""},
    {"get 1.cntcm", "VALUE 1.cntcm 0 1\r\n8\r\nEND\r\n"},
    /* options */
    {"get 1.oa 1.opt", "END\r\n"},
    {"touch 1.oa 60", "NOT_FOUND\r\n"},
    {"cas 1.oa 0 0 1 6\r\n9", "NOT_FOUND\r\n"},
    {"incr 1.oa 250", "255\r\n"},
    {"incr 1.oa 1", "CLIENT_ERROR increment would pass the column's max\r\n"},
    {"gat 60 1.oa", "VALUE 1.oa 4 3\r\n255\r\nEND\r\n"},
    {"set 1.oa 0 60 1\r\n5", "STORED\r\n"},
    {"get 1.oa", "END\r\n"},
};

START_TEST(test_cells)
{
    struct dialog dialog;
    open_new(&dialog);
    declare(&dialog);
    PLAY(&dialog, cells);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_cell_saturated), 1);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_noreply_refused), 2);
    close_new(&dialog);
}
END_TEST

static const struct exchange dialect[] = {
    {"set weibo 1234 111 222 333", "STORED\r\n"},
    {"get weibo 1234", "VALUE 1234 0 11\r\n111 222 333\r\nEND\r\n"},
    {"get weibo 1234.cntcm", "VALUE 1234.cntcm 0 3\r\n111\r\nEND\r\n"},
    {"incr weibo 1234.cntcm", "112\r\n"},
    {"incr weibo 1234.cntcm 5", "117\r\n"},
    {"incr weibo 1234 1 0 1", "118 222 334\r\n"},
    {"decr weibo 1234 200 1 1", "0 221 333\r\n"},
    {"decr weibo 1234.cntrn", "220\r\n"},
    {"set weibo {1234}.cntan 5", "STORED\r\n"},
    {"add weibo 1234 1 1 1", "NOT_STORED\r\n"},
    {"replace weibo 1234 1 2 3", "STORED\r\n"},
    {"get weibo 1234 1.cntcm {1234}.cntrn 2",
        "VALUE 1234 0 5\r\n1 2 3\r\nVALUE 1.cntcm 0 1\r\n0\r\n"
        "VALUE {1234}.cntrn 0 1\r\n2\r\nVALUE 2 0 5\r\n0 0 0\r\nEND\r\n"},
    {"delete weibo 1234", "DELETED\r\n"},
    {"delete weibo 1234", "NOT_FOUND\r\n"},
    {"delete weibo 1234 5", BAD_FORMAT},
    {"get weibo 1234", "VALUE 1234 0 5\r\n0 0 0\r\nEND\r\n"},
    {"set weibo 1 111 3\r\nabc", KEY_IS_COUNTER},
    {"set weibo 1 111 3 noreply\r\nabc", ""},
    {"set weibo 1 1 2 3 4",
        "CLIENT_ERROR this is a counter: send its id and one value a "
        "column\r\n"},
    {"set weibo 7 cntan=3 comment_num=1", "STORED\r\n"},
    {"incr weibo 7 cntan=1 cntrn=2", "4 2\r\n"},
    {"add weibo 7 cntrn=1", "NOT_STORED\r\n"},
    {"add weibo 8 cntrn=1", "STORED\r\n"},
    {"replace weibo 8 cntan=0 cntrn=0", "STORED\r\n"},
    {"replace weibo 8 cntan=1", "NOT_STORED\r\n"},
    {"set weibo 7 cntan=3 cntan=3",
        "CLIENT_ERROR a column is named twice\r\n"},
    {"get weibo 7", "VALUE 7 0 5\r\n1 2 4\r\nEND\r\n"},
    {"delete weibo 7", "DELETED\r\n"},
    {"set weibo 1 1 2 x",
        "CLIENT_ERROR value must be an unsigned decimal integer\r\n"},
    {"set weibo 1 1 2 4294967296",
        "CLIENT_ERROR value is above the column's max\r\n"},
    {"incr weibo 1 1 1 x", "CLIENT_ERROR invalid numeric delta argument\r\n"},
    {"incr weibo 1",
        "CLIENT_ERROR this is a counter: send its id and one value a "
        "column\r\n"},
    {"get weibo",
        "CLIENT_ERROR an id is a decimal number below 2^64, no leading "
        "zeros\r\n"},
    {"get weibo 007",
        "CLIENT_ERROR an id is a decimal number below 2^64, no leading "
        "zeros\r\n"},
    {"get weibo 7.oa", "CLIENT_ERROR no such column in that counter\r\n"},
    {"incr weibo 7.nosuch", "CLIENT_ERROR no such column in that counter\r\n"},
    {"gets weibo 1", MISUSE},
    {"touch weibo 1 noreply", ""},
    {"set weibo 1 9 9 9 noreply", ""},
    {"get weibo 1", "VALUE 1 0 5\r\n9 9 9\r\nEND\r\n"},
    {"show counters",
        "COUNTER weibo columns=3 records=1\r\n"
        "COUNTER opt columns=1 records=0\r\nEND\r\n"},
    {"show counter opt",
        "add counter opt absent=miss overflow=error exptime=ignore\r\n"
        "add column opt opt_id hint=64 max=64 default=0 primarykey\r\n"
        "add column opt opt_a hint=4 max=8 default=5 suffix=oa flags=4\r\n"
        "END\r\n"},
    {"show counter nosuch", "CLIENT_ERROR no such counter\r\n"},
    {"add counter weibo", "STORED\r\n"},
    {"add counter weibo absent=miss",
        "CLIENT_ERROR that name or suffix is already in use\r\n"},
    {"add counter item", "STORED\r\n"},
    {"get item 1", "CLIENT_ERROR the counter has no value column yet\r\n"},
    {"get 1.item", "END\r\n"},
    {"set 1.item 0 0 1\r\n1",
        "CLIENT_ERROR the counter has no value column yet\r\n"},
    {"drop counter item other",
        "CLIENT_ERROR write the name twice to confirm\r\n"},
    {"drop counter item item", "DELETED\r\n"},
    {"set item 0 0 1\r\n1", "STORED\r\n"},
    {"add counter item",
        "CLIENT_ERROR an item of that name exists, delete it first\r\n"},
    {"drop column weibo repost_num repost_num", "DELETED\r\n"},
    {"get 1.weibo 1.cntrn", "VALUE 1.weibo 0 3\r\n9 9\r\nEND\r\n"},
    {"add column weibo again suffix=cntrn", "STORED\r\n"},
    {"get 1.weibo", "VALUE 1.weibo 0 5\r\n9 9 0\r\nEND\r\n"},
    {"add column weibo a b c d e f g h i j k l m n",
        "CLIENT_ERROR unknown, repeated or malformed option\r\n"},
    {"version", "VERSION test\r\n"},
    {"stats settings x", "STAT args settings x\r\nEND\r\n"},
    {"verbosity 2", "OK\r\n"},
    {"verbosity 1 noreply", ""},
};

START_TEST(test_dialect)
{
    struct dialog dialog;
    open_new(&dialog);
    declare(&dialog);
    PLAY(&dialog, dialect);
    ck_assert_uint_eq(dialog.verbosity, 1);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_dialect_misfits), 4);
    exchange(&dialog, "verbosity 4294967295", "OK\r\n");
    ck_assert_uint_eq(dialog.verbosity, INT8_MAX);
    close_new(&dialog);
}
END_TEST

/* A counter of 16 columns of 64 bits: the longest replies there are. */
START_TEST(test_wide_records)
{
    static const char number[] = " 18446744073709551615";
    char said[512] = "set w 18446744073709551615";
    char answer[512] = "VALUE 18446744073709551615 0 335\r\n";
    struct dialog dialog;
    open_new(&dialog);
    exchange(&dialog, "add counter w", "STORED\r\n");
    exchange(&dialog, "add column w w_id primarykey", "STORED\r\n");
    for (int i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        char line[64];
        snprintf(line, sizeof line, "add column w c%d max=64", i);
        exchange(&dialog, line, "STORED\r\n");
        strcat(said, number);
        strcat(answer, i == 0 ? number + 1 : number);
    }
    exchange(&dialog, said, "STORED\r\n");
    strcat(answer, "\r\nEND\r\n");
    exchange(&dialog, "get w 18446744073709551615", answer);
    exchange(&dialog, "get w 1.c0 2.c15",
        "VALUE 1.c0 0 1\r\n0\r\nVALUE 2.c15 0 1\r\n0\r\nEND\r\n");
    close_new(&dialog);
}
END_TEST

/* Help is answered, and with END. */
START_TEST(test_help)
{
    struct dialog dialog;
    open_new(&dialog);
    dialog_say(&dialog, "help\r\n", 6);
    ck_assert_uint_gt(dialog.replies.len, 100);
    ck_assert_mem_eq(
        dialog.replies.data + dialog.replies.len - 7, "\r\nEND\r\n", 7);
    close_new(&dialog);
}
END_TEST

START_TEST(test_too_large)
{
    struct store *store = small_store(NULL);
    struct dialog dialog;
    dialog_open(&dialog, store, 10);
    declare(&dialog);
    exchange(&dialog, "set a 0 0 10\r\n0123456789", "STORED\r\n");
    exchange(&dialog, "add a 0 0 11\r\n0123456789a",
        "SERVER_ERROR object too large for cache\r\n");
    exchange(&dialog, "get a", "VALUE a 0 10\r\n0123456789\r\nEND\r\n");
    exchange(&dialog, "set a 0 0 11\r\n0123456789a",
        "SERVER_ERROR object too large for cache\r\n");
    exchange(&dialog, "get a", "END\r\n");
    exchange(&dialog, "set 1.cntcm 0 0 11\r\n00000000001",
        "CLIENT_ERROR value must be an unsigned decimal integer\r\n");
    exchange(&dialog, "set 1.cntcm 0 0 10\r\n0000000001", "STORED\r\n");
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_store_too_large), 2);
    close_new(&dialog);
}
END_TEST

/* While the items get no memory at all. */
START_TEST(test_items_out_of_memory)
{
    struct fault_alloc fault;
    struct dialog dialog;
    fault_alloc_init(&fault);
    dialog_open(&dialog, small_store(&fault.alloc), SMALL_STORE_ITEM_BYTES);
    fault_alloc_arm(&fault, SIZE_MAX / 2);
    exchange(&dialog, "set a 0 0 1\r\nx",
        "SERVER_ERROR out of memory storing object\r\n");
    exchange(&dialog, "get a", "END\r\n");
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_store_no_memory), 1);
    fault_alloc_arm(&fault, 0);
    exchange(&dialog, "set a 0 0 1\r\n9", "STORED\r\n");
    fault_alloc_arm(&fault, SIZE_MAX / 2);
    /* what is held already has room for it */
    exchange(&dialog, "append a 0 0 4\r\n0000", "STORED\r\n");
    exchange(&dialog, "get a", "VALUE a 0 5\r\n90000\r\nEND\r\n");
    fault_alloc_arm(&fault, 0);
    close_new(&dialog);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

/* Says a line whose call is held; meanwhile the other says one. */
static void
overtake(struct held_dialog *held, const char *line, const char *other,
    const char *answer)
{
    struct dialog *dialog = &held->dialog;
    dialog_add(dialog, line, strlen(line));
    dialog_add(dialog, "\r\n", 2);
    ck_assert_int_eq(dialog_step(dialog), SESSION_PARKED);
    ck_assert_uint_eq(dialog->replies.len, 0);
    exchange(&held->other, other, "DELETED\r\n");
    ck_assert_uint_eq(hold_release(held->hold), 1);
    dialog_wait(dialog);
    ck_assert_int_eq(dialog_step(dialog), SESSION_READY);
    expect_replies(dialog, line, answer);
}

START_TEST(test_dropped_while_parked)
{
    struct held_dialog held;
    open_held(&held);
    overtake(&held, "incr 1.cntcm 1",
        "drop column weibo comment_num comment_num", GONE);
    overtake(&held, "get 1.cntrn 1.weibo 1.cntan",
        "drop column weibo repost_num repost_num",
        "VALUE 1.weibo 0 2\r\n13\r\nVALUE 1.cntan 0 2\r\n13\r\nEND\r\n");
    overtake(
        &held, "get weibo 1 1.cntan", "drop counter weibo weibo", "END\r\n");
    close_held(&held);
}
END_TEST

/* What was dropped and made again while a change waited is not touched. */
START_TEST(test_made_again_while_parked)
{
    struct held_dialog held;
    open_held(&held);
    struct dialog *dialog = &held.dialog;
    dialog_add(dialog, "set 1.cntcm 0 0 2\r\n99\r\nget 1.cntcm\r\n", 36);
    ck_assert_int_eq(dialog_step(dialog), SESSION_PARKED);
    exchange(&held.other, "drop counter weibo weibo", "DELETED\r\n");
    for (size_t i = 0; i < 3; i++) {
        exchange(&held.other, declarations[i].said, "STORED\r\n");
    }
    exchange(&held.other, "get 1.cntcm", "VALUE 1.cntcm 0 1\r\n0\r\nEND\r\n");
    hold_end(held.hold);
    ck_assert_uint_eq(hold_release(held.hold), 1);
    dialog_wait(dialog);
    dialog_say(dialog, "", 0);
    expect_replies(dialog, "set", GONE "VALUE 1.cntcm 0 1\r\n0\r\nEND\r\n");
    close_held(&held);
}
END_TEST

/* The later slices of a multi-get whose counter goes meanwhile. */
START_TEST(test_dropped_between_slices)
{
    struct held_dialog held;
    struct buf said = {0};
    open_held(&held);
    struct dialog *dialog = &held.dialog;
    buf_add_text(&said, "get weibo");
    for (int i = 0; i < 3 * EXEC_SLICE_KEYS_MAX; i++) {
        buf_add_text(&said, " 1.cntcm");
    }
    buf_add_text(&said, "\r\n");
    dialog_add(dialog, said.data, said.len);
    ck_assert_int_eq(dialog_step(dialog), SESSION_PARKED);
    ck_assert_uint_eq(hold_release(held.hold), 1);
    dialog_wait(dialog);
    exchange(&held.other, "drop counter weibo weibo", "DELETED\r\n");
    ck_assert_int_eq(dialog_step(dialog), SESSION_READY);
    ck_assert_uint_eq(dialog->replies.len,
        EXEC_SLICE_KEYS_MAX * strlen("VALUE 1.cntcm 0 2\r\n11\r\n") + 5);
    buf_fini(&said);
    close_held(&held);
}
END_TEST

/* One thread drops and makes a counter, the other talks to it: commands that
 * were read under one schema may meet the next. */
struct talker {
    struct store *store;
    atomic_bool done;
};

static void *
talk(void *arg)
{
    static const char said[] =
        "set c 1 5\r\nincr c 1.n\r\nget c 1\r\nget c 1.n 1\r\ndelete c 1\r\n"
        "set 1.n 0 0 1\r\n5\r\nget 1.n 1.c\r\nshow counter c\r\n";
    struct talker *talker = arg;
    struct dialog dialog;
    dialog_open(&dialog, talker->store, SMALL_STORE_ITEM_BYTES);
    /* relaxed: an end that is seen a round later is as good */
    while (!atomic_load_explicit(&talker->done, memory_order_relaxed)) {
        dialog_say(&dialog, said, sizeof said - 1);
        ck_assert(!dialog.is_closed);
        buf_clear(&dialog.replies);
    }
    dialog_close(&dialog);
    return NULL;
}

START_TEST(test_schema_changes_under_talk)
{
    enum { ROUNDS = 300, TALKERS = 2 };
    struct talker talker = {.store = small_store(NULL)};
    pthread_t thread[TALKERS];
    struct dialog dialog;
    dialog_open(&dialog, talker.store, SMALL_STORE_ITEM_BYTES);
    for (int i = 0; i < TALKERS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, talk, &talker), 0);
    }
    for (unsigned i = 0; i < long_part(ROUNDS); i++) {
        exchange(&dialog, "add counter c", "STORED\r\n");
        exchange(&dialog, "add column c c_id primarykey", "STORED\r\n");
        exchange(&dialog, "add column c n max=32", "STORED\r\n");
        exchange(&dialog, "drop column c n n", "DELETED\r\n");
        exchange(&dialog, "drop counter c c", "DELETED\r\n");
    }
    atomic_store(&talker.done, true);
    for (int i = 0; i < TALKERS; i++) {
        pthread_join(thread[i], NULL);
    }
    close_new(&dialog);
}
END_TEST

static void
ignore_wake(struct session *session)
{
    (void)session; /* hold_release returns when all are answered */
}

/* Jobs are kept for reuse, up to a limit. Closing a session whose answer has
 * come but was not looked at gives its job back too. */
START_TEST(test_jobs_are_kept)
{
    enum { SESSIONS = EXECUTOR_JOBS_KEPT + 10 };
    static const char line[] = "incr 1.cntcm 1\r\n";
    struct session session[SESSIONS];
    struct held_dialog held;
    struct buf out = {0};
    open_held(&held);
    struct executor *executor = &held.dialog.executor;
    for (int round = 0; round < 2; round++) {
        qsbr_online(held.hold->qsbr, &held.dialog.reader);
        for (int i = 0; i < SESSIONS; i++) {
            unsigned budget = 10;
            size_t consumed;
            session_init(&session[i], executor, ignore_wake);
            ck_assert_int_eq(session_run(&session[i], line, sizeof line - 1,
                                 DIALOG_MARK, &budget, &out, &consumed),
                SESSION_PARKED);
            ck_assert_uint_eq(consumed, 0);
        }
        qsbr_offline(&held.dialog.reader);
        ck_assert_uint_eq(executor->n_free_jobs, 0);
        ck_assert_uint_eq(hold_release(held.hold), SESSIONS);
        for (int i = 0; i < SESSIONS; i++) {
            session_wake(&session[i]);
            session_fini(&session[i]);
        }
        ck_assert_uint_eq(executor->n_free_jobs, EXECUTOR_JOBS_KEPT);
    }
    ck_assert_uint_eq(out.len, 0);
    buf_fini(&out);
    close_held(&held);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_items, test_item_cas, test_cells,
        test_dialect, test_wide_records, test_help, test_too_large,
        test_items_out_of_memory, test_dropped_while_parked,
        test_made_again_while_parked, test_dropped_between_slices,
        test_schema_changes_under_talk, test_jobs_are_kept};
    return run_tests("exec", tests, COUNT_OF(tests));
}

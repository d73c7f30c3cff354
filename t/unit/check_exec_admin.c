/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_admin: what a connection has to do with commands of
 * administration, and dumps in pieces, of items and of a counter that grows
 * meanwhile. */
#include "lib/hold.h"
#include "unit/net_help.h"

#include <stdio.h>

/* What the server around the session says. */
static const char *line_said;
static struct text_admin command_seen;

static const char *
note_command(struct admin *admin, const struct text_admin *command)
{
    (void)admin;
    command_seen = *command;
    return line_said;
}

static void
open_admin(struct dialog *dialog)
{
    open_new(dialog);
    dialog->admin.command_fn = note_command;
    line_said = NULL;
}

START_TEST(test_replies)
{
    struct dialog dialog;
    open_new(&dialog);
    exchange(&dialog, "slabs automove 1", "ERROR\r\n"); /* none are taken */
    close_new(&dialog);
    open_admin(&dialog);
    line_said = "SAID";
    exchange(&dialog, "slabs automove 1", "SAID\r\n");
    ck_assert_str_eq(command_seen.setting[0].value, "1");
    exchange(&dialog, "lru_crawler metadump all", "SAID\r\n");
    exchange(&dialog, "slabs automove 2 noreply", "");
    ck_assert_str_eq(command_seen.setting[0].value, "2");
    line_said = NULL;
    dialog_say(&dialog, "shutdown\r\nversion\r\n", 19);
    ck_assert(dialog.is_closed);
    expect_replies(&dialog, "shutdown", "");
    close_new(&dialog);
}
END_TEST

START_TEST(test_not_behind_others)
{
    static const char said[] = "version\r\nlru_crawler metadump all\r\n"
                               "version\r\n";
    struct dialog dialog;
    open_admin(&dialog);
    dialog_say(&dialog, said, sizeof said - 1);
    expect_replies(&dialog, said,
        "VERSION test\r\n"
        "ERROR cannot pipeline other commands before metadump\r\n"
        "VERSION test\r\n");
    exchange(&dialog, "lru_crawler metadump all\r\nversion",
        "OK\r\nEND\r\nVERSION test\r\n");
    close_new(&dialog);
}
END_TEST

START_TEST(test_keys)
{
    struct dialog dialog;
    open_admin(&dialog);
    exchange(&dialog, "set a\x01 0 0 1\r\nx", "STORED\r\n");
    exchange(&dialog, "lru_crawler mgdump all", "OK\r\nmg YQE= b\r\nEN\r\n");
    exchange(&dialog, "delete a\x01", "DELETED\r\n");
    exchange(&dialog, "set a%~\xc3 3 100 1\r\nx", "STORED\r\n");
    exchange(&dialog, "lru_crawler mgdump all", "OK\r\nmg a%~\xc3\r\nEN\r\n");
    exchange(&dialog, "lru_crawler mgdump 2", "OK\r\nEN\r\n");
    dialog_say(&dialog, "lru_crawler metadump all\r\n", 26);
    buf_add(&dialog.replies, "", 1);
    ck_assert_ptr_nonnull(
        strstr(dialog.replies.data, "OK\r\nkey=a%25~%C3 exp="));
    ck_assert_ptr_nonnull(strstr(dialog.replies.data, " fetch=no cls=1 "));
    ck_assert_ptr_nonnull(strstr(dialog.replies.data, " flags=3 \nEND\r\n"));
    close_new(&dialog);
}
END_TEST

/* Every item once in the replies to a dump. */
static void
expect_items(struct dialog *dialog, int n)
{
    bool *seen = calloc((size_t)n, sizeof *seen);
    ck_assert_ptr_nonnull(seen);
    buf_add(&dialog->replies, "", 1);
    const char *at = dialog->replies.data;
    ck_assert_int_eq(strncmp(at, "OK\r\n", 4), 0);
    at += 4;
    for (int i = 0; i < n; i++) {
        char *end;
        ck_assert_int_eq(strncmp(at, "mg k", 4), 0);
        long k = strtol(at + 4, &end, 10);
        ck_assert_int_lt(k, n);
        ck_assert(!seen[k]);
        seen[k] = true;
        at = end + 2;
    }
    ck_assert_str_eq(at, "EN\r\nVERSION test\r\n");
    buf_clear(&dialog->replies);
    free(seen);
}

/* However small the reply buffer or the budget is: every item once, and no
 * call replies much more than the mark. */
START_TEST(test_pieces)
{
    enum { ITEMS = 2000, MARK = 512, PIECE_MAX = 64 * 4 * 10 };
    struct dialog dialog;
    char line[64];
    open_admin(&dialog);
    for (int i = 0; i < ITEMS; i++) {
        int n =
            snprintf(line, sizeof line, "set k%d 0 0 1 noreply\r\nx\r\n", i);
        dialog_say(&dialog, line, (size_t)n);
    }
    dialog.n_full = 0;
    dialog.n_yield = 0;
    dialog.mark = MARK;
    dialog.budget = ITEMS;
    dialog_say(&dialog, "lru_crawler mgdump all\r\nversion\r\n", 33);
    ck_assert_uint_ge(dialog.n_full, ITEMS * 6 / (MARK + PIECE_MAX));
    ck_assert_uint_le(dialog.out_bytes_max, MARK + PIECE_MAX);
    expect_items(&dialog, ITEMS);
    dialog.mark = DIALOG_MARK;
    dialog.budget = 1;
    dialog_say(&dialog, "lru_crawler mgdump all\r\nversion\r\n", 33);
    ck_assert_uint_ge(dialog.n_yield, ITEMS / 256);
    expect_items(&dialog, ITEMS);
    close_new(&dialog);
}
END_TEST

static void
add_up(void *context, const char *name, size_t len,
    const struct prefix_counts *counts)
{
    struct prefix_counts *sum = context;
    ck_assert_int_eq(memcmp(name, "p", len), 0);
    *sum = *counts;
}

START_TEST(test_prefixes)
{
    struct dialog dialog;
    struct prefixes prefixes;
    struct prefix_counts sum = {0};
    open_admin(&dialog);
    prefixes_init(&prefixes, ':', false);
    dialog.admin.prefixes = &prefixes;
    exchange(&dialog, "set p:1 0 0 1\r\nx", "STORED\r\n");
    prefixes_switch(&prefixes, true);
    exchange(&dialog, "set p:2 0 0 1\r\nx", "STORED\r\n");
    exchange(&dialog, "add p:2 0 0 1\r\nx", "NOT_STORED\r\n");
    exchange(&dialog, "get p:1 p:3", "VALUE p:1 0 1\r\nx\r\nEND\r\n");
    exchange(&dialog, "gat 0 p:1", "VALUE p:1 0 1\r\nx\r\nEND\r\n");
    exchange(&dialog, "delete p:3", "NOT_FOUND\r\n");
    exchange(&dialog, "incr p:1 1",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    prefixes_switch(&prefixes, false);
    exchange(&dialog, "get p:1", "VALUE p:1 0 1\r\nx\r\nEND\r\n");
    prefixes_each(&prefixes, add_up, &sum);
    ck_assert_uint_eq(sum.get, 3);
    ck_assert_uint_eq(sum.hit, 2);
    ck_assert_uint_eq(sum.set, 2);
    ck_assert_uint_eq(sum.del, 1);
    close_new(&dialog);
    prefixes_fini(&prefixes);
}
END_TEST

START_TEST(test_clock)
{
    struct dialog dialog;
    struct clock_shift clock = {0};
    open_admin(&dialog);
    dialog.admin.clock = &clock;
    clock_shift_stop(&clock);
    exchange(&dialog, "set a 0 10 1\r\nx", "STORED\r\n");
    exchange(&dialog, "set b 0 20 1\r\nx", "STORED\r\n");
    clock_shift_by(&clock, 9);
    exchange(&dialog, "touch a 2", "TOUCHED\r\n");
    clock_shift_by(&clock, 1);
    exchange(&dialog, "get a", "VALUE a 0 1\r\nx\r\nEND\r\n");
    clock_shift_by(&clock, 1);
    exchange(&dialog, "get a b", "VALUE b 0 1\r\nx\r\nEND\r\n");
    exchange(&dialog, "flush_all 5", "OK\r\n");
    clock_shift_by(&clock, 4);
    exchange(&dialog, "get b", "VALUE b 0 1\r\nx\r\nEND\r\n");
    clock_shift_by(&clock, 1);
    exchange(&dialog, "get b", "END\r\n");
    close_new(&dialog);
}
END_TEST

/* What is in the replies; nothing where it is not there. */
static const char *
place_of(const struct dialog *dialog, const char *text)
{
    const char *at = strstr(dialog->replies.data, text);
    ck_assert_msg(at != NULL, "no %s", text);
    return at;
}

/* Where a counter with a maxjump grows while it is dumped: a line that says the
 * largest id comes before each record that is above the last one. */
START_TEST(test_largest)
{
    enum { RECORDS = 2000, RANGE = 100 };
    const struct store_config config = {.shards = SMALL_STORE_SHARDS,
        .hot_bytes = SMALL_STORE_HOT_BYTES,
        .dump_range_records = RANGE,
        .items = {.limit_bytes = SMALL_STORE_BYTES,
            .item_bytes_max = SMALL_STORE_ITEM_BYTES}};
    struct dialog reader, writer;
    struct store *store;
    char line[64];
    ck_assert_int_eq(store_create(&config, &store), 0);
    dialog_open(&writer, store, SMALL_STORE_ITEM_BYTES);
    dialog_open(&reader, store, SMALL_STORE_ITEM_BYTES);
    exchange(&writer, "add counter j maxjump=3000", "STORED\r\n");
    exchange(&writer, "add column j id primarykey", "STORED\r\n");
    exchange(&writer, "add column j jx", "STORED\r\n");
    for (int i = 0; i < RECORDS; i++) {
        int n = snprintf(line, sizeof line, "incr %d.jx 1 noreply\r\n", i);
        dialog_say(&writer, line, (size_t)n);
    }
    dialog_add(&reader, "dump counter j\r\n", 16);
    ck_assert_int_eq(dialog_step(&reader), SESSION_PARKED);
    dialog_wait(&reader); /* it has a piece now */
    exchange(&writer, "incr 4000.jx 1", "1\r\n");
    exchange(&writer, "incr 7000.jx 1", "1\r\n");
    exchange(&writer, "delete 4000.jx", "DELETED\r\n");
    dialog_say(&reader, "", 0);
    buf_add(&reader.replies, "", 1);
    const char *first =
        place_of(&reader, "add counter j maxjump=3000 largest=1999\r\n");
    const char *second =
        place_of(&reader, "add counter j maxjump=3000 largest=7000\r\n");
    ck_assert_ptr_eq(first, reader.replies.data);
    ck_assert(place_of(&reader, "set j 0 1\r\n") < second);
    ck_assert(second < place_of(&reader, "set j 7000 1\r\nEND\r\n"));
    ck_assert_ptr_null(strstr(second + 1, "add"));
    dialog_close(&reader);
    dialog_close(&writer);
    store_destroy(&store);
}
END_TEST

START_TEST(test_flush_times)
{
    enum { STARTED_S = 1700000000 };
    static const struct {
        const char *said;
        bool forgets;
    } times[] = {{"flush_all 2592001", false}, {"flush_all 1699999000", false},
        {"flush_all 1699999939", false}, {"flush_all 1699999940", true},
        {"flush_all 1700000000", true}, {"flush_all 1700000090", true},
        {"flush_all 1700000110", false}, {"flush_all 2147483647", false},
        {"flush_all 2592000", false}, {"flush_all -1", true},
        {"flush_all 0", true}, {"flush_all", true}};
    struct dialog dialog;
    struct clock_shift clock = {0};
    open_admin(&dialog);
    dialog.admin.clock = &clock;
    dialog.admin.started_unix_s = STARTED_S;
    clock_shift_stop(&clock);
    /* 100 seconds behind the start, to a second */
    clock.anchor_ns =
        (STARTED_S + 100 - (int64_t)clock_shifted_s(&clock)) * 1000000000;
    for (unsigned i = 0; i < COUNT_OF(times); i++) {
        exchange(&dialog, "set a 0 0 1\r\nx", "STORED\r\n");
        exchange(&dialog, times[i].said, "OK\r\n");
        exchange(&dialog, "get a",
            times[i].forgets ? "END\r\n" : "VALUE a 0 1\r\nx\r\nEND\r\n");
    }
    /* at a time to come; and a time before the start puts it off for good */
    exchange(&dialog, "set a 0 0 1\r\nx", "STORED\r\n");
    exchange(&dialog, "flush_all 1700000150", "OK\r\n");
    clock_shift_by(&clock, 40);
    exchange(&dialog, "get a", "VALUE a 0 1\r\nx\r\nEND\r\n");
    exchange(&dialog, "flush_all 2592001", "OK\r\n");
    clock_shift_by(&clock, 40);
    exchange(&dialog, "get a", "VALUE a 0 1\r\nx\r\nEND\r\n");
    exchange(&dialog, "flush_all 1700000200", "OK\r\n");
    clock_shift_by(&clock, 40);
    exchange(&dialog, "get a", "END\r\n");
    close_new(&dialog);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_replies, test_not_behind_others,
        test_keys, test_pieces, test_prefixes, test_clock, test_largest,
        test_flush_times};
    return run_tests("exec_admin", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/dialect: which lines are dialect and which memcached's, and what the
 * former mean. */
#include "proto/dialect.h"

#include "unit/proto_help.h"

#include <stdbool.h>

#define SHOW_USAGE                                                            \
    "ERROR \"CLIENT_ERROR usage: show counters, show counter NAME, or show "  \
    "handovers\""
#define HANDOVER_USAGE                                                        \
    "ERROR \"CLIENT_ERROR usage: handover RULE to HOST:PORT, or handover "    \
    "RULE here\""
#define FEED_USAGE "ERROR \"CLIENT_ERROR usage: feed on, or feed off\""
#define REPLICAOF_USAGE                                                       \
    "ERROR \"CLIENT_ERROR usage: replicaof HOST:PORT, or replicaof no one\""
#define FAILOVER_USAGE "ERROR \"CLIENT_ERROR usage: failover [NODE] [force]\""
#define WAIT_USAGE "ERROR \"CLIENT_ERROR usage: wait REPLICAS MILLISECONDS\""
#define NUMBERS_USAGE "ERROR \"CLIENT_ERROR usage: numbers NAME HIGHEST BITS\""
#define SEAL_USAGE "ERROR \"CLIENT_ERROR usage: seal COUNTER all\""
#define DROP_USAGE                                                            \
    "ERROR \"CLIENT_ERROR usage: drop counter NAME NAME, drop column "        \
    "COUNTER NAME NAME, or drop producer NAME\""

/* A line without its end, and the request as say_request writes it; NULL:
 * memcached's grammar applies. */
struct row {
    const char *line;
    const char *request;
};

static const struct row edits[] = {
    {"add counter weibo", "SCHEMA_EDIT edit=add counter words=[ weibo]"},
    {"add  counter   x", "SCHEMA_EDIT edit=add counter words=[   x]"},
    {"add counter", "SCHEMA_EDIT edit=add counter"},
    {"add counter x absent=miss",
        "SCHEMA_EDIT edit=add counter words=[ x absent=miss]"},
    {"add counter 0 0", "SCHEMA_EDIT edit=add counter words=[ 0 0]"},
    {"add counter 0 0 x", "SCHEMA_EDIT edit=add counter words=[ 0 0 x]"},
    {"add column weibo n hint=1",
        "SCHEMA_EDIT edit=add column words=[ weibo n hint=1]"},
    {"drop counter weibo weibo",
        "SCHEMA_EDIT edit=drop counter words=[ weibo weibo]"},
    {"drop column weibo a a",
        "SCHEMA_EDIT edit=drop column words=[ weibo a a]"},
    {"drop counter 0 0 5", "SCHEMA_EDIT edit=drop counter words=[ 0 0 5]"},
    {"drop counter", "SCHEMA_EDIT edit=drop counter"},
    {"drop", DROP_USAGE},
    {"drop counters x x", DROP_USAGE},
    {"drop weibo weibo", DROP_USAGE},
    {"drop producer app-1", "DROP_PRODUCER key=[app-1]"},
    {"drop  producer  x ", "DROP_PRODUCER key=[x]"},
    {"drop producer", DROP_USAGE},
    {"drop producer a a", DROP_USAGE},
    {"drop producers a", DROP_USAGE},
    /* memcached's add of the keys "counter" and "column" */
    {"add counter 0 0 5", NULL},
    {"add counter 1 -1 5 noreply", NULL},
    {"add column 0 0 5", NULL},
    {"add counter 0 1.5 9", NULL},
    {"add counter 0 NaN 9 noreply", NULL},
    {"add column x y 5", NULL},
    {"add column 1.5 -1 5 more", NULL},
    {"add counter x 0 5", NULL},
    {"add counter x a=0 5", "SCHEMA_EDIT edit=add counter words=[ x a=0 5]"},
    {"add column x y primarykey",
        "SCHEMA_EDIT edit=add column words=[ x y primarykey]"},
    {"add column 0 0 1.5", "SCHEMA_EDIT edit=add column words=[ 0 0 1.5]"},
    {"add counters x", NULL},
    {"add a 0 0 1", NULL},
    {"add", NULL},
    {"set counter 0 0 5", NULL},
    {"delete counter", NULL},
};

static const struct row shows[] = {
    {"show counters", "SHOW_COUNTERS"},
    {"show  counters  ", "SHOW_COUNTERS"},
    {"show counter weibo", "SHOW_COUNTER key=[weibo]"},
    {"show counter nosuch", "SHOW_COUNTER key=[nosuch]"},
    {"show", SHOW_USAGE},
    {"show counters x", SHOW_USAGE},
    {"show counter", SHOW_USAGE},
    {"checkpoint", "CHECKPOINT"},
    {"checkpoint now", "ERROR \"CLIENT_ERROR usage: checkpoint\""},
    {"seal weibo all", "SEAL key=[weibo]"},
    {"seal nosuch all", "SEAL key=[nosuch]"},
    {"seal", SEAL_USAGE},
    {"seal weibo", SEAL_USAGE},
    {"seal weibo some", SEAL_USAGE},
    {"seal weibo all x", SEAL_USAGE},
    {"dump numbers", "DUMP_NUMBERS"},
    {"dump numbers 1",
        "ERROR \"CLIENT_ERROR usage: dump counter NAME [FIRST LAST] "
        "[of RULE]\""},
    {"numbers app-1 9 3ff", "NUMBERS key=[app-1] words=[ 9 3ff]"},
    {"numbers a/b 9 3ff", NUMBERS_USAGE},
    {"numbers app-1 9", NUMBERS_USAGE},
    {"numbers app-1 9 3ff 1", NUMBERS_USAGE},
    {"numbers", NUMBERS_USAGE},
    {"digest weibo", "DIGEST key=[weibo]"},
    {"digest nosuch", "DIGEST key=[nosuch]"},
    {"digest", "ERROR \"CLIENT_ERROR usage: digest COUNTER\""},
    {"backup begin", "BACKUP key=[begin]"},
    {"backup end", "BACKUP"},
    {"backup", "ERROR \"CLIENT_ERROR usage: backup begin, or backup end\""},
    {"backup now",
        "ERROR \"CLIENT_ERROR usage: backup begin, or backup end\""},
    {"backup end 1",
        "ERROR \"CLIENT_ERROR usage: backup begin, or backup end\""},
    {"digest weibo 1", "ERROR \"CLIENT_ERROR usage: digest COUNTER\""},
    {"replicaof a:1", "REPLICAOF key=[a:1]"},
    {"replicaof [::1]:5 ", "REPLICAOF key=[[::1]:5]"},
    {"replicaof no one", "REPLICAOF"},
    {"replicaof", REPLICAOF_USAGE},
    {"replicaof a", REPLICAOF_USAGE},
    {"replicaof no", REPLICAOF_USAGE},
    {"replicaof no two", REPLICAOF_USAGE},
    {"replicaof a:1 b:1", REPLICAOF_USAGE},
    {"replicaof no one else", REPLICAOF_USAGE},
    {"show handovers", "SHOW_HANDOVERS"},
    {"show handovers x", SHOW_USAGE},
    {"handover modulo:1/2 to a:1", "HANDOVER key=[modulo:1/2] words=[a:1]"},
    {"handover  x  here ", "HANDOVER key=[x]"},
    {"handover", HANDOVER_USAGE},
    {"handover x", HANDOVER_USAGE},
    {"handover x to", HANDOVER_USAGE},
    {"handover x to a:1 b:1", HANDOVER_USAGE},
    {"handover x here now", HANDOVER_USAGE},
    {"handover x there", HANDOVER_USAGE},
    {"feed on", "FEED number=1"},
    {"feed off", "FEED"},
    {"feed", FEED_USAGE},
    {"feed in", FEED_USAGE},
    {"feed on off", FEED_USAGE},
    {"failover", "FAILOVER"},
    {"failover  db-2 ", "FAILOVER key=[db-2]"},
    {"failover force", "FAILOVER words=[force]"},
    {"failover b force", "FAILOVER key=[b] words=[force]"},
    {"failover b c", FAILOVER_USAGE},
    {"failover b:1", FAILOVER_USAGE},
    {"failover force b", FAILOVER_USAGE},
    {"failover force force", FAILOVER_USAGE},
    {"failover b force now", FAILOVER_USAGE},
    {"failovers", NULL},
    {"wait 1 0", "WAIT words=[ 1 0]"},
    {"wait", WAIT_USAGE},
    {"wait 1", WAIT_USAGE},
    {"wait a 1", WAIT_USAGE},
    {"wait 1 1 1", WAIT_USAGE},
    {"show counter weibo x", SHOW_USAGE},
    {"show columns", SHOW_USAGE},
    {"help", "HELP"},
    {"help me", "HELP"},
    {"HELP", NULL},
    {"shows counters", NULL},
};

static const struct row commands[] = {
    {"get weibo 1234", "COUNTER_GET key=[weibo] words=[ 1234]"},
    {"get  weibo  1 2.cntcm ", "COUNTER_GET key=[weibo] words=[  1 2.cntcm ]"},
    {"get weibo", "COUNTER_GET key=[weibo]"},
    {"get weibo 1 noreply", "COUNTER_GET key=[weibo] words=[ 1 noreply]"},
    {"get bare 1", "COUNTER_GET key=[bare] words=[ 1]"},
    {"set weibo 1234 1", "COUNTER_SET key=[weibo] words=[ 1234 1]"},
    {"set weibo 1234 1 2 3", "COUNTER_SET key=[weibo] words=[ 1234 1 2 3]"},
    {"set weibo 1 2 3 4 noreply",
        "COUNTER_SET key=[weibo] words=[ 1 2 3 4 ] noreply"},
    {"set weibo 1 2 3 4  noreply  ",
        "COUNTER_SET key=[weibo] words=[ 1 2 3 4  ] noreply"},
    {"set weibo 1 2 noreply", "COUNTER_SET key=[weibo] words=[ 1 2 ] noreply"},
    {"set weibo 1 cntcm=2 a=3",
        "COUNTER_SET key=[weibo] words=[ 1 cntcm=2 a=3]"},
    {"replace weibo 1 2 a=3 noreply",
        "COUNTER_REPLACE key=[weibo] words=[ 1 2 a=3 ] noreply"},
    {"set weibo 1.cntcm 5 tx=p:1",
        "COUNTER_SET key=[weibo] words=[ 1.cntcm 5 ] tx=[p:1]"},
    {"set weibo 1 5 tx=7", "COUNTER_SET key=[weibo] words=[ 1 5 tx=7]"},
    /* lines that memcached has as well: a block follows */
    {"set weibo 1234 1 2", "COUNTER_STORE key=[weibo] words=[ 1234 1 2]"},
    {"set weibo 0 0 5", "COUNTER_STORE key=[weibo] words=[ 0 0 5]"},
    {"set weibo 1 2 3 noreply",
        "COUNTER_STORE key=[weibo] words=[ 1 2 3 ] noreply"},
    {"set weibo 1 2 3  noreply  ",
        "COUNTER_STORE key=[weibo] words=[ 1 2 3  ] noreply"},
    {"set weibo 1 NaN 3", "COUNTER_STORE key=[weibo] words=[ 1 NaN 3]"},
    {"set weibo 1 -1 1.5", "COUNTER_STORE key=[weibo] words=[ 1 -1 1.5]"},
    {"set weibo 1.cntcm 5 6",
        "COUNTER_STORE key=[weibo] words=[ 1.cntcm 5 6]"},
    {"set weibo noreply", "COUNTER_SET key=[weibo] words=[ ] noreply"},
    {"set weibo 1 xnoreply", "COUNTER_SET key=[weibo] words=[ 1 xnoreply]"},
    {"set weibo noreply 1", "COUNTER_SET key=[weibo] words=[ noreply 1]"},
    {"add weibo 1 2 3", "COUNTER_STORE key=[weibo] words=[ 1 2 3]"},
    {"replace weibo 1 2 3", "COUNTER_STORE key=[weibo] words=[ 1 2 3]"},
    {"add weibo 1 2 3 4", "COUNTER_ADD key=[weibo] words=[ 1 2 3 4]"},
    {"replace weibo 1 2", "COUNTER_REPLACE key=[weibo] words=[ 1 2]"},
    {"delete weibo 1", "COUNTER_DELETE key=[weibo] words=[ 1]"},
    {"delete weibo 1 noreply",
        "COUNTER_DELETE key=[weibo] words=[ 1 ] noreply"},
    {"incr weibo 1.cntcm", "COUNTER_INCR key=[weibo] words=[ 1.cntcm]"},
    {"incr weibo 1 1 0", "COUNTER_INCR key=[weibo] words=[ 1 1 0]"},
    {"incr weibo 1.cntcm 5 tx=p:1",
        "COUNTER_INCR key=[weibo] words=[ 1.cntcm 5 ] tx=[p:1]"},
    {"decr weibo 1 1 0  tx=p:1  noreply ",
        "COUNTER_DECR key=[weibo] words=[ 1 1 0  ] noreply tx=[p:1]"},
    {"set weibo 1 2 3 tx=", "COUNTER_SET key=[weibo] words=[ 1 2 3 ] tx=[]"},
    {"add weibo 1 2 tx=:  ", "COUNTER_ADD key=[weibo] words=[ 1 2 ] tx=[:]"},
    {"delete weibo 1 tx=tx=",
        "COUNTER_DELETE key=[weibo] words=[ 1 ] tx=[tx=]"},
    {"replace weibo tx=p:1", "COUNTER_REPLACE key=[weibo] words=[ ] tx=[p:1]"},
    {"incr weibo 1.cntcm tx=p:1 5",
        "COUNTER_INCR key=[weibo] words=[ 1.cntcm tx=p:1 5]"},
    {"incr weibo 1.cntcm noreply tx=p:1",
        "COUNTER_INCR key=[weibo] words=[ 1.cntcm noreply ] tx=[p:1]"},
    {"incr weibo 1.cntcm xtx=p:1",
        "COUNTER_INCR key=[weibo] words=[ 1.cntcm xtx=p:1]"},
    {"incr weibo tx", "COUNTER_INCR key=[weibo] words=[ tx]"},
    {"get weibo 1 tx=p:1", "COUNTER_GET key=[weibo] words=[ 1 tx=p:1]"},
    {"decr weibo 1.cntcm 5 noreply",
        "COUNTER_DECR key=[weibo] words=[ 1.cntcm 5 ] noreply"},
    {"gets weibo", "COUNTER_MISUSE key=[weibo]"},
    {"gat weibo 1", "COUNTER_MISUSE key=[weibo] words=[ 1]"},
    {"gats weibo 1", "COUNTER_MISUSE key=[weibo] words=[ 1]"},
    {"append weibo 0 0 5", "COUNTER_STORE key=[weibo] words=[ 0 0 5]"},
    {"prepend weibo 0 0 5", "COUNTER_STORE key=[weibo] words=[ 0 0 5]"},
    {"cas weibo 0 0 5 1", "COUNTER_STORE key=[weibo] words=[ 0 0 5 1]"},
    {"touch weibo 0 noreply",
        "COUNTER_MISUSE key=[weibo] words=[ 0 ] noreply"},
    /* not a counter's name, not the first argument, not a command with a key */
    {"get weib 1", NULL},
    {"get weiboo 1", NULL},
    {"get WEIBO 1", NULL},
    {"get cntcm 1", NULL},
    {"get comment_num 1", NULL},
    {"get 1234.weibo", NULL},
    {"get a weibo", NULL},
    {"get", NULL},
    {"get \xff", NULL},
    {"gat 0 weibo", NULL},
    {"stats weibo", NULL},
    {"verbosity weibo", NULL},
    {"flush_all weibo", NULL},
    {"version weibo", NULL},
    {"quit weibo", NULL},
    {"nothing weibo", NULL},
    {"GET weibo 1", NULL},
};

static void
play_row(const struct schema *schema, const struct row *row)
{
    size_t len = strlen(row->line);
    char *line = copy_of(row->line, len);
    struct words words = {line, 0, (uint32_t)len};
    struct span command;
    struct request request = {.op = REQUEST_ERROR};
    struct request untouched = request;
    struct buf said = {0};
    ck_assert(words_next(&words, &command));
    if (dialect_parse(command, words, schema, &request)) {
        say_request(&said, line, &request);
        ck_assert_msg(row->request != NULL, "'%s' is dialect", row->line);
        ck_assert_str_eq(said.data, row->request);
    } else {
        ck_assert_msg(row->request == NULL, "'%s' is not", row->line);
        ck_assert_mem_eq(&request, &untouched, sizeof request);
    }
    buf_fini(&said);
    free(line);
}

static void
play(const struct row *row, size_t n)
{
    struct schema *schema = weibo_schema();
    for (size_t i = 0; i < n; i++) {
        play_row(schema, &row[i]);
    }
    schema_destroy(&schema);
}

START_TEST(test_edits)
{
    play(edits, COUNT_OF(edits));
}
END_TEST

START_TEST(test_shows)
{
    play(shows, COUNT_OF(shows));
}
END_TEST

START_TEST(test_commands)
{
    play(commands, COUNT_OF(commands));
}
END_TEST

/* Without counters only the words that memcached lacks are dialect. */
START_TEST(test_empty_schema)
{
    static const struct row rows[] = {
        {"get weibo 1234", NULL},
        {"set weibo 0 0 5", NULL},
        {"incr weibo 1", NULL},
        {"add counter weibo", "SCHEMA_EDIT edit=add counter words=[ weibo]"},
        {"show counters", "SHOW_COUNTERS"},
    };
    struct schema *schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        play_row(schema, &rows[i]);
    }
    schema_destroy(&schema);
}
END_TEST

/* Help is whole lines, names every word of the dialect, and ends with END. */
START_TEST(test_help)
{
    static const char *const names[] = {"add counter", "add column",
        "drop column", "drop counter", "show counters", "show counter", "get",
        "set", "add", "replace", "incr", "decr", "delete", "help"};
    struct buf out = {0};
    dialect_help(&out);
    ck_assert(!out.failed);
    ck_assert_uint_gt(out.len, 7);
    ck_assert_mem_eq(out.data + out.len - 7, "\r\nEND\r\n", 7);
    for (size_t i = 0; i < out.len; i++) {
        ck_assert_int_eq(
            out.data[i] == '\n', i > 0 && out.data[i - 1] == '\r');
    }
    buf_add(&out, "", 1);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ck_assert_msg(strstr(out.data, names[i]) != NULL, "%s", names[i]);
    }
    buf_fini(&out);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_edits, test_shows, test_commands, test_empty_schema, test_help};
    return run_tests("dialect", tests, COUNT_OF(tests));
}

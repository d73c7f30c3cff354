/* SPDX-License-Identifier: BSD-3-Clause */
/* server/options_failover: what options of a group go together in which etcd
 * says who is primary. */
#include "server/options_failover_check.h"

#include "server/options_repl_check.h"
#include "unit/options_help.h"

#define LOCAL "http://127.0.0.1:2379"
#define MEMBER "--data=/d --repl-port=11213 --node=a --replicate=east/posts "
#define GROUP MEMBER "--etcd=" LOCAL " "

START_TEST(test_refused)
{
    static const struct {
        const char *line, *words;
    } rows[] = {
        {"--etcd=" LOCAL, "--etcd wants --replicate"},
        {"--etcd-key=/k", "--etcd-key wants --replicate"},
        {"--lease-ttl=5", "--lease-ttl wants --replicate"},
        {"--hang-timeout=500", "--hang-timeout wants --replicate"},
        {"--replica-votes=no", "--replica-votes wants --replicate"},
        {"--repl-announce=a:1", "--repl-announce wants --replicate"},
        {MEMBER, "--replicate wants --etcd"},
        {MEMBER "--etcd=db1:2379", "--etcd: wanted are addresses"},
        {MEMBER "--etcd=" LOCAL ",", "--etcd: wanted are addresses"},
        {MEMBER "--etcd=" LOCAL "/v3", "--etcd: wanted are addresses"},
        {MEMBER "--etcd=ftp://a", "--etcd: wanted are addresses"},
        {MEMBER "--etcd=http://a,http://b,http://c,http://d,http://e,http://f,"
                "http://g,http://h,http://i",
            "8 at most"},
        {MEMBER "--etcd=http://db1:2379", "--repl-insecure"},
        {MEMBER "--etcd=http://[2001:db8::1]:2379", "--repl-insecure"},
        {MEMBER "--etcd=http://128.0.0.1", "--repl-insecure"},
        {MEMBER "--etcd=http://127.0.0.1.example", "--repl-insecure"},
        {MEMBER "--etcd=" LOCAL ",http://db2:2379", "--repl-insecure"},
        {"--data=/d --repl-port=1 --etcd=" LOCAL " --replicate=east",
            "wanted is CLUSTER/GROUP"},
        {"--data=/d --repl-port=1 --etcd=" LOCAL " --replicate=/posts",
            "wanted is CLUSTER/GROUP"},
        {"--data=/d --repl-port=1 --etcd=" LOCAL " --replicate=east/",
            "wanted is CLUSTER/GROUP"},
        {"--data=/d --repl-port=1 --etcd=" LOCAL " --replicate=a/b/c",
            "wanted is CLUSTER/GROUP"},
        {"--data=/d --repl-port=1 --etcd=" LOCAL " --replicate=a~/b",
            "wanted is CLUSTER/GROUP"},
        {"--data=/d --node=a --etcd=" LOCAL " --replicate=a/b",
            "--replicate wants --repl-port"},
        {"--data=none --repl-port=1 --etcd=" LOCAL " --replicate=a/b",
            "--replicate wants a data directory"},
        {"--repl-port=1 --etcd=" LOCAL " --replicate=a/b",
            "--replicate wants a data directory"},
        {GROUP "--replicaof=a:1", "--replicate with --replicaof"},
        {GROUP "--sync=none", "--sync=none with --replicate"},
        {GROUP "--repl-group=other", "--repl-group with --replicate"},
        {GROUP "--repl-group=post", "--repl-group with --replicate"},
        {GROUP "--leave-group", "leave one out"},
        {GROUP "--etcd-cert=/c", "want each other"},
        {GROUP "--etcd-key=/k", "want each other"},
        {GROUP "--lease-ttl=1", "'1' is refused"},
        {GROUP "--lease-ttl=61", "'61' is refused"},
        {GROUP "--hang-timeout=299", "'299' is refused"},
        {GROUP "--hang-timeout=3001", "is more than --lease-ttl"},
        {GROUP "--replica-votes=perhaps", "'perhaps' is refused"},
        {GROUP "--replica-priority=10001", "at most 10000"},
        {GROUP "--semi-sync=5", "at most 4"},
        {GROUP "--semi-sync=0 --min-replicas-to-write=1",
            "is more than --semi-sync"},
        {GROUP "--repl-announce=a", "--repl-announce: wanted is HOST:PORT"},
        {"--data=/d --repl-port=1 --replicate=a/b --node=force "
         "--etcd=" LOCAL,
            "--node=force"},
    };
    ck_assert_int_eq(unsetenv("STATE_DIRECTORY"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bad(rows[i].line, rows[i].words);
    }
}
END_TEST

START_TEST(test_taken)
{
    struct options options = good("--data=/d --repl-port=1 --node=a");
    ck_assert(!options_is_automatic(&options));
    ck_assert_int_eq(options.semi_sync, 0);
    options = good(GROUP);
    ck_assert(options_is_automatic(&options));
    ck_assert(options_replicate(&options));
    ck_assert_str_eq(options.repl_group.text, "posts");
    ck_assert_int_eq(options.semi_sync, 1);
    ck_assert_int_eq(options.min_replicas, 1);
    ck_assert_int_eq(options.lease_ttl_s, 3);
    ck_assert_int_eq(options.hang_timeout_ms, 1000);
    ck_assert_int_eq(options.replica_votes, OPTIONS_VOTES_YES);
    options = good(GROUP "--semi-sync=0 --replica-votes=no");
    ck_assert_int_eq(options.semi_sync, 0);
    ck_assert_int_eq(options.min_replicas, 0);
    ck_assert_int_eq(options.replica_votes, OPTIONS_VOTES_NO);
    (void)good(GROUP "--repl-group=posts --hang-timeout=3000");
    (void)good(GROUP "--etcd-cert=/c --etcd-key=/k --etcd-cacert=/a");
    (void)good(MEMBER "--etcd=http://db1:2379 --repl-insecure");
    (void)good(MEMBER "--etcd=https://db1:2379,https://db2");
    (void)good(MEMBER "--etcd=http://localhost,http://127.9.9.9:1");
    (void)good(MEMBER "--etcd=http://[::1]:2379,http://[::1]");
    has_setting(GROUP, "replicate=east/posts");
    has_setting(GROUP, "etcd=" LOCAL);
    has_setting(GROUP, "semi_sync=1");
    has_setting(GROUP, "replica_votes=yes");
    has_setting(GROUP "--lease-ttl=10", "lease_ttl=10");
}
END_TEST

START_TEST(test_split)
{
    struct node_name cluster, group;
    struct options_endpoints endpoints;
    ck_assert(options_split_group("a-1/b.2", &cluster, &group));
    ck_assert_uint_eq(cluster.len, 3);
    ck_assert_mem_eq(cluster.text, "a-1", 3);
    ck_assert_uint_eq(group.len, 3);
    ck_assert_mem_eq(group.text, "b.2", 3);
    ck_assert(options_split_endpoints("http://a:1,https://b", &endpoints));
    ck_assert_uint_eq(endpoints.n, 2);
    ck_assert_str_eq(endpoints.endpoint[0], "http://a:1");
    ck_assert_str_eq(endpoints.endpoint[1], "https://b");
    ck_assert(!options_split_endpoints("", &endpoints));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_refused, test_taken, test_split};
    return run_tests("options_failover", tests, COUNT_OF(tests));
}

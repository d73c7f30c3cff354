/* SPDX-License-Identifier: BSD-3-Clause */
/* server/options_repl: what options of replication go together, and what stands
 * in for those that are not given. */
#include "server/options_repl_check.h"

#include "repl/proof.h"
#include "unit/options_help.h"

#define PRIMARY "--data=/d --repl-port=11213 --node=a "
#define REPLICA "--data=/d --replicaof=db1:11213 --node=b "

START_TEST(test_refused)
{
    static const struct {
        const char *line, *words;
    } rows[] = {
        {"--data=/d --replicaof=db1", "--replicaof: wanted is HOST:PORT"},
        {"--data=/d --replicaof=db1:0", "--replicaof: wanted is HOST:PORT"},
        {"--replica-announce=x", "--replica-announce: wanted is HOST:PORT"},
        {"--node=a/b", "--node: wanted are"},
        {"--repl-group=a:b", "--repl-group: wanted are"},
        {REPLICA "--replica-serve-stale-data=no", "wanted is yes, or"},
        {REPLICA "--replica-serve-stale-data=0", "wanted is yes, or"},
        {REPLICA "--replica-serve-stale-data=86400001", "wanted is yes, or"},
        {"--data=none --repl-port=1", "want a data directory"},
        {"--repl-port=1", "want a data directory"},
        {"--replicaof=a:1", "want a data directory"},
        {PRIMARY "--sync=none", "--sync=none with --replicaof or --repl-port"},
        {REPLICA "--sync=none", "--sync=none with --replicaof or --repl-port"},
        {REPLICA "--semi-sync=1", "--semi-sync wants --repl-port"},
        {PRIMARY "--min-replicas-to-write=1", "is more than --semi-sync"},
        {PRIMARY "--semi-sync=1 --min-replicas-to-write=2",
            "is more than --semi-sync"},
        {REPLICA "--repl-listen=127.0.0.1", "--repl-listen wants --repl-port"},
        {PRIMARY "--repl-listen=proto[ascii]:127.0.0.1",
            "--repl-listen: wanted are addresses only"},
        {PRIMARY "--leave-group", "leave one out"},
        {"--data=/d --forward-writes=yes", "--forward-writes wants"},
        {PRIMARY "--forward-writes=yes --auth-file=/u",
            "--forward-writes with --auth-file wants"},
        {PRIMARY "--replica-ack=perhaps", "'perhaps' is refused"},
    };
    ck_assert_int_eq(unsetenv("STATE_DIRECTORY"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bad(rows[i].line, rows[i].words);
    }
    if (proof_is_there()) {
        bad(PRIMARY "-Z -o ssl_chain_cert=/c", "give -o ssl_ca_cert");
        (void)good(PRIMARY "-Z -o ssl_chain_cert=/c --repl-insecure");
        (void)good(PRIMARY "-Z -o ssl_chain_cert=/c,ssl_ca_cert=/a");
        (void)good(PRIMARY "--repl-secret-file=/s");
        (void)good(PRIMARY "--repl-secret-file=/s --auth-file=/u "
                           "--forward-writes=yes");
    } else {
        bad(PRIMARY "--repl-secret-file=/s", "this build has no OpenSSL");
    }
}
END_TEST

START_TEST(test_taken)
{
    struct options options = good("--data=/d");
    ck_assert(!options_replicate(&options));
    options = good(PRIMARY);
    ck_assert(options_replicate(&options));
    ck_assert_int_eq(options.semi_sync, 0);
    ck_assert_int_eq(options.min_replicas, 0);
    ck_assert_int_eq(options.replica_ack, OPTIONS_ACK_WRITTEN);
    ck_assert_uint_eq(options_stale_ms(&options), 0);
    ck_assert_uint_eq(options.repl_listen.n, 2);
    ck_assert(options.repl_listen.is_default);
    options = good(PRIMARY "--semi-sync=2 --sync=always");
    ck_assert_int_eq(options.min_replicas, 2);
    ck_assert_int_eq(options.replica_ack, OPTIONS_ACK_SYNCED);
    options =
        good(PRIMARY "--semi-sync=2 --min-replicas-to-write=0 --sync=always "
                     "--replica-ack=applied");
    ck_assert_int_eq(options.min_replicas, 0);
    ck_assert_int_eq(options.replica_ack, OPTIONS_ACK_APPLIED);
    options = good(REPLICA "--replica-serve-stale-data=250");
    ck_assert(options_replicate(&options));
    ck_assert_uint_eq(options_stale_ms(&options), 250);
    (void)good("--data=/d --leave-group");
    has_setting(REPLICA, "replicaof=db1:11213");
    has_setting(PRIMARY "--semi-sync=1", "min_replicas_to_write=1");
    has_setting(PRIMARY, "replica_ack=written");
    has_setting(PRIMARY, "repl_backlog_size=1073741824");
}
END_TEST

/* The host name stands in for the node's. */
START_TEST(test_name)
{
    struct options options;
    struct buf message = {0};
    char host[65] = "";

    ck_assert_int_eq(gethostname(host, sizeof host - 1), 0);
    enum options_result result =
        parse("--data=/d --repl-port=1", &options, &message);
    if (result == OPTIONS_RUN) {
        ck_assert_str_eq(options.node.text, host);
    } else {
        ck_assert_ptr_nonnull(strstr(message.data, "--node is missing"));
    }
    options = good("--data=/d");
    ck_assert_str_eq(options.node.text, "");
    buf_fini(&message);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_refused, test_taken, test_name};
    return run_tests("options_repl", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/peers: nodes that ask each other for promises, whether they hear a
 * primary, and fetch. Their loops are run by the test's thread, one after the
 * other, so that all calls are made where a node makes them. */
#include "unit/peers_help.h"

enum { BATCHES = 10000 };

START_TEST(test_promise)
{
    struct group g;
    group_init(&g);
    member_open(&g.a, "127.0.0.1:1");
    member_open(&g.b, "127.0.0.1:1");
    promise(&g.a, TERM);
    ask(&g.a, &g.b, TERM, false);
    RUN_UNTIL(&g, g.b.asked.n == 1);
    ck_assert(is_name(&g.b.asked, "a") && !g.b.asked.flag);
    ck_assert_uint_eq(g.b.asked.term, TERM);
    ck_assert_uint_eq(g.b.asked.last, host_last(&g.a.host));
    promise(&g.b, TERM);
    peers_answer(g.b.host.node, &g.b.asked.name, TERM);
    RUN_UNTIL(&g, g.a.answered.n == 1);
    ck_assert(is_name(&g.a.answered, "b") && !g.a.answered.flag);
    ck_assert_uint_eq(g.a.answered.term, TERM);
    ck_assert_uint_eq(g.a.answered.last, host_last(&g.b.host));
    /* once more on the same connection; what was promised is refused */
    promise(&g.b, TERM + 3);
    ask(&g.a, &g.b, TERM, false);
    RUN_UNTIL(&g, g.b.asked.n == 2);
    peers_refuse(g.b.host.node, &g.b.asked.name);
    RUN_UNTIL(&g, g.a.refused.n == 1);
    ck_assert_uint_eq(g.a.refused.term, TERM + 3);
    ck_assert(is_name(&g.a.refused, "b"));
    /* an answer that comes too late is none */
    ask(&g.a, &g.b, TERM, false);
    RUN_UNTIL(&g, g.b.asked.n == 3);
    peers_answer(g.b.host.node, &g.b.asked.name, TERM);
    RUN_UNTIL(&g, g.a.refused.n == 2);
    ck_assert_uint_eq(g.a.answered.n, 1);
    ck_assert_uint_eq(atomic_load(&g.a.host.n_dials), 1);
    ck_assert_uint_eq(g.a.host.node->figures.frames_bad, 0);
    ck_assert_uint_eq(g.b.host.node->figures.frames_bad, 0);
    group_fini(&g);
}
END_TEST

/* Who has no directory to be built upon answers, and says so. */
START_TEST(test_empty)
{
    struct group g;
    group_init(&g);
    member_open(&g.a, "127.0.0.1:1");
    promise(&g.a, TERM);
    host_fini(&g.c.host);
    host_init(&g.c.host, "c", 9); /* another directory, without a batch */
    member_open(&g.c, "127.0.0.1:1");
    ask(&g.a, &g.c, TERM, false);
    RUN_UNTIL(&g, g.c.asked.n == 1);
    promise(&g.c, TERM);
    peers_answer(g.c.host.node, &g.c.asked.name, TERM);
    RUN_UNTIL(&g, g.a.answered.n == 1);
    ck_assert(g.a.answered.flag);
    ck_assert_uint_eq(g.a.answered.last, 0);
    group_fini(&g);
}
END_TEST

START_TEST(test_probe)
{
    struct group g;
    group_init(&g);
    member_open(&g.a, NULL); /* who leads is asked as well */
    member_open(&g.b, "127.0.0.1:1");
    ask(&g.b, &g.a, 0, true);
    RUN_UNTIL(&g, g.a.asked.n == 1);
    ck_assert(g.a.asked.flag && is_name(&g.a.asked, "b"));
    peers_tell(g.a.host.node, &g.a.asked.name, true);
    RUN_UNTIL(&g, g.b.told.n == 1);
    ck_assert(g.b.told.flag && is_name(&g.b.told, "a"));
    ask(&g.b, &g.a, 0, true);
    RUN_UNTIL(&g, g.a.asked.n == 2);
    peers_tell(g.a.host.node, &g.a.asked.name, false);
    RUN_UNTIL(&g, g.b.told.n == 2);
    ck_assert(!g.b.told.flag);
    ck_assert_uint_eq(g.b.answered.n, 0);
    ck_assert_uint_eq(host_stat(&g.a.host, "replicas"), 0);
    group_fini(&g);
}
END_TEST

static void
on_ordered(struct store_call *call)
{
    (void)call;
}

/* A replica that asks as well is one replica. Its primary answers also when it
 * does not lead any more. */
START_TEST(test_of_primary)
{
    static struct node_order order;
    struct group g;
    group_init(&g);
    member_open(&g.a, NULL);
    member_open(&g.b, g.a.host.address);
    uint64_t seq = change_some(&g.a.host, 1);
    RUN_UNTIL(&g, sender_n_applied(g.a.host.node, seq) == 1);
    ask(&g.b, &g.a, 0, true);
    RUN_UNTIL(&g, g.a.asked.n == 1);
    ck_assert_uint_eq(sender_n_applied(g.a.host.node, seq), 1);
    ck_assert_uint_eq(host_stat(&g.a.host, "replicas"), 1);
    promise(&g.b, TERM);
    ask(&g.b, &g.a, TERM, false);
    RUN_UNTIL(&g, g.a.asked.n == 2);
    order = (struct node_order){.call.done_fn = on_ordered};
    (void)snprintf(
        order.address, sizeof order.address, "%s", g.b.host.address);
    node_replicaof(g.a.host.node, &order);
    RUN_UNTIL(&g, g.a.host.node->state == NODE_STATE_FOLLOWING);
    promise(&g.a, TERM);
    peers_answer(g.a.host.node, &g.a.asked.name, TERM);
    RUN_UNTIL(&g, g.b.answered.n == 1);
    ck_assert_uint_eq(g.b.answered.last, host_last(&g.a.host));
    ck_assert_uint_eq(g.a.asked.n, 2);
    group_fini(&g);
}
END_TEST

/* Nobody is there, then somebody else; then the one that is meant. */
START_TEST(test_not_there)
{
    struct group g;
    group_init(&g);
    member_open(&g.a, "127.0.0.1:1");
    promise(&g.a, TERM);
    peers_ask(
        g.a.host.node, &g.b.host.config.name, "127.0.0.1:1", TERM, false);
    RUN_UNTIL(&g, atomic_load(&g.a.host.n_dials) == 1);
    member_open(&g.b, "127.0.0.1:1");
    member_open(&g.c, "127.0.0.1:1");
    peers_ask(
        g.a.host.node, &g.b.host.config.name, g.c.host.address, TERM, false);
    RUN_UNTIL(&g, atomic_load(&g.a.host.n_dials) == 2);
    RUN_UNTIL(&g, g.c.host.node->sender.n_all == 1);
    RUN_UNTIL(&g, g.c.host.node->sender.n_all == 0);
    ck_assert_uint_eq(g.c.asked.n, 0);
    ask(&g.a, &g.b, TERM, false);
    RUN_UNTIL(&g, g.b.asked.n == 1);
    group_fini(&g);
}
END_TEST

/* Runs until the condition holds, and a asks b anew where its connection has
 * gone meanwhile. */
#define ASK_UNTIL(group, condition)                                           \
    RUN_UNTIL(group, (condition) || ask_again(group))

static bool
ask_again(struct group *group)
{
    if (group->b.host.node->sender.n_all == 0) {
        ask(&group->a, &group->b, 0, true);
    }
    return false;
}

/* A connection that is not used goes, and comes again. */
START_TEST(test_idle)
{
    struct group g;
    group_init(&g);
    g.a.host.config.timeout_ms = 500;
    member_open(&g.a, "127.0.0.1:1");
    member_open(&g.b, "127.0.0.1:1");
    for (unsigned i = 1; i <= 2; i++) {
        unsigned n_told = g.a.told.n;
        while (g.a.told.n == n_told) { /* it may go before it is told */
            unsigned n_asked = g.b.asked.n;
            ASK_UNTIL(&g, g.b.asked.n > n_asked);
            peers_tell(g.b.host.node, &g.b.asked.name, true);
            RUN_UNTIL(
                &g, g.a.told.n > n_told || g.b.host.node->sender.n_all == 0);
        }
        RUN_UNTIL(&g, g.b.host.node->sender.n_all == 0);
    }
    /* who does not answer goes as well */
    unsigned n_asked = g.b.asked.n, n_told = g.a.told.n;
    ASK_UNTIL(&g, g.b.asked.n > n_asked);
    RUN_UNTIL(&g, g.b.host.node->sender.n_all == 0);
    ck_assert_uint_eq(g.a.told.n, n_told);
    group_fini(&g);
}
END_TEST

START_TEST(test_fetch)
{
    struct group g;
    group_init(&g);
    lose_primary(&g, BATCHES);
    ck_assert_uint_ge(seq_n(host_last(&g.b.host)), BATCHES);
    peers_fetch(g.c.host.node, &g.b.host.config.name, g.b.host.address, TERM);
    RUN_UNTIL(&g, g.c.fetched.n == 1);
    ck_assert(g.c.fetched.flag);
    ck_assert_uint_eq(g.c.fetched.term, TERM);
    ck_assert_uint_eq(host_last(&g.c.host), host_last(&g.b.host));
    ck_assert_int_eq(g.c.host.node->receiver.fetch, RECEIVER_FETCH_NONE);
    /* what the primary has committed is applied, as far as it was told */
    RUN_UNTIL(&g, store_applied(g.c.host.rig.store) == host_last(&g.c.host));
    RUN_UNTIL(&g, g.c.host.node->receiver.state == RECEIVER_IDLE);
    RUN_UNTIL(&g, g.b.host.node->sender.n_all == 0);
    ck_assert_uint_eq(g.b.host.node->sender.n_peers, 0);
    ck_assert_uint_eq(host_stat(&g.b.host, "sync_partial_ok"), 0);
    /* where nothing is missing it is over at once */
    peers_fetch(g.b.host.node, &g.c.host.config.name, g.c.host.address, TERM);
    RUN_UNTIL(&g, g.b.fetched.n == 1);
    ck_assert(g.b.fetched.flag);
    group_fini(&g);
}
END_TEST

/* Who has all that the other one has, and more, keeps it and is done. */
START_TEST(test_fetch_more)
{
    struct group g;
    group_init(&g);
    lose_primary(&g, 10);
    uint64_t last = host_last(&g.b.host);
    ck_assert_uint_gt(last, host_last(&g.c.host));
    peers_fetch(g.b.host.node, &g.c.host.config.name, g.c.host.address, TERM);
    RUN_UNTIL(&g, g.b.fetched.n == 1);
    ck_assert(g.b.fetched.flag);
    ck_assert_uint_eq(host_last(&g.b.host), last);
    RUN_UNTIL(&g, g.b.host.node->receiver.state == RECEIVER_IDLE);
    RUN_UNTIL(&g, g.c.host.node->sender.n_all == 0);
    ck_assert_uint_eq(atomic_load(&g.b.host.n_reloads), 0);
    group_fini(&g);
}
END_TEST

/* The connection breaks on the way; what came is there, and the next fetch goes
 * on behind it. */
START_TEST(test_fetch_breaks)
{
    struct group g;
    group_init(&g);
    lose_primary(&g, BATCHES / 10);
    atomic_store(&g.c.host.relay_bytes, 10000);
    uint64_t last = host_last(&g.c.host);
    peers_fetch(g.c.host.node, &g.b.host.config.name, g.b.host.address, TERM);
    RUN_UNTIL(&g, g.c.fetched.n == 1);
    ck_assert(!g.c.fetched.flag);
    ck_assert_uint_ge(host_last(&g.c.host), last);
    ck_assert_uint_lt(host_last(&g.c.host), host_last(&g.b.host));
    atomic_store(&g.c.host.relay_bytes, 0);
    peers_fetch(g.c.host.node, &g.b.host.config.name, g.b.host.address, TERM);
    RUN_UNTIL(&g, g.c.fetched.n == 2);
    ck_assert(g.c.fetched.flag);
    ck_assert_uint_eq(host_last(&g.c.host), host_last(&g.b.host));
    /* given up: nothing is said of it */
    peers_fetch(g.c.host.node, &g.b.host.config.name, g.b.host.address, TERM);
    turn(&g);
    peers_stop_fetch(g.c.host.node);
    RUN_UNTIL(&g, g.c.host.node->receiver.state == RECEIVER_IDLE);
    ck_assert_uint_eq(g.c.fetched.n, 2);
    group_fini(&g);
}
END_TEST

/* No more than so much is fetched. */
START_TEST(test_fetch_bound)
{
    struct group g;
    group_init(&g);
    lose_primary(&g, 10);
    peers_fetch(g.c.host.node, &g.b.host.config.name, g.b.host.address, TERM);
    g.c.host.node->receiver.fetch_bytes = PEERS_FETCH_BYTES;
    RUN_UNTIL(&g, g.c.fetched.n == 1);
    ck_assert(!g.c.fetched.flag);
    /* nor from where nobody knows; nor is it asked */
    peers_ask(g.c.host.node, &g.b.host.config.name, "", TERM, false);
    peers_fetch(g.c.host.node, &g.b.host.config.name, "", TERM);
    RUN_UNTIL(&g, g.c.fetched.n == 2);
    ck_assert(!g.c.fetched.flag);
    group_fini(&g);
}
END_TEST

/* Of another term than the source has promised; of who is not there; of a log
 * that is another one. */
START_TEST(test_fetch_refused)
{
    struct group g;
    group_init(&g);
    lose_primary(&g, 1);
    promise(&g.b, TERM + 1);
    peers_fetch(g.c.host.node, &g.b.host.config.name, g.b.host.address, TERM);
    RUN_UNTIL(&g, g.c.fetched.n == 1);
    ck_assert(!g.c.fetched.flag);
    peers_fetch(g.c.host.node, &g.b.host.config.name, "127.0.0.1:1", TERM);
    RUN_UNTIL(&g, g.c.fetched.n == 2);
    ck_assert(!g.c.fetched.flag);
    member_close(&g.b);
    member_close(&g.c);
    host_open(&g.c.host, NULL); /* a term of its own */
    (void)change_some(&g.c.host, 1);
    host_close(&g.c.host);
    member_open(&g.b, "127.0.0.1:1");
    member_open(&g.c, "127.0.0.1:1");
    promise(&g.b, 2 * TERM);
    promise(&g.c, 2 * TERM);
    peers_fetch(
        g.c.host.node, &g.b.host.config.name, g.b.host.address, 2 * TERM);
    RUN_UNTIL(&g, g.c.fetched.n == 3);
    ck_assert(!g.c.fetched.flag);
    ck_assert_uint_eq(atomic_load(&g.c.host.n_reloads), 0);
    group_fini(&g);
}
END_TEST

/* Who wants to follow one that does not lead is told so; where nobody decides,
 * who asks is refused. */
START_TEST(test_not_served)
{
    struct group g;
    group_init(&g);
    member_open(&g.b, "127.0.0.1:1");
    member_open(&g.c, g.b.host.address);
    RUN_UNTIL(&g,
        strstr(g.c.host.node->receiver.why, "this node is no primary") !=
            NULL);
    member_close(&g.c);
    g.b.host.node->peers.calls = NULL;
    member_open(&g.c, g.b.host.address);
    RUN_UNTIL(&g,
        strstr(g.c.host.node->receiver.why, "this node is no primary") !=
            NULL);
    ask(&g.c, &g.b, 0, true);
    RUN_UNTIL(&g, g.b.host.node->figures.refused > 1);
    ck_assert_uint_eq(g.b.asked.n, 0);
    group_fini(&g);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_promise, test_empty, test_probe,
        test_of_primary, test_not_there, test_idle, test_fetch,
        test_fetch_more, test_fetch_breaks, test_fetch_bound,
        test_fetch_refused, test_not_served};

    return run_tests("peers", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/peers over TLS: both ends have certificates of one authority. */
#include "lib/tls_peer.h"
#include "unit/peers_help.h"

static struct tls *
make_tls(struct tls_files *files)
{
    struct tls_config config = tls_config_of(files);
    config.ca = files->chain;
    config.verify = TLS_VERIFY_REQUIRE;
    return tls_of(&config);
}

START_TEST(test_tls)
{
    struct tls_files files, others;
    struct tls *tls, *other_tls;
    struct group g;
    tls_files_init(&files, "node");
    tls_files_init(&others, "stranger");
    tls = make_tls(&files);
    other_tls = make_tls(&others);
    group_init(&g);
    g.a.host.config.tls = g.b.host.config.tls = tls;
    g.c.host.config.tls = other_tls;
    lose_primary(&g, 100);
    member_open(&g.a, "127.0.0.1:1");
    promise(&g.a, TERM);
    /* a stranger is not heard, nor does it answer */
    ask(&g.c, &g.b, TERM, false);
    ask(&g.a, &g.c, TERM, false);
    RUN_UNTIL(&g, atomic_load(&g.c.host.n_dials) == 1);
    RUN_UNTIL(&g, g.b.host.node->sender.n_all > 0);
    RUN_UNTIL(&g, g.b.host.node->sender.n_all == 0);
    ask(&g.b, &g.a, TERM, false);
    RUN_UNTIL(&g, g.a.asked.n == 1);
    peers_answer(g.a.host.node, &g.a.asked.name, TERM);
    RUN_UNTIL(&g, g.b.answered.n == 1);
    peers_fetch(g.b.host.node, &g.a.host.config.name, g.a.host.address, TERM);
    RUN_UNTIL(&g, g.b.fetched.n == 1);
    ck_assert(g.b.fetched.flag);
    ck_assert_uint_eq(g.b.asked.n + g.c.asked.n, 0);
    ck_assert_uint_eq(g.a.answered.n + g.c.answered.n, 0);
    group_fini(&g);
    tls_destroy(&tls);
    tls_destroy(&other_tls);
    tls_files_fini(&files);
    tls_files_fini(&others);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_tls};
    return run_tests("peers_tls", tests, COUNT_OF(tests));
}

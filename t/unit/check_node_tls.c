/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/node over TLS: both ends have certificates of one authority. */
#include "lib/tls_peer.h"
#include "unit/node_help.h"

enum { ROUNDS = 20 };

static struct tls_files files, others;
static struct tls *tls, *other_tls;

static struct tls *
make_tls(struct tls_files *from)
{
    struct tls_config config = tls_config_of(from);
    config.ca = from->chain;
    config.verify = TLS_VERIFY_REQUIRE;
    return tls_of(&config);
}

static void
setup(void)
{
    tls_files_init(&files, "node");
    tls_files_init(&others, "stranger");
    tls = make_tls(&files);
    other_tls = make_tls(&others);
}

static void
teardown(void)
{
    tls_destroy(&tls);
    tls_destroy(&other_tls);
    tls_files_fini(&files);
    tls_files_fini(&others);
}

START_TEST(test_follow)
{
    struct world w;
    setup();
    world_init(&w, 0, 0);
    host_close(&w.a);
    w.a.config.tls = w.b.config.tls = w.c.config.tls = tls;
    host_open(&w.a, NULL);
    atomic_store(&w.b.relay_bytes, 30000);
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.a.address);
    for (int i = 0; i < ROUNDS; i++) {
        (void)change_some(&w.a, WORLD_CHANGES);
    }
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    atomic_store(&w.b.relay_bytes, 0);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    ck_assert(hosts_are_equal(&w.a, &w.c, "w"));
    ck_assert_uint_eq(host_stat(&w.a, "frames_bad"), 0);
    ck_assert_uint_eq(host_stat(&w.b, "frames_bad"), 0);
    host_close(&w.b);
    host_close(&w.c);
    host_close(&w.a);
    world_fini(&w);
    teardown();
}
END_TEST

/* With a certificate of another authority, or without TLS, nobody is served,
 * nor follows. */
START_TEST(test_strangers)
{
    struct world w;
    setup();
    world_init(&w, 0, 0);
    host_close(&w.a);
    w.a.config.tls = tls;
    w.b.config.tls = other_tls;
    w.c.config.timeout_ms = 200;
    host_open(&w.a, NULL);
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.a.address);
    WAIT_UNTIL(host_stat(&w.b, "links") >= 3);
    WAIT_UNTIL(host_stat(&w.c, "links") >= 3);
    ck_assert(host_says(&w.b, "link_status", "down"));
    ck_assert(host_says(&w.c, "link_status", "down"));
    ck_assert_uint_eq(host_stat(&w.a, "sync_partial_ok"), 0);
    host_close(&w.b);
    host_close(&w.c);
    host_close(&w.a);
    world_fini(&w);
    teardown();
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_follow, test_strangers};
    return run_tests("node_tls", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/node_control: nodes whose primary etcd knows, over sockets, with an etcd
 * in memory: who leads, and who comes to lead. */
#include "unit/etcd_help.h"

enum { CHANGES = WORLD_CHANGES };

struct group {
    struct etcd_room room;
    struct host a, b, c;
};

/* Three that have copies of one directory; none of them runs. */
static void
group_init(struct group *group, unsigned copies, unsigned least)
{
    host_init(&group->a, "a", 1);
    host_init(&group->b, "b", 2);
    host_init(&group->c, "c", 3);
    host_open(&group->a, NULL);
    world_declare(&group->a);
    (void)change_some(&group->a, CHANGES);
    host_close(&group->a);
    host_copy(&group->a, &group->b);
    host_copy(&group->a, &group->c);
    etcd_init(&group->room);
    etcd_join(&group->room, 0, &group->a, copies, least);
    etcd_join(&group->room, 1, &group->b, copies, least);
    etcd_join(&group->room, 2, &group->c, copies, least);
}

static void
group_fini(struct group *group)
{
    etcd_fini(&group->room);
    host_fini(&group->a);
    host_fini(&group->b);
    host_fini(&group->c);
}

static bool
leads(struct host *host)
{
    return host_says(host, "role", "primary");
}

/* a leads, and b votes. */
static void
begin_pair(struct group *group)
{
    host_open(&group->a, NULL);
    WAIT_UNTIL(leads(&group->a));
    host_open(&group->b, NULL);
    WAIT_UNTIL(etcd_n_voters(&group->room) == 2);
    WAIT_UNTIL(store_fault(group->a.rig.store) == 0);
}

/* The first one leads, and takes changes when another one votes. */
START_TEST(test_first)
{
    struct group g;
    group_init(&g, 1, 1);
    host_open(&g.a, NULL);
    WAIT_UNTIL(leads(&g.a));
    ck_assert(etcd_has_primary(&g.room, "a"));
    WAIT_UNTIL(store_fault(g.a.rig.store) == ERR_FEW_REPLICAS);
    ck_assert(host_says(&g.a, "voters", "a"));
    ck_assert_uint_eq(host_stat(&g.a, "need"), 2);
    host_open(&g.b, NULL);
    WAIT_UNTIL(etcd_n_voters(&g.room) == 2);
    WAIT_UNTIL(store_fault(g.a.rig.store) == 0);
    uint64_t seq = change_some(&g.a, 1);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    struct store_position position;
    store_position(g.b.rig.store, &position);
    ck_assert_uint_ge(position.written, seq);
    WAIT_UNTIL(host_says(&g.a, "authority", "lease"));
    WAIT_UNTIL(host_says(&g.a, "voters", "a,b"));
    WAIT_UNTIL(strcmp(node_primary(g.b.node), "a:11211") == 0);
    ck_assert(host_replica_says(&g.a, "b", "in_set=1"));
    ck_assert_int_eq(store_fault(g.b.rig.store), ERR_NOT_PRIMARY);
    host_close(&g.b);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* The primary is gone: the other one leads, in a later term, and has all. */
START_TEST(test_killed)
{
    struct group g;
    group_init(&g, 1, 0);
    begin_pair(&g);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    uint64_t term = host_stat(&g.a, "term");
    etcd_kill(&g.room, 0, &g.a);
    WAIT_UNTIL(leads(&g.b));
    ck_assert_uint_gt(host_stat(&g.b, "term"), term);
    ck_assert(etcd_has_primary(&g.room, "b"));
    ck_assert_uint_ge(host_last(&g.b), seq);
    host_open(&g.a, NULL);
    WAIT_UNTIL(host_says(&g.a, "link_status", "up"));
    WAIT_UNTIL(store_fault(g.b.rig.store) == 0);
    seq = change_some(&g.b, CHANGES);
    WAIT_UNTIL(store_outcome(g.b.rig.store, seq) == STORE_COMMITTED);
    WAIT_UNTIL(host_is_followed(&g.b, &g.a));
    ck_assert(hosts_are_equal(&g.a, &g.b, "w"));
    host_close(&g.a);
    host_close(&g.b);
    group_fini(&g);
}
END_TEST

/* The key is gone while the voters hear the primary: it is put back, and
 * nothing else happens. */
START_TEST(test_kept)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    struct control_state before = etcd_state(&g.room);
    etcd_expire(&g.room, 0);
    WAIT_UNTIL(etcd_state(&g.room).primary.revision > before.revision);
    ck_assert(etcd_has_primary(&g.room, "a"));
    ck_assert_uint_eq(etcd_state(&g.room).term, before.term);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    ck_assert_uint_eq(host_stat(&g.a, "promotions"), 1);
    ck_assert_uint_eq(host_stat(&g.a, "demotions"), 0);
    host_close(&g.b);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* etcd is out of reach, and the lease over: changes go on. */
START_TEST(test_without_etcd)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    etcd_set(&g.room, 0, FAKE_APART, 0);
    etcd_set(&g.room, 1, FAKE_APART, 0);
    etcd_expire(&g.room, 0);
    WAIT_UNTIL(host_says(&g.a, "authority", "replicas"));
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    etcd_set(&g.room, 0, FAKE_WELL, ETCD_LEASE_MS);
    etcd_set(&g.room, 1, FAKE_WELL, ETCD_LEASE_MS);
    WAIT_UNTIL(host_says(&g.a, "authority", "lease"));
    ck_assert_uint_eq(host_stat(&g.a, "promotions"), 1);
    ck_assert_uint_eq(host_stat(&g.b, "promotions"), 0);
    host_close(&g.b);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* A primary without a lease that no voter hears takes no changes, and is not
 * read for longer than a replica that hears nothing. */
START_TEST(test_isolated)
{
    struct group g;
    group_init(&g, 1, 1);
    g.a.config.ttl_ms = 500;
    g.a.config.stale_ms = 1;
    begin_pair(&g);
    WAIT_UNTIL(node_is_fresh(g.a.node));
    etcd_set(&g.room, 0, FAKE_APART, 0);
    etcd_expire(&g.room, 0);
    host_close(&g.b);
    WAIT_UNTIL(host_says(&g.a, "role", "isolated"));
    WAIT_UNTIL(store_fault(g.a.rig.store) == ERR_NO_PRIMARY);
    ck_assert(host_says(&g.a, "authority", "none"));
    WAIT_UNTIL(!node_is_fresh(g.a.node));
    etcd_set(&g.room, 0, FAKE_WELL, ETCD_LEASE_MS);
    WAIT_UNTIL(leads(&g.a));
    WAIT_UNTIL(node_is_fresh(g.a.node));
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

static int (*open_file)(
    struct disk *disk, const char *name, enum disk_open how, int *fd);
static atomic_bool is_full;

static int
open_or_fail(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    bool fails = atomic_load(&is_full) && how == DISK_CREATE &&
        strncmp(name, "log", 3) == 0;
    return fails ? ENOSPC : open_file(disk, name, how, fd);
}

/* The disk takes a promise, and no file for the term's first batch: the node
 * leads, and takes changes as soon as there is room. */
START_TEST(test_begins_full)
{
    struct group g;
    group_init(&g, 1, 0);
    struct disk *disk = g.a.rig.data.disk;
    const struct disk_calls *plain = disk->calls;
    struct disk_calls calls = *plain;
    open_file = calls.open;
    calls.open = open_or_fail;
    disk->calls = &calls;
    etcd_set(&g.room, 0, FAKE_APART, 0);
    host_open(&g.a, NULL);
    atomic_store(&is_full, true);
    etcd_set(&g.room, 0, FAKE_WELL, ETCD_LEASE_MS);
    WAIT_UNTIL(leads(&g.a));
    ck_assert_uint_lt(seq_term(host_last(&g.a)), host_stat(&g.a, "term"));
    WAIT_UNTIL(store_fault(g.a.rig.store) != ERR_NOT_PRIMARY);
    atomic_store(&is_full, false);
    WAIT_UNTIL(store_fault(g.a.rig.store) == 0);
    uint64_t seq = change_some(&g.a, CHANGES);
    WAIT_UNTIL(store_outcome(g.a.rig.store, seq) == STORE_COMMITTED);
    ck_assert_uint_eq(host_stat(&g.a, "promotions"), 1);
    host_close(&g.a);
    disk->calls = plain;
    group_fini(&g);
}
END_TEST

/* Without copies the lease alone tells who leads. */
START_TEST(test_lease)
{
    struct group g;
    group_init(&g, 0, 0);
    host_open(&g.a, NULL);
    WAIT_UNTIL(store_fault(g.a.rig.store) == 0);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    etcd_set(&g.room, 0, FAKE_WELL, 0);
    WAIT_UNTIL(host_says(&g.a, "role", "isolated"));
    WAIT_UNTIL(store_fault(g.a.rig.store) == ERR_NO_PRIMARY);
    seq = change_some(&g.a, 1); /* of one who had asked before */
    ck_assert_int_eq(store_outcome(g.a.rig.store, seq), STORE_COMMIT_WAITS);
    etcd_set(&g.room, 0, FAKE_WELL, ETCD_LEASE_MS);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* `failover`; where the other one did not have all within a second, again. */
static void
hand_over(struct host *host, const char *to)
{
    int err = ERR_NOT_HANDED;
    WAIT_UNTIL((err = host_failover(host, to, false)) != ERR_NOT_HANDED);
    ck_assert_int_eq(err, 0);
}

START_TEST(test_ordered)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    ck_assert_int_eq(host_replicaof(&g.a, ""), ERR_BY_ETCD);
    ck_assert_int_eq(host_replicaof(&g.b, "127.0.0.1:1"), ERR_BY_ETCD);
    ck_assert_int_eq(host_failover(&g.b, "", false), ERR_NOT_PRIMARY);
    ck_assert_int_eq(host_failover(&g.a, "a", false), ERR_NOT_HANDED);
    ck_assert_int_eq(host_failover(&g.a, "nobody", false), ERR_NOT_HANDED);
    uint64_t seq = change_some(&g.a, CHANGES);
    hand_over(&g.a, "b");
    WAIT_UNTIL(leads(&g.b));
    ck_assert_uint_ge(host_last(&g.b), seq);
    ck_assert_uint_eq(host_stat(&g.a, "handovers"), 1);
    WAIT_UNTIL(host_says(&g.a, "link_status", "up"));
    WAIT_UNTIL(store_fault(g.b.rig.store) == 0);
    seq = change_some(&g.b, CHANGES);
    ck_assert_int_eq(rig_commit(&g.b.rig, seq), STORE_COMMITTED);
    hand_over(&g.b, "");
    WAIT_UNTIL(leads(&g.a));
    WAIT_UNTIL(host_is_followed(&g.a, &g.b));
    ck_assert(hosts_are_equal(&g.a, &g.b, "w"));
    host_close(&g.b);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* Three, of which two have to have a change: who leads is gone, and of the
 * others that one leads which has most, whoever asks first. */
START_TEST(test_three)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    host_open(&g.c, NULL);
    WAIT_UNTIL(etcd_n_voters(&g.room) == 3);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    host_close(&g.c);
    seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    etcd_kill(&g.room, 0, &g.a);
    ck_assert_uint_eq(host_stat(&g.b, "promotions"), 0);
    host_open(&g.c, NULL); /* one of two does not make a quorum */
    WAIT_UNTIL(leads(&g.b) || leads(&g.c));
    struct host *first = leads(&g.b) ? &g.b : &g.c;
    struct host *other = first == &g.b ? &g.c : &g.b;
    ck_assert_uint_ge(host_last(first), seq);
    WAIT_UNTIL(host_is_followed(first, other));
    WAIT_UNTIL(store_fault(first->rig.store) == 0);
    seq = change_some(first, CHANGES);
    ck_assert_int_eq(rig_commit(&first->rig, seq), STORE_COMMITTED);
    WAIT_UNTIL(host_is_followed(first, other));
    ck_assert(hosts_are_equal(first, other, "w"));
    host_close(&g.b);
    host_close(&g.c);
    group_fini(&g);
}
END_TEST

/* A new group: the first one says which directory it is, and the others, which
 * have nothing, take it all from that one. */
START_TEST(test_new_group)
{
    struct group g;
    host_init(&g.a, "a", 1);
    host_init(&g.b, "b", 2);
    host_init(&g.c, "c", 3);
    etcd_init(&g.room);
    etcd_join(&g.room, 0, &g.a, 1, 0);
    etcd_join(&g.room, 1, &g.b, 1, 0);
    host_open(&g.a, NULL);
    WAIT_UNTIL(leads(&g.a));
    WAIT_UNTIL(store_fault(g.a.rig.store) == 0);
    ck_assert_uint_eq(host_stat(&g.a, "term"), 1);
    ck_assert_uint_eq(host_stat(&g.a, "doubtful"), 0);
    world_declare(&g.a);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    host_open(&g.b, NULL);
    WAIT_UNTIL(atomic_load(&g.b.n_reloads) == 1);
    ck_assert_uint_eq(host_stat(&g.b, "doubtful"), 1);
    host_load_again(&g.b);
    WAIT_UNTIL(etcd_n_voters(&g.room) == 2);
    ck_assert_uint_eq(host_stat(&g.b, "doubtful"), 0);
    ck_assert(hosts_are_equal(&g.a, &g.b, "w"));
    etcd_kill(&g.room, 0, &g.a);
    WAIT_UNTIL(leads(&g.b));
    ck_assert_uint_ge(host_last(&g.b), seq);
    host_close(&g.b);
    etcd_fini(&g.room);
    host_fini(&g.a);
    host_fini(&g.b);
    host_fini(&g.c);
}
END_TEST

/* A primary that is cut off from all has changes that nobody else has: they are
 * not acknowledged, and gone when it follows the other one. */
START_TEST(test_cut_off)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    host_open(&g.c, NULL);
    WAIT_UNTIL(etcd_n_voters(&g.room) == 3);
    host_close(&g.b);
    host_close(&g.c);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(store_outcome(g.a.rig.store, seq), STORE_COMMIT_WAITS);
    etcd_set(&g.room, 0, FAKE_APART, 0);
    etcd_kill(&g.room, 0, &g.a);
    host_open(&g.b, NULL);
    host_open(&g.c, NULL);
    WAIT_UNTIL(leads(&g.b) || leads(&g.c));
    struct host *first = leads(&g.b) ? &g.b : &g.c;
    WAIT_UNTIL(store_fault(first->rig.store) == 0);
    seq = change_some(first, CHANGES);
    ck_assert_int_eq(rig_commit(&first->rig, seq), STORE_COMMITTED);
    etcd_set(&g.room, 0, FAKE_WELL, ETCD_LEASE_MS);
    host_open(&g.a, NULL);
    WAIT_UNTIL(atomic_load(&g.a.n_reloads) == 1);
    host_load_again(&g.a);
    WAIT_UNTIL(host_is_followed(first, &g.a));
    ck_assert(hosts_are_equal(first, &g.a, "w"));
    host_close(&g.b);
    host_close(&g.c);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* Answers of etcd that are lost: a term is taken all the same, and voters are
 * changed once. */
START_TEST(test_lost_answers)
{
    struct group g;
    group_init(&g, 1, 1);
    etcd_set(&g.room, 0, FAKE_LOSES, ETCD_LEASE_MS);
    host_open(&g.a, NULL);
    WAIT_UNTIL(etcd_state(&g.room).term >= 2);
    etcd_set(&g.room, 0, FAKE_WELL, ETCD_LEASE_MS);
    WAIT_UNTIL(leads(&g.a));
    etcd_set(&g.room, 0, FAKE_LOSES, ETCD_LEASE_MS);
    host_open(&g.b, NULL);
    WAIT_UNTIL(etcd_n_voters(&g.room) == 2);
    WAIT_UNTIL(store_fault(g.a.rig.store) == 0);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    etcd_set(&g.room, 0, FAKE_WELL, ETCD_LEASE_MS);
    WAIT_UNTIL(host_stat(&g.a, "set_in_doubt") == 0);
    WAIT_UNTIL(leads(&g.a));
    WAIT_UNTIL(host_says(&g.a, "voters", "a,b"));
    host_close(&g.b);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* Who speaks with etcd is gone: who leads goes on, and leads no more when it
 * was to lead anew. */
START_TEST(test_nobody_speaks)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    etcd_hang_up(&g.room, 0);
    WAIT_UNTIL(host_says(&g.a, "authority", "replicas"));
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    host_close(&g.a);
    WAIT_UNTIL(leads(&g.b));
    ck_assert_uint_ge(host_last(&g.b), seq);
    host_close(&g.b);
    group_fini(&g);
}
END_TEST

/* Nobody has the key, and the primary that is followed goes on: clients are
 * sent there all the same. */
START_TEST(test_no_key)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    WAIT_UNTIL(strcmp(node_primary(g.b.node), "a:11211") == 0);
    etcd_hang_up(&g.room, 0);
    WAIT_UNTIL(etcd_has_told(&g.room, 1));
    for (unsigned i = 0; i < 3; i++) { /* turns in which it hears that */
        (void)host_failover(&g.b, "", false);
    }
    bool is_told = strcmp(node_primary(g.b.node), "a:11211") == 0;
    /* one that stood still for long may have been replaced */
    ck_assert(is_told || etcd_has_primary(&g.room, "b"));
    host_close(&g.b);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* A node without a process beside it wants to be started anew when it does not
 * lead, and only then. */
START_TEST(test_lame)
{
    struct group g;
    group_init(&g, 1, 1);
    g.a.config.ttl_ms = 500;
    begin_pair(&g);
    host_open(&g.c, NULL);
    WAIT_UNTIL(host_is_followed(&g.a, &g.c));
    etcd_hang_up(&g.room, 0);
    ck_assert_int_eq(shutdown(g.c.pair[1], SHUT_RDWR), 0);
    WAIT_UNTIL(atomic_load(&g.c.n_ends) == 1);
    host_close(&g.c);
    WAIT_UNTIL(host_says(&g.a, "authority", "replicas"));
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    ck_assert_int_eq(atomic_load(&g.a.n_ends), 0);
    ck_assert_int_eq(atomic_load(&g.b.n_ends), 0);
    etcd_hang_up(&g.room, 1);
    WAIT_UNTIL(atomic_load(&g.b.n_ends) == 1);
    host_close(&g.b);
    WAIT_UNTIL(atomic_load(&g.a.n_ends) == 1);
    WAIT_UNTIL(host_says(&g.a, "role", "isolated")); /* figures follow */
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* Whoever led before is behind by some files of the log by now, of which no
 * checkpoint needs any: it is sent what it lacks, and no snapshot. */
START_TEST(test_rejoin)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    host_open(&g.c, NULL);
    WAIT_UNTIL(etcd_n_voters(&g.room) == 3);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    etcd_kill(&g.room, 0, &g.a);
    WAIT_UNTIL(leads(&g.b) || leads(&g.c));
    struct host *leader = leads(&g.b) ? &g.b : &g.c;
    struct host *other = leader == &g.b ? &g.c : &g.b;
    WAIT_UNTIL(store_fault(leader->rig.store) == 0);
    uint64_t file = rig_stat(&leader->rig, "file");
    while (rig_stat(&leader->rig, "file") < file + 3) {
        seq = change_some(leader, CHANGES);
        WAIT_UNTIL(store_outcome(leader->rig.store, seq) == STORE_COMMITTED);
    }
    ck_assert_int_eq(rig_checkpoint(&leader->rig), 0);
    host_open(&g.a, NULL);
    WAIT_UNTIL(
        host_stat(leader, "sync_full") > 0 || host_is_followed(leader, &g.a));
    ck_assert_uint_eq(host_stat(leader, "sync_full"), 0);
    ck_assert(hosts_are_equal(leader, &g.a, "w"));
    host_close(&g.a);
    host_close(other);
    host_close(leader);
    group_fini(&g);
}
END_TEST

/* Two of three are gone for good. */
START_TEST(test_forced)
{
    struct group g;
    group_init(&g, 1, 1);
    begin_pair(&g);
    host_open(&g.c, NULL);
    WAIT_UNTIL(etcd_n_voters(&g.room) == 3);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    WAIT_UNTIL(host_is_followed(&g.a, &g.c));
    ck_assert_int_eq(host_failover(&g.c, "c", true), ERR_NOT_HANDED);
    ck_assert_int_eq(host_failover(&g.a, "", true), ERR_NOT_HANDED);
    etcd_kill(&g.room, 1, &g.b);
    etcd_kill(&g.room, 0, &g.a);
    ck_assert_int_eq(host_failover(&g.c, "b", true), ERR_NOT_HANDED);
    int err = ERR_NOT_HANDED;
    while (err == ERR_NOT_HANDED) { /* until it has heard that a is gone */
        host_pause();
        err = host_failover(&g.c, "c", true);
    }
    ck_assert_int_eq(err, 0);
    ck_assert(leads(&g.c));
    ck_assert_uint_ge(host_last(&g.c), seq);
    ck_assert_uint_eq(etcd_n_voters(&g.room), 1);
    host_open(&g.b, NULL);
    WAIT_UNTIL(store_fault(g.c.rig.store) == 0);
    seq = change_some(&g.c, CHANGES);
    ck_assert_int_eq(rig_commit(&g.c.rig, seq), STORE_COMMITTED);
    host_close(&g.b);
    host_close(&g.c);
    group_fini(&g);
}
END_TEST

/* etcd comes up empty. Who is started first lacks what was acknowledged, and
 * would lead alone, and the others be cut to it: so nobody leads until a person
 * says who has most. */
START_TEST(test_blank_etcd)
{
    struct group g;
    group_init(&g, 1, 0);
    begin_pair(&g);
    host_open(&g.c, NULL);
    WAIT_UNTIL(etcd_n_voters(&g.room) == 3);
    etcd_kill(&g.room, 2, &g.c);
    uint64_t seq = change_some(&g.a, CHANGES);
    ck_assert_int_eq(rig_commit(&g.a.rig, seq), STORE_COMMITTED);
    etcd_kill(&g.room, 1, &g.b);
    etcd_kill(&g.room, 0, &g.a);
    etcd_wipe(&g.room);
    host_open(&g.c, NULL);
    host_open(&g.b, NULL);
    WAIT_UNTIL(host_says(&g.c, "stuck", "etcd"));
    WAIT_UNTIL(host_says(&g.b, "stuck", "etcd"));
    ck_assert_uint_eq(etcd_state(&g.room).epoch.revision, 0);
    ck_assert_int_eq(host_failover(&g.b, "b", true), 0);
    ck_assert(leads(&g.b));
    ck_assert_uint_ge(host_last(&g.b), seq);
    WAIT_UNTIL(host_is_followed(&g.b, &g.c));
    ck_assert(hosts_are_equal(&g.b, &g.c, "w"));
    host_close(&g.c);
    host_close(&g.b);
    group_fini(&g);
}
END_TEST

/* A node of a name that another one has takes no part, and none of that one's
 * is taken from it; when that one is gone it does. */
START_TEST(test_twin)
{
    struct group g;
    group_init(&g, 1, 1);
    ck_assert(node_name_set(&g.c.config.name, "b", 1));
    begin_pair(&g);
    host_open(&g.c, NULL);
    WAIT_UNTIL(host_says(&g.c, "stuck", "name"));
    ck_assert(host_says(&g.b, "stuck", "no"));
    ck_assert(host_says(&g.c, "link_status", "down"));
    ck_assert_uint_eq(host_stat(&g.a, "replicas"), 1);
    struct control_state state = etcd_state(&g.room);
    ck_assert_uint_eq(state.n_nodes, 2);
    ck_assert_str_eq(state.node[1].repl.text, g.b.config.repl);
    etcd_kill(&g.room, 1, &g.b);
    WAIT_UNTIL(host_says(&g.c, "stuck", "no"));
    WAIT_UNTIL(host_is_followed(&g.a, &g.c));
    WAIT_UNTIL((state = etcd_state(&g.room)).n_nodes == 2);
    ck_assert_str_eq(state.node[1].repl.text, g.c.config.repl);
    host_close(&g.c);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* Nobody may lead: each says so. */
START_TEST(test_nobody_may)
{
    struct group g;
    group_init(&g, 1, 1);
    g.a.config.priority = g.b.config.priority = 0;
    host_open(&g.a, NULL);
    host_open(&g.b, NULL);
    WAIT_UNTIL(host_says(&g.a, "stuck", "priority"));
    WAIT_UNTIL(host_says(&g.b, "stuck", "priority"));
    host_close(&g.b);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

/* What a replica shows is fresh when it has heard so, not before. */
START_TEST(test_stale_at_first)
{
    struct group g;
    group_init(&g, 1, 1);
    g.b.config.stale_ms = 600000;
    etcd_set(&g.room, 1, FAKE_APART, 0);
    host_open(&g.b, NULL);
    ck_assert(!node_is_fresh(g.b.node));
    host_open(&g.a, NULL);
    etcd_set(&g.room, 1, FAKE_WELL, ETCD_LEASE_MS);
    WAIT_UNTIL(leads(&g.a) || leads(&g.b));
    WAIT_UNTIL(node_is_fresh(g.b.node));
    host_close(&g.b);
    host_close(&g.a);
    group_fini(&g);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_first, test_killed, test_kept,
        test_without_etcd, test_isolated, test_begins_full, test_lease,
        test_ordered, test_three, test_new_group, test_cut_off,
        test_lost_answers, test_nobody_speaks, test_no_key, test_lame,
        test_rejoin, test_forced, test_blank_etcd, test_twin, test_nobody_may,
        test_stale_at_first};
    return run_tests("node_control", tests, COUNT_OF(tests));
}

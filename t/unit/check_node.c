/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/node: replicas follow a primary over sockets, whatever becomes of these;
 * what is committed waits for them; roles change. */
#include "durable/snapshot_folder.h"
#include "lib/fake_clock.h"
#include "repl/message.h"
#include "repl/sender.h"
#include "unit/node_help.h"

#include <ctype.h>
#include <sys/resource.h>

enum { ROUNDS = 40, CHANGES = WORLD_CHANGES };

START_TEST(test_follow)
{
    struct world w;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.a.address);
    ck_assert_int_eq(store_fault(w.a.rig.store), 0);
    ck_assert_int_eq(store_fault(w.b.rig.store), ERR_NOT_PRIMARY);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    for (int i = 0; i < ROUNDS; i++) {
        (void)change_some(&w.a, CHANGES);
    }
    ck_assert_int_eq(edit(w.a.rig.store, "add column w wd"), 0);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    ck_assert(hosts_are_equal(&w.a, &w.c, "w"));
    WAIT_UNTIL(host_stat(&w.a, "replicas") == 2);
    ck_assert(host_says(&w.a, "role", "primary"));
    ck_assert(host_says(&w.b, "role", "replica"));
    ck_assert(host_says(&w.b, "link_status", "up"));
    ck_assert(host_says(&w.b, "primary", "a"));
    ck_assert_uint_eq(host_stat(&w.a, "frames_bad"), 0);
    ck_assert_uint_eq(host_stat(&w.b, "links"), 1);
    host_close(&w.a);
    host_close(&w.b);
    host_close(&w.c);
    world_fini(&w);
}
END_TEST

/* Connections break anywhere, also within frames. */
START_TEST(test_breaks)
{
    struct world w;
    world_init(&w, 0, 0);
    atomic_store(&w.b.relay_bytes, 8000);
    host_open(&w.b, w.a.address);
    uint64_t links = 0;
    for (int i = 0; i < ROUNDS || links < 8; i++) {
        (void)change_some(&w.a, CHANGES);
        if (i % 4 == 0) {
            uint64_t n = host_stat(&w.b, "links");
            WAIT_UNTIL(
                host_is_followed(&w.a, &w.b) || host_stat(&w.b, "links") != n);
        }
        links = host_stat(&w.b, "links");
    }
    atomic_store(&w.b.relay_bytes, 0);
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    ck_assert_uint_eq(host_stat(&w.a, "frames_bad"), 0);
    ck_assert_uint_eq(host_stat(&w.b, "frames_bad"), 0);
    ck_assert_uint_eq(host_stat(&w.a, "sync_partial_err"), 0);
    ck_assert_uint_eq(host_stat(&w.a, "sync_full"), 0);
    ck_assert_uint_ge(host_stat(&w.a, "sync_partial_ok"), 2);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* What is committed waits for a replica; and so many are asked for. */
START_TEST(test_semi_sync)
{
    struct world w;
    world_init(&w, 1, 1);
    ck_assert_int_eq(store_fault(w.a.rig.store), ERR_FEW_REPLICAS);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(store_fault(w.a.rig.store) == 0);
    uint64_t seq = change_some(&w.a, 1);
    ck_assert_int_eq(rig_commit(&w.a.rig, seq), STORE_COMMITTED);
    struct store_position position;
    store_position(w.b.rig.store, &position);
    ck_assert_uint_ge(position.written, seq);
    host_close(&w.b);
    WAIT_UNTIL(host_stat(&w.a, "replicas") == 0);
    WAIT_UNTIL(store_fault(w.a.rig.store) == ERR_FEW_REPLICAS);
    /* who has asked before may still change: it waits for the replica */
    seq = change_some(&w.a, 1);
    ck_assert_int_eq(store_outcome(w.a.rig.store, seq), STORE_COMMIT_WAITS);
    host_open(&w.b, w.a.address);
    ck_assert_int_eq(rig_commit(&w.a.rig, seq), STORE_COMMITTED);
    WAIT_UNTIL(store_fault(w.a.rig.store) == 0);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* A replica whose connection stands still comes anew: it is there twice, and
 * counts once. */
START_TEST(test_twice)
{
    struct world w;
    world_init(&w, 2, 0);
    atomic_store(&w.b.relay_bytes, UINT64_MAX);
    host_open(&w.b, w.a.address);
    uint64_t seq = change_some(&w.a, 1);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_wait(&w.a, seq, 1, 0) == 1);
    atomic_store(&w.b.is_stuck, true);
    for (unsigned i = 0; i < 40; i++) {
        host_pause(); /* the relay looks up every 20 ms */
    }
    atomic_store(&w.b.relay_bytes, 0);
    ck_assert_int_eq(host_replicaof(&w.b, w.a.address), 0);
    WAIT_UNTIL(host_stat(&w.a, "sync_partial_ok") == 2);
    ck_assert_uint_eq(host_wait(&w.a, seq, 2, 50), 1);
    ck_assert_int_eq(store_outcome(w.a.rig.store, seq), STORE_COMMIT_WAITS);
    host_open(&w.c, w.a.address);
    ck_assert_int_eq(rig_commit(&w.a.rig, seq), STORE_COMMITTED);
    atomic_store(&w.b.is_stuck, false);
    host_close(&w.c);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

START_TEST(test_wait)
{
    struct world w;
    world_init(&w, 0, 0);
    ck_assert_uint_eq(host_wait(&w.a, 0, 1, 0), 0);
    uint64_t seq = change_some(&w.a, 1);
    ck_assert_uint_eq(host_wait(&w.a, seq, 1, 1), 0);
    host_open(&w.b, w.a.address);
    ck_assert_uint_eq(host_wait(&w.a, seq, 1, 0), 1);
    ck_assert_uint_ge(store_applied(w.b.rig.store), seq);
    host_open(&w.c, w.a.address);
    seq = change_some(&w.a, 10);
    ck_assert_uint_eq(host_wait(&w.a, seq, 2, 0), 2);
    ck_assert_uint_ge(store_applied(w.c.rig.store), seq);
    ck_assert_uint_eq(host_wait(&w.b, seq, 1, 0), 0); /* no primary */
    host_close(&w.b);
    host_close(&w.c);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* Whose client has gone is answered, though nothing else happens. */
START_TEST(test_unwanted)
{
    struct world w;
    struct answer answer;
    _Atomic bool is_unwanted = false;
    struct node_wait wait = {
        .seq = UINT64_MAX, .n = 1, .is_unwanted = &is_unwanted, .n_have = 7};
    world_init(&w, 0, 0);
    answer_init(&answer);
    wait.call = call_of(&answer);
    node_wait(w.a.node, &wait);
    /* what was ordered behind it has been done */
    ck_assert_int_eq(host_replicaof(&w.a, ""), 0);
    atomic_store(&is_unwanted, true);
    answer_wait(&answer);
    answer_fini(&answer);
    ck_assert_uint_eq(wait.n_have, 0);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* Who waits is answered at a stop. */
START_TEST(test_stop)
{
    struct world w;
    struct answer answer;
    struct node_wait wait = {.seq = UINT64_MAX, .n = 1, .n_have = 7};
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    answer_init(&answer);
    wait.call = call_of(&answer);
    node_wait(w.a.node, &wait);
    host_close(&w.a);
    answer_wait(&answer);
    answer_fini(&answer);
    ck_assert_uint_eq(wait.n_have, 0);
    WAIT_UNTIL(host_says(&w.b, "link_status", "down"));
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

/* What was acknowledged before a stop goes to the replicas, also what the node
 * has kept back, to send it with what comes after. */
START_TEST(test_stop_sends)
{
    struct world w;
    struct fake_clock clock;
    fake_clock_init(&clock);
    world_init(&w, 0, 0);
    host_close(&w.a);
    w.a.config.clock = &clock.clock;
    host_open(&w.a, NULL);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    fake_clock_stand(&clock);
    fake_clock_pass(&clock, 1000); /* since the last frame */
    uint64_t seq = change_some(&w.a, 1);
    WAIT_UNTIL(host_last(&w.b) >= seq);
    seq = change_some(&w.a, 1); /* for it no time has passed since */
    WAIT_UNTIL(host_last(&w.a) >= seq);
    host_close(&w.a);
    WAIT_UNTIL(host_says(&w.b, "link_status", "down"));
    WAIT_UNTIL(host_last(&w.b) >= seq);
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

/* A replica that takes nothing does not hold a stop up. */
START_TEST(test_stop_in_vain)
{
    struct world w;
    world_init(&w, 0, 0);
    atomic_store(&w.b.relay_bytes, UINT64_MAX);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    atomic_store(&w.b.is_stuck, true);
    (void)change_some(&w.a, WORLD_CHANGES);
    host_close(&w.a);
    atomic_store(&w.b.is_stuck, false);
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

/* A replica becomes the primary; the old one, and perhaps the other replica,
 * have batches too many: these are cut, and all are the same in the end. */
START_TEST(test_roles)
{
    struct world w;
    char follows[NODE_ADDRESS_MAX + 1];
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    uint64_t term = host_stat(&w.a, "term");
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    WAIT_UNTIL(host_says(&w.b, "role", "primary"));
    ck_assert_uint_gt(host_stat(&w.b, "term"), term);
    ck_assert_int_eq(store_fault(w.b.rig.store), 0);
    (void)change_some(&w.a, 3); /* of which b does not hear */
    ck_assert_int_eq(host_replicaof(&w.c, w.b.address), 0);
    (void)change_some(&w.b, CHANGES);
    ck_assert_int_eq(host_replicaof(&w.a, w.b.address), 0);
    node_follows(w.a.node, follows);
    ck_assert_str_eq(follows, w.b.address);
    ck_assert_int_eq(store_fault(w.a.rig.store), ERR_NOT_PRIMARY);
    WAIT_UNTIL(atomic_load(&w.a.n_reloads) == 1); /* for the cut */
    WAIT_UNTIL(host_stat(&w.a, "cuts") == 1);
    ck_assert_uint_ge(host_stat(&w.a, "cut_batches"), 1);
    host_load_again(&w.a);
    WAIT_UNTIL(host_is_followed(&w.b, &w.a));
    WAIT_UNTIL(
        host_is_followed(&w.b, &w.c) || atomic_load(&w.c.n_reloads) == 1);
    if (atomic_load(&w.c.n_reloads) == 1) { /* it had them, too */
        host_load_again(&w.c);
        WAIT_UNTIL(host_is_followed(&w.b, &w.c));
    }
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    ck_assert(hosts_are_equal(&w.c, &w.b, "w"));
    ck_assert_uint_eq(
        host_stat(&w.b, "sync_partial_err"), 1 + atomic_load(&w.c.n_reloads));
    ck_assert_uint_eq(host_stat(&w.b, "sync_full"), 0);
    host_close(&w.a);
    struct replica_file file;
    ck_assert_int_eq(replica_file_read(w.a.rig.data.disk, &file), 0);
    ck_assert_uint_eq(file.cut_seq, 0);
    ck_assert_uint_eq(file.promised, host_stat(&w.b, "term"));
    ck_assert(!file.is_doubtful && file.is_clean);
    host_close(&w.b);
    host_close(&w.c);
    world_fini(&w);
}
END_TEST

/* All of a snapshot is here, and the directory is about to be loaded anew: what
 * is changed before would be lost. */
START_TEST(test_late)
{
    struct world w;
    int fd;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    struct disk *disk = w.b.rig.data.disk;
    static const char name[] = SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE;
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    disk->calls->close(disk, fd);
    ck_assert_int_eq(host_replicaof(&w.b, ""), ERR_LOADING);
    ck_assert_uint_eq(atomic_load(&w.b.n_reloads), 1);
    ck_assert_int_eq(store_fault(w.b.rig.store), ERR_NOT_PRIMARY);
    ck_assert_int_eq(disk->calls->unlink(disk, name), 0);
    host_load_again(&w.b);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* True where the node says what there is to be done. */
static bool
is_advised(struct host *host)
{
    struct host_stat why = {.name = "link_error"};
    node_each_stat(host->node, host_note_stat, &why);
    return strstr(why.value, "replicaof no one") != NULL;
}

/* A node that has promised a later term is refused, until somebody says that
 * the primary is the right one: it begins a term above that. */
START_TEST(test_later_term)
{
    struct world w;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.a.address);
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    for (unsigned i = 0; i < 3; i++) { /* as by a mistake */
        ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
        ck_assert_int_eq(host_replicaof(&w.b, w.a.address), 0);
    }
    uint64_t term = host_stat(&w.a, "term");
    WAIT_UNTIL(host_stat(&w.a, "refused_term") != 0);
    WAIT_UNTIL(host_stat(&w.b, "term") == host_stat(&w.a, "refused_term"));
    WAIT_UNTIL(is_advised(&w.b));
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    uint64_t promised = host_stat(&w.b, "term"); /* until it is served */
    ck_assert_int_eq(host_replicaof(&w.a, ""), 0);
    ck_assert(node_leads(w.a.node));
    ck_assert_int_eq(store_fault(w.a.rig.store), 0);
    WAIT_UNTIL(host_stat(&w.a, "refused_term") == 0);
    ck_assert_uint_gt(host_stat(&w.a, "term"), term);
    ck_assert_uint_gt(host_stat(&w.a, "term"), promised);
    WAIT_UNTIL(atomic_load(&w.b.n_reloads) == 1); /* its terms are cut */
    host_load_again(&w.b);
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    ck_assert(hosts_are_equal(&w.a, &w.c, "w"));
    WAIT_UNTIL(host_says(&w.b, "link_error", ""));
    term = host_stat(&w.a, "term");
    ck_assert_int_eq(host_replicaof(&w.a, ""), 0); /* there is no need */
    ck_assert_uint_eq(host_stat(&w.a, "term"), term);
    host_close(&w.b);
    host_close(&w.c);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* Two are primaries of the same term: who has followed one of them does not
 * follow the other one in it. */
START_TEST(test_same_term)
{
    struct world w;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    ck_assert_int_eq(host_replicaof(&w.c, w.b.address), 0);
    (void)change_some(&w.b, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.b, &w.c));
    host_close(&w.a);
    host_open(&w.a, NULL); /* by a mistake */
    uint64_t term = host_stat(&w.b, "term");
    WAIT_UNTIL(host_stat(&w.a, "term") == term);
    (void)change_some(&w.a, CHANGES);
    ck_assert_int_eq(host_replicaof(&w.c, w.a.address), 0);
    WAIT_UNTIL(host_stat(&w.a, "refused_term") == term);
    WAIT_UNTIL(is_advised(&w.c));
    ck_assert_uint_eq(host_stat(&w.c, "cuts"), 0);
    ck_assert_int_eq(host_replicaof(&w.a, ""), 0);
    WAIT_UNTIL(atomic_load(&w.c.n_reloads) == 1); /* for the cut */
    host_load_again(&w.c);
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    ck_assert_uint_gt(host_stat(&w.a, "term"), term);
    ck_assert(hosts_are_equal(&w.a, &w.c, "w"));
    host_close(&w.a);
    host_close(&w.b);
    host_close(&w.c);
    world_fini(&w);
}
END_TEST

/* A promotion fails, at each call to the disk: the node goes on following, and
 * is promoted when the disk is well. */
START_TEST(test_promotion_fails)
{
    struct world w;
    unsigned n_failed = 0;
    int err = ERR_DISK;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    for (unsigned n = 1; err != 0; n++) {
        char follows[NODE_ADDRESS_MAX + 1];
        (void)change_some(&w.a, CHANGES);
        WAIT_UNTIL(host_is_followed(&w.a, &w.b));
        fake_disk_fail(w.b.rig.fake, FAKE_CHANGES, n, EIO, true);
        err = host_replicaof(&w.b, "");
        (void)fake_disk_heal(w.b.rig.fake);
        if (err == 0) {
            break;
        }
        n_failed++;
        ck_assert(!node_leads(w.b.node));
        node_follows(w.b.node, follows);
        ck_assert_str_eq(follows, w.a.address);
        ck_assert_int_eq(store_fault(w.b.rig.store), ERR_NOT_PRIMARY);
    }
    ck_assert_uint_gt(n_failed, 2);
    ck_assert(node_leads(w.b.node));
    /* the first batch of its term may be on its way to the disk still */
    ck_assert_int_eq(host_replicaof(&w.a, w.b.address), 0);
    WAIT_UNTIL(store_fault(w.b.rig.store) == 0);
    (void)change_some(&w.b, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.b, &w.a));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    ck_assert_uint_eq(host_stat(&w.a, "frames_bad"), 0);
    host_close(&w.a);
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

/* Nobody connects any more: a primary stays one. */
START_TEST(test_no_dialler)
{
    struct world w;
    world_init(&w, 0, 0);
    (void)change_some(&w.a, CHANGES);
    ck_assert_int_eq(shutdown(w.a.pair[1], SHUT_RDWR), 0);
    ck_assert_int_eq(host_replicaof(&w.a, w.b.address), ERR_NO_DIALLER);
    ck_assert(node_leads(w.a.node));
    ck_assert_int_eq(store_fault(w.a.rig.store), 0);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* A primary that is to follow another one, on a thread of its own. */
struct parting {
    struct host *host;
    const char *address;
    int err; /* what is to come of it */
    pthread_t thread;
};

static void *
part(void *context)
{
    struct parting *parting = context;
    ck_assert_int_eq(
        host_replicaof(parting->host, parting->address), parting->err);
    return NULL;
}

static void
part_later(
    struct parting *parting, struct host *host, const char *address, int err)
{
    *parting = (struct parting){.host = host, .address = address, .err = err};
    ck_assert_int_eq(pthread_create(&parting->thread, NULL, part, parting), 0);
}

/* Begins one, of a, whose replica b has not got all yet, and gets no more. */
static void
part_while_stuck(struct world *w, struct parting *parting, int err)
{
    world_init(w, 0, 0);
    atomic_store(&w->b.relay_bytes, UINT64_MAX);
    host_open(&w->b, w->a.address);
    WAIT_UNTIL(host_is_followed(&w->a, &w->b));
    atomic_store(&w->b.is_stuck, true);
    for (int i = 0; i < ROUNDS; i++) {
        (void)change_some(&w->a, CHANGES);
    }
    part_later(parting, &w->a, w->b.address, err);
    WAIT_UNTIL(store_fault(w->a.rig.store) == ERR_NOT_PRIMARY);
}

/* A primary that is to follow another one: what it has acknowledged is on its
 * replica first, though nobody waited for that. */
START_TEST(test_parting)
{
    struct world w;
    struct parting parting;
    part_while_stuck(&w, &parting, 0);
    atomic_store(&w.b.is_stuck, false);
    ck_assert_int_eq(pthread_join(parting.thread, NULL), 0);
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    WAIT_UNTIL(host_is_followed(&w.b, &w.a));
    ck_assert_uint_eq(host_stat(&w.a, "cuts"), 0);
    ck_assert_uint_eq(atomic_load(&w.a.n_reloads), 0);
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.a);
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

/* Who connects goes while a primary waits for its replicas: it stays one, and
 * takes changes again. */
START_TEST(test_parting_in_vain)
{
    struct world w;
    struct parting parting;
    part_while_stuck(&w, &parting, ERR_NO_DIALLER);
    ck_assert_int_eq(shutdown(w.a.pair[1], SHUT_RDWR), 0);
    atomic_store(&w.b.is_stuck, false);
    ck_assert_int_eq(pthread_join(parting.thread, NULL), 0);
    ck_assert(node_leads(w.a.node));
    ck_assert_int_eq(store_fault(w.a.rig.store), 0);
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

static int (*write_file)(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at);
static atomic_bool holds_writes;

static int
write_held(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at)
{
    while (atomic_load(&holds_writes)) {
        host_pause();
    }
    return write_file(disk, fd, bytes, len, at);
}

/* A primary that is to follow has changes which are not in its log's file yet:
 * it connects when they are, for they belong to what it says it has. Its own
 * thread has them written, and waits for the disk. */
START_TEST(test_unwritten)
{
    enum { LOOKS = 10 };
    struct world w;
    world_init(&w, 0, 0);
    host_close(&w.a);
    struct disk *disk = w.a.rig.data.disk;
    const struct disk_calls *plain = disk->calls;
    struct disk_calls calls = *plain;
    write_file = calls.write;
    calls.write = write_held;
    disk->calls = &calls;
    w.a.config.max_lag_ms = 1; /* it does not wait for the other one */
    host_open(&w.a, NULL);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    struct cell_key key = cell_of(quiet_schema(w.a.rig.store), 1, "wb");
    struct change change = change_of(&key, CHANGE_INCR, 1);
    atomic_store(&holds_writes, true);
    uint64_t seq = do_changes(w.a.rig.store, &change, 1);
    ck_assert_uint_gt(seq, host_last(&w.a));
    ck_assert_int_eq(host_replicaof(&w.a, w.b.address), 0);
    unsigned n_looks = atomic_load(&w.a.n_looks);
    WAIT_UNTIL(atomic_load(&w.a.n_looks) - n_looks > LOOKS);
    ck_assert_uint_gt(seq, host_last(&w.a));
    ck_assert_uint_eq(atomic_load(&w.a.n_dials), 0);
    atomic_store(&holds_writes, false);
    WAIT_UNTIL(atomic_load(&w.a.n_reloads) == 1); /* it is cut */
    host_load_again(&w.a);
    WAIT_UNTIL(host_is_followed(&w.b, &w.a));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.a);
    disk->calls = plain;
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

/* A change that was made just before, and is not in the log's file yet, is
 * waited for, too: it is acknowledged as soon as it is. */
START_TEST(test_parting_unwritten)
{
    struct world w;
    world_init(&w, 0, 0);
    host_close(&w.a);
    struct disk *disk = w.a.rig.data.disk;
    const struct disk_calls *plain = disk->calls;
    struct disk_calls calls = *plain;
    write_file = calls.write;
    calls.write = write_held;
    disk->calls = &calls;
    host_open(&w.a, NULL);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    struct cell_key key = cell_of(quiet_schema(w.a.rig.store), 1, "wb");
    struct change change = change_of(&key, CHANGE_INCR, 1);
    atomic_store(&holds_writes, true);
    uint64_t seq = do_changes(w.a.rig.store, &change, 1);
    ck_assert_uint_gt(seq, host_last(&w.a));
    struct parting parting;
    part_later(&parting, &w.a, w.b.address, 0);
    WAIT_UNTIL(store_fault(w.a.rig.store) == ERR_NOT_PRIMARY);
    unsigned n_looks = atomic_load(&w.a.n_looks);
    WAIT_UNTIL(atomic_load(&w.a.n_looks) - n_looks > 2);
    ck_assert(node_leads(w.a.node));
    atomic_store(&holds_writes, false);
    ck_assert_int_eq(rig_commit(&w.a.rig, seq), STORE_COMMITTED);
    ck_assert_int_eq(pthread_join(parting.thread, NULL), 0);
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    WAIT_UNTIL(host_is_followed(&w.b, &w.a));
    ck_assert_uint_eq(host_stat(&w.a, "cuts"), 0);
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.a);
    disk->calls = plain;
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

static int (*open_file)(
    struct disk *disk, const char *name, enum disk_open how, int *fd);
static int (*read_file)(struct disk *disk, int fd, void *bytes, size_t size,
    uint64_t at, size_t *n_read);
static atomic_bool is_segment[1024];
static atomic_bool holds_reads;
static atomic_uint n_held;

static int
open_noted(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    int err = open_file(disk, name, how, fd);
    if (err == 0 && (size_t)*fd < COUNT_OF(is_segment)) {
        atomic_store(&is_segment[*fd], strstr(name, ".seg") != NULL);
    }
    return err;
}

static int
read_held(struct disk *disk, int fd, void *bytes, size_t size, uint64_t at,
    size_t *n_read)
{
    bool is_held = (size_t)fd < COUNT_OF(is_segment) &&
        atomic_load(&is_segment[fd]) && atomic_load(&holds_reads);
    atomic_fetch_add(&n_held, is_held);
    while (is_held && atomic_load(&holds_reads)) {
        host_pause();
    }
    return read_file(disk, fd, bytes, size, at, n_read);
}

static void *
change_cold(void *context)
{
    struct host *host = context;
    struct cell_key key = cell_of(quiet_schema(host->rig.store), 1, "wb");
    ck_assert_int_eq(change_cell(host->rig.store, &key, CHANGE_INCR, 1), 0);
    return NULL;
}

/* A change that waits for a block of the cold tier when a primary is to follow
 * another one: it is still made, so the replica is to have it, too. */
START_TEST(test_parting_cold)
{
    enum { LOOKS = 10 };
    struct world w;
    pthread_t changer;
    struct parting parting;
    world_init(&w, 0, 0);
    struct disk *disk = w.a.rig.data.disk;
    host_close(&w.a);
    const struct disk_calls *plain = disk->calls;
    struct disk_calls calls = *plain;
    open_file = calls.open;
    read_file = calls.read;
    calls.open = open_noted;
    calls.read = read_held;
    disk->calls = &calls;
    host_open(&w.a, NULL);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert_int_eq(rig_seal_all(&w.a.rig), 0);
    atomic_store(&holds_reads, true);
    ck_assert_int_eq(pthread_create(&changer, NULL, change_cold, &w.a), 0);
    WAIT_UNTIL(atomic_load(&n_held) > 0);
    part_later(&parting, &w.a, w.b.address, 0);
    WAIT_UNTIL(store_fault(w.a.rig.store) == ERR_NOT_PRIMARY);
    unsigned n_looks = atomic_load(&w.a.n_looks);
    WAIT_UNTIL(atomic_load(&w.a.n_looks) - n_looks > LOOKS);
    ck_assert(node_leads(w.a.node));
    atomic_store(&holds_reads, false);
    ck_assert_int_eq(pthread_join(changer, NULL), 0);
    ck_assert_int_eq(pthread_join(parting.thread, NULL), 0);
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    WAIT_UNTIL(host_is_followed(&w.b, &w.a));
    ck_assert_uint_eq(host_stat(&w.a, "cuts"), 0);
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.a);
    disk->calls = plain;
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

/* The machine of a primary was started anew: what it has lost is on a replica.
 */
static void
lose_power(struct host *host)
{
    struct replica_file file;
    host_close(host);
    ck_assert_int_eq(replica_file_read(host->rig.data.disk, &file), 0);
    file.is_clean = false;
    ck_assert_int_eq(replica_file_write(host->rig.data.disk, &file), 0);
    host->config.boot_id[0] ^= 1;
}

START_TEST(test_doubtful_primary)
{
    struct world w;
    world_init(&w, 1, 0);
    host_open(&w.b, w.a.address);
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    lose_power(&w.a);
    host_open(&w.a, NULL);
    ck_assert(!node_leads(w.a.node));
    ck_assert_int_eq(store_fault(w.a.rig.store), ERR_NOT_PRIMARY);
    WAIT_UNTIL(host_stat(&w.a, "doubtful") == 1);
    WAIT_UNTIL(host_says(&w.b, "link_status", "down"));
    ck_assert_int_eq(host_replicaof(&w.b, ""), 0);
    ck_assert_int_eq(host_replicaof(&w.a, w.b.address), 0);
    WAIT_UNTIL(host_is_followed(&w.b, &w.a));
    WAIT_UNTIL(host_stat(&w.a, "doubtful") == 0);
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    lose_power(&w.a);
    host_open(&w.a, NULL);
    ck_assert(!node_leads(w.a.node));
    ck_assert_int_eq(host_replicaof(&w.a, ""), 0); /* somebody says so */
    ck_assert(node_leads(w.a.node));
    lose_power(&w.a);
    w.a.config.semi_sync = 0; /* nobody waited for replicas */
    host_open(&w.a, NULL);
    ck_assert(node_leads(w.a.node));
    host_close(&w.a);
    host_close(&w.b);
    world_fini(&w);
}
END_TEST

/* An empty directory becomes a copy; a second one beside it waits its turn. */
START_TEST(test_snapshot)
{
    struct world w;
    struct host d, e;
    world_init(&w, 0, 0);
    (void)change_some(&w.a, CHANGES);
    ck_assert_int_eq(rig_seal_all(&w.a.rig), 0);
    (void)change_some(&w.a, CHANGES);
    host_init(&d, "d", 4);
    host_init(&e, "e", 5);
    host_open(&d, w.a.address);
    host_open(&e, w.a.address);
    WAIT_UNTIL(atomic_load(&d.n_reloads) == 1);
    ck_assert(host_says(&d, "role", "syncing"));
    (void)change_some(&w.a, CHANGES);
    host_load_again(&d);
    WAIT_UNTIL(host_is_followed(&w.a, &d));
    WAIT_UNTIL(atomic_load(&e.n_reloads) == 1);
    host_load_again(&e);
    WAIT_UNTIL(host_is_followed(&w.a, &e));
    ck_assert(hosts_are_equal(&w.a, &d, "w"));
    ck_assert(hosts_are_equal(&w.a, &e, "w"));
    ck_assert_uint_ge(host_stat(&w.a, "sync_full"), 2);
    ck_assert_uint_gt(host_stat(&w.a, "sync_bytes"), 0);
    host_close(&d);
    host_close(&e);
    host_close(&w.a);
    host_fini(&d);
    host_fini(&e);
    world_fini(&w);
}
END_TEST

/* Fills some files of the log, and lets go of those that are not needed. */
static void
fill_files(struct host *host)
{
    uint64_t file = rig_stat(&host->rig, "file");
    while (rig_stat(&host->rig, "file") < file + 3) {
        (void)change_some(host, CHANGES);
    }
    ck_assert_int_eq(rig_checkpoint(&host->rig), 0);
}

/* The log is kept for a replica that has gone; but not more than its bound. */
START_TEST(test_place)
{
    struct world w;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    host_close(&w.b);
    WAIT_UNTIL(host_stat(&w.a, "replicas") == 0);
    WAIT_UNTIL(host_stat(&w.a, "places") == 1);
    fill_files(&w.a);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_stat(&w.a, "places") == 0);
    ck_assert_uint_eq(host_stat(&w.a, "sync_full"), 0);
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.b);
    host_close(&w.a);
    w.a.config.backlog_bytes = 1;
    host_open(&w.a, NULL);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    host_close(&w.b);
    WAIT_UNTIL(host_stat(&w.a, "replicas") == 0);
    fill_files(&w.a);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(atomic_load(&w.b.n_reloads) == 1);
    host_load_again(&w.b);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert_uint_eq(host_stat(&w.a, "sync_full"), 1);
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* The disk of a replica has no room: nothing is lost by that. */
START_TEST(test_full_disk)
{
    struct world w;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    fake_disk_limit(w.b.rig.fake, 1);
    while (!host_replica_says(&w.a, "b", "disk_full=1")) {
        (void)change_some(&w.a, CHANGES); /* until a file is full */
        host_pause();
    }
    ck_assert(!host_is_followed(&w.a, &w.b));
    fake_disk_limit(w.b.rig.fake, UINT64_MAX);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_replica_says(&w.a, "b", "disk_full=0"));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* True where the log was given what it has not written. */
static bool
has_unwritten(struct host *host)
{
    return rig_stat(&host->rig, "last_seq") > host_stat(host, "written_seq");
}

/* The same, and the link ends meanwhile: the node comes again, with what it has
 * written, though its log was given more. */
START_TEST(test_full_disk_again)
{
    struct world w;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    fake_disk_limit(w.b.rig.fake, 1);
    while (
        !host_replica_says(&w.a, "b", "disk_full=1") || !has_unwritten(&w.b)) {
        (void)change_some(&w.a, CHANGES);
        host_pause();
    }
    uint64_t written = host_stat(&w.b, "written_seq");
    ck_assert_int_eq(host_replicaof(&w.b, w.a.address), 0);
    WAIT_UNTIL(host_stat(&w.a, "sync_partial_ok") == 2);
    WAIT_UNTIL(host_says(&w.b, "link_status", "up")); /* it is welcome */
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_replica_says(&w.a, "b", "disk_full=1"));
    ck_assert(host_says(&w.b, "link_status", "up"));
    ck_assert(has_unwritten(&w.b));
    ck_assert_uint_eq(host_stat(&w.b, "written_seq"), written);
    fake_disk_limit(w.b.rig.fake, UINT64_MAX);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    ck_assert_uint_eq(host_stat(&w.a, "frames_bad"), 0);
    ck_assert_uint_eq(host_stat(&w.b, "frames_bad"), 0);
    ck_assert_uint_eq(host_stat(&w.b, "cuts"), 0);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* Leaves a disk that much room. */
static void
leave_room(struct host *host, uint64_t bytes)
{
    const uint64_t much = UINT64_C(1) << 40;
    struct disk *disk = host->rig.data.disk;
    uint64_t room;
    fake_disk_limit(host->rig.fake, much);
    ck_assert_int_eq(disk->calls->room(disk, &room), 0);
    fake_disk_limit(host->rig.fake, much - room + bytes);
}

/* b has lost its connection to a for now; a has a burst for it. */
static void
hold_burst(struct world *w, uint64_t burst_bytes)
{
    w->b.config.timeout_ms = 200;
    atomic_store(&w->b.relay_bytes, UINT64_MAX);
    host_open(&w->b, w->a.address);
    WAIT_UNTIL(host_is_followed(&w->a, &w->b));
    atomic_store(&w->b.is_stuck, true);
    uint64_t bytes = rig_stat(&w->a.rig, "bytes");
    while (rig_stat(&w->a.rig, "bytes") < bytes + burst_bytes) {
        (void)change_some(&w->a, CHANGES);
    }
}

/* The disk of a replica that a primary waits for is full, and nobody makes room
 * but its own checkpoint, which may have only what is committed. What is, is
 * said behind the batches that it cannot take: so it comes anew to hear it. */
START_TEST(test_full_disk_ahead)
{
    enum { ROOM = 1 << 16, BURST = 1 << 21 };
    struct world w;
    world_init(&w, 1, 0);
    hold_burst(&w, BURST);
    leave_room(&w.b, ROOM);
    atomic_store(&w.b.is_stuck, false);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    /* who has no room for a new file, and is stopped, says so */
    fake_disk_limit(w.b.rig.fake, UINT64_MAX);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* The same, and the log has taken what it cannot write. A checkpoint is under
 * way, waits for what is committed, and gives no room before. */
START_TEST(test_full_disk_unwritten)
{
    enum { PART = 1 << 20, BURST = 1 << 21 }; /* of frames of 256 KiB */
    struct world w;
    struct rig_later later;
    world_init(&w, 1, 0);
    hold_burst(&w, BURST);
    uint64_t bytes = rig_stat(&w.b.rig, "bytes");
    atomic_store(&w.b.stuck_bytes, PART);
    atomic_store(&w.b.is_stuck, false);
    WAIT_UNTIL(atomic_load(&w.b.is_stuck));
    WAIT_UNTIL(rig_stat(&w.b.rig, "bytes") > bytes + PART / 2);
    bytes = rig_stat(&w.b.rig, "checkpoint_bytes");
    rig_checkpoint_later(&w.b.rig, &later);
    WAIT_UNTIL(rig_stat(&w.b.rig, "checkpoint_bytes") > bytes);
    leave_room(&w.b, 0);
    uint64_t seq = host_stat(&w.b, "written_seq");
    atomic_store(&w.b.is_stuck, false);
    WAIT_UNTIL(host_stat(&w.b, "committed_seq") >= seq);
    fake_disk_limit(w.b.rig.fake, UINT64_MAX); /* by hand: more is needed */
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    (void)rig_wait(&later);
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* Who does not know the secret, or is of another group, is not served. */
START_TEST(test_strangers)
{
    struct world w;
    world_init(&w, 0, 0);
    if (proof_is_there()) {
        w.b.secret.n_bytes = PROOF_SECRET_MIN;
        host_open(&w.b, w.a.address);
        WAIT_UNTIL(host_stat(&w.b, "links") >= 2);
        ck_assert(host_says(&w.b, "link_status", "down"));
        host_close(&w.b);
        w.b.secret.n_bytes = 0;
    }
    ck_assert(node_name_set(&w.b.config.group, "other", 5));
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_stat(&w.b, "links") >= 2);
    ck_assert(host_says(&w.b, "link_status", "down"));
    host_close(&w.b);
    ck_assert_uint_eq(host_stat(&w.a, "sync_partial_ok"), 0);
    /* one that is no primary says so */
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.b.address);
    WAIT_UNTIL(host_stat(&w.b, "refused") >= 2);
    host_close(&w.b);
    host_close(&w.c);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* Reads until the other end closes; how many bytes came. */
static size_t
read_all(int fd, uint8_t *bytes, size_t size)
{
    size_t len = 0;
    ssize_t n;
    while ((n = recv(fd, bytes + len, size - len, 0)) > 0) {
        len += (size_t)n;
    }
    return len;
}

START_TEST(test_garbage)
{
    struct world w;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    for (unsigned i = 0; i < 20; i++) {
        uint8_t bytes[4096];
        int fd = connect_to(w.a.address);
        ck_assert_int_ge(fd, 0);
        for (size_t k = 0; k < sizeof bytes; k++) {
            bytes[k] = (uint8_t)random_below(&w.a.random, 256);
        }
        (void)send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        (void)read_all(fd, bytes, sizeof bytes);
        (void)close(fd);
    }
    WAIT_UNTIL(host_stat(&w.a, "frames_bad") == 20);
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert_uint_eq(host_stat(&w.b, "links"), 1);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

enum { CHALLENGE_BYTES = STREAM_HEAD_BYTES + STREAM_NONCE_BYTES };

/* Who connects is asked who it is. */
static int
be_asked(struct host *host, uint8_t bytes[CHALLENGE_BYTES])
{
    int fd = connect_to(host->address);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(
        recv(fd, bytes, CHALLENGE_BYTES, MSG_WAITALL), CHALLENGE_BYTES);
    ck_assert_uint_eq(bytes[5], STREAM_CHALLENGE);
    return fd;
}

static struct message_text
words(const char *text)
{
    return (struct message_text){(const uint8_t *)text, (uint8_t)strlen(text)};
}

/* A replica of that name that has all, and has promised that term: it
 * connects, and says so. The type of the frame that comes then. */
static int
greet_with(struct host *host, const char *name, uint64_t promised, int *fd)
{
    uint8_t bytes[STREAM_HEAD_BYTES + MESSAGE_SMALL_MAX];
    struct store_directory directory;
    struct store_position position;
    store_directory(host->rig.store, &directory);
    store_position(host->rig.store, &position);
    struct message_hello hello = {.purpose = MESSAGE_FOLLOW,
        .least = 1,
        .most = 1,
        .formats = {UINT8_MAX, UINT8_MAX, UINT8_MAX},
        .shards = directory.shards,
        .epoch = directory.epoch,
        .seed = directory.seed,
        .promised = promised,
        .written = position.written,
        .synced = position.synced,
        .group = words("posts"),
        .name = words(name),
        .history = position.history};
    *fd = be_asked(host, bytes);
    struct proof_claim claim = {.accepting = bytes + STREAM_HEAD_BYTES,
        .connecting = hello.nonce,
        .purpose = MESSAGE_FOLLOW,
        .group = hello.group.at,
        .name = hello.name.at,
        .group_len = hello.group.len,
        .name_len = hello.name.len};
    ck_assert_int_eq(proof__make(&host->secret, &claim, hello.proof), 0);
    size_t len = message_put_hello(bytes + STREAM_HEAD_BYTES, &hello);
    len = stream_seal(bytes, STREAM_HELLO, (uint32_t)len, promised, 0);
    ck_assert_int_eq(send(*fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
    ck_assert_int_eq(
        recv(*fd, bytes, STREAM_HEAD_BYTES, MSG_WAITALL), STREAM_HEAD_BYTES);
    return bytes[5];
}

static int
greet(struct host *host, const char *name, int *fd)
{
    return greet_with(host, name, 1, fd);
}

/* Who has promised a term that no promotions lead to makes a primary neither
 * use its terms up nor unable to begin one. */
START_TEST(test_term_of_nowhere)
{
    static const uint64_t far[] = {SEQ_TERM_MAX, SEQ_TERM_MAX - 1, 1 << 20};
    struct world w;
    world_init(&w, 0, 0);
    for (unsigned i = 0; i < COUNT_OF(far); i++) {
        int fd;
        ck_assert_int_eq(greet_with(&w.a, "far", far[i], &fd), STREAM_ERROR);
        (void)close(fd);
    }
    ck_assert_uint_eq(host_stat(&w.a, "refused_term"), 0);
    uint64_t term = host_stat(&w.a, "term");
    int fd;
    ck_assert_int_eq(greet_with(&w.a, "near", term + 9, &fd), STREAM_ERROR);
    (void)close(fd);
    WAIT_UNTIL(host_stat(&w.a, "refused_term") == term + 9);
    ck_assert_int_eq(host_replicaof(&w.a, ""), 0);
    ck_assert_uint_eq(host_stat(&w.a, "term"), term + 10);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* One replica too many is told so; but not one that comes anew. */
START_TEST(test_too_many)
{
    struct world w;
    int fd[NODE_STREAMS_MAX], one_more;
    uint8_t bytes[4096];
    char name[8];
    world_init(&w, 0, 0);
    for (unsigned i = 0; i < NODE_STREAMS_MAX; i++) {
        (void)snprintf(name, sizeof name, "r%u", i);
        ck_assert_int_eq(greet(&w.a, name, &fd[i]), STREAM_WELCOME);
    }
    WAIT_UNTIL(host_stat(&w.a, "replicas") == NODE_STREAMS_MAX);
    ck_assert_int_eq(greet(&w.a, "another", &one_more), STREAM_ERROR);
    (void)close(one_more);
    WAIT_UNTIL(host_stat(&w.a, "refused") == 1);
    ck_assert_uint_eq(host_stat(&w.a, "replicas"), NODE_STREAMS_MAX);
    ck_assert_int_eq(greet(&w.a, "r3", &one_more), STREAM_WELCOME);
    while (read_all(fd[3], bytes, sizeof bytes) == sizeof bytes) {
    }
    (void)close(one_more);
    for (unsigned i = 0; i < NODE_STREAMS_MAX; i++) {
        (void)close(fd[i]);
    }
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* Ever so many that do not say who they are keep no replica out. */
START_TEST(test_crowd)
{
    struct world w;
    int fd[3 * SENDER_STRANGERS_MAX];
    uint8_t bytes[CHALLENGE_BYTES];
    world_init(&w, 0, 0);
    for (size_t i = 0; i < COUNT_OF(fd); i++) {
        fd[i] = be_asked(&w.a, bytes);
    }
    WAIT_UNTIL(host_stat(&w.a, "strangers") == SENDER_STRANGERS_MAX);
    ck_assert_uint_eq(read_all(fd[0], bytes, sizeof bytes), 0);
    ck_assert_uint_eq(host_stat(&w.a, "replicas"), 0);
    WAIT_UNTIL(
        host_stat(&w.a, "refused") == COUNT_OF(fd) - SENDER_STRANGERS_MAX);
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    WAIT_UNTIL(host_stat(&w.a, "replicas") == 2);
    ck_assert_uint_eq(host_stat(&w.b, "links"), 1);
    ck_assert(!host_replica_says(&w.a, "unknown", "")); /* none of these */
    for (size_t i = 0; i < COUNT_OF(fd); i++) {
        (void)close(fd[i]);
    }
    WAIT_UNTIL(host_stat(&w.a, "strangers") == 0);
    host_close(&w.b);
    host_close(&w.c);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* A number of what the node says of a replica; UINT64_MAX: it is none. */
static uint64_t
replica_number(struct host *host, const char *name, const char *key)
{
    struct host_stat stat = {.name = name};
    node_each_replica(host->node, host_note_stat, &stat);
    const char *at = stat.is_there ? strstr(stat.value, key) : NULL;
    return at == NULL || !isdigit((unsigned char)at[strlen(key)])
        ? UINT64_MAX
        : strtoull(at + strlen(key), NULL, 10);
}

/* What a replica lacks that stands still, and since when. */
START_TEST(test_lag)
{
    struct world w;
    world_init(&w, 0, 0);
    atomic_store(&w.b.relay_bytes, UINT64_MAX);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    WAIT_UNTIL(replica_number(&w.a, "b", " lag_ms=") == 0);
    WAIT_UNTIL(host_stat(&w.b, "lag_ms") == 0);
    atomic_store(&w.b.is_stuck, true);
    for (unsigned i = 0; i < 40; i++) {
        host_pause(); /* the relay looks up every 20 ms */
    }
    while (replica_number(&w.a, "b", " lag_bytes=") == 0) {
        (void)change_some(&w.a, 1);
        host_pause();
    }
    uint64_t since_ns = clock_monotonic_ns(); /* it is known to lack some */
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned k = 0; k < 20; k++) {
            host_pause();
        }
        uint64_t least = (clock_monotonic_ns() - since_ns) / 1000000;
        ck_assert_uint_ge(replica_number(&w.a, "b", " lag_ms="), least);
        ck_assert_uint_le(replica_number(&w.a, "b", " lag_ms="), 60000);
    }
    /* not at once: a mark may come between the two */
    WAIT_UNTIL(host_stat(&w.a, "repl_unshipped_bytes") ==
        replica_number(&w.a, "b", " lag_bytes="));
    atomic_store(&w.b.is_stuck, false);
    WAIT_UNTIL(replica_number(&w.a, "b", " lag_ms=") == 0 &&
        replica_number(&w.a, "b", " lag_bytes=") == 0);
    WAIT_UNTIL(host_stat(&w.a, "repl_unshipped_bytes") == 0);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

static void
add_waits(void *context, const char *name, const char *value)
{
    uint64_t *n = context;
    if (strncmp(name, "commit_us_below_", 16) == 0 ||
        strncmp(name, "lag_us_below_", 13) == 0) {
        *n += strtoull(value, NULL, 10);
    }
}

static uint64_t
n_waits(struct host *host)
{
    uint64_t n = 0;
    node_each_stat(host->node, add_waits, &n);
    return n;
}

/* How long commits wait for a replica, and what has come to one until it is
 * applied. */
START_TEST(test_commit_waits)
{
    struct world w;
    world_init(&w, 1, 0);
    host_open(&w.b, w.a.address);
    uint64_t seq = change_some(&w.a, 1);
    ck_assert_int_eq(rig_commit(&w.a.rig, seq), STORE_COMMITTED);
    WAIT_UNTIL(n_waits(&w.a) > 0);
    WAIT_UNTIL(n_waits(&w.b) > 0);
    uint64_t late = host_stat(&w.a, "commits_late");
    host_close(&w.b);
    seq = change_some(&w.a, 1);
    WAIT_UNTIL(host_stat(&w.a, "commits_late") > late);
    uint64_t waits = n_waits(&w.a);
    host_open(&w.b, w.a.address);
    ck_assert_int_eq(rig_commit(&w.a.rig, seq), STORE_COMMITTED);
    WAIT_UNTIL(n_waits(&w.a) > waits);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

static void
come_and_go(struct host *host, unsigned i)
{
    char name[8];
    int fd;
    (void)snprintf(name, sizeof name, "r%u", i);
    ck_assert_int_eq(greet(host, name, &fd), STREAM_WELCOME);
    (void)close(fd);
}

/* True where the first file that the log has is a later one, once it has let go
 * of those that are not needed. */
static bool
lets_go(struct host *host, uint64_t first)
{
    (void)change_some(host, 1);
    ck_assert_int_eq(rig_checkpoint(&host->rig), 0);
    return rig_stat(&host->rig, "first_file") > first;
}

/* The log is kept for so many that have gone, and not for those who went
 * first. */
START_TEST(test_places)
{
    struct world w;
    world_init(&w, 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        come_and_go(&w.a, i);
        WAIT_UNTIL(host_stat(&w.a, "places") == i + 1);
    }
    fill_files(&w.a);
    uint64_t first = rig_stat(&w.a.rig, "first_file");
    for (unsigned i = 2; i < SENDER_PLACES_MAX; i++) {
        come_and_go(&w.a, i);
        WAIT_UNTIL(host_stat(&w.a, "places") == i + 1);
    }
    ck_assert_uint_eq(host_stat(&w.a, "places_dropped"), 0);
    ck_assert_int_eq(rig_checkpoint(&w.a.rig), 0);
    ck_assert_uint_eq(rig_stat(&w.a.rig, "first_file"), first);
    come_and_go(&w.a, SENDER_PLACES_MAX);
    come_and_go(&w.a, SENDER_PLACES_MAX + 1);
    WAIT_UNTIL(host_stat(&w.a, "places_dropped") == 2);
    WAIT_UNTIL(host_stat(&w.a, "places") == SENDER_PLACES_MAX);
    fill_files(&w.a);
    WAIT_UNTIL(lets_go(&w.a, first)); /* another thread closes these places */
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* Without descriptors nobody is accepted; when there are some again, all
 * are. */
START_TEST(test_no_descriptors)
{
    struct world w;
    struct rlimit limit;
    world_init(&w, 0, 0);
    host_open(&w.b, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in addr;
    socklen_t len = sizeof addr;
    ck_assert_int_eq(
        getsockname(w.a.listen_fd, (struct sockaddr *)&addr, &len), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {3, limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(
        connect(fd, (const struct sockaddr *)&addr, sizeof addr), 0);
    WAIT_UNTIL(host_stat(&w.a, "accept_pauses") >= 3);
    ck_assert_uint_eq(host_stat(&w.a, "strangers"), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    WAIT_UNTIL(host_stat(&w.a, "strangers") == 1);
    (void)change_some(&w.a, CHANGES);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert_uint_eq(host_stat(&w.b, "links"), 1);
    (void)close(fd);
    host_close(&w.b);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

/* One that does not read holds nobody up, and comes again. */
START_TEST(test_slow)
{
    struct world w;
    world_init(&w, 0, 0);
    w.b.config.timeout_ms = 500;
    atomic_store(&w.b.relay_bytes, UINT64_MAX);
    host_open(&w.b, w.a.address);
    host_open(&w.c, w.a.address);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    atomic_store(&w.b.is_stuck, true);
    for (int i = 0; i < ROUNDS; i++) {
        (void)change_some(&w.a, CHANGES);
    }
    WAIT_UNTIL(host_is_followed(&w.a, &w.c));
    WAIT_UNTIL(host_says(&w.b, "link_status", "down"));
    atomic_store(&w.b.is_stuck, false);
    WAIT_UNTIL(host_is_followed(&w.a, &w.b));
    ck_assert(hosts_are_equal(&w.a, &w.b, "w"));
    host_close(&w.b);
    host_close(&w.c);
    host_close(&w.a);
    world_fini(&w);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_follow, test_breaks, test_semi_sync,
        test_twice, test_wait, test_unwanted, test_stop, test_stop_sends,
        test_stop_in_vain, test_roles, test_parting, test_unwritten,
        test_parting_unwritten, test_parting_cold, test_parting_in_vain,
        test_doubtful_primary, test_full_disk, test_full_disk_again,
        test_full_disk_ahead, test_full_disk_unwritten, test_late,
        test_later_term, test_term_of_nowhere, test_same_term,
        test_promotion_fails, test_no_dialler, test_snapshot, test_place,
        test_strangers, test_garbage, test_too_many, test_slow, test_lag,
        test_commit_waits, test_crowd, test_places, test_no_descriptors};
    return run_tests("node", tests, COUNT_OF(tests));
}

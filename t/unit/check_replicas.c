/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores whose directories are copies: one follows the other, through restarts
 * and crashes, leads in its turn, and is cut where the two have parted. Both
 * have the same batches, byte for byte, and the same records. */
#include "unit/replicas_help.h"

#include <errno.h>

/* A primary with two counters, and what follows it. */
struct two {
    struct rig a, b;
};

/* Sets a column of some ids; what a client is told of it is not remembered. */
static void
set_some(struct rig *rig, const char *name, uint64_t value)
{
    enum { IDS = 36, AT_ONCE = 12 };
    struct change change[AT_ONCE];
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, name);
    for (key.id = 0; key.id < IDS;) {
        unsigned n = 0;
        for (; n < AT_ONCE; n++, key.id++) {
            change[n] = change_of(&key, CHANGE_SET, value + key.id);
        }
        (void)store_commit(
            rig->store, do_changes(rig->store, change, AT_ONCE));
    }
}

static void
two_open(struct two *two, enum wal_sync sync, uint64_t seed)
{
    copy_init(&two->a, WAL_SYNC_ALWAYS, seed);
    copy_init(&two->b, sync, seed + 1);
    copy_open(&two->a);
    ck_assert_uint_eq(position_of(&two->a).written, 0);
    ck_assert_uint_eq(copy_lead(&two->a, "a"), seq_first(1));
    rig_add_counter(&two->a, 'a');
    rig_add_counter(&two->a, 'b');
    set_some(&two->a, "ax", 5);
    copy_open(&two->b);
    store_set_committed(two->b.store, UINT64_MAX);
}

static void
two_end(struct two *two)
{
    ck_assert_int_eq(rig_close(&two->a), 0);
    ck_assert_int_eq(rig_close(&two->b), 0);
    rig_fini(&two->a);
    rig_fini(&two->b);
}

START_TEST(test_follows)
{
    struct two two;
    struct store_directory one, other;
    two_open(&two, WAL_SYNC_INTERVAL, 1);
    store_directory(two.a.store, &one);
    store_directory(two.b.store, &other);
    ck_assert_uint_ne(one.epoch, 0);
    ck_assert_uint_ne(one.epoch, other.epoch);
    ck_assert_uint_eq(one.shards, two.a.store->shards);
    ck_assert_ptr_eq(store_disk(two.a.store), two.a.data.disk);
    ck_assert_uint_eq(position_of(&two.b).history.n, 0);
    feed(&two.a, &two.b);
    expect_same(&two.a, &two.b);
    ck_assert_uint_eq(position_of(&two.b).history.n, 1);
    ck_assert_uint_eq(position_of(&two.b).history.at[0].term, 1);
    for (unsigned i = 0; i < 20; i++) {
        set_some(&two.a, i % 2 == 0 ? "ax" : "bx", i);
        feed(&two.a, &two.b);
        if (i % 5 == 0) {
            ck_assert_int_eq(rig_checkpoint(&two.b), 0);
        }
    }
    expect_same(&two.a, &two.b);
    ck_assert_uint_gt(position_of(&two.b).begin, 0);
    two_end(&two);
}
END_TEST

/* Stopped, killed and cut from power at any time, it goes on from where it
 * says that it is. */
START_TEST(test_restarts)
{
    enum { ROUNDS = 24 };
    struct two two;
    two_open(&two, WAL_SYNC_INTERVAL, 3);
    for (unsigned i = 0; i < ROUNDS; i++) {
        set_some(&two.a, i % 2 == 0 ? "ax" : "bx", i);
        uint64_t last = copy_written(&two.a);
        uint64_t at = position_of(&two.b).written;
        feed_to(&two.a, &two.b, at < last ? at + (last - at) / 2 : last);
        if (i % 6 == 0) {
            (void)rig_checkpoint(&two.b);
        }
        if (i % 3 != 0) {
            fake_disk_die(two.b.fake, 1 + i % 4);
        }
        (void)rig_close(&two.b);
        if (i % 3 == 1) {
            fake_disk_crash(two.b.fake);
        } else {
            fake_disk_revive(two.b.fake);
        }
        copy_open(&two.b);
        struct store_position now = position_of(&two.b);
        ck_assert_uint_eq(now.written, now.applied);
        ck_assert_uint_eq(now.written, now.synced);
        store_set_committed(two.b.store, UINT64_MAX);
    }
    feed(&two.a, &two.b);
    expect_same(&two.a, &two.b);
    two_end(&two);
}
END_TEST

/* It is so in the end; and where it is to wait, when the log has it. */
static void
expect_outcome(struct rig *rig, uint64_t seq, enum store_commit wanted)
{
    (void)copy_written(rig);
    while (position_of(rig).synced < seq) {
        sched_yield();
    }
    enum store_commit is = store_outcome(rig->store, seq);
    while (is == STORE_COMMIT_WAITS && wanted != STORE_COMMIT_WAITS) {
        sched_yield();
        is = store_outcome(rig->store, seq);
    }
    ck_assert_int_eq(is, wanted);
}

/* Nothing is acknowledged before the others have it, and what they do not have
 * when the primary steps down never is. */
START_TEST(test_committed)
{
    struct rig rig;
    struct change change;
    uint64_t first, seq[3];
    copy_init(&rig, WAL_SYNC_ALWAYS, 5);
    copy_open(&rig);
    ck_assert_int_eq(store_begin_term(rig.store, "a", 1, 7, &first), 0);
    ck_assert_uint_eq(first, seq_first(7));
    expect_outcome(&rig, first, STORE_COMMIT_WAITS);
    store_set_committed(rig.store, first);
    expect_outcome(&rig, first, STORE_COMMITTED);
    store_set_committed(rig.store, UINT64_MAX);
    rig_add_counter(&rig, 'a');
    struct cell_key key = cell_of(quiet_schema(rig.store), 1, "ax");
    ck_assert_int_eq(store_set_replica(rig.store), 0);
    ck_assert_int_eq(store_begin_term(rig.store, "a", 1, 0, &first), 0);
    ck_assert_uint_eq(first, seq_first(8));
    for (unsigned i = 0; i < 3; i++) {
        change = change_of(&key, CHANGE_SET, i);
        seq[i] = do_changes(rig.store, &change, 1);
        expect_outcome(&rig, seq[i], STORE_COMMIT_WAITS);
    }
    unsigned n_told = rig.n_told;
    store_set_committed(rig.store, seq[0]);
    ck_assert_uint_gt(rig.n_told, n_told);
    expect_outcome(&rig, seq[0], STORE_COMMITTED);
    expect_outcome(&rig, seq[1], STORE_COMMIT_WAITS);
    ck_assert_uint_eq(store_seen(rig.store, &key, 1), seq[2]);
    store_set_committed(rig.store, 1); /* does not go back */
    expect_outcome(&rig, seq[0], STORE_COMMITTED);
    ck_assert_int_eq(store_set_replica(rig.store), 0);
    expect_outcome(&rig, seq[0], STORE_COMMITTED);
    expect_outcome(&rig, seq[1], STORE_COMMIT_FAILED);
    ck_assert_int_eq(store_begin_term(rig.store, "a", 1, 0, &first), 0);
    store_set_committed(rig.store, UINT64_MAX);
    expect_outcome(&rig, seq[0], STORE_COMMITTED);
    expect_outcome(&rig, seq[2], STORE_COMMIT_FAILED);
    expect_outcome(&rig, first, STORE_COMMITTED);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* A client that changes what it may. */
struct client {
    struct store *store;
    struct cell_key key;
    atomic_uint n; /* changes so far */
    pthread_t thread;
};

static void *
change_on(void *arg)
{
    struct client *it = arg;
    struct qsbr_reader reader;
    bool is_refused = false;
    qsbr_register(it->store->qsbr, &reader);
    while (!is_refused) {
        qsbr_online(it->store->qsbr, &reader);
        is_refused = store_fault(it->store) != 0;
        for (unsigned i = 0; i < 8 && !is_refused; i++) {
            struct change change = change_of(&it->key, CHANGE_INCR, 1);
            struct store_change call = {.n = 1, .change = &change};
            enum store_answer given = store_change(it->store, &call);
            EXPECT(given == STORE_DONE && change.err == 0, "refused");
            it->key.id = (it->key.id + 7) % 64;
            atomic_fetch_add(&it->n, 1);
        }
        qsbr_offline(&reader);
    }
    qsbr_unregister(it->store->qsbr, &reader);
    return NULL;
}

/* A primary becomes a replica while clients are at it: what they have done is
 * in the log. */
START_TEST(test_steps_down)
{
    enum { CLIENTS = 3, ROUNDS = 20 };
    struct client client[CLIENTS];
    struct two two;
    two_open(&two, WAL_SYNC_ALWAYS, 31);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct cell_key key = cell_of(quiet_schema(two.a.store), 0, "ax");
        for (unsigned i = 0; i < CLIENTS; i++) {
            client[i].store = two.a.store;
            client[i].key = key;
            client[i].key.id = i;
            atomic_init(&client[i].n, 0);
            ck_assert_int_eq(
                pthread_create(&client[i].thread, NULL, change_on, &client[i]),
                0);
        }
        while (atomic_load(&client[round % CLIENTS].n) < 16 * (round + 1)) {
            sched_yield();
        }
        ck_assert_int_eq(store_set_replica(two.a.store), 0);
        for (unsigned i = 0; i < CLIENTS; i++) {
            ck_assert_int_eq(pthread_join(client[i].thread, NULL), 0);
        }
        feed(&two.a, &two.b);
        expect_same(&two.a, &two.b);
        (void)copy_lead(&two.a, "a");
    }
    two_end(&two);
}
END_TEST

/* What both have up to the batch returned; then a has what b does not have, and
 * stops; b leads, and has what a does not. */
static uint64_t
part(struct two *two, uint64_t seed)
{
    two_open(two, WAL_SYNC_ALWAYS, seed);
    feed(&two->a, &two->b);
    uint64_t seq = position_of(&two->b).written;
    set_some(&two->a, "ax", 77);
    ck_assert_int_eq(edit(two->a.store, "add column a ay max=64"), 0);
    set_some(&two->a, "ay", 78);
    ck_assert_uint_gt(copy_written(&two->a), seq);
    ck_assert_int_eq(rig_close(&two->a), 0);
    (void)copy_lead(&two->b, "b");
    ck_assert_int_eq(edit(two->b.store, "add column b by max=64"), 0);
    set_some(&two->b, "by", 9);
    (void)copy_written(&two->b);
    return seq;
}

/* a follows b from there on. */
static void
join(struct two *two, uint64_t seq)
{
    struct store_position at = position_of(&two->a);
    ck_assert_uint_eq(at.written, seq);
    ck_assert_uint_eq(at.synced, seq);
    ck_assert_uint_eq(at.applied, seq);
    ck_assert_uint_eq(at.history.n, 1);
    ck_assert_uint_eq(read_replica(&two->a).cut_seq, 0);
    ck_assert(!read_replica(&two->a).is_salvaged);
    store_set_committed(two->a.store, UINT64_MAX);
    feed(&two->b, &two->a);
    expect_same(&two->a, &two->b);
}

/* True where there is a file that a cut has left. */
static bool
has_cut(struct rig *rig)
{
    struct disk *disk = rig->data.disk;
    int fd;
    int error = disk->calls->open(
        disk, "cut-00000000000000000001.wal", DISK_READ, &fd);
    if (error == 0) {
        disk->calls->close(disk, fd);
    }
    return error == 0;
}

START_TEST(test_cut)
{
    struct two two;
    uint64_t seq = part(&two, 11);
    order_cut(&two.a, seq);
    copy_open(&two.a);
    struct store_directory directory;
    store_directory(two.a.store, &directory);
    ck_assert_uint_eq(read_replica(&two.a).epoch, directory.epoch);
    ck_assert(has_cut(&two.a));
    join(&two, seq);
    ck_assert_int_eq(rig_close(&two.a), 0);
    copy_open(&two.a);
    expect_same(&two.a, &two.b);
    two_end(&two);
}
END_TEST

/* The machine stops at the n-th change of the disk while the log is cut. False
 * where it does not come to that. */
static bool
cut_and_die(unsigned n)
{
    struct two two;
    uint64_t seq = part(&two, 13);
    order_cut(&two.a, seq);
    fake_disk_die(two.a.fake, n);
    int err = rig_open(&two.a);
    bool is_dead = fake_disk_is_dead(two.a.fake);
    if (err == 0) {
        (void)rig_close(&two.a);
    }
    if (n % 3 == 0) {
        fake_disk_revive(two.a.fake);
    } else if (n % 3 == 1) {
        fake_disk_crash(two.a.fake);
    } else {
        fake_disk_crash_unordered(two.a.fake);
    }
    copy_open(&two.a);
    join(&two, seq);
    two_end(&two);
    return is_dead;
}

START_TEST(test_cut_dies)
{
    unsigned n = 1;
    while (cut_and_die(n)) {
        n++;
    }
    ck_assert_uint_gt(n, 5);
}
END_TEST

/* A start that cannot cut, or cannot say that it has, fails, and the next one
 * does it again. False where the n-th call does not come. */
static bool
cut_and_fail(enum fake_call call, unsigned n)
{
    struct two two;
    uint64_t seq = part(&two, 17);
    order_cut(&two.a, seq);
    fake_disk_fail(two.a.fake, 1U << call, n, EIO, false);
    int err = rig_open(&two.a);
    bool any = fake_disk_heal(two.a.fake) > 0;
    if (err == 0) {
        (void)rig_close(&two.a);
    }
    copy_open(&two.a);
    join(&two, seq);
    two_end(&two);
    return any;
}

START_TEST(test_cut_fails)
{
    for (int call = 0; call < FAKE_CALLS; call++) {
        unsigned n = 1;
        while (cut_and_fail((enum fake_call)call, n)) {
            n = sweep_next(n);
        }
    }
}
END_TEST

/* What is to be cut is in a checkpoint: the directory is loaded as it is, and
 * says that a snapshot comes first. */
START_TEST(test_cannot_cut)
{
    struct two two;
    two_open(&two, WAL_SYNC_ALWAYS, 19);
    uint64_t seq = copy_written(&two.a);
    set_some(&two.a, "ax", 77);
    ck_assert_int_eq(rig_checkpoint(&two.a), 0);
    uint64_t last = copy_written(&two.a);
    ck_assert_int_eq(rig_close(&two.a), 0);
    order_cut(&two.a, seq);
    copy_open(&two.a);
    ck_assert_uint_eq(position_of(&two.a).written, last);
    ck_assert_uint_eq(read_replica(&two.a).cut_seq, 0);
    ck_assert(read_replica(&two.a).is_salvaged);
    two_end(&two);
}
END_TEST

/* A directory that others have copies of is not opened as if it were alone. */
START_TEST(test_leaves)
{
    struct rig rig;
    struct replica_file file;
    uint64_t first;
    copy_init(&rig, WAL_SYNC_ALWAYS, 23);
    copy_open(&rig);
    (void)copy_lead(&rig, "a");
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 5);
    uint64_t last = copy_written(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    order_cut(&rig, last - 1);
    rig.data.is_replicated = false;
    ck_assert_int_eq(rig_open(&rig), ERR_REPLICATED);
    rig.data.leaves_group = true;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(store_fault(rig.store), 0);
    rig_expect_all(&rig); /* nothing is cut any more */
    (void)rig_set_all(&rig, 'a', 6);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(replica_file_read(rig.data.disk, &file), ERR_NOT_FOUND);
    rig.data.leaves_group = false;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_expect_all(&rig);
        (void)rig_set_all(&rig, 'a', 7 + i);
        ck_assert_int_eq(rig_close(&rig), 0);
    }
    /* with others again: what it had in common is known, and no more */
    rig.data.is_replicated = true;
    copy_open(&rig);
    struct store_position at = position_of(&rig);
    ck_assert_uint_eq(at.history.n, 2);
    ck_assert_uint_eq(at.history.at[0].last, last);
    ck_assert_uint_eq(at.history.at[1].term, 2);
    ck_assert_int_eq(store_begin_term(rig.store, "a", 1, 0, &first), 0);
    ck_assert_uint_eq(first, seq_first(3));
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* REPLICA is of another directory, or damaged: nothing is opened. */
START_TEST(test_file_refused)
{
    struct rig rig;
    struct replica_file file = {.level = REPLICA_WRITTEN, .epoch = 1};
    copy_init(&rig, WAL_SYNC_ALWAYS, 29);
    copy_open(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert(node_name_set(&file.node, "db-1", 4));
    ck_assert_int_eq(replica_file_write(rig.data.disk, &file), 0);
    ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
    fake_disk_flip(rig.fake, REPLICA_NAME, 20, 1);
    ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_follows, test_restarts, test_committed,
        test_steps_down, test_cut, test_cut_dies, test_cut_fails,
        test_cannot_cut, test_leaves, test_file_refused};
    return run_tests("replicas", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Several clients at once, each with a column of its own, while checkpoints
 * run, tables split and somebody reads; then the machine stops. Each cell must
 * be between what was acknowledged and what was asked for. */
#include "unit/durable_help.h"

enum { WRITERS = 2, IDS = 500, ROUNDS = 4, CALLS = 1500, DIE_FROM = 2000 };

struct client {
    struct rig *rig;
    struct cell_key key;
    uint64_t random;
    uint64_t acked[IDS], asked[IDS];
    pthread_t thread;
};

struct others {
    struct rig *rig;
    struct client *client;
    atomic_bool ended;
    pthread_t reader, checkpointer;
};

/* Some increments in one call; false where the store has failed. */
static bool
count_up(struct client *client, bool is_to_commit)
{
    enum { BATCH = 8 };
    struct change change[BATCH];
    struct cell_key key = client->key;
    struct rig *rig = client->rig;
    struct qsbr_reader reader;
    uint32_t n = 1 + (uint32_t)random_below(&client->random, BATCH);
    struct store_change call = {.n = n, .change = change};
    if (store_fault(rig->store) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        size_t id = random_below(&client->random, IDS);
        key.id = id << 20;
        change[i] = change_of(&key, CHANGE_INCR, 1);
        client->asked[id]++;
    }
    reader_begin(rig->store, &reader);
    (void)store_change(rig->store, &call);
    reader_end(rig->store, &reader);
    for (uint32_t i = 0; i < n; i++) {
        EXPECT(change[i].err == 0, "%s", err_text(change[i].err));
    }
    if (!is_to_commit) {
        return true;
    }
    if (rig_commit(rig, call.seq) != STORE_COMMITTED) {
        return false;
    }
    memcpy(client->acked, client->asked, sizeof(client->acked));
    return true;
}

static void *
write_cells(void *arg)
{
    struct client *client = arg;
    /* batches stay open for a while */
    for (unsigned i = 0; i < CALLS && count_up(client, i % 8 == 7); i++) {
    }
    return NULL;
}

static uint64_t
read_one(struct rig *rig, const struct cell_key *key, uint64_t id)
{
    struct qsbr_reader reader;
    struct store_get get = {.n = 1, .key = {*key}};
    get.key[0].id = id << 20;
    reader_begin(rig->store, &reader);
    (void)store_get(rig->store, &get);
    reader_end(rig->store, &reader);
    return get.value[0];
}

/* What is read never falls. */
static void *
read_cells(void *arg)
{
    struct others *others = arg;
    uint64_t last[IDS] = {0};
    while (!atomic_load(&others->ended)) {
        for (size_t i = 0; i < IDS; i++) {
            uint64_t value = read_one(others->rig, &others->client[0].key, i);
            EXPECT(value >= last[i], "a number fell");
            last[i] = value;
        }
    }
    return NULL;
}

static void *
make_checkpoints(void *arg)
{
    struct others *others = arg;
    while (!atomic_load(&others->ended)) {
        (void)rig_checkpoint(others->rig);
    }
    return NULL;
}

static void
run_all(struct rig *rig, struct client *client)
{
    struct others others = {.rig = rig, .client = client};
    int rv = pthread_create(&others.reader, NULL, read_cells, &others);
    rv |=
        pthread_create(&others.checkpointer, NULL, make_checkpoints, &others);
    for (unsigned i = 0; i < WRITERS; i++) {
        rv |= pthread_create(&client[i].thread, NULL, write_cells, &client[i]);
    }
    ck_assert_int_eq(rv, 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(client[i].thread, NULL);
    }
    atomic_store(&others.ended, true);
    pthread_join(others.reader, NULL);
    pthread_join(others.checkpointer, NULL);
}

/* Each cell has what it may have; the clients go on from there. */
static void
expect_between(struct rig *rig, struct client *client)
{
    for (size_t i = 0; i < IDS; i++) {
        uint64_t value = read_one(rig, &client->key, i);
        EXPECT(value >= client->acked[i] && value <= client->asked[i],
            "cell %zu has %lu, acknowledged were %lu of %lu", i,
            (unsigned long)value, (unsigned long)client->acked[i],
            (unsigned long)client->asked[i]);
        client->acked[i] = value;
        client->asked[i] = value;
    }
}

static void
run_rounds(enum wal_sync sync, bool is_power_cut)
{
    struct rig rig;
    struct client *client = calloc(WRITERS, sizeof(*client));
    ck_assert_ptr_nonnull(client);
    rig_init(&rig, sync, ID_SEQUENTIAL, 9);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    ck_assert_int_eq(rig_edit(&rig, "add column a ay max=64"), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        client[i].rig = &rig;
        client[i].random = i;
        client[i].key =
            cell_of(quiet_schema(rig.store), 0, i == 0 ? "ax" : "ay");
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round % 2 == 1) {
            fake_disk_die(
                rig.fake, 1 + (unsigned)random_below(&rig.random, DIE_FROM));
        }
        run_all(&rig, client);
        rig_crash(&rig, is_power_cut, 1 + round % 2);
        for (unsigned i = 0; i < WRITERS; i++) {
            expect_between(&rig, &client[i]);
        }
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
    free(client);
}

START_TEST(test_always)
{
    run_rounds(WAL_SYNC_ALWAYS, true);
}
END_TEST

START_TEST(test_interval)
{
    run_rounds(WAL_SYNC_INTERVAL, false);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_always, test_interval};
    return run_tests("durable threads", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that count on the same few ids, each in lanes of its own, while their
 * records are sealed again and again and merged with what was sealed before:
 * no increment is lost or counted twice, and what is read is neither behind
 * what was acknowledged nor ahead of what was asked for. Others drop a counter
 * meanwhile, or stop the machine. */
#include "base/sanitizer.h"
#include "unit/durable_help.h"

#include <stdlib.h>
#include <time.h>

enum {
    WRITERS = 3,
    IDS = 12,
    LONERS = 400,
    ROUNDS = 3, /* the third is as the first, and no part of a short run */
    SEALS = SANITIZER_ADDRESS || SANITIZER_THREAD ? 2 : 4, /* of a round */
    CALLS_MIN = 200
};

/* A column that one thread changes. */
struct lane {
    struct rig *rig;
    struct cell_key key;
    uint64_t random;
    atomic_uint *n_seals;        /* the world's */
    _Atomic uint64_t acked[IDS]; /* how far it has counted */
    _Atomic uint64_t asked[IDS];
    pthread_t thread;
};

struct world {
    struct rig rig;
    struct lane lane[WRITERS];
    unsigned counter; /* of the lanes */
    uint32_t serial;  /* of that */
    atomic_bool ended;
    atomic_uint n_seals;     /* in this round */
    struct cell_key touched; /* a column that no lane has */
    uint64_t n_reheats, n_joins;
    bool is_tidied;
    pthread_t reader, sealer, other;
};

/* Few ids, far apart, with some that nobody changes in between. */
static uint64_t
id_of(size_t i)
{
    return (uint64_t)i * (LONERS / IDS);
}

/* ---- writers ---- */

/* Increments of its column of some ids in one call, all different. */
static void
count_up(struct lane *lane)
{
    enum { BATCH = 6 };
    struct change change[BATCH];
    struct answer answer;
    struct qsbr_reader reader;
    size_t first = random_below(&lane->random, IDS);
    uint32_t n = 1 + (uint32_t)random_below(&lane->random, BATCH);
    struct store_change call = {.n = n, .change = change};
    struct cell_key key = lane->key;
    for (uint32_t i = 0; i < n; i++) {
        size_t at = (first + i) % IDS;
        key.id = id_of(at);
        change[i] = change_of(&key, CHANGE_INCR, 1);
        atomic_fetch_add(&lane->asked[at], 1);
    }
    answer_init(&answer);
    call.call = call_of(&answer);
    reader_begin(lane->rig->store, &reader);
    enum store_answer given = store_change(lane->rig->store, &call);
    reader_end(lane->rig->store, &reader);
    if (given == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    for (uint32_t i = 0; i < n; i++) {
        size_t at = (first + i) % IDS;
        uint64_t now = atomic_fetch_add(&lane->acked[at], 1) + 1;
        EXPECT(change[i].err == 0, "%s", err_text(change[i].err));
        EXPECT(change[i].value[0] == now, "counted to %lu, was answered %lu",
            (unsigned long)now, (unsigned long)change[i].value[0]);
    }
}

static void *
count(void *arg)
{
    struct lane *lane = arg;
    unsigned seals = plain_part(SEALS), calls = plain_part(CALLS_MIN);
    for (unsigned i = 0; i < calls || atomic_load(lane->n_seals) < seals;
         i++) {
        count_up(lane);
    }
    return NULL;
}

/* ---- others ---- */

/* All lanes of an id, and one cell of a record that nobody changes; before
 * these, as sources, the same cells in another order. */
static void
read_one(struct world *world, size_t i)
{
    struct store_get get = {.n = WRITERS + 1};
    uint64_t least[WRITERS];
    for (unsigned k = 0; k < WRITERS; k++) {
        get.key[k] = world->lane[k].key;
        get.key[k].id = id_of(i);
        least[k] = atomic_load(&world->lane[k].acked[i]);
    }
    get.key[WRITERS] = world->lane[0].key;
    get.key[WRITERS].id = id_of(i) + 1;
    get.n_sources = get.n;
    for (unsigned k = 0; k < get.n; k++) {
        get.key[STORE_GET_MAX + k] = get.key[WRITERS - k];
    }
    rig_get(&world->rig, &get);
    for (unsigned k = 0; k < WRITERS; k++) {
        uint64_t most = atomic_load(&world->lane[k].asked[i]);
        EXPECT(get.state[k] == (get.value[k] == 0 ? CELL_DEFAULT : CELL_SET),
            "a cell in the wrong state");
        EXPECT(get.value[k] >= least[k] && get.value[k] <= most,
            "id %zu, lane %u: read %lu, not in %lu..%lu", i, k,
            (unsigned long)get.value[k], (unsigned long)least[k],
            (unsigned long)most);
        uint64_t source = get.value[STORE_GET_MAX + WRITERS - k];
        EXPECT(source >= least[k] && source <= get.value[k],
            "id %zu, lane %u: read %lu as a source, not in %lu..%lu", i, k,
            (unsigned long)source, (unsigned long)least[k],
            (unsigned long)get.value[k]);
    }
    EXPECT(get.state[WRITERS] == CELL_SET && get.value[WRITERS] == 7,
        "a record that is always there was read as %lu",
        (unsigned long)get.value[WRITERS]);
}

static void *
read_all(void *arg)
{
    struct world *world = arg;
    while (!atomic_load(&world->ended)) {
        for (size_t i = 0; i < IDS; i++) {
            read_one(world, i);
        }
    }
    return NULL;
}

/* A seal that has been asked for. */
struct sealing {
    struct answer answer;
    struct store_seal call;
};

static void
seal_later(
    struct rig *rig, unsigned counter, uint32_t serial, struct sealing *it)
{
    answer_init(&it->answer);
    it->call = (struct store_seal){.call = call_of(&it->answer),
        .slot = counter,
        .serial = serial,
        .err = -1};
    EXPECT(store_seal(rig->store, &it->call) == STORE_LATER, "at once");
}

static int
seal_wait(struct sealing *it)
{
    answer_wait(&it->answer);
    answer_fini(&it->answer);
    return it->call.err;
}

/* Changes a column that no lane has, of more and more ids between two
 * checkpoints, and waits for what is done with the overlay then: a large one is
 * merged, one of more than half makes its range hot. */
static void *
touch_often(void *arg)
{
    struct world *world = arg;
    struct rig *rig = &world->rig;
    struct cell_key key = world->touched;
    for (uint64_t each = 4; !atomic_load(&world->ended);
         each = each == 1 ? 4 : each - 1) {
        for (key.id = 0; key.id < LONERS; key.id += each) {
            EXPECT(change_cell(rig->store, &key, CHANGE_INCR, 1) == 0,
                "not changed");
        }
        EXPECT(rig_checkpoint(rig) == 0, "no checkpoint");
    }
    return NULL;
}

/* Looks that found nothing to do, and what was done. */
static uint64_t
n_looks(struct rig *rig)
{
    return rig_cold_stat(rig, "tidy_idle") + rig_cold_stat(rig, "reheats") +
        rig_cold_stat(rig, "range_joins") +
        rig_cold_stat(rig, "overlay_merges");
}

static void
wait_for_tidier(struct rig *rig)
{
    const struct timespec pause = {.tv_nsec = 500 * 1000};
    for (uint64_t n = n_looks(rig) + 2; n_looks(rig) < n;) {
        (void)nanosleep(&pause, NULL);
    }
}

/* As the next one, and waits for what is done with the ranges then. */
static void *
seal_and_wait(void *arg)
{
    struct world *world = arg;
    while (!atomic_load(&world->ended)) {
        struct sealing it;
        seal_later(&world->rig, world->counter, world->serial, &it);
        int err = seal_wait(&it);
        EXPECT(err == 0, "seal: %s", err_text(err));
        wait_for_tidier(&world->rig);
        atomic_fetch_add(&world->n_seals, 1);
    }
    return NULL;
}

/* Seals the counter, with as many tries as there is time for. */
static void *
seal_often(void *arg)
{
    struct world *world = arg;
    while (!atomic_load(&world->ended)) {
        struct sealing it;
        seal_later(&world->rig, world->counter, world->serial, &it);
        int err = seal_wait(&it);
        EXPECT(err == 0, "seal: %s", err_text(err));
        atomic_fetch_add(&world->n_seals, 1);
    }
    return NULL;
}

static void *
make_checkpoints(void *arg)
{
    struct world *world = arg;
    while (!atomic_load(&world->ended)) {
        EXPECT(rig_checkpoint(&world->rig) == 0, "no checkpoint");
    }
    return NULL;
}

/* ---- rounds ---- */

/* Records that are there from the beginning, and stay as they are. */
static void
set_loners(struct world *world)
{
    struct cell_key key = world->lane[0].key;
    for (uint64_t id = 0; id < LONERS; id++) {
        bool is_counted =
            id % (LONERS / IDS) == 0 && id / (LONERS / IDS) < IDS;
        key.id = id;
        if (!is_counted) {
            EXPECT(change_cell(world->rig.store, &key, CHANGE_SET, 7) == 0,
                "not set");
        }
    }
}

static void
begin(struct world *world, enum wal_sync sync, uint64_t seed)
{
    static const char *const name[WRITERS] = {"ax", "ay", "az"};
    struct rig *rig = &world->rig;
    rig_init(rig, sync, ID_SEQUENTIAL, seed);
    rig->seals = true;
    rig->data.seal_records = seed % 2 == 0 ? 0 : 100;
    rig->data.tidy = world->is_tidied ? &at_once : NULL;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    ck_assert_int_eq(rig_edit(rig, "add column a ay max=64"), 0);
    ck_assert_int_eq(rig_edit(rig, "add column a az max=64"), 0);
    ck_assert_int_eq(rig_edit(rig, "add column a at max=64"), 0);
    world->touched = cell_of(quiet_schema(rig->store), 0, "at");
    for (unsigned k = 0; k < WRITERS; k++) {
        struct lane *lane = &world->lane[k];
        lane->rig = rig;
        lane->random = seed + k;
        lane->n_seals = &world->n_seals;
        lane->key = cell_of(quiet_schema(rig->store), 0, name[k]);
    }
    world->counter = world->lane[0].key.counter;
    world->serial =
        schema_counter_at(quiet_schema(rig->store), world->counter)->serial;
    set_loners(world);
}

static void
run_round(struct world *world, void *(*other)(void *))
{
    atomic_store(&world->ended, false);
    atomic_store(&world->n_seals, 0);
    int rv = pthread_create(&world->reader, NULL, read_all, world);
    rv |= pthread_create(&world->sealer, NULL,
        world->is_tidied ? seal_and_wait : seal_often, world);
    rv |= pthread_create(&world->other, NULL, other, world);
    for (unsigned k = 0; k < WRITERS; k++) {
        struct lane *lane = &world->lane[k];
        rv |= pthread_create(&lane->thread, NULL, count, lane);
    }
    ck_assert_int_eq(rv, 0);
    for (unsigned k = 0; k < WRITERS; k++) {
        pthread_join(world->lane[k].thread, NULL);
    }
    atomic_store(&world->ended, true);
    pthread_join(world->reader, NULL);
    pthread_join(world->sealer, NULL);
    pthread_join(world->other, NULL);
    world->n_reheats += rig_cold_stat(&world->rig, "reheats");
    world->n_joins += rig_cold_stat(&world->rig, "range_joins");
}

static void
stop(struct world *world, unsigned round)
{
    struct rig *rig = &world->rig;
    if (round % 2 == 0) {
        ck_assert_int_eq(rig_close(rig), 0);
    } else { /* written, so that it outlives the process */
        fake_disk_die(rig->fake, 1);
        (void)rig_close(rig);
        fake_disk_revive(rig->fake);
    }
    ck_assert_int_eq(rig_open(rig), 0);
}

static void
run_rounds(enum wal_sync sync, uint64_t seed, void *(*other)(void *))
{
    struct world *world = calloc(1, sizeof *world);
    ck_assert_ptr_nonnull(world);
    world->is_tidied = other == touch_often;
    begin(world, sync, seed);
    bool is_whole = SANITIZER_ADDRESS || SANITIZER_THREAD || tests_are_long();
    unsigned rounds = is_whole ? ROUNDS : 2;
    for (unsigned round = 0; round < rounds; round++) {
        run_round(world, other);
        for (size_t i = 0; i < IDS; i++) {
            read_one(world, i);
        }
        /* so that all is acknowledged */
        ck_assert_int_eq(rig_checkpoint(&world->rig), 0);
        stop(world, round);
        for (size_t i = 0; i < IDS; i++) {
            read_one(world, i);
        }
    }
    ck_assert(!world->is_tidied || world->n_reheats + world->n_joins > 0);
    ck_assert_int_eq(rig_close(&world->rig), 0);
    rig_fini(&world->rig);
    free(world);
}

START_TEST(test_lanes)
{
    run_rounds(WAL_SYNC_INTERVAL, 1, make_checkpoints);
}
END_TEST

START_TEST(test_lanes_of_one_range)
{
    run_rounds(WAL_SYNC_NONE, 2, make_checkpoints);
}
END_TEST

/* Ranges are joined, merged with their overlays, and become hot meanwhile. */
START_TEST(test_lanes_tidied)
{
    run_rounds(WAL_SYNC_INTERVAL, 5, touch_often);
}
END_TEST

/* ---- a counter that goes while it is sealed ---- */

/* A counter, whose cells nobody has changed before; its serial. */
static uint32_t
add_counter(struct rig *rig, struct cell_key *key)
{
    static const char *const line[] = {"add counter b",
        "add column b bid primarykey", "add column b bx max=64"};
    for (size_t i = 0; i < COUNT_OF(line); i++) {
        EXPECT(edit(rig->store, line[i]) == 0, "not added");
    }
    const struct schema *schema = quiet_schema(rig->store);
    *key = cell_of(schema, 0, "bx"); /* only this thread edits */
    return schema_counter_at(schema, key->counter)->serial;
}

static void *
drop_often(void *arg)
{
    struct world *world = arg;
    struct rig *rig = &world->rig;
    while (!atomic_load(&world->ended)) {
        struct cell_key key;
        struct sealing sealing;
        uint64_t value;
        uint32_t serial = add_counter(rig, &key);
        for (key.id = 0; key.id < 50; key.id++) {
            EXPECT(get_cell(rig->store, &key, &value) == CELL_DEFAULT,
                "what was dropped is back");
            EXPECT(change_cell(rig->store, &key, CHANGE_INCR, 1) == 0,
                "not counted");
        }
        seal_later(rig, key.counter, serial, &sealing);
        bool waits = random_below(&rig->random, 2) == 0;
        int err = waits ? seal_wait(&sealing) : 0;
        EXPECT(edit(rig->store, "drop counter b b") == 0, "not dropped");
        err = waits ? err : seal_wait(&sealing);
        EXPECT(err == 0 || err == ERR_GONE, "seal: %s", err_text(err));
    }
    return NULL;
}

START_TEST(test_drop)
{
    run_rounds(WAL_SYNC_NONE, 3, drop_often);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_lanes, test_lanes_of_one_range, test_lanes_tidied, test_drop};
    return run_tests("cold threads", tests, COUNT_OF(tests));
}

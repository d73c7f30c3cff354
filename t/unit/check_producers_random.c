/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbered changes in a store on a fake disk: of several threads, some of whom
 * lose power behind a checkpoint; and random changes, retries, reordered ones,
 * checkpoints, seals, drops and ends of the process and of the machine. Then
 * every number is to be exact. */
#include "unit/producers_help.h"

#include <sched.h>
#include <stdio.h>

enum {
    IDS = 24,
    PRODUCERS = 3,
    NUMBERS = 900, /* between two moments when all is known: a window */
    BATCH = 8,
    ROUNDS = 12,
    ROUNDS_MOST = 4 * ROUNDS,
    REPEATS_LEAST = 100, /* that a world must have seen to mean something */
    DONE_LEAST = 500,
    STEPS = 60
};

/* ---- several at once ---- */

enum { THREADS = 3, TURNS = 400, SHARED = 4 };

struct caller {
    struct rig *rig;
    unsigned number;
    pthread_t thread;
};

/* Each number twice, in pairs: the first one is done, the second a repeat. */
static void *
call_often(void *arg)
{
    struct caller *it = arg;
    char name[16];
    (void)snprintf(name, sizeof name, "caller-%u", it->number);
    for (uint64_t k = 0; k < TURNS; k++) {
        struct change change[2];
        for (unsigned i = 0; i < 2; i++) {
            change[i] = numbered(
                it->rig, k / 2 % SHARED, CHANGE_INCR, 1, name, TURNS - k / 2);
        }
        uint64_t seq = send(it->rig, change, 2);
        EXPECT(change[0].err == 0 && change[1].err == 0, "refused");
        EXPECT(change[0].is_repeat == (k % 2 == 1), "not done once");
        EXPECT(change[1].is_repeat, "done twice");
        EXPECT(seq > 0, "no position");
    }
    return NULL;
}

/* Others come and go, and all are looked at. */
static void
note_nothing(void *context, const char *name, const char *value)
{
    (void)context;
    (void)name;
    (void)value;
}

START_TEST(test_threads)
{
    struct rig rig;
    struct caller caller[THREADS];
    begin(&rig, WAL_SYNC_INTERVAL, 12);
    for (unsigned i = 0; i < THREADS; i++) {
        caller[i] = (struct caller){.rig = &rig, .number = i};
        ck_assert_int_eq(
            pthread_create(&caller[i].thread, NULL, call_often, &caller[i]),
            0);
    }
    for (uint64_t k = 0; k < 20; k++) {
        EXPECT_DONE(done(&rig, IDS, CHANGE_INCR, 1, "other", 1), false, k + 1);
        store_producer_stats(rig.store, note_nothing, NULL);
        if (k % 5 == 0) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        ck_assert_int_eq(drop(&rig, "other"), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(caller[i].thread, NULL), 0);
    }
    for (unsigned again = 0; again < 2; again++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < SHARED; i++) {
            struct cell_key key =
                cell_of(quiet_schema(rig.store), rig.history.id[i], "ax");
            uint64_t value;
            (void)get_cell(rig.store, &key, &value);
            sum += value;
        }
        ck_assert_uint_eq(sum, THREADS * TURNS / 2);
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
    }
    end(&rig);
}
END_TEST

/* ---- several at once, and a power cut ---- */

enum { CUT_ROUNDS = 6, CUT_NUMBERS = 900, CUT_EARLY = 150 };

struct sender {
    struct rig *rig;
    unsigned number;
    uint64_t first, n; /* its numbers of this round */
    _Atomic uint64_t n_sent;
    pthread_t thread;
};

static struct change
change_of_sender(const struct sender *it, uint64_t k)
{
    static const char *const name[THREADS] = {"x", "y", "z"};
    return numbered(it->rig, (it->number + k) % SHARED, CHANGE_INCR, 1,
        name[it->number], it->first + k);
}

/* Sends new numbers until the disk is dead. Who knows the producer need not ask
 * for it again. */
static void *
send_on(void *arg)
{
    struct sender *it = arg;
    struct change first = change_of_sender(it, 0);
    it->n = 0;
    for (uint64_t k = 0; k < CUT_NUMBERS; k++) {
        struct change change = first;
        change.id = it->rig->history.id[(it->number + k) % SHARED];
        change.number = it->first + k;
        if (store_fault(it->rig->store) != 0) {
            break;
        }
        (void)send(it->rig, &change, 1);
        it->n = k + 1;
        EXPECT(change.err == 0 && !change.is_repeat, "a new number");
        /* relaxed: only how far it is */
        atomic_store_explicit(&it->n_sent, k + 1, memory_order_relaxed);
    }
    return NULL;
}

/* Checkpoints while others change, and power is cut behind one: a number that
 * the manifest has and the log has not would be a change that is lost. */
START_TEST(test_threads_and_power)
{
    struct rig rig;
    struct sender sender[THREADS] = {{0}};
    uint64_t sum = 0, found;
    begin(&rig, WAL_SYNC_INTERVAL, 14 + (uint64_t)_i);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig.data.interval_ms = 60000; /* nothing is synced by itself */
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned round = 0; round < CUT_ROUNDS; round++) {
        for (unsigned i = 0; i < THREADS; i++) {
            struct sender *it = &sender[i];
            it->rig = &rig;
            it->number = i;
            it->first += it->n;
            atomic_store(&it->n_sent, 0);
            ck_assert_int_eq(
                pthread_create(&it->thread, NULL, send_on, it), 0);
        }
        while (atomic_load(&sender[0].n_sent) < CUT_EARLY) {
            (void)sched_yield();
        }
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        fake_disk_die(rig.fake, 1);
        for (unsigned i = 0; i < THREADS; i++) {
            ck_assert_int_eq(pthread_join(sender[i].thread, NULL), 0);
        }
        crash(&rig, true);
        for (unsigned i = 0; i < THREADS; i++) {
            for (uint64_t k = 0; k < sender[i].n; k++) {
                struct change change = change_of_sender(&sender[i], k);
                (void)send(&rig, &change, 1);
                ck_assert_int_eq(change.err, 0);
            }
            sum += sender[i].n;
        }
        found = 0;
        for (size_t i = 0; i < SHARED; i++) {
            uint64_t value;
            struct cell_key key =
                cell_of(quiet_schema(rig.store), rig.history.id[i], "ax");
            (void)get_cell(rig.store, &key, &value);
            found += value;
        }
        ck_assert_uint_eq(found, sum);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
    }
    end(&rig);
}
END_TEST

/* ---- random ---- */

struct command {
    size_t i;
    uint64_t by;
    bool is_sent;
};

struct world {
    struct rig rig;
    uint64_t first[PRODUCERS]; /* number of command[][0] */
    uint64_t n[PRODUCERS];     /* commands there are */
    struct command command[PRODUCERS][NUMBERS];
    uint64_t settled[IDS]; /* by commands that are not there any more */
    uint64_t n_repeats, n_done;
};

static uint64_t
below(struct world *world, uint64_t n)
{
    return random_below(&world->rig.random, n);
}

static const char *
name_of(unsigned p)
{
    static const char *const names[PRODUCERS] = {"p", "queue-2", "x.y"};
    return names[p];
}

/* The change of a command: both columns, ay twice as much. */
static struct change
change_from(struct world *world, unsigned p,
    const struct store_producer *producer, uint64_t k)
{
    struct command *command = &world->command[p][k];
    struct change change = numbered_by(&world->rig, command->i, CHANGE_INCR,
        command->by, producer, world->first[p] + k);
    struct cell_key ay = cell_of(quiet_schema(world->rig.store),
        world->rig.history.id[command->i], "ay");
    change.n_columns = 2;
    change.column[1] = ay.column;
    change.serial[1] = ay.serial;
    change.operand[1] = 2 * command->by;
    command->is_sent = true;
    return change;
}

/* A command to be sent: a new one, perhaps not in its turn, or an old one
 * again. False: there is no more room. */
static bool
pick(struct world *world, unsigned p, uint64_t *k)
{
    uint64_t ahead = below(world, 4) == 0 ? below(world, 40) : 0;
    if (world->n[p] + ahead >= NUMBERS) {
        return false;
    }
    if (world->n[p] > 0 && below(world, 3) == 0) {
        *k = below(world, world->n[p]);
        return true;
    }
    *k = world->n[p] + ahead;
    for (; world->n[p] <= *k; world->n[p]++) {
        world->command[p][world->n[p]] = (struct command){
            .i = below(world, IDS), .by = 1 + below(world, 9)};
    }
    return true;
}

/* Some at a time; what fails is left for later. */
static void
send_some(struct world *world)
{
    struct rig *rig = &world->rig;
    struct change change[BATCH];
    uint32_t n = 0, want = 1 + (uint32_t)below(world, BATCH);
    uint64_t k;
    if (store_fault(rig->store) != 0) {
        return;
    }
    while (n < want) {
        unsigned p = (unsigned)below(world, PRODUCERS);
        struct store_producer producer;
        if (!pick(world, p, &k)) {
            break;
        }
        if (store_producer(
                rig->store, name_of(p), strlen(name_of(p)), &producer) != 0) {
            break; /* the disk has died meanwhile */
        }
        change[n++] = change_from(world, p, &producer, k);
    }
    if (n == 0) {
        return;
    }
    uint64_t seq = send(rig, change, n);
    for (uint32_t i = 0; i < n; i++) {
        if (change[i].err == ERR_COLD_READ) {
            ck_assert(fake_disk_is_dead(rig->fake));
            continue;
        }
        ck_assert_int_eq(change[i].err, 0);
        ck_assert_uint_eq(change[i].value[1], 2 * change[i].value[0]);
        world->n_repeats += change[i].is_repeat;
        world->n_done += !change[i].is_repeat;
    }
    if (below(world, 2) == 0) {
        (void)rig_commit(rig, seq);
    }
}

/* All commands are retried until they are done; then every number is known. */
static void
settle(struct world *world)
{
    struct rig *rig = &world->rig;
    uint64_t sum[IDS] = {0};
    for (unsigned p = 0; p < PRODUCERS; p++) {
        struct store_producer producer;
        ck_assert_int_eq(store_producer(rig->store, name_of(p),
                             strlen(name_of(p)), &producer),
            0);
        for (uint64_t k = 0; k < world->n[p]; k++) {
            struct change change = change_from(world, p, &producer, k);
            uint64_t seq = send(rig, &change, 1);
            ck_assert_int_eq(change.err, 0);
            ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
            sum[world->command[p][k].i] += world->command[p][k].by;
        }
    }
    for (size_t i = 0; i < IDS; i++) {
        expect(rig, i, "ax", world->settled[i] + sum[i]);
        expect(rig, i, "ay", 2 * (world->settled[i] + sum[i]));
    }
}

/* All that is known lasts, and new numbers follow. */
static void
forget_all(struct world *world)
{
    ck_assert_int_eq(rig_checkpoint(&world->rig), 0);
    for (unsigned p = 0; p < PRODUCERS; p++) {
        for (uint64_t k = 0; k < world->n[p]; k++) {
            world->settled[world->command[p][k].i] += world->command[p][k].by;
        }
        world->first[p] += world->n[p];
        world->n[p] = 0;
        if (below(world, 8) == 0) {
            ck_assert_int_eq(drop(&world->rig, name_of(p)), 0);
            world->first[p] = below(world, 3);
        }
    }
}

static void
stir(struct world *world)
{
    struct rig *rig = &world->rig;
    struct rig_later later;
    switch (below(world, 12)) {
    case 0:
        if (store_fault(rig->store) == 0) {
            rig_checkpoint_later(rig, &later);
            (void)rig_wait(&later);
        }
        break;
    case 1:
        if (store_fault(rig->store) == 0) {
            (void)rig_seal_later(rig, 0);
        }
        break;
    default:
        send_some(world);
        break;
    }
}

/* How early a disk dies is by chance, and what comes behind that shows little:
 * then there are more rounds. */
static bool
goes_on(const struct world *world, unsigned round)
{
    return round < ROUNDS ||
        (round < ROUNDS_MOST &&
            (world->n_repeats <= REPEATS_LEAST ||
                world->n_done <= DONE_LEAST));
}

static void
run_world(enum wal_sync sync, uint64_t seed)
{
    struct world *world = calloc(1, sizeof *world);
    struct rig *rig = &world->rig;
    ck_assert_ptr_nonnull(world);
    begin(rig, sync, seed);
    rig->seals = true;
    rig->data.tidy = &at_once;
    for (unsigned round = 0; goes_on(world, round); round++) {
        bool dies = below(world, 4) > 0;
        if (dies) {
            fake_disk_die(rig->fake, 1 + (unsigned)below(world, 120));
        }
        for (unsigned i = 0; i < STEPS; i++) {
            stir(world);
        }
        if (dies) {
            crash(rig, sync != WAL_SYNC_NONE && below(world, 2) == 0);
        } else {
            (void)rig_seal_wait(rig);
            if (below(world, 2) == 0) {
                store_want_last_checkpoint(rig->store);
            }
            ck_assert_int_eq(rig_close(rig), 0);
            ck_assert_int_eq(rig_open(rig), 0);
        }
        settle(world);
        if (below(world, 3) == 0 || world->n[0] > NUMBERS / 2) {
            forget_all(world);
        }
    }
    ck_assert_uint_gt(world->n_repeats, REPEATS_LEAST);
    ck_assert_uint_gt(world->n_done, DONE_LEAST);
    end(rig);
    free(world);
}

START_TEST(test_random)
{
    static const enum wal_sync modes[] = {
        WAL_SYNC_ALWAYS, WAL_SYNC_INTERVAL, WAL_SYNC_NONE};
    run_world(modes[_i % 3], (uint64_t)_i + 1);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("producers random");
    tcase_add_test(tcase, test_threads);
    tcase_add_loop_test(tcase, test_threads_and_power, 0, 3);
    tcase_add_loop_test(tcase, test_random, 0, 6);
    return run_case("producers random", tcase);
}

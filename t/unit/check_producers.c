/* SPDX-License-Identifier: BSD-3-Clause */
/* store/producers, under a store on a fake disk: a numbered change is done
 * once, whatever comes between it and its retry. The rules one by one, then
 * random changes, retries, reordered ones, checkpoints, seals, drops and ends
 * of the process and of the machine, after which every number is exact. */
#include "unit/durable_help.h"

#include "base/seen.h"
#include "store/producers.h"
#include "store/store_producer.h"
#include "wal/entry.h"

#include <sched.h>
#include <stdio.h>

enum {
    IDS = 24,
    PRODUCERS = 3,
    NUMBERS = 900, /* between two moments when all is known: a window */
    BATCH = 8,
    ROUNDS = 12,
    STEPS = 60
};

/* A change by one of that cell (ax), and of the next column (ay), by a name and
 * a number. */
static struct change
numbered(struct rig *rig, size_t i, enum change_op op, uint64_t operand,
    const char *name, uint64_t number)
{
    struct store_producer producer;
    struct cell_key key =
        cell_of(quiet_schema(rig->store), rig->history.id[i], "ax");
    struct change change = change_of(&key, op, operand);
    ck_assert_int_eq(
        store_producer(rig->store, name, strlen(name), &producer), 0);
    change.producer = producer.serial;
    change.producer_slot = producer.slot;
    change.number = number;
    return change;
}

/* Does changes; returns what they are committed with. */
static uint64_t
send(struct rig *rig, struct change *change, uint32_t n)
{
    struct answer answer;
    struct qsbr_reader reader;
    struct store_change call = {.n = n, .change = change};
    answer_init(&answer);
    call.call = call_of(&answer);
    reader_begin(rig->store, &reader);
    enum store_answer given = store_change(rig->store, &call);
    reader_end(rig->store, &reader);
    if (given == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    return call.seq;
}

/* One change, committed. */
static struct change
done(struct rig *rig, size_t i, enum change_op op, uint64_t operand,
    const char *name, uint64_t number)
{
    struct change change = numbered(rig, i, op, operand, name, number);
    uint64_t seq = send(rig, &change, 1);
    if (change.err == 0) {
        ck_assert_uint_gt(seq, 0);
        ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
    }
    return change;
}

#define EXPECT_DONE(it, again, now)                                           \
    do {                                                                      \
        struct change done_ = (it);                                           \
        ck_assert_int_eq(done_.err, 0);                                       \
        ck_assert_int_eq(done_.is_repeat, again);                             \
        ck_assert_uint_eq(done_.value[0], now);                               \
    } while (0)

/* Opens it, with columns of all that may be and a narrow one. */
static void
declare(struct rig *rig)
{
    ck_assert_int_eq(rig_open(rig), 0);
    ck_assert_int_eq(edit(rig->store, "add counter a"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a aid primarykey"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a ax max=64"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a ay max=64"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a az max=4"), 0);
}

static void
begin(struct rig *rig, enum wal_sync sync, uint64_t seed)
{
    rig_init(rig, sync, ID_RANDOM, seed);
    declare(rig);
}

static void
end(struct rig *rig)
{
    store_verify(rig->store);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* The process ends, or power is cut, and it comes up again. */
static void
crash(struct rig *rig, bool is_power_cut)
{
    if (!fake_disk_is_dead(rig->fake)) {
        fake_disk_die(rig->fake, 1);
    }
    (void)rig_close(rig);
    if (is_power_cut) {
        fake_disk_crash(rig->fake);
    } else {
        fake_disk_revive(rig->fake);
    }
    ck_assert_int_eq(rig_open(rig), 0);
}

static int
drop(struct rig *rig, const char *name)
{
    struct answer answer;
    struct store_edit edit = {.err = -1};
    ck_assert(producer_name_set(&edit.dropped, name, strlen(name)));
    answer_init(&answer);
    edit.call = call_of(&answer);
    if (store_edit(rig->store, &edit) == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    return edit.err;
}

static void
expect(struct rig *rig, size_t i, const char *column, uint64_t value)
{
    struct cell_key key =
        cell_of(quiet_schema(rig->store), rig->history.id[i], column);
    uint64_t found;
    (void)get_cell(rig->store, &key, &found);
    ck_assert_uint_eq(found, value);
}

/* What is tried after each way to come back: by a checkpoint or not. */
static const bool with_checkpoint[] = {false, true};

/* The number is marked with the change, and comes back with it: from the log,
 * from a manifest, and from both. */
START_TEST(test_once)
{
    for (unsigned k = 0; k < 2; k++) {
        struct rig rig;
        begin(&rig, WAL_SYNC_ALWAYS, k + 1);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 7), false, 5);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 7), true, 5);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "q", 7), false, 10);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 6), false, 11);
        for (unsigned round = 0; round < 3; round++) {
            if (with_checkpoint[k]) {
                ck_assert_int_eq(rig_checkpoint(&rig), 0);
            }
            EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 8), round > 0, 12);
            crash(&rig, round == 1);
            EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 7), true, 12);
            EXPECT_DONE(done(&rig, 0, CHANGE_DECR, 5, "q", 7), true, 12);
            EXPECT_DONE(done(&rig, 0, CHANGE_SET, 5, "p", 6), true, 12);
        }
        end(&rig);
    }
}
END_TEST

/* Also of a change that changes no number: it may, when it comes again. */
START_TEST(test_nothing_changed)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_ALWAYS, 3);
    EXPECT_DONE(done(&rig, 0, CHANGE_DECR, 5, "p", 1), false, 0);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 0, "p", 2), false, 0);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 9, "p", 3), false, 9);
    EXPECT_DONE(done(&rig, 0, CHANGE_DECR, 5, "p", 1), true, 9);
    crash(&rig, true);
    EXPECT_DONE(done(&rig, 0, CHANGE_DECR, 5, "p", 1), true, 9);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 8, "p", 2), true, 9);
    end(&rig);
}
END_TEST

/* A refused one uses no number up, nor does one below the window. */
START_TEST(test_refused)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_ALWAYS, 4);
    struct change change = numbered(&rig, 0, CHANGE_SET, 16, "p", 1);
    struct cell_key az =
        cell_of(quiet_schema(rig.store), rig.history.id[0], "az");
    change.column[0] = az.column;
    change.serial[0] = az.serial;
    (void)send(&rig, &change, 1);
    ck_assert_int_eq(change.err, ERR_OVER_MAX);
    change.operand[0] = 15;
    (void)send(&rig, &change, 1);
    EXPECT_DONE(change, false, 15);
    ck_assert_int_eq(
        done(&rig, 1, CHANGE_DELETE, 0, "p", 2).err, ERR_NOT_FOUND);
    EXPECT_DONE(done(&rig, 1, CHANGE_SET, 3, "p", 2), false, 3);
    EXPECT_DONE(done(&rig, 2, CHANGE_INCR, 1, "q", SEEN_WINDOW + 1), false, 1);
    ck_assert_int_eq(done(&rig, 2, CHANGE_INCR, 1, "q", 1).err, ERR_OLD_TX);
    expect(&rig, 2, "ax", 1);
    EXPECT_DONE(done(&rig, 2, CHANGE_INCR, 1, "q", 2), false, 2);
    crash(&rig, true);
    ck_assert_int_eq(done(&rig, 2, CHANGE_INCR, 1, "q", 1).err, ERR_OLD_TX);
    expect(&rig, 2, "ax", 2);
    end(&rig);
}
END_TEST

/* In one batch, with changes of the same record that are not numbered. */
START_TEST(test_batch)
{
    struct rig rig;
    struct change change[6];
    uint64_t seq, seq_again;
    begin(&rig, WAL_SYNC_INTERVAL, 5);
    for (unsigned i = 0; i < 6; i++) {
        change[i] = numbered(&rig, 0, CHANGE_INCR, 1, "p", 1 + i / 2);
    }
    change[4].producer = change[5].producer = 0;
    change[5].op = CHANGE_SET;
    change[5].operand[0] = 40;
    seq = send(&rig, change, 6);
    EXPECT_DONE(change[0], false, 1);
    EXPECT_DONE(change[1], true, 1);
    EXPECT_DONE(change[2], false, 2);
    EXPECT_DONE(change[3], true, 2);
    ck_assert_uint_eq(change[4].value[0], 3);
    ck_assert_uint_eq(change[5].value[0], 40);
    seq_again = send(&rig, change, 1);
    EXPECT_DONE(change[0], true, 40);
    /* not answered before the first is durable */
    ck_assert_uint_ge(seq_again, seq);
    ck_assert_int_eq(rig_commit(&rig, seq_again), STORE_COMMITTED);
    crash(&rig, false);
    expect(&rig, 0, "ax", 40);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 2), true, 40);
    end(&rig);
}
END_TEST

/* A later change of the record, not numbered, stands behind the numbered one in
 * the log. */
START_TEST(test_order_in_log)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_NONE, 6);
    struct change first = numbered(&rig, 0, CHANGE_SET, 1, "p", 1);
    struct change middle = numbered(&rig, 0, CHANGE_SET, 2, "p", 2);
    struct change last = numbered(&rig, 0, CHANGE_SET, 3, "p", 3);
    first.producer = last.producer = 0;
    (void)send(&rig, &first, 1);
    (void)send(&rig, &middle, 1);
    (void)send(&rig, &last, 1);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    expect(&rig, 0, "ax", 3);
    end(&rig);
}
END_TEST

static int
find(struct rig *rig, const char *name)
{
    struct store_producer producer;
    return store_producer(rig->store, name, strlen(name), &producer);
}

/* Never more than there may be, and none is forgotten: also where there may be
 * fewer after a start. */
START_TEST(test_full)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 7);
    rig.config.producers_max = 2;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(find(&rig, "a"), 0);
    ck_assert_int_eq(find(&rig, "b"), 0);
    ck_assert_int_eq(find(&rig, "c"), ERR_MANY_PRODUCERS);
    ck_assert_int_eq(find(&rig, "a"), 0);
    for (unsigned k = 0; k < 3; k++) {
        rig.config.producers_max = k == 1 ? 1 : 2;
        if (k == 2) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_int_eq(find(&rig, "a"), 0);
        ck_assert_int_eq(find(&rig, "b"), 0);
        ck_assert_int_eq(find(&rig, "c"), ERR_MANY_PRODUCERS);
    }
    ck_assert_int_eq(drop(&rig, "c"), ERR_NO_PRODUCER);
    ck_assert_int_eq(drop(&rig, "a"), 0);
    ck_assert_int_eq(find(&rig, "c"), 0);
    ck_assert_int_eq(find(&rig, "a"), ERR_MANY_PRODUCERS);
    ck_assert_int_eq(edit(rig.store, "add counter z"), 0); /* syncs */
    crash(&rig, true);
    ck_assert_int_eq(find(&rig, "b"), 0);
    ck_assert_int_eq(find(&rig, "a"), ERR_MANY_PRODUCERS);
    end(&rig);
}
END_TEST

/* What is dropped begins anew, and what was under way is refused; also where
 * the log has all of it from the beginning, and where a manifest has some. */
START_TEST(test_drop)
{
    for (unsigned k = 0; k < 2; k++) {
        struct rig rig;
        begin(&rig, WAL_SYNC_ALWAYS, 8 + k);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 900), false, 1);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "q", 900), false, 2);
        struct change old = numbered(&rig, 0, CHANGE_INCR, 1, "p", 901);
        if (with_checkpoint[k]) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        ck_assert_int_eq(drop(&rig, "p"), 0);
        ck_assert_int_eq(drop(&rig, "p"), ERR_NO_PRODUCER);
        (void)send(&rig, &old, 1);
        ck_assert_int_eq(old.err, ERR_PRODUCER_GONE);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 900), false, 3);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 1), false, 4);
        (void)send(&rig, &old, 1);
        ck_assert_int_eq(old.err, ERR_PRODUCER_GONE);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "q", 900), true, 4);
        crash(&rig, true);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 900), true, 4);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 2), false, 5);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "q", 900), true, 5);
        ck_assert_int_eq(drop(&rig, "q"), 0);
        crash(&rig, true);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "q", 900), false, 6);
        end(&rig);
    }
}
END_TEST

/* A cold record: the change is made again with it, once; a repeat reads it. */
START_TEST(test_cold)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_ALWAYS, 10);
    rig.seals = true;
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 1), false, 5);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 1), true, 5);
    ck_assert_uint_eq(rig_n_hot(&rig), 0); /* it has changed nothing */
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 2), false, 10);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    crash(&rig, true);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 2), true, 10);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 1), true, 10);
    struct change change[3];
    for (unsigned i = 0; i < 3; i++) {
        change[i] = numbered(&rig, 0, CHANGE_INCR, 1, "p", i == 1 ? 3 : 2 + i);
    }
    (void)send(&rig, change, 3);
    EXPECT_DONE(change[0], true, 10);
    EXPECT_DONE(change[1], false, 11);
    EXPECT_DONE(change[2], false, 12);
    end(&rig);
}
END_TEST

/* ---- a list in the midst of a log ---- */

enum { ENTRIES = 400, REPLAY_SHARDS = 4, REPLAY_NAMES = 6 };

static void
replay(struct producers *producers, const struct entry *entry, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int err = 0;
        switch (entry[i].kind) {
        case ENTRY_PRODUCER:
            err = producers_replay_made(
                producers, entry[i].producer, &entry[i].name);
            break;
        case ENTRY_PRODUCER_DROPPED:
            producers_replay_dropped(producers, entry[i].producer);
            break;
        default:
            err = producers_replay_number(
                producers, entry[i].producer, entry[i].shard, entry[i].number);
        }
        ck_assert_int_eq(err, 0);
    }
}

/* A log as the server writes it: a name is one producer at a time, numbers are
 * of those there are, now and then of one that has just gone. */
static void
make_log(struct entry *entry, uint64_t *state)
{
    uint32_t serial[REPLAY_NAMES] = {0}, last = 0;
    memset(entry, 0, ENTRIES * sizeof *entry);
    for (size_t i = 0; i < ENTRIES; i++) {
        size_t name = random_below(state, REPLAY_NAMES);
        char text[2] = {(char)('a' + name), 0};
        entry[i].producer = serial[name];
        if (serial[name] == 0) {
            entry[i].kind = ENTRY_PRODUCER;
            entry[i].producer = serial[name] = ++last;
            ck_assert(producer_name_set(&entry[i].name, text, 1));
        } else if (random_below(state, 20) == 0) {
            entry[i].kind = ENTRY_PRODUCER_DROPPED;
            serial[name] = 0;
            last++; /* its tombstone's */
        } else {
            entry[i].kind = ENTRY_NUMBER;
            entry[i].shard = (uint16_t)random_below(state, REPLAY_SHARDS);
            entry[i].number = i + random_below(state, 900);
        }
    }
}

static void
list_all(struct engine *engine, struct producers *producers, struct buf *out)
{
    struct producers_list list = {0};
    buf_clear(out);
    ck_assert_int_eq(producers_list(producers, engine, &list), 0);
    list.last_serial = 0x7fffffff; /* it may be some less after a replay */
    producers_list_put(&list, out);
    ck_assert_uint_eq(producers->n, list.n);
    producers_list_fini(&list);
}

/* Whatever part of the log a list has, the whole log behind it makes of it what
 * the log alone makes. */
START_TEST(test_list_and_log)
{
    const struct engine_config config = {
        .shards = REPLAY_SHARDS, .hot_bytes = ENGINE_HOT_BYTES_MIN};
    struct engine *engine;
    struct entry *entry = calloc(ENTRIES, sizeof *entry);
    uint64_t state = 13;
    struct buf wanted = {0}, got = {0};
    ck_assert_ptr_nonnull(entry);
    ck_assert_int_eq(engine_create(&config, &engine), 0);
    for (unsigned round = 0; round < 6; round++) {
        struct producers all;
        make_log(entry, &state);
        ck_assert_int_eq(producers_init(&all, REPLAY_SHARDS, 2, NULL), 0);
        replay(&all, entry, ENTRIES);
        list_all(engine, &all, &wanted);
        for (size_t n = 0; n <= ENTRIES; n += 1 + n / 20) {
            struct producers part, again;
            struct producers_list list = {0};
            ck_assert_int_eq(producers_init(&part, REPLAY_SHARDS, 2, NULL), 0);
            ck_assert_int_eq(
                producers_init(&again, REPLAY_SHARDS, 2, NULL), 0);
            replay(&part, entry, n);
            ck_assert_int_eq(producers_list(&part, engine, &list), 0);
            ck_assert_int_eq(producers_load(&again, &list), 0);
            replay(&again, entry, ENTRIES);
            list_all(engine, &again, &got);
            ck_assert_uint_eq(got.len, wanted.len);
            ck_assert_mem_eq(got.data, wanted.data, wanted.len);
            producers_list_fini(&list);
            producers_fini(&part);
            producers_fini(&again);
        }
        producers_fini(&all);
    }
    engine_destroy(&engine);
    buf_fini(&wanted);
    buf_fini(&got);
    free(entry);
}
END_TEST

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
change_from(struct world *world, unsigned p, uint64_t k)
{
    struct command *command = &world->command[p][k];
    struct change change = numbered(&world->rig, command->i, CHANGE_INCR,
        command->by, name_of(p), world->first[p] + k);
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
        struct store_producer unused;
        if (!pick(world, p, &k)) {
            break;
        }
        if (store_producer(
                rig->store, name_of(p), strlen(name_of(p)), &unused) != 0) {
            break; /* the disk has died meanwhile */
        }
        if (store_fault(rig->store) != 0) {
            break;
        }
        change[n++] = change_from(world, p, k);
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
        for (uint64_t k = 0; k < world->n[p]; k++) {
            struct change change = change_from(world, p, k);
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

static void
run_world(enum wal_sync sync, uint64_t seed)
{
    struct world *world = calloc(1, sizeof *world);
    struct rig *rig = &world->rig;
    ck_assert_ptr_nonnull(world);
    begin(rig, sync, seed);
    rig->seals = true;
    rig->data.tidy = &at_once;
    for (unsigned round = 0; round < ROUNDS; round++) {
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
    ck_assert_uint_gt(world->n_repeats, 100);
    ck_assert_uint_gt(world->n_done, 500);
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
    const TTest *test[] = {test_once, test_nothing_changed, test_refused,
        test_batch, test_order_in_log, test_full, test_drop, test_cold,
        test_list_and_log, test_threads};
    TCase *tcase = tcase_create("producers");
    for (size_t i = 0; i < COUNT_OF(test); i++) {
        tcase_add_test(tcase, test[i]);
    }
    tcase_add_loop_test(tcase, test_threads_and_power, 0, 3);
    tcase_add_loop_test(tcase, test_random, 0, 6);
    return run_case("producers", tcase);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* durable/producers, under a store on a fake disk: a numbered change is done
 * once, whatever comes between it and its retry. The rules, one by one; and a
 * list of producers in the midst of a log. */
#include "unit/producers_help.h"

#include "base/clock.h"
#include "base/seen.h"
#include "durable/durable.h"
#include "durable/producers.h"
#include "wal/entry.h"

#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Copies of a directory are told of the same entries, but not all of them have
 * been started anew: the serial that comes next is the same, behind the end of
 * another producer, too. */
START_TEST(test_serials)
{
    uint32_t serial[3];
    for (unsigned k = 0; k < 3; k++) {
        struct rig rig;
        struct store_producer producer;
        begin(&rig, WAL_SYNC_ALWAYS, 30 + k);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", 900), false, 1);
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "q", 900), false, 2);
        ck_assert_int_eq(drop(&rig, "p"), 0);
        ck_assert_int_eq(drop(&rig, "q"), 0);
        if (k == 1) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        if (k > 0) {
            crash(&rig, true);
        }
        ck_assert_int_eq(store_producer(rig.store, "r", 1, &producer), 0);
        serial[k] = producer.serial;
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "r", 900), false, 3);
        end(&rig);
    }
    ck_assert_uint_eq(serial[0], serial[1]);
    ck_assert_uint_eq(serial[0], serial[2]);
}
END_TEST

/* A change of a cold record that is under way: refused, nothing is read for it,
 * and nothing changes, before and behind an end. */
START_TEST(test_drop_cold)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_ALWAYS, 11);
    rig.seals = true;
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 1), false, 5);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    struct change old = numbered(&rig, 0, CHANGE_INCR, 5, "p", 2);
    ck_assert_int_eq(drop(&rig, "p"), 0);
    (void)send(&rig, &old, 1);
    ck_assert_int_eq(old.err, ERR_PRODUCER_GONE);
    ck_assert_uint_eq(rig_n_hot(&rig), 0);
    crash(&rig, true);
    /* a new one, whose numbers are its own */
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 2), false, 10);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 2), true, 10);
    end(&rig);
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

/* Numbers of elsewhere are repeats in every shard, now, behind a crash, and
 * behind a checkpoint and a crash; what is not among them is done. */
START_TEST(test_join)
{
    struct rig rig;
    struct seen_window seen = {0};
    seen_add(&seen, 7);
    seen_add(&seen, 1000);
    begin(&rig, WAL_SYNC_ALWAYS, 11);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 999), false, 5);
    ck_assert_int_eq(join(&rig, "p", &seen), 0);
    ck_assert_int_eq(join(&rig, "q", &seen), 0);
    for (unsigned life = 0; life < 3; life++) {
        for (size_t i = 0; i < 30; i++) {
            uint64_t value = i == 0 ? 5 : 0;
            EXPECT_DONE(done(&rig, i, CHANGE_INCR, 5, "p", 1000), true, value);
            EXPECT_DONE(done(&rig, i, CHANGE_INCR, 5, "q", 7), true, value);
        }
        struct seen_window both = seen;
        seen_add(&both, 999);
        for (unsigned k = 0; k < life; k++) {
            seen_add(&both, 500 + k);
        }
        struct seen_window is = joined(&rig, "p");
        ck_assert_mem_eq(&is, &both, sizeof is);
        is = joined(&rig, "r");
        ck_assert(seen_is_empty(&is));
        EXPECT_DONE(
            done(&rig, 31, CHANGE_INCR, 1, "p", 500 + life), false, 1 + life);
        if (life == 1) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        crash(&rig, life % 2 == 0);
    }
    ck_assert_int_eq(drop(&rig, "q"), 0);
    EXPECT_DONE(done(&rig, 1, CHANGE_INCR, 5, "q", 7), false, 5);
    end(&rig);
}
END_TEST

/* ---- a drop and the log ---- */

#define WAIT_NS UINT64_C(300000000000) /* at most, for what has to come */

struct dropping {
    struct producers producers;
    struct engine *engine;
    struct durable durable;
    pthread_t thread;
    bool is_logged;
};

static void *
drop_q(void *arg)
{
    struct dropping *it = arg;
    struct producer_name name;
    uint64_t seq;
    ck_assert(producer_name_set(&name, "q", 1));
    ck_assert_int_eq(
        producers_drop(&it->producers, it->engine, &name, &seq), 0);
    return NULL;
}

/* While a shard is held no window of it goes; the log is told even so. */
static void
wait_for_log(void *context, unsigned shard)
{
    struct dropping *it = context;
    struct wal_stats stats;
    (void)shard;
    ck_assert_int_eq(pthread_create(&it->thread, NULL, drop_q, it), 0);
    uint64_t began_ns = clock_monotonic_ns();
    do {
        wal_stats(it->durable.wal, &stats);
        (void)sched_yield();
    } while (stats.appends < 2 && clock_monotonic_ns() - began_ns < WAIT_NS);
    it->is_logged = stats.appends >= 2;
}

START_TEST(test_drop_is_logged_first)
{
    struct rig rig;
    struct dropping it = {0};
    struct store_producer found;
    const struct engine_config config = {
        .shards = 1, .hot_bytes = ENGINE_HOT_BYTES_MIN};
    rig_init(&rig, WAL_SYNC_NONE, ID_RANDOM, 14);
    const struct wal_config wal = {.disk = rig.data.disk,
        .logger = &rig.logger,
        .interval_ms = 100,
        .file_bytes = 1 << 20,
        .unsynced_bytes_max = 1 << 20,
        .start = {.epoch = 1, .next_number = 1, .next_seq = 1}};
    ck_assert_int_eq(wal_open(&wal, &it.durable.wal), 0);
    ck_assert_int_eq(engine_create(&config, &it.engine), 0);
    ck_assert_int_eq(producers_init(&it.producers, 1, 2, &it.durable), 0);
    ck_assert_int_eq(producers_find(&it.producers, "q", 1, &found), 0);
    engine_hold(it.engine, 0, wait_for_log, &it);
    (void)pthread_join(it.thread, NULL);
    ck_assert(it.is_logged);
    ck_assert_uint_eq(it.producers.n, 0);
    producers_fini(&it.producers);
    engine_destroy(&it.engine);
    ck_assert_int_eq(wal_close(&it.durable.wal), 0);
    rig_fini(&rig);
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
            err = producers__replay_made(
                producers, entry[i].producer, &entry[i].name);
            break;
        case ENTRY_PRODUCER_DROPPED:
            producers__replay_dropped(producers, entry[i].producer);
            break;
        default:
            err = producers__replay_number(
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
    ck_assert_int_eq(producers__list(producers, engine, &list), 0);
    list.last_serial = 0x7fffffff; /* it may be some less after a replay */
    producers__list_put(&list, out);
    ck_assert_uint_eq(producers->n, list.n);
    producers__list_fini(&list);
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
            ck_assert_int_eq(producers__list(&part, engine, &list), 0);
            ck_assert_int_eq(producers__load(&again, &list), 0);
            replay(&again, entry, ENTRIES);
            list_all(engine, &again, &got);
            ck_assert_uint_eq(got.len, wanted.len);
            ck_assert_mem_eq(got.data, wanted.data, wanted.len);
            producers__list_fini(&list);
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

/* More than there can be, since ends of some are lost: the oldest one goes;
 * where there is a directory (_i is 1), that is told. */
START_TEST(test_too_many_in_log)
{
    static struct logger logger;
    static struct durable durable = {.config = {.logger = &logger}};
    struct producers producers;
    struct producer_name name;
    char text[16], told[256] = "";
    int log = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
    ck_assert_int_eq(
        producers_init(&producers, 1, 2, _i == 0 ? NULL : &durable), 0);
    for (uint32_t i = 1; i <= PRODUCERS_MAX + 1; i++) {
        int len = snprintf(text, sizeof text, "p%u", (unsigned)i);
        ck_assert(producer_name_set(&name, text, (size_t)len));
        ck_assert_int_eq(producers__replay_made(&producers, i, &name), 0);
    }
    ck_assert_uint_eq(producers.n, PRODUCERS_MAX);
    struct store_producer found;
    ck_assert_int_eq(producers_find(&producers, "p2", 2, &found), 0);
    ck_assert_int_eq(
        producers_find(&producers, "p1", 2, &found), ERR_MANY_PRODUCERS);
    ck_assert_int_ge(pread(log, told, sizeof told - 1, 0), 0);
    ck_assert((strstr(told, ": p1, the oldest one, is dropped") != NULL) ==
        (_i == 1));
    close(log);
    producers_fini(&producers);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("producers");
    tcase_add_test(tcase, test_once);
    tcase_add_test(tcase, test_nothing_changed);
    tcase_add_test(tcase, test_refused);
    tcase_add_test(tcase, test_batch);
    tcase_add_test(tcase, test_order_in_log);
    tcase_add_test(tcase, test_full);
    tcase_add_test(tcase, test_drop);
    tcase_add_test(tcase, test_serials);
    tcase_add_test(tcase, test_drop_cold);
    tcase_add_test(tcase, test_cold);
    tcase_add_test(tcase, test_join);
    tcase_add_test(tcase, test_drop_is_logged_first);
    tcase_add_test(tcase, test_list_and_log);
    tcase_add_loop_test(tcase, test_too_many_in_log, 0, 2);
    return run_case("producers", tcase);
}

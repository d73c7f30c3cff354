/* SPDX-License-Identifier: BSD-3-Clause */
/* Handovers in the store (store/keeper_moved.c): behind the entry there is no
 * change of the ids, and before it each that was acknowledged; a restart, a
 * checkpoint and a replica keep them. */
#include "durable/durable_position.h"
#include "store/store_real.h"
#include "unit/applier_help.h"
#include "wal/entry.h"

#include <stdio.h>

enum { IDS = 64, WORKERS = 2, MANY = 2000, SOME = 200 };

static const char rule[] = "modulo:1/2"; /* odd ids */

/* A handover under way. */
struct pending {
    struct store_edit edit;
    struct answer answer;
};

static void
begin(struct store *store, struct pending *pending, const char *text,
    const char *address)
{
    pending->edit = (struct store_edit){.err = -1};
    int err = moved_one_set(
        &pending->edit.handover, text, strlen(text), address, strlen(address));
    ck_assert_int_eq(err, 0);
    answer_init(&pending->answer);
    pending->edit.call = call_of(&pending->answer);
    ck_assert_int_eq(store_edit(store, &pending->edit), STORE_LATER);
}

/* *seq: NULL, or the entry's batch. */
static int
end(struct pending *pending, uint64_t *seq)
{
    answer_wait(&pending->answer);
    answer_fini(&pending->answer);
    if (seq != NULL) {
        *seq = pending->edit.seq;
    }
    return pending->edit.err;
}

static int
hand_over(
    struct store *store, const char *text, const char *address, uint64_t *seq)
{
    struct pending pending;
    begin(store, &pending, text, address);
    return end(&pending, seq);
}

/* Where the ids of the rule are; "": here. Nobody hands over meanwhile. */
static const char *
place_of(struct store *store, const char *text)
{
    const struct moved_one *one = store_is_moved(store, text);
    return one == NULL ? "" : one->address;
}

static void
declare(struct rig *rig)
{
    static const char *const lines[] = {
        "add counter w", "add column w wid primarykey", "add column w wa"};
    edit_all(rig->store, lines, sizeof lines / sizeof lines[0]);
}

/* ---- the barrier ---- */

struct worker {
    struct store *store;
    pthread_t thread;
    uint64_t random;
    struct cell_key cell; /* of id 0 */
    uint64_t done[IDS];   /* increments that were acknowledged */
    _Atomic uint64_t n_done, n_refused;
    _Atomic bool stops;
};

/* As a session does it: it looks, and then changes, in one turn. */
static void
try_one(struct worker *it, struct qsbr_reader *reader)
{
    struct answer answer;
    struct cell_key cell = it->cell;
    cell.id = random_below(&it->random, IDS);
    struct change change = change_of(&cell, CHANGE_INCR, 1);
    struct store_change call = {.n = 1, .change = &change};
    enum store_answer given = STORE_DONE;
    answer_init(&answer);
    call.call = call_of(&answer);
    qsbr_online(it->store->qsbr, reader);
    const struct moved *moved = store_moved(it->store);
    bool is_moved = moved != NULL && moved_find(moved, cell.id) != NULL;
    sched_yield();
    if (!is_moved) {
        given = store_change(it->store, &call);
    }
    qsbr_offline(reader);
    if (given == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    if (is_moved) {
        atomic_fetch_add(&it->n_refused, 1);
    } else {
        ck_assert_int_eq(change.err, 0);
        it->done[cell.id]++;
        atomic_fetch_add(&it->n_done, 1);
    }
}

static void *
work(void *arg)
{
    struct worker *it = arg;
    struct qsbr_reader reader;
    qsbr_register(it->store->qsbr, &reader);
    while (!atomic_load(&it->stops)) {
        try_one(it, &reader);
    }
    qsbr_unregister(it->store->qsbr, &reader);
    return NULL;
}

/* What the log says, before the entry and behind it. */
struct reading {
    uint64_t entry_seq, last_seq;
    uint32_t serial;
    bool is_behind;
    uint64_t value[IDS];
    uint64_t n_behind; /* changes of other ids */
};

static int
read_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct reading *it = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;
    it->last_seq = seq;
    while (entry_has_next(&reader)) {
        ck_assert(entry_next(&reader, &entry));
        if (entry.kind == ENTRY_MOVED) {
            ck_assert_uint_eq(seq, it->entry_seq);
            ck_assert_str_eq(entry.moved.rule, rule);
            it->is_behind = true;
        }
        if (entry.kind != ENTRY_CELLS || entry.cells.serial[0] != it->serial) {
            continue;
        }
        ck_assert_uint_lt(entry.cells.id, IDS);
        if (it->is_behind) {
            ck_assert_msg(entry.cells.id % 2 == 0,
                "a change of id %u behind the entry",
                (unsigned)entry.cells.id);
            it->n_behind++;
        }
        it->value[entry.cells.id] = entry.cells.value[0];
    }
    return 0;
}

static void
read_log(struct pair *pair, struct reading *out)
{
    ck_assert_int_eq(replay_primary(pair, read_batch, out), 0);
    ck_assert_uint_eq(out->last_seq, rig_stat(&pair->primary, "last_seq"));
    ck_assert(out->is_behind);
}

/* Each n of all workers, added up. */
static uint64_t
sum_of(struct worker *worker, bool refused)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        sum += atomic_load(refused ? &worker[i].n_refused : &worker[i].n_done);
    }
    return sum;
}

static void
begin_work(struct worker *worker, struct rig *rig)
{
    struct cell_key cell = cell_of(quiet_schema(rig->store), 0, "wa");
    for (unsigned i = 0; i < WORKERS; i++) {
        worker[i] = (struct worker){
            .store = rig->store, .random = 17 + i, .cell = cell};
        ck_assert_int_eq(
            pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
    }
}

static void
end_work(struct worker *worker)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        atomic_store(&worker[i].stops, true);
        ck_assert_int_eq(pthread_join(worker[i].thread, NULL), 0);
    }
}

/* Two threads increment all along, also what is cold. */
START_TEST(test_barrier)
{
    struct pair pair;
    struct worker worker[WORKERS];
    struct reading reading = {0};
    pair_init(&pair, 5, true);
    struct rig *rig = &pair.primary;
    declare(rig);
    reading.serial = cell_of(quiet_schema(rig->store), 0, "wa").serial;
    begin_work(worker, rig);
    while (sum_of(worker, false) < MANY) {
        sched_yield();
    }
    ck_assert_int_eq(rig_seal_all(rig), 0);
    ck_assert_int_eq(
        hand_over(rig->store, rule, "b:1", &reading.entry_seq), 0);
    uint64_t n_done = sum_of(worker, false);
    while (
        sum_of(worker, true) < SOME || sum_of(worker, false) < n_done + SOME) {
        sched_yield();
    }
    end_work(worker);
    read_log(&pair, &reading);
    ck_assert_uint_ge(reading.n_behind, 1);
    for (unsigned id = 0; id < IDS; id++) {
        uint64_t done = 0;
        for (unsigned i = 0; i < WORKERS; i++) {
            done += worker[i].done[id];
        }
        ck_assert_uint_eq(reading.value[id], done);
    }
    catch_up(&pair);
    ck_assert(pair_is_equal(&pair));
    ck_assert_str_eq(place_of(pair.replica.store, rule), "b:1");
    pair_fini(&pair);
}
END_TEST

/* Long enough for what does not wait, as a rule. */
static void
let_others_go_on(void)
{
    for (unsigned i = 0; i < 5000; i++) {
        sched_yield();
    }
}

/* Who has looked before the handover changes before the entry, however late. */
START_TEST(test_late)
{
    struct pair pair;
    struct pending pending;
    struct qsbr_reader reader;
    struct reading reading = {0};
    pair_init(&pair, 5, true);
    struct store *store = pair.primary.store;
    declare(&pair.primary);
    struct cell_key cell = cell_of(quiet_schema(store), 7, "wa");
    struct change change = change_of(&cell, CHANGE_SET, 5);
    struct store_change call = {.n = 1, .change = &change};
    reader_begin(store, &reader);
    ck_assert_ptr_null(store_moved(store));
    begin(store, &pending, rule, "b:1");
    while (store_moved(store) == NULL) {
        sched_yield();
    }
    let_others_go_on();
    ck_assert_uint_eq(atomic_load(&pending.answer.n), 0);
    ck_assert_int_eq(store_change(store, &call), STORE_DONE);
    ck_assert_int_eq(change.err, 0);
    reader_end(store, &reader);
    ck_assert_int_eq(end(&pending, &reading.entry_seq), 0);
    reading.serial = cell.serial;
    read_log(&pair, &reading);
    ck_assert_uint_eq(reading.value[7], 5);
    pair_fini(&pair);
}
END_TEST

/* So does who waits for a block of the cold tier. */
START_TEST(test_parked)
{
    struct pair pair;
    struct pending pending;
    struct answer answer;
    struct qsbr_reader reader;
    struct reading reading = {0};
    pair_init(&pair, 5, true);
    struct rig *rig = &pair.primary;
    declare(rig);
    struct cell_key cell = cell_of(quiet_schema(rig->store), 7, "wa");
    ck_assert_int_eq(change_cell(rig->store, &cell, CHANGE_SET, 5), 0);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    ck_assert_int_eq(rig_close(rig), 0); /* and no block is in memory */
    ck_assert_int_eq(rig_open(rig), 0);
    manifest_fini(&pair.manifest);
    manifest_init(&pair.manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &pair.manifest, NULL), 0);
    struct change change = change_of(&cell, CHANGE_INCR, 1);
    struct store_change call = {.n = 1, .change = &change};
    answer_init(&answer);
    call.call = call_of(&answer);
    fake_disk_hold(rig->fake, FAKE_READ);
    reader_begin(rig->store, &reader);
    ck_assert_int_eq(store_change(rig->store, &call), STORE_LATER);
    reader_end(rig->store, &reader);
    fake_disk_wait_held(rig->fake);
    begin(rig->store, &pending, rule, "b:1");
    let_others_go_on();
    ck_assert_uint_eq(atomic_load(&pending.answer.n), 0);
    fake_disk_let_go(rig->fake);
    answer_wait(&answer);
    answer_fini(&answer);
    ck_assert_int_eq(change.err, 0);
    ck_assert_int_eq(end(&pending, &reading.entry_seq), 0);
    reading.serial = cell.serial;
    read_log(&pair, &reading);
    ck_assert_uint_eq(reading.value[7], 6);
    pair_fini(&pair);
}
END_TEST

/* ---- what keeps them ---- */

static void
reopen(struct rig *rig)
{
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
}

START_TEST(test_restart)
{
    struct rig rig;
    uint64_t seq, again;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    declare(&rig);
    ck_assert_int_eq(hand_over(rig.store, rule, "b:1", &seq), 0);
    ck_assert_int_eq(hand_over(rig.store, "modulo:0/8", "c:1", NULL), 0);
    reopen(&rig); /* from the log */
    ck_assert_str_eq(place_of(rig.store, rule), "b:1");
    ck_assert_str_eq(place_of(rig.store, "modulo:0/8"), "c:1");
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    reopen(&rig); /* from the manifest */
    ck_assert_str_eq(place_of(rig.store, rule), "b:1");
    ck_assert_int_eq(hand_over(rig.store, rule, "b:2", &again), 0);
    ck_assert_uint_gt(again, seq);
    ck_assert_int_eq(hand_over(rig.store, "modulo:0/8", "", NULL), 0);
    reopen(&rig); /* from both */
    ck_assert_str_eq(place_of(rig.store, rule), "b:2");
    ck_assert_str_eq(place_of(rig.store, "modulo:0/8"), "");
    ck_assert_int_eq(hand_over(rig.store, rule, "", NULL), 0);
    ck_assert_ptr_null(store_moved(rig.store));
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    reopen(&rig);
    ck_assert_ptr_null(store_moved(rig.store));
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Said again it is logged again, so that who waits for the entry finds one;
 * what is here is not. */
START_TEST(test_again)
{
    struct rig rig;
    uint64_t first, second, last;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(hand_over(rig.store, rule, "b:1", &first), 0);
    ck_assert_int_eq(hand_over(rig.store, rule, "b:1", &second), 0);
    ck_assert_uint_gt(second, first);
    last = rig_stat(&rig, "last_seq");
    ck_assert_int_eq(hand_over(rig.store, "modulo:1/4", "", NULL), 0);
    ck_assert_uint_eq(rig_stat(&rig, "last_seq"), last);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_many)
{
    struct rig rig;
    char text[OWNS_RULE_BYTES];
    rig_init(&rig, WAL_SYNC_INTERVAL, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned i = 0; i < MOVED_MAX; i++) {
        snprintf(text, sizeof text, "modulo:%u/100", i);
        ck_assert_int_eq(hand_over(rig.store, text, "b:1", NULL), 0);
    }
    ck_assert_int_eq(
        hand_over(rig.store, rule, "b:1", NULL), ERR_MANY_HANDOVERS);
    ck_assert_str_eq(place_of(rig.store, rule), "");
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    reopen(&rig);
    ck_assert_uint_eq(moved_list_of(store_moved(rig.store))->n, MOVED_MAX);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Without a data directory they are there as long as the server. */
START_TEST(test_memory)
{
    struct store *store = small_store(NULL);
    ck_assert_int_eq(hand_over(store, rule, "b:1", NULL), 0);
    ck_assert_str_eq(place_of(store, rule), "b:1");
    ck_assert_int_eq(hand_over(store, "modulo:0/8", "c:1", NULL), 0);
    ck_assert_int_eq(hand_over(store, rule, "", NULL), 0);
    ck_assert_str_eq(place_of(store, rule), "");
    ck_assert_str_eq(place_of(store, "modulo:0/8"), "c:1");
    store_destroy(&store);
}
END_TEST

/* A replica has what its primary has, also as the primary. */
START_TEST(test_replica)
{
    struct pair pair;
    pair_init(&pair, 9, true);
    struct store *store = pair.primary.store;
    declare(&pair.primary);
    ck_assert_int_eq(hand_over(store, rule, "b:1", NULL), 0);
    ck_assert_int_eq(hand_over(store, "modulo:0/8", "c:1", NULL), 0);
    catch_up(&pair);
    ck_assert_str_eq(place_of(pair.replica.store, rule), "b:1");
    ck_assert_int_eq(
        hand_over(pair.replica.store, rule, "", NULL), ERR_NOT_PRIMARY);
    ck_assert_int_eq(
        hand_over(pair.replica.store, rule, "d:1", NULL), ERR_NOT_PRIMARY);
    ck_assert_str_eq(place_of(pair.replica.store, rule), "b:1");
    ck_assert_int_eq(hand_over(store, "modulo:0/8", "", NULL), 0);
    ck_assert_int_eq(rig_checkpoint(&pair.replica), 0);
    catch_up(&pair);
    ck_assert_str_eq(place_of(pair.replica.store, "modulo:0/8"), "");
    ck_assert_int_eq(rig_close(&pair.replica), 0);
    open_replicated(&pair.replica); /* the manifest is older than the end */
    ck_assert_str_eq(place_of(pair.replica.store, rule), "b:1");
    ck_assert_str_eq(place_of(pair.replica.store, "modulo:0/8"), "");
    (void)begin_term(&pair.replica, "b");
    ck_assert_str_eq(place_of(pair.replica.store, rule), "b:1");
    ck_assert_int_eq(hand_over(pair.replica.store, rule, "", NULL), 0);
    ck_assert_ptr_null(store_moved(pair.replica.store));
    pair_fini(&pair);
}
END_TEST

static void *
demote(void *arg)
{
    ck_assert_int_eq(store_set_replica(arg), 0);
    return NULL;
}

/* A worker is at a change, and then at the next one, so that the server becomes
 * a replica while the handover waits. */
static void
hold_up(struct store *store, struct qsbr_reader *reader)
{
    while (store_fault(store) != ERR_NOT_PRIMARY) {
        sched_yield();
    }
    let_others_go_on(); /* both wait for it, as a rule */
    reader_end(store, reader);
    reader_begin(store, reader);
    for (unsigned i = 0;
         i < 1000 && !durable_is_replica(&store__real(store)->durable); i++) {
        let_others_go_on();
    }
    reader_end(store, reader);
}

/* The server ceases to be the primary in the middle: the ids have gone, as the
 * log says, or they are here, and a primary after it hands them over. */
START_TEST(test_demoted)
{
    struct pair pair;
    struct pending pending;
    struct qsbr_reader reader;
    pthread_t thread;
    pair_init(&pair, 9, true);
    struct store *store = pair.replica.store;
    declare(&pair.primary);
    catch_up(&pair);
    (void)begin_term(&pair.replica, "b");
    ck_assert_int_eq(hand_over(store, "modulo:0/8", "c:1", NULL), 0);
    const struct moved *before = store_moved(store);
    reader_begin(store, &reader);
    begin(store, &pending, rule, "b:1");
    while (store_moved(store) == before) {
        sched_yield();
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, demote, store), 0);
    hold_up(store, &reader);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    int err = end(&pending, NULL);
    ck_assert(err == 0 || err == ERR_NOT_PRIMARY);
    ck_assert_str_eq(place_of(store, rule), err == 0 ? "b:1" : "");
    ck_assert_str_eq(place_of(store, "modulo:0/8"), "c:1");
    ck_assert_int_eq(rig_close(&pair.replica), 0);
    open_replicated(&pair.replica);
    store = pair.replica.store;
    ck_assert_str_eq(place_of(store, rule), err == 0 ? "b:1" : "");
    ck_assert_str_eq(place_of(store, "modulo:0/8"), "c:1");
    (void)begin_term(&pair.replica, "b");
    ck_assert_int_eq(hand_over(store, rule, "d:1", NULL), 0);
    ck_assert_str_eq(place_of(store, rule), "d:1");
    pair_fini(&pair);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_barrier, test_late, test_parked,
        test_restart, test_again, test_many, test_memory, test_replica,
        test_demoted};
    return run_tests("handover", tests, COUNT_OF(tests));
}

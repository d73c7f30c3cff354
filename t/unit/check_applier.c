/* SPDX-License-Identifier: BSD-3-Clause */
/* store/applier: a replica that applies its primary's log has the same records,
 * whatever is sealed where, beside readers, through restarts and as the next
 * primary. */
#include "store/applier.h"
#include "unit/applier_help.h"
#include "unit/producers_help.h"

#include <stdio.h>

enum { IDS = 200, STEPS = 1200, MEMBERS = 60, BATCH = 8, READS = 16 };

/* Counter w has numbers and a mark, counter m members. Column twin is changed
 * with wa only, and to the same. */
static void
declare_all(struct pair *pair)
{
    static const char *const lines[] = {"add counter w maxjump=1000000",
        "add column w wid primarykey", "add column w wa default=7",
        "add column w twin default=7", "add column w wb max=64",
        "add column w wc", "add column w ws marks=wb unread=wu"};
    edit_all(pair->primary.store, lines, sizeof lines / sizeof lines[0]);
    members_add_cold_counter(&pair->primary);
}

static uint64_t
below(struct pair *pair, uint64_t n)
{
    return random_below(&pair->primary.random, n);
}

static struct cell_key
cell(struct pair *pair, const char *name)
{
    return cell_of(
        quiet_schema(pair->primary.store), below(pair, IDS) * 5, name);
}

/* A change of a cell or two; refused ones are none. */
static void
change_some(struct pair *pair)
{
    static const char *const name[] = {"wb", "wc", "plain", "wb"};
    static const enum change_op op[] = {
        CHANGE_SET, CHANGE_INCR, CHANGE_DECR, CHANGE_DELETE, CHANGE_INCR};
    struct change change[BATCH];
    uint32_t n = 1 + (uint32_t)below(pair, BATCH);
    for (uint32_t i = 0; i < n; i++) {
        struct cell_key key = cell(pair, name[below(pair, 4)]);
        uint64_t bits = below(pair, 40);
        change[i] = change_of(
            &key, op[below(pair, 5)], below(pair, UINT64_C(1) << bits));
    }
    (void)do_changes(pair->primary.store, change, n);
}

static void
change_twins(struct pair *pair)
{
    struct cell_key key = cell(pair, "wa");
    struct cell_key twin =
        cell_of(quiet_schema(pair->primary.store), key.id, "twin");
    uint64_t value = below(pair, 1000);
    bool deletes = below(pair, 4) == 0;
    struct change change = change_of(
        &key, deletes ? CHANGE_DELETE : CHANGE_SET, deletes ? 0 : value);
    change.column[1] = twin.column;
    change.serial[1] = twin.serial;
    change.operand[1] = change.operand[0];
    change.n_columns = 2;
    (void)do_changes(pair->primary.store, &change, 1);
}

static void
change_mark(struct pair *pair)
{
    struct cell_key key = cell(pair, "ws");
    struct cell_key source =
        cell_of(quiet_schema(pair->primary.store), key.id, "wb");
    struct change change =
        change_of(&key, CHANGE_MARK_SET, below(pair, 1 << 20));
    change.source = (struct change_source){
        .from = SOURCE_HERE, .serial = source.serial, .column = source.column};
    (void)do_changes(pair->primary.store, &change, 1);
}

static void
change_member(struct pair *pair)
{
    bool is_s = below(pair, 2) == 0;
    members_change(&pair->primary, below(pair, IDS / 10), is_s ? "s" : "liked",
        below(pair, MEMBERS), is_s ? below(pair, 4) : below(pair, 3) != 0);
}

/* Deletes a record with its members: the pairs stay for the gardener. */
static void
drop_record(struct pair *pair)
{
    struct cell_key key = cell_of(
        quiet_schema(pair->primary.store), below(pair, IDS / 10), "likes");
    struct cell_key liked =
        cell_of(quiet_schema(pair->primary.store), key.id, "liked");
    struct change change = change_of(&key, CHANGE_DELETE, 0);
    change.column[1] = liked.column;
    change.serial[1] = liked.serial;
    change.n_columns = 2;
    (void)do_changes(pair->primary.store, &change, 1);
}

static struct change
number_change(struct rig *rig, uint64_t id, const char *name, uint64_t number)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), id, "wc");
    struct store_producer producer;
    ck_assert_int_eq(
        store_producer(rig->store, name, strlen(name), &producer), 0);
    struct change change = change_of(&key, CHANGE_INCR, 1);
    change.producer = producer.serial;
    change.producer_slot = producer.slot;
    change.number = number;
    do_changes(rig->store, &change, 1);
    return change;
}

static void
change_numbered(struct pair *pair)
{
    char name[] = {'p', (char)('a' + below(pair, 5)), '\0'};
    if (below(pair, 20) == 0) {
        (void)drop(&pair->primary, name);
        return;
    }
    if (below(pair, 10) == 0) {
        struct seen_window seen = {0};
        for (uint64_t n = 1 + below(pair, 10); n > 0; n--) {
            seen_add(&seen, below(pair, 3000));
        }
        ck_assert_int_eq(join(&pair->primary, name, &seen), 0);
        return;
    }
    (void)number_change(
        &pair->primary, below(pair, IDS) * 5, name, below(pair, 3000));
}

#define ADD_SEEN "add column m seen members=exact max=8 member=20 suffix=s"

static void
edit_schema(struct pair *pair)
{
    static const char *const line[] = {"add column w extra default=3",
        "drop column w extra extra", "add counter x", "drop counter x x",
        "add column x xid primarykey", "add column x xa",
        "drop column m seen seen", ADD_SEEN, "drop column w wc wc",
        "add column w wc"};
    (void)edit(
        pair->primary.store, line[below(pair, sizeof line / sizeof line[0])]);
    /* those that others name are there */
    (void)edit(pair->primary.store, "add column w wc");
    (void)edit(pair->primary.store, ADD_SEEN);
}

static void
step(struct pair *pair, unsigned i)
{
    uint64_t what = below(pair, 100);
    if (what < 40) {
        change_some(pair);
    } else if (what < 55) {
        change_twins(pair);
    } else if (what < 65) {
        change_mark(pair);
    } else if (what < 82) {
        change_member(pair);
    } else if (what < 84) {
        drop_record(pair);
    } else if (what < 97) {
        change_numbered(pair);
    } else {
        edit_schema(pair);
    }
    if (i % 50 == 0) {
        (void)rig_seal_later(&pair->primary, (unsigned)below(pair, 4));
    }
}

/* Reads records of the replica all the time: twins are seen together. */
struct reading {
    struct store *store;
    struct cell_key wa, twin;
    atomic_bool is_over;
    uint64_t n;
};

static void *
read_on(void *arg)
{
    struct reading *it = arg;
    struct answer answer;
    struct qsbr_reader reader;
    answer_init(&answer);
    qsbr_register(it->store->qsbr, &reader);
    while (!atomic_load(&it->is_over)) {
        struct store_get get = {.n = 2 * READS};
        get.call = call_of(&answer);
        for (unsigned i = 0; i < READS; i++) {
            get.key[2 * i] = it->wa;
            get.key[2 * i + 1] = it->twin;
            get.key[2 * i].id = get.key[2 * i + 1].id =
                (it->n * READS + i) % IDS * 5;
        }
        qsbr_online(it->store->qsbr, &reader);
        enum store_answer given = store_get(it->store, &get);
        qsbr_offline(&reader);
        if (given == STORE_LATER) {
            answer_wait(&answer);
        }
        for (unsigned i = 0; i < READS; i++) {
            EXPECT(get.state[2 * i] < CELL_GONE, "gone: %u", i);
            EXPECT(get.value[2 * i] == get.value[2 * i + 1], "torn: %u", i);
        }
        it->n++;
    }
    qsbr_unregister(it->store->qsbr, &reader);
    answer_fini(&answer);
    return NULL;
}

static void
begin_reading(struct pair *pair, struct reading *it, pthread_t *thread)
{
    const struct schema *schema = quiet_schema(pair->replica.store);
    *it = (struct reading){.store = pair->replica.store,
        .wa = cell_of(schema, 0, "wa"),
        .twin = cell_of(schema, 0, "twin")};
    atomic_init(&it->is_over, false);
    ck_assert_int_eq(pthread_create(thread, NULL, read_on, it), 0);
}

static void
end_reading(struct reading *it, pthread_t thread)
{
    atomic_store(&it->is_over, true);
    pthread_join(thread, NULL);
    ck_assert_uint_gt(it->n, 0);
}

/* Numbers of members are the primary's, too. */
static void
expect_numbers(struct pair *pair)
{
    for (uint64_t id = 0; id < IDS / 10; id++) {
        ck_assert_uint_eq(members_get(&pair->primary, id, "liked"),
            members_get(&pair->replica, id, "liked"));
        ck_assert_uint_eq(members_get(&pair->primary, id, "s"),
            members_get(&pair->replica, id, "s"));
    }
}

/* What was seen of producers is the same. */
static void
expect_producers(struct pair *pair)
{
    unsigned n = 0;
    for (char c = 'a'; c < 'a' + 5; c++) {
        char name[] = {'p', c, '\0'};
        struct seen_window a = joined(&pair->primary, name);
        struct seen_window b = joined(&pair->replica, name);
        ck_assert_mem_eq(&a, &b, sizeof a);
        n += !seen_is_empty(&a);
    }
    ck_assert_uint_gt(n, 0);
}

/* Has the replica seal the counter in a slot, while its schema changes. */
static void
seal_replica(struct pair *pair, unsigned slot)
{
    struct rig *rig = &pair->replica;
    struct qsbr_reader reader;
    (void)rig_seal_wait(rig);
    reader_begin(rig->store, &reader);
    const struct schema_counter *counter =
        schema_counter_at(store_schema(rig->store), slot);
    uint32_t serial = counter == NULL ? 0 : counter->serial;
    reader_end(rig->store, &reader);
    if (serial != 0) {
        answer_init(&rig->sealed);
        rig->is_sealing = true;
        rig->seal = (struct store_seal){.call = call_of(&rig->sealed),
            .slot = slot,
            .serial = serial,
            .err = -1};
        ck_assert_int_eq(store_seal(rig->store, &rig->seal), STORE_LATER);
    }
}

/* The replica works as it pleases meanwhile. */
static void
stir_replica(struct pair *pair, unsigned i)
{
    if (i % 9 == 0) {
        seal_replica(pair, (unsigned)below(pair, 4));
    }
    if (i % 120 == 0) {
        ck_assert_int_eq(rig_checkpoint(&pair->replica), 0);
    }
}

START_TEST(test_random)
{
    struct pair pair;
    struct reading reading;
    pthread_t reader;
    pair_init(&pair, (uint64_t)_i + 1, true);
    pair.primary.data.tidy = pair.replica.data.tidy = &at_once;
    declare_all(&pair);
    catch_up(&pair);
    begin_reading(&pair, &reading, &reader);
    for (unsigned i = 0; i < long_part(STEPS); i++) {
        step(&pair, i);
        if (i % 7 == 0) {
            ship(&pair);
            stir_replica(&pair, i / 7);
        }
    }
    catch_up(&pair);
    end_reading(&reading, reader);
    (void)rig_seal_wait(&pair.replica);
    store_verify(pair.replica.store);
    ck_assert(pair_is_equal(&pair));
    expect_numbers(&pair);
    expect_producers(&pair);
    ck_assert_uint_gt(rig_cold_stat(&pair.replica, "seals"), 0);
    /* as its own log has it */
    ck_assert_int_eq(rig_close(&pair.replica), 0);
    open_replicated(&pair.replica);
    ck_assert_uint_eq(store_applied(pair.replica.store), pair.shipped);
    ck_assert(pair_is_equal(&pair));
    expect_numbers(&pair);
    expect_producers(&pair);
    pair_fini(&pair);
}
END_TEST

/* A record is in a segment of the replica, not of the primary, when one of its
 * columns changes. */
static bool
change_sealed(bool is_whole)
{
    struct pair pair;
    pair_init(&pair, 1, is_whole);
    declare_all(&pair);
    struct cell_key wa = cell_of(quiet_schema(pair.primary.store), 5, "wa");
    struct cell_key wb = cell_of(quiet_schema(pair.primary.store), 5, "wb");
    ck_assert_int_eq(change_cell(pair.primary.store, &wa, CHANGE_SET, 3), 0);
    ck_assert_int_eq(change_cell(pair.primary.store, &wb, CHANGE_SET, 4), 0);
    catch_up(&pair);
    ck_assert(pair_is_equal(&pair));
    ck_assert_int_eq(rig_seal_all(&pair.replica), 0);
    ck_assert(pair_is_equal(&pair));
    ck_assert_int_eq(change_cell(pair.primary.store, &wb, CHANGE_INCR, 1), 0);
    catch_up(&pair);
    bool is_equal = pair_is_equal(&pair);
    pair_fini(&pair);
    return is_equal;
}

START_TEST(test_whole)
{
    ck_assert(change_sealed(true));
}
END_TEST

/* The test is one. */
START_TEST(test_not_whole)
{
    ck_assert(!change_sealed(false));
}
END_TEST

/* The replica has an eighth of the primary's memory, 16 MiB, where 21 MB are to
 * be: it seals by itself, and what is applied waits for that. */
START_TEST(test_room)
{
    enum { RECORDS = 180000, AT_ONCE = 60, COLUMNS = 15, SHIPS = 4 };
    static struct change change[AT_ONCE];
    struct pair pair;
    char line[RIG_LINE_BYTES];
    pair_make(&pair, 5, true);
    pair.primary.config.hot_bytes = 8 * pair.replica.config.hot_bytes;
    pair.primary.config.table_records_max = 0;
    pair.replica.config.table_records_max = 0;
    pair_open(&pair);
    ck_assert_int_eq(edit(pair.primary.store, "add counter r"), 0);
    ck_assert_int_eq(
        edit(pair.primary.store, "add column r id primarykey"), 0);
    for (unsigned i = 0; i < COLUMNS; i++) {
        (void)snprintf(line, sizeof line, "add column r c%u max=64", i);
        ck_assert_int_eq(edit(pair.primary.store, line), 0);
    }
    struct cell_key key = cell_of(quiet_schema(pair.primary.store), 0, "c0");
    for (uint64_t id = 0; id < RECORDS; id++) {
        struct change *it = &change[id % AT_ONCE];
        key.id = id;
        *it = change_of(&key, CHANGE_SET, 0);
        it->n_columns = COLUMNS;
        for (unsigned i = 0; i < COLUMNS; i++) {
            it->column[i] = (uint8_t)(key.column + i);
            it->serial[i] = key.serial + i;
            it->operand[i] = below(&pair, UINT64_MAX);
        }
        if (id % AT_ONCE == AT_ONCE - 1) {
            (void)do_changes(pair.primary.store, change, AT_ONCE);
            for (unsigned i = 0; i < AT_ONCE; i++) {
                EXPECT(change[i].err == 0, "refused");
            }
        }
        if (id % (RECORDS / SHIPS) == RECORDS / SHIPS - 1) {
            ship(&pair);
        }
    }
    catch_up(&pair);
    ck_assert_uint_gt(rig_cold_stat(&pair.replica, "seals"), 0);
    ck_assert_uint_lt(rig_n_hot(&pair.replica), RECORDS);
    ck_assert_uint_eq(rig_n_hot(&pair.primary), RECORDS);
    ck_assert(pair_is_equal(&pair));
    pair_fini(&pair);
}
END_TEST

/* Puts one without a second try: what a connection would that ends now. */
static int
put_once(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct pair *pair = context;
    if (seq <= pair->shipped) {
        return 0;
    }
    int err = store_put_batch(pair->replica.store, seq, payload, len);
    pair->shipped += err == 0;
    return err;
}

/* Puts what the primary's log has until the queue is full. */
static void
ship_until_full(struct pair *pair)
{
    ck_assert_int_eq(replay_primary(pair, put_once, pair), ERR_LOG_FULL);
}

/* The queue is full while an edit waits for a reader, and then the connection
 * ends: the next one goes on where the log does, and nothing is left out. */
START_TEST(test_full)
{
    enum { BATCHES = 4500, AT_ONCE = 60, COLUMNS = 15 };
    static struct change change[AT_ONCE];
    struct pair pair;
    struct qsbr_reader reader;
    char line[RIG_LINE_BYTES];
    pair_init(&pair, 9, true);
    declare_all(&pair);
    catch_up(&pair);
    ck_assert_int_eq(edit(pair.primary.store, "add counter r"), 0);
    ck_assert_int_eq(
        edit(pair.primary.store, "add column r id primarykey"), 0);
    for (unsigned i = 0; i < COLUMNS; i++) {
        (void)snprintf(line, sizeof line, "add column r c%u max=64", i);
        ck_assert_int_eq(edit(pair.primary.store, line), 0);
    }
    struct cell_key key = cell_of(quiet_schema(pair.primary.store), 0, "c0");
    for (uint64_t n = 0; n < BATCHES; n++) {
        for (unsigned k = 0; k < AT_ONCE; k++) {
            struct change *it = &change[k];
            key.id = n % 16 * AT_ONCE + k;
            *it = change_of(&key, CHANGE_SET, 0);
            it->n_columns = COLUMNS;
            for (unsigned i = 0; i < COLUMNS; i++) {
                it->column[i] = (uint8_t)(key.column + i);
                it->serial[i] = key.serial + i;
                it->operand[i] = below(&pair, UINT64_MAX);
            }
        }
        (void)do_changes(pair.primary.store, change, AT_ONCE);
        for (unsigned k = 0; k < AT_ONCE; k++) {
            EXPECT(change[k].err == 0, "refused");
        }
    }
    qsbr_register(pair.replica.store->qsbr, &reader);
    qsbr_online(pair.replica.store->qsbr, &reader);
    ship_until_full(&pair);
    ck_assert_uint_eq(rig_stat(&pair.replica, "last_seq"), pair.shipped);
    qsbr_offline(&reader);
    qsbr_unregister(pair.replica.store->qsbr, &reader);
    pair.shipped = rig_stat(&pair.replica, "last_seq");
    catch_up(&pair);
    ck_assert(pair_is_equal(&pair));
    pair_fini(&pair);
}
END_TEST

/* What a client would change is refused, in the store as well; a batch that was
 * put is passed over. */
START_TEST(test_refused)
{
    struct pair pair;
    pair_init(&pair, 2, true);
    declare_all(&pair);
    catch_up(&pair);
    struct store_producer producer;
    ck_assert_int_eq(
        edit(pair.replica.store, "add counter y"), ERR_NOT_PRIMARY);
    ck_assert_int_eq(drop(&pair.replica, "pa"), ERR_NOT_PRIMARY);
    ck_assert_int_eq(store_producer(pair.replica.store, "p", 1, &producer),
        ERR_NOT_PRIMARY);
    struct seen_window seen = {.high = 1, .bit = {2}};
    ck_assert_int_eq(join(&pair.replica, "p", &seen), ERR_NOT_PRIMARY);
    const uint8_t none[] = {0};
    ck_assert_int_eq(
        store_put_batch(pair.replica.store, pair.shipped, none, sizeof none),
        0);
    ck_assert_int_eq(store_drain_batches(pair.replica.store), 0);
    ck_assert(pair_is_equal(&pair));
    pair_fini(&pair);
}
END_TEST

/* What this program does not know ends it: said to who puts more, and to who
 * wants a checkpoint; reads go on. */
START_TEST(test_unknown)
{
    const uint8_t unknown[] = {7, 0, 0};
    struct pair pair;
    pair_init(&pair, 6, true);
    declare_all(&pair);
    struct cell_key wb = cell_of(quiet_schema(pair.primary.store), 5, "wb");
    ck_assert_int_eq(change_cell(pair.primary.store, &wb, CHANGE_SET, 4), 0);
    catch_up(&pair);
    struct store *store = pair.replica.store;
    uint64_t seq = pair.shipped + 1, first;
    ck_assert_int_eq(store_put_batch(store, seq, unknown, sizeof unknown), 0);
    ck_assert_int_eq(store_drain_batches(store), ERR_NEWER_FORMAT);
    ck_assert_int_eq(store_put_batch(store, seq + 1, unknown, sizeof unknown),
        ERR_NEWER_FORMAT);
    ck_assert_uint_eq(store_applied(store), pair.shipped);
    ck_assert_int_eq(rig_checkpoint(&pair.replica), ERR_NO_CHECKPOINT);
    expect_cell(store, &wb, CELL_SET, 4);
    ck_assert_int_eq(
        store_begin_term(store, "b", 1, 0, &first), ERR_NEWER_FORMAT);
    ck_assert_int_eq(store_fault(store), ERR_NOT_PRIMARY);
    pair_fini(&pair);
}
END_TEST

/* The replica becomes the primary: it takes changes, numbers of members go on,
 * and what was numbered is known. */
START_TEST(test_promoted)
{
    struct pair pair;
    pair_init(&pair, 3, true);
    declare_all(&pair);
    for (unsigned i = 0; i < 300; i++) { /* past the first reservation */
        members_change(&pair.primary, i, "liked", 5, 1);
    }
    struct change first = number_change(&pair.primary, 10, "pa", 77);
    ck_assert(first.err == 0 && !first.is_repeat);
    catch_up(&pair);
    ck_assert_int_eq(rig_seal_all(&pair.replica), 0);
    (void)begin_term(&pair.replica, "b");
    struct change again = number_change(&pair.replica, 10, "pa", 77);
    ck_assert(again.err == 0 && again.is_repeat);
    for (unsigned i = 300; i < 310; i++) {
        members_change(&pair.replica, i, "liked", 5, 1);
        members_change(&pair.primary, i, "liked", 5, 1);
    }
    for (unsigned i = 300; i < 310; i++) { /* none is given twice */
        for (unsigned k = 0; k < i; k++) {
            bool is_same_shard = (i ^ k) % 4 == 0;
            EXPECT(!is_same_shard ||
                    members_get(&pair.replica, i, "liked") !=
                        members_get(&pair.replica, k, "liked"),
                "%u and %u have one number", i, k);
        }
    }
    ck_assert(pair_is_equal(&pair));
    ck_assert_int_eq(edit(pair.replica.store, "add counter y"), 0);
    ck_assert_int_eq(rig_close(&pair.replica), 0);
    open_replicated(&pair.replica);
    ck_assert_int_eq(edit(pair.primary.store, "add counter y"), 0);
    ck_assert(pair_is_equal(&pair));
    pair_fini(&pair);
}
END_TEST

/* The figures of who is liked, of all shards. */
static struct engine_numbers
figures(struct rig *rig, const struct schema_counter *pairs)
{
    struct engine_numbers out = {0};
    for (unsigned shard = 0; shard < rig->config.shards; shard++) {
        store_numbers(rig->store, pairs->slot, MEMBERS_BITS, shard, &out);
    }
    return out;
}

/* The replica leads until nothing of before is left, and by the figures has so
 * many members. */
static void
lead(struct pair *pair, const struct schema_counter *pairs, uint64_t n)
{
    struct rig *rig = &pair->replica;
    struct engine_numbers out;
    ck_assert_int_eq(store_set_replica(pair->primary.store), 0);
    (void)begin_term(rig, "b");
    do {
        sched_yield();
        out = figures(rig, pairs);
    } while (out.waiting > 0 || out.looking > 0 || out.counting > 0);
    out = figures(rig, pairs); /* those of each shard from then on */
    ck_assert_uint_eq(
        store_sum(rig->store, pairs->slot).records - out.marks, n);
    ck_assert_int_eq(store_set_replica(rig->store), 0);
    store_set_committed(rig->store, UINT64_MAX);
}

static int
put_back(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct pair *pair = context;
    if (seq > pair->shipped) {
        pair->shipped = seq;
        put_batch(pair->primary.store, seq, payload, len);
    }
    return 0;
}

/* What the replica has led goes to the one that led before, which leads on. */
static void
give_back(struct pair *pair)
{
    struct rig *rig = &pair->replica;
    struct manifest manifest;
    struct replay_end end;
    uint64_t seq = rig_stat(rig, "last_seq");
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
    const struct replay replay = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .epoch = manifest.epoch,
        .histories = &manifest.histories,
        .number = manifest.log_number,
        .last_seq = seq,
        .batch_fn = put_back,
        .context = pair};
    ck_assert_int_eq(replay_run(&replay, &end), 0);
    manifest_fini(&manifest);
    ck_assert_int_eq(store_drain_batches(pair->primary.store), 0);
    ck_assert_uint_eq(store_applied(pair->primary.store), seq);
    (void)begin_term(&pair->primary, "a");
}

/* Leads, follows and leads again: then it looks anew for what its primary had
 * still to take out, and counts anew, in segments, too. */
START_TEST(test_leads_again)
{
    enum { RECORDS = 20, EACH = 3, GONE = 8 };
    struct change change[GONE];
    struct cell_key key[GONE * EACH];
    struct schema_target target;
    struct pair pair;
    uint64_t value;
    pair_make(&pair, 7, true);
    pair.primary.data.is_replicated = true;
    pair_open(&pair);
    declare_all(&pair);
    for (unsigned i = 0; i < RECORDS * EACH; i++) {
        members_change(&pair.primary, i / EACH, "liked", i % EACH, 1);
    }
    catch_up(&pair);
    ck_assert_int_eq(rig_seal_all(&pair.replica), 0);
    ck_assert(
        schema_find(quiet_schema(pair.replica.store), "liked", 5, &target));
    const struct schema_counter *pairs =
        schema_pairs(quiet_schema(pair.replica.store), target.column);
    lead(&pair, pairs, (uint64_t)RECORDS * EACH);
    give_back(&pair);
    for (unsigned i = 0; i < GONE * EACH; i++) {
        uint64_t number = members_get(&pair.primary, i / EACH, "liked");
        key[i] =
            (struct cell_key){.id = store_pair(pair.replica.store, i / EACH,
                                  number, MEMBERS_BITS, i % EACH),
                .serial = pairs->column[0].serial,
                .counter = pairs->slot};
    }
    for (unsigned i = 0; i < GONE; i++) {
        change[i] = members_forget_of(&pair.primary, i, "liked");
    }
    members_change(&pair.primary, GONE, "liked", EACH, 1); /* between others */
    /* not what it takes out behind them */
    ship_to(&pair, do_changes(pair.primary.store, change, GONE));
    ck_assert_int_eq(store_drain_batches(pair.replica.store), 0);
    ck_assert_uint_gt(figures(&pair.replica, pairs).counting, 0);
    ck_assert_int_eq(rig_seal_all(&pair.replica), 0);
    lead(&pair, pairs, (uint64_t)(RECORDS - GONE) * EACH + 1);
    for (unsigned i = 0; i < GONE * EACH; i++) {
        (void)get_cell(pair.replica.store, &key[i], &value);
        EXPECT(value == 0, "pair %u is there", i);
    }
    pair_fini(&pair);
}
END_TEST

int
main(void)
{
    enum { WORLDS = 3 };
    TCase *tcase = tcase_create("applier");
    tcase_add_test(tcase, test_whole);
    tcase_add_test(tcase, test_not_whole);
    tcase_add_test(tcase, test_refused);
    tcase_add_test(tcase, test_unknown);
    tcase_add_test(tcase, test_promoted);
    tcase_add_test(tcase, test_leads_again);
    /* Memory and a queue that are filled take TSan a minute each. */
    if (!SANITIZER_THREAD || tests_are_long()) {
        tcase_add_test(tcase, test_room);
        tcase_add_test(tcase, test_full);
    }
    tcase_add_loop_test(tcase, test_random, 0, WORLDS);
    return run_case("applier", tcase);
}

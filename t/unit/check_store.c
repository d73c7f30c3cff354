/* SPDX-License-Identifier: BSD-3-Clause */
/* store/store: batches over shards, changes in order, schema edits in order
 * and while everybody reads, and nothing of what was dropped coming back. The
 * keeper's own guarantees are in check_keeper.c. */
#include "store/store.h"

#include "lib/fault_alloc.h"
#include "lib/store_item.h"
#include "store/store_life.h"
#include "unit/steps_help.h"
#include "unit/store_help.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static const char *const weibo[] = {"add counter weibo",
    "add column weibo weibo_id primarykey",
    "add column weibo a max=64 suffix=cma",
    "add column weibo b max=64 default=7 suffix=cmb"};

static struct store *
weibo_store(unsigned shards)
{
    struct store_config config = {.shards = shards,
        .hot_bytes = SMALL_STORE_HOT_BYTES,
        .items = {.limit_bytes = SMALL_STORE_BYTES,
            .item_bytes_max = SMALL_STORE_ITEM_BYTES,
            .seed = SMALL_STORE_SEED}};
    struct store *store;
    ck_assert_int_eq(store_create(&config, &store), 0);
    edit_all(store, weibo, COUNT_OF(weibo));
    return store;
}

static void
finish(struct store **store)
{
    store_verify(*store);
    store_destroy(store);
    ck_assert_ptr_null(*store);
}

static struct cell_key
cell(struct store *store, uint64_t id, const char *name)
{
    return cell_of(quiet_schema(store), id, name);
}

/* Sets column a of ids 0..n-1 to id + 1, in batches. */
static void
fill(struct store *store, uint64_t n)
{
    enum { BATCH = 100 };
    struct change change[BATCH];
    for (uint64_t id = 0; id < n;) {
        uint32_t k = 0;
        for (; k < BATCH && id < n; k++, id++) {
            struct cell_key key = cell(store, id, "a");
            change[k] = change_of(&key, CHANGE_SET, id + 1);
        }
        do_changes(store, change, k);
        for (uint32_t i = 0; i < k; i++) {
            ck_assert_int_eq(change[i].err, 0);
            ck_assert_uint_eq(change[i].value[0], change[i].id + 1);
        }
    }
}

static void
never_later(struct store_call *call)
{
    (void)call;
    ck_abort_msg("answered twice");
}

/* A batch of n keys of random ids and both columns, answered in its places. */
static void
expect_batch(struct store *store, uint64_t ids, uint32_t n, uint64_t *random)
{
    struct store_get get = {.call = {.done_fn = never_later}, .n = n};
    struct qsbr_reader reader;
    for (uint32_t i = 0; i < n; i++) {
        /* every third id has no record */
        uint64_t id = random_below(random, ids + ids / 2);
        get.key[i] = cell(store, id, random_below(random, 2) ? "a" : "b");
        get.state[i] = 99;
    }
    reader_begin(store, &reader);
    ck_assert_int_eq(store_get(store, &get), STORE_DONE);
    reader_end(store, &reader);
    struct cell_key a = cell(store, 0, "a");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t id = get.key[i].id;
        bool is_a = get.key[i].column == a.column;
        bool is_set = is_a && id < ids;
        ck_assert_int_eq(get.state[i], is_set ? CELL_SET : CELL_DEFAULT);
        ck_assert_uint_eq(get.value[i], is_set ? id + 1 : is_a ? 0 : 7);
    }
}

/* The sum over the shards, each asked for itself. */
static uint64_t
records_of(struct store *store, unsigned counter_slot, unsigned shards)
{
    struct engine_sum sum = {0};
    for (unsigned i = 0; i < shards; i++) {
        store_tables(store, counter_slot, (int)i, &sum);
    }
    return sum.records;
}

START_TEST(test_batches)
{
    static const unsigned shards[] = {1, 2, 16, 4096};
    enum { IDS = 2000 };
    uint64_t random = 1;
    for (size_t i = 0; i < COUNT_OF(shards); i++) {
        struct store *store = weibo_store(shards[i]);
        fill(store, IDS);
        for (int round = 0; round < 50; round++) {
            expect_batch(store, IDS,
                (uint32_t)random_below(&random, STORE_GET_MAX + 1), &random);
        }
        expect_batch(store, IDS, 0, &random);
        expect_batch(store, IDS, 1, &random);
        expect_batch(store, IDS, STORE_GET_MAX, &random);
        struct store_sum sum = store_sum(store, cell(store, 0, "a").counter);
        ck_assert_uint_eq(sum.records, IDS);
        /* 20 bits of a record's place and up to 11 of its number */
        ck_assert_uint_ge(sum.bytes, IDS * 3);
        ck_assert_uint_eq(
            records_of(store, cell(store, 0, "a").counter, shards[i]), IDS);
        ck_assert_uint_eq(store_sum(store, 200).records, 0);
        ck_assert_uint_eq(store_sum(store, 200).bytes, 0);
        finish(&store);
    }
}
END_TEST

/* Changes of one batch are done in order, each for itself. */
START_TEST(test_changes_in_order)
{
    struct store *store = weibo_store(16);
    struct cell_key a = cell(store, 5, "a");
    struct cell_key b = cell(store, 5, "b");
    struct cell_key far = cell(store, UINT64_MAX, "b");
    struct cell_key gone = a;
    gone.serial += 1000;
    const struct {
        struct change change;
        int err;
        uint64_t value;
    } rows[] = {
        {change_of(&a, CHANGE_SET, 5), 0, 5},
        {change_of(&a, CHANGE_INCR, 3), 0, 8},
        {change_of(&a, CHANGE_ADD, 1), ERR_NOT_STORED, 0},
        {change_of(&gone, CHANGE_SET, 1), ERR_GONE, 0},
        {change_of(&b, CHANGE_DECR, 8), 0, 0},
        {change_of(&far, CHANGE_INCR, 1), 0, 8},
        {change_of(&a, CHANGE_DECR, 1), 0, 7},
        {change_of(&b, CHANGE_DELETE, 0), 0, 7},
        {change_of(&b, CHANGE_DELETE, 0), ERR_NOT_FOUND, 0},
        {change_of(&a, CHANGE_DELETE, 0), 0, 0},
        {change_of(&a, CHANGE_REPLACE, 4), ERR_NOT_STORED, 0},
    };
    struct change change[COUNT_OF(rows)];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        change[i] = rows[i].change;
    }
    do_changes(store, change, COUNT_OF(rows));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ck_assert_int_eq(change[i].err, rows[i].err);
        if (rows[i].err == 0) {
            ck_assert_uint_eq(change[i].value[0], rows[i].value);
        }
    }
    expect_cell(store, &a, CELL_DEFAULT, 0);
    expect_cell(store, &far, CELL_SET, 8);
    finish(&store);
}
END_TEST

/* Columns of one record that stand side by side are read at one moment, among
 * whatever else the batch has, and what is a source before all of them. */
struct pair {
    struct store *store;
    struct cell_key a, b;
    atomic_bool done;
};

enum { PAIR_ROUNDS = 20000 };

static void *
write_pairs(void *arg)
{
    struct pair *pair = arg;
    for (uint64_t i = 1; i <= PAIR_ROUNDS; i++) {
        struct change change = {.id = pair->a.id,
            .op = CHANGE_SET,
            .counter = pair->a.counter,
            .n_columns = 2,
            .column = {pair->a.column, pair->b.column},
            .serial = {pair->a.serial, pair->b.serial},
            .operand = {i, i}};
        do_changes(pair->store, &change, 1);
        ck_assert_int_eq(change.err, 0);
    }
    atomic_store(&pair->done, true);
    return NULL;
}

START_TEST(test_records_are_whole)
{
    enum { OTHERS = 10 };
    struct store *store = weibo_store(2);
    struct pair pair = {
        .store = store, .a = cell(store, 1, "a"), .b = cell(store, 1, "b")};
    pthread_t writer;
    struct qsbr_reader reader;
    struct store_get get = {.call = {.done_fn = never_later}};
    for (uint64_t i = 0; i < OTHERS; i++) {
        get.key[get.n++] = cell(store, 100 + i, "a");
        get.key[get.n++] = pair.a;
        get.key[get.n++] = pair.b;
    }
    for (; get.n_sources < OTHERS; get.n_sources++) {
        get.key[STORE_GET_MAX + get.n_sources] =
            get.n_sources % 2 == 0 ? pair.a : pair.b;
    }
    /* as write_pairs begins: they are equal, and never go down */
    ck_assert_int_eq(change_cell(store, &pair.a, CHANGE_SET, 1), 0);
    ck_assert_int_eq(change_cell(store, &pair.b, CHANGE_SET, 1), 0);
    ck_assert_int_eq(pthread_create(&writer, NULL, write_pairs, &pair), 0);
    reader_begin(store, &reader);
    while (!atomic_load(&pair.done)) {
        qsbr_online(store->qsbr, &reader);
        ck_assert_int_eq(store_get(store, &get), STORE_DONE);
        for (uint32_t i = 1; i < get.n; i += 3) {
            ck_assert_uint_eq(get.value[i], get.value[i + 1]);
        }
        for (uint32_t i = 0; i < get.n_sources; i++) {
            ck_assert_int_le(get.state[STORE_GET_MAX + i], CELL_SET);
            ck_assert_uint_le(get.value[STORE_GET_MAX + i], get.value[1]);
        }
    }
    reader_end(store, &reader);
    pthread_join(writer, NULL);
    finish(&store);
}
END_TEST

/* Edits on their way, and the order in which they were answered. */
enum { EDITS = 120 };

struct edits {
    struct store *store;
    struct store_edit edit[EDITS];
    unsigned answers[EDITS];
    unsigned order[EDITS];
    unsigned n; /* the keeper's thread, then ours */
    sem_t all;
};

static void
note_edit(struct store_call *call)
{
    struct edits *edits = call->owner;
    struct store_edit *edit = (struct store_edit *)call;
    unsigned i = (unsigned)(edit - edits->edit);
    edits->answers[i]++;
    edits->order[edits->n++] = i;
    /* what it made is there before it is answered: this is the one thread
     * that could take it away again */
    const struct schema_name *name = &edit->edit.counter.name;
    bool is_there = schema_counter(store_schema(edits->store), name->text,
                        name->len) != NULL;
    ck_assert_int_eq(edit->err, 0);
    ck_assert_int_eq(is_there, edit->edit.op == SCHEMA_ADD_COUNTER);
    if (edits->n == EDITS) {
        ck_assert_int_eq(sem_post(&edits->all), 0);
    }
}

static void
queue_edits(struct edits *edits)
{
    ck_assert_int_eq(sem_init(&edits->all, 0, 0), 0);
    for (unsigned i = 0; i < EDITS; i++) {
        char line[64];
        unsigned k = i / 2 % 7;
        snprintf(line, sizeof line,
            i % 2 == 0 ? "add counter c%u" : "drop counter c%u c%u", k, k);
        edits->edit[i] =
            (struct store_edit){.call = {.done_fn = note_edit, .owner = edits},
                .edit = edit_of(line),
                .err = -1};
        ck_assert_int_eq(
            store_edit(edits->store, &edits->edit[i]), STORE_LATER);
    }
}

static void
expect_edits(struct edits *edits)
{
    ck_assert_uint_eq(edits->n, EDITS);
    for (unsigned i = 0; i < EDITS; i++) {
        ck_assert_uint_eq(edits->answers[i], 1);
        ck_assert_uint_eq(edits->order[i], i);
    }
    sem_destroy(&edits->all);
}

START_TEST(test_edits_in_order)
{
    struct edits edits = {.store = small_store(NULL)};
    queue_edits(&edits);
    while (sem_wait(&edits.all) != 0) {
    }
    expect_edits(&edits);
    finish(&edits.store);
}
END_TEST

/* Destroying the store finishes what is queued. */
START_TEST(test_destroy_finishes_edits)
{
    struct edits edits = {.store = small_store(NULL)};
    queue_edits(&edits);
    store_destroy(&edits.store);
    expect_edits(&edits);
}
END_TEST

START_TEST(test_dropped_stays_dropped)
{
    struct store *store = weibo_store(4);
    struct cell_key a = cell(store, 1, "a");
    struct cell_key b = cell(store, 1, "b");
    struct cell_key now;
    uint64_t value;
    ck_assert_int_eq(change_cell(store, &a, CHANGE_SET, 11), 0);
    ck_assert_int_eq(change_cell(store, &b, CHANGE_SET, 22), 0);
    /* a column: the other keeps its number */
    ck_assert_int_eq(edit(store, "drop column weibo a a"), 0);
    ck_assert_int_eq(get_cell(store, &a, &value), CELL_GONE);
    ck_assert_int_eq(change_cell(store, &a, CHANGE_SET, 99), ERR_GONE);
    ck_assert_int_eq(edit(store, weibo[2]), 0);
    now = cell(store, 1, "a");
    ck_assert_uint_gt(now.serial, b.serial);
    expect_cell(store, &now, CELL_DEFAULT, 0);
    expect_cell(store, &b, CELL_SET, 22);
    ck_assert_int_eq(change_cell(store, &a, CHANGE_SET, 99), ERR_GONE);
    ck_assert_int_eq(get_cell(store, &a, &value), CELL_GONE);
    expect_cell(store, &now, CELL_DEFAULT, 0);
    /* the counter */
    ck_assert_int_eq(change_cell(store, &now, CHANGE_SET, 33), 0);
    ck_assert_int_eq(edit(store, "drop counter weibo weibo"), 0);
    struct engine_sum sum = {0};
    store_tables(store, b.counter, -1, &sum);
    ck_assert_uint_eq(sum.records, 0);
    ck_assert_uint_eq(sum.tables, 0);
    ck_assert_uint_eq(sum.line_bytes + sum.stash_bytes, 0);
    ck_assert_int_eq(change_cell(store, &b, CHANGE_INCR, 1), ERR_GONE);
    edit_all(store, weibo, COUNT_OF(weibo));
    ck_assert_int_eq(change_cell(store, &b, CHANGE_INCR, 1), ERR_GONE);
    ck_assert_int_eq(change_cell(store, &now, CHANGE_INCR, 1), ERR_GONE);
    now = cell(store, 1, "a");
    expect_cell(store, &now, CELL_DEFAULT, 0);
    now = cell(store, 1, "b");
    expect_cell(store, &now, CELL_DEFAULT, 7);
    finish(&store);
}
END_TEST

START_TEST(test_name_is_item)
{
    struct store *store = small_store(NULL);
    struct items_store item = {.op = ITEMS_SET,
        .key = "weibo",
        .key_len = 5,
        .value = "x",
        .value_len = 1};
    uint64_t now_s = 1;
    ck_assert_int_eq(store_item(store->items, &item, now_s, NULL), 0);
    ck_assert_int_eq(edit(store, weibo[0]), ERR_NAME_IS_ITEM);
    ck_assert_int_eq(edit(store, weibo[0]), ERR_NAME_IS_ITEM);
    ck_assert_int_eq(edit(store, "add counter other"), 0);
    /* columns are no keys by themselves */
    item.key = "a";
    item.key_len = 1;
    ck_assert_int_eq(store_item(store->items, &item, now_s, NULL), 0);
    ck_assert_int_eq(edit(store, "add column other id primarykey"), 0);
    ck_assert_int_eq(edit(store, "add column other a"), 0);
    ck_assert_int_eq(items_delete(store->items, "weibo", 5, NULL, now_s), 0);
    ck_assert_int_eq(edit(store, weibo[0]), 0);
    finish(&store);
}
END_TEST

START_TEST(test_same_is_fine)
{
    struct store *store = weibo_store(1);
    uint64_t version = schema_version(quiet_schema(store));
    for (size_t i = 0; i < COUNT_OF(weibo); i++) {
        ck_assert_int_eq(edit(store, weibo[i]), 0);
    }
    ck_assert_int_eq(
        edit(store, "add column weibo a max=63 suffix=cma"), ERR_NAME_TAKEN);
    ck_assert_int_eq(
        edit(store, "add counter weibo absent=miss"), ERR_NAME_TAKEN);
    ck_assert_uint_eq(schema_version(quiet_schema(store)), version);
    finish(&store);
}
END_TEST

START_TEST(test_edit_errors)
{
    struct store *store = weibo_store(1);
    uint64_t version = schema_version(quiet_schema(store));
    ck_assert_int_eq(edit(store, "add column nosuch c"), ERR_NO_COUNTER);
    ck_assert_int_eq(edit(store, "drop counter no no"), ERR_NO_COUNTER);
    ck_assert_int_eq(edit(store, "drop column weibo c c"), ERR_NO_COLUMN);
    ck_assert_int_eq(
        edit(store, "drop column weibo weibo_id weibo_id"), ERR_DROP_KEY);
    ck_assert_uint_eq(schema_version(quiet_schema(store)), version);
    finish(&store);
}
END_TEST

/* Readers walk whatever schema they find, read and count, while counters and
 * columns come and go. What they have counted in a column that stays is all
 * there at the end. */
struct reader {
    struct store *store;
    pthread_t thread;
    atomic_bool *done;
    uint64_t counted;
};

/* One round as an online reader. */
static void
read_all(struct reader *reader)
{
    struct store_get get = {.call = {.done_fn = never_later}};
    const struct schema *schema = store_schema(reader->store);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
            if (get.n < STORE_GET_MAX) {
                get.key[get.n++] = (struct cell_key){.id = 1,
                    .serial = counter->column[i].serial,
                    .counter = counter->slot,
                    .column = counter->column[i].slot};
            }
        }
    }
    /* what this schema names cannot be gone before we are quiescent, and a
     * column that only just came is known to the shards */
    ck_assert_int_eq(store_get(reader->store, &get), STORE_DONE);
    for (uint32_t i = 0; i < get.n; i++) {
        ck_assert_int_ne(get.state[i], CELL_GONE);
    }
    struct cell_key a = cell_of(schema, 1, "a");
    ck_assert_int_eq(change_cell(reader->store, &a, CHANGE_INCR, 1), 0);
    reader->counted++;
}

static void *
run_reader(void *arg)
{
    struct reader *reader = arg;
    struct qsbr_reader epoch;
    qsbr_register(reader->store->qsbr, &epoch);
    while (!atomic_load(reader->done)) {
        qsbr_online(reader->store->qsbr, &epoch);
        read_all(reader);
        qsbr_offline(&epoch);
        /* its core is better lost here, where nobody waits for it */
        sched_yield();
    }
    qsbr_unregister(reader->store->qsbr, &epoch);
    return NULL;
}

static void
edit_a_lot(struct store *store)
{
    enum { ROUNDS = 50 };
    static const char *const lines[] = {"add column weibo c max=8",
        "add counter other", "add column other other_id primarykey",
        "add column other d default=9", "drop column weibo c c",
        "add column other e", "drop column other d d",
        "drop counter other other"};
    for (int round = 0; round < ROUNDS; round++) {
        edit_all(store, lines, COUNT_OF(lines));
    }
}

START_TEST(test_edits_while_reading)
{
    enum { READERS = 3 };
    struct store *store = weibo_store(4);
    struct reader reader[READERS];
    atomic_bool done;
    uint64_t counted = 0;
    atomic_init(&done, false);
    for (int i = 0; i < READERS; i++) {
        reader[i] = (struct reader){.store = store, .done = &done};
        ck_assert_int_eq(
            pthread_create(&reader[i].thread, NULL, run_reader, &reader[i]),
            0);
    }
    edit_a_lot(store);
    atomic_store(&done, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(reader[i].thread, NULL);
        counted += reader[i].counted;
    }
    struct cell_key a = cell(store, 1, "a");
    expect_cell(store, &a, counted > 0 ? CELL_SET : CELL_DEFAULT, counted);
    finish(&store);
}
END_TEST

/* Fails each allocation of the items in turn. */
START_TEST(test_create_out_of_memory)
{
    struct fault_alloc fault;
    struct store_config config = {.shards = 2,
        .hot_bytes = SMALL_STORE_HOT_BYTES,
        .items = {.limit_bytes = SMALL_STORE_BYTES,
            .item_bytes_max = SMALL_STORE_ITEM_BYTES,
            .seed = SMALL_STORE_SEED,
            .alloc = &fault.alloc}};
    struct store *store;
    int failures = 0;
    fault_alloc_init(&fault);
    for (size_t n = 1;; n++) {
        fault.fail_from = fault.calls + n;
        fault.fail_to = fault.fail_from;
        int err = store_create(&config, &store);
        if (err == 0) {
            break;
        }
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        ck_assert_uint_eq(fault.live_bytes, 0);
        failures++;
    }
    ck_assert_int_gt(failures, 0);
    finish(&store);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

/* The last figure that was told. */
struct stat_text {
    char name[32], value[64];
};

static void
note_stat(void *context, const char *name, const char *value)
{
    struct stat_text *stat = context;
    (void)snprintf(stat->name, sizeof stat->name, "%s", name);
    (void)snprintf(stat->value, sizeof stat->value, "%s", value);
}

/* Without a data directory there is nothing to write to, and it says so. */
START_TEST(test_memory_only)
{
    struct store *store = weibo_store(2);
    struct store_checkpoint checkpoint = {.call = {.done_fn = never_later}};
    struct store_seal seal = {.call = {.done_fn = never_later}};
    struct stat_text stat = {"", ""};
    ck_assert_int_eq(store_checkpoint(store, &checkpoint), STORE_DONE);
    ck_assert_int_eq(checkpoint.err, ERR_NO_DATA_DIR);
    ck_assert_int_eq(store_seal(store, &seal), STORE_DONE);
    ck_assert_int_eq(seal.err, ERR_NO_DATA_DIR);
    store_data_stats(store, note_stat, &stat);
    ck_assert_str_eq(stat.name, "state");
    ck_assert_str_eq(stat.value, "memory only");
    store_cold_stats(store, note_stat, &stat);
    ck_assert_str_eq(stat.name, "state");
    ck_assert_str_eq(stat.value, "none");
    finish(&store);
}
END_TEST

/* How wide numbers are: id + 1 in a, nothing in b. So few records are all
 * looked at. */
START_TEST(test_widths)
{
    enum { IDS = 15, SHARDS = 2 };
    static uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS];
    struct store *store = weibo_store(SHARDS);
    uint64_t garbage_bytes = UINT64_MAX;
    struct engine_sum sum = {0};
    fill(store, IDS);
    struct cell_key a = cell(store, 0, "a"), b = cell(store, 0, "b");
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        unsigned n_left = UINT_MAX;
        size_t at = 0;
        ck_assert(
            store_survey(store, a.counter, shard, &at, &n_left, &sum, width));
    }
    ck_assert_uint_eq(sum.records, IDS);
    static const uint64_t of_a[] = {0, 1, 2, 4, 8, 0};
    for (unsigned bits = 0; bits < COUNT_OF(of_a); bits++) {
        ck_assert_uint_eq(width[a.column][bits], of_a[bits]);
    }
    ck_assert_uint_eq(width[b.column][0], IDS);
    ck_assert_uint_gt(store_hot_bytes(store, &garbage_bytes), 0);
    ck_assert_uint_lt(garbage_bytes, UINT64_MAX);
    finish(&store);
}
END_TEST

static void
take_step(struct step it)
{
    _Atomic int life = (int)it.from;
    store_life_move(&life, (enum store_life)it.to);
}

/* Of each two states: whether the one may follow the other. */
START_TEST(test_life)
{
    enum { N = STORE_ENDING + 1 };
    static const bool is_legal[N][N] = {
        [STORE_LOADING] = {[STORE_OPEN] = true, [STORE_ENDING] = true},
        [STORE_OPEN] = {[STORE_ENDING] = true},
        [STORE_ENDING] = {false},
    };
    expect_steps(take_step, &is_legal[0][0], N);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_batches, test_changes_in_order,
        test_records_are_whole, test_edits_in_order,
        test_destroy_finishes_edits, test_dropped_stays_dropped,
        test_name_is_item, test_same_is_fine, test_edit_errors,
        test_edits_while_reading, test_create_out_of_memory, test_memory_only,
        test_widths, test_life};
    return run_tests("store", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* store/applier: a replica has the names that its primary has, with the same
 * ids, while names come and go and numbers are given again, beside readers and
 * checkpoints, through crashes, and as the next primary. */
#include "engine/marks.h"
#include "names/names.h"
#include "store/store_real.h"
#include "unit/applier_help.h"

#include <stdio.h>

enum { ROUNDS = 60, NAMES = 400, CHANGES = 40 };

struct model {
    struct pair pair;
    struct cell_key key;
    uint64_t random;
    uint64_t value[NAMES];
};

static size_t
name_of(unsigned i, char *out)
{
    return (size_t)snprintf(
        out, NAME_BYTES_MAX, "https://example.org/%u/index.html", i);
}

static struct names_ask
ask_for(struct rig *rig, unsigned i)
{
    char bytes[NAME_BYTES_MAX];
    struct names_ask ask = {.bytes = bytes, .len = name_of(i, bytes)};
    struct qsbr_reader reader;
    reader_begin(rig->store, &reader);
    names_find(rig->store->names, &ask, 1);
    reader_end(rig->store, &reader);
    return ask;
}

struct gone {
    const struct model *model;
    struct real_store *real;
    uint64_t id;
    uint32_t number;
};

static void
drop_held(void *context, unsigned shard)
{
    struct gone *gone = context;
    struct cell_key key = gone->model->key;
    uint64_t value;
    uint8_t state;
    key.id = gone->id;
    engine_get(gone->real->engine, &key, 1, &value, &state);
    if (state == CELL_DEFAULT) {
        (void)names_drop(gone->real->store.names, shard, gone->number);
    }
}

static void
drop(struct model *model, struct rig *rig, uint64_t id)
{
    struct real_store *real = (struct real_store *)rig->store;
    struct gone gone = {.model = model, .real = real, .id = id};
    struct qsbr_reader reader;
    unsigned shard;
    uint64_t row;
    engine_row(real->engine, id, &shard, &row);
    reader_begin(rig->store, &reader);
    if (own_id_number_of(row,
            (unsigned)__builtin_ctz(real->durable.manifest.shards),
            &gone.number)) {
        engine_hold(real->engine, shard, drop_held, &gone);
    }
    reader_end(rig->store, &reader);
}

/* Adds to a name, or takes it and its record out, at whoever is primary. */
static void
change(struct model *model, struct rig *rig, unsigned i, bool goes)
{
    char bytes[NAME_BYTES_MAX];
    struct engine_name name = {bytes, (uint8_t)name_of(i, bytes)};
    struct change change = {.id = ask_for(rig, i).id,
        .op = goes ? CHANGE_DELETE : CHANGE_INCR,
        .counter = model->key.counter,
        .n_columns = 1,
        .column = {model->key.column},
        .serial = {model->key.serial},
        .operand = {goes ? 0 : 1 + i},
        .name = &name};
    struct store_change call = {.n = 1, .change = &change};
    struct qsbr_reader reader;
    reader_begin(rig->store, &reader);
    ck_assert_int_eq(store_change(rig->store, &call), STORE_DONE);
    reader_end(rig->store, &reader);
    if (change.err != 0) {
        ck_assert_int_eq(change.err, ERR_NOT_FOUND);
    } else {
        model->value[i] = goes ? 0 : model->value[i] + 1 + i;
        ck_assert_int_eq(rig_commit(rig, call.seq), STORE_COMMITTED);
    }
    if (goes) {
        drop(model, rig, change.id);
    }
}

static void
work(struct model *model, struct rig *rig)
{
    for (unsigned n = 0; n < CHANGES; n++) {
        change(model, rig, (unsigned)random_below(&model->random, NAMES),
            random_below(&model->random, 3) == 0);
    }
}

static void
expect_all(const struct model *model, struct rig *rig)
{
    for (unsigned i = 0; i < NAMES; i++) {
        struct cell_key key = model->key;
        struct names_ask ask = ask_for(rig, i);
        uint64_t value;
        key.id = ask.id;
        (void)get_cell(rig->store, &key, &value);
        EXPECT(value == model->value[i], "name %u is %llu", i,
            (unsigned long long)value);
        EXPECT(value == 0 || ask.found, "name %u has no id", i);
    }
}

static void
expect_same(struct model *model)
{
    for (unsigned i = 0; i < NAMES; i++) {
        struct names_ask a = ask_for(&model->pair.primary, i);
        struct names_ask b = ask_for(&model->pair.replica, i);
        EXPECT(a.found == b.found && a.id == b.id, "name %u", i);
    }
    expect_all(model, &model->pair.primary);
    expect_all(model, &model->pair.replica);
}

static void
begin(struct model *model)
{
    static const char *const lines[] = {"add counter page",
        "add column page url primarykey=text", "add column page views max=48"};
    memset(model, 0, sizeof *model);
    model->random = 7;
    pair_init(&model->pair, 3, true);
    edit_all(model->pair.primary.store, lines, COUNT_OF(lines));
    catch_up(&model->pair);
    const struct schema_counter *counter =
        schema_counter_at(quiet_schema(model->pair.primary.store), 0);
    ck_assert_ptr_nonnull(counter);
    model->key = (struct cell_key){.counter = counter->slot,
        .column = counter->column[0].slot,
        .serial = counter->column[0].serial};
}

START_TEST(test_naming)
{
    static struct model model;
    struct pair *pair = &model.pair;
    struct rig *replica = &pair->replica;
    begin(&model);
    for (unsigned round = 0; round < ROUNDS; round++) {
        work(&model, &pair->primary);
        if (round % 4 == 0) {
            ship(pair);
        }
        if (round % 15 == 7) {
            catch_up(pair);
            expect_same(&model);
            ck_assert_int_eq(rig_checkpoint(replica), 0);
        }
        if (round % 20 == 19) {
            catch_up(pair);
            fake_disk_die(replica->fake, 1);
            (void)rig_close(replica);
            fake_disk_revive(replica->fake);
            open_replicated(replica);
            pair->shipped = store_applied(replica->store);
        }
    }
    catch_up(pair);
    expect_same(&model);
    (void)begin_term(replica, "b");
    for (unsigned round = 0; round < ROUNDS / 2; round++) {
        work(&model, replica);
    }
    expect_all(&model, replica);
    pair_fini(pair);
}
END_TEST

/* A number is given again only when no reader of the replica may have it. */
START_TEST(test_readers)
{
    static struct model model;
    struct pair *pair = &model.pair;
    struct rig *replica = &pair->replica;
    struct qsbr_reader reader;
    unsigned other = 0;
    begin(&model);
    change(&model, &pair->primary, 0, false);
    catch_up(pair);
    uint64_t id = ask_for(replica, 0).id;
    qsbr_register(replica->store->qsbr, &reader);
    qsbr_online(replica->store->qsbr, &reader);
    change(&model, &pair->primary, 0, true);
    while (ask_for(&pair->primary, other).id != id) {
        other++;
        ck_assert_uint_lt(other, NAMES);
        change(&model, &pair->primary, other, false);
    }
    ship(pair);
    for (unsigned i = 0; i < 100; i++) {
        char name[NAME_ROOM_BYTES], first[NAME_BYTES_MAX];
        size_t len = names_name(replica->store->names, id, name);
        ck_assert(len == 0 ||
            (len == name_of(0, first) && memcmp(name, first, len) == 0));
        sched_yield();
    }
    qsbr_offline(&reader);
    qsbr_unregister(replica->store->qsbr, &reader);
    catch_up(pair);
    ck_assert_uint_eq(ask_for(replica, other).id, id);
    expect_same(&model);
    pair_fini(pair);
}
END_TEST

static unsigned
shard_of(const struct pair *pair, uint64_t id)
{
    const struct real_store *real =
        (const struct real_store *)pair->primary.store;
    unsigned shard;
    uint64_t row;
    engine_row(real->engine, id, &shard, &row);
    return shard;
}

static void
expect_told(struct rig *rig, uint64_t dropped, uint64_t rounds)
{
    ck_assert_uint_eq(*rig->store->names_dropped, dropped);
    ck_assert_uint_eq(*rig->store->names_rounds, rounds);
}

/* Gets that wait for the disk are told of names that go, and of rounds: a
 * number that goes once more is of another one. */
static void
expect_told_of_rounds(struct model *model, unsigned other)
{
    struct pair *pair = &model->pair;
    expect_told(&pair->replica, 0, 0);
    change(model, &pair->primary, 0, true);
    catch_up(pair);
    expect_told(&pair->replica, 1, 0);
    change(model, &pair->primary, other, false);
    catch_up(pair);
    expect_told(&pair->replica, 1, 0);
    change(model, &pair->primary, other, true);
    catch_up(pair);
    expect_told(&pair->replica, 2, 2);
}

START_TEST(test_told)
{
    static struct model model;
    struct pair *pair = &model.pair;
    unsigned other = 0;
    begin(&model);
    change(&model, &pair->primary, 0, false);
    catch_up(pair);
    uint64_t id = ask_for(&pair->primary, 0).id;
    /* another one that gets its number when it is gone */
    do {
        other++;
        ck_assert_uint_lt(other, NAMES);
    } while (shard_of(pair, ask_for(&pair->primary, other).id) !=
        shard_of(pair, id));
    expect_told_of_rounds(&model, other);
    expect_same(&model);
    pair_fini(pair);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_naming, test_readers, test_told};
    return run_tests("applier_naming", tests, COUNT_OF(tests));
}

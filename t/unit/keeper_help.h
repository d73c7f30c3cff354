/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_KEEPER_HELP_H
#define UNIT_KEEPER_HELP_H

/* What the tests of store/keeper share: an engine and a schema of a test's own,
 * edits of it, and what the engine knows of it. */

#include "base/clock.h"
#include "lib/fault_alloc.h"
#include "lib/store_item.h"
#include "schema/restore.h"
#include "store/keeper.h"
#include "unit/store_help.h"

/* IDS ids in a row have several in every shard. */
enum { SHARDS = 4, IDS = 16 };

/* What a store is to its keeper. Its engine and its schemas take their memory
 * from fault, which is the keeper's thread's while an edit is under way and
 * the test's otherwise. */
struct rig {
    struct fault_alloc fault;
    struct qsbr qsbr;
    _Atomic(const struct schema *) schema;
    _Atomic(const struct moved *) moved;
    struct store store;
    struct engine *engine;
    struct keeper keeper;
};

static inline void
rig_init(struct rig *rig)
{
    struct items_config items = {.limit_bytes = SMALL_STORE_BYTES,
        .item_bytes_max = SMALL_STORE_ITEM_BYTES,
        .seed = SMALL_STORE_SEED};
    struct engine_config engine = {.shards = SHARDS,
        .seed = SMALL_STORE_SEED,
        .hot_bytes = SMALL_STORE_HOT_BYTES,
        .qsbr = &rig->qsbr,
        .alloc = &rig->fault.alloc};
    fault_alloc_init(&rig->fault);
    qsbr_init(&rig->qsbr);
    atomic_init(&rig->schema, schema_create_from(&rig->fault.alloc));
    ck_assert_ptr_nonnull(atomic_load(&rig->schema));
    rig->store = (struct store){.items = items_create(&items),
        .qsbr = &rig->qsbr,
        .schema = &rig->schema,
        .moved = &rig->moved};
    ck_assert_ptr_nonnull(rig->store.items);
    ck_assert_int_eq(engine_create(&engine, &rig->engine), 0);
    rig->keeper = (struct keeper){.store = &rig->store, .engine = rig->engine};
    ck_assert_int_eq(keeper_start(&rig->keeper), 0);
}

static inline void
rig_fini(struct rig *rig)
{
    struct schema *schema;
    keeper_stop(&rig->keeper);
    schema = (struct schema *)atomic_load(&rig->schema);
    schema_destroy(&schema);
    engine_verify(rig->engine);
    engine_destroy(&rig->engine);
    items_destroy(&rig->store.items);
    qsbr_fini(&rig->qsbr);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
}

/* An edit under way. */
struct pending {
    struct store_edit edit;
    struct answer answer;
};

static inline void
begin(struct rig *rig, struct pending *pending, const char *line)
{
    answer_init(&pending->answer);
    pending->edit = (struct store_edit){
        .call = call_of(&pending->answer), .edit = edit_of(line), .err = -1};
    keeper_add(&rig->keeper, &pending->edit);
}

static inline int
end(struct pending *pending)
{
    answer_wait(&pending->answer);
    ck_assert_uint_eq(atomic_load(&pending->answer.n), 1);
    answer_fini(&pending->answer);
    return pending->edit.err;
}

static inline int
edit_now(struct rig *rig, const char *line)
{
    struct pending pending;
    begin(rig, &pending, line);
    return end(&pending);
}

static inline struct cell_key
find(struct rig *rig, const char *name)
{
    return cell_of(atomic_load(&rig->schema), 1, name);
}

/* Does the same change to the cell of key's column of every id; each must be
 * answered so. */
static inline void
change_all(struct rig *rig, struct cell_key key, enum change_op op,
    uint64_t operand, int err)
{
    for (key.id = 0; key.id < IDS; key.id++) {
        struct change change = change_of(&key, op, operand);
        engine_change(rig->engine, &change, 1);
        ck_assert_int_eq(change.err, err);
    }
}

/* Reads the same cells; the calling thread is online. */
static inline void
expect_all(struct rig *rig, struct cell_key key, enum cell_state state,
    uint64_t value)
{
    for (key.id = 0; key.id < IDS; key.id++) {
        uint64_t found = ~value;
        uint8_t found_state = UINT8_MAX;
        engine_get(rig->engine, &key, 1, &found, &found_state);
        ck_assert_int_eq(found_state, state);
        ck_assert_uint_eq(found, value);
    }
}

/* The same, as a reader for just that. */
static inline void
expect_now(struct rig *rig, struct cell_key key, enum cell_state state,
    uint64_t value)
{
    struct qsbr_reader reader;
    reader_begin(&rig->store, &reader);
    expect_all(rig, key, state, value);
    reader_end(&rig->store, &reader);
}

/* Makes the n-th allocation from now on fail, and those up to the m-th. */
static inline void
arm(struct rig *rig, size_t n, size_t m)
{
    rig->fault.fail_from = rig->fault.calls + n;
    rig->fault.fail_to = rig->fault.calls + m;
}

static inline void
disarm(struct rig *rig)
{
    rig->fault.fail_from = 0;
    rig->fault.fail_to = 0;
}

/* n has values, c none; without columns of members. */
static inline void
declare_members(struct rig *rig)
{
    ck_assert_int_eq(edit_now(rig, "add counter w cold=never"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w id primarykey"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w n"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w c"), 0);
    change_all(rig, find(rig, "n"), CHANGE_SET, 7, 0);
}

#define ADD_MEMBERS "add column w m members=exact counts=c max=3"

/* The one column of the pairs of a column of members. */
static inline struct cell_key
pairs_of(struct rig *rig, const char *name)
{
    const struct schema *schema = atomic_load(&rig->schema);
    struct schema_target target;
    ck_assert(schema_find(schema, name, strlen(name), &target));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    ck_assert_ptr_nonnull(pairs);
    return (struct cell_key){
        .serial = pairs->column[0].serial, .counter = pairs->slot};
}

/* The engine has the counter of pairs where the schema has the column. */
static inline void
expect_members(struct rig *rig)
{
    struct cell_key pairs = pairs_of(rig, "m");
    expect_now(rig, find(rig, "m"), CELL_DEFAULT, 0);
    expect_now(rig, pairs, CELL_DEFAULT, 0);
    change_all(rig, pairs, CHANGE_SET, 7, 0);
    change_all(rig, pairs, CHANGE_SET, 8, ERR_OVER_MAX);
    expect_now(rig, pairs, CELL_SET, 7);
    expect_now(rig, find(rig, "n"), CELL_SET, 7);
}

#endif

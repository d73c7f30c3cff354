/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_MEMBER_HELP_H
#define UNIT_MEMBER_HELP_H

/* What the tests of members share: a counter with exact members, a column that
 * counts them and a number, and the counter of its pairs. */

#include "engine/members.h"
#include "lib/replica.h"
#include "unit/engine_help.h"

enum { POSTS = 3, PAIRS = 200, LIKED = 0, LIKES = 1, NUMBER = 2, COLUMNS = 3 };

struct rig {
    struct engine *engine;
    struct journal journal;
    unsigned shards, bits;
    uint32_t table_records; /* a table with more is split; 0: 64 */
    struct schema_counter def, pairs;
};

static inline void
rig_form(struct rig *rig, unsigned shards, unsigned bits, unsigned value_bits)
{
    memset(rig, 0, sizeof *rig);
    rig->shards = shards;
    rig->bits = bits;
    rig->def = plain_counter(POSTS, COLUMNS);
    rig->def.cold_is_never = true;
    struct schema_column *liked = &rig->def.column[LIKED];
    liked->kind = SCHEMA_MEMBERS;
    liked->max_bits = (uint8_t)(64 - bits);
    liked->hint_bits = 12;
    liked->counts = rig->def.column[LIKES].serial;
    liked->member_bits = (uint8_t)bits;
    liked->value_bits = (uint8_t)value_bits;
    liked->pairs = PAIRS;
    rig->def.column[LIKES].max_bits = 20;
    rig->pairs = plain_counter(PAIRS, 1);
    rig->pairs.members_of = liked->serial;
    rig->pairs.cold_is_never = true;
    rig->pairs.column[0].serial = 77;
    rig->pairs.column[0].max_bits = (uint8_t)value_bits;
    rig->pairs.column[0].hint_bits = (uint8_t)value_bits;
}

static inline void
rig_define(struct rig *rig)
{
    ck_assert_int_eq(engine_define(rig->engine, &rig->def), 0);
    ck_assert_int_eq(engine_define(rig->engine, &rig->pairs), 0);
}

/* With a journal as its sink. */
static inline void
rig_make(struct rig *rig, const struct alloc *alloc, struct qsbr *qsbr)
{
    struct engine_config config = {.shards = rig->shards,
        .seed = 3,
        .hot_bytes = ROOMY_BYTES,
        .alloc = alloc,
        .qsbr = qsbr,
        .table_records_max =
            rig->table_records == 0 ? 64 : rig->table_records};
    rig->engine = engine_of(&config);
    rig_define(rig);
    journal_init(&rig->journal);
    engine_set_sink(rig->engine, &rig->journal.sink);
}

static inline void
rig_init(struct rig *rig, unsigned shards, unsigned bits, unsigned value_bits)
{
    rig_form(rig, shards, bits, value_bits);
    rig_make(rig, NULL, NULL);
}

static inline void
rig_fini(struct rig *rig)
{
    finish_engine(&rig->engine);
    journal_fini(&rig->journal);
}

static inline struct change
member_of(const struct rig *rig, enum change_op op, uint64_t id,
    uint64_t member, uint64_t operand)
{
    struct change change = change_of(&rig->def, op, id, 1, operand);
    change.member = (struct change_member){.counter = PAIRS,
        .bits = (uint8_t)rig->bits,
        .counts_column = rig->def.column[LIKES].slot,
        .counts = true,
        .serial = rig->pairs.column[0].serial,
        .counts_serial = rig->def.column[LIKES].serial,
        .member = member,
        .step = 9};
    return change;
}

/* Does one; returns err. */
static inline int
change_member(struct rig *rig, enum change_op op, uint64_t id, uint64_t member,
    uint64_t operand)
{
    struct change change = member_of(rig, op, id, member, operand);
    engine_change(rig->engine, &change, 1);
    return change.err;
}

/* Of all members, as a key without a member does. */
static inline struct change
forget_of(const struct rig *rig, uint64_t id)
{
    return change_of(&rig->def, CHANGE_DELETE, id, 2, 0);
}

static inline uint64_t
cell_of(
    struct rig *rig, const struct schema_counter *def, unsigned i, uint64_t id)
{
    struct cell_key key = key_of(def, i, id);
    uint64_t value;
    uint8_t state;
    engine_get(rig->engine, &key, 1, &value, &state);
    ck_assert_int_ne(state, CELL_GONE);
    return value;
}

static inline uint64_t
number_of(struct rig *rig, uint64_t id)
{
    return cell_of(rig, &rig->def, LIKED, id);
}

static inline uint64_t
likes_of(struct rig *rig, uint64_t id)
{
    return cell_of(rig, &rig->def, LIKES, id);
}

static inline uint64_t
value_of(struct rig *rig, uint64_t id, uint64_t member)
{
    uint64_t number = number_of(rig, id);
    uint64_t pair = engine_pair(rig->engine, id, number, rig->bits, member);
    return cell_of(rig, &rig->pairs, 0, pair);
}

/* What a replay makes of what the sink was told; of no columns: nothing. */
static inline struct change
replayed(const struct rig *rig, const struct engine_write *write)
{
    bool is_pair = write->counter == PAIRS;
    const struct schema_counter *def = is_pair ? &rig->pairs : &rig->def;
    struct change change = change_of(def, CHANGE_SET, write->id, 1, 0);
    change.n_columns = write->n;
    for (unsigned k = 0; k < write->n; k++) {
        change.serial[k] = write->serial[k];
        change.column[k] =
            (uint8_t)(is_pair ? 0
                              : write->serial[k] - rig->def.column[0].serial);
        change.operand[k] = write->value[k];
    }
    return change;
}

/* A new engine that has what the sink was told, as after a restart. */
static inline void
rig_restart_with(struct rig *rig, const struct alloc *alloc)
{
    struct journal old = rig->journal;
    finish_engine(&rig->engine);
    rig_make(rig, alloc, NULL);
    engine_set_sink(rig->engine, NULL);
    engine_begin_loading(rig->engine);
    for (size_t i = 0; i < old.n; i++) {
        struct change change = replayed(rig, &old.entry[i].write);
        if (change.n_columns > 0) {
            engine_change(rig->engine, &change, 1);
            ck_assert_int_eq(change.err, 0);
        }
    }
    engine_end_loading(rig->engine);
    journal_fini(&rig->journal);
    rig->journal = old; /* a later restart has all of it again */
    engine_set_sink(rig->engine, &rig->journal.sink);
}

static inline void
rig_restart(struct rig *rig)
{
    rig_restart_with(rig, NULL);
}

#endif

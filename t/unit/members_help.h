/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_MEMBERS_HELP_H
#define UNIT_MEMBERS_HELP_H

/* Records with members as they lie in a store, put there cell by cell: also
 * such as no change of a member would leave. */

#include "unit/durable_help.h"

enum { MEMBERS_BITS = 20, MEMBERS_MARK = 256 };

/* Counter m: a number, a count, and two columns of members, of which the first
 * is counted. */
static inline void
members_add_counter_as(struct rig *rig, const char *counter)
{
    const char *const lines[] = {counter, "add column m mid primarykey",
        "add column m plain", "add column m likes default=0",
        "add column m liked members=exact counts=likes member=20",
        "add column m seen members=exact max=8 member=20 suffix=s"};
    edit_all(rig->store, lines, sizeof lines / sizeof lines[0]);
}

static inline void
members_add_counter(struct rig *rig)
{
    members_add_counter_as(rig, "add counter m cold=never");
}

/* The same, which may be sealed. */
static inline void
members_add_cold_counter(struct rig *rig)
{
    members_add_counter_as(rig, "add counter m");
}

/* With what the last cell that was set is committed. */
static uint64_t members_seq;

/* Where a change is of a number that counts members it names them, too, as
 * they are: else it would be refused. */
static inline void
members_name(struct rig *rig, struct change *change)
{
    const struct schema_counter *counter =
        schema_counter_at(quiet_schema(rig->store), change->counter);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        if (column->counts == change->serial[0]) {
            change->column[1] = column->slot;
            change->serial[1] = column->serial;
            change->kept = 1U << 1;
            change->n_columns = 2;
        }
    }
}

/* Makes a change and waits, for it may be of a cold record. */
static inline void
members_do(struct rig *rig, struct change *change)
{
    members_seq = do_changes(rig->store, change, 1);
    ck_assert_int_eq(change->err, 0);
}

/* Sets one cell. */
static inline void
members_set(struct rig *rig, const struct cell_key *key, uint64_t value)
{
    struct change change = change_of(key, CHANGE_SET, value);
    members_name(rig, &change);
    members_do(rig, &change);
}

static inline void
members_set_named(
    struct rig *rig, uint64_t id, const char *name, uint64_t value)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), id, name);
    members_set(rig, &key, value);
}

/* What a record has in a column; of members, its number. */
static inline uint64_t
members_get(struct rig *rig, uint64_t id, const char *name)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), id, name);
    uint64_t value;
    (void)get_cell(rig->store, &key, &value);
    return value;
}

/* The pair of a member. */
static inline void
members_put(struct rig *rig, uint64_t id, const char *name, uint64_t number,
    uint64_t member, uint64_t value)
{
    const struct schema *schema = quiet_schema(rig->store);
    struct schema_target target;
    ck_assert(schema_find(schema, name, strlen(name), &target));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    const struct cell_key key = {
        .id = store_pair(rig->store, id, number, MEMBERS_BITS, member),
        .serial = pairs->column[0].serial,
        .counter = pairs->slot};
    members_set(rig, &key, value);
}

/* The next number that a record may have; *last is the one before. */
static inline uint64_t
members_number(uint64_t *last)
{
    *last += (*last + 1) % MEMBERS_MARK == 0 ? 2 : 1;
    return *last;
}

/* Gives a record its first members, first, first + step, ..., all of that
 * value. What counts them is the caller's. */
static inline void
members_give(struct rig *rig, uint64_t id, const char *name, uint64_t *last,
    uint64_t first, uint64_t step, unsigned n, uint64_t value)
{
    uint64_t number = members_number(last);
    if (number % MEMBERS_MARK == 1) { /* the mark, where the engine has it */
        members_put(rig, id, name, number + MEMBERS_MARK - 1, 0, 1);
    }
    members_set_named(rig, id, name, number);
    for (unsigned i = 0; i < n; i++) {
        members_put(rig, id, name, number, first + i * step, value);
    }
}

/* A change of a member, which makes the count. */
static inline struct change
members_change_of(struct rig *rig, uint64_t id, const char *name,
    enum change_op op, uint64_t member, uint64_t value)
{
    const struct schema *schema = quiet_schema(rig->store);
    struct schema_target target, counts;
    ck_assert(schema_find(schema, name, strlen(name), &target));
    ck_assert(schema_find(schema, "likes", 5, &counts));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    const struct cell_key key = {.id = id,
        .serial = target.column->serial,
        .counter = target.counter->slot,
        .column = target.column->slot};
    struct change change = change_of(&key, op, value);
    change.member = (struct change_member){.counter = pairs->slot,
        .bits = target.column->member_bits,
        .counts = target.column->counts != 0,
        .counts_column = counts.column->slot,
        .counts_serial = counts.column->serial,
        .serial = pairs->column[0].serial,
        .member = member};
    return change;
}

/* The same as members_give, by changes of the members. */
static inline void
members_change(struct rig *rig, uint64_t id, const char *name, uint64_t member,
    uint64_t value)
{
    struct change change =
        members_change_of(rig, id, name, CHANGE_MEMBER_SET, member, value);
    members_do(rig, &change);
}

/* A change that takes all members of a record. */
static inline struct change
members_forget_of(struct rig *rig, uint64_t id, const char *name)
{
    const struct cell_key members =
        cell_of(quiet_schema(rig->store), id, name);
    const struct cell_key likes =
        cell_of(quiet_schema(rig->store), id, "likes");
    struct change change = change_of(&members, CHANGE_DELETE, 0);
    change.n_columns = 2;
    change.column[1] = likes.column;
    change.serial[1] = likes.serial;
    return change;
}

/* The value of a member; 0 where it is none. */
static inline uint64_t
members_value(struct rig *rig, uint64_t id, const char *name, uint64_t member)
{
    const struct schema *schema = quiet_schema(rig->store);
    uint64_t number = members_get(rig, id, name), value = 0;
    struct schema_target target;
    ck_assert(schema_find(schema, name, strlen(name), &target));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    if (number != 0) {
        const struct cell_key key = {
            .id = store_pair(rig->store, id, number, MEMBERS_BITS, member),
            .serial = pairs->column[0].serial,
            .counter = pairs->slot};
        (void)get_cell(rig->store, &key, &value);
    }
    return value;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Edits of the schema as they come from the primary's log: with the order and
 * the grace periods of the keeper's own (keeper.c), but nothing is judged and
 * nothing logged.
 *
 * An entry says what a counter is now, or that it is gone. What it adds or
 * changes the engine learns before others do, what it drops it forgets behind
 * a grace period. */
#include "store/keeper_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/durable_position.h"
#include "durable/recover.h"
#include "schema/restore.h"

/* What an entry makes of the schema, which may be so already; *next is the
 * caller's. */
static int
work_out(
    const struct schema *now, const struct entry *entry, struct schema **next)
{
    return entry->kind == ENTRY_DROPPED &&
            recover_slot_of(now, entry->counter_serial) < 0
        ? schema_restore_serial(now, entry->last_serial, next)
        : recover_schema_after(now, entry, next);
}

/* True where the counter has a column that it has not in old. */
static bool
adds(const struct schema *old, const struct schema_counter *counter)
{
    const struct schema_counter *was = schema_counter_at(old, counter->slot);
    bool is_same = was != NULL && was->serial == counter->serial;
    for (unsigned i = 0; is_same && i < counter->n_columns; i++) {
        is_same = schema_column_of(was, counter->column[i].serial) != NULL;
    }
    return !is_same;
}

/* True where old has a column of the counter that it has not any more. */
static bool
drops(const struct schema *old, const struct schema_counter *counter)
{
    const struct schema_counter *was = schema_counter_at(old, counter->slot);
    bool is_whole = true;
    for (unsigned i = 0; was != NULL && is_whole && i < was->n_columns; i++) {
        is_whole = schema_column_of(counter, was->column[i].serial) != NULL;
    }
    return !is_whole;
}

/* The engine learns the counters in the slots; what has been learnt stays where
 * it fails, for it is tried again. */
static int
define_all(struct keeper *keeper, const struct schema *next,
    const uint8_t *slot, unsigned n)
{
    int err = 0;
    for (unsigned i = 0; err == 0 && i < n; i++) {
        err = engine_define(keeper->engine, schema_counter_at(next, slot[i]));
    }
    return err;
}

static int
apply(struct keeper *keeper, const struct entry *entry, struct schema *next)
{
    const struct schema *old = keeper__current(keeper);
    uint8_t gone[SCHEMA_COLUMNS_MAX], made[SCHEMA_COLUMNS_MAX];
    unsigned n_gone = schema_pairs_beside(old, next, gone);
    unsigned n_made = schema_pairs_beside(next, old, made);
    const struct schema_counter *counter = entry->kind == ENTRY_COUNTER
        ? schema_counter_at(next, entry->counter.slot)
        : NULL;
    int slot = counter == NULL ? recover_slot_of(old, entry->counter_serial)
                               : (int)counter->slot;
    bool is_first =
        counter != NULL && (adds(old, counter) || !drops(old, counter));
    int err = define_all(keeper, next, made, n_made);
    if (err == 0 && is_first) {
        err = engine_define(keeper->engine, counter);
    }
    if (err == 0) {
        err = keeper__follow_abouts(keeper, next);
    }
    if (err != 0) {
        return err;
    }
    keeper__publish(keeper, next); /* old is gone now */
    if (counter != NULL && !is_first) {
        /* out of memory only means that the space comes back later */
        (void)engine_define(keeper->engine, counter);
    } else if (counter == NULL && slot >= 0) {
        const uint8_t dropped = (uint8_t)slot;
        keeper__forget_all(keeper, &dropped, 1);
    }
    keeper__forget_all(keeper, gone, n_gone);
    qsbr_wait(keeper->store->qsbr);
    return 0;
}

int
keeper__apply(struct keeper *keeper, const struct entry *entry)
{
    struct schema *next;
    ASSERT(entry->kind == ENTRY_COUNTER || entry->kind == ENTRY_DROPPED);
    ASSERT(keeper->durable != NULL && durable_is_replica(keeper->durable));
    mutex_lock(&keeper->durable->edit_lock);
    int err = work_out(keeper__current(keeper), entry, &next);
    if (err == 0) {
        err = apply(keeper, entry, next);
        if (err != 0) {
            schema_destroy(&next);
        }
    }
    mutex_unlock(&keeper->durable->edit_lock);
    return err;
}

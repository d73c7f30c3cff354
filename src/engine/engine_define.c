/* SPDX-License-Identifier: BSD-3-Clause */
/* Defines and drops counters while others read and write.
 *
 * A new column goes to the shards' ranges first, so the next table built has
 * shapes for it; then the view that has it is published. A dropped column
 * leaves the view first. Then every shard's lock is taken once, so nobody
 * writes under the old view any more; only then are its numbers cleared.
 * Readers that still have the old view see that the column's serial is gone,
 * which goes before the numbers. If clearing lacks memory, the slot stays
 * dirty, and is cleared again before another column may use it.
 *
 * A column that counts members is closed to all other changes from the moment
 * that the view is published that has the members: those too that were resolved
 * before and come later. While an engine is loaded it is open, for what is
 * loaded was allowed once. */
#include "engine/engine_priv.h"

#include "base/err.h"

static void
free_view(struct pool *pool, struct pool_garbage *garbage)
{
    pool_give_block(pool, garbage, sizeof(struct view));
}

/* Slots whose old column is not in the new view; NULL: there is none. */
static uint32_t
dropped_columns(const struct view *old, const struct view *new)
{
    uint32_t dropped = 0;
    for (unsigned i = 0; old != NULL && i < SCHEMA_COLUMNS_MAX; i++) {
        if (old->column[i].serial != 0 &&
            (new == NULL || old->column[i].serial != new->column[i].serial)) {
            dropped |= 1U << i;
        }
    }
    return dropped;
}

/* Has columns take changes that are not of members, or none. */
static void
set_open(struct view *view, uint32_t columns, bool is_open)
{
    for (uint32_t left = columns; left != 0; left &= left - 1) {
        struct column *column = &view->column[__builtin_ctz(left)];
        uint32_t serial =
            atomic_load_explicit(&column->serial, memory_order_relaxed);
        /* relaxed: where the view is in use a column is only opened, and who
         * still reads 0 is refused, a moment too long */
        atomic_store_explicit(
            &column->open_serial, is_open ? serial : 0, memory_order_relaxed);
    }
}

void
engine__open_counted(struct engine *engine, bool is_open)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct counter *counter = engine__counter(engine, slot);
        struct view *view = counter == NULL ? NULL : counter__view(counter);
        if (view != NULL) {
            set_open(view, view->counted, is_open);
        }
    }
}

/* Opens the columns that counted members which are gone from the view. */
static void
open_uncounted(struct view *view)
{
    for (uint32_t left = view->counted; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if ((view->members >> view->counted_by[i] & 1) == 0) {
            view->counted &= ~(1U << i);
            set_open(view, 1U << i, true);
        }
    }
}

/* Takes the serials of columns out of a view that may be read. */
static void
forget(struct view *view, uint32_t columns)
{
    for (uint32_t left = columns; left != 0; left &= left - 1) {
        /* relaxed: who still reads it is as if it had come earlier; who sees
         * a number cleared has acquired what was stored after this, and sees
         * this too (answer_key) */
        struct column *column = &view->column[__builtin_ctz(left)];
        atomic_store_explicit(&column->serial, 0, memory_order_relaxed);
        atomic_store_explicit(&column->open_serial, 0, memory_order_relaxed);
    }
}

static void
publish(struct engine *engine, struct counter *counter, struct view *view)
{
    struct view *old = counter__view(counter);
    uint32_t is_guarded = view != NULL && view->max_jump != 0;
    uint32_t was_guarded = old != NULL && old->max_jump != 0;
    /* relaxed: see engine__has_guard */
    uint32_t n_before = atomic_fetch_add_explicit(
        &engine->n_guarded, is_guarded - was_guarded, memory_order_relaxed);
    ASSERT(n_before >= was_guarded && n_before <= SCHEMA_COUNTERS_MAX);
    /* release: with all that is in it */
    atomic_store_explicit(&counter->view, view, memory_order_release);
    /* writers need not be readers: those that have the old view hold a lock */
    for (unsigned i = 0; old != NULL && i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        shard__unlock(&engine->shard[i]);
    }
    if (old != NULL) {
        /* readers that still have it must not take a number that is cleared
         * for one at its default */
        forget(old, dropped_columns(old, view));
        pool_retire(&engine->pool, &old->garbage, sizeof *old, free_view);
    }
}

static void
read_columns(const struct schema_counter *from, struct view *view)
{
    view->absent_is_miss = from->absent_is_miss;
    view->overflow_is_error = from->overflow_is_error;
    view->max_jump = from->max_jump;
    for (unsigned i = 0; i < from->n_columns; i++) {
        const struct schema_column *it = &from->column[i];
        ASSERT(it->slot < SCHEMA_COLUMNS_MAX &&
            view->column[it->slot].serial == 0);
        ASSERT(it->max_bits >= 1 && it->max_bits <= SCHEMA_BITS_MAX);
        ASSERT(it->hint_bits <= SCHEMA_BITS_MAX && it->serial != 0);
        ASSERT(it->default_value <= schema_column_max(it));
        view->column[it->slot] = (struct column){
            .default_value = it->default_value,
            .max = schema_column_max(it),
            .serial = it->serial,
            .open_serial = it->serial,
        };
        view->columns |= 1U << it->slot;
        if (it->kind == SCHEMA_MEMBERS) {
            ASSERT(it->pairs != from->slot && it->default_value == 0);
            view->members |= 1U << it->slot;
            view->pairs[it->slot] = it->pairs;
        }
        const struct schema_column *counts =
            schema_column_of(from, it->counts);
        if (counts != NULL && it->kind == SCHEMA_MEMBERS) {
            view->counted |= 1U << counts->slot;
            view->counted_by[counts->slot] = it->slot;
        }
    }
}

static int
make_counter(struct engine *engine, unsigned slot, struct counter **out)
{
    void *block;
    int err = pool_take_block(
        &engine->pool, counter__bytes(engine), POOL_NEW, &block);
    if (err != 0) {
        return err;
    }
    struct counter *counter = block;
    for (unsigned i = 0; i < engine->n_shards; i++) {
        counter->ranges[i] = (struct ranges){
            .owner = &engine->shard[i].owner,
            .n_records_max = engine->n_records_max,
            .row_bits = 64 - engine->shard_bits,
            .cover = {.cover = engine->cover, .slot = slot, .shard = i},
        };
    }
    *out = counter;
    return 0;
}

/* Tells all shards what columns there are to be. */
static int
prepare(struct engine *engine, struct counter *counter,
    const struct schema_counter *from, uint32_t columns)
{
    uint8_t hint_bits[SCHEMA_COLUMNS_MAX] = {0};
    for (unsigned i = 0; i < from->n_columns; i++) {
        hint_bits[from->column[i].slot] = from->column[i].hint_bits;
    }
    for (unsigned i = 0; i < engine->n_shards; i++) {
        struct ranges *ranges = &counter->ranges[i];
        int err = 0;
        shard__lock(&engine->shard[i]);
        ranges->columns = columns;
        if (ranges->n_records == 0 || ranges->set == NULL) {
            err = ranges_hint(ranges, hint_bits);
            if (ranges->set != NULL) {
                err = 0; /* an older one will do */
            }
        }
        shard__unlock(&engine->shard[i]);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

/* Forgets columns in all tables, one table at a time. */
static int
clear(struct engine *engine, struct counter *counter, uint32_t columns)
{
    int err = 0;
    for (unsigned i = 0; columns != 0 && i < engine->n_shards; i++) {
        uint64_t row = 0;
        bool more = true;
        while (more) {
            shard__lock(&engine->shard[i]);
            more =
                ranges_drop_columns(&counter->ranges[i], &row, columns, &err);
            shard__unlock(&engine->shard[i]);
        }
    }
    counter->dirty =
        err == 0 ? counter->dirty & ~columns : counter->dirty | columns;
    return err;
}

static void
set_columns(struct engine *engine, struct counter *counter, uint32_t columns)
{
    for (unsigned i = 0; i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        counter->ranges[i].columns = columns;
        shard__unlock(&engine->shard[i]);
    }
}

static int
make_view(struct engine *engine, const struct schema_counter *from,
    struct view **out)
{
    void *block;
    int err = pool_take_block(
        &engine->pool, sizeof(struct view), POOL_UPDATE, &block);
    if (err == 0) {
        *out = block;
        read_columns(from, *out);
        set_open(*out, (*out)->counted, pool_is_loading(&engine->pool));
    }
    return err;
}

/* A slot is to be used by another column: whoever knew the old one must not
 * write there any more, and its numbers must be gone, before the new one is
 * published. */
static int
vacate(struct engine *engine, struct counter *counter, uint32_t columns)
{
    const struct view *old = counter__view(counter);
    if (old != NULL && (old->columns & columns) != 0) {
        void *block;
        int err = pool_take_block(
            &engine->pool, sizeof(struct view), POOL_UPDATE, &block);
        if (err != 0) {
            return err;
        }
        struct view *without = block;
        *without = *old;
        without->columns &= ~columns;
        without->members &= ~columns;
        without->counted &= ~columns;
        for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
            if ((columns >> i & 1) != 0) {
                without->column[i] = (struct column){0};
                without->pairs[i] = 0;
            }
        }
        publish(engine, counter, without);
    }
    return clear(engine, counter, columns);
}

/* True where the counter has all these columns already, and all the rest as it
 * is to be. */
static bool
only_drops(const struct counter *counter, const struct schema_counter *from)
{
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    for (unsigned i = 0; view != NULL && i < from->n_columns; i++) {
        const struct schema_column *it = &from->column[i];
        const struct column *was = &view->column[it->slot];
        if (was->serial != it->serial || was->max != schema_column_max(it)) {
            return false;
        }
    }
    return view != NULL && view->absent_is_miss == from->absent_is_miss &&
        view->overflow_is_error == from->overflow_is_error &&
        view->max_jump == from->max_jump;
}

/* Drops columns without memory for a new view. */
static void
drop_in_place(struct engine *engine, struct counter *counter,
    const struct schema_counter *from)
{
    struct view *view = counter__view(counter);
    uint32_t dropped = view->columns | counter->dirty;
    for (unsigned i = 0; i < from->n_columns; i++) {
        dropped &= ~(1U << from->column[i].slot);
    }
    forget(view, dropped);
    view->columns &= ~dropped;
    view->members &= ~dropped;
    view->counted &= ~dropped;
    open_uncounted(view);
    if (clear(engine, counter, dropped) == 0) {
        set_columns(engine, counter, view->columns);
    }
}

int
engine_define(struct engine *engine, const struct schema_counter *from)
{
    struct counter *counter = engine__counter(engine, from->slot);
    struct view *view;
    int err = make_view(engine, from, &view);
    if (err != 0 && only_drops(counter, from)) {
        drop_in_place(engine, counter, from);
        return 0;
    }
    if (err != 0) {
        return err;
    }
    if (counter == NULL) {
        err = make_counter(engine, from->slot, &counter);
        if (err != 0) {
            goto err_after_view;
        }
        /* release: with all that is in it; it stays, empty, on failure */
        atomic_store_explicit(
            &engine->counter[from->slot], counter, memory_order_release);
    }
    uint32_t dropped =
        dropped_columns(counter__view(counter), view) | counter->dirty;
    /* tables that are built before it is cleared still have what is dropped */
    err = prepare(engine, counter, from, view->columns | dropped);
    if (err == 0 && (dropped & view->columns) != 0) {
        err = vacate(engine, counter, dropped & view->columns);
    }
    if (err != 0) {
        goto err_after_view;
    }
    publish(engine, counter, view);
    /* what lacks memory now stays dirty, out of sight */
    if (clear(engine, counter, dropped & ~view->columns) == 0) {
        set_columns(engine, counter, view->columns);
    }
    return 0;

err_after_view:
    pool_give_block(&engine->pool, view, sizeof *view);
    return err;
}

void
engine_undefine(struct engine *engine, unsigned slot)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    struct counter *counter = engine__counter(engine, slot);
    if (counter == NULL) {
        return;
    }
    publish(engine, counter, NULL);
    for (unsigned i = 0; i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        ranges_clear(&counter->ranges[i]);
        counter->ranges[i].columns = 0;
        sorted__drop(engine, i, slot);
        shard__unlock(&engine->shard[i]);
    }
    counter->dirty = 0;
    /* relaxed: no writer has the counter any more */
    atomic_store_explicit(&counter->largest_id, 0, memory_order_relaxed);
    atomic_store_explicit(&counter->has_largest, false, memory_order_relaxed);
}

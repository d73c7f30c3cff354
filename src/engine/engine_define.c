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

/* A copy of old without columns. */
static void
leave_out(const struct view *old, uint32_t columns, struct view *without)
{
    *without = *old;
    without->columns &= ~columns;
    without->members &= ~columns;
    without->counted &= ~columns;
    for (uint32_t left = columns; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        without->column[i] = (struct column){0};
        without->pairs[i] = 0;
    }
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
        leave_out(old, columns, without);
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

/* True where the counter has a record, or something covers what may have a
 * number of these columns of view. */
static bool
holds_something(struct engine *engine, const struct schema_counter *from,
    const struct view *view, uint32_t columns)
{
    const struct counter *counter = engine__counter(engine, from->slot);
    const struct engine_cover *cover = engine->cover;
    bool any = false;
    for (unsigned i = 0; !any && i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        any = counter->ranges[i].n_live != 0;
        for (uint32_t left = columns; cover != NULL && !any && left != 0;
             left &= left - 1) {
            /* relaxed: only who defines changes it */
            uint32_t serial =
                atomic_load_explicit(&view->column[__builtin_ctz(left)].serial,
                    memory_order_relaxed);
            any = cover->column_fn(cover, from->slot, i, serial);
        }
        shard__unlock(&engine->shard[i]);
    }
    return any;
}

/* Publishes without, of which renewed columns are gone. Nobody stores there any
 * more, so what is found then is all there will be. 0, or was is published
 * again. */
static int
close_renewed(struct engine *engine, const struct schema_counter *from,
    uint32_t renewed, struct view *without, struct view *was)
{
    struct counter *counter = engine__counter(engine, from->slot);
    int err = 0;
    publish(engine, counter, without);
    if (holds_something(engine, from, was, renewed)) {
        err = ERR_CHANGE_DEFAULT;
    } else {
        err = clear(engine, counter, renewed);
        /* of records that are deleted; it may be in use again */
        counter->dirty &= ~renewed;
    }
    if (err != 0) {
        publish(engine, counter, was);
    }
    return err;
}

static int
take_views(struct engine *engine, const struct schema_counter *from,
    struct view *view[3])
{
    void *block[2];
    int err = make_view(engine, from, &view[0]);
    for (unsigned i = 0; err == 0 && i < 2; i++) {
        err = pool_take_block(
            &engine->pool, sizeof(struct view), POOL_UPDATE, &block[i]);
        view[i + 1] = err == 0 ? block[i] : NULL;
    }
    return err;
}

int
engine_renew(struct engine *engine, const struct schema_counter *from,
    void (*log_fn)(void *context), void *context)
{
    struct counter *counter = engine__counter(engine, from->slot);
    struct view *view[3] = {NULL, NULL, NULL}; /* to be, without, as it was */
    ASSERT(counter != NULL && counter__view(counter) != NULL);
    int err = take_views(engine, from, view);
    if (err == 0) {
        const struct view *old = counter__view(counter);
        uint32_t renewed = dropped_columns(old, view[0]);
        ASSERT((renewed & ~view[0]->columns) == 0);
        leave_out(old, renewed, view[1]);
        *view[2] = *old;
        err = holds_something(engine, from, old, renewed)
            ? ERR_CHANGE_DEFAULT
            : prepare(engine, counter, from, old->columns | counter->dirty);
        if (err == 0) {
            err = close_renewed(engine, from, renewed, view[1], view[2]);
            view[1] = NULL;
            view[2] = err == 0 ? view[2] : NULL;
        }
    }
    if (err == 0) {
        log_fn(context);
        publish(engine, counter, view[0]);
        view[0] = NULL;
    }
    for (unsigned i = 0; i < 3; i++) {
        if (view[i] != NULL) {
            pool_give_block(&engine->pool, view[i], sizeof *view[i]);
        }
    }
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

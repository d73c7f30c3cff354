/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper: makes schema edits take effect while everybody reads and writes.
 *
 * Adding: the engine learns the new columns first, then the schema that names
 * them is published, so that no request can name what the engine does not
 * know. Dropping: the new schema is published first; after a grace period no
 * request can resolve the old name any more, and the engine forgets the
 * numbers. The counter of pairs of a column of members comes before the counter
 * that has the column, and goes after it. Keys that were resolved earlier and
 * are still parked carry a serial that the engine no longer knows, and are
 * answered as gone.
 *
 * A number that is to count members must have no values. It is looked for some
 * twice: before the engine learns of the members, so that a refusal disturbs
 * nobody, and after it, when the engine refuses all changes of the number that
 * are not of a member. What has come between the two has the edit taken back.
 *
 * Changing a default: the column becomes another one in its place, while there
 * is nothing stored; engine_renew looks.
 *
 * Changing what else: the log, the engine, and then the schema. A request that
 * is under way has the names of before or of after, and the numbers of its
 * columns either way.
 *
 * With a data directory every edit is in the log before the schema that has
 * it is published, so before any change that rests on it, and is synced before
 * it is answered, whatever the sync mode is. A change of a dropped column may
 * be in the log behind the drop: its serial tells.
 *
 * If an add lacks memory, the engine may keep columns under a serial that was
 * never published; nothing can have been written there, and the next
 * definition of that counter replaces it. A drop that lacks memory leaves
 * numbers behind that nobody can name any more, until a later definition.
 *
 * Its life, which whoever makes the store changes, under the lock:
 *
 *   IDLE --keeper_start--> RUNS --keeper_stop--> ENDS
 *    ^                                            |  the queue is done, and the
 *    +--------------------------------------------+  thread has ended
 */
#include "store/keeper.h"
#include "store/keeper_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "durable/durable_position.h"
#include "engine/members.h"
#include "schema/restore.h"
#include "tier/segment_map.h"

#include <stdlib.h>

static void
move(struct keeper *keeper, enum keeper_life to)
{
    keeper->life = keeper__step(keeper->life, to);
}

const struct schema *
keeper__current(struct keeper *keeper)
{
    /* relaxed: who edits is the only one that stores it */
    return atomic_load_explicit(keeper->store->schema, memory_order_relaxed);
}

/* Publishes next and frees the one before when nobody can see it any more. */
void
keeper__publish(struct keeper *keeper, const struct schema *next)
{
    struct schema *old = (struct schema *)keeper__current(keeper);
    ASSERT(schema_version(next) > schema_version(old));
    ASSERT(schema_last_serial(next) >= schema_last_serial(old));
    /* seq_cst: see store_schema */
    atomic_store_explicit(keeper->store->schema, next, memory_order_seq_cst);
    qsbr_wait(keeper->store->qsbr);
    schema_destroy(&old);
}

static const struct schema_counter *
counter_of(const struct schema *schema, const struct schema_edit *edit)
{
    const struct schema_name *name = &edit->counter.name;
    return schema_counter(schema, name->text, name->len);
}

static bool
item_has_name(struct keeper *keeper, const struct schema_edit *edit)
{
    const struct schema_name *name = &edit->counter.name;
    return edit->op == SCHEMA_ADD_COUNTER &&
        items_has(
            keeper->store->items, name->text, name->len, clock_monotonic_s());
}

/* Logs what the edit's counter has become in next (NULL there: it is gone);
 * serial is the counter's. */
static uint64_t
log_edit(struct keeper *keeper, const struct schema *next,
    const struct schema_edit *edit, uint32_t serial)
{
    const struct schema_counter *counter = counter_of(next, edit);
    uint32_t last_serial = schema_last_serial(next);
    if (keeper->durable == NULL) {
        return 0;
    }
    ASSERT(counter == NULL ? serial > 0 : counter->serial <= last_serial);
    return counter == NULL
        ? durable_log_dropped(keeper->durable, serial, last_serial)
        : durable_log_counter(keeper->durable, counter, last_serial);
}

/* What the edit says of the largest id. next: a schema that has its counter. */
static void
take_largest(struct keeper *keeper, const struct schema *next,
    const struct schema_edit *edit)
{
    ASSERT(counter_of(next, edit) != NULL);
    if (edit->has_largest) {
        engine_raise(
            keeper->engine, counter_of(next, edit)->slot, edit->largest);
    }
}

/* The engine forgets the counter in a slot, and then nothing covers what it
 * had. */
static void
forget(struct keeper *keeper, unsigned slot)
{
    engine_undefine(keeper->engine, slot);
    if (keeper->segment_map != NULL) {
        segment_map_clear(keeper->segment_map, slot);
    }
}

void
keeper__forget_all(struct keeper *keeper, const uint8_t *slot, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        forget(keeper, slot[i]);
    }
}

/* The engine learns what the edit has added in next, with the counter of pairs
 * that may have come with it: all of it, or nothing. */
static int
define(struct keeper *keeper, const struct schema *next,
    const struct schema_edit *edit)
{
    uint8_t pairs[SCHEMA_COLUMNS_MAX];
    unsigned n = schema_pairs_beside(next, keeper__current(keeper), pairs);
    int err = 0;
    for (unsigned i = 0; err == 0 && i < n; i++) {
        err = engine_define(keeper->engine, schema_counter_at(next, pairs[i]));
    }
    if (err == 0) {
        err = engine_define(keeper->engine, counter_of(next, edit));
    }
    if (err != 0) {
        keeper__forget_all(keeper, pairs, n);
    }
    return err;
}

/* Whether members can be had. A number that is to count them has counted
 * nothing else so far: else it would never be right. What segments have of it
 * is not read. And a shard has room for the numbers of some ids. */
static int
check_members(struct keeper *keeper, const struct schema *next,
    const struct schema_edit *edit)
{
    const struct schema_counter *counter = counter_of(next, edit);
    if (edit->op != SCHEMA_ADD_COLUMN || edit->is_key) {
        return 0;
    }
    ASSERT(counter->n_columns > 0);
    const struct schema_column *added =
        &counter->column[counter->n_columns - 1];
    if (schema_is_in_record(added)) {
        return 0;
    }
    if (added->kind == SCHEMA_MEMBERS &&
        !engine_has_numbers(keeper->engine, added->member_bits)) {
        return ERR_MEMBERS_WIDE;
    }
    const struct schema_column *counts =
        schema_column_of(counter, added->counts);
    if (counts == NULL) {
        return 0;
    }
    if (engine_has_values(keeper->engine, counter->slot, counts->slot)) {
        return ERR_COUNTS_VALUES;
    }
    return engine_is_covered(keeper->engine, counter->slot, counts->slot)
        ? ERR_COUNTS_COLD
        : 0;
}

/* The engine forgets what define has told it of an added column; this needs no
 * memory. Nobody has been able to name it. */
static void
take_back(struct keeper *keeper, const struct schema *next,
    const struct schema_edit *edit)
{
    uint8_t pairs[SCHEMA_COLUMNS_MAX];
    unsigned n = schema_pairs_beside(next, keeper__current(keeper), pairs);
    ASSERT(edit->op == SCHEMA_ADD_COLUMN);
    int err = engine_define(
        keeper->engine, counter_of(keeper__current(keeper), edit));
    ASSERT(err == 0); /* it has all these columns */
    keeper__forget_all(keeper, pairs, n);
}

int
keeper__follow_abouts(struct keeper *keeper, const struct schema *schema)
{
    return keeper->abouts == NULL ? 0 : abouts_follow(keeper->abouts, schema);
}

/* True where the edit gives columns of its counter new serials. */
static bool
renews(struct keeper *keeper, const struct schema *next,
    const struct schema_edit *edit)
{
    const struct schema_counter *counter = counter_of(next, edit);
    return counter->n_columns > 0 &&
        counter->column[counter->n_columns - 1].serial >
        schema_last_serial(keeper__current(keeper));
}

struct renewal {
    struct keeper *keeper;
    const struct schema_edit *edit;
    const struct schema *next;
    uint64_t *seq;
};

static void
log_renewal(void *context)
{
    const struct renewal *it = context;
    *it->seq = log_edit(it->keeper, it->next, it->edit, 0);
}

/* A default: the engine sees to it that nothing is stored that counts from the
 * old one. */
static int
do_renew(struct keeper *keeper, const struct schema_edit *edit,
    struct schema *next, uint64_t *seq)
{
    struct renewal renewal = {keeper, edit, next, seq};
    int err = engine_renew(
        keeper->engine, counter_of(next, edit), log_renewal, &renewal);
    if (err != 0) {
        schema_destroy(&next);
        return err;
    }
    keeper__publish(keeper, next);
    return 0;
}

/* What a counter or a column is. The log has it before the engine takes larger
 * numbers: replay refuses what is above the max of the counter by then. The
 * engine lacks memory: the log has the counter as it was again. */
static int
do_change(struct keeper *keeper, const struct schema_edit *edit,
    struct schema *next, uint64_t *seq)
{
    int err = keeper__follow_abouts(keeper, next);
    if (err != 0) {
        schema_destroy(&next);
        return err;
    }
    *seq = log_edit(keeper, next, edit, 0);
    err = engine_define(keeper->engine, counter_of(next, edit));
    if (err != 0) {
        *seq = log_edit(keeper, keeper__current(keeper), edit, 0);
        (void)keeper__follow_abouts(keeper, keeper__current(keeper));
        schema_destroy(&next);
        return err;
    }
    keeper__publish(keeper, next);
    return 0;
}

static int
do_add(struct keeper *keeper, const struct schema_edit *edit,
    struct schema *next, uint64_t *seq)
{
    int err = keeper->is_missing ? ERR_NO_DATA_DIR
                                 : check_members(keeper, next, edit);
    if (err == 0) {
        err = define(keeper, next, edit);
        if (err == 0) {
            err = check_members(keeper, next, edit);
            if (err == 0) {
                err = keeper__follow_abouts(keeper, next);
            }
            if (err != 0) {
                take_back(keeper, next, edit);
            }
        }
    }
    if (err != 0) {
        schema_destroy(&next);
        return err;
    }
    take_largest(keeper, next, edit);
    *seq = log_edit(keeper, next, edit, 0);
    keeper__publish(keeper, next);
    if (edit->op == SCHEMA_ADD_COUNTER) {
        /* One that was set while the name was being taken: it could never be
         * reached again. */
        const struct schema_name *name = &edit->counter.name;
        items_delete(keeper->store->items, name->text, name->len, NULL,
            clock_monotonic_s());
    }
    return 0;
}

static int
do_drop(struct keeper *keeper, const struct schema_edit *edit,
    struct schema *next, uint64_t *seq)
{
    const struct schema_counter *old =
        counter_of(keeper__current(keeper), edit);
    ASSERT(old != NULL); /* schema_apply has found it */
    unsigned slot = old->slot;
    uint8_t pairs[SCHEMA_COLUMNS_MAX];
    unsigned n_pairs =
        schema_pairs_beside(keeper__current(keeper), next, pairs);
    *seq = log_edit(keeper, next, edit, old->serial);
    keeper__publish(keeper, next);
    if (edit->op == SCHEMA_DROP_COLUMN) {
        /* Out of memory here only means that the space comes back later. */
        (void)engine_define(keeper->engine, counter_of(next, edit));
    } else {
        forget(keeper, slot);
    }
    keeper__forget_all(keeper, pairs, n_pairs);
    /* a slot may be used again by the next edit: nobody may still read
     * under the old columns then */
    qsbr_wait(keeper->store->qsbr);
    /* Out of memory here only means that tables come back later. */
    (void)keeper__follow_abouts(keeper, next);
    return 0;
}

static int
do_producer(
    struct keeper *keeper, const struct store_edit *call, uint64_t *seq)
{
    int fault = keeper->durable == NULL ? 0 : wal_fault(keeper->durable->wal);
    return fault != 0 ? fault
                      : producers_drop(keeper->producers, keeper->engine,
                            &call->dropped, seq);
}

/* *seq is what must be durable before the answer, 0: nothing. */
static int
do_edit(struct keeper *keeper, const struct store_edit *call, uint64_t *seq)
{
    struct schema *next;
    const struct schema_edit *edit = &call->edit;
    if (keeper->durable != NULL) {
        mutex_assert_held(&keeper->durable->edit_lock);
        if (durable_is_replica(keeper->durable)) {
            return ERR_NOT_PRIMARY; /* the applier edits */
        }
    }
    if (call->dropped.len > 0) {
        return do_producer(keeper, call, seq);
    }
    if (schema_has_same(keeper__current(keeper), edit)) {
        take_largest(keeper, keeper__current(keeper), edit);
        return 0;
    }
    int fault = keeper->durable == NULL ? 0 : wal_fault(keeper->durable->wal);
    if (fault != 0) {
        return fault;
    }
    if (item_has_name(keeper, edit)) {
        return ERR_NAME_IS_ITEM;
    }
    int err = schema_apply(keeper__current(keeper), edit, &next);
    if (err != 0) {
        return err;
    }
    if (schema_has_text(next) && keeper__has_numbers_only(keeper)) {
        schema_destroy(&next);
        return ERR_NAMES_RULE;
    }
    if (edit->op == SCHEMA_ADD_COUNTER || edit->op == SCHEMA_ADD_COLUMN) {
        return do_add(keeper, edit, next, seq);
    }
    if (edit->op == SCHEMA_CHANGE_COUNTER ||
        edit->op == SCHEMA_CHANGE_COLUMN) {
        return renews(keeper, next, edit) ? do_renew(keeper, edit, next, seq)
                                          : do_change(keeper, edit, next, seq);
    }
    return do_drop(keeper, edit, next, seq);
}

/* No removal begins until it is known, and logged, whose the ids are; where
 * they are handed back, the one that is under way has ended before. */
static int
hand_over(struct keeper *keeper, const struct moved_one *one, uint64_t *seq)
{
    if (keeper->remover != NULL) {
        remover_hold(keeper->remover, one->address[0] == '\0' ? one->rule : "",
            ERR_HANDED_BACK);
    }
    int err = keeper__hand_over(keeper, one, seq);
    if (keeper->remover != NULL) {
        remover_release(keeper->remover);
    }
    return err;
}

static int
do_call(struct keeper *keeper, struct store_edit *call)
{
    struct durable *durable = keeper->durable;
    uint64_t seq = 0;
    call->seq = 0;
    int err;
    if (call->handover.rule[0] != '\0') {
        err = hand_over(keeper, &call->handover, &seq);
    } else if (durable == NULL) {
        err = do_edit(keeper, call, &seq);
    } else {
        mutex_lock(&durable->edit_lock);
        err = do_edit(keeper, call, &seq);
        mutex_unlock(&durable->edit_lock);
    }
    if (durable == NULL) {
        return err;
    }
    if (err == 0 && seq == 0) { /* it was there already: since just now? */
        seq = wal_last(durable->wal);
    }
    if (err != 0) {
        return err;
    }
    ASSERT(seq <= wal_last(durable->wal));
    call->seq = seq;
    return wal_sync_up_to(durable->wal, seq) == 0 ? 0 : ERR_UNSURE;
}

/* The next edit, or NULL when the keeper is to end. */
static struct store_edit *
take(struct keeper *keeper)
{
    mutex_lock(&keeper->lock);
    while (keeper->queue.first == NULL && keeper->life != KEEPER_ENDS) {
        mutex_wait(&keeper->lock, &keeper->changed);
    }
    struct store_call *call = call_queue_take(&keeper->queue);
    mutex_unlock(&keeper->lock);
    return (struct store_edit *)call; /* call is its first member */
}

static void *
run(void *arg)
{
    struct keeper *keeper = arg;
    struct store_edit *edit;
    ASSERT(keeper->magic == KEEPER_MAGIC);
    while ((edit = take(keeper)) != NULL) {
        edit->err = do_call(keeper, edit);
        edit->call.done_fn(&edit->call);
    }
    return NULL;
}

int
keeper_start(struct keeper *keeper)
{
    ASSERT(keeper->life == KEEPER_IDLE);
    keeper->magic = KEEPER_MAGIC;
    keeper->queue = (struct call_queue){0};
    mutex_init(&keeper->lock);
    pthread_cond_init(&keeper->changed, NULL);
    if (pthread_create(&keeper->thread, NULL, run, keeper) != 0) {
        pthread_cond_destroy(&keeper->changed);
        mutex_fini(&keeper->lock);
        keeper->magic = 0;
        return ERR_NO_THREAD;
    }
    mutex_lock(&keeper->lock);
    move(keeper, KEEPER_RUNS);
    mutex_unlock(&keeper->lock);
    return 0;
}

void
keeper_stop(struct keeper *keeper)
{
    ASSERT(keeper->magic == KEEPER_MAGIC);
    mutex_lock(&keeper->lock);
    move(keeper, KEEPER_ENDS);
    pthread_cond_signal(&keeper->changed);
    mutex_unlock(&keeper->lock);
    pthread_join(keeper->thread, NULL);
    ASSERT(keeper->queue.first == NULL);
    move(keeper, KEEPER_IDLE);
    keeper->magic = 0;
    pthread_cond_destroy(&keeper->changed);
    mutex_fini(&keeper->lock);
}

void
keeper_add(struct keeper *keeper, struct store_edit *edit)
{
    ASSERT(keeper->magic == KEEPER_MAGIC);
    ASSERT(edit->call.done_fn != NULL);
    mutex_lock(&keeper->lock);
    ASSERT(keeper->life == KEEPER_RUNS);
    call_queue_add(&keeper->queue, &edit->call);
    pthread_cond_signal(&keeper->changed);
    mutex_unlock(&keeper->lock);
}

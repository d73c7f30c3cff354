/* SPDX-License-Identifier: BSD-3-Clause */
/* The role of a store whose directory is one of several copies.
 *
 *            store_begin_term
 *   replica -----------------> primary
 *      ^                          |
 *      +--------------------------+
 *            store_set_replica
 *
 * A replica has the batches of the primary's log put: each goes to the log
 * under its number, then to the applier. A primary's changes go to the tables
 * and to the log at once. So each role has its own writer of the log, and its
 * own way to say which batches the tables have (durable/durable_position.h). A
 * role ends before the other one begins, with the lock of edits held: what is
 * sealed is published under it, and that appends to the log of a primary.
 * Clients may be at their changes when a primary becomes a replica: who comes
 * later is refused, who came before is waited for, by a grace period of readers
 * (a worker is one while it is at a change) and by cold_has_changes.
 *
 * What can go wrong: what is applied does not fit, and it stays a replica; the
 * log cannot be written, and it stays what it is. */
#include "store/store_repl.h"

#include "base/err.h"
#include "durable/durable_commit.h"
#include "durable/durable_position.h"
#include "schema/restore.h"
#include "store/store_real.h"
#include "wal/wal_replica.h"

enum { LOOK_NS = 1000 * 1000 /* between looks at what is under way */ };

int
store__begin_to_follow(struct real_store *real)
{
    real->applier = (struct applier){.engine = real->engine,
        .qsbr = &real->qsbr,
        .durable = &real->durable,
        .producers = &real->producers,
        .keeper = &real->keeper,
        .cold = &real->tier.cold,
        .names_dropped = &real->names_dropped,
        .names_rounds = &real->names_rounds};
    int err = applier_start(&real->applier);
    real->has_applier = err == 0;
    return err;
}

void
store__cease_to_follow(struct real_store *real)
{
    if (real->has_applier) {
        applier_stop(&real->applier);
        real->has_applier = false;
    }
}

/* Of a store of which all is loaded, and whose directory is replicated. */
static struct real_store *
replicated(struct store *store)
{
    struct real_store *real = store__real(store);
    ASSERT(real->is_durable && real->durable.config.is_replicated);
    ASSERT(real->has_loaded);
    return real;
}

/* No client's change begins any more, and those under way are made. */
static void
end_changes(struct real_store *real)
{
    durable_cease(&real->durable);
    gardener_follow(&real->gardener, true);
    qsbr_wait(&real->qsbr); /* who had looked at store_fault before */
    while (cold_has_changes(&real->tier.cold)) {
        clock_sleep_until(real->clock, clock_now_ns(real->clock) + LOOK_NS);
    }
}

/* The log is a primary's until all is in it that the sealer, too, was about to
 * tell it. */
static void
hand_log_over(struct durable *durable)
{
    struct wal_position at;
    mutex_lock(&durable->edit_lock);
    wal_position(durable->wal, &at);
    durable_follow(durable, at.last);
    engine_settle_all(durable->engine);
    wal_become_replica(durable->wal);
    wal_position(durable->wal, &at);
    durable_followed(durable, at.last);
    mutex_unlock(&durable->edit_lock);
    durable_fail_uncommitted(durable, at.last);
}

void
store_each_named(struct store *store,
    void (*counter_fn)(void *context, const struct schema_counter *counter,
        uint32_t last_serial),
    void (*producer_fn)(
        void *context, uint32_t serial, const struct producer_name *name),
    void *context)
{
    struct real_store *real = replicated(store);
    mutex_lock(&real->durable.edit_lock);
    /* relaxed: it is exchanged under that lock */
    const struct schema *schema =
        atomic_load_explicit(&real->schema, memory_order_relaxed);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && counter->members_of == 0) {
            counter_fn(context, counter, schema_last_serial(schema));
        }
    }
    mutex_unlock(&real->durable.edit_lock);
    producers_each(&real->producers, producer_fn, context);
}

int
store_set_replica(struct store *store)
{
    struct real_store *real = replicated(store);
    if (!durable_is_replica(&real->durable)) {
        remover_hold(&real->remover, NULL, ERR_NOT_PRIMARY);
        end_changes(real);
        remover_release(&real->remover); /* it would be refused by now */
        hand_log_over(&real->durable);
        /* what it had as a primary: nobody changes them from now on */
        items_flush(real->store.items, 0, clock_monotonic_s());
    }
    return real->has_applier ? 0 : store__begin_to_follow(real);
}

int
store_put_batch(
    struct store *store, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct real_store *real = store__real(store);
    struct wal *wal = real->durable.wal;
    struct applier_batch *batch;
    ASSERT(real->has_applier);
    /* first: what the log has is not sent again */
    int err = applier_make(&real->applier, seq, payload, len, &batch);
    if (err == 0 && !wal_has_batch(wal, seq)) {
        err = wal_put_batch(wal, seq, payload, len);
    }
    if (err != 0) {
        applier_unmake(batch);
    } else if (batch != NULL) {
        applier_put(&real->applier, batch);
    }
    return err;
}

int
store_drain_batches(struct store *store)
{
    struct real_store *real = store__real(store);
    ASSERT(real->has_applier);
    return applier_drain(&real->applier);
}

uint64_t
store_applied(struct store *store)
{
    return durable_applied(&store__real(store)->durable);
}

int
store_begin_term(struct store *store, const char *name, size_t name_len,
    uint32_t least_term, uint64_t *seq)
{
    struct real_store *real = replicated(store);
    struct durable *durable = &real->durable;
    ASSERT(durable_is_replica(durable));
    int err = real->has_applier ? 0 : store__begin_to_follow(real);
    if (err == 0) {
        err = applier_drain(&real->applier);
    }
    if (err == 0) {
        err = durable_begin_term(durable, name, name_len, least_term, seq);
    }
    if (err != 0) {
        return err;
    }
    store__cease_to_follow(real);
    mutex_lock(&durable->edit_lock);
    durable_lead(durable);
    mutex_unlock(&durable->edit_lock);
    gardener_follow(&real->gardener, false);
    return 0;
}

void
store_directory(struct store *store, struct store_directory *out)
{
    struct real_store *real = replicated(store);
    const struct durable *durable = &real->durable;
    *out = (struct store_directory){.epoch = durable->epoch,
        .seed = durable->seed,
        .shards = real->store.shards};
}

struct disk *
store_disk(struct store *store)
{
    return replicated(store)->durable.disk;
}

void
store_position(struct store *store, struct store_position *out)
{
    struct durable *durable = &replicated(store)->durable;
    struct wal_position at;
    /* first: what it has is in the log then */
    uint64_t applied =
        durable_is_replica(durable) ? durable_applied(durable) : UINT64_MAX;
    wal_position(durable->wal, &at);
    *out = (struct store_position){.begin = at.begin,
        .written = at.written,
        .written_bytes = at.written_bytes,
        .synced = at.synced,
        .applied = applied < at.written ? applied : at.written,
        .given = at.last < at.written ? at.written : at.last,
        .history = at.terms};
}

uint64_t
store_given(struct store *store, struct history *history)
{
    return wal_given(replicated(store)->durable.wal, history);
}

int
store_follow(struct store *store, struct wal_follow *follow, uint64_t from_seq,
    uint64_t bytes_max, void (*more_fn)(struct wal_follow *follow))
{
    struct wal *wal = replicated(store)->durable.wal;
    struct wal_position at;
    wal_position(wal, &at);
    if (from_seq == at.begin + 1 && from_seq < at.first) {
        from_seq = at.first; /* the term before has no file any more */
    }
    return wal_follow_open(wal, follow, from_seq, bytes_max, more_fn);
}

void
store_set_committed(struct store *store, uint64_t seq)
{
    durable_set_committed(&replicated(store)->durable, seq);
}

void
store_refuse_changes(struct store *store, int err)
{
    ASSERT(err >= 0 && err < ERR_COUNT);
    durable_refuse_changes(&replicated(store)->durable, err);
}

bool
store_has_changes(struct store *store)
{
    return cold_has_changes(&replicated(store)->tier.cold);
}

void
store_want_clean_end(struct store *store)
{
    replicated(store)->durable.ends_clean = true;
}

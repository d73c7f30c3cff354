/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_APPLIER_HELP_H
#define UNIT_APPLIER_HELP_H

/* A primary and a replica in one process: what the primary's log has is read
 * from its files and put to the replica. */

#include "schema/restore.h"
#include "store/store_repl.h"
#include "unit/digest_help.h"
#include "unit/members_help.h"
#include "wal/manifest.h"
#include "wal/replay.h"

struct pair {
    struct rig primary, replica;
    struct disk_calls calls;  /* of the primary's disk */
    struct manifest manifest; /* of the primary, the first one */
    uint64_t shipped;         /* number of the last batch that was put */
    uint64_t ship_to;         /* ... and that is to be */
    uint64_t n_batches;
};

static int (*unlink_file)(struct disk *disk, const char *name);

/* Files of the log stay: nothing that is still to be put is ever lost. */
static inline int
unlink_other(struct disk *disk, const char *name)
{
    return strncmp(name, "log-", 4) == 0 ? 0 : unlink_file(disk, name);
}

static inline void
put_batch(
    struct store *store, uint64_t seq, const uint8_t *payload, size_t len)
{
    int err = store_put_batch(store, seq, payload, len);
    while (err == ERR_LOG_FULL) { /* the queue is */
        sched_yield();
        err = store_put_batch(store, seq, payload, len);
    }
    ck_assert_int_eq(err, 0);
}

static inline int
ship_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct pair *pair = context;
    if (seq <= pair->shipped || seq > pair->ship_to) {
        return 0;
    }
    ck_assert(seq == pair->shipped + 1 || seq_n(seq) == 1);
    pair->shipped = seq;
    pair->n_batches++;
    put_batch(pair->replica.store, seq, payload, len);
    return 0;
}

/* Hands each batch that the primary's log has to batch_fn. What replay_run
 * says. */
static inline int
replay_primary(struct pair *pair,
    int (*batch_fn)(
        void *context, uint64_t seq, const uint8_t *payload, size_t len),
    void *context)
{
    struct rig *rig = &pair->primary;
    struct replay_end end;
    uint64_t seq = rig_stat(rig, "last_seq");
    ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
    const struct replay replay = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .epoch = pair->manifest.epoch,
        .histories = &pair->manifest.histories,
        .number = pair->manifest.log_number,
        .last_seq = seq,
        .batch_fn = batch_fn,
        .context = context};
    return replay_run(&replay, &end);
}

/* Puts what the primary's log has to the replica, up to a batch. */
static inline void
ship_to(struct pair *pair, uint64_t ship_to)
{
    pair->ship_to = ship_to;
    ck_assert_int_eq(replay_primary(pair, ship_batch, pair), 0);
    ck_assert_uint_eq(pair->shipped, ship_to);
}

static inline void
ship(struct pair *pair)
{
    ship_to(pair, rig_stat(&pair->primary, "last_seq"));
}

/* The same, and it is applied. */
static inline void
catch_up(struct pair *pair)
{
    ship(pair);
    ck_assert_int_eq(store_drain_batches(pair->replica.store), 0);
    ck_assert_uint_eq(store_applied(pair->replica.store), pair->shipped);
}

/* Nothing is open yet. */
static inline void
pair_make(struct pair *pair, uint64_t seed, bool is_whole)
{
    pair->shipped = pair->n_batches = 0;
    rig_init(&pair->primary, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    rig_init(&pair->replica, WAL_SYNC_INTERVAL, ID_RANDOM, seed);
    pair->primary.data.has_whole_records = is_whole;
    pair->primary.data.log_file_bytes = UINT64_C(1) << 18;
    pair->replica.data.is_replicated = true;
    pair->replica.data.log_file_bytes = UINT64_C(1) << 18;
    struct disk *disk = pair->primary.data.disk;
    pair->calls = *disk->calls;
    unlink_file = pair->calls.unlink;
    pair->calls.unlink = unlink_other;
    disk->calls = &pair->calls;
}

/* A term of a replica begins: it is the primary, and alone. */
static inline uint64_t
begin_term(struct rig *rig, const char *name)
{
    uint64_t seq;
    ck_assert_int_eq(
        store_begin_term(rig->store, name, strlen(name), 0, &seq), 0);
    ck_assert_uint_eq(seq_n(seq), 1);
    ck_assert_int_eq(store_fault(rig->store), 0);
    store_set_committed(rig->store, UINT64_MAX);
    return seq;
}

/* Of a directory with copies; what its log has counts as committed. */
static inline void
open_replicated(struct rig *rig)
{
    ck_assert_int_eq(rig_open(rig), 0);
    ck_assert_int_eq(store_fault(rig->store), ERR_NOT_PRIMARY);
    store_set_committed(rig->store, UINT64_MAX);
}

static inline void
pair_open(struct pair *pair)
{
    if (pair->primary.data.is_replicated) {
        open_replicated(&pair->primary);
        (void)begin_term(&pair->primary, "a");
    } else {
        ck_assert_int_eq(rig_open(&pair->primary), 0);
    }
    open_replicated(&pair->replica);
    manifest_init(&pair->manifest);
    ck_assert_int_eq(
        manifest_read(pair->primary.data.disk, &pair->manifest, NULL), 0);
}

static inline void
pair_init(struct pair *pair, uint64_t seed, bool is_whole)
{
    pair_make(pair, seed, is_whole);
    pair_open(pair);
}

static inline void
pair_fini(struct pair *pair)
{
    manifest_fini(&pair->manifest);
    ck_assert_int_eq(rig_close(&pair->primary), 0);
    rig_fini(&pair->primary);
    ck_assert_int_eq(rig_close(&pair->replica), 0);
    rig_fini(&pair->replica);
}

/* True where both have the same counters, columns and records. */
static inline bool
pair_is_equal(struct pair *pair)
{
    const struct schema *schema = quiet_schema(pair->primary.store);
    const struct schema *other = quiet_schema(pair->replica.store);
    bool is_equal = schema_last_serial(schema) == schema_last_serial(other);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *a = schema_counter_at(schema, slot);
        const struct schema_counter *b = schema_counter_at(other, slot);
        ck_assert_int_eq(a == NULL, b == NULL);
        if (a == NULL || a->members_of != 0) {
            continue;
        }
        ck_assert_uint_eq(a->n_columns, b->n_columns);
        struct store_digest one = digest_of(pair->primary.store, a->name.text);
        struct store_digest two = digest_of(pair->replica.store, a->name.text);
        is_equal &= one.sum == two.sum && one.records == two.records;
    }
    return is_equal;
}

#endif

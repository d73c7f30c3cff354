/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_APPLIER_HELP_H
#define UNIT_APPLIER_HELP_H

/* A primary and a replica in one process: what the primary's log has is read
 * from its files and put to the replica. */

#include "schema/restore.h"
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

/* Has the log have a batch under its number; who makes a log of the primary's
 * batches one by one gives them the same numbers. */
static inline int
put_batch(struct wal *wal, uint64_t seq, const uint8_t *payload, size_t len)
{
    if (wal_last(wal) >= seq) {
        return 0;
    }
    ck_assert_uint_eq(wal_append(wal, payload, len), seq);
    ck_assert_uint_eq(wal_cut(wal), seq); /* what comes is behind it */
    (void)wal_commit(wal, seq);
    return 0;
}

static inline int
ship_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct pair *pair = context;
    if (seq <= pair->shipped || seq > pair->ship_to) {
        return 0;
    }
    ck_assert_uint_eq(seq, pair->shipped + 1);
    pair->shipped = seq;
    pair->n_batches++;
    int err = store_put_batch(pair->replica.store, seq, payload, len);
    while (err == ERR_LOG_FULL) { /* the queue is */
        sched_yield();
        err = store_put_batch(pair->replica.store, seq, payload, len);
    }
    ck_assert_int_eq(err, 0);
    return 0;
}

/* Puts what the primary's log has to the replica, up to a batch. */
static inline void
ship_to(struct pair *pair, uint64_t ship_to)
{
    struct rig *rig = &pair->primary;
    struct replay_end end;
    uint64_t seq = rig_stat(rig, "last_seq");
    pair->ship_to = ship_to;
    ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
    const struct replay replay = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .epoch = pair->manifest.epoch,
        .histories = &pair->manifest.histories,
        .number = pair->manifest.log_number,
        .last_seq = seq,
        .batch_fn = ship_batch,
        .context = pair};
    ck_assert_int_eq(replay_run(&replay, &end), 0);
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
    pair->replica.data.has_whole_records = true;
    pair->replica.data.log_file_bytes = UINT64_C(1) << 18;
    pair->replica.config.is_replica = true;
    pair->replica.config.put_batch_fn = put_batch;
    struct disk *disk = pair->primary.data.disk;
    pair->calls = *disk->calls;
    unlink_file = pair->calls.unlink;
    pair->calls.unlink = unlink_other;
    disk->calls = &pair->calls;
}

static inline void
pair_open(struct pair *pair)
{
    ck_assert_int_eq(rig_open(&pair->primary), 0);
    ck_assert_int_eq(rig_open(&pair->replica), 0);
    manifest_init(&pair->manifest);
    ck_assert_int_eq(
        manifest_read(pair->primary.data.disk, &pair->manifest, NULL), 0);
    ck_assert_int_eq(store_fault(pair->replica.store), ERR_NOT_PRIMARY);
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

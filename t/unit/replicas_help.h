/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_REPLICAS_HELP_H
#define UNIT_REPLICAS_HELP_H

/* Stores in one process whose directories are copies: one follows the log of
 * another, as a server would, and what both have in the end is compared. */

#include "base/checksum.h"
#include "schema/restore.h"
#include "store/store_repl.h"
#include "unit/digest_help.h"
#include "unit/durable_help.h"
#include "wal/manifest.h"
#include "wal/replay.h"
#include "wal/replica_file.h"

static inline struct store_position
position_of(struct rig *rig)
{
    struct store_position at;
    store_position(rig->store, &at);
    ck_assert(history__is_sound(&at.history));
    ck_assert(history_is_end(&at.history, at.written));
    ck_assert_uint_le(at.synced, at.written);
    ck_assert_uint_le(at.applied, at.written);
    ck_assert_uint_le(at.begin, at.written);
    return at;
}

static inline void
copy_init(struct rig *rig, enum wal_sync sync, uint64_t seed)
{
    rig_init(rig, sync, ID_RANDOM, seed);
    rig->data.is_replicated = true;
    rig->data.log_file_bytes = UINT64_C(1) << 15;
    rig->data.keep_cut_bytes = UINT64_C(1) << 20;
}

static inline void
copy_open(struct rig *rig)
{
    ck_assert_int_eq(rig_open(rig), 0);
    ck_assert_int_eq(store_fault(rig->store), ERR_NOT_PRIMARY);
}

/* A term begins, alone: what its log has is committed. */
static inline uint64_t
copy_lead(struct rig *rig, const char *name)
{
    uint64_t seq;
    ck_assert_int_eq(
        store_begin_term(rig->store, name, strlen(name), 0, &seq), 0);
    ck_assert_int_eq(store_fault(rig->store), 0);
    store_set_committed(rig->store, UINT64_MAX);
    return seq;
}

/* All that a store was given is in its file: the number of the last batch. */
static inline uint64_t
copy_written(struct rig *rig)
{
    uint64_t last = rig_stat(rig, "last_seq");
    (void)store_commit(rig->store, last);
    while (position_of(rig).written < last) {
        sched_yield();
    }
    return position_of(rig).written;
}

static inline void
note_more(struct wal_follow *follow)
{
    (void)follow;
}

/* Puts what one has to the other, from where that stands up to batch seq, and
 * waits until it is written. */
static inline void
feed_to(struct rig *from, struct rig *to, uint64_t seq)
{
    struct wal_follow follow;
    struct wal_follow_batch batch = {0};
    uint64_t at = position_of(to).written;
    if (at >= seq) {
        return;
    }
    ck_assert_int_eq(
        store_follow(from->store, &follow, at + 1, UINT64_MAX, note_more), 0);
    while (batch.seq < seq) {
        ck_assert_int_eq(wal_follow_next(&follow, &batch), 0);
        ck_assert_ptr_nonnull(batch.payload);
        int err;
        while ((err = store_put_batch(to->store, batch.seq, batch.payload,
                    batch.len)) == ERR_LOG_FULL) {
            sched_yield();
        }
        ck_assert_int_eq(err, 0);
    }
    wal_follow_close(&follow);
    (void)copy_written(to);
}

/* The same up to its end, and it is applied. */
static inline void
feed(struct rig *from, struct rig *to)
{
    uint64_t seq = copy_written(from);
    feed_to(from, to, seq);
    ck_assert_int_eq(store_drain_batches(to->store), 0);
    ck_assert_uint_eq(store_applied(to->store), seq);
    ck_assert_uint_eq(copy_written(to), seq);
}

/* What a log has from a batch on. */
struct log_sum {
    uint64_t from, hash, n, last;
};

static inline int
add_to_sum(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct log_sum *sum = context;
    if (seq >= sum->from) {
        uint64_t word[] = {sum->hash, seq, checksum64(payload, len, 0)};
        sum->hash = checksum64(word, sizeof word, 0);
        sum->n++;
        sum->last = seq;
    }
    return 0;
}

static inline struct log_sum
log_sum_of(struct rig *rig, uint64_t from)
{
    struct log_sum sum = {.from = from};
    struct manifest manifest;
    struct replay_end end;
    uint64_t last = copy_written(rig);
    while (position_of(rig).synced < last) {
        sched_yield();
    }
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    const struct replay replay = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .epoch = manifest.epoch,
        .histories = &manifest.histories,
        .number = manifest.log_number,
        .last_seq = last,
        .batch_fn = add_to_sum,
        .context = &sum};
    ck_assert_int_eq(replay_run(&replay, &end), 0);
    manifest_fini(&manifest);
    return sum;
}

/* Both have the same log from the later of their beginnings on, the same
 * history and the same records. */
static inline void
expect_same(struct rig *a, struct rig *b)
{
    struct store_position one = position_of(a), two = position_of(b);
    uint64_t from = (one.begin > two.begin ? one.begin : two.begin) + 1;
    ck_assert_uint_eq(one.written, two.written);
    ck_assert_uint_eq(one.history.n, two.history.n);
    ck_assert_mem_eq(one.history.at, two.history.at,
        one.history.n * sizeof one.history.at[0]);
    struct log_sum sum = log_sum_of(a, from), other = log_sum_of(b, from);
    ck_assert_uint_eq(sum.n, other.n);
    ck_assert_uint_eq(sum.hash, other.hash);
    ck_assert_uint_eq(sum.last, one.written);
    const struct schema *schema = quiet_schema(a->store);
    ck_assert_uint_eq(schema_last_serial(schema),
        schema_last_serial(quiet_schema(b->store)));
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL) {
            struct store_digest x = digest_of(a->store, counter->name.text);
            struct store_digest y = digest_of(b->store, counter->name.text);
            ck_assert_uint_eq(x.sum, y.sum);
            ck_assert_uint_eq(x.records, y.records);
        }
    }
}

/* REPLICA of a store that is stopped: its log is to be cut behind a batch. */
static inline void
order_cut(struct rig *rig, uint64_t seq)
{
    struct replica_file file = {.level = REPLICA_WRITTEN, .cut_seq = seq};
    ck_assert(node_name_set(&file.node, "db-1", 4));
    ck_assert_int_eq(replica_file_write(rig->data.disk, &file), 0);
}

static inline struct replica_file
read_replica(struct rig *rig)
{
    struct replica_file file;
    ck_assert_int_eq(replica_file_read(rig->data.disk, &file), 0);
    return file;
}

#endif

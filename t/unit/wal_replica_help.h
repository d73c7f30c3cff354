/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_WAL_REPLICA_HELP_H
#define UNIT_WAL_REPLICA_HELP_H

/* Logs whose numbers jump, on a fake disk: what must be in them, and what is. A
 * batch is as long as its place in the list says, and its bytes say which one
 * it is. */

#include "unit/wal_rig.h"
#include "wal/wal_replica.h"

enum { BATCHES_MAX = 64, BATCH_BYTES_MAX = 3000 };

struct told_batch {
    uint64_t seq;
    size_t len;
    uint8_t bytes[BATCH_BYTES_MAX];
};

struct told {
    size_t n;
    struct told_batch batch[BATCHES_MAX];
};

static inline struct told *
told_create(void)
{
    struct told *told = calloc(1, sizeof *told);
    ck_assert_ptr_nonnull(told);
    return told;
}

/* Adds a batch of cells, of some length. */
static inline const struct told_batch *
tell(struct told *told, uint64_t seq)
{
    ck_assert_uint_lt(told->n, BATCHES_MAX);
    struct told_batch *batch = &told->batch[told->n++];
    batch->seq = seq;
    batch->len = 4 + told->n * 97 % (BATCH_BYTES_MAX - 4);
    memset(batch->bytes, (int)(told->n % 100 + 1), batch->len);
    memcpy(batch->bytes, "\x09\1\2\3", 4);
    return batch;
}

/* Adds the first batch of a term, which begins behind the last one. */
static inline const struct told_batch *
tell_term(struct told *told, uint32_t number)
{
    struct entry_term term = {.term = number,
        .branch = 1000 + number,
        .last_seq = told->n == 0 ? 0 : told->batch[told->n - 1].seq};
    ck_assert_uint_lt(told->n, BATCHES_MAX);
    ck_assert(node_name_set(&term.node, "n", 1));
    struct told_batch *batch = &told->batch[told->n++];
    batch->seq = seq_first(number);
    batch->len = entry__put_term(batch->bytes, &term);
    return batch;
}

/* Two terms, and before them what a directory has that was alone: a start is
 * among that. */
static inline struct told *
tell_history(unsigned n_each)
{
    struct told *told = told_create();
    for (unsigned i = 0; i < n_each; i++) {
        (void)tell(told, 1 + i);
    }
    for (unsigned i = 0; i < n_each; i++) {
        (void)tell(told, SEQ_GAP + 1 + n_each + i);
    }
    for (uint32_t term = 1; term <= 4; term += 3) {
        (void)tell_term(told, term);
        for (unsigned i = 1; i <= n_each; i++) {
            (void)tell(told, seq_make(term, 1 + i));
        }
    }
    return told;
}

static inline int
put(struct rig *rig, const struct told_batch *batch)
{
    return wal_put_batch(rig->wal, batch->seq, batch->bytes, batch->len);
}

static inline int
take_told(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct told *told = context;
    ck_assert_uint_lt(told->n, BATCHES_MAX);
    ck_assert_uint_le(len, BATCH_BYTES_MAX);
    struct told_batch *batch = &told->batch[told->n++];
    batch->seq = seq;
    batch->len = len;
    memcpy(batch->bytes, payload, len);
    return 0;
}

/* What a start would read, and where it ends. */
static inline struct told *
read_told(struct disk *disk, struct replay_end *end)
{
    struct told *told = told_create();
    struct replay replay = {.disk = disk,
        .epoch = EPOCH,
        .number = 1,
        .batch_fn = take_told,
        .context = told};
    ck_assert_int_eq(replay_run(&replay, end), 0);
    return told;
}

/* The first n of what is wanted are the first n of what is there. */
static inline void
expect_same(const struct told *is, const struct told *wanted, size_t n)
{
    ck_assert_uint_le(n, is->n);
    ck_assert_uint_le(n, wanted->n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(is->batch[i].seq, wanted->batch[i].seq);
        ck_assert_uint_eq(is->batch[i].len, wanted->batch[i].len);
        ck_assert_int_eq(memcmp(is->batch[i].bytes, wanted->batch[i].bytes,
                             is->batch[i].len),
            0);
    }
}

/* The log has these batches and no other. */
static inline void
expect_log(struct disk *disk, const struct told *wanted)
{
    struct replay_end end;
    struct told *is = read_told(disk, &end);
    ck_assert_uint_eq(is->n, wanted->n);
    expect_same(is, wanted, wanted->n);
    free(is);
}

static inline void
replica_init(struct rig *rig, enum wal_sync sync, uint64_t seed)
{
    rig_init(rig, sync, seed);
    rig->config.start.is_replica = true;
}

/* The terms of the first n. */
static inline struct history
told_terms(const struct told *told, size_t n)
{
    struct history terms = {0};
    for (size_t i = 0; i < n; i++) {
        const struct told_batch *batch = &told->batch[i];
        struct entry_reader reader = {
            .at = batch->bytes, .end = batch->bytes + batch->len};
        struct entry entry;
        if (batch->bytes[0] == (uint8_t)ENTRY_TERM) {
            ck_assert(entry_next(&reader, &entry));
            ck_assert(history_begin(&terms, entry.term.term, entry.term.branch,
                entry.term.last_seq));
        }
    }
    return terms;
}

/* Opens the log of a replica anew, behind what is found; returns how many
 * batches that is. No number is left out. */
static inline size_t
replica_reopen(struct rig *rig, const struct told *wanted)
{
    struct replay_end end;
    struct told *is = read_told(rig->disk, &end);
    size_t n = is->n;
    expect_same(is, wanted, n);
    free(is);
    struct history terms = told_terms(wanted, n);
    rig->config.start.terms = &terms;
    rig->config.start.next_number = end.number + 1;
    rig->config.start.next_seq = end.next_seq;
    rig->config.start.before_end = end.end;
    ck_assert_int_eq(rig_open(rig), 0);
    rig->config.start.terms = NULL;
    return n;
}

#endif

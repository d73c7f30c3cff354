/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_WAL_RIG_H
#define UNIT_WAL_RIG_H

/* A log on a fake disk, with somebody who waits for it. */

#include "base/mutex.h"
#include "unit/wal_help.h"
#include "wal/replay.h"

#include <pthread.h>
#include <stdbool.h>

struct rig {
    struct fake_disk *fake;
    struct disk *disk;
    struct logger logger;
    struct wal_config config;
    struct wal *wal;
    uint64_t n; /* numbers appended */

    struct wal_listener listener;
    struct mutex lock;
    pthread_cond_t told;
    unsigned n_told;
};

static inline void
rig_told(struct wal_listener *listener)
{
    struct rig *rig =
        (struct rig *)((char *)listener - offsetof(struct rig, listener));
    mutex_lock(&rig->lock);
    rig->n_told++;
    pthread_cond_broadcast(&rig->told);
    mutex_unlock(&rig->lock);
}

static inline void
rig_init(struct rig *rig, enum wal_sync sync, uint64_t seed)
{
    *rig = (struct rig){.fake = fake_disk_create(seed),
        .config = {.sync = sync,
            .interval_ms = 1000,
            .file_bytes = 4096,
            .unsynced_bytes_max = 1 << 20,
            .retry_ms = 1,
            .slow_ms = 1000000, /* a machine may be busy */
            .idle_ms = 1 << 30, /* no marks, unless wanted */
            .start = {.epoch = EPOCH, .next_number = 1, .next_seq = 1}},
        .listener = {.moved_fn = rig_told}};
    rig->disk = fake_disk_as_disk(rig->fake);
    rig->config.disk = rig->disk;
    rig->config.logger = &rig->logger;
    mutex_init(&rig->lock);
    pthread_cond_init(&rig->told, NULL);
}

static inline int
rig_open(struct rig *rig)
{
    int err = wal_open(&rig->config, &rig->wal);
    if (err == 0) {
        wal_listen(rig->wal, &rig->listener);
        wal_verify(rig->wal);
    }
    return err;
}

static inline int
rig_close(struct rig *rig)
{
    wal_unlisten(rig->wal, &rig->listener);
    wal_verify(rig->wal);
    return wal_close(&rig->wal);
}

static inline void
rig_fini(struct rig *rig)
{
    fake_disk_destroy(&rig->fake);
    pthread_cond_destroy(&rig->told);
    mutex_fini(&rig->lock);
}

/* Appends the next numbers in one call. */
static inline uint64_t
rig_append(struct rig *rig, unsigned numbers)
{
    uint8_t *bytes = malloc((size_t)numbers * 8);
    ck_assert_ptr_nonnull(bytes);
    for (unsigned i = 0; i < numbers; i++) {
        bytes_put_u64(bytes + (size_t)i * 8, rig->n + i);
    }
    rig->n += numbers;
    uint64_t seq = wal_append(rig->wal, bytes, (size_t)numbers * 8);
    free(bytes);
    return seq;
}

static inline unsigned
rig_n_told(struct rig *rig)
{
    mutex_lock(&rig->lock);
    unsigned n = rig->n_told;
    mutex_unlock(&rig->lock);
    return n;
}

static inline void
rig_wait_told(struct rig *rig, unsigned since)
{
    mutex_lock(&rig->lock);
    while (rig->n_told == since) {
        mutex_wait(&rig->lock, &rig->told);
    }
    mutex_unlock(&rig->lock);
}

/* What becomes of batch seq; waits for that as net does. */
static inline enum wal_outcome
rig_commit(struct rig *rig, uint64_t seq)
{
    unsigned n_told = rig_n_told(rig);
    enum wal_outcome outcome = wal_commit(rig->wal, seq);
    while (outcome == WAL_WAITS) {
        rig_wait_told(rig, n_told);
        n_told = rig_n_told(rig);
        outcome = wal_outcome(rig->wal, seq);
    }
    wal_verify(rig->wal);
    return outcome;
}

static inline struct wal_stats
rig_stats(struct rig *rig)
{
    struct wal_stats stats;
    wal_stats(rig->wal, &stats);
    wal_verify(rig->wal);
    return stats;
}

static inline int
count_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    uint64_t *bytes = context;
    (void)seq;
    (void)payload;
    *bytes += len;
    return 0;
}

/* The module that the server has for it finds the same. */
static inline void
expect_replay(struct disk *disk, const struct found *found)
{
    uint64_t bytes = 0;
    struct replay_end end;
    struct replay replay = {.disk = disk,
        .epoch = EPOCH,
        .number = found->first,
        .batch_fn = count_batch,
        .context = &bytes};
    ck_assert_int_eq(replay_run(&replay, &end), 0);
    ck_assert_uint_eq(end.number, found->number);
    ck_assert_uint_eq(end.end, found->end);
    ck_assert_uint_eq(end.next_seq, found->next_seq);
    ck_assert_uint_eq(bytes, found->n * 8);
}

/* Walks what is there now, closes nothing. */
static inline struct found
rig_walk(struct rig *rig)
{
    struct found found = walk(rig->disk, 0, 1);
    expect_replay(rig->disk, &found);
    return found;
}

/* Opens the log again behind what is found. */
static inline struct found
rig_reopen(struct rig *rig)
{
    struct found found = rig_walk(rig);
    rig->config.start = start_behind(rig->disk, &found);
    rig->n = found.n;
    ck_assert_int_eq(rig_open(rig), 0);
    return found;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/wal_follow: whoever follows a log gets each batch that is written once
 * and in order, from any one on, across files, failed ones and terms; he is
 * told when there is more, and when what he wants is gone. */
#include "wal/wal_follow.h"

#include "unit/wal_replica_help.h"

#include <errno.h>

#define NO_LIMIT UINT64_MAX

/* Somebody who follows, and sleeps until he is told. */
struct reader {
    struct wal_follow follow; /* first */
    struct mutex lock;
    pthread_cond_t told;
    unsigned n_told;
};

static void
be_told(struct wal_follow *follow)
{
    struct reader *reader = (struct reader *)follow;
    mutex_lock(&reader->lock);
    reader->n_told++;
    pthread_cond_broadcast(&reader->told);
    mutex_unlock(&reader->lock);
}

static int
reader_open(
    struct reader *reader, struct wal *wal, uint64_t seq, uint64_t bytes_max)
{
    mutex_init(&reader->lock);
    pthread_cond_init(&reader->told, NULL);
    reader->n_told = 0;
    return wal_follow_open(wal, &reader->follow, seq, bytes_max, be_told);
}

static void
reader_close(struct reader *reader)
{
    wal_follow_close(&reader->follow);
    pthread_cond_destroy(&reader->told);
    mutex_fini(&reader->lock);
}

/* The next batch, for which it waits; or an error. */
static int
reader_wait(struct reader *reader, struct wal_follow_batch *out)
{
    for (;;) {
        mutex_lock(&reader->lock);
        unsigned n_told = reader->n_told;
        mutex_unlock(&reader->lock);
        int err = wal_follow_next(&reader->follow, out);
        if (err != 0 || out->payload != NULL) {
            return err;
        }
        mutex_lock(&reader->lock);
        while (reader->n_told == n_told) {
            mutex_wait(&reader->lock, &reader->told);
        }
        mutex_unlock(&reader->lock);
    }
}

static void
expect_batch(
    const struct wal_follow_batch *is, const struct told_batch *wanted)
{
    ck_assert_ptr_nonnull(is->payload);
    ck_assert_uint_eq(is->seq, wanted->seq);
    ck_assert_uint_eq(is->len, wanted->len);
    ck_assert_int_eq(memcmp(is->payload, wanted->bytes, is->len), 0);
}

static void
expect_nothing(struct reader *reader)
{
    struct wal_follow_batch batch;
    ck_assert_int_eq(wal_follow_next(&reader->follow, &batch), 0);
    ck_assert_ptr_null(batch.payload);
}

/* From each batch on, through files, starts and terms. */
START_TEST(test_from_each)
{
    struct rig rig;
    struct told *told = tell_history(5);
    uint64_t number, seq;
    replica_init(&rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (size_t i = 0; i < told->n; i++) {
        ck_assert_int_eq(put(&rig, &told->batch[i]), 0);
        (void)rig_commit(&rig, told->batch[i].seq);
        if (i % 7 == 3) {
            ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), 0);
        }
    }
    for (size_t from = 0; from <= told->n; from++) {
        struct reader reader;
        struct wal_follow_batch batch;
        uint64_t last = from == 0 ? 0 : told->batch[from - 1].seq;
        ck_assert_int_eq(reader_open(&reader, rig.wal, last + 1, NO_LIMIT), 0);
        for (size_t i = from; i < told->n; i++) {
            ck_assert_int_eq(reader_wait(&reader, &batch), 0);
            expect_batch(&batch, &told->batch[i]);
        }
        expect_nothing(&reader);
        reader_close(&reader);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
    free(told);
}
END_TEST

/* What is written is there before it is synced, and he is told then. */
START_TEST(test_before_the_sync)
{
    struct rig rig;
    struct reader reader;
    struct wal_follow_batch batch;
    rig_init(&rig, WAL_SYNC_ALWAYS, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(reader_open(&reader, rig.wal, 1, NO_LIMIT), 0);
    expect_nothing(&reader);
    fake_disk_hold(rig.fake, FAKE_SYNC);
    uint64_t seq = rig_append(&rig, 2);
    ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_WAITS);
    ck_assert_int_eq(reader_wait(&reader, &batch), 0);
    ck_assert_uint_eq(batch.seq, seq);
    ck_assert_uint_eq(batch.len, 16);
    ck_assert_int_eq(wal_outcome(rig.wal, seq), WAL_WAITS);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
    expect_nothing(&reader);
    reader_close(&reader);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* A batch that is larger than what is read at once, between small ones. */
START_TEST(test_large)
{
    struct rig rig;
    struct reader reader;
    struct wal_follow_batch batch;
    static const size_t lens[] = {5, FRAME_PAYLOAD_MAX, 7,
        WAL_FOLLOW_BYTES - FRAME_BATCH_BYTES, 1, WAL_FOLLOW_BYTES, 9};
    uint8_t *payload = malloc(FRAME_PAYLOAD_MAX);
    ck_assert_ptr_nonnull(payload);
    replica_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.unsynced_bytes_max = 8 << 20;
    ck_assert_int_eq(rig_open(&rig), 0);
    for (size_t i = 0; i < COUNT_OF(lens); i++) {
        memset(payload, (int)i + 1, lens[i]);
        ck_assert_int_eq(wal_put_batch(rig.wal, i + 1, payload, lens[i]), 0);
        (void)rig_commit(&rig, i + 1);
    }
    ck_assert_int_eq(reader_open(&reader, rig.wal, 1, NO_LIMIT), 0);
    for (size_t i = 0; i < COUNT_OF(lens); i++) {
        ck_assert_int_eq(reader_wait(&reader, &batch), 0);
        ck_assert_uint_eq(batch.seq, i + 1);
        ck_assert_uint_eq(batch.len, lens[i]);
        memset(payload, (int)i + 1, lens[i]);
        ck_assert_int_eq(memcmp(batch.payload, payload, lens[i]), 0);
    }
    reader_close(&reader);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
    free(payload);
}
END_TEST

/* Checkpoints have let go of what he wants: at once, or while he reads. */
START_TEST(test_gone)
{
    struct rig rig;
    struct reader reader;
    struct wal_follow_batch batch;
    uint64_t number, seq;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned i = 0; i < 6; i++) {
        (void)rig_append(&rig, 3);
        ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), 0);
    }
    wal_forget(rig.wal, 2);
    ck_assert_int_eq(reader_open(&reader, rig.wal, 1, NO_LIMIT), ERR_LOG_GONE);
    ck_assert_int_eq(reader_open(&reader, rig.wal, 8, NO_LIMIT), ERR_LOG_GONE);
    ck_assert_int_eq(reader_open(&reader, rig.wal, 2, 0), 0);
    ck_assert_int_eq(reader_wait(&reader, &batch), 0);
    ck_assert_uint_eq(batch.seq, 2);
    wal_forget(rig.wal, 5);
    ck_assert_int_eq(reader_wait(&reader, &batch), ERR_LOG_GONE);
    reader_close(&reader);
    ck_assert_uint_eq(rig_stats(&rig).first_file, 5);
    ck_assert_int_eq(reader_open(&reader, rig.wal, 5, NO_LIMIT), 0);
    wal_forget(rig.wal, number);
    ck_assert_uint_eq(rig_stats(&rig).first_file, 5);
    ck_assert_int_eq(reader_wait(&reader, &batch), 0);
    ck_assert_int_eq(reader_wait(&reader, &batch), 0);
    ck_assert_uint_eq(batch.seq, 6);
    ck_assert_uint_eq(rig_stats(&rig).first_file, 6);
    reader_close(&reader);
    ck_assert_uint_eq(rig_stats(&rig).first_file, number);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Each call of the disk fails once while he reads: he is told, or it does not
 * matter, and reads on where he was. */
START_TEST(test_disk_fails)
{
    struct told *told = tell_history(4);
    bool has_failed = true;
    unsigned n_said = 0;
    for (unsigned n = 1; has_failed; n++) {
        struct rig rig;
        struct reader reader;
        struct wal_follow_batch batch;
        replica_init(&rig, WAL_SYNC_INTERVAL, n);
        ck_assert_int_eq(rig_open(&rig), 0);
        for (size_t i = 0; i < told->n; i++) {
            ck_assert_int_eq(put(&rig, &told->batch[i]), 0);
            (void)rig_commit(&rig, told->batch[i].seq);
        }
        ck_assert_int_eq(
            wal_sync_up_to(rig.wal, told->batch[told->n - 1].seq), 0);
        fake_disk_fail(
            rig.fake, 1 << FAKE_OPEN | 1 << FAKE_READ, n, EIO, false);
        int err = reader_open(&reader, rig.wal, 1, NO_LIMIT);
        ck_assert(err == 0 || err == ERR_DISK);
        n_said += err != 0;
        if (err != 0) {
            ck_assert_int_eq(reader_open(&reader, rig.wal, 1, NO_LIMIT), 0);
        }
        for (size_t i = 0; i < told->n;) {
            err = reader_wait(&reader, &batch);
            ck_assert(err == 0 || err == ERR_DISK);
            n_said += err != 0;
            if (err == 0) {
                expect_batch(&batch, &told->batch[i++]);
            }
        }
        has_failed = fake_disk_heal(rig.fake) > 0;
        reader_close(&reader);
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
    ck_assert_uint_gt(n_said, 8);
    free(told);
}
END_TEST

/* A batch that is not what was written is said to be so. */
START_TEST(test_damage)
{
    struct rig rig;
    struct reader reader;
    struct wal_follow_batch batch;
    rig_init(&rig, WAL_SYNC_ALWAYS, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
    ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
    fake_disk_flip(rig.fake, "log-00000000000000000001.wal",
        FRAME_FILE_BYTES + 2 * FRAME_BATCH_BYTES + 8, 1);
    ck_assert_int_eq(reader_open(&reader, rig.wal, 1, NO_LIMIT), 0);
    ck_assert_int_eq(reader_wait(&reader, &batch), 0);
    ck_assert_int_eq(reader_wait(&reader, &batch), ERR_CORRUPT);
    ck_assert_int_eq(reader_wait(&reader, &batch), ERR_CORRUPT);
    reader_close(&reader);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Those who follow while others append, files are exchanged and let go of, and
 * syncs and writes fail. Nobody polls: a call that is missed hangs. */
enum { READERS = 3, APPENDS = 300, ROTATE_EACH = 23, FAIL_EACH = 17 };

struct follower {
    struct reader reader;
    uint64_t n_wanted; /* numbers */
    pthread_t thread;
};

static void *
follow(void *arg)
{
    struct follower *follower = arg;
    struct wal_follow_batch batch;
    uint64_t n = 0, seq = 0;
    while (n < follower->n_wanted) {
        ck_assert_int_eq(reader_wait(&follower->reader, &batch), 0);
        ck_assert_uint_eq(batch.seq, seq + 1);
        seq = batch.seq;
        for (size_t at = 0; at < batch.len; at += 8) {
            ck_assert_uint_eq(bytes_get_u64(batch.payload + at), n);
            n++;
        }
    }
    return NULL;
}

static void
follow_live(enum wal_sync mode, bool fails)
{
    struct rig rig;
    struct follower follower[READERS];
    uint64_t number, seq;
    rig_init(&rig, mode, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned i = 0; i < READERS; i++) {
        follower[i].n_wanted = 2 * APPENDS;
        ck_assert_int_eq(
            reader_open(&follower[i].reader, rig.wal, 1, NO_LIMIT), 0);
        ck_assert_int_eq(
            pthread_create(&follower[i].thread, NULL, follow, &follower[i]),
            0);
    }
    for (unsigned i = 1; i <= APPENDS; i++) {
        if (fails && i % FAIL_EACH == 0) {
            fake_disk_fail(rig.fake,
                i % 2 == 0 ? 1 << FAKE_SYNC : 1 << FAKE_WRITE, 1, EIO, false);
        }
        (void)rig_commit(&rig, rig_append(&rig, 2));
        if (i % ROTATE_EACH == 0 && wal_rotate(rig.wal, &number, &seq) == 0) {
            wal_forget(rig.wal, number);
        }
    }
    (void)fake_disk_heal(rig.fake);
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(follower[i].thread, NULL);
        reader_close(&follower[i].reader);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}

START_TEST(test_live)
{
    follow_live(WAL_SYNC_NONE, false);
    follow_live(WAL_SYNC_INTERVAL, false);
    follow_live(WAL_SYNC_ALWAYS, false);
}
END_TEST

START_TEST(test_live_with_a_bad_disk)
{
    follow_live(WAL_SYNC_NONE, true);
    follow_live(WAL_SYNC_INTERVAL, true);
    follow_live(WAL_SYNC_ALWAYS, true);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_from_each, test_before_the_sync,
        test_large, test_gone, test_disk_fails, test_damage, test_live,
        test_live_with_a_bad_disk};
    return run_tests("wal follow", tests, COUNT_OF(tests));
}

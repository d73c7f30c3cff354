/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/wal_pin: readers of a log that is written, checkpointed and cut off
 * behind them. What a pin holds is there, what nobody holds is not, and who
 * falls behind too far is told. */
#include "wal/wal_pin.h"

#include "unit/wal_rig.h"
#include "wal/entry.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    FILES = 8,   /* made by begin(), one batch in each but the last */
    NUMBERS = 6, /* in a batch */
    FILE_BYTES = FRAME_FILE_BYTES + FRAME_BATCH_BYTES + NUMBERS * 8
};

#define NO_LIMIT UINT64_MAX

/* File n has batch n, the last one nothing. */
static void
begin(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(rig), 0);
    for (uint64_t i = 1; i < FILES; i++) {
        uint64_t number, seq;
        ck_assert_uint_eq(rig_append(rig, NUMBERS), i);
        ck_assert_int_eq(wal_rotate(rig->wal, &number, &seq), 0);
        ck_assert_uint_eq(number, i + 1);
    }
}

static void
end(struct rig *rig)
{
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* These files are there, and no others; the figures say so too. */
static void
expect_files(struct rig *rig, uint64_t first, uint64_t pinned_files)
{
    struct found_names names = {.n = 0};
    struct wal_stats stats = rig_stats(rig);
    ck_assert_int_eq(rig->disk->calls->list(rig->disk, find_name, &names), 0);
    ck_assert_uint_eq(names.n, FILES - first + 1);
    ck_assert_uint_eq(names.number[0], first);
    ck_assert_uint_eq(names.number[names.n - 1], FILES);
    ck_assert_uint_eq(stats.first_file, first);
    ck_assert_uint_eq(
        stats.live_bytes, (FILES - first) * FILE_BYTES + FRAME_FILE_BYTES);
    ck_assert_uint_eq(stats.pinned_bytes, pinned_files * FILE_BYTES);
}

/* What is read from a pin on: the numbers must follow one another. */
struct reading {
    uint64_t n;        /* the next number */
    uint64_t next_seq; /* the next batch */
};

static int
read_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct reading *reading = context;
    ck_assert_uint_eq(seq, reading->next_seq);
    for (size_t at = 0; at < len; at += 8) {
        ck_assert_uint_eq(bytes_get_u64(payload + at), reading->n);
        reading->n++;
    }
    reading->next_seq++;
    return 0;
}

/* Reads on up to batch last_seq; 0 or ERR_. */
static int
read_on(struct rig *rig, const struct wal_pin *pin, struct reading *reading,
    uint64_t last_seq)
{
    struct replay_end end;
    struct replay replay = {.disk = rig->disk,
        .epoch = EPOCH,
        .number = pin->number,
        .from_seq = reading->next_seq,
        .last_seq = last_seq,
        .batch_fn = read_batch,
        .context = reading};
    return replay_run(&replay, &end);
}

/* Wherever a pin is, what is from there on can be read, and goes when the pin
 * moves on or is taken away. */
START_TEST(test_holds)
{
    for (uint64_t seq = 1; seq <= FILES; seq++) {
        struct rig rig;
        struct wal_pin pin;
        begin(&rig);
        ck_assert_int_eq(wal_pin(rig.wal, &pin, seq, NO_LIMIT), 0);
        ck_assert_uint_eq(pin.number, seq);
        wal_forget(rig.wal, FILES);
        expect_files(&rig, seq, FILES - seq);
        struct reading reading = {(seq - 1) * NUMBERS, seq};
        ck_assert_int_eq(read_on(&rig, &pin, &reading, 0), 0);
        ck_assert_uint_eq(reading.next_seq, FILES);
        ck_assert_uint_eq(reading.n, rig.n);
        ck_assert_int_eq(wal_pin_check(rig.wal, &pin), 0);
        for (uint64_t next = seq; next <= FILES; next++) {
            ck_assert_int_eq(wal_pin__move(rig.wal, &pin, next), 0);
            ck_assert_uint_eq(pin.number, next);
            expect_files(&rig, next, FILES - next);
            if (next + 1 == FILES && seq % 2 == 0) {
                break; /* unpinned while it holds some */
            }
        }
        wal_unpin(rig.wal, &pin);
        expect_files(&rig, FILES, 0);
        end(&rig);
    }
}
END_TEST

/* A pin holds nothing that is not to be forgotten anyway. */
START_TEST(test_holds_no_more)
{
    struct rig rig;
    struct wal_pin pin;
    begin(&rig);
    ck_assert_int_eq(wal_pin(rig.wal, &pin, 6, NO_LIMIT), 0);
    wal_forget(rig.wal, 4);
    expect_files(&rig, 4, 0);
    wal_forget(rig.wal, 7);
    expect_files(&rig, 6, 1);
    wal_forget(rig.wal, 3); /* later, and says less */
    expect_files(&rig, 6, 1);
    wal_unpin(rig.wal, &pin);
    expect_files(&rig, 7, 0);
    end(&rig);
}
END_TEST

/* The lowest of several holds. */
START_TEST(test_several)
{
    struct rig rig;
    struct wal_pin pin[3];
    begin(&rig);
    for (uint64_t i = 0; i < COUNT_OF(pin); i++) {
        ck_assert_int_eq(wal_pin(rig.wal, &pin[i], 3 + i, NO_LIMIT), 0);
    }
    wal_forget(rig.wal, FILES);
    expect_files(&rig, 3, FILES - 3);
    wal_unpin(rig.wal, &pin[1]);
    expect_files(&rig, 3, FILES - 3);
    ck_assert_int_eq(wal_pin__move(rig.wal, &pin[0], 7), 0);
    expect_files(&rig, 5, FILES - 5);
    wal_unpin(rig.wal, &pin[2]);
    expect_files(&rig, 7, FILES - 7);
    wal_unpin(rig.wal, &pin[0]);
    expect_files(&rig, FILES, 0);
    end(&rig);
}
END_TEST

/* At its limit a pin holds, one byte beyond it is broken and stays so; others
 * have limits of their own. */
START_TEST(test_breaks)
{
    struct rig rig;
    struct wal_pin small, large, exact;
    begin(&rig);
    ck_assert_int_eq(wal_pin(rig.wal, &small, 2, 3 * FILE_BYTES - 1), 0);
    ck_assert_int_eq(wal_pin(rig.wal, &exact, 3, 2 * FILE_BYTES), 0);
    wal_forget(rig.wal, 4);
    ck_assert_int_eq(wal_pin_check(rig.wal, &small), 0);
    expect_files(&rig, 2, 2);
    wal_forget(rig.wal, 5);
    ck_assert_int_eq(wal_pin_check(rig.wal, &small), ERR_LOG_GONE);
    ck_assert_int_eq(wal_pin_check(rig.wal, &exact), 0);
    expect_files(&rig, 3, 2);
    ck_assert_int_eq(wal_pin__move(rig.wal, &small, 7), ERR_LOG_GONE);
    ck_assert_int_eq(wal_pin(rig.wal, &large, 4, NO_LIMIT), 0);
    wal_forget(rig.wal, 6);
    ck_assert_int_eq(wal_pin_check(rig.wal, &exact), ERR_LOG_GONE);
    ck_assert_int_eq(wal_pin_check(rig.wal, &large), 0);
    expect_files(&rig, 4, 2);
    wal_unpin(rig.wal, &exact);
    wal_unpin(rig.wal, &small);
    expect_files(&rig, 4, 2);
    wal_unpin(rig.wal, &large);
    expect_files(&rig, 6, 0);
    ck_assert_int_eq(wal_pin(rig.wal, &small, 6, 0), 0); /* again, elsewhere */
    wal_forget(rig.wal, FILES);
    ck_assert_int_eq(wal_pin_check(rig.wal, &small), ERR_LOG_GONE);
    wal_unpin(rig.wal, &small);
    end(&rig);
}
END_TEST

/* No pin where the log is gone, or has never been. */
START_TEST(test_no_such_place)
{
    struct rig rig;
    struct wal_pin pin;
    begin(&rig);
    wal_forget(rig.wal, 4);
    ck_assert_int_eq(wal_pin(rig.wal, &pin, 0, NO_LIMIT), ERR_LOG_GONE);
    ck_assert_int_eq(wal_pin(rig.wal, &pin, 3, NO_LIMIT), ERR_LOG_GONE);
    ck_assert_int_eq(
        wal_pin(rig.wal, &pin, FILES + 1, NO_LIMIT), ERR_LOG_GONE);
    ck_assert_int_eq(
        wal_pin(rig.wal, &pin, UINT64_MAX, NO_LIMIT), ERR_LOG_GONE);
    ck_assert_int_eq(wal_pin(rig.wal, &pin, 4, NO_LIMIT), 0);
    ck_assert_int_eq(wal_pin__move(rig.wal, &pin, FILES + 1), ERR_LOG_GONE);
    ck_assert_int_eq(wal_pin_check(rig.wal, &pin), 0);
    wal_forget(rig.wal, FILES);
    expect_files(&rig, 4, FILES - 4);
    wal_unpin(rig.wal, &pin);
    end(&rig);
}
END_TEST

/* Each call of the disk fails once: no file goes that is held, what could not
 * be removed goes next time. */
START_TEST(test_disk_fails)
{
    bool is_done = false;
    for (unsigned n = 1; !is_done; n++) {
        struct rig rig;
        struct wal_pin pin;
        begin(&rig);
        fake_disk_fail(rig.fake, FAKE_ALL, n, EIO, false);
        int err = wal_pin(rig.wal, &pin, 5, NO_LIMIT);
        ck_assert(err == 0 || err == ERR_DISK);
        if (err != 0) {
            ck_assert_int_eq(wal_pin(rig.wal, &pin, 5, NO_LIMIT), 0);
        }
        wal_forget(rig.wal, FILES);
        ck_assert_uint_le(rig_stats(&rig).first_file, 5);
        err = wal_pin__move(rig.wal, &pin, 6);
        ck_assert(err == 0 || err == ERR_DISK);
        ck_assert_uint_eq(pin.number, err == 0 ? 6 : 5);
        is_done = fake_disk_heal(rig.fake) == 0;
        struct reading reading = {5 * NUMBERS, 6};
        ck_assert_int_eq(read_on(&rig, &pin, &reading, 0), 0);
        ck_assert_uint_eq(reading.n, rig.n);
        wal_unpin(rig.wal, &pin);
        ck_assert_uint_eq(rig_stats(&rig).first_file, FILES);
        end(&rig);
    }
}
END_TEST

/* What a failed sync made void is read from the file that has it anew. */
START_TEST(test_failed_sync)
{
    struct rig rig;
    struct wal_pin before, behind;
    rig_init(&rig, WAL_SYNC_ALWAYS, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
    ck_assert_int_eq(wal_pin(rig.wal, &before, 2, NO_LIMIT), 0);
    ck_assert_uint_eq(before.number, 1);
    fake_disk_fail(rig.fake, 1 << FAKE_SYNC, 1, EIO, false);
    ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
    ck_assert_int_eq(wal_pin(rig.wal, &behind, 2, NO_LIMIT), 0);
    ck_assert_uint_eq(behind.number, 2);
    struct reading reading = {1, 2};
    ck_assert_int_eq(read_on(&rig, &before, &reading, 2), 0);
    ck_assert_uint_eq(reading.n, 2);
    reading = (struct reading){1, 2};
    ck_assert_int_eq(read_on(&rig, &behind, &reading, 2), 0);
    ck_assert_uint_eq(reading.n, 2);
    wal_unpin(rig.wal, &before);
    wal_unpin(rig.wal, &behind);
    end(&rig);
}
END_TEST

/* Readers that follow while changes are appended and files are let go of at
 * once. One of them has no limit and misses nothing; the others may lose their
 * place, and are told so. */
enum { READERS = 3, BATCHES = 400, FORGET_EACH = 7 };

struct follower {
    struct rig *rig;
    uint64_t bytes_max;
    atomic_uint *n_ready;
    pthread_t thread;
};

static void *
follow(void *arg)
{
    struct follower *follower = arg;
    struct rig *rig = follower->rig;
    struct reading reading = {0, 1};
    struct wal_pin pin;
    int err = wal_pin(rig->wal, &pin, 1, follower->bytes_max);
    ck_assert_int_eq(err, 0);
    atomic_fetch_add(follower->n_ready, 1);
    while (err == 0 && reading.next_seq <= BATCHES) {
        uint64_t synced = rig_stats(rig).synced_seq;
        if (synced < reading.next_seq) {
            sched_yield();
            continue;
        }
        err = read_on(rig, &pin, &reading, synced);
        if (err == 0) {
            ck_assert_uint_eq(reading.next_seq, synced + 1);
            err = wal_pin__move(rig->wal, &pin, reading.next_seq);
        }
    }
    if (err != 0) { /* only if this is why */
        ck_assert_uint_lt(follower->bytes_max, NO_LIMIT);
        ck_assert_int_eq(wal_pin_check(rig->wal, &pin), ERR_LOG_GONE);
    } else {
        ck_assert_uint_eq(reading.n, BATCHES);
    }
    wal_unpin(rig->wal, &pin);
    return NULL;
}

START_TEST(test_followers)
{
    struct rig rig;
    struct follower follower[READERS];
    atomic_uint n_ready = 0;
    uint64_t number, seq;
    rig_init(&rig, WAL_SYNC_ALWAYS, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned i = 0; i < READERS; i++) {
        follower[i] = (struct follower){.rig = &rig,
            .bytes_max = i == 0 ? NO_LIMIT : 1000 * (i - 1),
            .n_ready = &n_ready};
        ck_assert_int_eq(
            pthread_create(&follower[i].thread, NULL, follow, &follower[i]),
            0);
    }
    while (atomic_load(&n_ready) < READERS) {
        sched_yield();
    }
    for (unsigned i = 1; i <= BATCHES; i++) {
        ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
        if (i % FORGET_EACH == 0) {
            ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), 0);
            wal_forget(rig.wal, number);
        }
    }
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(follower[i].thread, NULL);
    }
    ck_assert_uint_eq(rig_stats(&rig).first_file, number);
    ck_assert_uint_eq(rig_stats(&rig).pinned_bytes, 0);
    end(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_holds, test_holds_no_more, test_several,
        test_breaks, test_no_such_place, test_disk_fails, test_failed_sync,
        test_followers};
    return run_tests("wal pin", tests, COUNT_OF(tests));
}

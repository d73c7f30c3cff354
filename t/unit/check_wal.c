/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/wal, on a disk that works: what is committed when, which files there
 * are, and what is in them. */
#include "wal/wal.h"

#include "lib/fake_clock.h"
#include "unit/wal_rig.h"
#include "wal/entry.h"
#include "wal/names.h"
#include "wal/note.h"

#include <sched.h>
#include <unistd.h>

static const enum wal_sync modes[] = {
    WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};

/* All that is appended is found after a clean stop, and behind it an empty
 * file, whatever the mode. */
START_TEST(test_round_trip)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        rig_init(&rig, modes[i], 1);
        ck_assert_int_eq(rig_open(&rig), 0);
        for (unsigned k = 0; k < 300; k++) {
            uint64_t seq = rig_append(&rig, 1 + k % 5);
            ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
            ck_assert_int_eq(wal_outcome(rig.wal, seq), WAL_COMMITTED);
        }
        struct wal_stats stats = rig_stats(&rig);
        ck_assert_int_eq(wal_fault(rig.wal), 0);
        ck_assert_int_eq(rig_close(&rig), 0);
        fake_disk_crash(rig.fake);
        struct found found = rig_walk(&rig);
        ck_assert_uint_eq(found.n, rig.n);
        ck_assert_uint_eq(found.end, FRAME_FILE_BYTES);
        ck_assert_uint_ge(found.number, stats.file);
        ck_assert_uint_ge(found.number, 2);
        if (modes[i] == WAL_SYNC_ALWAYS) {
            ck_assert_uint_gt(stats.file, 2);
        }
        rig_fini(&rig);
    }
}
END_TEST

/* Entries appended before a commit are one batch and one write. */
START_TEST(test_group)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.interval_ms = 1000000;
    ck_assert_int_eq(rig_open(&rig), 0);
    uint64_t first = rig_append(&rig, 1);
    ck_assert_uint_eq(first, 1);
    ck_assert_uint_eq(rig_append(&rig, 1), first);
    ck_assert_uint_eq(wal_last(rig.wal), first);
    unsigned writes = fake_disk_count(rig.fake, FAKE_WRITE);
    ck_assert_int_eq(wal_commit(rig.wal, first), WAL_COMMITTED);
    ck_assert_uint_eq(fake_disk_count(rig.fake, FAKE_WRITE), writes + 1);
    ck_assert_uint_eq(rig_append(&rig, 1), first + 1);
    ck_assert_int_eq(wal_outcome(rig.wal, first + 1), WAL_WAITS);
    ck_assert_int_eq(wal_outcome(rig.wal, first), WAL_COMMITTED);
    /* not at once where the log's thread is allocating */
    ck_assert_int_eq(rig_commit(&rig, first + 1), WAL_COMMITTED);
    ck_assert_int_eq(wal_commit(rig.wal, first), WAL_COMMITTED);
    ck_assert_uint_eq(fake_disk_count(rig.fake, FAKE_WRITE), writes + 2);
    struct wal_stats stats = rig_stats(&rig);
    ck_assert_uint_eq(stats.appends, 3);
    ck_assert_uint_eq(stats.batches, 2);
    ck_assert_uint_eq(stats.bytes, 2 * FRAME_BATCH_BYTES + 3 * 8);
    ck_assert_uint_eq(stats.written_seq, 2);
    ck_assert_uint_eq(stats.file_bytes, FRAME_FILE_BYTES + stats.bytes);
    ck_assert_uint_eq(stats.live_bytes, stats.file_bytes);
    /* two appends, and one: 2 < 2^2, 1 < 2^1; bytes with the header */
    ck_assert_uint_eq(stats.batch_appends[2], 1);
    ck_assert_uint_eq(stats.batch_appends[1], 1);
    ck_assert_uint_eq(stats.batch_bytes[6], 2); /* 40 and 48 */
    ck_assert_uint_eq(rig_walk(&rig).n, 3);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* What is appended behind a cut is in a later batch, also where nothing was
 * open, or only a mark is in front of it; and it can be waited for. */
START_TEST(test_parted)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        rig_init(&rig, modes[i], 1);
        rig.config.idle_ms = 1;
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_uint_eq(wal_cut(rig.wal), 0);
        for (unsigned k = 0; k < 50; k++) {
            uint64_t marks = rig_stats(&rig).marks;
            uint64_t before = rig_append(&rig, 1);
            uint64_t seq = wal_cut(rig.wal);
            ck_assert_uint_ge(seq, before);
            ck_assert_uint_gt(rig_append(&rig, 1), seq);
            seq = wal_cut(rig.wal);
            ck_assert_uint_eq(wal_cut(rig.wal), seq);
            ck_assert_uint_eq(wal_last(rig.wal), seq);
            ck_assert_int_eq(wal_sync_up_to(rig.wal, seq), 0);
            while (k < 3 && rig_stats(&rig).marks == marks) {
                sched_yield();
            }
            ck_assert_uint_eq(wal_cut(rig.wal), seq);
            ck_assert_int_eq(wal_sync_up_to(rig.wal, seq), 0);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

/* Entries of any length stay whole, in batches that are within the limit. */
START_TEST(test_sizes)
{
    enum { LARGEST = FRAME_PAYLOAD_MAX / 2 / 8 };
    static const unsigned numbers[] = {LARGEST, 1, LARGEST, LARGEST, 40000,
        32764, 32764, 1, 32765, 20000, 12768, LARGEST - 4, 4, 1};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        rig_init(&rig, modes[i], 1);
        rig.config.file_bytes = 1 << 20;
        rig.config.unsynced_bytes_max = 1 << 30;
        ck_assert_int_eq(rig_open(&rig), 0);
        uint64_t seq = 0;
        for (size_t k = 0; k < COUNT_OF(numbers); k++) {
            seq = rig_append(&rig, numbers[k]);
        }
        ck_assert_uint_gt(seq, 3);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        ck_assert_int_eq(wal_sync_up_to(rig.wal, seq), 0);
        ck_assert_uint_eq(rig_stats(&rig).unsynced_bytes, 0);
        /* and again, in memory that was used before */
        for (size_t k = 0; k < COUNT_OF(numbers); k++) {
            ck_assert_int_eq(
                rig_commit(&rig, rig_append(&rig, numbers[k])), WAL_COMMITTED);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
        rig_fini(&rig);
    }
}
END_TEST

/* Files from before the first one that counts are nobody's. */
START_TEST(test_orphans)
{
    struct rig rig;
    uint64_t number, seq;
    rig_init(&rig, WAL_SYNC_ALWAYS, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned i = 0; i < 2; i++) {
        (void)rig_append(&rig, 3);
        ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), 0);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    struct found found = rig_walk(&rig);
    rig.config.start = start_behind(rig.disk, &found);
    rig.config.start.first_number = found.number;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_uint_eq(rig_stats(&rig).first_file, found.number);
    ck_assert_uint_eq(
        rig_stats(&rig).live_bytes, found.end + FRAME_FILE_BYTES);
    wal_forget(rig.wal, found.number + 1);
    ck_assert_uint_eq(rig_stats(&rig).live_bytes, FRAME_FILE_BYTES);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* What does not fit into a file is in the next one, however much it is: no
 * file is longer than it was made (unit/wal_help.h looks). */
START_TEST(test_long)
{
    static const unsigned numbers[] = {1, 900, 400, 1100, 3000, 1, 500, 20000};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        rig_init(&rig, modes[i], 1);
        rig.config.unsynced_bytes_max = 1 << 20;
        ck_assert_int_eq(rig_open(&rig), 0);
        for (unsigned k = 0; k < 50; k++) {
            uint64_t seq = 0;
            for (unsigned n = 0; n <= k % 7; n++) {
                seq = rig_append(&rig, numbers[(k + n) % COUNT_OF(numbers)]);
            }
            ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
            if (k % 10 == 9) { /* closed, so that none goes on beside it */
                ck_assert_int_eq(rig_close(&rig), 0);
                uint64_t n = rig.n;
                ck_assert_uint_eq(rig_reopen(&rig).n, n);
            }
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        fake_disk_crash(rig.fake);
        ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
        rig_fini(&rig);
    }
}
END_TEST

/* Bytes of the log file of that number, from at on, are these, synced. */
static void
put_bytes(struct rig *rig, uint64_t number, uint64_t at, const uint8_t *bytes,
    size_t len)
{
    struct disk *disk = rig->disk;
    char name[NAMES_BYTES];
    int fd;
    names_make(name, NAMES_LOG, number);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_WRITE, &fd), 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, bytes, len, at), 0);
    ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
    disk->calls->close(disk, fd);
}

/* What a write left that a disk failed at stands where the next file is to be
 * noted: it stays, for a disk that fails in the midst of the note, too, would
 * leave a mixture of both, which is damage to who starts. */
START_TEST(test_note_behind_torn)
{
    enum { TORN_BYTES = FRAME_BATCH_BYTES - 2 };
    for (unsigned is_torn = 0; is_torn < 2; is_torn++) {
        struct rig rig;
        struct frame_file next = {.epoch = EPOCH};
        uint8_t there[NOTE_BYTES] = {0}, *bytes;
        size_t len;
        rig_init(&rig, WAL_SYNC_ALWAYS, 1);
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 3)), WAL_COMMITTED);
        fake_disk_die(rig.fake, 1);
        (void)rig_close(&rig);
        fake_disk_revive(rig.fake);
        struct found found = rig_walk(&rig);
        next.number = found.number + 1;
        next.before_end = found.end;
        next.first_seq = found.next_seq;
        if (is_torn) {
            memset(there, 0x55, TORN_BYTES);
            put_bytes(&rig, found.number, found.end, there, TORN_BYTES);
        } else {
            note__put(&next, EPOCH, there);
        }
        (void)rig_reopen(&rig);
        ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
        ck_assert_int_eq(rig_close(&rig), 0);
        bytes = read_log(rig.disk, found.number, &len);
        ck_assert_uint_ge(len, found.end + NOTE_BYTES);
        ck_assert_mem_eq(bytes + found.end, there, NOTE_BYTES);
        free(bytes);
        ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
        rig_fini(&rig);
    }
}
END_TEST

/* always: not before the sync; those who wait are told. */
START_TEST(test_always)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_hold(rig.fake, FAKE_SYNC);
    uint64_t seq = rig_append(&rig, 1);
    unsigned told = rig_n_told(&rig);
    ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_WAITS);
    fake_disk_wait_held(rig.fake);
    ck_assert_int_eq(wal_outcome(rig.wal, seq), WAL_WAITS);
    ck_assert_uint_eq(rig_n_told(&rig), told);
    /* these come with one sync more, all of them */
    uint64_t last = 0;
    for (unsigned i = 0; i < 10; i++) {
        last = rig_append(&rig, 1);
        ck_assert_int_eq(wal_commit(rig.wal, last), WAL_WAITS);
    }
    unsigned syncs = fake_disk_count(rig.fake, FAKE_SYNC);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_commit(&rig, last), WAL_COMMITTED);
    ck_assert_uint_gt(rig_n_told(&rig), told);
    ck_assert_uint_eq(fake_disk_count(rig.fake, FAKE_SYNC), syncs + 2);
    /* all is synced: that no file can be begun behind it costs nothing */
    fake_disk_die(rig.fake, 1);
    ck_assert_int_eq(rig_close(&rig), 0);
    fake_disk_crash(rig.fake);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
}
END_TEST

static void *
commit_first(void *arg)
{
    struct rig *rig = arg;
    ck_assert_int_eq(wal_commit(rig->wal, 1), WAL_COMMITTED);
    return NULL;
}

static void *
commit_third(void *arg)
{
    struct rig *rig = arg;
    ck_assert_int_eq(rig_commit(rig, 3), WAL_COMMITTED);
    return NULL;
}

/* interval: what is appended beside a write is not committed by it, and who
 * comes meanwhile is served by who writes. */
START_TEST(test_beside_write)
{
    struct rig rig;
    pthread_t thread;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.interval_ms = 1000000;
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned is_wanted = 0; is_wanted < 2; is_wanted++) {
        uint64_t seq = 2 * is_wanted + 2;
        fake_disk_hold(rig.fake, FAKE_WRITE);
        ck_assert_uint_eq(rig_append(&rig, 1), seq - 1);
        ck_assert_int_eq(pthread_create(&thread, NULL,
                             is_wanted ? commit_third : commit_first, &rig),
            0);
        fake_disk_wait_held(rig.fake);
        ck_assert_uint_eq(rig_append(&rig, 1), seq);
        unsigned told = rig_n_told(&rig);
        if (is_wanted) {
            ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_WAITS);
        }
        fake_disk_let_go(rig.fake);
        pthread_join(thread, NULL);
        if (is_wanted) {
            /* or by the log's thread, if that has been allocating */
            while (wal_outcome(rig.wal, seq) == WAL_WAITS) {
                sched_yield();
            }
            ck_assert_int_eq(wal_outcome(rig.wal, seq), WAL_COMMITTED);
            while (rig_n_told(&rig) == told) {
                sched_yield();
            }
        } else {
            ck_assert_int_eq(wal_outcome(rig.wal, seq), WAL_WAITS);
            ck_assert_uint_eq(rig_n_told(&rig), told);
            ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        }
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* interval: after a write that was slow no caller writes: it would not come
 * back here from one that is held. After a while callers do again. Time stands
 * still, but for what is passed here. */
START_TEST(test_slow_write)
{
    struct fake_clock clock;
    struct rig rig;
    pthread_t thread;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.interval_ms = 1000000;
    rig.config.slow_ms = 1;
    fake_clock_init(&clock);
    fake_clock_stand(&clock);
    rig.config.clock = &clock.clock;
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_hold(rig.fake, FAKE_WRITE);
    ck_assert_uint_eq(rig_append(&rig, 1), 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, commit_first, &rig), 0);
    fake_disk_wait_held(rig.fake);
    fake_clock_pass(&clock, 2);
    fake_disk_let_go(rig.fake);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(rig_stats(&rig).slow_writes, 1);
    fake_disk_hold(rig.fake, FAKE_WRITE);
    ck_assert_int_eq(wal_commit(rig.wal, rig_append(&rig, 1)), WAL_WAITS);
    fake_disk_wait_held(rig.fake);
    uint64_t seq = rig_append(&rig, 1);
    ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_WAITS);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
    fake_clock_pass(&clock, WAL_CALM_MS);
    seq = rig_append(&rig, 1);
    ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_COMMITTED);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
}
END_TEST

/* Room is allocated by the log's thread only, ahead of the writes; no caller
 * waits for it. */
START_TEST(test_allocate)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.interval_ms = 1000000;
    rig.config.file_bytes = 16 << 20;
    rig.config.unsynced_bytes_max = 1 << 30;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_uint_eq(fake_disk_count(rig.fake, FAKE_ALLOCATE), 0);
    fake_disk_hold(rig.fake, FAKE_ALLOCATE);
    uint64_t seq = rig_append(&rig, 1);
    ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_COMMITTED);
    fake_disk_wait_held(rig.fake);
    seq = rig_append(&rig, 1);
    ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_WAITS);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
    for (unsigned i = 0; i < 100; i++) {
        seq = rig_append(&rig, 16384);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
    }
    while (fake_disk_count(rig.fake, FAKE_ALLOCATE) < 2) {
        sched_yield(); /* the thread may come late */
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    /* steps, not one for each write; what is left over is given back */
    ck_assert_uint_ge(fake_disk_count(rig.fake, FAKE_ALLOCATE), 2);
    ck_assert_uint_le(fake_disk_count(rig.fake, FAKE_ALLOCATE), 10);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
}
END_TEST

/* interval: as soon as it is written; but while a sync is late, not. */
START_TEST(test_late_sync)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.interval_ms = 10;
    rig.config.file_bytes = 16 << 20;
    rig.config.unsynced_bytes_max = 8 << 20;
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_hold(rig.fake, FAKE_SYNC);
    uint64_t seq = rig_append(&rig, 1);
    fake_disk_wait_held(rig.fake);
    do {
        seq = rig_append(&rig, 1);
        ck_assert_uint_lt(
            rig_stats(&rig).unsynced_bytes, rig.config.unsynced_bytes_max);
    } while (wal_commit(rig.wal, seq) == WAL_COMMITTED);
    ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_WAITS);
    ck_assert_int_eq(wal_outcome(rig.wal, seq), WAL_WAITS);
    ck_assert_uint_eq(rig_stats(&rig).synced_seq, 0);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
    /* each sync is told by how long its oldest change had waited */
    struct wal_stats stats = rig_stats(&rig);
    uint64_t synced = 0;
    for (unsigned i = 0; i < WAL_LATENCIES; i++) {
        synced += stats.synced_us[i];
    }
    ck_assert_uint_ge(synced, 1);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_buckets)
{
    ck_assert_uint_eq(wal_latency_of(0), 0);
    ck_assert_uint_eq(wal_latency_of(1), 1);
    ck_assert_uint_eq(wal_latency_of(2), 2);
    ck_assert_uint_eq(wal_latency_of(3), 2);
    ck_assert_uint_eq(wal_latency_of(4), 3);
    ck_assert_uint_eq(
        wal_latency_of(UINT64_C(1) << (WAL_LATENCIES - 2)), WAL_LATENCIES - 1);
    ck_assert_uint_eq(wal_latency_of(UINT64_MAX), WAL_LATENCIES - 1);
}
END_TEST

/* No more than unsynced_bytes_max is acknowledged and unsynced. */
START_TEST(test_unsynced_max)
{
    static const enum wal_sync lazy[] = {WAL_SYNC_NONE, WAL_SYNC_INTERVAL};
    for (size_t i = 0; i < COUNT_OF(lazy); i++) {
        struct rig rig;
        rig_init(&rig, lazy[i], 1);
        rig.config.interval_ms = 1000000;
        rig.config.file_bytes = 16 << 20;
        rig.config.unsynced_bytes_max = 10000;
        ck_assert_int_eq(rig_open(&rig), 0);
        fake_disk_hold(rig.fake, FAKE_SYNC);
        uint64_t seq, unsynced;
        enum wal_outcome outcome;
        do {
            seq = rig_append(&rig, 100);
            outcome = wal_commit(rig.wal, seq);
            unsynced = rig_stats(&rig).unsynced_bytes;
            ck_assert_uint_le(unsynced, 10000 + 800 + FRAME_BATCH_BYTES);
        } while (outcome == WAL_COMMITTED || unsynced <= 10000);
        fake_disk_let_go(rig.fake);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

/* While a sync hangs and twice unsynced_bytes_max wait for it, the log says
 * that it takes no more; what it has taken is neither committed nor failed. */
START_TEST(test_hangs)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        uint64_t seq;
        rig_init(&rig, modes[i], 1);
        rig.config.unsynced_bytes_max = 4096;
        rig.config.stuck_ms = 1;
        ck_assert_int_eq(rig_open(&rig), 0);
        fake_disk_hold(rig.fake, FAKE_SYNC);
        do {
            ck_assert(rig_stats(&rig).unsynced_bytes < 1 << 30);
            seq = rig_append(&rig, 1);
            (void)wal_commit(rig.wal, seq);
        } while (wal_fault(rig.wal) == 0);
        ck_assert_int_eq(wal_fault(rig.wal), ERR_LOG_FULL);
        struct wal_stats stats = rig_stats(&rig);
        ck_assert_uint_gt(stats.unsynced_bytes, 2 * 4096);
        ck_assert_uint_gt(stats.unsynced_ms, 0);
        ck_assert_int_eq(wal_outcome(rig.wal, seq), WAL_WAITS);
        fake_disk_let_go(rig.fake);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        ck_assert_int_eq(wal_sync_up_to(rig.wal, seq), 0);
        ck_assert_int_eq(wal_fault(rig.wal), 0);
        ck_assert_uint_eq(rig_stats(&rig).unsynced_ms, 0);
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
        rig_fini(&rig);
    }
}
END_TEST

/* With none a change waits for its write only: what has been written does not
 * count as late, however long nothing is synced. */
START_TEST(test_none_late)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_NONE, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_hold(rig.fake, FAKE_WRITE);
    uint64_t seq = rig_append(&rig, 1);
    while (rig_stats(&rig).unsynced_ms == 0) {
        sched_yield();
    }
    fake_disk_let_go(rig.fake);
    while (rig_stats(&rig).written_seq < seq) {
        sched_yield();
    }
    while (rig_stats(&rig).unsynced_ms != 0) { /* the write is noted */
        sched_yield();
    }
    (void)usleep(2000);
    ck_assert_uint_eq(rig_stats(&rig).unsynced_ms, 0);
    ck_assert_uint_gt(rig_stats(&rig).unsynced_bytes, 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* A file that is begun on demand has what was appended since, no more. */
START_TEST(test_rotate)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        uint64_t number, seq, again, again_seq;
        rig_init(&rig, modes[i], 1);
        ck_assert_int_eq(rig_open(&rig), 0);
        uint64_t last = rig_append(&rig, 3);
        ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), 0);
        ck_assert_uint_eq(number, 2);
        ck_assert_uint_eq(seq, last);
        ck_assert_uint_eq(rig_append(&rig, 1), last + 1);
        ck_assert_int_eq(wal_rotate(rig.wal, &again, &again_seq), 0);
        ck_assert_uint_eq(again, 3);
        ck_assert_uint_eq(again_seq, last + 1);
        /* it is empty, so it is the one */
        ck_assert_int_eq(wal_rotate(rig.wal, &again, &again_seq), 0);
        ck_assert_uint_eq(again, 3);
        ck_assert_uint_eq(again_seq, last + 1);
        ck_assert_uint_eq(rig_stats(&rig).first_file, 1);
        uint64_t live = rig_stats(&rig).live_bytes;
        wal_forget(rig.wal, number);
        ck_assert_uint_eq(rig_stats(&rig).first_file, number);
        ck_assert_uint_eq(rig_stats(&rig).live_bytes,
            live - FRAME_FILE_BYTES - FRAME_BATCH_BYTES - 3 * 8);
        ck_assert_int_eq(rig_close(&rig), 0);
        struct found found = walk(rig.disk, 3, last + 1);
        ck_assert_uint_eq(found.first, 2);
        ck_assert_uint_eq(found.n, 4);
        rig_fini(&rig);
    }
}
END_TEST

static int
count_marks(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    unsigned *marks = context;
    (void)seq;
    *marks += entry_mark_of(payload, len) == ENTRY_MARK_IDLE;
    return 0;
}

static int
replay_marks(struct rig *rig, unsigned *marks, struct replay_end *end)
{
    struct replay replay = {.disk = rig->disk,
        .epoch = EPOCH,
        .number = 1,
        .batch_fn = count_marks,
        .context = marks};
    *marks = 0;
    return replay_run(&replay, end);
}

/* A file of the log that is cut off anywhere, with or without a successor, as
 * it is after a process was killed. */
START_TEST(test_cut)
{
    for (uint64_t number = 1; number <= 2; number++) {
        struct rig rig;
        struct replay_end end;
        uint64_t len, next, seq;
        char name[NAMES_BYTES];
        unsigned marks;
        int fd;
        rig_init(&rig, WAL_SYNC_ALWAYS, 1);
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 3)), WAL_COMMITTED);
        ck_assert_int_eq(wal_rotate(rig.wal, &next, &seq), 0);
        ck_assert_uint_eq(next, 2);
        for (unsigned i = 0; i < 3; i++) {
            seq = rig_append(&rig, 9);
            ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        }
        fake_disk_die(rig.fake, 1);
        (void)rig_close(&rig);
        fake_disk_revive(rig.fake);
        ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
        names_make(name, NAMES_LOG, number);
        ck_assert_int_eq(
            rig.disk->calls->open(rig.disk, name, DISK_WRITE, &fd), 0);
        ck_assert_int_eq(rig.disk->calls->size(rig.disk, fd, &len), 0);
        ck_assert_uint_eq(len, 2 * rig.config.file_bytes);
        while (len-- > 0) {
            ck_assert_int_eq(rig.disk->calls->truncate(rig.disk, fd, len), 0);
            ck_assert_int_eq(replay_marks(&rig, &marks, &end), ERR_CORRUPT);
            ck_assert_uint_eq(marks, 0);
        }
        rig.disk->calls->close(rig.disk, fd);
        rig_fini(&rig);
    }
}
END_TEST

/* Numbers of files and of batches go on where the last log ended. */
START_TEST(test_reopen)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 20; i++) {
            uint64_t last = wal_last(rig.wal);
            ck_assert_uint_eq(rig_append(&rig, 7), last + 1);
            ck_assert_int_eq(rig_commit(&rig, last + 1), WAL_COMMITTED);
        }
        struct wal_stats stats = rig_stats(&rig);
        uint64_t n = rig.n;
        ck_assert_int_eq(rig_close(&rig), 0);
        struct found found = rig_reopen(&rig);
        ck_assert_uint_eq(found.n, n);
        ck_assert_uint_gt(found.number, stats.file);
        ck_assert_uint_eq(found.next_seq, stats.last_seq + 1);
        /* an empty file more; in none of the others is anything else */
        stats = rig_stats(&rig);
        ck_assert_uint_eq(stats.live_bytes,
            stats.file * FRAME_FILE_BYTES + n * 8 +
                found.batches * FRAME_BATCH_BYTES);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* What nobody commits is written all the same, and synced where the mode says
 * so, before long. */
START_TEST(test_no_commit)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        rig_init(&rig, modes[i], 1);
        rig.config.interval_ms = 10;
        ck_assert_int_eq(rig_open(&rig), 0);
        fake_disk_hold(
            rig.fake, modes[i] == WAL_SYNC_NONE ? FAKE_WRITE : FAKE_SYNC);
        (void)rig_append(&rig, 1);
        fake_disk_wait_held(rig.fake);
        fake_disk_let_go(rig.fake);
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

/* Waits until the log says in its file that all is synced. */
static void
wait_marked(struct rig *rig, uint64_t marks)
{
    while (rig_stats(rig).marks < marks) {
        sched_yield();
    }
}

/* When nothing comes after a sync, one mark follows: no change, nothing to
 * sync, and whatever is damaged before it is known for damage. */
START_TEST(test_mark)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        struct replay_end end;
        unsigned marks;
        rig_init(&rig, modes[i], 1);
        rig.config.idle_ms = 1;
        ck_assert_int_eq(rig_open(&rig), 0);
        for (unsigned phase = 1; phase <= 3; phase++) {
            uint64_t seq = rig_append(&rig, 4);
            ck_assert_int_eq(wal_sync_up_to(rig.wal, seq), 0);
            wait_marked(&rig, phase);
            struct wal_stats stats = rig_stats(&rig);
            ck_assert_uint_eq(wal_last(rig.wal), seq);
            ck_assert_uint_eq(stats.last_seq, seq);
            ck_assert_uint_eq(stats.synced_seq, seq);
            ck_assert_uint_eq(stats.written_seq, seq);
            ck_assert_uint_eq(stats.unsynced_bytes, 0);
            ck_assert_uint_eq(stats.unsynced_ms, 0);
            ck_assert_uint_eq(stats.batches, phase);
            ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_COMMITTED);
        }
        unsigned syncs = fake_disk_count(rig.fake, FAKE_SYNC);
        ck_assert_int_eq(wal_sync_up_to(rig.wal, wal_last(rig.wal)), 0);
        ck_assert_uint_eq(fake_disk_count(rig.fake, FAKE_SYNC), syncs);
        fake_disk_die(rig.fake, 1);
        (void)rig_close(&rig);
        fake_disk_revive(rig.fake);
        ck_assert_int_eq(replay_marks(&rig, &marks, &end), 0);
        ck_assert_uint_eq(marks, 3);
        ck_assert_uint_eq(end.batches, 6);
        for (uint64_t at = FRAME_FILE_BYTES;
             at < end.end - FRAME_BATCH_BYTES - ENTRY_MARK_BYTES; at++) {
            char name[NAMES_BYTES];
            names_make(name, NAMES_LOG, 1);
            fake_disk_flip(rig.fake, name, at, 4);
            ck_assert_int_eq(
                replay_marks(&rig, &marks, &(struct replay_end){0}),
                ERR_CORRUPT);
            fake_disk_flip(rig.fake, name, at, 4);
        }
        rig_fini(&rig);
    }
}
END_TEST

/* A power cut may take a mark back, and keep what was appended behind it: that
 * is no damage. */
START_TEST(test_mark_lost)
{
    for (uint64_t seed = 1; seed < 40; seed++) {
        struct rig rig;
        struct replay_end end;
        unsigned marks;
        rig_init(&rig, WAL_SYNC_INTERVAL, seed);
        rig.config.idle_ms = 1;
        rig.config.interval_ms = 1000000;
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_int_eq(wal_sync_up_to(rig.wal, rig_append(&rig, 4)), 0);
        wait_marked(&rig, 1);
        for (unsigned n = 0; n < 4; n++) {
            uint64_t seq = rig_append(&rig, 100);
            ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        }
        fake_disk_die(rig.fake, 1);
        (void)rig_close(&rig);
        fake_disk_crash(rig.fake);
        ck_assert_int_eq(replay_marks(&rig, &marks, &end), 0);
        ck_assert_uint_ge(end.batches, 1);
        rig_fini(&rig);
    }
}
END_TEST

/* A newest file that is gone is missed, whether a rotation began it or a
 * start did. */
START_TEST(test_followed)
{
    for (int is_start = 0; is_start < 2; is_start++) {
        struct rig rig;
        struct replay_end end;
        uint64_t number, seq;
        unsigned marks;
        rig_init(&rig, WAL_SYNC_ALWAYS, 1);
        ck_assert_int_eq(rig_open(&rig), 0);
        seq = rig_append(&rig, 3);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        if (is_start) {
            fake_disk_die(rig.fake, 1);
            (void)rig_close(&rig);
            fake_disk_revive(rig.fake);
            (void)rig_reopen(&rig);
        } else {
            ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), 0);
        }
        seq = rig_append(&rig, 3);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        fake_disk_die(rig.fake, 1);
        (void)rig_close(&rig);
        fake_disk_revive(rig.fake);
        ck_assert_int_eq(replay_marks(&rig, &marks, &end), 0);
        ck_assert_uint_eq(end.number, 2);
        ck_assert_int_eq(
            rig.disk->calls->unlink(rig.disk, "log-00000000000000000002.wal"),
            0);
        ck_assert_int_eq(replay_marks(&rig, &marks, &end), ERR_CORRUPT);
        rig_fini(&rig);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_round_trip, test_group, test_parted,
        test_sizes, test_always, test_beside_write, test_slow_write,
        test_allocate, test_late_sync, test_buckets, test_unsynced_max,
        test_hangs, test_none_late, test_rotate, test_orphans, test_long,
        test_cut, test_reopen, test_no_commit, test_mark, test_mark_lost,
        test_followed, test_note_behind_torn};
    return run_tests("wal", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/wal, on a disk that fails, fills up, or stops with everything on it: at
 * each call of a workload that begins many files, in all modes. What was
 * acknowledged is there afterwards, as the mode promises, and what is there is
 * a prefix (unit/wal_help.h looks). */
#include "wal/wal.h"

#include "lib/fault_alloc.h"
#include "unit/wal_rig.h"
#include "wal/wal_place.h"
#include "wal/wal_replica.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { COMMITS = 40, SYNC_EACH = 7, BATCHES_MAX = 1 << 14 };

static const enum wal_sync modes[] = {
    WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};

/* What clients know. */
struct known {
    uint64_t n_acked; /* numbers that were acknowledged */
    unsigned failed;
    uint64_t n_at[BATCHES_MAX]; /* numbers up to that batch */
};

static struct known *
known_create(void)
{
    struct known *known = calloc(1, sizeof(*known));
    ck_assert_ptr_nonnull(known);
    return known;
}

/* One client's changes, until one fails. */
static void
work(struct rig *rig, struct known *known)
{
    for (unsigned i = 0; i < COMMITS && wal_fault(rig->wal) == 0; i++) {
        uint64_t seq = rig_append(rig, 1 + i % 40);
        ck_assert_uint_lt(seq, BATCHES_MAX);
        known->n_at[seq] = rig->n;
        if (rig_commit(rig, seq) != WAL_COMMITTED) {
            known->failed++;
            ck_assert_int_ne(wal_fault(rig->wal), 0);
            return;
        }
        known->n_acked = rig->n;
        if (i % SYNC_EACH == 0 && wal_sync_up_to(rig->wal, seq) != 0) {
            known->failed++;
            return;
        }
    }
}

/* What the order of calls must be, failures or not: a file whose sync failed
 * is never written or synced again; a file gets its place only when it is
 * synced, and no batch between then and the sync of the names. */
static void
expect_order(struct rig *rig)
{
    enum { FILES = 4096 };
    bool *bad = calloc(FILES, 1), *dirty = calloc(FILES, 1);
    bool *placed = calloc(FILES, 1), *named = calloc(FILES, 1);
    size_t n;
    const struct fake_event *event = fake_disk_events(rig->fake, &n);
    for (size_t i = 0; i < n; i++) {
        unsigned file = event[i].file;
        ck_assert_uint_lt(file, FILES);
        switch (event[i].call) {
        case FAKE_WRITE:
            ck_assert(!bad[file]);
            ck_assert(!placed[file] || named[file]);
            dirty[file] = true;
            break;
        case FAKE_SYNC:
            ck_assert(!bad[file]);
            bad[file] = event[i].err != 0;
            dirty[file] = false;
            break;
        case FAKE_RENAME:
            ck_assert(!bad[file] && !dirty[file]);
            placed[file] = true;
            break;
        case FAKE_SYNC_NAMES:
            for (unsigned k = 0; event[i].err == 0 && k < FILES; k++) {
                named[k] = placed[k];
            }
            break;
        default:
            break;
        }
    }
    free(bad);
    free(dirty);
    free(placed);
    free(named);
}

/* A failure that is none any more at the next call is noticed by nobody. */
static unsigned
fail_once(enum wal_sync mode, unsigned mask, unsigned n, int err)
{
    struct rig rig;
    struct known *known = known_create();
    rig_init(&rig, mode, n);
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_fail(rig.fake, mask, n, err, false);
    work(&rig, known);
    ck_assert_uint_eq(known->failed, 0);
    ck_assert_uint_eq(known->n_acked, rig.n);
    ck_assert_int_eq(rig_close(&rig), 0);
    unsigned fails = fake_disk_heal(rig.fake);
    expect_order(&rig);
    fake_disk_crash(rig.fake);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
    free(known);
    return fails;
}

START_TEST(test_fail_once)
{
    static const int errs[] = {EIO, ENOSPC, EOPNOTSUPP, EFBIG};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        for (unsigned n = 1;
             fail_once(modes[i], FAKE_ALL, n, errs[n % COUNT_OF(errs)]) != 0;
             n++) {
        }
        for (unsigned n = 1; fail_once(modes[i], 1 << FAKE_SYNC, n, EIO) != 0;
             n++) {
        }
        for (unsigned n = 1;
             fail_once(modes[i], 1 << FAKE_PUNCH, n, EOPNOTSUPP) != 0; n++) {
        }
    }
}
END_TEST

static void
wait_writable(struct rig *rig)
{
    for (;;) {
        unsigned told = rig_n_told(rig);
        if (wal_fault(rig->wal) == 0) {
            break;
        }
        rig_wait_told(rig, told);
    }
}

/* After the disk was healed: until the log's thread has done with whatever
 * failed before. A call that failed then may show in wal_fault only later, or
 * never; the thread has put an end to that when it begins a file. */
static void
wait_well(struct rig *rig)
{
    uint64_t number, seq;
    do {
        wait_writable(rig);
    } while (wal_rotate(rig->wal, &number, &seq) != 0);
}

/* A disk that fails for a while: changes are refused, what was appended stays,
 * and when the disk is well the log is, too. */
static unsigned
fail_for_a_while(
    enum wal_sync mode, unsigned mask, unsigned n, int err, int fault)
{
    struct rig rig;
    struct wal_place place;
    struct known *known = known_create();
    rig_init(&rig, mode, n);
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_fail(rig.fake, mask, n, err, true);
    work(&rig, known);
    if (known->failed > 0) {
        ck_assert_int_eq(wal_fault(rig.wal), fault);
        wal_place(rig.wal, &place);
        ck_assert(place.is_given_up);
        uint64_t last = wal_last(rig.wal), number, seq;
        if (known->n_acked < rig.n) {
            ck_assert_int_eq(wal_commit(rig.wal, last), WAL_FAILED);
            ck_assert_int_eq(wal_outcome(rig.wal, last), WAL_FAILED);
        }
        if (rig_stats(&rig).synced_seq < last) {
            ck_assert_int_eq(wal_sync_up_to(rig.wal, last), fault);
            ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), fault);
        }
    }
    unsigned fails = fake_disk_heal(rig.fake);
    wait_writable(&rig);
    if (known->failed > 0) {
        /* what failed is durable now, and told as that very soon */
        uint64_t last = wal_last(rig.wal);
        ck_assert_uint_eq(rig_stats(&rig).synced_seq, last);
        ck_assert_int_eq(rig_commit(&rig, last), WAL_COMMITTED);
    }
    wait_well(&rig);
    wal_place(rig.wal, &place);
    ck_assert(!place.is_given_up && place.is.inode != 0);
    known->failed = 0;
    work(&rig, known);
    ck_assert_uint_eq(known->failed, 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_order(&rig);
    fake_disk_crash(rig.fake);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
    free(known);
    return fails;
}

START_TEST(test_fail_for_a_while)
{
    static const struct {
        unsigned mask;
        int err, fault;
    } kinds[] = {
        {FAKE_ALL, EIO, ERR_DISK},
        {1 << FAKE_SYNC, EIO, ERR_DISK},
        {1 << FAKE_SYNC_NAMES, EIO, ERR_DISK},
        {1 << FAKE_RENAME, EIO, ERR_DISK},
        {1 << FAKE_WRITE | 1 << FAKE_ALLOCATE, ENOSPC, ERR_DISK_FULL},
        {1 << FAKE_WRITE, EDQUOT, ERR_DISK_FULL},
        {1 << FAKE_WRITE | 1 << FAKE_ALLOCATE, EFBIG, ERR_FILE_SIZE},
        {1 << FAKE_TRUNCATE, EFBIG, ERR_FILE_SIZE},
    };
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            for (unsigned n = 1; fail_for_a_while(modes[i], kinds[k].mask, n,
                                     kinds[k].err, kinds[k].fault) != 0;
                 n++) {
            }
        }
    }
}
END_TEST

/* What must be there after the machine or the process stopped. */
static void
expect_kept(struct rig *rig, const struct known *known, uint64_t synced_seq,
    bool is_power_cut)
{
    struct found found = rig_walk(rig);
    ck_assert_uint_ge(found.n, known->n_at[synced_seq]);
    if (rig->config.sync == WAL_SYNC_ALWAYS ||
        (rig->config.sync == WAL_SYNC_INTERVAL && !is_power_cut)) {
        ck_assert_uint_ge(found.n, known->n_acked);
    }
    ck_assert_uint_le(found.n, rig->n);
}

/* Stops at the n-th call, again some calls after it was started again, and
 * goes on after that. */
static bool
stop_twice(enum wal_sync mode, unsigned n, bool is_power_cut)
{
    struct rig rig;
    struct known *known = known_create();
    bool was_stopped = false;
    rig_init(&rig, mode, n);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (unsigned round = 0; round < 2; round++) {
        fake_disk_die(rig.fake, round == 0 ? n : 1 + n * 7 % 23);
        work(&rig, known);
        uint64_t synced_seq = rig_stats(&rig).synced_seq;
        (void)rig_close(&rig);
        was_stopped |= fake_disk_is_dead(rig.fake);
        if (is_power_cut) {
            fake_disk_crash(rig.fake);
        } else {
            fake_disk_revive(rig.fake);
        }
        expect_kept(&rig, known, synced_seq, is_power_cut);
        (void)rig_reopen(&rig);
        known->n_acked = rig.n;
        known->n_at[wal_last(rig.wal)] = rig.n;
    }
    work(&rig, known);
    ck_assert_uint_eq(known->n_acked, rig.n);
    ck_assert_int_eq(rig_close(&rig), 0);
    fake_disk_crash(rig.fake);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
    free(known);
    return was_stopped;
}

/* Calls of one workload, roughly, and which of them a mode looks at. */
enum { STOPS = 400, STOP_STEP = 3 * SWEEP_STEP };

START_TEST(test_power_cut)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        unsigned stopped = 0;
        for (unsigned n = 1 + (unsigned)i; n < STOPS; n += STOP_STEP) {
            stopped += stop_twice(modes[i], n, true);
        }
        ck_assert_uint_gt(stopped, STOPS / STOP_STEP / 4);
    }
}
END_TEST

START_TEST(test_killed)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        for (unsigned n = 1 + (unsigned)i; n < STOPS; n += STOP_STEP) {
            (void)stop_twice(modes[i], n, false);
        }
    }
}
END_TEST

/* A disk that is cut off after it failed: what was acknowledged is there,
 * although the file under way may have lost anything. */
START_TEST(test_fail_then_cut)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        for (unsigned n = 1 + (unsigned)i; n < STOPS; n += STOP_STEP) {
            struct rig rig;
            struct known *known = known_create();
            rig_init(&rig, modes[i], n);
            ck_assert_int_eq(rig_open(&rig), 0);
            fake_disk_fail(rig.fake, 1 << FAKE_SYNC, 1 + n % 20, EIO, false);
            fake_disk_die(rig.fake, n);
            work(&rig, known);
            uint64_t synced_seq = rig_stats(&rig).synced_seq;
            (void)rig_close(&rig);
            fake_disk_crash(rig.fake);
            expect_kept(&rig, known, synced_seq, true);
            rig_fini(&rig);
            free(known);
        }
    }
}
END_TEST

/* A process that is killed while it takes over from a file that failed. */
START_TEST(test_fail_then_killed)
{
    enum { SYNCS = 6, CALLS = 80 };
    for (unsigned k = 0; k < SYNCS * CALLS; k++) {
        struct rig rig;
        struct known *known = known_create();
        rig_init(&rig, WAL_SYNC_INTERVAL, k);
        ck_assert_int_eq(rig_open(&rig), 0);
        fake_disk_fail(rig.fake, 1 << FAKE_SYNC, 1 + k / CALLS, EIO, false);
        fake_disk_die(rig.fake, 1 + k % CALLS);
        work(&rig, known);
        uint64_t synced_seq = rig_stats(&rig).synced_seq;
        (void)rig_close(&rig);
        fake_disk_revive(rig.fake);
        expect_kept(&rig, known, synced_seq, false);
        rig_fini(&rig);
        free(known);
    }
}
END_TEST

/* A full disk: nothing that was acknowledged is lost, no matter where it got
 * full, and the log is well again when there is room. */
START_TEST(test_full)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        for (uint64_t room = 5000; room < 20000; room += 333) {
            struct rig rig;
            struct known *known = known_create();
            rig_init(&rig, modes[i], room);
            ck_assert_int_eq(rig_open(&rig), 0);
            fake_disk_limit(rig.fake, room);
            while (known->failed == 0 && wal_fault(rig.wal) == 0) {
                work(&rig, known);
            }
            ck_assert_int_eq(wal_fault(rig.wal), ERR_DISK_FULL);
            fake_disk_limit(rig.fake, 0);
            wait_writable(&rig);
            known->failed = 0;
            work(&rig, known);
            ck_assert_uint_eq(known->failed, 0);
            ck_assert_int_eq(rig_close(&rig), 0);
            expect_order(&rig);
            fake_disk_crash(rig.fake);
            ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
            rig_fini(&rig);
            free(known);
        }
    }
}
END_TEST

/* With none a change waits for its write: where that fails it is as old as it
 * was, and so it is told, until it is in another file. */
START_TEST(test_none_is_late)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_NONE, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_fail(rig.fake, 1 << FAKE_WRITE, 1, EIO, true);
    uint64_t seq = rig_append(&rig, 1);
    ck_assert_int_eq(wal_commit(rig.wal, seq), WAL_COMMITTED);
    for (;;) {
        unsigned told = rig_n_told(&rig);
        if (wal_fault(rig.wal) != 0) {
            break;
        }
        rig_wait_told(&rig, told);
    }
    struct wal_stats stats = rig_stats(&rig);
    ck_assert_uint_eq(stats.written_seq, 0);
    ck_assert_uint_gt(stats.unsynced_ms, 0);
    (void)fake_disk_heal(rig.fake);
    wait_writable(&rig);
    stats = rig_stats(&rig);
    ck_assert_uint_eq(stats.written_seq, seq);
    ck_assert_uint_eq(stats.unsynced_ms, 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    fake_disk_crash(rig.fake);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
}
END_TEST

/* The same until the file before is full: then changes are refused, nothing is
 * behind its end, and all that was appended is there in the end. */
START_TEST(test_no_next_file_for_long)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct rig rig;
        enum wal_outcome outcome = WAL_COMMITTED;
        uint64_t n_acked = 0;
        rig_init(&rig, modes[i], 1);
        ck_assert_int_eq(rig_open(&rig), 0);
        fake_disk_fail(rig.fake, 1 << FAKE_OPEN, 1, ENOSPC, true);
        while (wal_fault(rig.wal) == 0) {
            uint64_t seq = rig_append(&rig, 30);
            outcome = rig_commit(&rig, seq);
            n_acked = outcome == WAL_COMMITTED ? rig.n : n_acked;
        }
        ck_assert_int_eq(wal_fault(rig.wal), ERR_DISK_FULL);
        ck_assert_uint_gt(n_acked * 8, rig.config.file_bytes);
        ck_assert_uint_le(
            rig_stats(&rig).file_bytes, 2 * rig.config.file_bytes);
        ck_assert_uint_eq(rig_stats(&rig).file, 1);
        (void)fake_disk_heal(rig.fake);
        wait_writable(&rig);
        ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
        ck_assert_int_eq(rig_close(&rig), 0);
        expect_order(&rig);
        fake_disk_crash(rig.fake);
        ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
        rig_fini(&rig);
    }
}
END_TEST

/* Where files may not be so long they are shorter. */
START_TEST(test_short_file)
{
    struct rig rig;
    uint64_t number, seq;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.file_bytes = 64 << 10;
    ck_assert_int_eq(rig_open(&rig), 0);
    (void)rig_append(&rig, 1);
    fake_disk_fail(rig.fake, 1 << FAKE_TRUNCATE, 1, EFBIG, false);
    ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), 0);
    ck_assert_uint_eq(fake_disk_heal(rig.fake), 1);
    ck_assert_int_eq(wal_fault(rig.wal), 0);
    ck_assert_uint_lt(rig_walk(&rig).shortest, 2 * rig.config.file_bytes);
    while (rig_stats(&rig).file == number) { /* it is full before long */
        seq = rig_append(&rig, 99);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
}
END_TEST

/* A log that cannot be begun says so, and can be once the disk is well. */
START_TEST(test_open)
{
    unsigned fails = 1;
    for (unsigned n = 1; fails > 0; n++) {
        struct rig rig;
        rig_init(&rig, WAL_SYNC_ALWAYS, n);
        fake_disk_fail(rig.fake, FAKE_ALL, n, n % 2 ? EIO : ENOSPC, true);
        int err = rig_open(&rig);
        fails = fake_disk_heal(rig.fake);
        if (err != 0) {
            ck_assert_int_eq(err, n % 2 ? ERR_DISK : ERR_DISK_FULL);
            ck_assert_int_eq(rig_open(&rig), 0);
        }
        wait_writable(&rig);
        ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_uint_eq(rig_walk(&rig).n, 1);
        rig_fini(&rig);
    }
}
END_TEST

/* 0 once *context is not. */
static int
prepare_when_well(void *context)
{
    return atomic_load((atomic_bool *)context) ? 0 : EIO;
}

/* What was there before the log began is committed when it has begun: until
 * then nobody has synced that. */
START_TEST(test_before_it_begins)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        bool always = modes[i] == WAL_SYNC_NONE;
        atomic_bool is_well = false;
        struct wal_position position;
        struct rig rig;
        rig_init(&rig, modes[i], i);
        rig.config.start.next_seq = 8;
        rig.config.prepare_fn = prepare_when_well;
        rig.config.context = &is_well;
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_uint_eq(wal_last(rig.wal), 7);
        ck_assert_int_eq(
            wal_outcome(rig.wal, 7), always ? WAL_COMMITTED : WAL_FAILED);
        ck_assert_uint_eq(rig_stats(&rig).synced_seq, 0);
        wal_position(rig.wal, &position);
        ck_assert_uint_eq(position.written, 7);
        ck_assert_uint_eq(position.synced, 0);
        ck_assert_int_eq(wal_sync_up_to(rig.wal, 7), ERR_DISK);
        atomic_store(&is_well, true);
        wait_writable(&rig);
        ck_assert_int_eq(wal_sync_up_to(rig.wal, 7), 0);
        ck_assert_uint_ge(rig_stats(&rig).synced_seq, 7);
        ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
        ck_assert_int_eq(wal_outcome(rig.wal, 7), WAL_COMMITTED);
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

/* Where memory is out changes are refused in time, until there is some. */
START_TEST(test_memory)
{
    enum { MANY = 30000 }; /* no two of them in one chunk */
    struct fault_alloc fault;
    struct rig rig;
    for (size_t n = 1; n <= 3; n++) {
        fault_alloc_init(&fault);
        rig_init(&rig, WAL_SYNC_INTERVAL, 1);
        rig.config.alloc = &fault.alloc;
        fault_alloc_arm(&fault, n);
        ck_assert_int_eq(rig_open(&rig), ERR_NO_MEMORY);
        ck_assert_uint_eq(fault.live_bytes, 0);
        rig_fini(&rig);
    }
    fault_alloc_init(&fault);
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.alloc = &fault.alloc;
    rig.config.interval_ms = 1000000;
    rig.config.file_bytes = 16 << 20;
    rig.config.unsynced_bytes_max = 1 << 30;
    fault.fail_from = 4;
    fault.fail_to = SIZE_MAX;
    ck_assert_int_eq(rig_open(&rig), 0);
    (void)rig_append(&rig, MANY);
    ck_assert_int_eq(wal_fault(rig.wal), 0);
    uint64_t seq = rig_append(&rig, MANY);
    ck_assert_int_eq(wal_fault(rig.wal), ERR_NO_MEMORY);
    /* it is no reason not to acknowledge */
    ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
    ck_assert_int_eq(wal_sync_up_to(rig.wal, seq), 0);
    ck_assert_int_eq(wal_fault(rig.wal), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    ck_assert_uint_eq(fault.live_bytes, 0);
    rig_fini(&rig);
}
END_TEST

/* A file that cannot be begun: the one before goes on, and who wanted it is
 * told; nothing is refused. */
START_TEST(test_no_next_file)
{
    struct rig rig;
    uint64_t number, seq;
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    (void)rig_commit(&rig, rig_append(&rig, 1));
    fake_disk_fail(rig.fake, 1 << FAKE_OPEN, 1, ENOSPC, true);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(wal_rotate(rig.wal, &number, &seq), ERR_DISK_FULL);
        ck_assert_int_eq(wal_fault(rig.wal), 0);
        ck_assert_int_eq(
            rig_commit(&rig, rig_append(&rig, 100)), WAL_COMMITTED);
    }
    ck_assert_uint_gt(fake_disk_heal(rig.fake), 0);
    int err = ERR_DISK_FULL; /* an attempt may have been under way */
    for (unsigned i = 0; err != 0 && i < 100; i++) {
        err = wal_rotate(rig.wal, &number, &seq);
    }
    ck_assert_int_eq(err, 0);
    ck_assert_uint_eq(number, 2);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_order(&rig);
    fake_disk_crash(rig.fake);
    ck_assert_uint_eq(rig_walk(&rig).n, rig.n);
    rig_fini(&rig);
}
END_TEST

/* No next file for a while, three attempts; then one is begun. */
static void
stay_a_while(struct rig *rig)
{
    uint64_t number, seq;
    int err = ERR_DISK_FULL;
    fake_disk_fail(rig->fake, 1 << FAKE_OPEN, 1, ENOSPC, true);
    for (unsigned i = 0; i < 3; i++) {
        (void)rig_commit(rig, rig_append(rig, 1));
        ck_assert_int_eq(wal_rotate(rig->wal, &number, &seq), ERR_DISK_FULL);
    }
    (void)fake_disk_heal(rig->fake);
    for (unsigned i = 0; err != 0 && i < 100; i++) {
        err = wal_rotate(rig->wal, &number, &seq);
    }
    ck_assert_int_eq(err, 0);
}

/* Each time that it begins the operator is told, once. */
START_TEST(test_no_next_file_is_told)
{
    enum { EPISODES = 3 };
    char text[4096];
    struct rig rig;
    int ends[2], saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    rig_init(&rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    for (unsigned i = 0; i < EPISODES; i++) {
        stay_a_while(&rig);
    }
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    (void)close(ends[1]);
    ssize_t len = read(ends[0], text, sizeof text - 1);
    ck_assert_int_gt(len, 0);
    text[len] = '\0';
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, "goes on in the file"));
         at++) {
        n++;
    }
    ck_assert_uint_eq(n, EPISODES);
    (void)close(ends[0]);
    (void)close(saved);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_fail_once, test_fail_for_a_while,
        test_power_cut, test_killed, test_fail_then_cut, test_fail_then_killed,
        test_full, test_no_next_file, test_no_next_file_for_long,
        test_no_next_file_is_told, test_none_is_late, test_short_file,
        test_open, test_before_it_begins, test_memory};
    return run_tests("wal_faults", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A store on a disk that fails: each call of a workload in turn, once or from
 * then on; and one that fills up. Reads go on, nothing that was acknowledged
 * is lost, changes are taken again when the disk is well, and whatever is left
 * behind can be started from. */
#include "unit/faults_help.h"

#include "base/clock.h"
#include "wal/names.h"

#include <errno.h>
#include <sched.h>

/* Changes, edits and checkpoints of all kinds; what is refused is left out. */
static void
work(struct rig *rig)
{
    (void)rig_set_all(rig, 'a', 7);
    (void)rig_checkpoint(rig);
    (void)rig_set_all(rig, 'b', 8);
    (void)rig_edit(rig, "add column a ay max=64");
    (void)rig_work(rig, 10);
    (void)rig_edit(rig, "drop column b bx bx");
    (void)rig_checkpoint(rig);
    (void)rig_edit(rig, "add column b bx max=64 default=3");
    (void)rig_edit(rig, "drop counter a a");
    (void)rig_work(rig, 20);
    (void)rig_checkpoint(rig);
}

static void
begin(struct rig *rig, uint64_t seed)
{
    static const enum wal_sync modes[] = {
        WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};
    rig_init(rig, modes[seed % COUNT_OF(modes)], ID_SPREAD, seed);
    rig_take_clock(rig);
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    rig_add_counter(rig, 'b');
    (void)rig_set_all(rig, 'a', 5);
}

/* All that is in memory can be read, and comes to the disk when that is well.
 */
static void
heal(struct rig *rig)
{
    (void)fake_disk_heal(rig->fake);
    rig_wait_writable(rig);
    rig_expect_all(rig);
    ck_assert_int_ne(rig_set_all(rig, 'b', 9), STORE_COMMIT_FAILED);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_expect_order(rig);
    ck_assert_int_eq(rig_open(rig), 0);
    rig_expect_all(rig);
}

/* False where there is no n-th call of that kind any more. */
static bool
fail_call(const struct fault *fault, unsigned n)
{
    struct rig rig;
    begin(&rig, n + fault->forever);
    fail_nth(&rig, fault, n);
    work(&rig);
    rig.is_in_vain = false;
    bool any = fake_disk_heal(rig.fake) > 0;
    fake_disk_fail(rig.fake, any && fault->forever ? 1u << fault->call : 0, 1,
        fault->err, true);
    if (!crash_by_turns(&rig, n)) {
        heal(&rig);
    }
    rig_end(&rig);
    return any;
}

static void
fail_each(enum fake_call call, int err)
{
    fail_by_turns(fail_call, call, err);
}

START_TEST(test_writes_fail)
{
    fail_each(FAKE_WRITE, EIO);
    fail_each(FAKE_WRITE, ENOSPC);
}
END_TEST

START_TEST(test_syncs_fail)
{
    fail_each(FAKE_SYNC, EIO);
    fail_each(FAKE_SYNC_NAMES, EIO);
    fail_each(FAKE_SYNC, ENOSPC);
}
END_TEST

START_TEST(test_names_fail)
{
    fail_each(FAKE_OPEN, EIO);
    fail_each(FAKE_OPEN, ENOSPC);
    fail_each(FAKE_RENAME, EIO);
    fail_each(FAKE_RENAME, ENOSPC);
    fail_each(FAKE_UNLINK, EIO);
    fail_each(FAKE_LIST, EIO);
}
END_TEST

START_TEST(test_others_fail)
{
    fail_each(FAKE_READ, EIO);
    fail_each(FAKE_ALLOCATE, EIO);
    fail_each(FAKE_ALLOCATE, ENOSPC);
    fail_each(FAKE_TRUNCATE, EIO);
    fail_each(FAKE_SIZE, EIO);
}
END_TEST

/* A start at which a call fails; the next one finds all. False where there is
 * no n-th call any more. */
static bool
fail_start(struct rig *rig, enum fake_call call, int err, unsigned n)
{
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    (void)rig_set_all(rig, 'b', n);
    (void)rig_work(rig, 20);
    ck_assert_int_eq(rig_close(rig), 0);
    fake_disk_fail(rig->fake, 1u << call, n, err, false);
    int found = rig_open(rig);
    if (found == 0) {
        rig_expect_all(rig);
    } else {
        EXPECT(found == ERR_DISK || found == ERR_DISK_FULL, "start: %s",
            err_text(found));
        EXPECT((1u << call & FAKE_CHANGES) == 0,
            "no start where the disk can be read: %s", err_text(found));
    }
    bool any = fake_disk_heal(rig->fake) > 0;
    if (found != 0) {
        ck_assert_int_eq(rig_open(rig), 0);
    }
    rig_expect_all(rig);
    rig_wait_writable(rig);
    return any;
}

START_TEST(test_starts_fail)
{
    struct rig rig;
    begin(&rig, 1);
    work(&rig);
    for (unsigned call = 0; call < FAKE_CALLS; call++) {
        unsigned n = 1;
        while (fail_start(&rig, (enum fake_call)call, EIO, n)) {
            n = sweep_next(n);
        }
        n = 1;
        while (fail_start(&rig, (enum fake_call)call, ENOSPC, n)) {
            n = sweep_next(n);
        }
    }
    rig_end(&rig);
}
END_TEST

static unsigned
all_calls(struct fake_disk *fake)
{
    unsigned n = 0;
    for (unsigned call = 0; call < FAKE_CALLS; call++) {
        n += fake_disk_count(fake, (enum fake_call)call);
    }
    return n;
}

/* A disk that cannot sync or write for long does not keep the server from
 * starting: all can be read, changes are refused, and once it is well nothing
 * is lost, by a crash neither. No file is synced again after it failed. */
static void
start_sick(unsigned mask, int error)
{
    struct rig rig;
    begin(&rig, 2); /* each change is synced */
    (void)rig_work(&rig, 60);
    (void)rig_set_all(&rig, 'a', 7);
    fake_disk_die(rig.fake, 1);
    (void)rig_close(&rig);
    fake_disk_revive(rig.fake);
    fake_disk_fail(rig.fake, mask, 1, error, true);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert_int_ne(store_fault(rig.store), 0);
    unsigned calls = all_calls(rig.fake);
    while (all_calls(rig.fake) < calls + 100) {
        sched_yield(); /* it tries again and again */
    }
    ck_assert_uint_gt(fake_disk_heal(rig.fake), 1);
    rig_wait_writable(&rig);
    ck_assert_int_eq(rig_set_all(&rig, 'a', 8), STORE_COMMITTED);
    fake_disk_die(rig.fake, 1);
    (void)rig_close(&rig);
    rig_expect_order(&rig);
    fake_disk_crash(rig.fake);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    rig_end(&rig);
}

START_TEST(test_sick_starts)
{
    start_sick(1 << FAKE_SYNC, EIO);
    start_sick(1 << FAKE_WRITE, EIO);
    start_sick(1 << FAKE_WRITE | 1 << FAKE_SYNC, ENOSPC);
    start_sick(1 << FAKE_SYNC_NAMES, EIO);
    start_sick(1 << FAKE_RENAME, EIO);
}
END_TEST

/* Returns when there is room kept for a full disk. */
static void
wait_for_ballast(struct rig *rig)
{
    struct disk *disk = rig->data.disk;
    uint64_t size = 0;
    while (size < DURABLE_BALLAST_BYTES) {
        int fd;
        sched_yield();
        if (disk->calls->open(disk, "ballast", DISK_READ, &fd) == 0) {
            ck_assert_int_eq(disk->calls->size(disk, fd, &size), 0);
            disk->calls->close(disk, fd);
        }
    }
}

/* The disk has little room left: less than a log that is let go for its size
 * alone. */
static void
leave_room(struct rig *rig)
{
    enum { ALL = 1 << 30, ROOM_BYTES = 256 << 10 };
    struct disk *disk = rig->data.disk;
    uint64_t room;
    fake_disk_limit(rig->fake, ALL);
    ck_assert_int_eq(disk->calls->room(disk, &room), 0);
    fake_disk_limit(rig->fake, ALL - room + ROOM_BYTES);
}

/* Changes until the disk is full. */
static void
fill(struct rig *rig)
{
    uint64_t value = 1;
    int fault;
    while ((fault = store_fault(rig->store)) == 0) {
        (void)rig_set_all(rig, 'a', value++);
    }
    ck_assert_int_eq(fault, ERR_DISK_FULL);
}

/* A disk on which nothing can make room: all goes on once it has some. */
START_TEST(test_full_disk)
{
    struct rig rig;
    begin(&rig, 2);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    fake_disk_limit(rig.fake, 1);
    fill(&rig);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_edit(&rig, "add counter c"), ERR_DISK_FULL);
    fake_disk_limit(rig.fake, 0);
    rig_wait_writable(&rig);
    ck_assert_int_eq(rig_set_all(&rig, 'b', 1), STORE_COMMITTED);
    fake_disk_limit(rig.fake, 1);
    fill(&rig);
    rig_crash(&rig, true, 1);
    fill(&rig);
    rig_crash(&rig, false, 1);
    fake_disk_limit(rig.fake, 0);
    rig_wait_writable(&rig);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_int_eq(rig_set_all(&rig, 'b', 2), STORE_COMMITTED);
    wait_for_ballast(&rig);
    rig_end(&rig);
}
END_TEST

/* An edit that was made, and that the log then could not take, is not answered
 * as the next one, which is refused and was not made. */
START_TEST(test_unsure_edit)
{
    struct rig rig;
    begin(&rig, 2);
    fake_disk_fail(rig.fake, 1 << FAKE_WRITE, 1, ENOSPC, true);
    ck_assert_int_eq(rig_edit(&rig, "add counter c"), ERR_UNSURE);
    ck_assert_int_eq(rig_edit(&rig, "add counter c"), ERR_UNSURE);
    ck_assert_int_eq(rig_edit(&rig, "add counter d"), ERR_DISK_FULL);
    ck_assert_ptr_nonnull(schema_counter(store_schema(rig.store), "c", 1));
    ck_assert_ptr_null(schema_counter(store_schema(rig.store), "d", 1));
    ck_assert_uint_gt(fake_disk_heal(rig.fake), 1);
    rig_wait_writable(&rig);
    ck_assert_int_eq(rig_edit(&rig, "add counter c"), 0);
    rig_crash(&rig, true, 1);
    ck_assert_ptr_nonnull(schema_counter(store_schema(rig.store), "c", 1));
    rig_end(&rig);
}
END_TEST

/* Somebody else's file takes all the room there is. */
static void
take_room(struct rig *rig)
{
    struct disk *disk = rig->data.disk;
    uint64_t len = 0;
    int fd;
    ck_assert_int_eq(disk->calls->open(disk, "other", DISK_CREATE, &fd), 0);
    for (uint64_t more = 1 << 22; more > 0; more /= 2) {
        while (disk->calls->allocate(disk, fd, 0, len + more) == 0) {
            len += more;
        }
    }
    disk->calls->close(disk, fd);
}

/* There is room for a start and for the stop before it, and a checkpoint:
 * they let the log go. */
START_TEST(test_start_on_full_disk)
{
    struct rig rig;
    begin(&rig, 2);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    (void)rig_set_all(&rig, 'a', 1);
    fake_disk_limit(rig.fake, 3 << 20);
    for (unsigned i = 0; i < 3; i++) {
        rig_crash(&rig, false, 1);
        if (i == 0) {
            take_room(&rig);
        }
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_wait_writable(&rig);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    rig_end(&rig);
}
END_TEST

/* It is the log that fills the disk. A checkpoint lets it go, by itself, and
 * then there is room for the next one: again and again, and where the server
 * ended in between. */
START_TEST(test_log_fills_disk)
{
    struct rig rig;
    begin(&rig, 2);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    for (unsigned i = 0; i < 4; i++) {
        wait_for_ballast(&rig);
        leave_room(&rig);
        fill(&rig);
        if (i > 1) {
            rig_crash(&rig, i == 2, 1);
        }
        do { /* once more where a start has found some room */
            rig_wait_writable(&rig);
        } while (rig_set_all(&rig, 'b', i + 1) != STORE_COMMITTED);
        rig_expect_all(&rig);
    }
    wait_for_ballast(&rig);
    rig_end(&rig);
}
END_TEST

static void
note_checkpoint(void *context, const char *name)
{
    uint64_t *last = context;
    enum names_kind kind;
    uint64_t number;
    if (names_parse(name, &kind, &number) && kind == NAMES_CHECKPOINT &&
        number > *last) {
        *last = number;
    }
}

/* The name of the next checkpoint file. */
static void
next_checkpoint(struct rig *rig, char name[NAMES_BYTES])
{
    struct disk *disk = rig->data.disk;
    uint64_t last = 0;
    ck_assert_int_eq(disk->calls->list(disk, note_checkpoint, &last), 0);
    names_make(name, NAMES_CHECKPOINT, last + 1);
}

/* Changes are taken only when the checkpoint is through, and there is a new
 * ballast: they would take the room of both. */
START_TEST(test_refused_until_ballast)
{
    struct rig rig;
    char name[NAMES_BYTES];
    begin(&rig, 2);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    wait_for_ballast(&rig);
    leave_room(&rig);
    next_checkpoint(&rig, name);
    fake_disk_hold_name(rig.fake, FAKE_OPEN, name);
    fill(&rig);
    for (unsigned i = 0; i < 3; i++) {
        fake_disk_wait_held(rig.fake);
        ck_assert_int_eq(store_fault(rig.store), ERR_DISK_FULL);
        ck_assert_int_eq(rig_edit(&rig, "add counter c"), ERR_DISK_FULL);
        if (i < 2) { /* the next start is as careful */
            fake_disk_die(rig.fake, 1);
            fake_disk_let_go(rig.fake);
            (void)rig_close(&rig);
            fake_disk_revive(rig.fake);
            fake_disk_hold_name(rig.fake, FAKE_OPEN, name);
            ck_assert_int_eq(rig_open(&rig), 0);
        }
    }
    fake_disk_let_go(rig.fake);
    rig_wait_writable(&rig);
    rig_expect_all(&rig);
    wait_for_ballast(&rig);
    rig_end(&rig);
}
END_TEST

/* A disk that is smaller than what the log may grow to: a checkpoint comes when
 * the log has taken half of the room, and no change is refused. */
START_TEST(test_small_disk)
{
    enum { ALL = 1 << 30, ROOM_BYTES = 3 << 20 };
    struct rig rig;
    uint64_t value = 1, room;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_SPREAD, 3);
    rig.data.log_file_bytes = 1 << 20;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    wait_for_ballast(&rig);
    fake_disk_limit(rig.fake, ALL);
    struct disk *disk = rig.data.disk;
    ck_assert_int_eq(disk->calls->room(disk, &room), 0);
    fake_disk_limit(rig.fake, ALL - room + ROOM_BYTES);
    while (rig_stat(&rig, "live_bytes") < room &&
        rig_stat(&rig, "checkpoints") == 0) {
        ck_assert_int_eq(rig_set_all(&rig, 'a', value++), STORE_COMMITTED);
        ck_assert_int_eq(disk->calls->room(disk, &room), 0);
    }
    while (rig_stat(&rig, "checkpoints") == 0) {
        sched_yield();
    }
    ck_assert_int_eq(rig_set_all(&rig, 'a', value), STORE_COMMITTED);
    rig_end(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_writes_fail, test_syncs_fail,
        test_names_fail, test_others_fail, test_starts_fail, test_sick_starts,
        test_full_disk, test_unsure_edit, test_start_on_full_disk,
        test_log_fills_disk, test_refused_until_ballast, test_small_disk};
    return run_tests("durable faults", tests, COUNT_OF(tests));
}

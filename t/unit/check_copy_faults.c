/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/copy_* where the disk of either end fails, fills up or dies at each call
 * in turn, or memory runs out: the copy says so, the directory that is here
 * stays as it is, and the next copy goes on. */
#include "unit/copy_help.h"
#include "unit/heap_help.h"

#include <errno.h>

static struct rig from;
static struct spared_disk from_disk;

static void
begin_from(void)
{
    rig_init(&from, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    spared_disk_init(&from_disk, from.data.disk);
    from.data.disk = &from_disk.disk;
    from.seals = true;
    rig_take_clock(&from);
    ck_assert_int_eq(rig_open(&from), 0);
    rig_add_counter(&from, 'a');
    (void)rig_set_all(&from, 'a', 3);
    ck_assert_int_eq(rig_checkpoint(&from), 0);
    ck_assert_int_eq(rig_seal_all(&from), 0);
    (void)rig_set_all(&from, 'a', 4);
    ck_assert_int_eq(rig_checkpoint(&from), 0);
    (void)rig_set_all(&from, 'a', 5);
}

/* A stopped server's directory. */
static void
begin_to(struct rig *rig, uint64_t seed)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'b');
    (void)rig_set_all(rig, 'b', 7);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    (void)rig_set_all(rig, 'b', 8);
    ck_assert_int_eq(rig_close(rig), 0);
}

static bool
is_ordered(struct rig *rig)
{
    return has_file(rig, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE);
}

/* What was there is there, or the copy, whole; then the latter. */
static void
judge(struct rig *to, const struct join_config *config, uint64_t last_seq)
{
    struct join join;

    fake_clock_pass(&from.clock, 5000); /* it tries again after a failure */
    if (!is_ordered(to)) {
        ck_assert_int_eq(rig_open(to), 0);
        rig_expect_all(to);
        ck_assert_int_eq(rig_close(to), 0);
        ck_assert_int_eq(join_once(config, &join), COPY_DONE);
        last_seq = join.last_seq;
    }
    join_judge(to, &from, last_seq);
}

/* The n-th call of the replica's disk fails. False: there are not so many. */
static bool
fail_to(unsigned n, int error)
{
    struct rig to;
    struct join join;
    const struct join_config config = {.from = &from, .to = &to, .seed = n};

    begin_to(&to, n);
    fake_disk_fail(to.fake, FAKE_ALL, n, error, false);
    enum copy_next next = join_once(&config, &join);
    unsigned n_failed = fake_disk_heal(to.fake);
    EXPECT(next == COPY_DONE || n_failed > 0, "call %u", n);
    EXPECT(next != COPY_DONE || is_ordered(&to), "call %u", n);
    EXPECT(next != COPY_FAILED || join.in_figures.err == ERR_DISK ||
            join.in_figures.err == ERR_DISK_FULL ||
            join.in_figures.err == ERR_CORRUPT,
        "call %u: %d", n, join.in_figures.err);
    judge(&to, &config, join.last_seq);
    rig_fini(&to);
    return n_failed > 0;
}

START_TEST(test_replica_disk)
{
    unsigned n = 1;

    begin_from();
    while (fail_to(n, n % 2 == 0 ? EIO : ENOSPC)) {
        n++;
    }
    ck_assert_uint_gt(n, 60);
    rig_end(&from);
}
END_TEST

/* The replica's machine dies at its n-th change. */
static bool
die(unsigned n)
{
    struct rig to;
    struct join join;
    const struct join_config config = {.from = &from, .to = &to, .seed = n};

    begin_to(&to, n);
    fake_disk_die(to.fake, n);
    enum copy_next next = join_once(&config, &join);
    bool is_dead = fake_disk_is_dead(to.fake);
    EXPECT(next == COPY_DONE || is_dead, "change %u", n);
    fake_disk_crash(to.fake);
    judge(&to, &config, join.last_seq);
    rig_fini(&to);
    return is_dead;
}

START_TEST(test_replica_dies)
{
    unsigned n = 1;

    begin_from();
    while (die(n)) {
        n++;
    }
    ck_assert_uint_gt(n, 30);
    rig_end(&from);
}
END_TEST

/* There is no room for all of it: told before anything has come. */
START_TEST(test_full)
{
    struct rig to;
    struct join join;
    const struct join_config config = {.from = &from, .to = &to};

    begin_from();
    begin_to(&to, 5);
    fake_disk_limit(to.fake, 40000);
    ck_assert_int_eq(join_once(&config, &join), COPY_FAILED);
    ck_assert_int_eq(join.in_figures.err, ERR_DISK_FULL);
    ck_assert_uint_eq(join.in_figures.files_moved, 0);
    fake_disk_limit(to.fake, 0);
    judge(&to, &config, 0);
    rig_fini(&to);
    rig_end(&from);
}
END_TEST

/* The n-th read of the primary's disk fails. */
static bool
fail_from(unsigned n)
{
    struct rig to;
    struct join join;
    const struct join_config config = {.from = &from, .to = &to, .seed = n};

    begin_to(&to, n);
    fake_disk_fail(from.fake, 1 << FAKE_READ | 1 << FAKE_OPEN, n, EIO, false);
    enum copy_next next = join_once(&config, &join);
    unsigned n_failed = fake_disk_heal(from.fake);
    EXPECT(next == COPY_DONE || n_failed > 0, "read %u", n);
    if (next != COPY_DONE) {
        EXPECT(join.out_figures.err == ERR_DISK, "read %u: %d", n,
            join.out_figures.err);
    }
    judge(&to, &config, join.last_seq);
    rig_fini(&to);
    return n_failed > 0;
}

START_TEST(test_primary_disk)
{
    unsigned n = 1;

    begin_from();
    while (fail_from(n)) {
        n++;
    }
    ck_assert_uint_gt(n, 10);
    rig_end(&from);
}
END_TEST

/* ---- memory ---- */

/* The n-th call for memory fails, or all from it on do, of both ends and of the
 * primary's store. */
static bool
fail_memory(unsigned n, bool forever)
{
    struct rig to;
    struct join join;
    struct spared_disk to_disk;
    const struct join_config config = {.from = &from, .to = &to, .seed = n};

    begin_to(&to, n);
    struct disk *inner = to.data.disk;
    spared_disk_init(&to_disk, inner);
    to.data.disk = &to_disk.disk;
    int live = heap_live();
    heap_spare(); /* this thread's */
    ck_assert_int_eq(join_start(&join, &config), 0);
    heap_fail(n, forever ? UINT32_MAX : n);
    join_run(&join);
    unsigned n_failed = heap_heal();
    enum copy_next next = join.is_in;
    heap_unspare();
    join_end(&join);
    live = heap_live() - live;
    EXPECT(next == COPY_DONE || n_failed > 0, "call %u", n);
    if (next == COPY_FAILED) {
        EXPECT(join.in_figures.err == ERR_NO_MEMORY, "call %u: %d", n,
            join.in_figures.err);
    }
    to.data.disk = inner;
    judge(&to, &config, join.last_seq);
    rig_fini(&to);
    return n_failed > 0;
}

static void
sweep_memory(bool forever)
{
    unsigned n = 1;

    begin_from();
    while (fail_memory(n, forever)) {
        n++;
    }
    ck_assert_uint_gt(n, 20);
    rig_end(&from);
}

START_TEST(test_memory)
{
    sweep_memory(false);
}
END_TEST

START_TEST(test_no_memory)
{
    sweep_memory(true);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_replica_disk, test_replica_dies,
        test_full, test_primary_disk, test_memory, test_no_memory};
    return run_tests("copy faults", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk that fails while records are sealed, published, read back and changed:
 * each call of a kind in turn, once or from then on. A cell that cannot be read
 * says so, and is never answered with a wrong number; a change of it does
 * nothing; what could not be sealed stays hot; and all is well when the disk
 * is, or after a crash. */
#include "unit/faults_help.h"

#include <errno.h>

enum { IDS = 60 };

struct world {
    struct rig rig;
    struct cell_key key; /* of the column that is looked at */
    uint64_t value[IDS]; /* what its cells are */
    bool may_fail;       /* reads, and changes of cold records */
    unsigned n_unreadable;
    unsigned n_refused;
};

/* ---- what clients do ---- */

/* What was found at a place of get, where the cell of id i was asked for. */
static void
judge(struct world *world, const struct store_get *get, size_t at, size_t i)
{
    uint64_t value = world->value[i];
    if (get->state[at] == CELL_UNREADABLE) {
        EXPECT(world->may_fail, "a cell cannot be read");
        world->n_unreadable++;
        return;
    }
    EXPECT(get->value[at] == value &&
            get->state[at] == (value == 0 ? CELL_DEFAULT : CELL_SET),
        "cell %zu, at %zu, reads as %lu, is %lu", i, at,
        (unsigned long)get->value[at], (unsigned long)value);
}

/* Every third one as a source, too. */
static void
read_all(struct world *world)
{
    struct store_get get = {.n = IDS, .n_sources = IDS / 3};
    for (size_t i = 0; i < IDS; i++) {
        get.key[i] = world->key;
        get.key[i].id = world->rig.history.id[i];
    }
    for (size_t k = 0; k < get.n_sources; k++) {
        get.key[STORE_GET_MAX + k] = get.key[3 * k];
    }
    rig_get(&world->rig, &get);
    for (size_t i = 0; i < IDS; i++) {
        judge(world, &get, i, i);
    }
    for (size_t k = 0; k < get.n_sources; k++) {
        judge(world, &get, STORE_GET_MAX + k, 3 * k);
    }
}

/* Every so-manieth cell: sets it, counts it up, or deletes it. */
static void
change_some(struct world *world, size_t first, size_t each, enum change_op op,
    uint64_t operand)
{
    uint64_t seq;
    for (size_t i = first; i < IDS; i += each) {
        struct cell_key key = world->key;
        key.id = world->rig.history.id[i];
        struct change change = change_of(&key, op, operand);
        if (!rig_change(&world->rig, &change, 1, &seq)) {
            return;
        }
        if (change.err == 0) {
            world->value[i] = change.value[0];
        } else if (change.err != ERR_NOT_FOUND) {
            EXPECT(world->may_fail && change.err == ERR_COLD_READ, "%s",
                err_text(change.err));
            world->n_refused++;
        }
        (void)store_commit(world->rig.store, seq);
    }
}

static void
work(struct world *world)
{
    struct rig *rig = &world->rig;
    read_all(world);
    change_some(world, 0, 3, CHANGE_INCR, 2);
    (void)rig_seal_all(rig);
    read_all(world);
    change_some(world, 1, 4, CHANGE_DELETE, 0);
    change_some(world, 2, 4, CHANGE_SET, 77);
    (void)rig_checkpoint(rig);
    (void)rig_seal_all(rig);
    change_some(world, 0, 5, CHANGE_INCR, 1);
    read_all(world);
}

/* Some ranges are joined, one becomes hot: most of its records have changed. */
static void
work_tidily(struct world *world)
{
    struct rig *rig = &world->rig;
    (void)rig_tidy_wait(rig);
    read_all(world);
    change_some(world, 0, 2, CHANGE_INCR, 2);
    change_some(world, 1, 4, CHANGE_SET, 9);
    (void)rig_tidy_wait(rig);
    read_all(world);
}

/* ---- worlds ---- */

/* tidy: what is done from now on; nothing is while records are sealed. */
static void
begin_tidy(
    struct world *world, uint64_t seed, const struct seal_tidy_bounds *tidy)
{
    static const enum wal_sync modes[] = {
        WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};
    struct rig *rig = &world->rig;
    *world = (struct world){0};
    rig_init(rig, modes[seed % COUNT_OF(modes)],
        (enum id_family)(seed % ID_FAMILY_COUNT), seed);
    rig_take_clock(rig);
    rig->seals = true;
    rig->history.n_ids = IDS;
    rig->data.seal_records = seed % 2 == 0 ? 0 : 16;
    rig->data.checkpoint_step_bytes = 0;
    rig->data.tidy = &never;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    world->key = cell_of(quiet_schema(rig->store), 0, "ax");
    change_some(world, 0, 1, CHANGE_SET, 5);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    /* nothing is in the cache then */
    ck_assert_int_eq(rig_close(rig), 0);
    rig->data.tidy = tidy;
    ck_assert_int_eq(rig_open(rig), 0);
}

static void
begin(struct world *world, uint64_t seed)
{
    begin_tidy(world, seed, &never);
}

/* The disk is well again. */
static void
heal(struct world *world)
{
    struct rig *rig = &world->rig;
    (void)fake_disk_heal(rig->fake);
    world->may_fail = false;
    rig_wait_writable(rig);
    rig_expect_all(rig);
    read_all(world);
    change_some(world, 0, 2, CHANGE_INCR, 1);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    read_all(world);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_expect_order(rig);
    ck_assert_int_eq(rig_open(rig), 0);
    read_all(world);
}

/* False where there is no n-th call of that kind any more. tidy: as in
 * begin_tidy, while work_fn works. */
static bool
fail_call(const struct fault *fault, unsigned n,
    const struct seal_tidy_bounds *tidy, void (*work_fn)(struct world *world))
{
    struct world world;
    struct rig *rig = &world.rig;
    begin_tidy(&world, n + fault->forever, tidy);
    world.may_fail = true;
    fail_nth(rig, fault, n);
    work_fn(&world);
    rig->is_in_vain = false;
    bool any = fake_disk_heal(rig->fake) > 0;
    if (!crash_by_turns(rig, n)) {
        heal(&world);
    }
    rig_end(rig);
    return any;
}

static bool
fail_working(const struct fault *fault, unsigned n)
{
    return fail_call(fault, n, &never, work);
}

static bool
fail_tidying(const struct fault *fault, unsigned n)
{
    return fail_call(fault, n, &at_once, work_tidily);
}

static void
fail_each(enum fake_call call, int err)
{
    fail_by_turns(fail_working, call, err);
}

/* What is joined, or becomes hot, stays as it is or is as it is to be. */
START_TEST(test_tidying)
{
    fail_by_turns(fail_tidying, FAKE_WRITE, EIO);
    fail_by_turns(fail_tidying, FAKE_WRITE, ENOSPC);
    fail_by_turns(fail_tidying, FAKE_SYNC, EIO);
    fail_by_turns(fail_tidying, FAKE_READ, EIO);
    fail_by_turns(fail_tidying, FAKE_RENAME, EIO);
    fail_by_turns(fail_tidying, FAKE_OPEN, EIO);
    fail_by_turns(fail_tidying, FAKE_UNLINK, EIO);
}
END_TEST

START_TEST(test_writes)
{
    fail_each(FAKE_WRITE, EIO);
    fail_each(FAKE_WRITE, ENOSPC);
}
END_TEST

START_TEST(test_syncs)
{
    fail_each(FAKE_SYNC, EIO);
    fail_each(FAKE_SYNC_NAMES, EIO);
}
END_TEST

START_TEST(test_names)
{
    fail_each(FAKE_OPEN, EIO);
    fail_each(FAKE_OPEN, ENOSPC);
    fail_each(FAKE_RENAME, EIO);
    fail_each(FAKE_UNLINK, EIO);
}
END_TEST

START_TEST(test_reads)
{
    fail_each(FAKE_READ, EIO);
}
END_TEST

/* No block can be read: all cells say so, no change is done. */
START_TEST(test_nothing_reads)
{
    struct world world;
    begin(&world, 1);
    world.may_fail = true;
    fake_disk_fail(world.rig.fake, 1 << FAKE_READ, 1, EIO, true);
    read_all(&world);
    ck_assert_uint_eq(world.n_unreadable, IDS + IDS / 3);
    change_some(&world, 0, 1, CHANGE_INCR, 1);
    ck_assert_uint_eq(world.n_refused, IDS);
    change_some(&world, 0, 1, CHANGE_DELETE, 0);
    ck_assert_uint_eq(world.n_refused, 2 * IDS);
    heal(&world);
    rig_end(&world.rig);
}
END_TEST

/* A disk without room for a segment: the records stay hot. */
START_TEST(test_full_disk)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct world world;
        struct rig *rig = &world.rig;
        begin(&world, seed);
        change_some(&world, 0, 1, CHANGE_INCR, 1);
        struct engine_sum sum = {0}, later = {0};
        store_tables(rig->store, world.key.counter, -1, &sum);
        ck_assert_uint_eq(sum.records, IDS);
        fake_disk_fail(rig->fake, 1 << FAKE_WRITE, 1, ENOSPC, true);
        ck_assert_int_eq(rig_seal_all(rig), ERR_DISK_FULL);
        store_tables(rig->store, world.key.counter, -1, &later);
        ck_assert_uint_eq(later.records, IDS);
        read_all(&world);
        heal(&world);
        rig_end(rig);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_nothing_reads, test_full_disk,
        test_reads, test_writes, test_syncs, test_names, test_tidying};
    return run_tests("cold faults", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange of a directory for a snapshot: whatever call of the disk is the
 * last one, or fails, the directory is the old or the new one afterwards. */
#include "unit/snapshot_help.h"

#include "offline/dump.h"
#include "offline/salvage.h"

#include <errno.h>

enum { PIECE = 4000 };

static struct rig source;
static struct captured captured;

static void
begin_source(void)
{
    rig_init(&source, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    source.seals = true;
    ck_assert_int_eq(rig_open(&source), 0);
    rig_add_counter(&source, 'a');
    (void)rig_set_all(&source, 'a', 3);
    ck_assert_int_eq(rig_checkpoint(&source), 0);
    ck_assert_int_eq(rig_seal_all(&source), 0);
    (void)rig_set_all(&source, 'a', 4);
    ck_assert_int_eq(rig_checkpoint(&source), 0);
    (void)rig_set_all(&source, 'a', 5);
    capture(&source, &captured);
}

static void
end_source(void)
{
    captured_fini(&captured);
    rig_end(&source);
}

/* A stopped server's directory, with files of the same numbers. */
static void
begin_old(struct rig *rig, uint64_t seed)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    rig->seals = true;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'b');
    (void)rig_set_all(rig, 'b', 7);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    (void)rig_set_all(rig, 'b', 8);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    (void)rig_set_all(rig, 'b', 9);
    ck_assert_int_eq(rig_close(rig), 0);
}

static uint64_t
epoch_of(struct rig *rig)
{
    struct manifest manifest;
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    uint64_t epoch = manifest.epoch;
    manifest_fini(&manifest);
    return epoch;
}

/* The directory is the old or the new one, all of it, and works. True: the new
 * one. */
static bool
judge(struct rig *rig, uint64_t old_epoch)
{
    ck_assert_int_eq(rig_open(rig), 0);
    bool is_new = epoch_of(rig) != old_epoch;
    if (is_new) {
        ck_assert_uint_eq(epoch_of(rig), epoch_of(&source));
        expect_copy(rig, &source, &captured);
        ck_assert_uint_eq(folder_files(rig), 0);
    } else {
        rig_expect_all(rig);
    }
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(check_copy(NULL, rig->data.disk, &rig->logger), 0);
    return is_new;
}

/* While an old MANIFEST is there, which an older tallyd would load, all else of
 * the old directory is there as well. */
static void
expect_no_mix(struct rig *rig, uint64_t old_epoch)
{
    unsigned whole = (unsigned)captured.files.n + 2;
    if (has_file(rig, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE) &&
        has_file(rig, MANIFEST_NAME) && epoch_of(rig) == old_epoch) {
        ck_assert_uint_ge(folder_files(rig), whole);
    }
}

/* The n-th call that changes something, from the first byte of the copy to the
 * end of the next start, is the last one. False: there are not so many. */
static bool
cut(unsigned n, unsigned n_seen[2])
{
    struct rig rig;
    begin_old(&rig, n);
    uint64_t old_epoch = epoch_of(&rig);
    fake_disk_die(rig.fake, n);
    bool is_ordered = copy_all(&rig, &captured, PIECE) == 0;
    bool is_over = is_ordered && rig_open(&rig) == 0;
    bool is_dead = fake_disk_is_dead(rig.fake);
    if (is_over) {
        (void)rig_close(&rig);
    }
    if (is_dead && n % 3 == 0) {
        fake_disk_revive(rig.fake);
    } else {
        fake_disk_crash(rig.fake);
    }
    expect_no_mix(&rig, old_epoch);
    bool is_new = judge(&rig, old_epoch);
    ck_assert(!is_ordered || is_new);
    n_seen[is_new]++;
    /* where it was the old one, it may go on */
    if (!is_new) {
        ck_assert_int_eq(copy_all(&rig, &captured, PIECE), 0);
        ck_assert(judge(&rig, old_epoch));
    }
    rig_fini(&rig);
    return is_dead && !is_over;
}

START_TEST(test_cut_short)
{
    unsigned n = 1, n_seen[2] = {0};
    begin_source();
    while (cut(n, n_seen)) {
        n++;
    }
    ck_assert_uint_gt(n_seen[false], 10);
    ck_assert_uint_gt(n_seen[true], 10);
    end_source();
}
END_TEST

/* The exchange dies at its n-th call that changes something, and what is lost
 * differs by the seed. False: there are not so many. */
static bool
cut_exchange(unsigned n, uint64_t seed)
{
    struct rig rig;
    begin_old(&rig, seed);
    uint64_t old_epoch = epoch_of(&rig);
    ck_assert_int_eq(copy_all(&rig, &captured, PIECE), 0);
    fake_disk_die(rig.fake, n);
    bool is_over = snapshot_exchange__finish(rig.data.disk, &rig.logger) == 0;
    bool is_dead = fake_disk_is_dead(rig.fake);
    fake_disk_crash_unordered(rig.fake);
    expect_no_mix(&rig, old_epoch);
    ck_assert(judge(&rig, old_epoch));
    rig_fini(&rig);
    return is_dead && !is_over;
}

START_TEST(test_cut_exchange)
{
    enum { SEEDS = 12 };
    bool goes_on = true;
    begin_source();
    for (unsigned n = 1; goes_on; n++) {
        goes_on = false;
        for (uint64_t seed = 1; seed <= SWEEP_PART(SEEDS); seed++) {
            goes_on |= cut_exchange(n, seed);
        }
    }
    end_source();
}
END_TEST

/* A start dies, and the one that goes on, too. */
START_TEST(test_cut_twice)
{
    begin_source();
    for (unsigned n = 1; n < 30; n += 2) {
        struct rig rig;
        begin_old(&rig, n);
        uint64_t old_epoch = epoch_of(&rig);
        ck_assert_int_eq(copy_all(&rig, &captured, PIECE), 0);
        for (unsigned i = 0; i < 3; i++) {
            fake_disk_die(rig.fake, 1 + (n * (i + 1)) % 23);
            if (rig_open(&rig) == 0) {
                (void)rig_close(&rig);
            }
            fake_disk_crash(rig.fake);
        }
        ck_assert(judge(&rig, old_epoch));
        rig_fini(&rig);
    }
    end_source();
}
END_TEST

/* One call fails: it is told, or does not matter, and the next try works.
 * False: there are not so many calls. */
static bool
fail_once(unsigned n, int error)
{
    struct rig rig;
    begin_old(&rig, n);
    uint64_t old_epoch = epoch_of(&rig);
    fake_disk_fail(rig.fake, FAKE_ALL, n, error, false);
    int err = copy_all(&rig, &captured, PIECE);
    unsigned n_failed = fake_disk_heal(rig.fake);
    bool is_ordered = has_file(&rig, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE);
    ck_assert(err != 0 || is_ordered);
    ck_assert(err == 0 || n_failed > 0);
    bool is_new = judge(&rig, old_epoch);
    ck_assert(is_new == is_ordered);
    if (!is_new) {
        ck_assert_int_eq(copy_all(&rig, &captured, PIECE), 0);
        ck_assert(judge(&rig, old_epoch));
    }
    rig_fini(&rig);
    return n_failed > 0;
}

START_TEST(test_copy_fails)
{
    static const int errors[] = {EIO, ENOSPC};
    unsigned n = 1;
    begin_source();
    while (fail_once(n, errors[n % 2])) {
        n++;
    }
    ck_assert_uint_gt(n, 60);
    end_source();
}
END_TEST

/* The same of the exchange: the start is refused, and the next one goes on. */
START_TEST(test_exchange_fails)
{
    unsigned n_refused = 0;
    begin_source();
    for (unsigned n = 1; n < 60; n++) {
        struct rig rig;
        begin_old(&rig, n);
        uint64_t old_epoch = epoch_of(&rig);
        ck_assert_int_eq(copy_all(&rig, &captured, PIECE), 0);
        fake_disk_fail(rig.fake, FAKE_ALL, n, EIO, false);
        int err = snapshot_exchange__finish(rig.data.disk, &rig.logger);
        bool is_over = fake_disk_heal(rig.fake) == 0;
        ck_assert(err == 0 || !is_over);
        n_refused += err != 0;
        if (err == 0) { /* of the old directory */
            ck_assert(!has_file(&rig, MANIFEST_COPY));
        }
        ck_assert(judge(&rig, old_epoch));
        rig_fini(&rig);
        if (is_over) {
            break;
        }
    }
    ck_assert_uint_gt(n_refused, 10);
    end_source();
}
END_TEST

/* Nobody reads, mends or uses a directory in the midst of it. */
START_TEST(test_refused_meanwhile)
{
    struct rig rig;
    struct buf report = {0};
    enum salvage_outcome outcome;
    begin_source();
    begin_old(&rig, 1);
    uint64_t old_epoch = epoch_of(&rig);
    ck_assert_int_eq(copy_all(&rig, &captured, PIECE), 0);
    ck_assert_int_eq(
        check_copy(NULL, rig.data.disk, &rig.logger), ERR_CORRUPT);
    const struct salvage_config salvage = {.disk = rig.data.disk,
        .logger = &rig.logger,
        .shards = 4,
        .seed = 1,
        .free_bytes = UINT64_MAX};
    ck_assert_int_eq(salvage_run(&salvage, &report, &outcome), ERR_CORRUPT);
    const struct dump_config dump = {
        .disk = rig.data.disk, .logger = &rig.logger};
    ck_assert_int_eq(dump_run(&dump), ERR_CORRUPT);
    ck_assert(judge(&rig, old_epoch));
    buf_fini(&report);
    rig_fini(&rig);
    end_source();
}
END_TEST

/* An order that is damaged is not carried out, and nothing is loaded. */
START_TEST(test_damaged_order)
{
    struct rig rig;
    const char *name = SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE;
    begin_source();
    begin_old(&rig, 1);
    uint64_t old_epoch = epoch_of(&rig);
    ck_assert_int_eq(copy_all(&rig, &captured, PIECE), 0);
    fake_disk_flip(rig.fake, name, 50, 2);
    ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
    ck_assert_uint_eq(epoch_of(&rig), old_epoch);
    fake_disk_flip(rig.fake, name, 50, 2);
    ck_assert(judge(&rig, old_epoch));
    rig_fini(&rig);
    end_source();
}
END_TEST

/* Makes a file with nothing of use in it, durably. */
static void
make_file(struct rig *rig, enum names_kind kind, uint64_t number)
{
    struct disk *disk = rig->data.disk;
    char name[NAMES_BYTES];
    int fd;
    names_make(name, kind, number);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, "x", 1, 0), 0);
    ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
    disk->calls->close(disk, fd);
    ck_assert_int_eq(disk->calls->sync_names(disk), 0);
}

static bool
has_number(struct rig *rig, enum names_kind kind, uint64_t number)
{
    char name[NAMES_BYTES];
    names_make(name, kind, number);
    return has_file(rig, name);
}

/* What was cut off the log before stays, whatever numbers the files of the
 * snapshot have; what is not whole goes. */
START_TEST(test_cut_files_stay)
{
    enum { FILES = 20 };
    struct rig rig;
    struct snapshot_file file;
    begin_source();
    begin_old(&rig, 1);
    uint64_t old_epoch = epoch_of(&rig);
    for (uint64_t i = 1; i <= FILES; i++) {
        make_file(&rig, NAMES_CUT, i);
        make_file(&rig, NAMES_CUT_NEW, i);
    }
    ck_assert_int_eq(copy_all(&rig, &captured, PIECE), 0);
    ck_assert(judge(&rig, old_epoch));
    for (uint64_t i = 1; i <= FILES; i++) {
        ck_assert(has_number(&rig, NAMES_CUT, i));
        ck_assert(!has_number(&rig, NAMES_CUT_NEW, i));
    }
    ck_assert(!snapshot__file_parse("cut-00000000000000000001.wal", &file));
    rig_fini(&rig);
    end_source();
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_cut_short, test_cut_exchange,
        test_cut_twice, test_copy_fails, test_exchange_fails,
        test_refused_meanwhile, test_damaged_order, test_cut_files_stay};
    return run_tests("snapshot exchange", tests, COUNT_OF(tests));
}

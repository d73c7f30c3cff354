/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories of an older tallyd, whose log and checkpoint files have no suffix
 * in their names. */
#include "offline/data_check.h"
#include "unit/durable_help.h"

#include "base/buf.h"
#include "base/err.h"
#include "durable/data.h"
#include "offline/salvage.h"
#include "wal/manifest.h"
#include "wal/names_old.h"

#include <errno.h>

static void
rename_one(void *context, const char *name)
{
    struct disk *disk = context;
    char old[NAMES_BYTES];
    if (names_old_make(name, old)) {
        ck_assert_int_eq(disk->calls->rename(disk, name, old), 0);
    }
}

/* Manifests so far; 0: an older tallyd's. */
static uint64_t
writes_of(struct disk *disk)
{
    struct manifest manifest;
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(disk, &manifest, NULL), 0);
    uint64_t writes = manifest.writes;
    manifest_fini(&manifest);
    return writes;
}

static void
make_manifest_old(struct disk *disk)
{
    struct manifest manifest;
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(disk, &manifest, NULL), 0);
    manifest.writes = 0;
    ck_assert_int_eq(manifest_write(disk, &manifest, NULL, NULL), 0);
    ck_assert_int_eq(manifest_write_copy(disk, &manifest), 0);
    manifest_fini(&manifest);
}

/* A stopped server's directory, as an older one would have left it. */
static void
begin(struct rig *rig, uint64_t seed)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 3);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    (void)rig_set_all(rig, 'a', 4);
    ck_assert_int_eq(rig_close(rig), 0);
    struct disk *disk = rig->data.disk;
    ck_assert_int_eq(disk->calls->list(disk, rename_one, disk), 0);
    make_manifest_old(disk);
}

static struct names_old_found
names_of(struct rig *rig)
{
    struct names_old_found found;
    ck_assert_int_eq(names_old_find(rig->data.disk, &found), 0);
    return found;
}

START_TEST(test_carried_over)
{
    struct rig rig;
    begin(&rig, 1);
    ck_assert(names_of(&rig).has_old && names_of(&rig).today[0] == '\0');
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_expect_all(&rig);
        ck_assert(!names_of(&rig).has_old && names_of(&rig).today[0] != '\0');
        ck_assert_uint_ne(writes_of(rig.data.disk), 0);
        (void)rig_set_all(&rig, 'a', 5);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        (void)rig_set_all(&rig, 'a', 6);
        ck_assert_int_eq(rig_close(&rig), 0);
    }
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_end(&rig);
}
END_TEST

/* The n-th call that changes something is the last one. False: there are not
 * so many. */
static bool
cut(unsigned n)
{
    struct rig rig;
    begin(&rig, n);
    fake_disk_die(rig.fake, n);
    bool is_open = rig_open(&rig) == 0;
    bool is_dead = fake_disk_is_dead(rig.fake);
    if (is_open) {
        (void)rig_close(&rig);
    }
    if (is_dead && n % 3 == 0) {
        fake_disk_revive(rig.fake);
    } else {
        fake_disk_crash(rig.fake);
    }
    /* the older one finds all that it had, or refuses */
    ck_assert(
        writes_of(rig.data.disk) != 0 || names_of(&rig).today[0] == '\0');
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert(!names_of(&rig).has_old);
    rig_end(&rig);
    return is_dead && !is_open;
}

START_TEST(test_cut_short)
{
    unsigned n = 1;
    while (cut(n)) {
        n++;
    }
    ck_assert_uint_gt(n, 8);
}
END_TEST

/* Each call fails once: the start is refused or goes on, and nothing is lost.
 */
START_TEST(test_calls_that_fail)
{
    unsigned fails = 1;
    for (unsigned n = 1; fails > 0; n++) {
        struct rig rig;
        begin(&rig, n);
        fake_disk_fail(rig.fake,
            1 << FAKE_RENAME | 1 << FAKE_SYNC_NAMES | 1 << FAKE_LOOK |
                1 << FAKE_LIST,
            n, EIO, false);
        if (rig_open(&rig) == 0) {
            (void)rig_close(&rig);
        }
        fails = fake_disk_heal(rig.fake);
        ck_assert(
            writes_of(rig.data.disk) != 0 || names_of(&rig).today[0] == '\0');
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_expect_all(&rig);
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

/* A backup of an older one over newer files is none of one moment. */
START_TEST(test_older_manifest_over_newer_files)
{
    struct rig rig;
    begin(&rig, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    make_manifest_old(rig.data.disk);
    ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
    ck_assert_uint_eq(writes_of(rig.data.disk), 0);
    rig_fini(&rig);
}
END_TEST

static void
make_file(struct disk *disk, const char *name)
{
    int fd;
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, "x", 1, 0), 0);
    ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
    disk->calls->close(disk, fd);
    ck_assert_int_eq(disk->calls->sync_names(disk), 0);
}

/* What a check says is what a start does; why: told by it. */
static void
expect_check(struct rig *rig, int wanted, const char *why)
{
    struct buf out = {0};
    ck_assert_int_eq(
        data_check_disk(rig->data.disk, &rig->logger, &out), wanted);
    buf_add(&out, "", 1);
    ck_assert_msg(strstr(out.data, why) != NULL, "%s", out.data);
    buf_fini(&out);
}

static void
expect_salvage(struct rig *rig, enum salvage_outcome wanted, const char *says)
{
    const struct salvage_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .shards = rig->config.shards,
        .seed = 3};
    struct buf report = {0};
    enum salvage_outcome outcome;
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    buf_add(&report, "", 1);
    ck_assert_msg(outcome == wanted, "%d:\n%s", outcome, report.data);
    ck_assert_msg(strstr(report.data, says) != NULL, "%s", report.data);
    buf_fini(&report);
}

/* A salvage of an older directory was interrupted before the manifest, and then
 * the damaged file was put back from a backup. */
START_TEST(test_left_by_salvage)
{
    static const char *const left[] = {"checkpoint-00000000000000000099.ckpt",
        "log-00000000000000000099.wal", "log-00000000000000000099.wal.new"};
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        struct rig rig;
        begin(&rig, 1);
        expect_check(&rig, 0, "all is well");
        expect_salvage(&rig, SALVAGE_SOUND, "all is well");
        ck_assert_uint_eq(writes_of(rig.data.disk), 0);
        make_file(rig.data.disk, left[i]);
        expect_check(&rig, ERR_CORRUPT, err_file_text(ERR_CORRUPT));
        ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
        expect_salvage(&rig, SALVAGE_LOSSY, left[i]);
        ck_assert_uint_ne(writes_of(rig.data.disk), 0);
        expect_check(&rig, 0, "all is well");
        expect_salvage(&rig, SALVAGE_SOUND, "all is well");
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_expect_all(&rig);
        ck_assert(!names_of(&rig).has_old);
        rig_end(&rig);
    }
}
END_TEST

/* All calls of a disk are there. */
START_TEST(test_calls)
{
    struct rig rig;
    struct disk *old;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    ck_assert_int_eq(names_old_create(rig.data.disk, &old), 0);
    const uint8_t *at = (const uint8_t *)old->calls;
    static const uint8_t none[sizeof(void (*)(void))];
    for (size_t i = 0; i < sizeof *old->calls; i += sizeof none) {
        ck_assert_mem_ne(at + i, none, sizeof none);
    }
    names_old_destroy(&old);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_names)
{
    static const char *const pair[][2] = {
        {"log-00000000000000000001", "log-00000000000000000001.wal"},
        {"log-00000000000000000001.new", "log-00000000000000000001.wal.new"},
        {"checkpoint-00000000000000000007",
            "checkpoint-00000000000000000007.ckpt"}};
    static const char *const others[] = {"MANIFEST", "log-1", "log-1.wal",
        "segment-00000000000000000001.seg", "log-0000000000000000000a",
        "checkpoint-00000000000000000007.new", "log-00000000000000000001.1"};
    char name[NAMES_BYTES];
    for (size_t i = 0; i < COUNT_OF(pair); i++) {
        ck_assert(names_old_parse(pair[i][0], name));
        ck_assert_str_eq(name, pair[i][1]);
        ck_assert(!names_old_parse(pair[i][1], name));
        ck_assert(names_old_make(pair[i][1], name));
        ck_assert_str_eq(name, pair[i][0]);
        ck_assert(!names_old_make(pair[i][0], name));
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        ck_assert(!names_old_parse(others[i], name));
        ck_assert(!names_old_make(others[i], name));
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_carried_over, test_cut_short,
        test_calls_that_fail, test_older_manifest_over_newer_files,
        test_left_by_salvage, test_calls, test_names};
    return run_tests("durable names", tests, COUNT_OF(tests));
}

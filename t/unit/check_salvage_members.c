/* SPDX-License-Identifier: BSD-3-Clause */
/* offline/salvage_members: an image or a segment is lost, of records or of
 * pairs, whichever, or a part of it: counts are those of the members that are
 * left, no other number of their records is touched, and no number is given a
 * second time; and a manifest that is lost with its copy. */
#include "offline/data_check.h"
#include "offline/salvage.h"
#include "unit/files_help.h"
#include "unit/members_help.h"

enum {
    IDS = 1300, /* numbers of more than one block in a shard */
    MEMBERS = 3,
    LOST_MIN = 4
};

static void
fill_as(struct rig *rig)
{
    for (uint64_t id = 1; id <= IDS; id++) {
        for (uint64_t m = 0; m < 1 + id % MEMBERS; m++) {
            members_change(rig, id, "liked", m, 1);
        }
    }
    ck_assert_int_eq(rig_commit(rig, members_seq), STORE_COMMITTED);
}

static void
fill(struct rig *rig)
{
    members_add_counter(rig);
    fill_as(rig);
}

/* What --check says of the disk. */
static uint64_t
expect_sound(struct rig *rig, const char *after)
{
    struct buf out = {0};
    int err = data_check_disk(rig->data.disk, &rig->logger, &out);
    buf_add(&out, "", 1);
    ck_assert_msg(err == 0, "%s: %s", after, out.data);
    const char *at = strstr(out.data, "\nmembers ");
    ck_assert_ptr_nonnull(at);
    uint64_t n = strtoull(at + sizeof "\nmembers " - 1, NULL, 10);
    buf_fini(&out);
    return n;
}

static enum salvage_outcome
salvage(struct rig *rig)
{
    struct buf report = {0};
    enum salvage_outcome outcome;
    const struct salvage_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .shards = rig->config.shards,
        .seed = rig->config.seed + 1};
    int err = salvage_run(&config, &report, &outcome);
    buf_add(&report, "", 1);
    ck_assert_msg(err == 0, "%s", report.data);
    buf_fini(&report);
    return outcome;
}

/* The rig has a disk with these files. */
static void
take_disk(struct rig *rig, const struct files *files)
{
    fake_disk_destroy(&rig->fake);
    rig->fake = disk_of(files);
    rig->data.disk = fake_disk_as_disk(rig->fake);
}

/* Records get their first members, and the directory is right behind it: each
 * has those alone. */
static void
expect_goes_on(struct rig *rig, uint64_t n_before)
{
    ck_assert_int_eq(rig_open(rig), 0);
    for (uint64_t id = IDS + 1; id <= 2 * IDS; id++) {
        members_change(rig, id, "liked", 77, 1);
    }
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_uint_eq(expect_sound(rig, "more members"), n_before + IDS);
}

static bool
is_checkpoint(const struct file *file)
{
    return strncmp(file->name, "checkpoint-", 11) == 0;
}

/* Bytes all over a file; again: as it was. */
static void
harm(struct file *file)
{
    for (uint64_t at = 40; at < file->len; at += 100) {
        file->bytes[at] ^= 0x55;
    }
}

START_TEST(test_images)
{
    struct rig rig;
    struct files files;
    unsigned n_lost = 0;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    rig.data.checkpoint_file_bytes = 4000;
    ck_assert_int_eq(rig_open(&rig), 0);
    fill(&rig);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    uint64_t n_all = expect_sound(&rig, "filled");
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        if (!is_checkpoint(&files.file[i])) {
            continue;
        }
        harm(&files.file[i]);
        take_disk(&rig, &files);
        harm(&files.file[i]);
        ck_assert_int_eq(salvage(&rig), SALVAGE_LOSSY);
        uint64_t n = expect_sound(&rig, files.file[i].name);
        n_lost += n < n_all;
        expect_goes_on(&rig, n);
    }
    ck_assert_uint_ge(n_lost, LOST_MIN);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

static uint64_t
plain_of(uint64_t id)
{
    return 1000 + id % 90;
}

/* Most in segments, and changes behind them in the log. */
static void
fill_cold(struct rig *rig)
{
    members_add_cold_counter(rig);
    for (uint64_t id = 1; id <= IDS; id++) {
        members_set_named(rig, id, "plain", plain_of(id));
    }
    fill_as(rig);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    for (uint64_t id = 1; id <= IDS; id += 7) {
        members_change(rig, id, "liked", 0, id % 2);
        members_change(rig, id, "liked", 50, 1);
    }
    ck_assert_int_eq(rig_commit(rig, members_seq), STORE_COMMITTED);
}

static bool
is_segment(const struct file *file)
{
    return strncmp(file->name, "segment-", 8) == 0;
}

/* The first byte of the parts that are damaged one by one: the head, blocks. */
enum { PART = 4096 };

static void
harm_part(struct file *file, uint64_t part)
{
    for (uint64_t at = part + 40; at < part + PART && at < file->len;
         at += 100) {
        file->bytes[at] ^= 0x55;
    }
}

/* Each record that is there has its number, and how many there are. */
static uint64_t
expect_plain(struct rig *rig)
{
    uint64_t n = 0;
    ck_assert_int_eq(rig_open(rig), 0);
    for (uint64_t id = 1; id <= IDS; id++) {
        uint64_t plain = members_get(rig, id, "plain");
        ck_assert(plain == plain_of(id) || plain == 0);
        n += plain != 0;
    }
    ck_assert_int_eq(rig_close(rig), 0);
    return n;
}

/* One part of a segment; true where it was one of pairs. */
static bool
lose_part(struct rig *rig, struct files *files, size_t i, uint64_t part,
    uint64_t n_all)
{
    struct file *file = &files->file[i];
    harm_part(file, part);
    take_disk(rig, files);
    harm_part(file, part);
    enum salvage_outcome outcome = salvage(rig);
    uint64_t n = expect_sound(rig, file->name);
    uint64_t n_records = expect_plain(rig);
    ck_assert((outcome == SALVAGE_WHOLE) == (n == n_all && n_records == IDS));
    ck_assert(outcome == SALVAGE_WHOLE || outcome == SALVAGE_LOSSY);
    ck_assert(part > 0 || outcome == SALVAGE_WHOLE); /* the head is guessed */
    expect_goes_on(rig, n);
    return n_records == IDS && n < n_all;
}

/* With images over the segments (_i is 1), or with all changes in the log. */
START_TEST(test_segments)
{
    struct rig rig;
    struct files files;
    unsigned n_of_pairs = 0;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    fill_cold(&rig);
    if (_i == 1) {
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    uint64_t n_all = expect_sound(&rig, "filled");
    ck_assert_uint_eq(expect_plain(&rig), IDS);
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        for (uint64_t part = 0;
             is_segment(&files.file[i]) && part + PART < files.file[i].len;
             part += PART) {
            n_of_pairs += lose_part(&rig, &files, i, part, n_all);
        }
    }
    ck_assert_uint_gt(n_of_pairs, 0);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

/* That a record gave its members up is lost, but for the note: it has them.
 * Something else is lost, too, or there is nothing to be salvaged. */
START_TEST(test_note)
{
    enum { ID = 5 };
    struct rig rig;
    struct files files;
    unsigned n_lost = 0;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    rig.data.checkpoint_file_bytes = 4000;
    ck_assert_int_eq(rig_open(&rig), 0);
    fill(&rig);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    uint64_t number = members_get(&rig, ID, "liked");
    uint64_t within = number % MEMBERS_MARK;
    members_put(&rig, ID, "liked", number - within + MEMBERS_MARK, within, 1);
    ck_assert_int_eq(rig_close(&rig), 0);
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        if (!is_checkpoint(&files.file[i])) {
            continue;
        }
        harm(&files.file[i]);
        take_disk(&rig, &files);
        harm(&files.file[i]);
        ck_assert_int_eq(salvage(&rig), SALVAGE_LOSSY);
        uint64_t n = expect_sound(&rig, files.file[i].name);
        expect_goes_on(&rig, n);
        n_lost++;
    }
    ck_assert_uint_ge(n_lost, LOST_MIN);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

/* The log has all, but ids have other shards: nobody has members, and what
 * comes then is right. */
START_TEST(test_manifest)
{
    struct rig rig;
    struct files files;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    fill(&rig);
    fake_disk_die(rig.fake, 1); /* no checkpoint at the end */
    (void)rig_close(&rig);
    fake_disk_revive(rig.fake);
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        if (strncmp(files.file[i].name, "MANIFEST", 8) == 0) {
            free(files.file[i].bytes);
            files.file[i].bytes = NULL;
        }
    }
    take_disk(&rig, &files);
    ck_assert_int_eq(salvage(&rig), SALVAGE_LOSSY);
    ck_assert_uint_eq(expect_sound(&rig, "without a manifest"), 0);
    expect_goes_on(&rig, 0);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("salvage_members");
    tcase_add_test(tcase, test_images);
    tcase_add_loop_test(tcase, test_segments, 0, 2);
    tcase_add_test(tcase, test_note);
    tcase_add_test(tcase, test_manifest);
    return run_case("salvage_members", tcase);
}

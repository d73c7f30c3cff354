/* SPDX-License-Identifier: BSD-3-Clause */
/* A snapshot that is put together: cut off and resumed, damaged on the way, or
 * announced wrongly. */
#include "unit/snapshot_help.h"

#include <errno.h>
#include <stdio.h>

enum { CUTS = 10, PIECE = 4000 };

/* A directory with log, checkpoints and segments, captured while open. */
static void
begin(struct rig *rig, struct captured *captured, uint64_t seed)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    rig->seals = true;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 3);
    (void)rig_work(rig, 300);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    (void)rig_set_all(rig, 'a', 4);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    (void)rig_work(rig, 50);
    (void)rig_set_all(rig, 'a', 5);
    capture(rig, captured);
}

static void
end(struct rig *rig, struct captured *captured)
{
    captured_fini(captured);
    ck_assert_int_eq(rig_seal_wait(rig), 0);
    rig_end(rig);
}

static void
begin_target(struct rig *to, uint64_t seed)
{
    rig_init(to, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    to->seals = true; /* what it reads may be cold */
}

static void
open_put(struct rig *to, struct snapshot_put *put)
{
    ck_assert_int_eq(snapshot_put_open(put, to->data.disk, &to->logger), 0);
}

static size_t
n_whole(const struct snapshot_put *put)
{
    size_t n = 0;
    for (size_t i = 0; i < put->plan.files.n; i++) {
        n += put->plan.here[i].is_whole;
    }
    return n;
}

/* One that nobody changes meanwhile. */
static void
begin_still(struct rig *rig, struct captured *captured)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    rig->seals = true;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 3);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    (void)rig_set_all(rig, 'a', 4);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    (void)rig_set_all(rig, 'a', 5);
    capture(rig, captured);
}

/* Dies at the n-th change of the disk while it copies what is not here. */
static void
copy_until_cut(
    struct rig *to, const struct captured *from, unsigned n, bool is_power_cut)
{
    struct snapshot_put put;
    open_put(to, &put);
    size_t before = n_whole(&put);
    fake_disk_die(to->fake, n);
    if (begin_copy(&put, from) == 0) {
        ck_assert_uint_ge(n_whole(&put), before);
        (void)copy_rest(&put, from, PIECE);
    }
    snapshot_put_close(&put);
    if (is_power_cut) {
        fake_disk_crash_unordered(to->fake);
    } else {
        fake_disk_revive(to->fake);
    }
}

/* Cut off ten times, it goes on with what is here. */
START_TEST(test_cut_off_and_resumed)
{
    struct rig rig, to;
    struct captured captured;
    uint64_t random = (uint64_t)_i;
    size_t last = 0;
    begin(&rig, &captured, (uint64_t)_i + 1);
    begin_target(&to, 9);
    for (int cut = 0; cut < CUTS; cut++) {
        struct snapshot_put put;
        copy_until_cut(&to, &captured,
            30 + (unsigned)random_below(&random, 40), cut % 2 == 0);
        open_put(&to, &put);
        ck_assert_uint_ge(n_whole(&put), last);
        last = n_whole(&put);
        snapshot_put_close(&put);
    }
    ck_assert_uint_gt(last, 0);
    ck_assert_int_eq(copy_all(&to, &captured, PIECE), 0);
    ck_assert_int_eq(rig_open(&to), 0);
    expect_copy(&to, &rig, &captured);
    ck_assert_int_eq(rig_close(&to), 0);
    rig_fini(&to);
    end(&rig, &captured);
}
END_TEST

/* Of a later snapshot of the same source what is the same stays, and the rest
 * goes; of another source all goes. */
START_TEST(test_other_snapshot)
{
    struct rig rig, to;
    struct captured captured, later;
    struct snapshot_put put;
    begin_still(&rig, &captured);
    begin_target(&to, 9);
    open_put(&to, &put);
    ck_assert_int_eq(begin_copy(&put, &captured), 0);
    ck_assert_int_eq(copy_rest(&put, &captured, PIECE), 0);
    (void)rig_set_all(&rig, 'a', 6);
    capture(&rig, &later);
    ck_assert_int_eq(begin_copy(&put, &later), 0);
    ck_assert_uint_gt(n_whole(&put), 0);
    ck_assert_uint_lt(n_whole(&put), put.plan.files.n);
    ck_assert_int_eq(
        snapshot_put_exchange(&put, check_copy, NULL), ERR_NOT_FOUND);
    ck_assert_int_eq(copy_rest(&put, &later, PIECE), 0);
    ck_assert_uint_eq(n_whole(&put), put.plan.files.n);
    ck_assert_int_eq(snapshot_put_begin(&put, "node-b", later.manifest.data,
                         later.manifest.len, &later.files),
        0);
    ck_assert_uint_eq(n_whole(&put), 0);
    ck_assert_uint_eq(folder_files(&to), 2); /* plan and manifest */
    ck_assert_int_eq(copy_rest(&put, &later, PIECE), 0);
    ck_assert_int_eq(snapshot_put_drop(&put), 0);
    ck_assert_uint_eq(folder_files(&to), 0);
    snapshot_put_close(&put);
    rig_fini(&to);
    captured_fini(&later);
    end(&rig, &captured);
}
END_TEST

/* A bit of a copied file that is turned over is found, whichever it is, before
 * anything is exchanged; and that file alone is copied again. */
START_TEST(test_flipped_bits)
{
    struct rig rig, to;
    struct captured captured;
    struct snapshot_put put;
    uint64_t random = 5;
    begin(&rig, &captured, 2);
    begin_target(&to, 9);
    open_put(&to, &put);
    ck_assert_int_eq(begin_copy(&put, &captured), 0);
    ck_assert_int_eq(copy_rest(&put, &captured, PIECE), 0);
    for (size_t i = 0; i < captured.files.n; i++) {
        char name[NAMES_BYTES], own[SNAPSHOT_NAME_BYTES];
        uint64_t bytes = captured.files.file[i].bytes;
        snapshot_file_name(&captured.files.file[i], name);
        (void)snprintf(own, sizeof own, SNAPSHOT_PREFIX "%s", name);
        uint64_t at = i % 3 == 0 ? 0
            : i % 3 == 1         ? bytes - 1
                                 : random_below(&random, bytes);
        fake_disk_flip(to.fake, own, at, (uint8_t)(1u << i % 8));
        ck_assert_int_eq(
            snapshot_put_exchange(&put, check_copy, NULL), ERR_CORRUPT);
        ck_assert(!has_file(&to, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE));
        ck_assert(!put.plan.here[i].is_whole);
        ck_assert_uint_eq(n_whole(&put), captured.files.n - 1);
        ck_assert_int_eq(copy_file(&put, &captured, i, PIECE), 0);
    }
    fake_disk_flip(to.fake, SNAPSHOT_PREFIX MANIFEST_NAME, 60, 4);
    ck_assert_int_eq(
        snapshot_put_exchange(&put, check_copy, NULL), ERR_CORRUPT);
    ck_assert(!has_file(&to, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE));
    ck_assert_int_eq(begin_copy(&put, &captured), 0);
    ck_assert_uint_eq(n_whole(&put), captured.files.n);
    ck_assert_int_eq(snapshot_put_exchange(&put, check_copy, NULL), 0);
    snapshot_put_close(&put);
    ck_assert_int_eq(
        snapshot_put_open(&put, to.data.disk, &to.logger), ERR_CLOSED);
    rig_fini(&to);
    end(&rig, &captured);
}
END_TEST

/* What does not come as announced is refused, and changes nothing. */
START_TEST(test_wrong_bytes)
{
    struct rig rig, to;
    struct captured captured;
    struct snapshot_put put;
    uint8_t bytes[4] = {0};
    begin(&rig, &captured, 3);
    begin_target(&to, 9);
    open_put(&to, &put);
    ck_assert_int_eq(snapshot_put_write(&put, 0, bytes, 1), ERR_CORRUPT);
    ck_assert_int_eq(snapshot_put_end(&put, 0), ERR_CORRUPT);
    ck_assert_int_eq(begin_copy(&put, &captured), 0);
    size_t len = (size_t)captured.files.file[0].bytes;
    ck_assert_int_eq(snapshot_put_file(&put, 0), 0);
    ck_assert_int_eq(snapshot_put_write(&put, 1, bytes, 1), ERR_CORRUPT);
    ck_assert_int_eq(
        snapshot_put_write(&put, 0, captured.bytes[0], len - 1), 0);
    ck_assert_int_eq(snapshot_put_write(&put, len - 1, bytes, 2), ERR_CORRUPT);
    /* too short */
    ck_assert_int_eq(snapshot_put_end(&put, captured.xxh3[0]), ERR_CORRUPT);
    ck_assert_uint_eq(n_whole(&put), 0);
    for (size_t i = 0; i < captured.files.n; i++) {
        size_t at = (size_t)captured.files.file[i].bytes / 2;
        captured.bytes[i][at] ^= 1;
        ck_assert_int_eq(copy_file(&put, &captured, i, PIECE), ERR_CORRUPT);
        captured.bytes[i][at] ^= 1;
        ck_assert_int_eq(copy_file(&put, &captured, i, PIECE), 0);
    }
    ck_assert_uint_eq(n_whole(&put), captured.files.n);
    /* one that comes again is not here until it is all here */
    ck_assert_int_eq(snapshot_put_file(&put, 0), 0);
    ck_assert_int_eq(
        snapshot_put_write(&put, 0, captured.bytes[0], len - 1), 0);
    snapshot_put_close(&put);
    fake_disk_revive(to.fake);
    open_put(&to, &put);
    ck_assert(!put.plan.here[0].is_whole);
    ck_assert_uint_eq(n_whole(&put), captured.files.n - 1);
    snapshot_put_close(&put);
    rig_fini(&to);
    end(&rig, &captured);
}
END_TEST

/* A list that does not go with its manifest is refused. */
START_TEST(test_wrong_lists)
{
    struct rig rig, to;
    struct captured captured;
    struct snapshot_put put;
    begin(&rig, &captured, 4);
    begin_target(&to, 9);
    open_put(&to, &put);
    struct snapshot_files *files = &captured.files;
    for (size_t i = 0; i < files->n; i++) {
        struct snapshot_file kept = files->file[i];
        files->file[i].bytes = 0;
        ck_assert_int_eq(begin_copy(&put, &captured), ERR_CORRUPT);
        files->file[i] = kept;
        files->file[i].number += 1000;
        ck_assert_int_eq(begin_copy(&put, &captured), ERR_CORRUPT);
        files->file[i] = kept;
        files->file[i].kind = 4;
        ck_assert_int_eq(begin_copy(&put, &captured), ERR_CORRUPT);
        files->file[i] = kept;
    }
    files->n--;
    ck_assert_int_eq(begin_copy(&put, &captured), ERR_CORRUPT);
    files->n = 0;
    ck_assert_int_eq(begin_copy(&put, &captured), ERR_CORRUPT);
    files->n = files->capacity;
    for (size_t at = 0; at < captured.manifest.len; at += 7) {
        captured.manifest.data[at] ^= 8;
        ck_assert_int_eq(begin_copy(&put, &captured), ERR_CORRUPT);
        captured.manifest.data[at] ^= 8;
    }
    ck_assert_uint_eq(folder_files(&to), 0);
    ck_assert_int_eq(begin_copy(&put, &captured), 0);
    snapshot_put_close(&put);
    rig_fini(&to);
    end(&rig, &captured);
}
END_TEST

/* A damaged plan is told from a sound one, and counts as none. */
START_TEST(test_damaged_plan)
{
    struct rig rig, to;
    struct captured captured;
    struct snapshot_put put;
    struct disk_file is;
    begin(&rig, &captured, 5);
    begin_target(&to, 9);
    struct disk *disk = to.data.disk;
    open_put(&to, &put);
    ck_assert_int_eq(begin_copy(&put, &captured), 0);
    ck_assert_int_eq(copy_rest(&put, &captured, PIECE), 0);
    snapshot_put_close(&put);
    const char *name = SNAPSHOT_PREFIX SNAPSHOT_PLAN;
    ck_assert_int_eq(disk->calls->look(disk, name, -1, &is), 0);
    for (uint64_t at = 0; at < is.bytes; at++) {
        struct snapshot_plan plan = {0};
        int error;
        fake_disk_flip(to.fake, name, at, (uint8_t)(1u << at % 8));
        ck_assert_int_eq(
            snapshot_plan_read(disk, name, &plan, &error), ERR_CORRUPT);
        if (at == is.bytes / 2) {
            open_put(&to, &put);
            ck_assert_uint_eq(put.plan.files.n, 0);
            snapshot_put_close(&put);
        }
        fake_disk_flip(to.fake, name, at, (uint8_t)(1u << at % 8));
    }
    open_put(&to, &put);
    ck_assert_uint_eq(n_whole(&put), captured.files.n);
    snapshot_put_close(&put);
    rig_fini(&to);
    end(&rig, &captured);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("snapshot put");
    tcase_add_loop_test(tcase, test_cut_off_and_resumed, 0, 12);
    tcase_add_test(tcase, test_other_snapshot);
    tcase_add_test(tcase, test_flipped_bits);
    tcase_add_test(tcase, test_wrong_bytes);
    tcase_add_test(tcase, test_wrong_lists);
    tcase_add_test(tcase, test_damaged_plan);
    return run_case("snapshot put", tcase);
}

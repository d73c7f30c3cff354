/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/replica_file: what is written is read back, each bit that is flipped is
 * seen, and whatever fails or crashes, the one before or the new one is
 * there. */
#include "wal/replica_file.h"

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "lib/fake_disk.h"
#include "unit/check_help.h"
#include "wal/seq.h"

#include <errno.h>
#include <stdio.h>

/* What is in t/data/replica-v1. */
static struct replica_file
some(void)
{
    struct replica_file file = {.epoch = UINT64_C(0xfedcba9876543210),
        .promised = 17,
        .cut_seq = (UINT64_C(16) << SEQ_N_BITS) + 5,
        .level = REPLICA_SYNCED,
        .is_doubtful = true,
        .is_exchanging = true};
    for (unsigned i = 0; i < REPLICA_BOOT_BYTES; i++) {
        file.boot_id[i] = (uint8_t)(0xf0 + i);
    }
    (void)node_name_set(&file.cluster, "east", 4);
    (void)node_name_set(&file.group, "weibo-3", 7);
    (void)node_name_set(&file.node, "db-1.example", 12);
    return file;
}

static bool
is_same_name(const struct node_name *a, const struct node_name *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static bool
is_same(const struct replica_file *a, const struct replica_file *b)
{
    return a->epoch == b->epoch && is_same_name(&a->cluster, &b->cluster) &&
        is_same_name(&a->group, &b->group) &&
        is_same_name(&a->node, &b->node) && a->promised == b->promised &&
        a->cut_seq == b->cut_seq &&
        memcmp(a->boot_id, b->boot_id, REPLICA_BOOT_BYTES) == 0 &&
        a->level == b->level && a->is_doubtful == b->is_doubtful &&
        a->is_clean == b->is_clean && a->is_exchanging == b->is_exchanging &&
        a->is_salvaged == b->is_salvaged;
}

START_TEST(test_read_back)
{
    uint8_t bytes[REPLICA_BYTES];
    char longest[NODE_NAME_MAX];
    struct replica_file file[4] = {some(), some(), some(), some()}, got;
    memset(longest, 'n', sizeof longest);
    file[1].is_clean = file[1].is_salvaged = true;
    file[1].is_doubtful = file[1].is_exchanging = false;
    file[2].cluster = file[2].group = (struct node_name){0};
    file[2].epoch = file[2].cut_seq = file[2].promised = 0;
    file[2].level = REPLICA_APPLIED;
    file[3].promised = SEQ_TERM_MAX;
    file[3].level = REPLICA_WRITTEN;
    ck_assert(node_name_set(&file[3].group, longest, sizeof longest));
    ck_assert(node_name_set(&file[3].node, longest, sizeof longest));
    for (size_t i = 0; i < COUNT_OF(file); i++) {
        replica_file__encode(&file[i], bytes);
        ck_assert_int_eq(replica_file__decode(bytes, sizeof bytes, &got), 0);
        ck_assert(is_same(&file[i], &got));
    }
}
END_TEST

START_TEST(test_damage)
{
    uint8_t bytes[REPLICA_BYTES + 1] = {0};
    struct replica_file file = some(), got = file;
    replica_file__encode(&file, bytes);
    for (size_t bit = 0; bit < 8 * (size_t)REPLICA_BYTES; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_int_eq(
            replica_file__decode(bytes, REPLICA_BYTES, &got), ERR_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (size_t len = 0; len <= sizeof bytes; len++) {
        ck_assert_int_eq(replica_file__decode(bytes, len, &got),
            len == REPLICA_BYTES ? 0 : ERR_CORRUPT);
    }
    ck_assert(is_same(&file, &got));
}
END_TEST

/* Bytes with a right checksum that this program would not write. */
START_TEST(test_refused)
{
    static const struct {
        size_t at;
        uint8_t value;
        int err;
    } wrong[] = {{8, 2, ERR_NEWER_FORMAT}, {8, 0, ERR_CORRUPT},
        {12, 16, ERR_NEWER_FORMAT}, {15, 1, ERR_NEWER_FORMAT},
        {27, 1, ERR_CORRUPT}, {31, 1, ERR_CORRUPT}, {56, 0, ERR_CORRUPT},
        {56, 4, ERR_CORRUPT}, {57, 1, ERR_CORRUPT}, {63, 1, ERR_CORRUPT},
        {64, 0, ERR_CORRUPT}, {64, 5, ERR_CORRUPT}, {64, 65, ERR_CORRUPT},
        {64, 255, ERR_CORRUPT}, {65, ':', ERR_CORRUPT}, {191, 1, ERR_CORRUPT},
        {192, 0, ERR_CORRUPT}, {320, 0, ERR_CORRUPT}, {333, 'x', ERR_CORRUPT},
        {448, 1, ERR_CORRUPT}, {503, 1, ERR_CORRUPT}};
    struct replica_file file = some(), got;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        uint8_t bytes[REPLICA_BYTES];
        replica_file__encode(&file, bytes);
        bytes[wrong[i].at] = wrong[i].value;
        bytes_put_u64(bytes + REPLICA_BYTES - 8,
            checksum64(bytes, REPLICA_BYTES - 8, 0));
        ck_assert_msg(
            replica_file__decode(bytes, sizeof bytes, &got) == wrong[i].err,
            "%zu", i);
    }
}
END_TEST

/* Each call fails once, or the machine stops there: the one before or the new
 * one is there, and after 0 the new one, for good. */
START_TEST(test_replaced)
{
    for (unsigned dies = 0; dies <= 1; dies++) {
        bool has_failed = true;
        for (unsigned n = 1; has_failed; n++) {
            struct fake_disk *fake = fake_disk_create(n);
            struct disk *disk = fake_disk_as_disk(fake);
            struct replica_file before = some(), after = some(), got;
            after.promised++;
            ck_assert_int_eq(replica_file_read(disk, &got), ERR_NOT_FOUND);
            ck_assert_int_eq(replica_file_write(disk, &before), 0);
            if (dies) {
                fake_disk_die(fake, n);
            } else {
                fake_disk_fail(fake, FAKE_ALL, n, EIO, false);
            }
            int err = replica_file_write(disk, &after);
            ck_assert(err == 0 || err == ERR_DISK);
            has_failed =
                dies ? fake_disk_is_dead(fake) : fake_disk_heal(fake) > 0;
            fake_disk_crash(fake);
            ck_assert_int_eq(replica_file_read(disk, &got), 0);
            ck_assert(
                is_same(&got, &after) || (err != 0 && is_same(&got, &before)));
            ck_assert_int_eq(replica_file_write(disk, &after), 0);
            fake_disk_crash(fake);
            ck_assert_int_eq(replica_file_read(disk, &got), 0);
            ck_assert(is_same(&got, &after));
            fake_disk_destroy(&fake);
        }
    }
}
END_TEST

/* Version 1 as it was first written, once, by this test with $MAKE_GOLDEN
 * set. */
START_TEST(test_golden)
{
    static const char path[] = DATA_DIR "/replica-v1";
    uint8_t bytes[REPLICA_BYTES], golden[REPLICA_BYTES + 1];
    struct replica_file file = some(), got;
    replica_file__encode(&file, bytes);
    if (getenv("MAKE_GOLDEN") != NULL) {
        FILE *made = fopen(path, "wbx");
        ck_assert_ptr_nonnull(made);
        ck_assert_uint_eq(fwrite(bytes, 1, sizeof bytes, made), sizeof bytes);
        ck_assert_int_eq(fclose(made), 0);
    }
    FILE *there = fopen(path, "rb");
    ck_assert_ptr_nonnull(there);
    size_t len = fread(golden, 1, sizeof golden, there);
    ck_assert_int_eq(fclose(there), 0);
    ck_assert_int_eq(replica_file__decode(golden, len, &got), 0);
    ck_assert(is_same(&file, &got));
    ck_assert_mem_eq(golden, bytes, sizeof bytes);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_read_back, test_damage, test_refused, test_replaced, test_golden};
    return run_tests("replica_file", tests, COUNT_OF(tests));
}

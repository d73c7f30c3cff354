/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a backup: what is written is read again; any byte that is another
 * one, and any end that is missing, is told; names stay in their folder. And
 * both readings of a backup keep its rate, by a clock that goes only while
 * somebody sleeps. */
#include "base/err.h"
#include "cli/backup_list.h"
#include "cli/backup_priv.h"

#include "unit/check_help.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const struct backup_file some[] = {
    {"MANIFEST", 120, 1},
    {"log-00000000000000000007.wal", 64, UINT64_C(0x8000000000000001)},
    {"segment-00000000000000000001.seg", UINT64_MAX, 0},
};

enum { N_SOME = sizeof some / sizeof some[0] };

static void
put(struct buf *out, size_t n, bool has_end)
{
    const struct backup_list head = {
        .epoch = UINT64_C(0x0123456789abcdef), .last_seq = 77, .taken_s = 99};
    backup_list_put_head(&head, out);
    for (size_t i = 0; i < n; i++) {
        backup_list_put_file(&some[i], out);
    }
    if (has_end) {
        backup_list_put_end(n, out);
    }
    ck_assert(!out->failed);
}

START_TEST(test_round_trip)
{
    for (size_t n = 0; n <= N_SOME; n++) {
        struct buf text = {0};
        struct backup_list list = {0};
        uint64_t bytes = 0;
        put(&text, n, true);
        ck_assert_int_eq(
            backup_list_read(text.data, text.len, false, &list), 0);
        ck_assert_uint_eq(list.n, n);
        ck_assert_uint_eq(list.epoch, UINT64_C(0x0123456789abcdef));
        ck_assert_uint_eq(list.last_seq, 77);
        ck_assert_uint_eq(list.taken_s, 99);
        for (size_t i = 0; i < n; i++) {
            const struct backup_file *file =
                backup_list_find(&list, some[i].name);
            ck_assert_ptr_eq(file, &list.file[i]);
            ck_assert_uint_eq(file->bytes, some[i].bytes);
            ck_assert_uint_eq(file->xxh3, some[i].xxh3);
            bytes += some[i].bytes;
        }
        ck_assert_uint_eq(backup_list_bytes(&list), bytes);
        ck_assert_ptr_null(backup_list_find(&list, "lock"));
        backup_list_fini(&list);
        buf_fini(&text);
    }
}
END_TEST

START_TEST(test_damage)
{
    struct buf text = {0};
    struct backup_list list = {0};
    put(&text, N_SOME, true);
    for (size_t at = 0; at < text.len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            text.data[at] = (char)(text.data[at] ^ 1 << bit);
            int err = backup_list_read(text.data, text.len, false, &list);
            ck_assert_msg(err == ERR_CORRUPT || err == ERR_NEWER_FORMAT,
                "byte %zu: %d", at, err);
            ck_assert_ptr_null(list.file);
            text.data[at] = (char)(text.data[at] ^ 1 << bit);
        }
        ck_assert_int_eq(
            backup_list_read(text.data, at, false, &list), ERR_CORRUPT);
    }
    buf_add_text(&text, "x");
    ck_assert_int_eq(
        backup_list_read(text.data, text.len, false, &list), ERR_CORRUPT);
    buf_fini(&text);
}
END_TEST

/* Notes have no end, and may be cut off in a line. */
START_TEST(test_notes)
{
    struct buf head = {0}, text = {0};
    put(&head, 0, false);
    put(&text, N_SOME, false);
    for (size_t len = 0; len <= text.len; len++) {
        struct backup_list list = {0};
        size_t n = 0;
        for (size_t at = head.len; at < len; at++) {
            n += text.data[at] == '\n';
        }
        int err = backup_list_read(text.data, len, true, &list);
        ck_assert_int_eq(err, len < head.len ? ERR_CORRUPT : 0);
        ck_assert_uint_eq(list.n, n);
        backup_list_fini(&list);
        ck_assert_int_eq(
            backup_list_read(text.data, len, false, &list), ERR_CORRUPT);
    }
    struct backup_list list = {0};
    backup_list_put_end(N_SOME, &text); /* then it is no note */
    ck_assert_int_eq(
        backup_list_read(text.data, text.len, true, &list), ERR_CORRUPT);
    buf_fini(&head);
    buf_fini(&text);
}
END_TEST

START_TEST(test_wrong)
{
    static const char *const lines[] = {"file ../x 1 0000000000000001\n",
        "file .x 1 0000000000000001\n", "file a/b 1 0000000000000001\n",
        "file  1 0000000000000001\n", "file x 01 0000000000000001\n",
        "file x 1 000000000000001\n", "file x 1 000000000000000G\n",
        "file x -1 0000000000000001\n", "file x 1  0000000000000001\n",
        "file x 1 0000000000000001 2\n", "file x 1\n", "what\n", "\n",
        "file 0123456789012345678901234567890123456789 1 0000000000000001\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct buf text = {0};
        struct backup_list list = {0};
        put(&text, 1, false);
        buf_add_text(&text, lines[i]);
        ck_assert_int_eq(
            backup_list_read(text.data, text.len, true, &list), ERR_CORRUPT);
        buf_fini(&text);
    }
    struct backup_list list = {0};
    static const char newer[] = "tallyd backup 2\nwhat comes then\n";
    ck_assert_int_eq(backup_list_read(newer, sizeof newer - 1, false, &list),
        ERR_NEWER_FORMAT);
}
END_TEST

/* ---- the rate ---- */

#define NS_PER_S UINT64_C(1000000000)
#define DIRECTORY DATA_DIR "/directory-v5"

static uint64_t fake_ns;

/* These two in the place of the C library's. */
int
clock_gettime(clockid_t id, struct timespec *out)
{
    (void)id;
    *out = (struct timespec){.tv_sec = (time_t)(fake_ns / NS_PER_S),
        .tv_nsec = (long)(fake_ns % NS_PER_S)};
    return 0;
}

int
nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    fake_ns += (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
    return 0;
}

enum { RATE = 1000 }; /* bytes a second */

/* Nothing, or what that many bytes take, to the microsecond. */
static void
expect_slept(uint64_t since_ns, uint64_t bytes)
{
    uint64_t us = (fake_ns - since_ns + 500) / 1000;
    ck_assert_uint_eq(us, bytes * (NS_PER_S / 1000 / RATE));
}

START_TEST(test_rate)
{
    static const char *const names[] = {"MANIFEST",
        "checkpoint-00000000000000000002.ckpt", "log-00000000000000000003.wal",
        "segment-00000000000000000001.seg"};
    int dir = open(DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dir, 0);
    for (uint64_t rate = 0; rate <= RATE; rate += RATE) {
        struct backup_copy copy = {.what = "read", .rate = rate};
        struct logger logger = {0};
        struct buf found = {0};
        uint64_t all = 0, began_ns = fake_ns, sum;
        ck_assert(backup_copy_init(&copy));
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            struct stat is;
            ck_assert_int_eq(fstatat(dir, names[i], &is, 0), 0);
            all += (uint64_t)is.st_size;
            ck_assert_msg(backup_copy_hash(&copy, dir, names[i],
                              (uint64_t)is.st_size, &sum),
                "%s", copy.why);
        }
        ck_assert_uint_eq(copy.done_bytes, all);
        expect_slept(began_ns, rate == 0 ? 0 : all);
        ck_assert_msg(
            backup__check(&copy, dir, &logger, &found), "%s", copy.why);
        ck_assert_uint_ge(copy.done_bytes, 2 * all);
        expect_slept(began_ns, rate == 0 ? 0 : copy.done_bytes);
        backup_copy_fini(&copy);
        buf_fini(&found);
    }
    (void)close(dir);
}
END_TEST

int
main(void)
{
    TCase *tests = tcase_create("list");
    tcase_add_test(tests, test_round_trip);
    tcase_add_test(tests, test_damage);
    tcase_add_test(tests, test_notes);
    tcase_add_test(tests, test_wrong);
    tcase_add_test(tests, test_rate);
    return run_case("backup", tests);
}

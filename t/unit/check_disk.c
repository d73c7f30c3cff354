/* SPDX-License-Identifier: BSD-3-Clause */
/* base/disk: the real one in a directory of its own and the fake one of t/lib
 * do the same as long as nothing fails; and what the fake one loses. */
#include "base/disk.h"

#include "base/err.h"
#include "lib/fake_disk.h"
#include "unit/check_help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int
make(struct disk *disk, const char *name)
{
    int fd = -1;
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static int
open_file(struct disk *disk, const char *name)
{
    int fd = -1;
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_WRITE, &fd), 0);
    return fd;
}

static void
put(struct disk *disk, int fd, const char *text, uint64_t at)
{
    ck_assert_int_eq(disk->calls->write(disk, fd, text, strlen(text), at), 0);
}

/* The file is text, and no more. */
static void
expect(struct disk *disk, const char *name, const char *text)
{
    char bytes[64];
    size_t n;
    int fd;
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_READ, &fd), 0);
    ck_assert_int_eq(
        disk->calls->read(disk, fd, bytes, sizeof(bytes), 0, &n), 0);
    ck_assert_mem_eq(bytes, text, n);
    ck_assert_uint_eq(n, strlen(text));
    disk->calls->close(disk, fd);
}

static int
try_open(struct disk *disk, const char *name, enum disk_open how)
{
    int fd;
    int err = disk->calls->open(disk, name, how, &fd);
    if (err == 0) {
        disk->calls->close(disk, fd);
    }
    return err;
}

static void
join_name(void *context, const char *name)
{
    char *joined = context;
    strcat(strcat(joined, name), " ");
}

static void
expect_names(struct disk *disk, const char *one, const char *other)
{
    char joined[256] = "";
    ck_assert_int_eq(disk->calls->list(disk, join_name, joined), 0);
    ck_assert_msg(strcmp(joined, one) == 0 || strcmp(joined, other) == 0,
        "found %s", joined);
}

static void
exercise(struct disk *disk)
{
    const struct disk_calls *calls = disk->calls;
    char bytes[8];
    uint64_t len;
    size_t n;
    expect_names(disk, "", "");
    ck_assert_int_eq(try_open(disk, "a", DISK_READ), ENOENT);
    ck_assert_int_eq(try_open(disk, "a", DISK_WRITE), ENOENT);
    int fd = make(disk, "a");
    ck_assert_int_eq(try_open(disk, "a", DISK_CREATE), EEXIST);
    put(disk, fd, "hello", 0);
    put(disk, fd, "LO", 3);
    expect(disk, "a", "helLO");
    ck_assert_int_eq(calls->read(disk, fd, bytes, 3, 3, &n), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(calls->read(disk, fd, bytes, 3, 100, &n), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(calls->truncate(disk, fd, 4), 0);
    expect(disk, "a", "helL");
    int err = calls->allocate(disk, fd, 4, 1000);
    ck_assert(err == 0 || err == EOPNOTSUPP);
    ck_assert_int_eq(calls->size(disk, fd, &len), 0);
    ck_assert_uint_eq(len, err == 0 ? 1004 : 4);
    ck_assert_int_eq(calls->truncate(disk, fd, 4), 0);
    ck_assert_int_eq(calls->sync(disk, fd), 0);
    calls->close(disk, fd);
    fd = make(disk, "b");
    put(disk, fd, "b", 0);
    expect_names(disk, "a b ", "b a ");
    ck_assert_int_eq(calls->rename(disk, "b", "a"), 0);
    put(disk, fd, "2", 1);
    calls->close(disk, fd);
    expect_names(disk, "a ", "");
    expect(disk, "a", "b2");
    ck_assert_int_eq(calls->rename(disk, "b", "a"), ENOENT);
    ck_assert_int_eq(calls->sync_names(disk), 0);
    ck_assert_int_eq(calls->unlink(disk, "a"), 0);
    ck_assert_int_eq(calls->unlink(disk, "a"), ENOENT);
    expect_names(disk, "", "");
}

/* Which of the bytes of a file are data, in runs that may be longer than what
 * was written. */
static bool
is_data(struct disk *disk, int fd, uint64_t at)
{
    uint64_t from, to = 0;
    do {
        ck_assert_int_eq(disk->calls->next_data(disk, fd, to, &from, &to), 0);
        ck_assert_uint_le(from, to);
    } while (from < to && to <= at);
    return from <= at && at < to;
}

/* A file that is longer than what is in it; room is given back, the length
 * stays. */
static void
exercise_holes(struct disk *disk)
{
    enum { LONG = 1 << 20, MIDDLE = 700000, TAIL = 9000 };
    const struct disk_calls *calls = disk->calls;
    char bytes[8] = "";
    uint64_t len;
    size_t n;
    int fd = make(disk, "long");
    ck_assert_int_eq(calls->truncate(disk, fd, LONG), 0);
    put(disk, fd, "begin", 0);
    put(disk, fd, "middle", MIDDLE);
    ck_assert(is_data(disk, fd, 0) && is_data(disk, fd, MIDDLE + 5));
    bool has_holes = !is_data(disk, fd, LONG - 1);
    ck_assert(!has_holes || !is_data(disk, fd, MIDDLE / 2));
    put(disk, fd, "tail", TAIL);
    int err = calls->punch(disk, fd, TAIL, LONG - TAIL);
    ck_assert(err == 0 || err == EOPNOTSUPP);
    ck_assert_int_eq(calls->read(disk, fd, bytes, 6, MIDDLE, &n), 0);
    ck_assert_uint_eq(n, 6);
    ck_assert_str_eq(bytes, err == 0 ? "" : "middle");
    ck_assert(!has_holes || err != 0 || !is_data(disk, fd, MIDDLE));
    put(disk, fd, "again", MIDDLE);
    /* the block with the end is left alone, what is behind it is not */
    put(disk, fd, "x", 8192 + 4095);
    put(disk, fd, "x", 8192 + 4096);
    disk_hole(disk, fd, TAIL, LONG);
    ck_assert_int_eq(calls->read(disk, fd, bytes, 2, 8192 + 4095, &n), 0);
    ck_assert_int_eq(bytes[0], 'x');
    ck_assert_int_eq(bytes[1], err == 0 ? 0 : 'x');
    disk_hole(disk, fd, LONG, LONG);
    ck_assert_int_eq(calls->size(disk, fd, &len), 0);
    ck_assert_uint_eq(len, LONG);
    ck_assert_int_eq(calls->next_data(disk, fd, LONG, &len, &len), 0);
    ck_assert_int_eq(calls->next_data(disk, fd, 2 * LONG, &len, &len), 0);
    calls->close(disk, fd);
    ck_assert_int_eq(calls->unlink(disk, "long"), 0);
}

/* Reads past the page cache, where the file system has them. */
static void
exercise_direct(struct disk *disk)
{
    static _Alignas(DISK_DIRECT_BYTES) char bytes[DISK_DIRECT_BYTES];
    char want[DISK_DIRECT_BYTES];
    size_t n;
    int fd = make(disk, "direct"), direct_fd;
    ck_assert_int_eq(try_open(disk, "none", DISK_DIRECT), ENOENT);
    for (int block = 0; block < 3; block++) {
        memset(want, 'a' + block, sizeof(want));
        ck_assert_int_eq(disk->calls->write(disk, fd, want, sizeof(want),
                             (uint64_t)block * sizeof(want)),
            0);
    }
    int err = disk->calls->open(disk, "direct", DISK_DIRECT, &direct_fd);
    if (err == 0) {
        memset(want, 'b', sizeof(want));
        ck_assert_int_eq(disk->calls->read(disk, direct_fd, bytes,
                             sizeof(bytes), sizeof(want), &n),
            0);
        ck_assert_uint_eq(n, sizeof(bytes));
        ck_assert_mem_eq(bytes, want, sizeof(want));
        disk->calls->close(disk, direct_fd);
    }
    ck_assert(err == 0 || err == EINVAL);
    disk->calls->close(disk, fd);
    ck_assert_int_eq(disk->calls->unlink(disk, "direct"), 0);
}

/* What is no file is told, and nobody waits for who is at its other end. */
static void
exercise_no_files(struct disk *disk, int dir_fd)
{
    static const enum disk_open how[] = {DISK_READ, DISK_WRITE};
    ck_assert_int_eq(mkfifoat(dir_fd, "fifo", 0600), 0);
    ck_assert_int_eq(mkdirat(dir_fd, "dir", 0700), 0);
    ck_assert_int_eq(mknodat(dir_fd, "socket", S_IFSOCK | 0600, 0), 0);
    for (unsigned i = 0; i < sizeof how / sizeof how[0]; i++) {
        ck_assert_int_eq(try_open(disk, "fifo", how[i]), DISK_NOT_REGULAR);
        ck_assert_int_eq(try_open(disk, "dir", how[i]), DISK_NOT_REGULAR);
        ck_assert_int_eq(try_open(disk, "socket", how[i]), DISK_NOT_REGULAR);
    }
    ck_assert_int_eq(try_open(disk, "fifo", DISK_CREATE), EEXIST);
    ck_assert_ptr_nonnull(strstr(disk_text(DISK_NOT_REGULAR), "a FIFO"));
    ck_assert_str_eq(disk_text(EIO), strerror(EIO));
    ck_assert_int_eq(disk_err(DISK_NOT_REGULAR), ERR_DISK);
    ck_assert_int_eq(disk->calls->unlink(disk, "fifo"), 0);
    ck_assert_int_eq(disk->calls->unlink(disk, "socket"), 0);
    ck_assert_int_eq(unlinkat(dir_fd, "dir", AT_REMOVEDIR), 0);
}

START_TEST(test_real)
{
    char path[] = "check_disk.XXXXXX";
    struct disk *disk;
    struct stat st;
    ck_assert_ptr_nonnull(mkdtemp(path));
    int dir_fd = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(dir_fd, 0);
    ck_assert_int_eq(disk_real_create(dir_fd, &disk), 0);
    exercise(disk);
    exercise(disk);
    exercise_holes(disk);
    exercise_direct(disk);
    disk->calls->close(disk, make(disk, "mode"));
    ck_assert_int_eq(fstatat(dir_fd, "mode", &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(symlinkat("mode", dir_fd, "link"), 0);
    ck_assert_int_eq(try_open(disk, "link", DISK_WRITE), ELOOP);
    ck_assert_int_eq(disk->calls->unlink(disk, "link"), 0);
    ck_assert_int_eq(disk->calls->unlink(disk, "mode"), 0);
    exercise_no_files(disk, dir_fd);
    ck_assert_int_eq(disk->calls->write(disk, dir_fd, "x", 1, 0), EBADF);
    disk_real_destroy(&disk);
    ck_assert_ptr_null(disk);
    ck_assert_int_eq(close(dir_fd), 0);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(test_fake)
{
    struct fake_disk *fake = fake_disk_create(1);
    exercise(fake_disk_as_disk(fake));
    exercise(fake_disk_as_disk(fake));
    exercise_holes(fake_disk_as_disk(fake));
    exercise_direct(fake_disk_as_disk(fake));
    fake_disk_destroy(&fake);
}
END_TEST

/* How often each of what may be left was left, over many crashes. */
struct outcomes {
    unsigned none, old, new, other;
};

/* A file of two sectors with a known first state, then a write to both that
 * is not synced: each may be old or new. */
START_TEST(test_crash_sectors)
{
    unsigned seen[4] = {0};
    char was[2 * FAKE_SECTOR_BYTES], is[2 * FAKE_SECTOR_BYTES];
    memset(was, 'o', sizeof(was));
    memset(is, 'n', sizeof(is));
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fake_disk *fake = fake_disk_create(seed);
        struct disk *disk = fake_disk_as_disk(fake);
        char found[2 * FAKE_SECTOR_BYTES];
        size_t n;
        int fd = make(disk, "a");
        ck_assert_int_eq(disk->calls->write(disk, fd, was, sizeof(was), 0), 0);
        ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
        ck_assert_int_eq(disk->calls->sync_names(disk), 0);
        ck_assert_int_eq(disk->calls->write(disk, fd, is, sizeof(is), 0), 0);
        fake_disk_crash(fake);
        fd = open_file(disk, "a");
        ck_assert_int_eq(
            disk->calls->read(disk, fd, found, sizeof(found), 0, &n), 0);
        ck_assert_uint_eq(n, sizeof(found));
        bool first = found[0] == 'n';
        bool second = found[FAKE_SECTOR_BYTES] == 'n';
        seen[first + 2 * second]++;
        /* never torn */
        ck_assert_int_eq(found[FAKE_SECTOR_BYTES - 1], first ? 'n' : 'o');
        disk->calls->close(disk, fd);
        fake_disk_destroy(&fake);
    }
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        ck_assert_uint_gt(seen[i], 10);
    }
}
END_TEST

/* A hole that is not synced may be there after a crash, or what it was made in;
 * the length is there. */
START_TEST(test_crash_hole)
{
    struct outcomes seen = {0};
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct fake_disk *fake = fake_disk_create(seed);
        struct disk *disk = fake_disk_as_disk(fake);
        uint64_t len;
        char found;
        size_t n;
        int fd = make(disk, "a");
        ck_assert_int_eq(disk->calls->truncate(disk, fd, 8192), 0);
        put(disk, fd, "old", 4096);
        ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
        ck_assert_int_eq(disk->calls->sync_names(disk), 0);
        ck_assert_int_eq(disk->calls->punch(disk, fd, 4096, 4096), 0);
        fake_disk_crash(fake);
        fd = open_file(disk, "a");
        ck_assert_int_eq(disk->calls->size(disk, fd, &len), 0);
        ck_assert_uint_eq(len, 8192);
        ck_assert_int_eq(disk->calls->read(disk, fd, &found, 1, 4096, &n), 0);
        ck_assert(found == 0 || is_data(disk, fd, 4096));
        *(found == 0 ? &seen.none : &seen.old) += 1;
        disk->calls->close(disk, fd);
        fake_disk_destroy(&fake);
    }
    ck_assert_uint_gt(seen.none, 10);
    ck_assert_uint_gt(seen.old, 10);
}
END_TEST

/* A rename that the directory was not synced after is done or not, never in
 * part, and not before what was done earlier. */
START_TEST(test_crash_names)
{
    struct outcomes seen = {0};
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct fake_disk *fake = fake_disk_create(seed);
        struct disk *disk = fake_disk_as_disk(fake);
        int old = make(disk, "a");
        put(disk, old, "old", 0);
        ck_assert_int_eq(disk->calls->sync(disk, old), 0);
        ck_assert_int_eq(disk->calls->sync_names(disk), 0);
        int new = make(disk, "b");
        put(disk, new, "new", 0);
        ck_assert_int_eq(disk->calls->sync(disk, new), 0);
        ck_assert_int_eq(disk->calls->rename(disk, "b", "a"), 0);
        fake_disk_crash(fake);
        if (try_open(disk, "b", DISK_READ) == 0) {
            seen.old++;
            expect(disk, "a", "old");
            expect(disk, "b", "new");
        } else {
            char found;
            size_t n;
            int fd = open_file(disk, "a");
            ck_assert_int_eq(disk->calls->read(disk, fd, &found, 1, 0, &n), 0);
            *(found == 'n' ? &seen.new : &seen.none) += 1;
            disk->calls->close(disk, fd);
        }
        fake_disk_destroy(&fake);
    }
    ck_assert_uint_gt(seen.old, 10);
    ck_assert_uint_gt(seen.new, 10);
    ck_assert_uint_gt(seen.none, 10);
}
END_TEST

/* After a failed sync the next one is content, and the bytes may be gone. */
START_TEST(test_failed_sync)
{
    struct outcomes seen = {0};
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct fake_disk *fake = fake_disk_create(seed);
        struct disk *disk = fake_disk_as_disk(fake);
        int fd = make(disk, "a");
        put(disk, fd, "old", 0);
        ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
        ck_assert_int_eq(disk->calls->sync_names(disk), 0);
        put(disk, fd, "new", 0);
        fake_disk_fail(fake, 1 << FAKE_SYNC, 1, EIO, false);
        ck_assert_int_eq(disk->calls->sync(disk, fd), EIO);
        ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
        ck_assert_uint_eq(fake_disk_heal(fake), 1);
        expect(disk, "a", "new");
        fake_disk_crash(fake);
        char found;
        size_t n;
        fd = open_file(disk, "a");
        ck_assert_int_eq(disk->calls->read(disk, fd, &found, 1, 0, &n), 0);
        *(found == 'n' ? &seen.new : &seen.old) += 1;
        disk->calls->close(disk, fd);
        fake_disk_destroy(&fake);
    }
    ck_assert_uint_gt(seen.old, 10);
    ck_assert_uint_gt(seen.new, 10);
}
END_TEST

START_TEST(test_fake_faults)
{
    struct fake_disk *fake = fake_disk_create(1);
    struct disk *disk = fake_disk_as_disk(fake);
    enum { FULL = 2 * FAKE_SECTOR_BYTES };
    int fd = make(disk, "a");
    fake_disk_limit(fake, FULL);
    ck_assert_int_eq(disk->calls->truncate(disk, fd, 9 * FULL), 0);
    put(disk, fd, "0123456789", 0);
    put(disk, fd, "0123456789", 7 * FULL);
    ck_assert_int_eq(disk->calls->write(disk, fd, "a", 1, FULL), ENOSPC);
    ck_assert_int_eq(disk->calls->allocate(disk, fd, 0, FULL), ENOSPC);
    put(disk, fd, "x", 9);
    ck_assert_int_eq(disk->calls->punch(disk, fd, 7 * FULL, FULL), 0);
    put(disk, fd, "a", FULL);
    ck_assert_int_eq(disk->calls->truncate(disk, fd, 10), 0);
    ck_assert_int_eq(disk->calls->allocate(disk, fd, 0, FULL), 0);
    ck_assert_int_eq(disk->calls->truncate(disk, fd, 10), 0);
    fake_disk_limit(fake, 0);
    fake_disk_fail(fake, 1 << FAKE_WRITE, 2, EIO, true);
    put(disk, fd, "0", 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, "1", 1, 0), EIO);
    ck_assert_int_eq(disk->calls->write(disk, fd, "1", 1, 0), EIO);
    ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
    ck_assert_uint_eq(fake_disk_heal(fake), 2);
    put(disk, fd, "0", 0);
    ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
    fake_disk_die(fake, 2);
    put(disk, fd, "y", 9);
    ck_assert(!fake_disk_is_dead(fake));
    ck_assert_int_eq(disk->calls->sync(disk, fd), EIO);
    ck_assert(fake_disk_is_dead(fake));
    ck_assert_int_eq(try_open(disk, "a", DISK_READ), EIO);
    disk->calls->close(disk, fd);
    fake_disk_revive(fake);
    expect(disk, "a", "012345678y");
    fake_disk_destroy(&fake);
}
END_TEST

/* A file system that cannot sync a directory is no reason to stop: a pipe says
 * what it says. */
START_TEST(test_no_sync_of_names)
{
    struct disk *disk;
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(fsync(fds[0]), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(disk_sync_dir(fds[0]), 0);
    ck_assert(!disk_syncs_names(fds[0]));
    ck_assert_int_eq(disk_real_create(fds[0], &disk), 0);
    ck_assert_int_eq(disk->calls->sync_names(disk), 0);
    close(fds[0]);
    ck_assert_int_eq(disk->calls->sync_names(disk), EBADF);
    ck_assert_int_eq(disk_sync_dir(fds[0]), EBADF);
    ck_assert(disk_syncs_names(fds[0]));
    disk_real_destroy(&disk);
    close(fds[1]);
    int dir_fd = open(".", O_RDONLY | O_DIRECTORY);
    ck_assert(disk_syncs_names(dir_fd));
    close(dir_fd);
}
END_TEST

static const char *
say_strange(struct disk *disk, int error)
{
    (void)disk;
    return error == EIO ? "strange" : disk_text(error);
}

/* Errors that say what to do; and a disk that knows more of them. */
START_TEST(test_text)
{
    static const struct {
        int error;
        const char *says;
    } cases[] = {{EACCES, "belongs to the server's user"}, {EPERM, "lsattr"},
        {ELOOP, "symbolic link"}, {EINVAL, "the file system cannot"},
        {DISK_NOT_REGULAR, "move that away"}};
    const struct disk_calls plain_calls = {0};
    const struct disk_calls calls = {.text = say_strange};
    struct disk plain = {&plain_calls}, disk = {&calls};
    int dir_fd = open(".", O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int error = cases[i].error;
        ck_assert_ptr_nonnull(strstr(disk_text(error), cases[i].says));
        ck_assert_str_eq(disk_say(&plain, error), disk_text(error));
        ck_assert_str_eq(disk_text_at(dir_fd, error), disk_text(error));
    }
    ck_assert_str_eq(disk_say(&plain, EIO), strerror(EIO));
    ck_assert_str_eq(disk_say(&disk, EIO), "strange");
    ck_assert_str_eq(disk_text_at(dir_fd, ENOSPC), strerror(ENOSPC));
    close(dir_fd);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_real, test_fake, test_crash_sectors,
        test_crash_hole, test_crash_names, test_failed_sync, test_fake_faults,
        test_no_sync_of_names, test_text};
    return run_tests("disk", tests, COUNT_OF(tests));
}

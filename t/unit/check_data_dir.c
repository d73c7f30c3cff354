/* SPDX-License-Identifier: BSD-3-Clause */
/* durable/data_dir and offline/data_check on real directories: how one is made,
 * for whom, and what is refused. Two processes in one directory are in
 * check_durable_rules. */
#include "offline/data_check.h"

#include "base/err.h"
#include "durable/durable.h"
#include "durable/holder.h"
#include "unit/check_help.h"
#include "wal/manifest.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory of the test's, and in it the one that it is about. */
struct place {
    char top[32];
    char path[48];
    struct buf why;
    int dir_fd;   /* of the last make() that worked */
    bool is_made; /* by that one */
    bool must_be_used;
};

static void
begin(struct place *place)
{
    *place = (struct place){.top = "/tmp/check_data_dir_XXXXXX", .dir_fd = -1};
    ck_assert_ptr_nonnull(mkdtemp(place->top));
    (void)snprintf(place->path, sizeof place->path, "%s/data", place->top);
}

static void
end(struct place *place)
{
    if (place->dir_fd >= 0) {
        close(place->dir_fd);
    }
    (void)rmdir(place->path);
    ck_assert_int_eq(rmdir(place->top), 0);
    buf_fini(&place->why);
}

/* Makes it for user; 0 or ERR_. */
static int
make(struct place *place, const char *user)
{
    const struct data_dir_terms terms = {
        .user = user, .log_fd = -1, .must_be_used = place->must_be_used};
    int fd;
    buf_clear(&place->why);
    int err =
        data_dir_make(place->path, &terms, &fd, &place->is_made, &place->why);
    if (err == 0) {
        if (place->dir_fd >= 0) {
            close(place->dir_fd);
        }
        place->dir_fd = fd;
    }
    buf_add(&place->why, "", 1);
    return err;
}

/* Locks it, the descriptor being a new one. */
static int
take(struct place *place, struct data_dir *dir)
{
    int fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    buf_clear(&place->why);
    const struct data_dir_terms terms = {
        .user = "", .log_fd = -1, .must_be_used = place->must_be_used};
    int err = data_dir_lock(fd, place->path, &terms, dir, &place->why);
    buf_add(&place->why, "", 1);
    return err;
}

static int
look_at(struct place *place, struct data_dir *dir)
{
    struct logger logger = {0};
    buf_clear(&place->why);
    int err = data_dir_look(place->path, dir, &logger, &place->why);
    buf_add(&place->why, "", 1);
    return err;
}

static bool
says(const struct place *place, const char *text)
{
    return strstr((const char *)place->why.data, text) != NULL;
}

static uid_t
owner_of(const struct place *place)
{
    struct stat stat;
    ck_assert_int_eq(lstat(place->path, &stat), 0);
    return stat.st_uid;
}

static void
make_file(const struct place *place, const char *name, const char *text)
{
    int fd = openat(place->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void
remove_file(const struct place *place, const char *name)
{
    ck_assert_int_eq(unlinkat(place->dir_fd, name, 0), 0);
}

/* Nobody else is let in; the second time it is there. */
START_TEST(test_make)
{
    struct place place;
    struct stat stat;
    begin(&place);
    ck_assert_int_eq(make(&place, ""), 0);
    ck_assert_int_eq(fstat(place.dir_fd, &stat), 0);
    ck_assert_int_eq(stat.st_mode & 07777, 0700);
    ck_assert_uint_eq(stat.st_uid, geteuid());
    ck_assert_int_eq(make(&place, ""), 0);
    end(&place);
}
END_TEST

/* None can be made, or what is there is no directory. */
START_TEST(test_cannot_make)
{
    struct place place;
    begin(&place);
    size_t len = strlen(place.path);
    (void)snprintf(place.path + len, sizeof place.path - len, "/deep");
    ck_assert_int_eq(make(&place, ""), ERR_NO_DATA_DIR);
    ck_assert(says(&place, "cannot make"));
    ck_assert(says(&place, place.path));
    place.path[len] = '\0';
    int fd = open(place.path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(make(&place, ""), ERR_SYSTEM);
    ck_assert(says(&place, "cannot open"));
    ck_assert_int_eq(unlink(place.path), 0);
    end(&place);
}
END_TEST

/* Root makes it for the server's user, also where it came to its end between
 * making and giving; a directory with something in it stays as it is. */
START_TEST(test_given)
{
    struct place place;
    const struct passwd *nobody = getpwnam("nobody");
    if (geteuid() != 0 || nobody == NULL) {
        return; /* only root can give */
    }
    uid_t uid = nobody->pw_uid;
    begin(&place);
    ck_assert_int_eq(make(&place, "no such user"), ERR_SYSTEM);
    ck_assert(says(&place, "no such user"));
    ck_assert_int_ne(access(place.path, F_OK), 0); /* none is left */
    ck_assert_int_eq(make(&place, "nobody"), 0);
    ck_assert_uint_eq(owner_of(&place), uid);
    ck_assert_int_eq(chown(place.path, 0, 0), 0);
    make_file(&place, "report.txt", "x");
    ck_assert_int_eq(make(&place, "nobody"), 0);
    ck_assert_uint_eq(owner_of(&place), 0);
    remove_file(&place, "report.txt");
    ck_assert_int_eq(make(&place, "nobody"), 0); /* one left over is given */
    ck_assert_uint_eq(owner_of(&place), uid);
    ck_assert_int_eq(rmdir(place.path), 0);
    ck_assert_int_eq(make(&place, "nobody"), 0);
    ck_assert_uint_eq(owner_of(&place), uid);
    end(&place);
}
END_TEST

/* Of those who make it one has made it. */
START_TEST(test_who_made_it)
{
    struct place place;
    begin(&place);
    ck_assert_int_eq(make(&place, ""), 0);
    ck_assert(place.is_made);
    ck_assert_int_eq(make(&place, ""), 0);
    ck_assert(!place.is_made);
    place.must_be_used = true;
    ck_assert_int_eq(make(&place, ""), 0);
    ck_assert(!place.is_made);
    end(&place);
}
END_TEST

/* What was made goes again, with its lock, unless somebody else has put a file
 * there. */
START_TEST(test_unmake)
{
    struct place place;
    struct data_dir dir;
    begin(&place);
    ck_assert_int_eq(make(&place, ""), 0);
    dir = (struct data_dir){.dir_fd = -1, .lock_fd = -1};
    data_dir_unmake(&dir, place.path);
    ck_assert_int_ne(access(place.path, F_OK), 0);
    ck_assert_int_eq(make(&place, ""), 0);
    ck_assert_int_eq(take(&place, &dir), 0);
    data_dir_unmake(&dir, place.path);
    ck_assert_int_ne(access(place.path, F_OK), 0);
    ck_assert_int_eq(dir.dir_fd, -1);
    ck_assert_int_eq(make(&place, ""), 0);
    make_file(&place, "report.txt", "x");
    data_dir_unmake(&dir, place.path);
    ck_assert_int_eq(access(place.path, F_OK), 0);
    remove_file(&place, "report.txt");
    end(&place);
}
END_TEST

/* One that must have been used is neither made nor written to; what a server
 * leaves is for the store to judge. */
START_TEST(test_must_be_used)
{
    static const char *const used[] = {
        MANIFEST_NAME, MANIFEST_COPY, DURABLE_BALLAST};
    struct place place;
    struct data_dir dir;
    begin(&place);
    place.must_be_used = true;
    ck_assert_int_eq(make(&place, ""), ERR_SYSTEM);
    ck_assert(says(&place, "is not there"));
    ck_assert_int_eq(access(place.path, F_OK), -1);
    ck_assert_int_eq(mkdir(place.path, 0700), 0);
    ck_assert_int_eq(make(&place, ""), 0);
    ck_assert_int_eq(take(&place, &dir), ERR_SYSTEM);
    ck_assert(says(&place, "has no counters"));
    ck_assert_int_eq(faccessat(place.dir_fd, "lock", F_OK, 0), -1);
    make_file(&place, "lock", "");
    make_file(&place, MANIFEST_NAME ".new", "");
    ck_assert_int_eq(take(&place, &dir), ERR_SYSTEM);
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++) {
        make_file(&place, used[i], "");
        ck_assert_int_eq(take(&place, &dir), 0);
        data_dir_close(&dir);
        remove_file(&place, used[i]);
    }
    remove_file(&place, MANIFEST_NAME ".new");
    remove_file(&place, "lock");
    end(&place);
}
END_TEST

START_TEST(test_remains)
{
    static const char *const remains[] = {DURABLE_BALLAST, MANIFEST_COPY,
        MANIFEST_COPY ".new", "log-00000000000000000001",
        "checkpoint-00000000000000000003", "log-00000000000000000001.wal",
        "checkpoint-00000000000000000003.ckpt", "salvage-2026",
        "segment-00000000000000000001.seg"};
    static const char *const others[] = {".", "..", "lock", MANIFEST_NAME,
        MANIFEST_NAME ".new", "lost+found", "log-", "report", "", "ballast2"};
    for (size_t i = 0; i < sizeof remains / sizeof remains[0]; i++) {
        ck_assert_msg(data_dir__is_remains(remains[i]), "%s", remains[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_msg(!data_dir__is_remains(others[i]), "%s", others[i]);
    }
}
END_TEST

/* A lock file that leads elsewhere is not followed: not written to by who
 * takes the directory, not locked by who looks at it. */
START_TEST(test_lock_is_link)
{
    struct place place;
    struct data_dir dir;
    struct stat stat;
    begin(&place);
    ck_assert_int_eq(make(&place, ""), 0);
    ck_assert_int_eq(symlinkat("../target", place.dir_fd, "lock"), 0);
    ck_assert_int_eq(take(&place, &dir), ERR_SYSTEM);
    ck_assert(says(&place, "/lock for writing: "));
    ck_assert_int_eq(fstatat(place.dir_fd, "../target", &stat, 0), -1);
    ck_assert_int_eq(look_at(&place, &dir), 0);
    ck_assert_int_ge(dir.dir_fd, 0);
    ck_assert_int_eq(dir.lock_fd, -1);
    data_dir_close(&dir);
    ck_assert_int_eq(dir.dir_fd, -1);
    remove_file(&place, "lock");
    end(&place);
}
END_TEST

/* The lock on the file alone is enough: of a process on a file system that
 * locks no directories. */
START_TEST(test_lock_of_file)
{
    struct place place;
    struct data_dir dir;
    char us[32];
    (void)snprintf(us, sizeof us, "(%ld) uses", (long)getpid());
    begin(&place);
    ck_assert_int_eq(make(&place, ""), 0);
    make_file(&place, "lock", "1\n"); /* it has not the file open */
    int fd = openat(place.dir_fd, "lock", O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(take(&place, &dir), ERR_DIR_IN_USE);
    ck_assert(!says(&place, "(1)"));
    ck_assert(says(&place, us) || says(&place, "cannot be named from here"));
    ck_assert_int_eq(look_at(&place, &dir), ERR_DIR_IN_USE);
    ck_assert(!says(&place, "(1)"));
    /* it has, whether the kernel lists the lock or not */
    ck_assert_int_gt(dprintf(fd, "%ld\n", (long)getpid()), 1);
    ck_assert_int_eq(take(&place, &dir), ERR_DIR_IN_USE);
    ck_assert(says(&place, us));
    ck_assert_int_eq(look_at(&place, &dir), ERR_DIR_IN_USE);
    ck_assert(says(&place, us));
    ck_assert_int_eq(flock(fd, LOCK_UN), 0);
    ck_assert_int_eq(take(&place, &dir), 0);
    data_dir_close(&dir);
    close(fd);
    remove_file(&place, "lock");
    end(&place);
}
END_TEST

/* A lock of the directory, too; and none of a file that nobody has. */
START_TEST(test_holder)
{
    struct place place;
    pid_t us = getpid();
    begin(&place);
    ck_assert_int_eq(make(&place, ""), 0);
    make_file(&place, "lock", "");
    int fd = openat(place.dir_fd, "lock", O_RDONLY);
    ck_assert_int_eq(holder_find(-1, -1, us), 0);
    ck_assert_int_eq(holder_find(place.dir_fd, fd, 0), 0);
    ck_assert_int_eq(holder_find(place.dir_fd, fd, 1), 0);
    ck_assert_int_eq(holder_find(place.dir_fd, fd, us), us);
    ck_assert_int_eq(flock(place.dir_fd, LOCK_EX), 0);
    ck_assert_int_eq(holder_find(place.dir_fd, -1, us), us);
    pid_t listed = holder_find(place.dir_fd, fd, 0);
    ck_assert(listed == us || listed == 0); /* btrfs, overlayfs */
    ck_assert_int_eq(holder_find(-1, fd, 0), 0);
    close(fd);
    remove_file(&place, "lock");
    end(&place);
}
END_TEST

/* What --check says of a directory. */
static int
check(const struct data_dir *dir, const char *result)
{
    struct logger logger = {0};
    struct buf out = {0};
    int err = data_check(dir, &logger, &out);
    buf_add(&out, "", 1);
    ck_assert_msg(
        strstr((char *)out.data, result) != NULL, "%s", (char *)out.data);
    buf_fini(&out);
    return err;
}

/* Without a sound manifest there is nothing that could be checked. */
START_TEST(test_check)
{
    struct place place;
    struct data_dir dir;
    begin(&place);
    ck_assert_int_eq(make(&place, ""), 0);
    ck_assert_int_eq(look_at(&place, &dir), 0);
    ck_assert_int_eq(check(&dir, err_file_text(ERR_NOT_FOUND)), ERR_NOT_FOUND);
    make_file(&place, MANIFEST_NAME, "this is no manifest");
    ck_assert_int_eq(check(&dir, err_file_text(ERR_CORRUPT)), ERR_CORRUPT);
    remove_file(&place, MANIFEST_NAME);
    data_dir_close(&dir);
    end(&place);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_holder, test_make, test_cannot_make,
        test_given, test_lock_is_link, test_lock_of_file, test_check,
        test_must_be_used, test_remains, test_who_made_it, test_unmake};
    return run_tests("data directory", tests, COUNT_OF(tests));
}

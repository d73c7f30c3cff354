/* SPDX-License-Identifier: BSD-3-Clause */
/* server/process. What changes a process for good, or ends it, is done in a
 * child. What only root can do is tried where the test is root. */
#include "server/process.h"

#include "base/err.h"
#include "unit/check_help.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a step in a child; its exit status. */
static int
in_child(int (*step)(int fd), int fd)
{
    int status;

    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        _exit(step(fd));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* 0 where all streams are open and what is opened next is none of them. */
static int
fill_streams(int fd)
{
    (void)fd;
    close(STDIN_FILENO);
    close(STDERR_FILENO);
    process_fill_streams();
    int next = dup(STDOUT_FILENO);
    return write(STDERR_FILENO, "x", 1) == 1 && next > STDERR_FILENO ? 0 : 1;
}

START_TEST(test_fill_streams)
{
    ck_assert_int_eq(in_child(fill_streams, -1), 0);
}
END_TEST

static void
says(struct buf *message, const char *words)
{
    buf_add(message, "", 1);
    ck_assert_msg(strstr(message->data, words) != NULL, "'%s'", message->data);
    buf_fini(message);
}

START_TEST(test_refuse_root)
{
    struct buf message = {0};

    ck_assert_int_eq(process_refuse_root("nobody", &message), 0);
    ck_assert_uint_eq(message.len, 0);
    if (geteuid() == 0) {
        ck_assert_int_eq(process_refuse_root("", &message), ERR_BAD_OPTION);
        says(&message, "can't run as root without the -u switch");
        ck_assert_int_eq(
            process_refuse_root("no such user", &message), ERR_BAD_OPTION);
        says(&message, "-u no such user: there is no such user");
    } else {
        ck_assert_int_eq(process_refuse_root("", &message), 0);
    }
    buf_fini(&message);
}
END_TEST

static int
become_nobody(int fd)
{
    struct buf message = {0};
    gid_t groups[2];

    (void)fd;
    if (process_drop_user("nobody", &message) != 0 || geteuid() == 0 ||
        getegid() == 0 || setuid(0) == 0) {
        return 1;
    }
    int n = getgroups(2, groups);
    buf_fini(&message);
    return n == 1 && groups[0] == getegid() ? 0 : 2;
}

START_TEST(test_drop_user)
{
    struct buf message = {0};

    ck_assert_int_eq(process_drop_user("", &message), 0);
    if (geteuid() == 0) {
        ck_assert_int_eq(in_child(become_nobody, -1), 0);
        ck_assert_int_eq(
            process_drop_user("no such user", &message), ERR_BAD_OPTION);
        says(&message, "-u no such user: there is no such user");
    } else {
        ck_assert_int_eq(process_drop_user("no such user", &message), 0);
    }
    buf_fini(&message);
}
END_TEST

static int
look_who(const void *context, struct buf *message)
{
    const uid_t *uid = context;
    gid_t groups[2];
    int n = getgroups(2, groups);

    (void)message;
    return geteuid() == *uid && n == 1 && groups[0] == getegid() ? ERR_EXISTS
                                                                 : 0;
}

/* One whose groups are to come back. */
static int
try_nobody(int fd)
{
    const gid_t groups[] = {3, 1, 7};
    const struct passwd *nobody = getpwnam("nobody");
    struct buf message = {0};
    gid_t found[4];

    (void)fd;
    if (setgroups(3, groups) != 0 ||
        process_try_as("nobody", look_who, &nobody->pw_uid, &message) !=
            ERR_EXISTS) {
        return 1;
    }
    bool is_same = geteuid() == 0 && getegid() == 0 &&
        getgroups(4, found) == 3 && setuid(0) == 0;
    int err = process_try_as("no such user", look_who, NULL, &message);
    buf_fini(&message);
    return is_same && err == ERR_BAD_OPTION ? 0 : 2;
}

static int
note_call(const void *context, struct buf *message)
{
    *(bool *)(uintptr_t)context = true;
    (void)message;
    return ERR_EXISTS;
}

/* With the user's rights and groups; those of before come back. */
START_TEST(test_try_as)
{
    struct buf message = {0};
    bool was_called = false;

    ck_assert_int_eq(
        process_try_as("", note_call, &was_called, &message), ERR_EXISTS);
    ck_assert(was_called);
    if (geteuid() == 0) {
        ck_assert_int_eq(in_child(try_nobody, -1), 0);
    }
    buf_fini(&message);
}
END_TEST

static bool
limit_is(rlim_t soft, rlim_t hard)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == soft &&
        limit.rlim_max == hard;
}

static int
move_limits(int fd)
{
    struct buf message = {0};
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = 128};

    (void)fd;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1;
    }
    if (process_raise_fd_limit(32, &message) != 0 || !limit_is(64, 128)) {
        return 2;
    }
    if (process_raise_fd_limit(100, &message) != 0 || !limit_is(100, 128) ||
        message.len != 0) {
        return 3;
    }
    /* more than the kernel gives anybody */
    if (process_raise_fd_limit(1UL << 40, &message) != ERR_SYSTEM ||
        !limit_is(100, 128)) {
        return 4;
    }
    buf_add(&message, "", 1);
    bool good = strstr(message.data,
                    "needs 1099511627776 open files and may have 128: lower "
                    "-c, or raise the limit") != NULL;
    buf_fini(&message);
    return good ? 0 : 5;
}

START_TEST(test_fd_limit)
{
    ck_assert_int_eq(in_child(move_limits, -1), 0);
}
END_TEST

static void
make_directory(char *path)
{
    ck_assert_ptr_nonnull(mkdtemp(path));
}

static long
read_pid(const char *path)
{
    long pid = -1;
    FILE *stream = fopen(path, "re");

    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(fscanf(stream, "%ld", &pid), 1);
    ck_assert_int_eq(fgetc(stream), '\n');
    ck_assert_int_eq(fgetc(stream), EOF);
    fclose(stream);
    return pid;
}

START_TEST(test_pidfile)
{
    char directory[] = "check_process.XXXXXX";
    char path[64];
    struct buf message = {0};

    make_directory(directory);
    snprintf(path, sizeof path, "%s/pid", directory);
    ck_assert_int_eq(process_write_pidfile(path, &message), 0);
    ck_assert_int_eq(read_pid(path), getpid());
    ck_assert_int_eq(process_write_pidfile(path, &message), 0);
    ck_assert_int_eq(read_pid(path), getpid());
    ck_assert_int_eq(process_remove_pidfile(path, &message), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(process_remove_pidfile(path, &message), 0);

    /* another server's stays */
    FILE *stream = fopen(path, "we");
    ck_assert_ptr_nonnull(stream);
    fprintf(stream, "%ld\n", (long)getpid() + 1);
    fclose(stream);
    ck_assert_int_eq(process_remove_pidfile(path, &message), 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_uint_eq(message.len, 0);

    /* nothing but the file is left */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(
        process_write_pidfile("no/such/pid", &message), ERR_SYSTEM);
    says(&message, "cannot write the pid file no/such/pid: No such file");
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

static int
stdin_is_dev_null(void)
{
    struct stat in;
    struct stat null;

    return fstat(STDIN_FILENO, &in) == 0 && stat("/dev/null", &null) == 0 &&
        in.st_rdev == null.st_rdev;
}

/* Goes to the background and says there what it is. */
static int
daemon_that_starts(int fd)
{
    struct buf message = {0};
    int ready = -1;
    char at[8];
    struct stat out;
    struct stat null;

    if (process_daemonize(false, &ready, &message) != 0) {
        return 7;
    }
    bool good = getsid(0) == getpid() && stdin_is_dev_null() &&
        getcwd(at, sizeof at) != NULL && strcmp(at, "/") == 0;
    good = process_ready(&ready, false, &message) == 0 && good && ready == -1;
    good = fstat(STDERR_FILENO, &out) == 0 && stat("/dev/null", &null) == 0 &&
        out.st_rdev == null.st_rdev && good;
    good = process_ready(&ready, false, &message) == 0 && good;
    good = write(fd, good ? "y" : "n", 1) == 1 && good;
    return 0;
}

static int
daemon_that_fails(int fd)
{
    struct buf message = {0};
    int ready = -1;

    if (process_daemonize(false, &ready, &message) != 0) {
        return 7;
    }
    if (write(fd, "f", 1) != 1) {
        return 8;
    }
    return 9;
}

START_TEST(test_daemonize)
{
    int fds[2];
    char byte = 0;

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(in_child(daemon_that_starts, fds[1]), EXIT_SUCCESS);
    ck_assert_int_eq(read(fds[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'y');
    ck_assert_int_eq(in_child(daemon_that_fails, fds[1]), EXIT_FAILURE);
    ck_assert_int_eq(read(fds[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'f');
}
END_TEST

/* A file of a tree that stands for the system's. */
static void
put_file(const char *directory, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void
put_directory(const char *directory, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static uint64_t
limit_with(const char *directory, const char *cgroups)
{
    char self[256];

    put_file(directory, "self", cgroups);
    snprintf(self, sizeof self, "%s/self", directory);
    return process_cgroup_limit(self, directory);
}

START_TEST(test_cgroup_limit)
{
    char top[] = "check_process.XXXXXX";
    char command[64];

    ck_assert_ptr_nonnull(mkdtemp(top));
    put_directory(top, "a");
    put_directory(top, "a/b");
    put_directory(top, "a/c");
    put_file(top, "a/memory.max", "5000\n");
    put_file(top, "a/b/memory.max", "max\n");
    put_file(top, "a/c/memory.max", "4000\n");
    ck_assert_uint_eq(limit_with(top, "0::/a\n"), 5000);
    ck_assert_uint_eq(limit_with(top, "0::/a/b\n"), 5000);
    ck_assert_uint_eq(limit_with(top, "0::/a/c\n"), 4000);
    ck_assert_uint_eq(limit_with(top, "0::/a/c/none"), 4000);
    put_file(top, "a/c/memory.max", "6000\n");
    ck_assert_uint_eq(limit_with(top, "0::/a/c\n"), 5000);
    ck_assert_uint_eq(limit_with(top, "3:cpu:/a\n0::/a\n1:name=x:/\n"), 5000);
    ck_assert_uint_eq(limit_with(top, "0::/\n"), UINT64_MAX);
    ck_assert_uint_eq(limit_with(top, "0::/../../x\n"), UINT64_MAX);
    ck_assert_uint_eq(limit_with(top, "3:memory:/a\n"), UINT64_MAX);
    ck_assert_uint_eq(limit_with(top, "0::\n0:/a\n0\n"), UINT64_MAX);
    ck_assert_uint_eq(limit_with(top, ""), UINT64_MAX);
    /* in a container the root has a limit too */
    put_file(top, "memory.max", "3000\n");
    ck_assert_uint_eq(limit_with(top, "0::/\n"), 3000);
    ck_assert_uint_eq(limit_with(top, "0::/a/b\n"), 3000);
    put_file(top, "memory.max", "rubbish\n");
    ck_assert_uint_eq(limit_with(top, "0::/\n"), UINT64_MAX);
    put_file(top, "memory.max", "");
    ck_assert_uint_eq(limit_with(top, "0::/\n"), UINT64_MAX);
    ck_assert_uint_eq(process_cgroup_limit("no/such/file", top), UINT64_MAX);
    snprintf(command, sizeof command, "rm -r %s", top);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(test_cgroup_version_1)
{
    char top[] = "check_process.XXXXXX";
    char command[64];

    ck_assert_ptr_nonnull(mkdtemp(top));
    put_directory(top, "a");
    put_file(top, "a/memory.limit_in_bytes", "1\n");
    put_file(top, "a/memory.max", "7000\n");
    put_file(top, "memory.limit_in_bytes", "2\n");
    put_directory(top, "memory");
    put_directory(top, "memory/a");
    put_directory(top, "memory/a/b");
    put_file(top, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    put_file(top, "memory/memory.max", "3\n");
    put_file(top, "memory/a/memory.limit_in_bytes", "5000\n");
    put_file(top, "memory/a/b/memory.limit_in_bytes", "4000\n");
    ck_assert_uint_eq(
        limit_with(top, "9:cpu:/a/b\n4:memory:/a\n0::/\n"), 5000);
    ck_assert_uint_eq(limit_with(top, "4:hugetlb,memory,cpu:/a/b\n"), 4000);
    ck_assert_uint_eq(limit_with(top, "4:memory,cpu:/a/c/d"), 5000);
    ck_assert_uint_eq(
        limit_with(top, "4:memory:/x\n"), UINT64_C(9223372036854771712));
    ck_assert_uint_eq(limit_with(top, "4:name=memory:/a\n"), UINT64_MAX);
    ck_assert_uint_eq(limit_with(top, "4:memory_more,more:/a\n"), UINT64_MAX);
    ck_assert_uint_eq(limit_with(top, "0::/a\n4:memory:/x\n"), 7000);
    ck_assert_uint_eq(limit_with(top, "4:memory:/a\n0::/a\n"), 5000);
    /* a container: the path is the host's */
    put_file(top, "memory/memory.limit_in_bytes", "3000\n");
    ck_assert_uint_eq(limit_with(top, "4:memory:/docker/0123\n"), 3000);
    snprintf(command, sizeof command, "rm -r %s", top);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(test_memory)
{
    uint64_t machine =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t limit =
        process_cgroup_limit("/proc/self/cgroup", "/sys/fs/cgroup");

    ck_assert_uint_eq(
        process_memory_bytes(), limit < machine ? limit : machine);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("process");
    TCase *tcase = tcase_create("process");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_add_test(tcase, test_fill_streams);
    tcase_add_test(tcase, test_refuse_root);
    tcase_add_test(tcase, test_drop_user);
    tcase_add_test(tcase, test_try_as);
    tcase_add_test(tcase, test_fd_limit);
    tcase_add_test(tcase, test_pidfile);
    tcase_add_test(tcase, test_daemonize);
    tcase_add_test(tcase, test_cgroup_limit);
    tcase_add_test(tcase, test_cgroup_version_1);
    tcase_add_test(tcase, test_memory);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

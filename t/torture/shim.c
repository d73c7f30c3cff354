/* SPDX-License-Identifier: BSD-3-Clause */

/* A library to preload: counts the calls that a process makes on the files of
 * one directory, and at a call of a given number ends the process, fails the
 * call, does half of it, leaves it out, or holds it until it is told otherwise.
 *
 * $SHIM_DIR is the directory, $SHIM_CONTROL a file of struct control that the
 * harness has mapped too: it arms a fault while the process runs, and reads
 * the counts after its end. shim.py has the same layout.
 *
 * Which calls are on the directory: those with a file descriptor that was
 * opened there (watched), and those with a name that begins with it or is
 * relative to a watched directory. All threads count together; row 0 counts
 * all calls of any kind that change something. Calls on segments (*.seg and
 * *.seg.new) count in a row of their own too; reads of segments, and of log
 * files, count as such only. So does calloc of large blocks, which a worker
 * calls under a shard's lock for a table. */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The kinds of calls; shim.py has them in this order. */
enum call {
    ANY,
    OPEN,
    WRITE,
    SYNC,
    ALLOCATE,
    TRUNCATE,
    RENAME,
    UNLINK,
    SEGMENT, /* any call that changes one */
    READ,    /* of a segment */
    LOAD,    /* a read of a log file */
    MEMORY,  /* calloc of a large block */
    CALLS
};

enum action {
    NOTHING,
    KILL_BEFORE, /* the call does not happen */
    KILL_AFTER,
    KILL_HALF,  /* half of a write happens; like KILL_BEFORE for others */
    FAIL,       /* with error, and nothing happens */
    FAIL_HALF,  /* half of a write happens, and that is what it says */
    FAIL_AFTER, /* with error, though it happened */
    LEAVE_OUT,  /* says that it happened */
    HOLD        /* it happens when the row says something else */
};

/* One row for each kind of call. The harness writes all but count. */
struct row {
    uint64_t count;
    uint64_t first, last; /* the numbers of the calls with the fault */
    uint64_t action;
    uint64_t error;
    uint64_t unused[3];
};

struct control {
    struct row row[CALLS];
};

enum {
    FDS = 1 << 16,
    PATH_BYTES = 4096,
    LOOK_NS = 1000 * 1000,
    TABLE_BYTES = 32 << 10
};

/* What a file descriptor is of. */
enum watch { NOBODYS, WATCHED, WATCHED_SEGMENT, WATCHED_LOG };

/* A preloaded library has nobody who could hand it its state. */
static struct control *control;
static char top[PATH_BYTES];
static unsigned char watched[FDS];

static void *
next(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (symbol == NULL) {
        abort();
    }
    return symbol;
}

#define REAL(type, name) ((type)next(name))

__attribute__((constructor)) static void
begin(void)
{
    const char *dir = getenv("SHIM_DIR");
    const char *file = getenv("SHIM_CONTROL");
    if (dir == NULL || file == NULL || strlen(dir) >= sizeof(top)) {
        return;
    }
    int fd = REAL(int (*)(const char *, int, ...), "open")(file, O_RDWR);
    void *map = fd < 0 ? MAP_FAILED
                       : mmap(NULL, sizeof(struct control),
                             PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        fprintf(stderr, "shim: %s: %s\n", file, strerror(errno));
        abort();
    }
    close(fd);
    strcpy(top, dir);
    control = map;
}

static bool
is_watched(int fd)
{
    return control != NULL && fd >= 0 && fd < FDS && watched[fd];
}

static bool
is_segment(int fd)
{
    return is_watched(fd) && watched[fd] == WATCHED_SEGMENT;
}

static bool
is_log(int fd)
{
    return is_watched(fd) && watched[fd] == WATCHED_LOG;
}

static bool
names_segment(const char *path)
{
    return strstr(path, ".seg") != NULL;
}

static enum watch
watch_of(const char *path)
{
    return names_segment(path)         ? WATCHED_SEGMENT
        : strstr(path, ".wal") != NULL ? WATCHED_LOG
                                       : WATCHED;
}

static bool
is_inside(const char *path)
{
    size_t len = strlen(top);
    return control != NULL && path != NULL && strncmp(path, top, len) == 0 &&
        (path[len] == '/' || path[len] == '\0');
}

static bool
is_named(int dir_fd, const char *path)
{
    if (path == NULL || strcmp(path, "..") == 0) {
        return false;
    }
    return path[0] == '/' ? is_inside(path) : is_watched(dir_fd);
}

static _Noreturn void
die(void)
{
    kill(getpid(), SIGKILL);
    for (;;) {
        pause();
    }
}

static uint64_t
action_of(struct row *row)
{
    return __atomic_load_n(&row->action, __ATOMIC_SEQ_CST);
}

/* Counts a call in a row; that where it meets the fault, else met. */
static struct row *
count_in(enum call call, struct row *met)
{
    struct row *row = &control->row[call];
    uint64_t n = __atomic_add_fetch(&row->count, 1, __ATOMIC_SEQ_CST);
    bool is_met =
        action_of(row) != NOTHING && n >= row->first && n <= row->last;
    while (is_met && action_of(row) == HOLD) {
        struct timespec pause = {.tv_nsec = LOOK_NS};
        (void)nanosleep(&pause, NULL);
    }
    return is_met && action_of(row) != NOTHING ? row : met;
}

/* Counts a call, of a segment or not; the row whose fault it meets, or NULL. */
static struct row *
meet(enum call call, bool on_segment)
{
    struct row *met = count_in(call, NULL);
    if (call < READ) {
        met = count_in(ANY, met);
    }
    if (call < READ && on_segment) {
        met = count_in(SEGMENT, met);
    }
    return met;
}

/* What is done instead of a call that is no write: true where it does not
 * happen, and *result is what is returned. */
static bool
before(const struct row *row, long *result)
{
    *result = 0;
    switch (row == NULL ? NOTHING : (enum action)row->action) {
    case KILL_BEFORE:
    case KILL_HALF:
        die();
    case FAIL:
    case FAIL_HALF:
        errno = (int)row->error;
        *result = -1;
        return true;
    case LEAVE_OUT:
        return true;
    default:
        return false;
    }
}

static long
after(const struct row *row, long result)
{
    if (row != NULL && row->action == KILL_AFTER) {
        die();
    }
    if (row != NULL && row->action == FAIL_AFTER) {
        errno = (int)row->error;
        return -1;
    }
    return result;
}

/* Opening. */

static int
opened(int fd, enum watch watch)
{
    if (fd >= 0 && fd < FDS) {
        watched[fd] = (unsigned char)watch;
    }
    return fd;
}

static int
open_at(const char *name, int dir_fd, const char *path, int flags, mode_t mode)
{
    int (*real)(int, const char *, int, ...) =
        REAL(int (*)(int, const char *, int, ...), name);
    if (!is_named(dir_fd, path)) {
        return opened(real(dir_fd, path, flags, mode), NOBODYS);
    }
    bool on_segment = names_segment(path);
    struct row *row = meet(OPEN, on_segment);
    long result;
    if (before(row, &result)) {
        return row->action == LEAVE_OUT ? -1 : (int)result;
    }
    int fd = opened(real(dir_fd, path, flags, mode), watch_of(path));
    result = after(row, fd);
    if (result < 0 && fd >= 0) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return (int)result;
}

#define MODE_OF(flags)                                                        \
    mode_t mode = 0;                                                          \
    if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) {         \
        va_list list;                                                         \
        va_start(list, flags);                                                \
        mode = va_arg(list, mode_t);                                          \
        va_end(list);                                                         \
    }

int
open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at("openat", AT_FDCWD, path, flags, mode);
}

int
open64(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at("openat64", AT_FDCWD, path, flags, mode);
}

int
openat(int dir_fd, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at("openat", dir_fd, path, flags, mode);
}

int
openat64(int dir_fd, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at("openat64", dir_fd, path, flags, mode);
}

/* What _FORTIFY_SOURCE makes of a call without mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir_fd, const char *path, int flags);
int __openat64_2(int dir_fd, const char *path, int flags);

int
__open_2(const char *path, int flags)
{
    return open_at("openat", AT_FDCWD, path, flags, 0);
}

int
__open64_2(const char *path, int flags)
{
    return open_at("openat64", AT_FDCWD, path, flags, 0);
}

int
__openat_2(int dir_fd, const char *path, int flags)
{
    return open_at("openat", dir_fd, path, flags, 0);
}

int
__openat64_2(int dir_fd, const char *path, int flags)
{
    return open_at("openat64", dir_fd, path, flags, 0);
}

/* What is another descriptor of a file is watched as that one is. */

static int
copied(int fd, int copy)
{
    return opened(
        copy, fd >= 0 && fd < FDS ? (enum watch)watched[fd] : NOBODYS);
}

static int
control_of(const char *name, int fd, int command, void *argument)
{
    int result = REAL(int (*)(int, int, ...), name)(fd, command, argument);

    return command == F_DUPFD || command == F_DUPFD_CLOEXEC
        ? copied(fd, result)
        : result;
}

#define ARGUMENT_OF(last)                                                     \
    va_list list;                                                             \
    va_start(list, last);                                                     \
    void *argument = va_arg(list, void *);                                    \
    va_end(list);

int
fcntl(int fd, int command, ...)
{
    ARGUMENT_OF(command)
    return control_of("fcntl", fd, command, argument);
}

int
fcntl64(int fd, int command, ...)
{
    ARGUMENT_OF(command)
    return control_of("fcntl64", fd, command, argument);
}

int
dup(int fd)
{
    return copied(fd, REAL(int (*)(int), "dup")(fd));
}

int
close(int fd)
{
    opened(fd, NOBODYS);
    return REAL(int (*)(int), "close")(fd);
}

/* libc closes these without calling close. */
int
closedir(DIR *dir)
{
    opened(dirfd(dir), NOBODYS);
    return REAL(int (*)(DIR *), "closedir")(dir);
}

int
fclose(FILE *file)
{
    opened(fileno(file), NOBODYS);
    return REAL(int (*)(FILE *), "fclose")(file);
}

/* Writing. */

static ssize_t
write_at(int fd, const void *bytes, size_t len, off_t at)
{
    return at < 0
        ? REAL(ssize_t(*)(int, const void *, size_t), "write")(fd, bytes, len)
        : REAL(ssize_t(*)(int, const void *, size_t, off_t), "pwrite")(
              fd, bytes, len, at);
}

static ssize_t
write_or_not(int fd, const void *bytes, size_t len, off_t at)
{
    if (!is_watched(fd)) {
        return write_at(fd, bytes, len, at);
    }
    struct row *row = meet(WRITE, is_segment(fd));
    long result;
    if (row != NULL && row->action == KILL_HALF) {
        write_at(fd, bytes, len / 2, at);
        die();
    }
    if (row != NULL && row->action == FAIL_HALF && len > 1) {
        return write_at(fd, bytes, len / 2, at);
    }
    if (before(row, &result)) {
        return result == 0 ? (ssize_t)len : result;
    }
    return after(row, write_at(fd, bytes, len, at));
}

ssize_t
write(int fd, const void *bytes, size_t len)
{
    return write_or_not(fd, bytes, len, -1);
}

ssize_t
pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return write_or_not(fd, bytes, len, at);
}

ssize_t
pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
    return write_or_not(fd, bytes, len, at);
}

/* Of several pieces only the first is written: a short write is allowed. */
ssize_t
pwritev(int fd, const struct iovec *piece, int n, off_t at)
{
    if (!is_watched(fd) || n < 1) {
        return REAL(ssize_t(*)(int, const struct iovec *, int, off_t),
            "pwritev")(fd, piece, n, at);
    }
    return write_or_not(fd, piece[0].iov_base, piece[0].iov_len, at);
}

ssize_t
pwritev64(int fd, const struct iovec *piece, int n, off_t at)
{
    return pwritev(fd, piece, n, at);
}

/* Reading. */

static ssize_t
read_or_not(int fd, void *bytes, size_t len, off_t at)
{
    ssize_t (*real)(int, void *, size_t, off_t) =
        REAL(ssize_t(*)(int, void *, size_t, off_t), "pread");
    if (!is_segment(fd) && !is_log(fd)) {
        return real(fd, bytes, len, at);
    }
    struct row *row = meet(is_segment(fd) ? READ : LOAD, true);
    long result;
    if (before(row, &result)) {
        return result;
    }
    return after(row, real(fd, bytes, len, at));
}

ssize_t
pread(int fd, void *bytes, size_t len, off_t at)
{
    return read_or_not(fd, bytes, len, at);
}

ssize_t
pread64(int fd, void *bytes, size_t len, off_t at)
{
    return read_or_not(fd, bytes, len, at);
}

/* What _FORTIFY_SOURCE makes of a call whose buffer has a known size. */
ssize_t __pread_chk(int fd, void *bytes, size_t len, off_t at, size_t size);
ssize_t __pread64_chk(int fd, void *bytes, size_t len, off_t at, size_t size);

ssize_t
__pread_chk(int fd, void *bytes, size_t len, off_t at, size_t size)
{
    return len > size ? (abort(), -1) : read_or_not(fd, bytes, len, at);
}

ssize_t
__pread64_chk(int fd, void *bytes, size_t len, off_t at, size_t size)
{
    return len > size ? (abort(), -1) : read_or_not(fd, bytes, len, at);
}

/* Memory, which can be held only. The C library's own function has a name by
 * which it can be reached before anything has been looked up. */

void *__libc_calloc(size_t n, size_t bytes);

void *
calloc(size_t n, size_t bytes)
{
    if (control != NULL && n * bytes >= TABLE_BYTES) {
        (void)meet(MEMORY, false);
    }
    return __libc_calloc(n, bytes);
}

/* Syncing and the rest: calls that return 0 or -1. */

#define ON_FD(call, name, type, arguments)                                    \
    if (!is_watched(fd)) {                                                    \
        return REAL(type, name) arguments;                                    \
    }                                                                         \
    struct row *row = meet(call, is_segment(fd));                             \
    long result;                                                              \
    if (before(row, &result)) {                                               \
        return (int)result;                                                   \
    }                                                                         \
    return (int)after(row, REAL(type, name) arguments);

int
fdatasync(int fd)
{
    ON_FD(SYNC, "fdatasync", int (*)(int), (fd))
}

int
fsync(int fd)
{
    ON_FD(SYNC, "fsync", int (*)(int), (fd))
}

int
syncfs(int fd)
{
    ON_FD(SYNC, "syncfs", int (*)(int), (fd))
}

int
sync_file_range(int fd, off_t at, off_t len, unsigned flags)
{
    ON_FD(SYNC, "sync_file_range", int (*)(int, off_t, off_t, unsigned),
        (fd, at, len, flags))
}

int
ftruncate(int fd, off_t len)
{
    ON_FD(TRUNCATE, "ftruncate", int (*)(int, off_t), (fd, len))
}

int
ftruncate64(int fd, off_t len)
{
    ON_FD(TRUNCATE, "ftruncate", int (*)(int, off_t), (fd, len))
}

int
fallocate(int fd, int mode, off_t at, off_t len)
{
    ON_FD(ALLOCATE, "fallocate", int (*)(int, int, off_t, off_t),
        (fd, mode, at, len))
}

int
fallocate64(int fd, int mode, off_t at, off_t len)
{
    return fallocate(fd, mode, at, len);
}

/* It returns the error instead of setting it. */
int
posix_fallocate(int fd, off_t at, off_t len)
{
    if (!is_watched(fd)) {
        return REAL(int (*)(int, off_t, off_t), "posix_fallocate")(
            fd, at, len);
    }
    struct row *row = meet(ALLOCATE, is_segment(fd));
    long result;
    if (before(row, &result)) {
        return result < 0 ? errno : 0;
    }
    int rv = REAL(int (*)(int, off_t, off_t), "posix_fallocate")(fd, at, len);
    return after(row, 0) < 0 ? errno : rv;
}

int
posix_fallocate64(int fd, off_t at, off_t len)
{
    return posix_fallocate(fd, at, len);
}

/* Names. */

static int
rename_or_not(int from_fd, const char *from, int to_fd, const char *to)
{
    int (*real)(int, const char *, int, const char *) =
        REAL(int (*)(int, const char *, int, const char *), "renameat");
    if (!is_named(to_fd, to)) {
        return real(from_fd, from, to_fd, to);
    }
    struct row *row = meet(RENAME, names_segment(to));
    long result;
    if (before(row, &result)) {
        return (int)result;
    }
    return (int)after(row, real(from_fd, from, to_fd, to));
}

int
rename(const char *from, const char *to)
{
    return rename_or_not(AT_FDCWD, from, AT_FDCWD, to);
}

int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return rename_or_not(from_fd, from, to_fd, to);
}

static int
unlink_or_not(int dir_fd, const char *path, int flags)
{
    int (*real)(int, const char *, int) =
        REAL(int (*)(int, const char *, int), "unlinkat");
    if (!is_named(dir_fd, path)) {
        return real(dir_fd, path, flags);
    }
    struct row *row = meet(UNLINK, names_segment(path));
    long result;
    if (before(row, &result)) {
        return (int)result;
    }
    return (int)after(row, real(dir_fd, path, flags));
}

int
unlink(const char *path)
{
    return unlink_or_not(AT_FDCWD, path, 0);
}

int
unlinkat(int dir_fd, const char *path, int flags)
{
    return unlink_or_not(dir_fd, path, flags);
}

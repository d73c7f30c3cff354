/* SPDX-License-Identifier: BSD-3-Clause */
/* The data directory: made for the server's user with nobody else let in, and
 * held by one process, which keeps a lock on the directory itself and on a
 * file in it: the first cannot be removed, the second works where a file system
 * locks no directories, and tells people the process id. The locks go with the
 * process, however that ends, so they are never stale.
 *
 * A directory that has no manifest and files of others is somebody else's: it
 * is refused, and stays as it is. One that has no manifest but what only a
 * server with a manifest leaves has lost it (durable/durable.c). */
#include "durable/data.h"

#include "base/err.h"
#include "cold/segment_head.h"
#include "durable/durable.h"
#include "durable/holder.h"
#include "durable/snapshot_folder.h"
#include "wal/manifest.h"
#include "wal/names_old.h"
#include "wal/replica_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "lock"
#define SALVAGE_PREFIX "salvage-" /* of directories with old files */

enum {
    DIR_MODE = 0700,
    FILE_MODE = 0600,
    PID_TEXT_BYTES = 32,
    LOCK_TRIES = 10 /* where the lock file is removed meanwhile */
};

/* Gives a directory that root has just made to the user who will use it. */
static int
give_to(int fd, const char *user, struct buf *why)
{
    const struct passwd *entry = getpwnam(user);
    if (entry == NULL) {
        buf_addf(why, "no such user: %s", user);
        return ERR_SYSTEM;
    }
    if (fchown(fd, entry->pw_uid, entry->pw_gid) != 0) {
        buf_addf(why, "cannot give the data directory to %s: %s", user,
            strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}

/* True for an empty directory of root's: made by a server that came to its end
 * before it could give it away. */
static bool
is_left_over(int fd)
{
    struct stat stat;
    bool is_empty = true;
    if (fstat(fd, &stat) != 0 || stat.st_uid != 0) {
        return false;
    }
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        if (copy >= 0) {
            close(copy);
        }
        return false;
    }
    for (struct dirent *entry; is_empty && (entry = readdir(dir)) != NULL;) {
        is_empty = strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0;
    }
    closedir(dir);
    return is_empty;
}

/* Why a directory cannot be made. */
static const char *
text_of_making(const char *path, int error)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(parent, sizeof parent, "%.*s",
        slash == NULL ? 1 : (int)(slash - path + 1),
        slash == NULL ? "." : path);
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *text = fd < 0 ? strerror(error) : disk_text_at(fd, error);
    if (fd >= 0) {
        close(fd);
    }
    return error == ENOSPC ? text : strerror(error);
}

/* Refuses a directory that must have been used before. */
static int
is_not_used(const char *path, const char *how, struct buf *why)
{
    buf_addf(why,
        "the data directory %s %s, and --new-data=refuse begins none: see "
        "that its disk is mounted and --data names the right one; to begin "
        "with no counters start once without --new-data=refuse",
        path, how);
    return ERR_SYSTEM;
}

/* The name of a directory that has just been made is to last as well. */
static void
sync_parent(int fd)
{
    int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent >= 0) {
        /* where it may not be read or synced, it is as with any mkdir */
        (void)fsync(parent);
        close(parent);
    }
}

int
data_dir_make(const char *path, const struct data_dir_terms *terms,
    int *dir_fd, bool *is_made, struct buf *why)
{
    struct stat stat;
    const char *user = terms->user;
    bool made = !terms->must_be_used && mkdir(path, DIR_MODE) == 0;
    if (terms->must_be_used) {
        if (lstat(path, &stat) != 0 && errno == ENOENT) {
            return is_not_used(path, "is not there", why);
        }
    } else if (!made && errno != EEXIST) {
        buf_addf(why, "cannot make the data directory %s: %s", path,
            text_of_making(path, errno));
        bool is_there = lstat(path, &stat) == 0 || errno == EACCES;
        return is_there ? ERR_SYSTEM : ERR_NO_DATA_DIR;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        buf_addf(why, "cannot open the data directory %s: %s", path,
            strerror(errno));
        return ERR_SYSTEM;
    }
    if (geteuid() == 0 && user[0] != '\0' && (made || is_left_over(fd))) {
        int err = give_to(fd, user, why);
        if (err != 0) {
            close(fd);
            if (made) {
                (void)rmdir(path);
            }
            return err;
        }
    }
    if (made) {
        sync_parent(fd);
    }
    *dir_fd = fd;
    *is_made = made;
    return 0;
}

static int
cannot_use(const char *path, struct buf *why)
{
    buf_addf(why,
        "cannot use the data directory %s: %s; it must belong to the "
        "server's user, who must be able to write there",
        path, strerror(errno));
    return ERR_SYSTEM;
}

/* Says who has the lock, where that can be told. */
static int
is_in_use(int dir_fd, const char *path, struct buf *why)
{
    char text[PID_TEXT_BYTES] = "";
    long said = 0;
    int fd = openat(
        dir_fd, LOCK_NAME, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof text - 1);
        text[n < 0 ? 0 : n] = '\0';
        said = strtol(text, NULL, 10);
    }
    long pid = (long)holder_find(dir_fd, fd, (pid_t)said);
    if (fd >= 0) {
        close(fd);
    }
    if (pid > 0) {
        buf_addf(why, "another process (%ld)", pid);
    } else {
        buf_add_text(why, "another process, which cannot be named from here,");
    }
    buf_addf(why,
        " uses the data directory %s: stop it, or give this one a directory "
        "of its own with --data",
        path);
    return ERR_DIR_IN_USE;
}

/* A lock that goes with fd. A file system that cannot lock says so (flock(2)):
 * some network ones lock no directories, and nothing that is not open for
 * writing; one of the two locks is enough. */
enum locked { LOCKED, HELD, UNLOCKABLE /* errno says why */ };

static enum locked
lock(int fd, int how)
{
    return flock(fd, how | LOCK_NB) == 0 ? LOCKED
        : errno == EWOULDBLOCK           ? HELD
                                         : UNLOCKABLE;
}

struct contents {
    bool has_manifest;
    bool has_remains;
    bool has_others;
    char other[NAME_MAX + 1]; /* one of them */
};

/* True of what the process itself may have put there before: its log, which is
 * open, and its Unix socket. */
static bool
is_made_by_us(int dir_fd, const char *name, int log_fd)
{
    struct stat found, log;
    if (fstatat(dir_fd, name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
        return false;
    }
    return S_ISSOCK(found.st_mode) ||
        (log_fd >= 0 && fstat(log_fd, &log) == 0 &&
            log.st_dev == found.st_dev && log.st_ino == found.st_ino);
}

static bool
is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool
data_dir__is_remains(const char *name)
{
    static const char *const remains[] = {
        DURABLE_BALLAST, MANIFEST_COPY, MANIFEST_COPY ".new"};
    enum names_kind kind;
    uint64_t number;
    char other[NAMES_BYTES];
    bool is_new;
    return names_parse(name, &kind, &number) || names_old_parse(name, other) ||
        segment_name_parse(name, &number, &is_new) ||
        strncmp(name, SALVAGE_PREFIX, strlen(SALVAGE_PREFIX)) == 0 ||
        strcmp(name, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE) == 0 ||
        is_one_of(name, remains, sizeof remains / sizeof remains[0]);
}

/* dir_fd is where the name is. */
static void
note_name(struct contents *contents, int dir_fd, const char *name, int log_fd)
{
    static const char *const ours[] = {".", "..", LOCK_NAME,
        MANIFEST_NAME ".new", REPLICA_NAME, REPLICA_NAME ".new",
        "lost+found" /* of the file system */};
    if (strcmp(name, MANIFEST_NAME) == 0) {
        contents->has_manifest = true;
        return;
    }
    bool is_remains = data_dir__is_remains(name);
    bool is_ours = is_remains || snapshot_folder__has(name) ||
        is_one_of(name, ours, sizeof ours / sizeof ours[0]);
    contents->has_remains |= is_remains;
    if (!is_ours && !contents->has_others &&
        !is_made_by_us(dir_fd, name, log_fd)) {
        contents->has_others = true;
        (void)snprintf(contents->other, sizeof contents->other, "%s", name);
    }
}

/* Refuses a directory that is not one of ours, nor empty; or empty, where it
 * must have been used. */
static int
look_into(int dir_fd, const char *path, const struct data_dir_terms *terms,
    struct buf *why)
{
    struct contents contents = {0};
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        int err = cannot_use(path, why);
        if (copy >= 0) {
            close(copy);
        }
        return err;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        note_name(&contents, dir_fd, entry->d_name, terms->log_fd);
    }
    closedir(dir);
    if (terms->must_be_used && !contents.has_manifest &&
        !contents.has_remains && !contents.has_others) {
        return is_not_used(path, "has no counters", why);
    }
    if (contents.has_manifest || !contents.has_others) {
        return 0;
    }
    buf_addf(why,
        "the data directory %s is not empty and has no %s, but %s: it is left "
        "as it is; give a directory of its own with --data",
        path, MANIFEST_NAME, contents.other);
    return ERR_SYSTEM;
}

/* Leaves the process id to people, and lets nobody else in. A full disk or a
 * missing right does not matter here. */
static void
settle_in(int dir_fd, int fd)
{
    char pid[PID_TEXT_BYTES];
    struct stat stat;
    int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)n, 0) != n) {
        errno = 0;
    }
    if (fstat(dir_fd, &stat) == 0 && (stat.st_mode & 0777) != DIR_MODE) {
        (void)fchmod(dir_fd, DIR_MODE);
    }
}

/* True where the open file is the one that has the name. */
static bool
is_named(int dir_fd, int fd)
{
    struct stat open_one, named;
    return fstat(fd, &open_one) == 0 &&
        fstatat(dir_fd, LOCK_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Neither of the two can be locked. */
static int
cannot_lock(const char *path, int error, struct buf *why)
{
    buf_addf(why,
        "cannot lock the data directory %s: %s. Without a lock nothing keeps a "
        "second server out, and two would destroy it: use a file system that "
        "can lock (NFS: version 4, or one with lockd), or, where you see to it "
        "that there is only one, give --no-lock",
        path, strerror(error));
    return ERR_SYSTEM;
}

/* Opens and locks the file, which has its name then. may_lack: where it cannot
 * be locked that is no reason to stop. */
static int
lock_file(
    int dir_fd, const char *path, bool may_lack, int *out, struct buf *why)
{
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        int fd = openat(dir_fd, LOCK_NAME,
            O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
        if (fd < 0) {
            buf_addf(why, "cannot open %s/%s for writing: %s", path, LOCK_NAME,
                disk_text_at(dir_fd, errno));
            return ERR_SYSTEM;
        }
        enum locked locked = lock(fd, LOCK_EX);
        if (locked != LOCKED && (locked == HELD || !may_lack)) {
            int error = errno;
            close(fd);
            return locked == HELD ? is_in_use(dir_fd, path, why)
                                  : cannot_lock(path, error, why);
        }
        if (is_named(dir_fd, fd)) {
            *out = fd;
            return 0;
        }
        close(fd);
    }
    return is_in_use(dir_fd, path, why);
}

static int
take(int dir_fd, const char *path, const struct data_dir_terms *terms,
    int *lock_fd, struct buf *why)
{
    enum locked locked = lock(dir_fd, LOCK_EX);
    if (locked == HELD) {
        return is_in_use(dir_fd, path, why);
    }
    if (faccessat(dir_fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        return cannot_use(path, why);
    }
    int err = look_into(dir_fd, path, terms, why);
    if (err == 0) {
        err = lock_file(
            dir_fd, path, terms->no_lock || locked == LOCKED, lock_fd, why);
    }
    if (err == 0) {
        settle_in(dir_fd, *lock_fd);
    }
    return err;
}

int
data_dir_lock(int dir_fd, const char *path, const struct data_dir_terms *terms,
    struct data_dir *out, struct buf *why)
{
    int fd = -1;
    int err = take(dir_fd, path, terms, &fd, why);
    if (err != 0) {
        close(dir_fd);
        return err;
    }
    *out = (struct data_dir){.dir_fd = dir_fd, .lock_fd = fd};
    return 0;
}

void
data_dir_unmake(struct data_dir *dir, const char *path)
{
    if (dir->lock_fd >= 0 && dir->dir_fd >= 0) {
        (void)unlinkat(dir->dir_fd, LOCK_NAME, 0);
    }
    (void)rmdir(path);
    data_dir_close(dir);
}

/* Locks shared: those who look do not disturb each other. */
static int
look(int dir_fd, const char *path, int *lock_fd, struct logger *logger,
    struct buf *why)
{
    enum locked locked = lock(dir_fd, LOCK_SH);
    if (locked == HELD) {
        return is_in_use(dir_fd, path, why);
    }
    *lock_fd = openat(
        dir_fd, LOCK_NAME, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (*lock_fd < 0) {
        log_line(logger, LOG_WARNING,
            "%s/%s: %s; checked as a copy, which no server may use meanwhile",
            path, LOCK_NAME, strerror(errno));
        return 0;
    }
    enum locked file = lock(*lock_fd, LOCK_SH);
    if (file == HELD) {
        close(*lock_fd);
        return is_in_use(dir_fd, path, why);
    }
    if (locked != LOCKED && file != LOCKED) {
        log_line(logger, LOG_WARNING,
            "%s cannot be locked: %s; no server may use it meanwhile", path,
            strerror(errno));
    }
    return 0;
}

int
data_dir_look(const char *path, struct data_dir *out, struct logger *logger,
    struct buf *why)
{
    int lock_fd = -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        buf_addf(why, "cannot open the data directory %s: %s", path,
            strerror(errno));
        return ERR_SYSTEM;
    }
    int err = look(fd, path, &lock_fd, logger, why);
    if (err != 0) {
        close(fd);
        return err;
    }
    *out = (struct data_dir){.dir_fd = fd, .lock_fd = lock_fd};
    return 0;
}

void
data_dir_close(struct data_dir *dir)
{
    if (dir->lock_fd >= 0 && dir->dir_fd >= 0) {
        close(dir->lock_fd);
    }
    if (dir->dir_fd >= 0) {
        close(dir->dir_fd);
    }
    *dir = (struct data_dir){.dir_fd = -1, .lock_fd = -1};
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The real disk: each call is one or more system calls on the directory that
 * was handed in. Calls that a signal interrupted are repeated, short reads and
 * writes go on where they stopped, and errno is the answer. A write that takes
 * no byte and says no error counts as EIO, so that no loop is endless. */
#include "base/disk.h"

#include "base/assert.h"
#include "base/disk_ring.h"
#include "base/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

enum { FILE_MODE = 0600, BLOCK_BYTES = 4096 /* usually, or less */ };

struct disk_real {
    struct disk disk; /* first: what callers hold */
    int dir_fd;       /* the caller's */
    bool gives;       /* files that are made, to uid and gid */
    uid_t uid;
    gid_t gid;
};

static const struct disk_real *
real_of(const struct disk *disk)
{
    return (const struct disk_real *)disk;
}

/* The errno value of a call that returned rv, 0 where it went well. */
static int
errno_of(int rv)
{
    return rv == 0 ? 0 : errno;
}

/* What has been opened, without waiting, is a regular file: reads of it may
 * wait from here on. An errno value, or DISK_NOT_REGULAR. */
static int
take_regular(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return errno;
    }
    if (!S_ISREG(st.st_mode)) {
        return DISK_NOT_REGULAR;
    }
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? errno
                     : errno_of(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK));
}

/* A file that has just been made gets its owner. An errno value. */
static int
give(const struct disk_real *real, int fd)
{
    return real->gives ? errno_of(fchown(fd, real->uid, real->gid)) : 0;
}

/* Which error it is that an open has failed with: of a directory to be written,
 * or a socket. */
static int
open_error(int error)
{
    return error == EISDIR || error == ENXIO ? DISK_NOT_REGULAR : error;
}

static int
real_open(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    static const int flags[] = {
        [DISK_READ] = O_RDONLY,
        [DISK_DIRECT] = O_RDONLY | O_DIRECT,
        [DISK_WRITE] = O_RDWR,
        [DISK_CREATE] = O_RDWR | O_CREAT | O_EXCL,
    };
    do {
        *fd = openat(real_of(disk)->dir_fd, name,
            flags[how] | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
            FILE_MODE);
    } while (*fd < 0 && errno == EINTR);
    int err = *fd < 0 ? open_error(errno) : take_regular(*fd);
    if (err == 0 && how == DISK_CREATE) {
        err = give(real_of(disk), *fd);
    }
    if (err != 0 && *fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
    return err;
}

static void
real_close(struct disk *disk, int fd)
{
    (void)disk;
    /* what was not synced is nobody's promise; never repeated: on Linux the
     * descriptor is gone also where a signal came in */
    (void)close(fd);
}

static int
real_read(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    char *out = bytes;
    (void)disk;
    *n_read = 0;
    while (*n_read < len) {
        ssize_t n =
            pread(fd, out + *n_read, len - *n_read, (off_t)(at + *n_read));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno;
        }
        if (n == 0) {
            break;
        }
        *n_read += (size_t)n;
    }
    return 0;
}

static int
real_write(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at)
{
    const char *in = bytes;
    (void)disk;
    while (len > 0) {
        ssize_t n = pwrite(fd, in, len, (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        in += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

static int
real_allocate(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    int err;
    (void)disk;
    do {
        err = errno_of(fallocate(fd, 0, (off_t)at, (off_t)len));
    } while (err == EINTR);
    return err;
}

static int
real_truncate(struct disk *disk, int fd, uint64_t len)
{
    int err;
    (void)disk;
    do {
        err = errno_of(ftruncate(fd, (off_t)len));
    } while (err == EINTR);
    return err;
}

static int
real_punch(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    int err;
    (void)disk;
    do {
        err =
            errno_of(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                (off_t)at, (off_t)len));
    } while (err == EINTR);
    return err;
}

static int
real_size(struct disk *disk, int fd, uint64_t *len)
{
    struct stat st;
    (void)disk;
    if (fstat(fd, &st) != 0) {
        return errno;
    }
    *len = (uint64_t)st.st_size;
    return 0;
}

/* The descriptor's place in the file moves, which no other call here looks at.
 * Where a file system cannot tell its holes, all is data. */
static int
real_next_data(
    struct disk *disk, int fd, uint64_t at, uint64_t *from, uint64_t *to)
{
    *from = at;
    *to = at;
    off_t data = lseek(fd, (off_t)at, SEEK_DATA);
    off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
    if (hole >= 0) {
        *from = (uint64_t)data;
        *to = (uint64_t)hole;
        return 0;
    }
    if (errno == ENXIO) { /* a hole, or nothing, up to the file's end */
        return 0;
    }
    int err = errno == EINVAL ? real_size(disk, fd, to) : errno;
    *to = *to < at ? at : *to;
    return err;
}

static int
real_room(struct disk *disk, uint64_t *bytes)
{
    struct statvfs st;
    if (fstatvfs(real_of(disk)->dir_fd, &st) != 0) {
        return errno;
    }
    *bytes = (uint64_t)st.f_bavail * st.f_frsize;
    return 0;
}

static int
real_look(struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    struct stat st;
    int dir_fd = real_of(disk)->dir_fd;
    int rv = name == NULL ? fstat(fd, &st)
                          : fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
    if (rv != 0) {
        return errno;
    }
    *out = (struct disk_file){.device = (uint64_t)st.st_dev,
        .inode = (uint64_t)st.st_ino,
        .bytes = (uint64_t)st.st_size,
        .changed_ns = (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) +
            (uint64_t)st.st_mtim.tv_nsec,
        .names = (uint64_t)st.st_nlink};
    return 0;
}

static int
real_sync(struct disk *disk, int fd)
{
    int err;
    (void)disk;
    do {
        err = errno_of(fdatasync(fd));
    } while (err == EINTR);
    return err;
}

static int
real_rename(struct disk *disk, const char *from, const char *to)
{
    int dir_fd = real_of(disk)->dir_fd;
    return errno_of(renameat(dir_fd, from, dir_fd, to));
}

static int
real_unlink(struct disk *disk, const char *name)
{
    return errno_of(unlinkat(real_of(disk)->dir_fd, name, 0));
}

/* As fsync. */
static int
sync_dir(int fd)
{
    int err;
    do {
        err = errno_of(fsync(fd));
    } while (err == EINTR);
    return err;
}

int
disk_sync_dir(int dir_fd)
{
    int err = sync_dir(dir_fd);
    return err == EINVAL ? 0 : err;
}

bool
disk_syncs_names(int dir_fd)
{
    return sync_dir(dir_fd) != EINVAL;
}

static int
real_sync_names(struct disk *disk)
{
    return disk_sync_dir(real_of(disk)->dir_fd);
}

static bool
is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* On a descriptor of its own, because reading moves it. */
static int
real_list(struct disk *disk, void (*name_fn)(void *context, const char *name),
    void *context)
{
    int fd =
        openat(real_of(disk)->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        int err = errno;
        (void)close(fd);
        return err;
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            break;
        }
        if (!is_dots(entry->d_name)) {
            name_fn(context, entry->d_name);
        }
    }
    int err = errno;
    (void)closedir(dir);
    return err;
}

static int
real_ring(struct disk *disk, unsigned n_reads, struct disk_ring **out)
{
    (void)disk;
    return disk_ring__open(n_reads, out);
}

static const char *
real_text(struct disk *disk, int error)
{
    return disk_text_at(real_of(disk)->dir_fd, error);
}

static void
real_uncache(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    (void)disk;
    (void)posix_fadvise(fd, (off_t)at, (off_t)len, POSIX_FADV_DONTNEED);
}

static const struct disk_calls real_calls = {
    .open = real_open,
    .close = real_close,
    .read = real_read,
    .write = real_write,
    .allocate = real_allocate,
    .truncate = real_truncate,
    .punch = real_punch,
    .next_data = real_next_data,
    .size = real_size,
    .room = real_room,
    .look = real_look,
    .sync = real_sync,
    .rename = real_rename,
    .unlink = real_unlink,
    .sync_names = real_sync_names,
    .list = real_list,
    .ring = real_ring,
    .text = real_text,
    .uncache = real_uncache,
};

const char *
disk_text(int error)
{
    switch (error) {
    case DISK_NOT_REGULAR:
        return "a directory, a FIFO, a socket or a device has its name: move "
               "that away";
    case EACCES:
        return "Permission denied: see that the data directory and all that "
               "is in it belongs to the server's user, with modes of 0700 and "
               "0600";
    case EPERM:
        return "Operation not permitted: see whose file it is, and whether it "
               "is immutable (lsattr), or a security module is in the way";
    case ELOOP: /* of the last name, which is all there is (O_NOFOLLOW) */
        return "a symbolic link has its name: put the file itself there";
    case EINVAL:
        return "Invalid argument: the file system cannot do that";
    case DISK_TAKEN:
        return err_file_text(ERR_DIR_TAKEN);
    default:
        return strerror(error);
    }
}

const char *
disk_say(struct disk *disk, int error)
{
    return disk->calls->text == NULL ? disk_text(error)
                                     : disk->calls->text(disk, error);
}

/* True where no file can be made, whatever room there is; file systems that
 * have no fixed number of inodes say 0 of 0. */
static bool
lacks_inodes(int dir_fd)
{
    struct statvfs st;
    return fstatvfs(dir_fd, &st) == 0 && st.f_files > 0 &&
        (geteuid() == 0 ? st.f_ffree : st.f_favail) == 0;
}

const char *
disk_text_at(int dir_fd, int error)
{
    return error == ENOSPC && lacks_inodes(dir_fd)
        ? "the file system has no inode left, though it may have room (see df "
          "-i): remove files from it"
        : disk_text(error);
}

int
disk_err(int errno_value)
{
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
        return ERR_DISK_FULL;
    case EFBIG:
        return ERR_FILE_SIZE;
    case DISK_TAKEN:
        return ERR_DIR_TAKEN;
    default:
        return ERR_DISK;
    }
}

void
disk_hole(struct disk *disk, int fd, uint64_t end, uint64_t len)
{
    uint64_t from = (end + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    if (from < len) {
        (void)disk->calls->punch(disk, fd, from, len - from);
    }
}

int
disk_real_create(int dir_fd, struct disk **out)
{
    struct disk_real *real = malloc(sizeof(*real));
    ASSERT(dir_fd >= 0);
    if (real == NULL) {
        return ENOMEM;
    }
    *real = (struct disk_real){.disk = {&real_calls}, .dir_fd = dir_fd};
    *out = &real->disk;
    return 0;
}

void
disk_real_give(struct disk *disk, uid_t uid, gid_t gid)
{
    struct disk_real *real = (struct disk_real *)disk;
    ASSERT(disk->calls == &real_calls);
    real->gives = true;
    real->uid = uid;
    real->gid = gid;
}

void
disk_real_destroy(struct disk **disk)
{
    free(*disk);
    *disk = NULL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A file is looked at when it is open, so that what is read is what was looked
 * at. */
#include "base/small_file.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As PostgreSQL sees keys: others must not read it, and a group only one of
 * root's. */
static bool
is_open_to_others(const struct stat *info)
{
    return (info->st_mode & (S_IRWXO | S_IWGRP)) != 0 ||
        ((info->st_mode & S_IRGRP) != 0 && info->st_uid != 0);
}

/* Until the end of the file or of the memory; -1: errno says why. */
static ssize_t
read_all(int fd, char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        ssize_t n = read(fd, bytes + at, size - at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -1 : (ssize_t)at;
        }
        at += (size_t)n;
    }
    return (ssize_t)at;
}

static int
say_size(const struct small_file *file, size_t n, struct buf *why)
{
    bool is_short = n < file->least;
    buf_addf(why, "%s=%s: it is %s than %zu bytes", file->option, file->path,
        is_short ? "shorter" : "longer", is_short ? file->least : file->most);
    return ERR_BAD_OPTION;
}

static int
take(int fd, const struct small_file *file, char *bytes, size_t *out,
    struct buf *why)
{
    struct stat info;
    bool is_there = fstat(fd, &info) == 0;
    if (is_there && !S_ISREG(info.st_mode)) {
        buf_addf(why, "%s=%s: it is no file", file->option, file->path);
        return ERR_BAD_OPTION;
    }
    if (is_there && file->is_private && is_open_to_others(&info)) {
        buf_addf(why, "%s=%s: others can read it: chmod 0600", file->option,
            file->path);
        return ERR_BAD_OPTION;
    }
    ssize_t n = is_there ? read_all(fd, bytes, file->most + 1) : -1;
    if (n < 0) {
        buf_addf(why, "cannot read %s %s: %s", file->what, file->path,
            strerror(errno));
        return ERR_SYSTEM;
    }
    while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r')) {
        n--;
    }
    *out = (size_t)n;
    return *out < file->least || *out > file->most ? say_size(file, *out, why)
                                                   : 0;
}

int
small_file_read(
    const struct small_file *file, char *bytes, size_t *n, struct buf *why)
{
    *n = 0;
    if (file->path[0] == '\0') {
        return 0;
    }
    /* non-blocking: a pipe of that name must not hold us up */
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        buf_addf(why, "cannot open %s %s: %s", file->what, file->path,
            strerror(errno));
        return ERR_SYSTEM;
    }
    int err = take(fd, file, bytes, n, why);
    close(fd);
    return err;
}

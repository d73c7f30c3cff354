/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads in pieces; each goes into the checksum, and into the copy where there
 * is one. The rate is kept by sleeping between pieces, which are as small as
 * base/give_way.h wants them.
 *
 * What can go wrong: the disk; a file that is shorter than it was said to be;
 * who is told by tick_fn has had enough. */
#include "cli/backup_copy.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/give_way.h"
#include "wal/frame.h"
#include "wal/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

enum {
    PIECE_BYTES = 1 << 17, /* some GIVE_WAY_US */
    ENDS_BYTES = 1 << 16,  /* that are compared of two files, at each end */
    MODE = 0600,
    SLEEP_NS_MAX = 200000000,
    BURST_NS = 10000000
};

bool
backup_copy_fail(struct backup_copy *copy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(copy->why, sizeof copy->why, format, args);
    va_end(args);
    return false;
}

bool
backup_copy_init(struct backup_copy *copy)
{
    copy->bytes = malloc(PIECE_BYTES);
    copy->sum = checksum_stream_create();
    copy->due_ns = clock_monotonic_ns();
    shown_begin_bytes(&copy->shown, copy->what, 0);
    if (copy->bytes == NULL || copy->sum == NULL) {
        backup_copy_fini(copy);
        return backup_copy_fail(copy, "out of memory");
    }
    return true;
}

void
backup_copy_fini(struct backup_copy *copy)
{
    free(copy->bytes);
    copy->bytes = NULL;
    checksum_stream_destroy(&copy->sum);
}

/* A backup is made by a timer, mostly, which is told of what fails only. */
void
backup_copy_show(struct backup_copy *copy)
{
    if (copy->shown.is_tty && copy->done_bytes > 0) {
        copy->shown.all = copy->all_bytes;
        shown_tell(&copy->shown, copy->done_bytes, copy->done_bytes);
    }
}

void
backup_copy_end(struct backup_copy *copy)
{
    shown_end(&copy->shown);
}

/* Sleeps until so many bytes more keep the rate. What a slow disk has taken is
 * not caught up with, but for BURST_NS: that would be at full speed. */
static bool
hold_back(struct backup_copy *copy, size_t len)
{
    bool goes_on = true;
    uint64_t now_ns = clock_monotonic_ns();
    if (copy->rate == 0) {
        return true;
    }
    if (copy->due_ns + BURST_NS < now_ns) {
        copy->due_ns = now_ns - BURST_NS;
    }
    copy->due_ns +=
        (uint64_t)((double)len / (double)copy->rate * (double)NS_PER_S);
    while (goes_on && now_ns < copy->due_ns) {
        uint64_t ns = copy->due_ns - now_ns;
        struct timespec time = {
            .tv_nsec = (long)(ns < SLEEP_NS_MAX ? ns : SLEEP_NS_MAX)};
        (void)nanosleep(&time, NULL);
        goes_on = copy->tick_fn == NULL || copy->tick_fn(copy);
        now_ns = clock_monotonic_ns();
    }
    return goes_on;
}

bool
backup_copy_count(struct backup_copy *copy, size_t len)
{
    copy->done_bytes += len;
    backup_copy_show(copy);
    give_way();
    return (copy->tick_fn == NULL || copy->tick_fn(copy)) &&
        hold_back(copy, len);
}

/* Reads len bytes whole: 0, an errno value, or ENODATA where it ends before. */
static int
read_whole(int fd, uint8_t *bytes, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pread(fd, bytes, len, (off_t)at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : ENODATA;
        }
        bytes += n;
        len -= (size_t)n;
        at += (uint64_t)n;
    }
    return 0;
}

static int
write_whole(int fd, const uint8_t *bytes, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, bytes, len, (off_t)at);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
            at += (uint64_t)n;
        }
    }
    return 0;
}

static const char *
text_of(int error)
{
    return error == ENODATA ? "it is shorter than it should be"
                            : strerror(error);
}

/* True for what need not be written, as it reads as zeroes all the same. */
static bool
is_zero(const uint8_t *bytes, size_t len)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Goes over a file; to: -1, or where its bytes go: an empty file, which is made
 * as long as it is to be afterwards. */
static bool
go_over(struct backup_copy *copy, int from, int to, const char *name,
    uint64_t bytes, uint64_t *xxh3)
{
    checksum_stream_begin(copy->sum);
    for (uint64_t at = 0; at < bytes;) {
        size_t len =
            bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
        int error = read_whole(from, copy->bytes, len, at);
        if (error != 0) {
            return backup_copy_fail(
                copy, "cannot read %s: %s", name, text_of(error));
        }
        error = to < 0 || is_zero(copy->bytes, len)
            ? 0
            : write_whole(to, copy->bytes, len, at);
        if (error != 0) {
            return backup_copy_fail(
                copy, "cannot write %s: %s", name, text_of(error));
        }
        checksum_stream_add(copy->sum, copy->bytes, len);
        at += len;
        if (!backup_copy_count(copy, len)) {
            return false;
        }
    }
    *xxh3 = checksum_stream_sum(copy->sum);
    return true;
}

/* Only a regular file; -1 with why. */
static int
open_file(struct backup_copy *copy, int dir, const char *name)
{
    struct stat is;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &is) != 0) {
        (void)backup_copy_fail(
            copy, "cannot open %s: %s", name, strerror(errno));
    } else if (!S_ISREG(is.st_mode)) {
        (void)backup_copy_fail(copy, "%s is no file", name);
    } else {
        return fd;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return -1;
}

bool
backup_copy_hash(struct backup_copy *copy, int dir, const char *name,
    uint64_t bytes, uint64_t *xxh3)
{
    int fd = open_file(copy, dir, name);
    if (fd < 0) {
        return false;
    }
    bool is_done = go_over(copy, fd, -1, name, bytes, xxh3);
    (void)close(fd);
    return is_done;
}

static bool
is_log(const char *name)
{
    enum names_kind kind;
    uint64_t number;
    return names_parse(name, &kind, &number) && kind == NAMES_LOG;
}

/* A log file is as long as its header says, another as its bytes. False with
 * why. */
static bool
lengthen(struct backup_copy *copy, int fd, const char *name, uint64_t bytes)
{
    uint8_t head[FRAME_FILE_BYTES];
    struct frame_file file = {.bytes = bytes};
    int error = is_log(name) ? read_whole(fd, head, sizeof head, 0) : 0;
    if (is_log(name) &&
        (error != 0 || frame_file_get(head, sizeof head, &file) != FRAME_OK ||
            file.bytes < bytes)) {
        return backup_copy_fail(copy, "%s is damaged", name);
    }
    return ftruncate(fd, (off_t)file.bytes) == 0 ||
        backup_copy_fail(copy, "cannot write %s: %s", name, strerror(errno));
}

bool
backup_copy_file(struct backup_copy *copy, int from, const char *source,
    int to, const char *name, uint64_t bytes, uint64_t *xxh3)
{
    bool is_done = false;
    int fd = open_file(copy, from, source);
    if (fd < 0) {
        return false;
    }
    (void)unlinkat(to, name, 0);
    int out = openat(
        to, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, MODE);
    if (out < 0) {
        (void)backup_copy_fail(
            copy, "cannot make %s: %s", name, strerror(errno));
        goto err_after_from;
    }
    is_done = go_over(copy, fd, out, name, bytes, xxh3) &&
        lengthen(copy, out, name, bytes);
    if (is_done && fsync(out) != 0) {
        is_done = backup_copy_fail(
            copy, "cannot sync %s: %s", name, strerror(errno));
    }
    if (close(out) != 0 && is_done) {
        is_done = backup_copy_fail(
            copy, "cannot write %s: %s", name, strerror(errno));
    }
err_after_from:
    (void)close(fd);
    return is_done;
}

bool
backup_copy_link(struct backup_copy *copy, int from, int to, const char *name,
    bool *is_linked)
{
    (void)unlinkat(to, name, 0);
    *is_linked = linkat(from, name, to, name, 0) == 0;
    if (*is_linked) {
        return true;
    }
    switch (errno) {
    case EXDEV:
    case EPERM:
    case EACCES:
    case EMLINK:
    case EOPNOTSUPP:
        return true;
    default:
        return backup_copy_fail(
            copy, "cannot link %s: %s", name, strerror(errno));
    }
}

static bool
are_equal(int fd, int other, uint64_t at, size_t len)
{
    uint8_t a[ENDS_BYTES], b[ENDS_BYTES];
    ASSERT(len <= ENDS_BYTES);
    return read_whole(fd, a, len, at) == 0 &&
        read_whole(other, b, len, at) == 0 && memcmp(a, b, len) == 0;
}

bool
backup_copy_is_same(int dir, int other, const char *name, uint64_t bytes)
{
    struct stat is, was;
    bool is_same = false;
    size_t len = bytes < ENDS_BYTES ? (size_t)bytes : ENDS_BYTES;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int old =
        openat(other, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && old >= 0 && fstat(fd, &is) == 0 && fstat(old, &was) == 0 &&
        S_ISREG(is.st_mode) && S_ISREG(was.st_mode) &&
        (uint64_t)is.st_size >= bytes && (uint64_t)was.st_size >= bytes) {
        is_same = (is.st_dev == was.st_dev && is.st_ino == was.st_ino) ||
            (are_equal(fd, old, 0, len) &&
                are_equal(fd, old, bytes - len, len));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (old >= 0) {
        (void)close(old);
    }
    return is_same;
}

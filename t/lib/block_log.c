/* SPDX-License-Identifier: BSD-3-Clause */

/* An nbdkit plugin: a disk in a file that keeps a log of all writes and
 * flushes, so that every state a power cut may leave can be made from it
 * later.
 *
 *     nbdkit -f -U SOCKET block_log.so image=IMAGE log=LOG [fail-flush=FILE]
 *
 * IMAGE is the disk: its length is that of the file. LOG starts empty; a
 * record is the header below in the machine's byte order and, for a write, its
 * bytes. A record is there before its call is answered, and the order of the
 * records is that of the calls: they are serialised. While FILE exists flushes
 * fail with EIO, write nothing and leave no record. */

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_SERIALIZE_ALL_REQUESTS

enum { KIND_WRITE = 1, KIND_FLUSH = 2 };

/* What precedes the bytes of a write; read by t/torture/block_disk.py. */
struct head {
    uint32_t kind;
    uint32_t len; /* bytes that follow; of a flush 0 */
    uint64_t offset;
    uint64_t at_ns; /* CLOCK_MONOTONIC, when it was logged */
};

static char *image_path;
static char *log_path;
static char *fail_flush_path;
static int image_fd = -1;
static int log_fd = -1;
static int64_t image_size;

static int
block_log_config(const char *key, const char *value)
{
    char **path = strcmp(key, "image") == 0 ? &image_path
        : strcmp(key, "log") == 0           ? &log_path
        : strcmp(key, "fail-flush") == 0    ? &fail_flush_path
                                            : NULL;
    if (path == NULL) {
        nbdkit_error("there is no parameter %s", key);
        return -1;
    }
    free(*path);
    *path = nbdkit_absolute_path(value);
    return *path == NULL ? -1 : 0;
}

static int
block_log_get_ready(void)
{
    struct stat st;
    if (image_path == NULL || log_path == NULL) {
        nbdkit_error("image=FILE and log=FILE are needed");
        return -1;
    }
    image_fd = open(image_path, O_RDWR | O_CLOEXEC);
    log_fd = open(
        log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (image_fd < 0 || log_fd < 0 || fstat(image_fd, &st) != 0) {
        nbdkit_error("%s, %s: %s", image_path, log_path, strerror(errno));
        return -1;
    }
    image_size = st.st_size;
    return 0;
}

static void
block_log_unload(void)
{
    if (image_fd >= 0) {
        close(image_fd);
    }
    if (log_fd >= 0) {
        close(log_fd);
    }
    free(image_path);
    free(log_path);
    free(fail_flush_path);
}

static void *
block_log_open(int readonly)
{
    (void)readonly;
    return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t
block_log_get_size(void *handle)
{
    (void)handle;
    return image_size;
}

/* Appends a record; 0, or -1 with the error told. */
static int
keep(uint32_t kind, const void *bytes, uint32_t len, uint64_t offset)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct head head = {.kind = kind,
        .len = len,
        .offset = offset,
        .at_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) +
            (uint64_t)now.tv_nsec};
    struct iovec part[2] = {{.iov_base = &head, .iov_len = sizeof head},
        {.iov_base = (void *)bytes, .iov_len = len}};
    ssize_t done = writev(log_fd, part, 2);
    if (done != (ssize_t)(sizeof head + len)) {
        nbdkit_error("%s: %s", log_path,
            done < 0 ? strerror(errno) : "a part only was written");
        nbdkit_set_error(EIO);
        return -1;
    }
    return 0;
}

static int
block_log_pread(
    void *handle, void *bytes, uint32_t len, uint64_t offset, uint32_t flags)
{
    (void)handle;
    (void)flags;
    char *to = bytes;
    while (len > 0) {
        ssize_t n = pread(image_fd, to, len, (off_t)offset);
        if (n <= 0) {
            nbdkit_error("%s: %s", image_path,
                n < 0 ? strerror(errno) : "it has become shorter");
            return -1;
        }
        to += n;
        len -= (uint32_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int
block_log_pwrite(void *handle, const void *bytes, uint32_t len,
    uint64_t offset, uint32_t flags)
{
    (void)handle;
    (void)flags; /* no FUA: nbdkit sends a flush of its own instead */
    const char *from = bytes;
    if (keep(KIND_WRITE, bytes, len, offset) != 0) {
        return -1;
    }
    while (len > 0) {
        ssize_t n = pwrite(image_fd, from, len, (off_t)offset);
        if (n < 0) {
            nbdkit_error("%s: %s", image_path, strerror(errno));
            return -1;
        }
        from += n;
        len -= (uint32_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int
block_log_flush(void *handle, uint32_t flags)
{
    (void)handle;
    (void)flags;
    if (fail_flush_path != NULL && access(fail_flush_path, F_OK) == 0) {
        nbdkit_set_error(EIO);
        return -1;
    }
    return keep(KIND_FLUSH, NULL, 0, 0);
}

static struct nbdkit_plugin plugin = {
    .name = "block-log",
    .config = block_log_config,
    .get_ready = block_log_get_ready,
    .unload = block_log_unload,
    .open = block_log_open,
    .get_size = block_log_get_size,
    .pread = block_log_pread,
    .pwrite = block_log_pwrite,
    .flush = block_log_flush,
};

NBDKIT_REGISTER_PLUGIN(plugin)

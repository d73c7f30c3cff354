/* SPDX-License-Identifier: BSD-3-Clause */
/* Landlock: what may be done to files and to the network, whichever system
 * call asks for it, an io_uring's too.
 *
 * Held are all ways to change a file system, executing, and, where the kernel
 * knows them, TCP connections and new addresses, devices' ioctls, and signals
 * and abstract sockets of other processes. Reading is not: what the user may
 * read, the server may (doc/adr/0027). A right has bits from a version of the
 * kernel's interface on; those that it does not know are left out, and with
 * them the protection.
 *
 * A path that cannot be opened is an error: a server that cannot write there
 * would find out much later. The constants are those of linux/landlock.h,
 * which older systems have not got, or not whole. */
#include "server/sandbox.h"

#include "base/assert.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same on every architecture: all calls since Linux 5.1 are. */
enum { CALL_CREATE = 444, CALL_ADD = 445, CALL_RESTRICT = 446 };

enum { GET_VERSION = 1, RULE_PATH_BENEATH = 1 };

/* name, bit, first version, what it is */
#define RIGHTS(X)                                                             \
    X(EXECUTE, 0, 1, "execute a file")                                        \
    X(WRITE_FILE, 1, 1, "open a file for writing")                            \
    X(REMOVE_DIR, 4, 1, "remove a directory")                                 \
    X(REMOVE_FILE, 5, 1, "remove a file, or rename it")                       \
    X(MAKE_CHAR, 6, 1, "make a character device")                             \
    X(MAKE_DIR, 7, 1, "make a directory")                                     \
    X(MAKE_REG, 8, 1, "make a file, or give one a name")                      \
    X(MAKE_SOCK, 9, 1, "make a socket's file")                                \
    X(MAKE_FIFO, 10, 1, "make a named pipe")                                  \
    X(MAKE_BLOCK, 11, 1, "make a block device")                               \
    X(MAKE_SYM, 12, 1, "make a symbolic link")                                \
    X(REFER, 13, 2, "move a file to another directory")                       \
    X(TRUNCATE, 14, 3, "cut a file off")                                      \
    X(IOCTL_DEV, 15, 5, "control a device")

enum {
#define X(name, bit, version, text) name = 1 << (bit),
    RIGHTS(X)
#undef X
};

enum {
    VERSION_NET = 4,
    VERSION_SCOPE = 6,
    NET_BIND_TCP = 1,
    NET_CONNECT_TCP = 2,
    SCOPE_ABSTRACT = 1,
    SCOPE_SIGNAL = 2
};

struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

struct path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

/* What each sandbox_right is. */
static const uint64_t allowed[] = {
    [SANDBOX_DATA] = WRITE_FILE | REMOVE_FILE | MAKE_REG | TRUNCATE,
    [SANDBOX_LEAVE] = REMOVE_FILE,
    [SANDBOX_LOG_FILE] = WRITE_FILE | MAKE_REG,
    [SANDBOX_DUMP] = WRITE_FILE | MAKE_REG | TRUNCATE,
    [SANDBOX_DEVICE] = WRITE_FILE,
};

static uint64_t
rights_of(long version)
{
    static const struct {
        uint64_t bit;
        long version;
    } rights[] = {
#define X(name, bit, version, text) {(name), (version)},
        RIGHTS(X)
#undef X
    };
    uint64_t known = 0;
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
        known |= rights[i].version <= version ? rights[i].bit : 0;
    }
    return known;
}

/* True where the service manager's socket has no file, and would be out of
 * reach. */
static bool
manager_is_abstract(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    return path != NULL && path[0] == '@';
}

static int
fail(struct buf *message, const char *what, const char *name)
{
    buf_addf(message, "%s%s: %s", what, name, strerror(errno));
    return ERR_SYSTEM;
}

/* Opens what the rule of *path is for: itself, or the directory it is in. */
static int
open_beneath(const struct sandbox_path *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path->path, '/');
    size_t len;
    if (path->right != SANDBOX_LEAVE && path->right != SANDBOX_LOG_FILE) {
        return open(path->path, O_PATH | O_CLOEXEC);
    }
    if (slash == NULL) {
        return open(".", O_PATH | O_CLOEXEC);
    }
    len = (size_t)(slash - path->path) + 1; /* with it: / is one, too */
    if (len >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path->path, len);
    folder[len] = '\0';
    return open(folder, O_PATH | O_CLOEXEC);
}

static int
add_path(int ruleset, uint64_t known, const struct sandbox_path *path,
    struct buf *message)
{
    int fd = open_beneath(path);
    if (fd < 0) {
        return fail(message, "cannot open ", path->path);
    }
    struct path_beneath_attr rule = {
        .allowed_access = allowed[path->right] & known, .parent_fd = fd};
    int err = syscall(CALL_ADD, ruleset, RULE_PATH_BENEATH, &rule, 0) == 0
        ? 0
        : fail(message, "no rule for ", path->path);
    close(fd);
    return err;
}

/* A build that counts what is reached writes that beside its objects. */
static bool
is_counted(void)
{
#ifdef TALLYD_COVERAGE
    return true;
#else
    return false;
#endif
}

int
sandbox_hold_files(const struct sandbox_config *config, struct buf *message)
{
    if (is_counted()) {
        buf_add_text(message, "a build for coverage writes elsewhere");
        return ERR_SYSTEM;
    }
    long version = syscall(CALL_CREATE, NULL, 0, GET_VERSION);
    if (version < 1) {
        return fail(message, "the kernel has no Landlock", "");
    }
    /* fields that the kernel does not know are 0, which it takes */
    struct ruleset_attr attr = {.handled_access_fs = rights_of(version)};
    if (version >= VERSION_NET) {
        attr.handled_access_net = NET_BIND_TCP;
        attr.handled_access_net |= config->may_connect ? 0 : NET_CONNECT_TCP;
    }
    if (version >= VERSION_SCOPE) {
        attr.scoped = SCOPE_SIGNAL;
        attr.scoped |= manager_is_abstract() ? 0 : SCOPE_ABSTRACT;
    }
    int ruleset = (int)syscall(CALL_CREATE, &attr, sizeof attr, 0);
    if (ruleset < 0) {
        return fail(message, "no Landlock ruleset", "");
    }
    int err = 0;
    for (unsigned i = 0; err == 0 && i < config->n_paths; i++) {
        err = add_path(
            ruleset, attr.handled_access_fs, &config->path[i], message);
    }
    if (err == 0 && syscall(CALL_RESTRICT, ruleset, 0) != 0) {
        err = fail(message, "Landlock is refused", "");
    }
    close(ruleset);
    return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The process and its system.
 *
 * Each function does one step that a server takes once, in the order that
 * process.h gives, and each failure is final: the caller prints the message
 * and exits. Nothing here is on a request's path.
 *
 * Going to the background takes one fork and a session of its own. The child
 * then leads that session and could get a controlling terminal by opening one;
 * it opens none. The socket between parent and child carries one byte,
 * or its end, which the kernel sends whatever happens to the child. */
#include "server/process.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PIDFILE_MODE = 0644,
    PID_TEXT_BYTES = 32,   /* a pid, a newline and a NUL with room to spare */
    LIMIT_TEXT_BYTES = 32, /* a number, or "max", and a newline */
    CGROUP_LINE_BYTES = 4200 /* PATH_MAX and a little */
};

static int
system_error(struct buf *message, const char *what, const char *name)
{
    buf_addf(message, "cannot %s%s: %s", what, name, strerror(errno));
    return ERR_SYSTEM;
}

static bool
is_root(void)
{
    return getuid() == 0 || geteuid() == 0;
}

/* True where the process is root and is to become user. */
static bool
becomes(const char *user)
{
    return is_root() && user[0] != '\0';
}

/* The entry of user; static storage. ERR_BAD_OPTION where there is none. */
static int
find_user(const char *user, const struct passwd **out, struct buf *message)
{
    errno = 0;
    *out = getpwnam(user);
    if (*out != NULL) {
        return 0;
    }
    buf_addf(message, "-u %s: %s", user,
        errno == 0 || errno == ENOENT || errno == ESRCH
            ? "there is no such user"
            : strerror(errno));
    return ERR_BAD_OPTION;
}

int
process_refuse_root(const char *user, struct buf *message)
{
    const struct passwd *entry;
    if (becomes(user)) {
        return find_user(user, &entry, message);
    }
    if (!is_root()) {
        return 0;
    }
    buf_add_text(message,
        "can't run as root without the -u switch: say -u NAME to "
        "become that user, or start it as another user");
    return ERR_BAD_OPTION;
}

int
process_try_as(const char *user,
    int (*try_fn)(const void *context, struct buf *message),
    const void *context, struct buf *message)
{
    gid_t groups[NGROUPS_MAX];
    gid_t gid = getegid();
    uid_t uid = geteuid();
    const struct passwd *entry;
    if (!becomes(user)) {
        return try_fn(context, message);
    }
    int n = getgroups(NGROUPS_MAX, groups);
    int err = find_user(user, &entry, message);
    if (err != 0) {
        return err;
    }
    if (n < 0 || initgroups(user, entry->pw_gid) != 0 ||
        setegid(entry->pw_gid) != 0 || seteuid(entry->pw_uid) != 0) {
        return system_error(message, "become the user ", user);
    }
    err = try_fn(context, message);
    if (seteuid(uid) != 0 || setegid(gid) != 0 ||
        setgroups((size_t)n, groups) != 0) {
        return system_error(message, "become root again", "");
    }
    return err;
}

int
process_drop_user(const char *user, struct buf *message)
{
    const struct passwd *entry;
    if (!becomes(user)) {
        return 0;
    }
    int err = find_user(user, &entry, message);
    if (err != 0) {
        return err;
    }
    process_drop_bounding_set();
    if (initgroups(user, entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 ||
        setuid(entry->pw_uid) != 0) {
        return system_error(message, "become the user ", user);
    }
    if (entry->pw_uid != 0) {
        /* no way back */
        ASSERT(setuid(0) != 0 && getuid() != 0 && geteuid() != 0);
    }
    return 0;
}

/* The parent's part: does not return. */
static _Noreturn void
wait_for_child(pid_t child, int fd)
{
    char byte;
    ssize_t got;
    int status;

    do {
        got = read(fd, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 1) {
        _exit(EXIT_SUCCESS);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    _exit(EXIT_FAILURE);
}

/* Makes fd a way to /dev/null. */
static int
to_dev_null(int fd, int flags)
{
    int null = open("/dev/null", flags);
    if (null < 0) {
        return -1;
    }
    if (null == fd) {
        return 0;
    }
    int done = dup2(null, fd);
    int saved = errno;
    close(null);
    errno = saved;
    return done < 0 ? -1 : 0;
}

int
process_keep_only(int *fd, struct buf *message)
{
    const int kept = STDERR_FILENO + 1;
    if (to_dev_null(STDIN_FILENO, O_RDONLY) != 0 ||
        to_dev_null(STDOUT_FILENO, O_WRONLY) != 0 ||
        to_dev_null(STDERR_FILENO, O_WRONLY) != 0) {
        return system_error(message, "open /dev/null", "");
    }
    if (*fd != kept && dup3(*fd, kept, O_CLOEXEC) < 0) {
        return system_error(message, "keep a descriptor", "");
    }
    *fd = kept;
    if (syscall(SYS_close_range, kept + 1, UINT_MAX, 0) != 0) {
        return system_error(message, "close descriptors", "");
    }
    return 0;
}

int
process_daemonize(bool stays, int *ready_fd, struct buf *message)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return system_error(message, "make a pair of sockets", "");
    }
    fflush(NULL); /* else both would write what is in the streams */
    pid_t child = fork();
    if (child < 0) {
        int err = system_error(message, "go to the background", "");
        close(fds[0]);
        close(fds[1]);
        return err;
    }
    if (child > 0) {
        close(fds[1]);
        wait_for_child(child, fds[0]);
    }
    close(fds[0]);
    *ready_fd = fds[1];
    if (setsid() < 0 || (!stays && chdir("/") != 0) ||
        to_dev_null(STDIN_FILENO, O_RDONLY) != 0) {
        return system_error(message, "go to the background", "");
    }
    return 0;
}

int
process_ready(int *ready_fd, bool keep_stderr, struct buf *message)
{
    if (*ready_fd < 0) {
        return 0;
    }
    if (to_dev_null(STDOUT_FILENO, O_WRONLY) != 0) {
        return system_error(message, "open /dev/null", "");
    }
    /* a parent that was killed meanwhile does not matter */
    while (send(*ready_fd, "r", 1, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
    close(*ready_fd);
    *ready_fd = -1;
    if (!keep_stderr && to_dev_null(STDERR_FILENO, O_WRONLY) != 0) {
        return system_error(message, "open /dev/null", "");
    }
    return 0;
}

static int
write_synced(const char *path, const char *text, size_t len)
{
    unlink(path); /* left over by a process of the same number */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, PIDFILE_MODE);
    if (fd < 0) {
        return -1;
    }
    ssize_t put = write(fd, text, len);
    if (put >= 0 && (size_t)put != len) {
        errno = ENOSPC; /* a short write of some bytes means just that */
        put = -1;
    }
    if (put < 0 || fsync(fd) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return close(fd);
}

int
process_write_pidfile(const char *path, struct buf *message)
{
    char beside[PATH_MAX];
    char text[PID_TEXT_BYTES];

    int len = snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    if (len < 0 || (size_t)len >= sizeof beside) {
        errno = ENAMETOOLONG;
        return system_error(message, "write the pid file ", path);
    }
    len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (write_synced(beside, text, (size_t)len) != 0 ||
        rename(beside, path) != 0) {
        int err = system_error(message, "write the pid file ", path);
        unlink(beside);
        return err;
    }
    return 0;
}

int
process_remove_pidfile(const char *path, struct buf *message)
{
    long pid = 0;

    FILE *stream = fopen(path, "re");
    if (stream != NULL) {
        if (fscanf(stream, "%ld", &pid) != 1) {
            pid = 0;
        }
        fclose(stream);
    }
    if (pid != (long)getpid()) {
        return 0;
    }
    if (unlink(path) != 0) {
        return system_error(message, "remove the pid file ", path);
    }
    return 0;
}

/* The number in a file of a cgroup; UINT64_MAX for "max", and where the file is
 * missing, as in the root cgroup of version 2. */
static uint64_t
read_limit(const char *cgroup, const char *name)
{
    char path[3 * CGROUP_LINE_BYTES];
    char text[LIMIT_TEXT_BYTES];
    uint64_t limit = UINT64_MAX;

    snprintf(path, sizeof path, "%s/%s", cgroup, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return limit;
    }
    if (fgets(text, sizeof text, file) == NULL ||
        !num_parse_u64(text, strcspn(text, "\n"), &limit)) {
        limit = UINT64_MAX;
    }
    fclose(file);
    return limit;
}

/* The lowest of those numbers, of a cgroup and those above it up to the one of
 * which the path is `top` bytes long. Destroys the path. */
static uint64_t
lowest_limit(char *cgroup, size_t top, const char *name)
{
    uint64_t lowest = UINT64_MAX;
    for (;;) {
        uint64_t limit = read_limit(cgroup, name);
        char *slash = strrchr(cgroup + top, '/');
        lowest = limit < lowest ? limit : lowest;
        if (slash == NULL) {
            return lowest;
        }
        *slash = '\0'; /* the one above */
    }
}

/* True where a list "cpu,memory" names the controller of memory. */
static bool
names_memory(const char *list)
{
    static const char name[] = "memory";
    size_t len;
    for (;; list += len + 1) {
        len = strcspn(list, ",");
        if (len == strlen(name) && memcmp(list, name, len) == 0) {
            return true;
        }
        if (list[len] == '\0') {
            return false;
        }
    }
}

/* The limit that a line of /proc/self/cgroup leads to (cgroups(7)):
 * "0::/path" is version 2, "4:memory:/path" version 1, of which each controller
 * has a tree of its own. In a container the path may be one of the host's,
 * which is not there; what is mounted is then the container's own cgroup. */
static uint64_t
limit_of_line(char *line, const char *mount)
{
    char cgroup[2 * CGROUP_LINE_BYTES];
    size_t top = strlen(mount);
    char *list = strchr(line, ':');
    char *path = list == NULL ? NULL : strchr(list + 1, ':');
    if (path == NULL || path[1] != '/') {
        return UINT64_MAX;
    }
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (strcmp(line, "0:") == 0) {
        snprintf(cgroup, sizeof cgroup, "%s%s", mount, path);
        return lowest_limit(cgroup, top, "memory.max");
    }
    if (!names_memory(list + 1)) {
        return UINT64_MAX;
    }
    snprintf(cgroup, sizeof cgroup, "%s/memory%s", mount, path);
    return lowest_limit(
        cgroup, top + strlen("/memory"), "memory.limit_in_bytes");
}

uint64_t
process_cgroup_limit(const char *self, const char *mount)
{
    char line[CGROUP_LINE_BYTES];
    uint64_t lowest = UINT64_MAX;

    FILE *file =
        strlen(mount) < CGROUP_LINE_BYTES / 2 ? fopen(self, "re") : NULL;
    if (file == NULL) {
        return lowest;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t limit = limit_of_line(line, mount);
        lowest = limit < lowest ? limit : lowest;
    }
    fclose(file);
    return lowest;
}

uint64_t
process_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t limit =
        process_cgroup_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    uint64_t machine = pages <= 0 || page_bytes <= 0
        ? 0
        : (uint64_t)pages * (uint64_t)page_bytes;

    if (machine == 0) {
        return limit == UINT64_MAX ? 0 : limit;
    }
    return limit < machine ? limit : machine;
}

bool
process_notify(const char *lines)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path == NULL ? 0 : strlen(path);
    if (len < 2 || len > sizeof address.sun_path ||
        (path[0] != '/' && path[0] != '@')) {
        return true;
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') { /* the abstract name space */
        address.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return true;
    }
    socklen_t address_len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    /* nobody there: then nobody is told; nobody who reads: no waiting */
    ssize_t n = sendto(fd, lines, strlen(lines), MSG_NOSIGNAL | MSG_DONTWAIT,
        (const struct sockaddr *)&address, address_len);
    bool is_full = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    close(fd);
    return !is_full;
}

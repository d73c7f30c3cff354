/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into a server: at its first accepted connection it does what
 * somebody would who has taken the server over, and writes to stderr how that
 * ended. FORBIDDEN_CALL says what, FORBIDDEN_PATH where. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static long
execute(const char *path)
{
    char *const argv[] = {(char *)(size_t)path, NULL};
    return execv(path, argv);
}

static long
make_process(const char *path)
{
    (void)path;
    return fork();
}

static long
open_socket(const char *path)
{
    (void)path;
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long
reach(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0),
        (struct sockaddr *)&address, sizeof address);
}

static long
make_code(const char *path)
{
    (void)path;
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
        ? -1
        : 0;
}

static long
strike(const char *path)
{
    (void)path;
    return kill(1, 0);
}

static long
trace(const char *path)
{
    (void)path;
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long
change_mode(const char *path)
{
    return chmod(path, 0777);
}

static long
write_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT, 0600);
}

static long
read_file(const char *path)
{
    return open(path, O_RDONLY);
}

static long
remove_file(const char *path)
{
    return unlink(path);
}

static long
link_file(const char *path)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.link", path);
    return linkat(AT_FDCWD, path, AT_FDCWD, other, 0);
}

/* Where an io_uring is refused the call fails; the server ends at none. */
static long
make_ring(const char *path)
{
    char parameters[256] = {0};
    (void)path;
    return syscall(SYS_io_uring_setup, 4, parameters);
}

static const struct {
    const char *name;
    long (*act)(const char *path);
} acts[] = {
    {"execute", execute},
    {"fork", make_process},
    {"socket", open_socket},
    {"connect", reach},
    {"code", make_code},
    {"kill", strike},
    {"ptrace", trace},
    {"chmod", change_mode},
    {"write", write_file},
    {"read", read_file},
    {"unlink", remove_file},
    {"link", link_file},
    {"ring", make_ring},
};

static void
act(void)
{
    const char *name = getenv("FORBIDDEN_CALL");
    const char *path = getenv("FORBIDDEN_PATH");
    for (size_t i = 0; name != NULL && i < sizeof acts / sizeof acts[0]; i++) {
        if (strcmp(acts[i].name, name) == 0) {
            errno = 0;
            long result = acts[i].act(path == NULL ? "" : path);
            dprintf(STDERR_FILENO, "%s: %s, %s\n", name,
                result < 0 ? "refused" : "done", strerror(errno));
        }
    }
    unsetenv("FORBIDDEN_CALL");
}

int
accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    static int (*next)(int, struct sockaddr *, socklen_t *, int);
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "accept4");
    }
    int accepted = next(fd, address, len, flags);
    if (accepted >= 0) {
        act();
    }
    return accepted;
}

/* SPDX-License-Identifier: BSD-3-Clause */

/* A library to preload: counts what all threads of a process ask the C
 * library's heap for, and refuses those with numbers from first to last; and
 * has each accept4 fail while it is told so.
 * $FAULT_HEAP is a file of struct control that the test has mapped too;
 * fault_heap.py has the same layout. */

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's own, under the names by which it can be reached before
 * anything has been looked up. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

/* The test writes first and last; 0: nothing is refused. */
struct control {
    _Atomic uint64_t count;
    _Atomic uint64_t refused;
    _Atomic uint64_t first, last;
    _Atomic uint64_t accepts;      /* calls of accept4 */
    _Atomic uint64_t accept_error; /* the test's; 0: they succeed */
};

/* A preloaded library has nobody who could hand it its state. */
static struct control *control;

__attribute__((constructor)) static void
begin(void)
{
    const char *file = getenv("FAULT_HEAP");
    int fd = file == NULL ? -1 : open(file, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    void *map =
        mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    control = map == MAP_FAILED ? NULL : map;
}

static int
is_refused(void)
{
    if (control == NULL) {
        return 0;
    }
    /* the default order everywhere: the test looks at these while it waits */
    uint64_t n = atomic_fetch_add(&control->count, 1) + 1;
    uint64_t first = atomic_load(&control->first);
    if (first == 0 || n < first || n > atomic_load(&control->last)) {
        return 0;
    }
    atomic_fetch_add(&control->refused, 1);
    errno = ENOMEM;
    return 1;
}

void *
malloc(size_t bytes)
{
    return is_refused() ? NULL : __libc_malloc(bytes);
}

void *
calloc(size_t n, size_t bytes)
{
    return is_refused() ? NULL : __libc_calloc(n, bytes);
}

void *
realloc(void *old, size_t bytes)
{
    return is_refused() ? NULL : __libc_realloc(old, bytes);
}

void *
aligned_alloc(size_t align, size_t bytes)
{
    return is_refused() ? NULL : __libc_memalign(align, bytes);
}

int
posix_memalign(void **out, size_t align, size_t bytes)
{
    int saved_errno = errno;
    void *block = is_refused() ? NULL : __libc_memalign(align, bytes);
    errno = saved_errno;
    if (block == NULL) {
        return ENOMEM;
    }
    *out = block;
    return 0;
}

int
accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    uint64_t error = 0;
    if (control != NULL) {
        atomic_fetch_add(&control->accepts, 1);
        error = atomic_load(&control->accept_error);
    }
    if (error != 0) {
        errno = (int)error;
        return -1;
    }
    return (int)syscall(SYS_accept4, fd, address, len, flags);
}

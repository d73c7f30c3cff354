/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyd by a clock that a test moves: it stands, but for the nanoseconds that
 * are in the file which TALLYD_CLOCK in the environment names, a 64-bit number
 * in the machine's order. The test maps the file, too, and makes the number
 * larger; t/lib/server.py does. So nothing times out by chance. */
#include "lib/fake_clock.h"
#include "server/server.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* NULL, and errno, where it cannot be had. */
static _Atomic uint64_t *
map_clock(const char *path)
{
    void *map = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        map = mmap(NULL, sizeof(_Atomic uint64_t), PROT_READ | PROT_WRITE,
            MAP_SHARED, fd, 0);
        close(fd);
    }
    return map == MAP_FAILED ? NULL : map;
}

int
main(int argc, char **argv)
{
    static struct fake_clock clock;
    static const struct server_hooks hooks = {.clock = &clock.clock};
    const char *path = getenv("TALLYD_CLOCK");
    _Atomic uint64_t *passed_ns = path == NULL ? NULL : map_clock(path);
    if (passed_ns == NULL) {
        perror("tallyd-movable: TALLYD_CLOCK");
        return EXIT_FAILURE;
    }
    fake_clock_init_by(&clock, passed_ns);
    fake_clock_stand(&clock);
    return server_run(argc, argv, &hooks);
}

/* SPDX-License-Identifier: BSD-3-Clause */

/* CPU time by the clock of a process, which counts nanoseconds where
 * /proc/PID/stat has steps of 10 ms, and memory from /proc. */

#include "bench/proc.h"

#include "bench/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = 8192,
    US_PER_S = 1000000,
    NS_PER_US = 1000,
    KIB = 1024
};

static void
read_file(uint64_t pid, const char *name, char *text)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/%s", pid, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_errno(path);
    }
    size_t len = fread(text, 1, FILE_BYTES_MAX - 1, file);
    text[len] = '\0';
    fclose(file);
    if (len == 0) {
        fail("%s is empty: the process has ended", path);
    }
}

static uint64_t
us_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * US_PER_S +
        (uint64_t)time->tv_nsec / NS_PER_US;
}

uint64_t
proc_cpu_us(uint64_t pid)
{
    clockid_t clock;
    struct timespec now;
    int err = clock_getcpuclockid((pid_t)pid, &clock);
    if (err != 0 || clock_gettime(clock, &now) != 0) {
        fail("process %" PRIu64 " has no CPU clock: it has ended", pid);
    }
    return us_of(&now);
}

/* The number behind "\nNAME:" in /proc/PID/status. */
static uint64_t
field_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    uint64_t kib;
    if (line == NULL || sscanf(line + strlen(name), "%" SCNu64, &kib) != 1) {
        fail("/proc/PID/status has no%s", name);
    }
    return kib * KIB;
}

struct proc_memory
proc_memory(uint64_t pid)
{
    char text[FILE_BYTES_MAX];
    read_file(pid, "status", text);
    return (struct proc_memory){.rss_bytes = field_bytes(text, "\nVmRSS:"),
        .anon_bytes = field_bytes(text, "\nRssAnon:")};
}

uint64_t
proc_own_cpu_us(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) {
        fail_errno("clock_gettime");
    }
    return us_of(&now);
}

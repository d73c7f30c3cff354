/* SPDX-License-Identifier: BSD-3-Clause */
/* seccomp: the system calls of server/sandbox_calls.h, and no others.
 *
 * Another call raises SIGSYS in the thread that made it. The handler says
 * which call it was and what to do, and the process ends by that signal; with
 * SANDBOX_LOG the kernel notes the call in its audit log and lets it be made.
 * What libraries try first and can do without, clone3 and io_uring, is
 * answered as by an older kernel.
 *
 * A filter cannot look behind pointers, so what openat opens and clone3 starts
 * is not seen; files are Landlock's part (server/sandbox_files.c). */
#include "server/sandbox.h"

#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/sanitizer.h"

/* The sanitizers' runtimes make calls of their own, at any time and at the
 * end; a list that lets them through would prove nothing. */
#if defined HAVE_SECCOMP && !SANITIZER_ADDRESS && !SANITIZER_THREAD

#include "server/sandbox_calls.h"

#include <asm/termbits.h>
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NUMBERS = 1024,   /* more than any architecture has */
    NAME_BYTES = 40,  /* of a call, with the NUL */
    TEXT_BYTES = 600, /* of the message */
};

/* A handler has no argument, and the library's names cannot be asked for in
 * one: so this is filled once, before the handler is set, and only read from
 * then on. */
static char call_names[NUMBERS][NAME_BYTES];

static void
fill_names(void)
{
    for (int i = 0; i < NUMBERS; i++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
        if (name != NULL) {
            snprintf(call_names[i], sizeof call_names[i], "%s", name);
        }
        free(name);
    }
}

/* Appends what fits. Safe in a handler. */
static void
put(char text[TEXT_BYTES], size_t *len, const char *more)
{
    while (*more != '\0' && *len < TEXT_BYTES) {
        text[(*len)++] = *more++;
    }
}

static void
put_number(char text[TEXT_BYTES], size_t *len, unsigned number)
{
    char digits[NUM_U64_DIGITS_MAX + 1];
    digits[num_format_u64(number, digits)] = '\0';
    put(text, len, digits);
}

/* Of the log's file, or 0: for a handler that is given nothing of ours. Set
 * before the filter is. */
static volatile sig_atomic_t log_fd;

static void
on_forbidden_call(int number, siginfo_t *info, void *context)
{
    char text[TEXT_BYTES];
    size_t len = 0;
    unsigned call = (unsigned)info->si_syscall;
    (void)context;
    put(text, &len, "tallyd: error: system call ");
    put_number(text, &len, call);
    put(text, &len, " (");
    put(text, &len,
        call < NUMBERS && call_names[call][0] != '\0' ? call_names[call]
                                                      : "unknown");
    put(text, &len,
        ") is not one that this server makes: it ends, since somebody may "
        "have taken it over. If that can be ruled out, report this line; "
        "--seccomp=log only logs such calls, --seccomp=off starts without "
        "the filter\n");
    (void)log_write_now(STDERR_FILENO, text, len);
    if (log_fd > 0) {
        (void)log_write_now(log_fd, text, len);
    }
    /* blocked in here: it comes when the handler returns */
    signal(number, SIG_DFL);
    raise(number);
}

static void
watch(void)
{
    struct sigaction action = {
        .sa_sigaction = on_forbidden_call, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSYS, &action, NULL);
}

/* The number of a call; below 0 where this machine has none of that name. */
static int
number_of(const char *name)
{
    return seccomp_syscall_resolve_name(name);
}

static int
let_through(scmp_filter_ctx filter)
{
    static const char *const names[] = {
#define X(name) #name,
        SANDBOX_CALLS(X)
#undef X
    };
    int err = 0;
    for (size_t i = 0; err == 0 && i < sizeof names / sizeof names[0]; i++) {
        int number = number_of(names[i]);
        err = number < 0 ? 0
                         : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
    }
    return err;
}

static int
let_through_some(scmp_filter_ctx filter)
{
    const uint64_t pid = (uint64_t)getpid();
    const struct {
        const char *name;
        unsigned argument;
        uint64_t mask, wanted;
    } rows[] = {
#define X(name, argument, mask, wanted) {#name, argument, mask, wanted},
        SANDBOX_CALLS_IF(X)
#undef X
    };
    int err = 0;
    for (size_t i = 0; err == 0 && i < sizeof rows / sizeof rows[0]; i++) {
        int number = number_of(rows[i].name);
        const struct scmp_arg_cmp compare = {.arg = rows[i].argument,
            .op = SCMP_CMP_MASKED_EQ,
            .datum_a = rows[i].mask,
            .datum_b = rows[i].wanted};
        err = number < 0 ? 0
                         : seccomp_rule_add_array(
                               filter, SCMP_ACT_ALLOW, number, 1, &compare);
    }
    return err;
}

/* What is answered as if the kernel did not know it, and what depends. */
static int
answer_without(scmp_filter_ctx filter, bool has_ring)
{
    static const char *const ring[] = {
#define X(name) #name,
        SANDBOX_CALLS_RING(X)
#undef X
    };
    const uint32_t unknown = SCMP_ACT_ERRNO(ENOSYS);
    int number = number_of("clone3");
    int err = number < 0 ? 0 : seccomp_rule_add(filter, unknown, number, 0);
    for (size_t i = 0; err == 0 && i < sizeof ring / sizeof ring[0]; i++) {
        number = number_of(ring[i]);
        err = number < 0 ? 0
                         : seccomp_rule_add(filter,
                               has_ring ? SCMP_ACT_ALLOW : unknown, number, 0);
    }
    return err;
}

static int
fill_filter(scmp_filter_ctx filter, bool has_ring)
{
    /* a tree instead of a list; older libraries have only the list */
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    /* no mitigations on top: nothing foreign runs in this process */
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    int err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (err == 0) {
        err = let_through(filter);
    }
    if (err == 0) {
        err = let_through_some(filter);
    }
    return err != 0 ? err : answer_without(filter, has_ring);
}

int
sandbox_hold_calls(const struct sandbox_config *config, struct buf *message)
{
    scmp_filter_ctx filter = seccomp_init(
        config->calls == SANDBOX_LOG ? SCMP_ACT_LOG : SCMP_ACT_TRAP);
    if (filter == NULL) {
        buf_add_text(message, "no filter of system calls: no memory");
        return ERR_NO_MEMORY;
    }
    int err = fill_filter(filter, config->has_ring);
    if (err == 0) {
        fill_names();
        log_fd = config->log_fd;
        watch();
        err = seccomp_load(filter);
    }
    seccomp_release(filter);
    if (err != 0) {
        buf_addf(message, "no filter of system calls: %s", strerror(-err));
        return ERR_SYSTEM;
    }
    return 0;
}

#else

int
sandbox_hold_calls(const struct sandbox_config *config, struct buf *message)
{
    (void)config;
    buf_add_text(message,
        SANITIZER_ADDRESS || SANITIZER_THREAD
            ? "a build with a sanitizer makes calls of the sanitizer's"
            : "built without libseccomp");
    return ERR_SYSTEM;
}

#endif

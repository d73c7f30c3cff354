/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines for the operator. A line is formatted on the stack and written by one
 * write(2), so that lines of different threads never mix; what does not fit is
 * cut, the end of line never. errno is left as it was.
 *
 * Who serves, or writes the log of changes, must not wait for who reads these
 * lines: with never_waits a line is written only where there is room, one
 * thread at a time, and else dropped and counted. The order stays. A regular
 * file always has room, so the thread that writes when its disk hangs is held
 * up; the others are not. Without never_waits that a line cannot be written is
 * dropped: there is nobody left to tell.
 *
 * What writes very much is limited by its place in the code: LOG_BURST lines in
 * a window, which begins with the first of them. The others are counted, and
 * the last of them is kept: the next line of that place, or log_flush, tells
 * of them. The lock is held for nothing but that; it is a flag, so that a
 * logger of zeroes is a good one.
 *
 * The file is exchanged by dup3 over its descriptor, so that a thread that is
 * writing meanwhile writes to the old file or to the new one. */
#include "base/log.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MODE = 0640, NS_PER_MS = 1000000 };

static bool
is_wanted(struct logger *logger, enum log_level level)
{
    /* relaxed: a new verbosity may take effect a line later */
    int verbosity =
        atomic_load_explicit(&logger->verbosity, memory_order_relaxed);

    return level <= LOG_NOTICE || (int)level - LOG_NOTICE <= verbosity;
}

static void
take(struct logger *logger)
{
    /* acquire: what the one before has left in site is seen */
    while (atomic_exchange_explicit(
        &logger->is_taken, true, memory_order_acquire)) {
        (void)sched_yield(); /* who has it may need this core */
    }
}

static void
give_back(struct logger *logger)
{
    /* release: see take */
    atomic_store_explicit(&logger->is_taken, false, memory_order_release);
}

/* Where a format is counted; NULL where all places have lines to tell of. */
static struct log_site *
site_of(struct logger *logger, const char *format, uint64_t now_ms)
{
    /* relaxed: this thread has it */
    ASSERT(atomic_load_explicit(&logger->is_taken, memory_order_relaxed));
    struct log_site *oldest = NULL;
    for (unsigned i = 0; i < LOG_SITES; i++) {
        struct log_site *site = &logger->site[i];
        if (site->format == format) {
            return site;
        }
        if (site->suppressed == 0 &&
            (oldest == NULL || site->began_ms < oldest->began_ms)) {
            oldest = site;
        }
    }
    if (oldest != NULL) {
        oldest->format = format;
        oldest->began_ms = now_ms;
        oldest->n = 0;
    }
    return oldest;
}

static void
keep(struct log_site *site, enum log_level level, const char *text, size_t len)
{
    size_t n = len < LOG_KEPT_BYTES ? len : LOG_KEPT_BYTES - 1;
    memcpy(site->kept, text, n);
    site->kept[n] = '\0';
    site->level = level;
    site->suppressed++;
}

/* True where the line may be written, and of how many it is to tell. */
static bool
may_write(struct logger *logger, enum log_level level, const char *format,
    const char *text, size_t len, unsigned *suppressed)
{
    uint64_t now_ms = clock_monotonic_ns() / NS_PER_MS;
    bool may = true;
    *suppressed = 0;
    if (logger->is_unlimited) {
        return true;
    }
    take(logger);
    struct log_site *site = site_of(logger, format, now_ms);
    if (site != NULL) {
        if (now_ms - site->began_ms >= LOG_WINDOW_MS) {
            site->began_ms = now_ms;
            site->n = 0;
        }
        may = site->n++ < LOG_BURST;
        if (may) {
            *suppressed = site->suppressed;
            site->suppressed = 0;
        } else {
            keep(site, level, text, len);
        }
    }
    give_back(logger);
    return may;
}

static size_t
write_bytes(int fd, const char *bytes, size_t len)
{
    ssize_t written;
    do {
        written = write(fd, bytes, len);
    } while (written < 0 && errno == EINTR);
    return written < 0 ? 0 : (size_t)written;
}

/* A pipe that can be written to has room for more than a line, and the lock
 * keeps other threads from taking it in between. */
size_t
log_write_now(int fd, const char *bytes, size_t len)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    return poll(&poll_fd, 1, 0) == 1 ? write_bytes(fd, bytes, len) : 0;
}

bool
log_wait_is_over(struct log_wait *wait, uint64_t now_ms)
{
    if (wait->looked_ms != 0) {
        uint64_t passed_ms = now_ms - wait->looked_ms;
        wait->waited_ms += passed_ms < LOG_WAIT_MS ? passed_ms : LOG_WAIT_MS;
    }
    wait->looked_ms = now_ms;
    return wait->waited_ms >= LOG_STUCK_MS;
}

/* Takes the lock of the output. False where who has it is held up. */
static bool
take_output(struct logger *logger)
{
    struct log_wait wait = {0};
    /* acquire: is_torn is seen */
    while (atomic_exchange_explicit(
        &logger->is_writing, true, memory_order_acquire)) {
        /* relaxed, both: whoever waits finds out by itself */
        if (log_wait_is_over(&wait, clock_monotonic_ns() / NS_PER_MS)) {
            atomic_store_explicit(
                &logger->is_stuck, true, memory_order_relaxed);
        }
        if (atomic_load_explicit(&logger->is_stuck, memory_order_relaxed)) {
            return false;
        }
        (void)sched_yield();
    }
    return true;
}

static void
give_output_back(struct logger *logger)
{
    /* relaxed: see take_output */
    atomic_store_explicit(&logger->is_stuck, false, memory_order_relaxed);
    /* release: see take_output */
    atomic_store_explicit(&logger->is_writing, false, memory_order_release);
}

/* A line, with an end before it where the last one has none. line[0] is a
 * newline. */
static bool
put_line(struct logger *logger, int fd, const char *line, size_t len)
{
    /* relaxed: this thread has it */
    ASSERT(atomic_load_explicit(&logger->is_writing, memory_order_relaxed));
    const char *at = logger->is_torn ? line : line + 1;
    size_t n = (size_t)(line + len - at);
    size_t written = log_write_now(fd, at, n);
    if (written > 0) {
        logger->is_torn = written < n;
    }
    return written == n;
}

/* Tells of lines that were dropped. False: it cannot be told yet. */
static bool
write_dropped(struct logger *logger, int fd)
{
    char text[LOG_KEPT_BYTES], line[1 + LOG_LINE_BYTES] = {'\n'};
    /* relaxed: a figure */
    unsigned n = atomic_load_explicit(&logger->dropped, memory_order_relaxed);
    if (n == 0) {
        return true;
    }
    int len = snprintf(text, sizeof text,
        "%u lines before this one were dropped: nobody read them, or the log "
        "file could not be written",
        n);
    size_t more = log__format(
        line + 1, clock__unix_ms(), LOG_WARNING, text, (size_t)len, 0);
    if (!put_line(logger, fd, line, 1 + more)) {
        return false;
    }
    atomic_fetch_sub_explicit(&logger->dropped, n, memory_order_relaxed);
    return true;
}

/* line, with a newline before it; NULL: only what was dropped is told. */
static void
put_now(struct logger *logger, int fd, const char *line, size_t len)
{
    bool is_done = false;
    if (take_output(logger)) {
        is_done = write_dropped(logger, fd) &&
            (line == NULL || put_line(logger, fd, line, len));
        give_output_back(logger);
    }
    if (!is_done && line != NULL) {
        /* relaxed: a figure */
        atomic_fetch_add_explicit(&logger->dropped, 1, memory_order_relaxed);
    }
}

static int
output_of(const struct logger *logger)
{
    /* relaxed: opened before there are threads, or by this one */
    int fd = atomic_load_explicit(&logger->fd, memory_order_relaxed);
    return fd == 0 ? STDERR_FILENO : fd;
}

static void
write_line(struct logger *logger, enum log_level level, const char *text,
    size_t len, unsigned suppressed)
{
    char line[1 + LOG_LINE_BYTES] = {'\n'};
    size_t n =
        log__format(line + 1, clock__unix_ms(), level, text, len, suppressed);
    if (logger->never_waits) {
        put_now(logger, output_of(logger), line, 1 + n);
    } else {
        (void)write_bytes(output_of(logger), line + 1, n);
    }
}

/* Writes a text where its line is wanted and there are not too many. */
static void
say(struct logger *logger, enum log_level level, const char *format,
    const char *text, size_t len)
{
    unsigned suppressed;
    if (is_wanted(logger, level) &&
        may_write(logger, level, format, text, len, &suppressed)) {
        write_line(logger, level, text, len, suppressed);
    }
}

/* The length of a text that vsnprintf has made. */
static size_t
length_of(int made)
{
    size_t len = made < 0 ? 0 : (size_t)made;
    return len < LOG_TEXT_BYTES ? len : LOG_TEXT_BYTES - 1;
}

void
log_line(struct logger *logger, enum log_level level, const char *format, ...)
{
    char text[LOG_TEXT_BYTES];
    int saved_errno = errno;
    va_list args;

    if (!is_wanted(logger, level)) {
        return;
    }
    va_start(args, format);
    size_t len = length_of(vsnprintf(text, sizeof text, format, args));
    va_end(args);
    say(logger, level, format, text, len);
    errno = saved_errno;
}

void
log_event(struct logger *logger, const char *topic, enum log_level level,
    const char *format, ...)
{
    char text[LOG_TEXT_BYTES];
    int saved_errno = errno;
    va_list args;
    /* acquire: what the listener has is seen */
    struct log_listener *listener = level == LOG_DEBUG
        ? NULL
        : atomic_load_explicit(&logger->listener, memory_order_acquire);

    if (listener == NULL && !is_wanted(logger, level)) {
        return;
    }
    va_start(args, format);
    size_t len = length_of(vsnprintf(text, sizeof text, format, args));
    va_end(args);
    say(logger, level, format, text, len);
    if (listener != NULL) {
        listener->event_fn(listener, level, topic, text, len);
    }
    errno = saved_errno;
}

void
log_listen(struct logger *logger, struct log_listener *listener)
{
    /* release: see log_event */
    atomic_store_explicit(&logger->listener, listener, memory_order_release);
}

static int
open_file(const char *path)
{
    /* a FIFO without a reader is an error, and no wait; lines may wait */
    int fd = open(path,
        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        FILE_MODE);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFL, O_WRONLY | O_APPEND);
    }
    return fd;
}

int
log_open(struct logger *logger, const char *path)
{
    int fd = open_file(path);
    if (fd < 0) {
        return ERR_SYSTEM;
    }
    ASSERT(fd > STDERR_FILENO && logger->path == NULL);
    logger->path = path;
    /* relaxed: see write_line */
    atomic_store_explicit(&logger->fd, fd, memory_order_relaxed);
    return 0;
}

int
log_descriptor(const struct logger *logger)
{
    /* relaxed: a number, and the thread that asks has opened the file */
    int fd = atomic_load_explicit(&logger->fd, memory_order_relaxed);
    return fd == 0 ? -1 : fd;
}

int
log_reopen(struct logger *logger)
{
    if (logger->path == NULL) {
        return 0;
    }
    int fd = open_file(logger->path);
    if (fd < 0) {
        return ERR_SYSTEM;
    }
    /* relaxed: it stays the same number */
    int old = atomic_load_explicit(&logger->fd, memory_order_relaxed);
    int done = dup3(fd, old, O_CLOEXEC);
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
    return done < 0 ? ERR_SYSTEM : 0;
}

/* Takes a line out of a place that is to tell of some; false where there is
 * none. *more: how many others there were. */
static bool
take_kept(struct logger *logger, unsigned i, uint64_t now_ms, bool all,
    struct log_site *out)
{
    struct log_site *site = &logger->site[i];
    take(logger);
    bool is_due = site->suppressed > 0 &&
        (all || now_ms - site->began_ms >= LOG_WINDOW_MS);
    if (is_due) {
        *out = *site;
        site->suppressed = 0;
    }
    give_back(logger);
    return is_due;
}

void
log_flush(struct logger *logger, bool all)
{
    uint64_t now_ms = clock_monotonic_ns() / NS_PER_MS;
    struct log_site it;
    for (unsigned i = 0; i < LOG_SITES; i++) {
        if (take_kept(logger, i, now_ms, all, &it)) {
            write_line(
                logger, it.level, it.kept, strlen(it.kept), it.suppressed - 1);
        }
    }
    /* relaxed: a figure */
    if (atomic_load_explicit(&logger->dropped, memory_order_relaxed) > 0) {
        put_now(logger, output_of(logger), NULL, 0);
    }
}

void
log_close(struct logger *logger)
{
    log_flush(logger, true);
    /* relaxed: no other thread */
    int fd = atomic_load_explicit(&logger->fd, memory_order_relaxed);
    atomic_store_explicit(&logger->fd, 0, memory_order_relaxed);
    if (fd != 0) {
        close(fd);
    }
    logger->path = NULL;
}

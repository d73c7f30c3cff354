/* SPDX-License-Identifier: BSD-3-Clause */
/* base/log: levels, the form of a line, what is suppressed, and the file.
 * Windows are ended by hand, so that no test waits for them. */
#include "base/log.h"

#include "base/clock.h"
#include "base/err.h"
#include "unit/check_help.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 1 << 16, THREADS = 4, LINES = 40 };

static const struct logger nothing;
static char directory[] = "/tmp/tallyd-log-XXXXXX";
static char path[100], other[100];

static void
set_up(void)
{
    strcpy(directory + sizeof directory - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/log", directory);
    (void)snprintf(other, sizeof other, "%s/log.1", directory);
}

static void
tear_down(void)
{
    unlink(path);
    unlink(other);
    rmdir(directory);
}

static char text[TEXT_BYTES];

static const char *
content_of(const char *name)
{
    FILE *file = fopen(name, "r");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static unsigned
count(const char *where, const char *what)
{
    unsigned n = 0;
    for (const char *at = where; (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    return n;
}

START_TEST(test_levels)
{
    static const unsigned expected[] = {3, 4, 5, 5};
    for (int verbosity = 0; verbosity < 4; verbosity++) {
        struct logger logger = nothing;
        atomic_init(&logger.verbosity, verbosity);
        ck_assert_int_eq(log_open(&logger, path), 0);
        errno = ENOENT;
        log_line(&logger, LOG_ERROR, "e %d", 1);
        ck_assert_int_eq(errno, ENOENT);
        log_line(&logger, LOG_WARNING, "w %s", "x");
        log_line(&logger, LOG_NOTICE, "n");
        log_line(&logger, LOG_INFO, "i");
        log_line(&logger, LOG_DEBUG, "d");
        log_close(&logger);
        ck_assert_uint_eq(count(content_of(path), "\n"), expected[verbosity]);
        ck_assert_ptr_nonnull(strstr(text, " level=error msg=\"e 1\"\nts="));
        ck_assert_ptr_nonnull(strstr(text, " level=warning msg=\"w x\"\n"));
        ck_assert_ptr_nonnull(strstr(text, " level=notice msg=\"n\"\n"));
        unlink(path);
    }
}
END_TEST

struct heard {
    struct log_listener listener; /* first */
    unsigned n;
    enum log_level level;
    char text[100];
};

static void
hear(struct log_listener *listener, enum log_level level, const char *topic,
    const char *said, size_t len)
{
    struct heard *heard = (struct heard *)listener;
    heard->n++;
    heard->level = level;
    (void)snprintf(
        heard->text, sizeof heard->text, "%s: %.*s", topic, (int)len, said);
    errno = EINVAL;
}

/* Both say the same; the listener whatever the verbosity and however often, but
 * no details. */
START_TEST(test_events)
{
    struct logger logger = nothing;
    struct heard heard = {.listener = {.event_fn = hear}};
    ck_assert_int_eq(log_open(&logger, path), 0);
    log_event(&logger, "link", LOG_WARNING, "before");
    log_listen(&logger, &heard.listener);
    errno = ENOENT;
    log_event(&logger, "link", LOG_WARNING, "down: %d", 7);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_str_eq(heard.text, "link: down: 7");
    ck_assert_int_eq(heard.level, LOG_WARNING);
    log_event(&logger, "link", LOG_INFO, "up");
    ck_assert_str_eq(heard.text, "link: up");
    log_event(&logger, "link", LOG_DEBUG, "detail");
    log_line(&logger, LOG_WARNING, "a line only");
    ck_assert_uint_eq(heard.n, 2);
    for (unsigned i = 0; i < 2 * LOG_BURST; i++) {
        log_event(&logger, "many", LOG_NOTICE, "many");
    }
    ck_assert_uint_eq(heard.n, 2 + 2 * LOG_BURST);
    log_listen(&logger, NULL);
    log_event(&logger, "link", LOG_WARNING, "behind");
    ck_assert_uint_eq(heard.n, 2 + 2 * LOG_BURST);
    ck_assert_uint_eq(count(content_of(path), "msg=\"many\"\n"), LOG_BURST);
    ck_assert_uint_eq(count(text, "before"), 1);
    ck_assert_uint_eq(count(text, "msg=\"down: 7\"\n"), 1);
    ck_assert_uint_eq(count(text, "behind"), 1);
    ck_assert_uint_eq(count(text, "\"up\""), 0);
    log_close(&logger);
}
END_TEST

/* To stderr, where there is no file. */
START_TEST(test_stderr)
{
    struct logger logger = nothing;
    int saved = dup(STDERR_FILENO);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    log_line(&logger, LOG_ERROR, "here");
    ck_assert_int_eq(log_reopen(&logger), 0);
    log_close(&logger);
    log_line(&logger, LOG_ERROR, "there");
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    close(saved);
    ck_assert_uint_eq(count(content_of(path), "here\"\nts="), 1);
    ck_assert_uint_eq(count(text, "there\"\n"), 1);
}
END_TEST

static const char *
format(int64_t unix_ms, const char *message, size_t len, unsigned suppressed)
{
    static char line[LOG_LINE_BYTES + 1];
    size_t n = log__format(line, unix_ms, LOG_INFO, message, len, suppressed);
    ck_assert_uint_le(n, LOG_LINE_BYTES);
    line[n] = '\0';
    ck_assert_uint_eq(strlen(line), n);
    for (size_t i = 0; i + 1 < n; i++) {
        ck_assert(line[i] >= ' ' && line[i] <= '~');
    }
    ck_assert_int_eq(line[n - 1], '\n');
    return line;
}

START_TEST(test_form)
{
    ck_assert_str_eq(format(1767323045678, "hello", 5, 0),
        "ts=2026-01-02T03:04:05.678Z level=info msg=\"hello\"\n");
    ck_assert_str_eq(format(0, "", 0, 7),
        "ts=1970-01-01T00:00:00.000Z level=info msg=\"\" suppressed=7\n");
    ck_assert_str_eq(format(-1, "x", 1, UINT32_MAX),
        "ts=1969-12-31T23:59:59.999Z level=info msg=\"x\" "
        "suppressed=4294967295\n");
    ck_assert_str_eq(
        format(1, "a\"b\\c\nd\re\tf\x1b[2J\x7f\xc3\xa9\0z", 20, 0),
        "ts=1970-01-01T00:00:00.001Z level=info "
        "msg=\"a\\\"b\\\\c\\nd\\re\\tf\\x1b[2J\\x7f\\xc3\\xa9\\x00z\"\n");
}
END_TEST

/* However long, and whatever is in it: one line, whole at its end. */
START_TEST(test_cuts)
{
    static char message[2 * LOG_LINE_BYTES];
    static const char bytes[] = {'a', '"', '\n', '\x1b'};
    for (size_t b = 0; b < sizeof bytes; b++) {
        memset(message, bytes[b], sizeof message);
        for (size_t n = 0; n <= sizeof message; n += 13) {
            const char *line = format(1, message, n, UINT32_MAX);
            ck_assert_ptr_nonnull(strstr(line, "\" suppressed=4294967295\n"));
        }
    }
}
END_TEST

static void
say(struct logger *logger, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        log_line(logger, LOG_ERROR, "again %u", i);
    }
}

static void
end_windows(struct logger *logger)
{
    for (unsigned i = 0; i < LOG_SITES; i++) {
        logger->site[i].began_ms -= LOG_WINDOW_MS;
    }
}

START_TEST(test_suppressed)
{
    struct logger logger = nothing;
    ck_assert_int_eq(log_open(&logger, path), 0);
    say(&logger, LOG_BURST + 7);
    ck_assert_uint_eq(count(content_of(path), "again"), LOG_BURST);
    log_line(&logger, LOG_ERROR, "of another place");
    log_flush(&logger, false); /* not yet */
    ck_assert_uint_eq(count(content_of(path), "\n"), LOG_BURST + 1);
    end_windows(&logger);
    say(&logger, 2);
    ck_assert_uint_eq(count(content_of(path), "\n"), LOG_BURST + 3);
    ck_assert_ptr_nonnull(strstr(text, "\"again 0\" suppressed=7\n"));
    ck_assert_ptr_nonnull(strstr(text, "\"again 1\"\n"));
    log_close(&logger);
    ck_assert_uint_eq(count(content_of(path), "\n"), LOG_BURST + 3);
}
END_TEST

/* Those that nothing follows. */
START_TEST(test_flushed)
{
    struct logger logger = nothing;
    ck_assert_int_eq(log_open(&logger, path), 0);
    say(&logger, LOG_BURST + 3);
    end_windows(&logger);
    log_flush(&logger, false);
    log_flush(&logger, false);
    ck_assert_uint_eq(count(content_of(path), "\n"), LOG_BURST + 1);
    ck_assert_ptr_nonnull(strstr(text, "\"again 102\" suppressed=2\n"));
    end_windows(&logger);
    say(&logger, LOG_BURST + 1);
    log_close(&logger); /* with what is left, though it is not due */
    ck_assert_uint_eq(count(content_of(path), "\n"), 2 * LOG_BURST + 2);
    ck_assert_ptr_nonnull(strstr(text, "\"again 100\"\n"));
}
END_TEST

START_TEST(test_unlimited)
{
    struct logger logger = {.is_unlimited = true};
    ck_assert_int_eq(log_open(&logger, path), 0);
    say(&logger, 3 * LOG_BURST);
    log_close(&logger);
    ck_assert_uint_eq(count(content_of(path), "\n"), 3 * LOG_BURST);
}
END_TEST

/* More places than are counted: none is silenced for that, and the counts of
 * those that have some stay. */
START_TEST(test_many_places)
{
    static char formats[2 * LOG_SITES][20];
    struct logger logger = nothing;
    ck_assert_int_eq(log_open(&logger, path), 0);
    say(&logger, LOG_BURST + 5);
    for (unsigned i = 0; i < 2 * LOG_SITES; i++) {
        (void)snprintf(formats[i], sizeof formats[i], "place %%u of %u", i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        log_line(&logger, LOG_ERROR, formats[i], i);
#pragma GCC diagnostic pop
    }
    ck_assert_uint_eq(count(content_of(path), "place"), 2 * LOG_SITES);
    log_close(&logger);
    ck_assert_ptr_nonnull(
        strstr(content_of(path), "\"again 104\" suppressed=4\n"));
}
END_TEST

START_TEST(test_reopen)
{
    struct logger logger = nothing;
    ck_assert_int_eq(log_open(&logger, path), 0);
    log_line(&logger, LOG_ERROR, "one");
    ck_assert_int_eq(rename(path, other), 0);
    log_line(&logger, LOG_ERROR, "two");
    ck_assert_int_eq(log_reopen(&logger), 0);
    log_line(&logger, LOG_ERROR, "three");
    ck_assert_uint_eq(count(content_of(other), "\n"), 2);
    ck_assert_uint_eq(count(content_of(path), "\"three\"\n"), 1);
    unlink(path);
    rmdir(directory); /* has log.1 */
    logger.path = "/proc/nobody/log";
    ck_assert_int_eq(log_reopen(&logger), ERR_SYSTEM);
    log_line(&logger, LOG_ERROR, "four"); /* to the one that is gone */
    logger.path = path;
    ck_assert_int_eq(log_reopen(&logger), 0);
    log_line(&logger, LOG_ERROR, "five");
    log_close(&logger);
    ck_assert_uint_eq(count(content_of(path), "\n"), 1);
    ck_assert_int_eq(log_open(&logger, "/proc/nobody/log"), ERR_SYSTEM);
}
END_TEST

/* A pipe with no room for a line, and what is read of it then. */
static void
fill_pipe(int fd)
{
    char bytes[LOG_LINE_BYTES];
    memset(bytes, 'x', sizeof bytes);
    while (log_write_now(fd, bytes, sizeof bytes) > 0) {
    }
}

static const char *
drain_pipe(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    size_t len = 0;
    while (poll(&ready, 1, 0) == 1 && len < sizeof text - 1) {
        ssize_t n = read(fd, text + len, sizeof text - 1 - len);
        ck_assert_int_gt(n, 0);
        len += (size_t)n;
    }
    text[len] = '\0';
    return text;
}

/* Nobody reads the pipe: nobody waits, and what got lost is told in the order
 * of the lines. */
START_TEST(test_full_pipe)
{
    struct logger logger = nothing;
    int end[2], old = dup(STDERR_FILENO);
    logger.never_waits = true;
    ck_assert_int_eq(pipe(end), 0);
    ck_assert_int_eq(fcntl(end[1], F_SETPIPE_SZ, 16384), 16384);
    ck_assert_int_eq(dup2(end[1], STDERR_FILENO), STDERR_FILENO);
    log_line(&logger, LOG_ERROR, "first");
    fill_pipe(end[1]);
    for (unsigned i = 0; i < 3; i++) {
        log_line(&logger, LOG_ERROR, "lost %u", i);
    }
    log_flush(&logger, false);
    const char *said = drain_pipe(end[0]);
    ck_assert_ptr_nonnull(strstr(said, "msg=\"first\""));
    ck_assert_ptr_null(strstr(said, "lost"));
    log_line(&logger, LOG_ERROR, "after");
    said = drain_pipe(end[0]);
    const char *told = strstr(said, "msg=\"3 lines before this one were ");
    ck_assert_ptr_nonnull(told);
    ck_assert_ptr_nonnull(strstr(told, "msg=\"after\""));
    fill_pipe(end[1]);
    log_line(&logger, LOG_ERROR, "lost again");
    (void)drain_pipe(end[0]);
    log_flush(&logger, false); /* nothing else need come */
    said = drain_pipe(end[0]);
    ck_assert_ptr_nonnull(strstr(said, "msg=\"1 lines before this one were "));
    ck_assert_uint_eq(count(said, "\n"), 1);
    log_flush(&logger, false);
    ck_assert_str_eq(drain_pipe(end[0]), "");
    ck_assert_int_eq(dup2(old, STDERR_FILENO), STDERR_FILENO);
    close(old);
    close(end[0]);
    close(end[1]);
}
END_TEST

static void *
write_lines(void *context)
{
    struct logger *logger = context;
    for (unsigned i = 0; i < LINES; i++) {
        log_line(logger, LOG_ERROR, "of a thread");
        log_flush(logger, false);
    }
    return NULL;
}

/* Whatever is exchanged meanwhile, each line is in a file or counted. */
/* A write is held up when the process has run for so long beside it, however
 * long it stood still meanwhile. */
START_TEST(test_wait)
{
    struct log_wait wait = {0};
    uint64_t now_ms = UINT64_C(1) << 40;
    for (unsigned i = 0; i < LOG_STUCK_MS; i++) {
        ck_assert(!log_wait_is_over(&wait, now_ms + i));
    }
    ck_assert(log_wait_is_over(&wait, now_ms + LOG_STUCK_MS));
    wait = (struct log_wait){0};
    ck_assert(!log_wait_is_over(&wait, now_ms));
    ck_assert(!log_wait_is_over(&wait, now_ms + 1));
    for (unsigned i = 0; i < LOG_STUCK_MS / LOG_WAIT_MS - 1; i++) {
        now_ms += 3600000; /* stopped again and again */
        ck_assert(!log_wait_is_over(&wait, now_ms));
    }
    ck_assert(!log_wait_is_over(&wait, now_ms + LOG_WAIT_MS - 2));
    ck_assert(log_wait_is_over(&wait, now_ms + LOG_WAIT_MS - 1));
}
END_TEST

START_TEST(test_threads)
{
    struct logger logger = nothing;
    pthread_t thread[THREADS];
    ck_assert_int_eq(log_open(&logger, path), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, write_lines, &logger), 0);
    }
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(log_reopen(&logger), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    log_close(&logger);
    unsigned n = count(content_of(path), "\n");
    const char *last = strstr(text, "suppressed=");
    n += last == NULL ? 0 : (unsigned)strtoul(last + 11, NULL, 10);
    n += count(content_of(other), "\n");
    ck_assert_uint_eq(n, THREADS * LINES);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_levels, test_events, test_stderr,
        test_form, test_cuts, test_suppressed, test_flushed, test_unlimited,
        test_many_places, test_reopen, test_threads, test_full_pipe,
        test_wait};
    TCase *tcase = tcase_create("log");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    return run_case("log", tcase);
}

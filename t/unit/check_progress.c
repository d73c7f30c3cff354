/* SPDX-License-Identifier: BSD-3-Clause */
/* base/progress: when it tells something, and what. The time to tell is set
 * to come at once, or never, so that no test waits for it. */
#include "base/progress.h"

#include "base/clock.h"
#include "unit/check_help.h"

#include <stdio.h>
#include <unistd.h>

enum { TEXT_BYTES = 1024 };

/* Stderr, gathered in a file. */
struct gathered {
    FILE *file;
    int real_stderr;
    char text[TEXT_BYTES];
};

static void
gather(struct gathered *it)
{
    it->file = tmpfile();
    ck_assert_ptr_nonnull(it->file);
    it->real_stderr = dup(STDERR_FILENO);
    ck_assert_int_ge(it->real_stderr, 0);
    ck_assert_int_ge(dup2(fileno(it->file), STDERR_FILENO), 0);
}

/* Ends it; what was written is in text. */
static void
gather_end(struct gathered *it)
{
    ck_assert_int_ge(dup2(it->real_stderr, STDERR_FILENO), 0);
    ssize_t n = pread(fileno(it->file), it->text, sizeof it->text - 1, 0);
    ck_assert_int_ge(n, 0);
    it->text[n] = '\0';
    close(it->real_stderr);
    (void)fclose(it->file);
}

static void
begin(struct progress *progress, struct logger *logger, bool is_tty,
    uint64_t all_bytes)
{
    progress_begin(
        progress, logger, &clock_system, "log", "changes", all_bytes);
    progress->is_tty = is_tty;
}

static void
add_when_due(struct progress *progress, uint64_t bytes, uint64_t units)
{
    atomic_store(&progress->next_ns, 0);
    progress_add(progress, bytes, units);
}

/* A line of the log when it is time, and none before. */
START_TEST(test_log)
{
    struct logger logger = {.verbosity = 1};
    struct progress progress;
    struct gathered it;
    gather(&it);
    begin(&progress, &logger, false, 400);
    atomic_store(&progress.next_ns, UINT64_MAX);
    progress_add(&progress, 60, 3);
    add_when_due(&progress, 40, 4);
    uint64_t next_ns = atomic_load(&progress.next_ns);
    progress_end(&progress);
    gather_end(&it);
    ck_assert_uint_gt(next_ns, progress.began_ns);
    static const char first[] = "loading log: 25 %, 7 changes, ";
    const char *line = strstr(it.text, "loading log");
    ck_assert_msg(line != NULL && strncmp(line, first, sizeof first - 1) == 0,
        "%s", it.text);
    ck_assert_ptr_null(strstr(line + 1, "loading log"));
    ck_assert_ptr_nonnull(strstr(it.text, " s left\"\n"));
    ck_assert_ptr_nonnull(strstr(it.text, "loaded log: 7 changes in "));
}
END_TEST

/* Who found more than was known of is at the end, not behind it. */
START_TEST(test_more_than_all)
{
    struct logger logger = {0};
    struct progress progress;
    struct gathered it;
    gather(&it);
    begin(&progress, &logger, false, 0);
    add_when_due(&progress, 900, 1);
    gather_end(&it);
    ck_assert_msg(strstr(it.text, ": 100 %, 1 changes, ") != NULL &&
            strstr(it.text, ", 0 s left\"\n") != NULL,
        "%s", it.text);
}
END_TEST

/* Without a byte there is nothing to reckon with; where nothing was loaded
 * nothing is told. */
START_TEST(test_nothing)
{
    struct logger logger = {.verbosity = 1};
    struct progress progress;
    struct gathered it;
    gather(&it);
    begin(&progress, &logger, false, 400);
    add_when_due(&progress, 0, 0);
    progress_end(&progress);
    gather_end(&it);
    ck_assert_str_eq(it.text, "");
}
END_TEST

/* On a terminal one line is written over, and is gone at the end. */
START_TEST(test_terminal)
{
    struct logger logger = {0};
    struct progress progress;
    struct gathered it;
    gather(&it);
    begin(&progress, &logger, true, 400);
    add_when_due(&progress, 100, 1);
    add_when_due(&progress, 100, 1);
    progress.began_ns = clock_monotonic_ns() - UINT64_C(1000000000);
    progress_end(&progress);
    gather_end(&it);
    static const char first[] = "\rtallyd: loading log: 25 %, 1 changes, ";
    static const char last[] = "\r\033[K";
    ck_assert_msg(
        strncmp(it.text, first, sizeof first - 1) == 0, "%s", it.text);
    ck_assert_ptr_nonnull(strstr(it.text, "\rtallyd: loading log: 50 %, 2 "));
    ck_assert_ptr_null(strchr(it.text, '\n'));
    ck_assert_str_eq(it.text + strlen(it.text) - (sizeof last - 1), last);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_log, test_more_than_all, test_nothing, test_terminal};
    return run_tests("progress", tests, COUNT_OF(tests));
}

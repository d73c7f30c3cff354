/* SPDX-License-Identifier: BSD-3-Clause */
/* base/err, base/assert, base/clock: the small ones. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"

#include "unit/check_help.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES = 8192 };

/* What function writes to stderr, in text[TEXT_BYTES]; its length. */
static size_t
stderr_of(void (*function)(void *), void *context, char *text)
{
    int ends[2];
    int saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    function(context);
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    ssize_t n = read(ends[0], text, TEXT_BYTES - 1);
    text[n < 0 ? 0 : n] = '\0';
    close(ends[0]);
    close(ends[1]);
    close(saved);
    return n < 0 ? 0 : (size_t)n;
}

START_TEST(test_err_texts)
{
    ck_assert_str_eq(err_text(0), "ok");
    for (int i = 0; i < ERR_COUNT; i++) {
        const char *text = err_text(i);
        ck_assert_uint_gt(strlen(text), 0);
        /* it goes into a reply line */
        ck_assert_ptr_null(strpbrk(text, "\r\n"));
        for (int j = 0; j < i; j++) {
            ck_assert_str_ne(text, err_text(j));
        }
    }
}
END_TEST

static void
fail_in_child(void *context)
{
    int *status = context;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        ASSERT(1 + 1 == 3);
        _exit(EXIT_SUCCESS);
    }
    ck_assert_int_eq(waitpid(pid, status, 0), pid);
}

START_TEST(test_assert)
{
    char text[TEXT_BYTES];
    int status = 0;
    ASSERT(1 + 1 == 2);
    stderr_of(fail_in_child, &status, text);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
    ck_assert_ptr_nonnull(strstr(text, "1 + 1 == 3"));
    ck_assert_ptr_nonnull(strstr(text, "check_base.c"));
}
END_TEST

START_TEST(test_clock)
{
    uint64_t before = clock_monotonic_ns();
    uint64_t s = clock_monotonic_s();
    uint64_t after = clock_monotonic_ns();
    ck_assert_uint_ge(after, before);
    ck_assert_uint_ge(s, before / 1000000000U);
    ck_assert_uint_le(s, after / 1000000000U);
    ck_assert_int_gt(clock_unix_s(), 1600000000);
}
END_TEST

START_TEST(test_clock_shift)
{
    struct clock_shift shift = {0};
    uint64_t now_s = clock_monotonic_s();
    ck_assert_uint_ge(clock_shifted_s(&shift), now_s);
    clock_shift_by(&shift, 1000000);
    ck_assert_uint_ge(clock_shifted_s(&shift), now_s + 1000000);
    int64_t unix_s = clock_unix_s();
    ck_assert_int_ge(clock_shifted_unix_s(&shift), unix_s + 999999);
    clock_shift_stop(&shift);
    uint64_t stopped_s = clock_shifted_s(&shift);
    clock_shift_by(&shift, -7);
    ck_assert_uint_eq(clock_shifted_s(&shift), stopped_s - 7);
    clock_shift_go(&shift);
    ck_assert_uint_ge(clock_shifted_s(&shift), stopped_s - 7);
    clock_shift_by(&shift, INT32_MIN);
    clock_shift_by(&shift, INT32_MIN);
    ck_assert_uint_eq(clock_shifted_s(&shift), 1); /* never before that */
    for (int i = 0; i < 6; i++) {
        clock_shift_by(&shift, INT32_MAX);
    }
    ck_assert_uint_gt(clock_shifted_s(&shift), INT32_MAX);
    ck_assert_uint_lt(clock_shifted_s(&shift), UINT32_MAX);
}
END_TEST

/* The wall clock may say what it likes: here it is another one by far. */
START_TEST(test_clock_anchor)
{
    struct clock_shift shift = {0};
    clock_shift_anchor(&shift);
    int64_t before_s = clock_unix_s();
    int64_t said_s = clock_shifted_unix_s(&shift);
    ck_assert_int_ge(said_s, before_s - 1);
    ck_assert_int_le(said_s, clock_unix_s() + 1);
    shift.anchor_ns -= INT64_C(1000000000) * 1000000;
    ck_assert_int_le(clock_shifted_unix_s(&shift), clock_unix_s() - 999998);
    clock_shift_by(&shift, 5000000);
    ck_assert_int_ge(clock_shifted_unix_s(&shift), before_s + 3999998);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("base");
    TCase *tcase = tcase_create("base");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_test(tcase, test_err_texts);
    tcase_add_test(tcase, test_assert);
    tcase_add_test(tcase, test_clock);
    tcase_add_test(tcase, test_clock_shift);
    tcase_add_test(tcase, test_clock_anchor);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

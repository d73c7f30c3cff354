/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_CHECK_HELP_H
#define UNIT_CHECK_HELP_H

/* What the test programs of proto, store and net share. */

#include "base/sanitizer.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* libcheck's ck_assert and all of its kin are made of this one. Its own tells
 * the parent process of each assertion that holds, by a write each, so that a
 * test that dies of a signal can be said to have done so "after this point"; in
 * a loop that takes longer than what is tested. Here a thread tells of each
 * place the first time that it comes by. */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                              \
    do {                                                                      \
        static _Thread_local bool help_is_marked;                             \
        if (!(expr)) {                                                        \
            _ck_assert_failed(__FILE__, __LINE__,                             \
                "Assertion '" #expr "' failed", __VA_ARGS__);                 \
        } else if (!help_is_marked) {                                         \
            help_is_marked = true;                                            \
            _mark_point(__FILE__, __LINE__);                                  \
        }                                                                     \
    } while (0)

enum { HELP_TIMEOUT_S = 900 };

/* The tests that take longest do about a third of their steps, so that whoever
 * changes something soon hears of it. They do all of them where LONG_TESTS is
 * set in the environment, to whatever it be. */
static inline bool
tests_are_long(void)
{
    return getenv("LONG_TESTS") != NULL;
}

/* Of n steps, rounds, seeds: how many are done. 1 or more where n is. */
static inline unsigned
long_part(unsigned n)
{
    return tests_are_long() ? n : n / 3 + (n % 3 > 0);
}

/* The same of what is less under a sanitizer as it is: no less there. */
static inline unsigned
plain_part(unsigned n)
{
    return SANITIZER_ADDRESS || SANITIZER_THREAD ? n : long_part(n);
}

/* Of a sweep, over bits, bytes or calls that fail, the default build takes each
 * place, one with a sanitizer one of so many, and of calls the first ones; with
 * that for threads the fewest, for they meet at each place in the same way. A
 * prime number, so that all bits of a byte have a turn, and whatever else goes
 * by the number of the place. So is that of a short run, and it is not 3, for
 * there are three modes of syncing that go by that number, too: of the sweeps
 * over calls, with the first ones, about a third is left. */
enum {
    SWEEP_STEP = SANITIZER_THREAD ? 13
        : SANITIZER_ADDRESS       ? 7
                                  : 1,
    SWEEP_STEP_SHORT = 5,
    SWEEP_FIRST = 5
};

/* The same of seeds, families of ids and the like, which all do the same: how
 * many of n. */
#define SWEEP_PART(n)                                                         \
    (SANITIZER_ADDRESS || SANITIZER_THREAD ? ((n) + 2) / 3 : (n))

/* From one place to the next. */
static inline unsigned
sweep_stride(void)
{
    return SWEEP_STEP > 1 || tests_are_long() ? SWEEP_STEP : SWEEP_STEP_SHORT;
}

/* The call that fails next, behind the n-th. */
static inline unsigned
sweep_next(unsigned n)
{
    return n + (n < SWEEP_FIRST ? 1 : sweep_stride());
}

/* The same where the default build always takes each. */
static inline unsigned
whole_next(unsigned n)
{
    return n + (n < SWEEP_FIRST ? 1 : SWEEP_STEP);
}

/* The same where a sanitizer takes each. */
static inline unsigned
long_next(unsigned n)
{
    return n + (n < SWEEP_FIRST || tests_are_long() ? 1 : SWEEP_STEP_SHORT);
}

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Makes a session of its own of the program: Linux shares a machine among
 * sessions first (autogroup in sched(7)). Else its threads of a lower priority
 * wait for whatever runs beside it, other tests and compilers, and who waits
 * for them takes minutes. Ends with who started it all the same. One that a
 * terminal may interrupt stays where it is, and so does one that a shell has
 * made the first of a group. */
static inline void
stand_apart(void)
{
    pid_t starter = getppid();
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (terminal >= 0) {
        (void)close(terminal);
    } else if (setsid() >= 0) {
        (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
        if (getppid() != starter) {
            exit(EXIT_FAILURE); /* it is gone already */
        }
    }
}

/* The end of a main(): each test is run in a process of its own. */
static inline int
run_suite(Suite *suite)
{
    stand_apart();
    SRunner *sr = srunner_create(suite);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The same for one case; each test has a time limit of its own. */
static inline int
run_case(const char *name, TCase *tcase)
{
    Suite *suite = suite_create(name);
    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}

/* The whole of a main(): each test is run so many times; _i says which. */
static inline int
run_tests_often(
    const char *name, const TTest *const *test, size_t n, int times)
{
    TCase *tcase = tcase_create(name);
    for (size_t i = 0; i < n; i++) {
        tcase_add_loop_test(tcase, test[i], 0, times);
    }
    return run_case(name, tcase);
}

/* The same, once. */
static inline int
run_tests(const char *name, const TTest *const *test, size_t n)
{
    return run_tests_often(name, test, n, 1);
}

/* A copy of just these bytes, so that a sanitizer sees a read past them. */
static inline char *
copy_of(const char *bytes, size_t len)
{
    char *copy = malloc(len == 0 ? 1 : len);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, len);
    return copy;
}

/* splitmix64 (Steele, Lea, Flood, 2014): a number below n. */
static inline uint64_t
random_below(uint64_t *state, uint64_t n)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

#endif

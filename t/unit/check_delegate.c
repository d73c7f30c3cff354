/* SPDX-License-Identifier: BSD-3-Clause */
/* base/delegate: another thread does it, with the priority that its maker had
 * when it was started. */
#include "base/delegate.h"

#include "base/give_way.h"
#include "unit/check_help.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ERRANDS = 100, LOWER = 3, NICE_MOST = 19 };

struct seen {
    unsigned n;
    long thread;
    int nice;
};

static int
nice_now(void)
{
    return getpriority(PRIO_PROCESS, 0); /* on Linux, of the thread */
}

static void
look(void *context)
{
    struct seen *seen = context;
    seen->n++;
    seen->thread = syscall(SYS_gettid);
    seen->nice = nice_now();
}

START_TEST(test_errand)
{
    struct delegate delegate;
    struct seen seen = {0};
    int before = nice_now();
    ck_assert_int_eq(delegate_start(&delegate), 0);
    give_way_begin(before + LOWER);
    ck_assert(
        before == NICE_MOST ? nice_now() == before : nice_now() > before);
    for (unsigned i = 0; i < ERRANDS; i++) {
        delegate_do(&delegate, look, &seen);
        ck_assert_uint_eq(seen.n, i + 1);
        ck_assert_int_ne(seen.thread, syscall(SYS_gettid));
        ck_assert_int_eq(seen.nice, before);
    }
    delegate_stop(&delegate);
}
END_TEST

/* It ends where nothing was ever to be done. */
START_TEST(test_idle)
{
    struct delegate delegate;
    ck_assert_int_eq(delegate_start(&delegate), 0);
    delegate_stop(&delegate);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_errand, test_idle};
    return run_tests("delegate", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FAIL_H
#define BENCH_FAIL_H

/* Writes "program: text\n" to stderr and exits with status 1. Any thread: a
 * benchmark that went wrong in one place has no result. */
_Noreturn void fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* As fail, with the text of errno behind it. */
_Noreturn void fail_errno(const char *what);

#endif

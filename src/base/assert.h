/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

/* An assertion that stays in every build: a store that goes on after a broken
 * invariant writes wrong numbers. Prints the place and aborts. */
#define ASSERT(condition)                                                     \
    ((condition) ? (void)0                                                    \
                 : assert_failed(#condition, __FILE__, __LINE__, __func__))

/* Writes one line to stderr and aborts. Any thread. */
_Noreturn void assert_failed(
    const char *condition, const char *file, int line, const char *function);

#endif

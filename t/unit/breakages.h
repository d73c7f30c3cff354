/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_BREAKAGES_H
#define UNIT_BREAKAGES_H

#include "unit/survives.h"

/* Ways to break what a *_verify looks at, one line of code each:
 *
 *   #define BREAKAGES(X)                \
 *       X(it->n = 0)                    \
 *       X(it->first = NULL)
 *
 *   static const char *const lines[] = {BREAKAGES(BREAKAGE_TEXT)};
 *
 *   static void
 *   break_and_verify(void *context)
 *   {
 *       struct breakage *breakage = context;
 *       struct thing *it = breakage->of;
 *       BREAKAGES(BREAKAGE_DO)
 *       thing_verify(it);
 *   }
 */
struct breakage {
    void *of;
    size_t number; /* of the line that is done */
    size_t next;   /* 0 */
};

#define BREAKAGE_TEXT(line) #line,
#define BREAKAGE_DO(line)                                                     \
    if (breakage->number == breakage->next++) {                               \
        line;                                                                 \
    }

/* Does each of n lines, in a process of its own, which has to abort. With no
 * line done it does not. */
static inline void
expect_noticed(void (*break_and_verify_fn)(void *context), void *of,
    const char *const *lines, size_t n)
{
    struct breakage breakage = {.of = of, .number = n};
    ck_assert(survives(break_and_verify_fn, &breakage));
    for (size_t i = 0; i < n; i++) {
        breakage.number = i;
        ck_assert_msg(!survives(break_and_verify_fn, &breakage),
            "%s: is not noticed", lines[i]);
    }
}

#endif

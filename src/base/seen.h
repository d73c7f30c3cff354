/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_SEEN_H
#define BASE_SEEN_H

#include <stdbool.h>
#include <stdint.h>

/* Which numbers of a sequence have been seen: the highest one, and a bit for
 * each of the SEEN_WINDOW numbers that end with it. Numbers may come in any
 * order within the window; of one below it nothing is known any more. To add
 * is idempotent and knows no order: what has been added twice, or in another
 * order, is the same, so long as each number was in the window when it came.
 * All zero is empty. Pure; the caller has the lock. */

enum { SEEN_WINDOW = 1024, SEEN_WORDS = SEEN_WINDOW / 64 };

struct seen_window {
    uint64_t high;            /* the highest number; 0 where there is none */
    uint64_t bit[SEEN_WORDS]; /* of number n: bit n % SEEN_WINDOW */
};

enum seen_state {
    SEEN_NEW,    /* not seen yet */
    SEEN_BEFORE, /* it has been */
    SEEN_BELOW   /* below the window: not known */
};

enum seen_state seen_look(const struct seen_window *seen, uint64_t number);

/* Adds a number; one below the window changes nothing. */
void seen_add(struct seen_window *seen, uint64_t number);

/* Adds all that other has, as if its numbers had come here, too: those of the
 * two that are in the window of the higher one. Joining is idempotent and
 * knows no order. */
void seen_join(struct seen_window *seen, const struct seen_window *other);

bool seen_is_empty(const struct seen_window *seen);

/* True for what seen_add can make and is not empty: of bytes that were read. */
bool seen_is_sound(const struct seen_window *seen);

#endif

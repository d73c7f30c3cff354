/* SPDX-License-Identifier: BSD-3-Clause */
/* A window over numbers as a ring of bits.
 *
 *   number     high-1023 ........................ high
 *   its bit    number % 1024, so a number keeps its bit while it is in the
 *              window, and the one that comes SEEN_WINDOW later has it next
 *
 * Where the window moves on, the bits of the numbers that come into it are
 * cleared: they are those of the numbers that leave it. Bits of numbers above
 * high or below 0 are clear. */
#include "base/seen.h"

#include <string.h>

static inline uint64_t
mask_of(uint64_t number)
{
    return UINT64_C(1) << number % 64;
}

static inline unsigned
word_of(uint64_t number)
{
    return (unsigned)(number % SEEN_WINDOW / 64);
}

static bool
has(const struct seen_window *seen, uint64_t number)
{
    return (seen->bit[word_of(number)] & mask_of(number)) != 0;
}

enum seen_state
seen_look(const struct seen_window *seen, uint64_t number)
{
    if (number > seen->high) {
        return SEEN_NEW;
    }
    if (seen->high - number >= SEEN_WINDOW) {
        return SEEN_BELOW;
    }
    return has(seen, number) ? SEEN_BEFORE : SEEN_NEW;
}

/* Makes number the highest one. */
static void
move_on(struct seen_window *seen, uint64_t number)
{
    if (number - seen->high >= SEEN_WINDOW) {
        memset(seen->bit, 0, sizeof seen->bit);
    } else {
        for (uint64_t n = seen->high + 1; n != number + 1; n++) {
            seen->bit[word_of(n)] &= ~mask_of(n);
        }
    }
    seen->high = number;
}

void
seen_add(struct seen_window *seen, uint64_t number)
{
    if (number > seen->high) {
        move_on(seen, number);
    }
    if (seen->high - number < SEEN_WINDOW) {
        seen->bit[word_of(number)] |= mask_of(number);
    }
}

void
seen_join(struct seen_window *seen, const struct seen_window *other)
{
    struct seen_window more = *other;
    if (seen_is_empty(other)) {
        return;
    }
    if (other->high > seen->high) {
        move_on(seen, other->high);
    }
    uint64_t n_below = seen->high - other->high;
    if (n_below >= SEEN_WINDOW) {
        return;
    }
    /* what other has below the window: where it goes below 0, these are bits
     * that are clear, or of numbers above other's highest, which are, too */
    for (uint64_t n = 0; n < n_below; n++) {
        uint64_t number = other->high - (SEEN_WINDOW - 1) + n;
        more.bit[word_of(number)] &= ~mask_of(number);
    }
    for (unsigned i = 0; i < SEEN_WORDS; i++) {
        seen->bit[i] |= more.bit[i];
    }
}

bool
seen_is_empty(const struct seen_window *seen)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < SEEN_WORDS; i++) {
        any |= seen->bit[i];
    }
    return any == 0;
}

bool
seen_is_sound(const struct seen_window *seen)
{
    if (!has(seen, seen->high)) {
        return false;
    }
    for (uint64_t n = seen->high; n < SEEN_WINDOW - 1; n++) {
        if (has(seen, n + 1)) {
            return false; /* a number that has not come yet */
        }
    }
    return true;
}

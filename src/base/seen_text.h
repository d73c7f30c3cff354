/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_SEEN_TEXT_H
#define BASE_SEEN_TEXT_H

#include "base/num.h"
#include "base/seen.h"

#include <stdbool.h>
#include <stddef.h>

/* A window of numbers as text, "HIGHEST BITS": HIGHEST in decimal, BITS a
 * hexadecimal number whose bit k says that HIGHEST - k was seen, in small
 * letters and without zeros in front. Bit 0 is always set, since the highest
 * number was seen. Pure; any thread. */

enum {
    SEEN_TEXT_DIGITS_MAX = SEEN_WINDOW / 4, /* of BITS */
    SEEN_TEXT_MAX = NUM_U64_DIGITS_MAX + 1 + SEEN_TEXT_DIGITS_MAX
};

/* Writes it to out, unterminated, and returns its length; the window is not
 * empty. */
size_t seen_text_put(const struct seen_window *seen, char out[SEEN_TEXT_MAX]);

/* The window of two words. False, and *out is void, where they are not of one:
 * a word that is none of the above, bit 0 clear, or a number below 0. */
bool seen_text_get(const char *high, size_t high_len, const char *bits,
    size_t bits_len, struct seen_window *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_URI_H
#define BASE_URI_H

#include <stdbool.h>
#include <stddef.h>

enum { URI_BYTES = 3 }; /* what a byte may become */

/* Writes bytes as in an URL to out (room for URI_BYTES each, no terminator):
 * letters, digits and -._~ as they are, others as %XX. Returns how many it
 * makes. */
size_t uri_encode(const char *bytes, size_t len, char *out);

/* True for what stands in a line as one word: no space, no control character
 * and no DEL. Nothing is none. */
bool uri_is_word(const char *bytes, size_t len);

/* The same as uri_encode for what is no word; a word is written as it is. */
size_t uri_encode_word(const char *bytes, size_t len, char *out);

#endif

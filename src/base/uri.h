/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_URI_H
#define BASE_URI_H

#include <stddef.h>

enum { URI_BYTES = 3 }; /* what a byte may become */

/* Writes bytes as in an URL to out (room for URI_BYTES each, no terminator):
 * letters, digits and -._~ as they are, others as %XX. Returns how many it
 * makes. */
size_t uri_encode(const char *bytes, size_t len, char *out);

#endif

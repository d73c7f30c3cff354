/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Base64 with padding (RFC 4648, section 4), for short texts. */

/* The number of bytes that text[0..len) stands for. False where it is not
 * base64: a length that is no multiple of 4, another character, bits set that
 * no byte has, or nothing. */
bool base64_check(const char *text, size_t len, size_t *decoded_len);

/* Decodes text, which base64_check has accepted; returns the number of bytes
 * written to out, at most len / 4 * 3. */
size_t base64_decode(const char *text, size_t len, char *out);

/* Encodes len bytes into out, which has room for (len + 2) / 3 * 4; returns
 * the number of characters. */
size_t base64_encode(const char *bytes, size_t len, char *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_MD5_H
#define BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

/* MD5 (RFC 1321), which clients of memcached use to spread keys over servers.
 * Nothing that has to be kept secret or untampered may rest on it. */

enum { MD5_WORDS = 4 };

/* The digest of bytes[0..len), as four words: the first byte of the digest is
 * the lowest one of word[0]. Pure; any thread. */
void md5(const void *bytes, size_t len, uint32_t word[MD5_WORDS]);

#endif

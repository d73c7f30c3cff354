/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of 64 bits. Who has
 * not the key can neither guess what it gives nor make two inputs that give
 * the same. Pure. */

enum { SIPHASH_KEY_BYTES = 16 };

uint64_t siphash(
    const uint8_t key[SIPHASH_KEY_BYTES], const void *bytes, size_t len);

#endif

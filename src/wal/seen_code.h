/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_SEEN_CODE_H
#define WAL_SEEN_CODE_H

#include "base/bytes.h"
#include "base/seen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A window of numbers as bytes, in the log and in the manifest:
 *
 *   varint  the highest number seen
 *   2       which of its 16 words have a bit set
 *   8 each  those words; bit n % 1024 of them is that of number n
 *
 * Pure; any thread. */

enum {
    SEEN_CODE_BYTES_MAX = BYTES_VARINT_MAX + 2 + 8 * SEEN_WORDS,
    SEEN_CODE_BYTES_MIN = 1 + 2 + 8
};

/* Writes a window that is not empty, and returns the length. */
size_t seen_code_put(uint8_t *out, const struct seen_window *seen);

/* Moves *in behind one. False where the bytes are none that could have been
 * put; *in and *out are void then. */
bool seen_code_get(
    const uint8_t **in, const uint8_t *end, struct seen_window *out);

#endif

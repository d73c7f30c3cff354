/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_KEY_ID_H
#define PROTO_KEY_ID_H

#include "base/chunk.h"

#include <stdint.h>

/* The id that a key begins with, without a step a digit. Pure; any thread. */

enum { KEY_ID_DIGITS = 19 /* ids of more are read by key_parse */ };

/* Reads an id at text, of 1 to KEY_ID_DIGITS digits of which the first is
 * no 0: their number, or 0. Looks at up to 32 bytes. */
static inline __attribute__((always_inline)) unsigned
key_id_read(const char *text, uint64_t *id)
{
    static const uint32_t power[CHUNK_BYTES] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    uint64_t chunk = chunk_off_digits(chunk_load(text));
    unsigned n = chunk_before(chunk_marks(chunk));
    if (n < CHUNK_BYTES) {
        *id = chunk_join(chunk_last(chunk, n));
        return text[0] == '0' ? 0 : n;
    }
    uint64_t value = chunk_join(chunk);
    unsigned digits = CHUNK_BYTES;
    chunk = chunk_off_digits(chunk_load(text + digits));
    n = chunk_before(chunk_marks(chunk));
    if (n == CHUNK_BYTES) {
        value = value * 100000000 + chunk_join(chunk);
        digits += CHUNK_BYTES;
        if (text[digits] == '.') { /* as many ids have */
            *id = value;
            return text[0] == '0' ? 0 : digits;
        }
        chunk = chunk_off_digits(chunk_load(text + digits));
        n = chunk_before(chunk_marks(chunk));
    }
    digits += n;
    *id = value * power[n % CHUNK_BYTES] + chunk_join(chunk_last(chunk, n));
    return digits > KEY_ID_DIGITS || text[0] == '0' ? 0 : digits;
}

#endif

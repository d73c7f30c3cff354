/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_PACKETS_H
#define FUZZ_PACKETS_H

#include "base/assert.h"
#include "fuzz/fuzz_session.h"
#include "proto/binary.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Has bytes be packets of the binary protocol whose headers can be taken for
 * such, so that what a mutation does to one packet does not end the
 * conversation: gives each its magic, a short key, and a body of less than
 * 64 KiB. */
static inline void
fuzz_packets_mend(uint8_t *bytes, size_t len)
{
    enum { KEY_AT = 2, BODY_AT = 8 };
    size_t at = 0;
    while (len - at >= BINARY_HEADER_BYTES) {
        uint8_t *header = bytes + at;
        header[0] = BINARY_MAGIC_REQUEST;
        header[KEY_AT] = 0;
        header[BODY_AT] = 0;
        header[BODY_AT + 1] = 0;
        size_t body = (size_t)header[BODY_AT + 2] << 8 | header[BODY_AT + 3];
        size_t left = len - at - BINARY_HEADER_BYTES;
        at += BINARY_HEADER_BYTES + (body < left ? body : left);
    }
}

/* Tells a session bytes behind the first one, which says what is made of them:
 * an even one leaves them as they are, with an odd one they are mended. */
static inline void
fuzz_packets_tell(const struct world *world, const uint8_t *bytes, size_t len)
{
    if (len == 0) {
        return;
    }
    uint8_t *copy = malloc(len);
    ASSERT(copy != NULL);
    memcpy(copy, bytes + 1, len - 1);
    if (bytes[0] % 2 == 1) {
        fuzz_packets_mend(copy, len - 1);
    }
    fuzz_session(world, copy, len - 1);
    free(copy);
}

#endif

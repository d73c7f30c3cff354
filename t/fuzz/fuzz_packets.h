/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_PACKETS_H
#define FUZZ_PACKETS_H

#include "proto/binary.h"

#include <stddef.h>
#include <stdint.h>

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

#endif

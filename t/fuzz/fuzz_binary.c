/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a session that speaks the binary protocol (fuzz_session.h). The first
 * byte says what is made of the others: an even one leaves them as they are;
 * with an odd one they become packets whose headers can be taken for such, so
 * that what a mutation does to one packet does not end the conversation. */
#include "base/assert.h"
#include "fuzz/fuzz_session.h"
#include "proto/binary.h"

#include <stdlib.h>

enum { KEY_AT = 2, BODY_AT = 8 };

/* Gives each packet its magic, a short key, and a body of less than 64 KiB. */
static void
mend(uint8_t *bytes, size_t len)
{
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0) {
        return 0;
    }
    uint8_t *copy = malloc(len);
    ASSERT(copy != NULL);
    memcpy(copy, bytes + 1, len - 1);
    if (bytes[0] % 2 == 1) {
        mend(copy, len - 1);
    }
    fuzz_session(counters_world(), copy, len - 1);
    free(copy);
    return 0;
}

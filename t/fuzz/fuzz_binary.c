/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a session that speaks the binary protocol (fuzz_session.h). The first
 * byte says what is made of the others: an even one leaves them as they are;
 * with an odd one they become packets whose headers can be taken for such, so
 * that what a mutation does to one packet does not end the conversation. */
#include "base/assert.h"
#include "fuzz/fuzz_packets.h"
#include "fuzz/fuzz_session.h"

#include <stdlib.h>

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
        fuzz_packets_mend(copy, len - 1);
    }
    fuzz_session(counters_world(), copy, len - 1);
    free(copy);
    return 0;
}

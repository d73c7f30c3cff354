/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a session that speaks the binary protocol (fuzz_session.h). The first
 * byte says what is made of the others: an even one leaves them as they are;
 * with an odd one they become packets whose headers can be taken for such, so
 * that what a mutation does to one packet does not end the conversation. */
#include "fuzz/fuzz_packets.h"
#include "fuzz/fuzz_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    fuzz_packets_tell(counters_world(), bytes, len);
    return 0;
}

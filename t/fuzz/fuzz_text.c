/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a session on a real store (fuzz_session.h). The input is what a client
 * sends, so that seeds can be read. */
#include "fuzz/fuzz_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    fuzz_session(bytes, len);
    return 0;
}

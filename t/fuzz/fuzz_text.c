/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a session with what the text protocol and the dialect say. */
#include "fuzz/fuzz_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    fuzz_session(counters_world(), bytes, len);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes checksums by libxxhash. */
#include "base/checksum.h"

#include <xxhash.h>

uint64_t
checksum64(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

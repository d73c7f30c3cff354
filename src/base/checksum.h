/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* XXH3 with 64 bits (Yann Collet, libxxhash) of len bytes. seed: equal bytes
 * in two places that have different seeds have different checksums. Pure. */
uint64_t checksum64(const void *bytes, size_t len, uint64_t seed);

#endif

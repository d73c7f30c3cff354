/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_FOLD_H
#define BASE_FOLD_H

#include <stdint.h>

/* An invertible mixing of 64-bit ids: two rounds of xor-shift and odd
 * multiplication (the shape of MurmurHash3's finaliser, Appleby; constants of
 * Stafford's variant 13). Every bit of the id reaches the low bits, so ids
 * whose own low bits repeat still spread over shards and tables. Pure. */
static inline uint64_t
fold_id(uint64_t id)
{
    id = (id ^ (id >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    id = (id ^ (id >> 27)) * UINT64_C(0x94d049bb133111eb);
    return id ^ (id >> 31);
}

#endif

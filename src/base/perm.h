/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_PERM_H
#define BASE_PERM_H

#include "base/fold.h"

#include <stdint.h>

/* A keyed invertible permutation of the numbers of w bits, for any w of 1 to
 * 64: xor with a key, then twice xor the upper half onto the lower one and
 * multiply by an odd number, all modulo 2^w. Every step has an inverse. The
 * upper bits of the result depend on all bits of the argument; without the
 * first xor onto the lower half, ids in regular steps would stay in regular
 * steps too often. Not cryptography: it spreads ids, and nobody who does not
 * know the key can choose ids that meet. Pure. */
struct perm {
    uint64_t key;
    uint64_t odd_1, odd_2;         /* odd */
    uint64_t inverse_1, inverse_2; /* of these, modulo 2^64 */
};

/* The inverse of an odd number modulo 2^64, by Newton's iteration: each round
 * doubles the number of right low bits, of which x itself has 3. */
static inline uint64_t
perm__inverse(uint64_t x)
{
    uint64_t inverse = x;
    for (int i = 0; i < 5; i++) {
        inverse *= 2 - x * inverse;
    }
    return inverse;
}

static inline struct perm
perm_make(uint64_t seed)
{
    struct perm perm = {.key = fold_id(seed + 1)};
    perm.odd_1 = fold_id(perm.key + 1) | 1;
    perm.odd_2 = fold_id(perm.odd_1 + 1) | 1;
    perm.inverse_1 = perm__inverse(perm.odd_1);
    perm.inverse_2 = perm__inverse(perm.odd_2);
    return perm;
}

/* The numbers of w bits, w 1..64. */
static inline uint64_t
perm_mask(unsigned w)
{
    return UINT64_MAX >> (64 - w);
}

/* How far the upper half is moved down. */
static inline unsigned
perm_fold(unsigned w)
{
    return (w + 1) / 2;
}

/* perm_apply with perm_mask(w) and perm_fold(w) at hand. */
static inline uint64_t
perm__apply(const struct perm *perm, uint64_t x, uint64_t mask, unsigned fold)
{
    uint64_t y = (x ^ perm->key) & mask;
    y ^= y >> fold;
    y = (y * perm->odd_1) & mask;
    y ^= y >> fold;
    return (y * perm->odd_2) & mask;
}

static inline uint64_t
perm_apply(const struct perm *perm, uint64_t x, unsigned w)
{
    return perm__apply(perm, x, perm_mask(w), perm_fold(w));
}

/* perm_undo(perm, perm_apply(perm, x, w), w) == x for x below 2^w. */
static inline uint64_t
perm_undo(const struct perm *perm, uint64_t y, unsigned w)
{
    uint64_t mask = perm_mask(w);
    uint64_t x = (y * perm->inverse_2) & mask;
    x ^= x >> perm_fold(w);
    x = (x * perm->inverse_1) & mask;
    x ^= x >> perm_fold(w);
    return (x ^ perm->key) & mask;
}

#endif

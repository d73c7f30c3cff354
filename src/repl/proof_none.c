/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without OpenSSL. Nobody has a secret, which is asked for at the
 * start; who shows a proof all the same has one, and is not of this group. */
#include "repl/proof.h"

#include "base/assert.h"

#include <string.h>

bool
proof_is_there(void)
{
    return false;
}

int
proof__make(const struct proof_secret *secret, const struct proof_claim *claim,
    uint8_t out[PROOF_BYTES])
{
    (void)claim;
    ASSERT(secret->n_bytes == 0);
    memset(out, 0, PROOF_BYTES);
    return 0;
}

bool
proof__is_right(const struct proof_secret *secret,
    const struct proof_claim *claim, const uint8_t proof[PROOF_BYTES])
{
    uint8_t right[PROOF_BYTES];

    (void)proof__make(secret, claim, right);
    return memcmp(right, proof, PROOF_BYTES) == 0;
}

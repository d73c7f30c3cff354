/* SPDX-License-Identifier: BSD-3-Clause */
/* HMAC-SHA256 (RFC 2104) by OpenSSL. What is proved is bytes that can be made
 * of one claim only: each part of varying length has its length before it.
 *
 *   OFFSET SIZE
 *        0   12 "tallyd proof"
 *       12   16 nonce of who accepted the connection
 *       28   16 nonce of who connected
 *       44    1 purpose, or 0
 *       45    1 bytes of the group's name, then the name
 *             1 bytes of the node's name, then the name
 */
#include "repl/proof.h"

#include "base/assert.h"
#include "base/err.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

enum { TEXT_BYTES = 12, CLAIM_MAX = 12 + 2 * 16 + 1 + 2 * (1 + 255) };

static size_t
put(uint8_t *out, const uint8_t *bytes, size_t len)
{
    if (len > 0) {
        memcpy(out, bytes, len);
    }
    return len;
}

static size_t
put_claim(const struct proof_claim *claim, uint8_t out[CLAIM_MAX])
{
    size_t len = TEXT_BYTES;

    memcpy(out, "tallyd proof", TEXT_BYTES);
    len += put(out + len, claim->accepting, STREAM_NONCE_BYTES);
    len += put(out + len, claim->connecting, STREAM_NONCE_BYTES);
    out[len++] = claim->purpose;
    out[len++] = claim->group_len;
    len += put(out + len, claim->group, claim->group_len);
    out[len++] = claim->name_len;
    return len + put(out + len, claim->name, claim->name_len);
}

bool
proof_is_there(void)
{
    return true;
}

int
proof__make(const struct proof_secret *secret, const struct proof_claim *claim,
    uint8_t out[PROOF_BYTES])
{
    uint8_t bytes[CLAIM_MAX];
    unsigned n = 0;

    memset(out, 0, PROOF_BYTES);
    if (secret->n_bytes == 0) {
        return 0;
    }
    ASSERT(secret->n_bytes >= PROOF_SECRET_MIN);
    ASSERT(secret->n_bytes <= PROOF_SECRET_MAX);
    if (HMAC(EVP_sha256(), secret->bytes, (int)secret->n_bytes, bytes,
            put_claim(claim, bytes), out, &n) == NULL) {
        memset(out, 0, PROOF_BYTES);
        return ERR_SYSTEM;
    }
    ASSERT(n == PROOF_BYTES);
    return 0;
}

bool
proof__is_right(const struct proof_secret *secret,
    const struct proof_claim *claim, const uint8_t proof[PROOF_BYTES])
{
    uint8_t right[PROOF_BYTES];

    return proof__make(secret, claim, right) == 0 &&
        CRYPTO_memcmp(right, proof, PROOF_BYTES) == 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/proof: a proof is right for what it was made of, and for nothing that
 * differs in any part, nor in a bit of itself; a known value. */
#include "repl/proof.h"

#include "unit/check_help.h"

static uint8_t nonce_a[STREAM_NONCE_BYTES], nonce_b[STREAM_NONCE_BYTES];

static struct proof_claim
claim_of(const char *group, const char *name)
{
    memset(nonce_a, 0x0a, sizeof nonce_a);
    memset(nonce_b, 0x0b, sizeof nonce_b);
    return (struct proof_claim){.accepting = nonce_a,
        .connecting = nonce_b,
        .purpose = 1,
        .group = (const uint8_t *)group,
        .name = (const uint8_t *)name,
        .group_len = (uint8_t)strlen(group),
        .name_len = (uint8_t)strlen(name)};
}

static struct proof_secret
secret_of(size_t n)
{
    struct proof_secret secret = {.n_bytes = n};

    for (size_t i = 0; i < n; i++) {
        secret.bytes[i] = (uint8_t)(i * 5 + 1);
    }
    return secret;
}

START_TEST(test_none)
{
    struct proof_secret none = {0};
    struct proof_claim claim = claim_of("g", "a");
    uint8_t proof[PROOF_BYTES];

    memset(proof, 7, sizeof proof);
    ck_assert_int_eq(proof__make(&none, &claim, proof), 0);
    for (unsigned i = 0; i < PROOF_BYTES; i++) {
        ck_assert_uint_eq(proof[i], 0);
    }
    ck_assert(proof__is_right(&none, &claim, proof));
    proof[31] = 1;
    ck_assert(!proof__is_right(&none, &claim, proof));
}
END_TEST

START_TEST(test_secret)
{
    struct proof_secret secret = secret_of(40), other = secret_of(41);
    struct proof_secret none = {0};
    struct proof_claim claim = claim_of("posts", "a"), wrong;
    uint8_t proof[PROOF_BYTES], zero[PROOF_BYTES] = {0};

    if (!proof_is_there()) {
        return; /* no secret is taken: test_none is all there is */
    }
    ck_assert_int_eq(proof__make(&secret, &claim, proof), 0);
    ck_assert(proof__is_right(&secret, &claim, proof));
    ck_assert(!proof__is_right(&secret, &claim, zero));
    ck_assert(!proof__is_right(&other, &claim, proof));
    ck_assert(!proof__is_right(&none, &claim, proof));
    for (unsigned bit = 0; bit < 8 * PROOF_BYTES; bit++) {
        proof[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert(!proof__is_right(&secret, &claim, proof));
        proof[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    wrong = claim;
    wrong.accepting = nonce_b;
    ck_assert(!proof__is_right(&secret, &wrong, proof));
    wrong = claim;
    wrong.connecting = nonce_a;
    ck_assert(!proof__is_right(&secret, &wrong, proof));
    wrong = claim;
    wrong.purpose = 0;
    ck_assert(!proof__is_right(&secret, &wrong, proof));
    /* the same letters, cut elsewhere */
    wrong = claim_of("post", "sa");
    ck_assert(!proof__is_right(&secret, &wrong, proof));
    wrong = claim_of("posts", "b");
    ck_assert(!proof__is_right(&secret, &wrong, proof));
}
END_TEST

/* As Python says: hmac.new(bytes((i * 5 + 1) % 256 for i in range(40)),
 * b"tallyd proof" + b"\x0a" * 16 + b"\x0b" * 16 + b"\x01\x05posts\x01a",
 * "sha256"). */
START_TEST(test_known)
{
    static const uint8_t right[PROOF_BYTES] = {0x9a, 0x97, 0x44, 0x48, 0x42,
        0x2c, 0x1c, 0x97, 0x81, 0x5a, 0x56, 0xd7, 0xa0, 0xfc, 0xc4, 0x8d, 0xfc,
        0xf3, 0xdc, 0x2c, 0x33, 0x03, 0xf0, 0x88, 0xbf, 0x83, 0xd8, 0x4f, 0xdf,
        0x05, 0x7d, 0x34};
    struct proof_secret secret = secret_of(40);
    struct proof_claim claim = claim_of("posts", "a");

    if (proof_is_there()) {
        ck_assert(proof__is_right(&secret, &claim, right));
    }
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_none, test_secret, test_known};

    return run_tests("proof", tests, COUNT_OF(tests));
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_PROOF_H
#define REPL_PROOF_H

#include "repl/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* That who speaks knows the secret of the group: HMAC-SHA256 over what it says
 * it is, and both nonces, so that no proof is good for another connection. A
 * build without OpenSSL has none, and takes no secret (proof_is_there). Pure;
 * any thread. */

enum {
    PROOF_BYTES = 32,
    PROOF_SECRET_MIN = 32, /* bytes of a secret */
    PROOF_SECRET_MAX = 1024
};

/* n_bytes = 0: there is none, and any proof of 32 zero bytes is right. */
struct proof_secret {
    size_t n_bytes;
    uint8_t bytes[PROOF_SECRET_MAX];
};

/* What is proved. The bytes are the caller's. */
struct proof_claim {
    const uint8_t *accepting, *connecting; /* STREAM_NONCE_BYTES each */
    uint8_t purpose; /* of the connection; 0 in what the accepting end says */
    const uint8_t *group, *name; /* of who speaks */
    uint8_t group_len, name_len;
};

bool proof_is_there(void);

/* 0; or ERR_SYSTEM where OpenSSL could not, and then the proof is zeroes. */
int proof__make(const struct proof_secret *secret,
    const struct proof_claim *claim, uint8_t out[PROOF_BYTES]);

/* Takes as long whatever byte differs. */
bool proof__is_right(const struct proof_secret *secret,
    const struct proof_claim *claim, const uint8_t proof[PROOF_BYTES]);

#endif

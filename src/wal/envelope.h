/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_ENVELOPE_H
#define WAL_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

/* What images and manifests have around them: magic and version in front,
 * a checksum (XXH3, 64 bits) over all before it at the end. All versions keep
 * that, so that a newer program's file is told from a damaged one. Pure; any
 * thread. */

enum { ENVELOPE_CHECKSUM_BYTES = 8, ENVELOPE_MAGIC_BYTES_MAX = 8 };

struct envelope {
    uint8_t magic_bytes; /* 1..ENVELOPE_MAGIC_BYTES_MAX */
    uint8_t magic[ENVELOPE_MAGIC_BYTES_MAX];
    uint32_t version; /* from 1 on */
};

/* Writes magic and version (4 bytes) to out. */
void envelope_begin(const struct envelope *envelope, uint8_t *out);

/* Writes the checksum of block[0..len) behind it. */
void envelope_end(uint8_t *block, size_t len);

/* Looks at a block of len bytes, any bytes: at the checksum before the
 * version. 0, ERR_CORRUPT, ERR_NEWER_FORMAT. */
int envelope_check(
    const struct envelope *envelope, const uint8_t *block, size_t len);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The envelope of a file's or block's bytes: magic, version, checksum. The
 * checksum stands last and is looked at first, before the version too: so
 * damage is told from a newer program. */
#include "wal/envelope.h"

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"

#include <string.h>

enum { VERSION_BYTES = 4 };

void
envelope_begin(const struct envelope *envelope, uint8_t *out)
{
    memcpy(out, envelope->magic, envelope->magic_bytes);
    bytes_put_u32(out + envelope->magic_bytes, envelope->version);
}

void
envelope_end(uint8_t *block, size_t len)
{
    bytes_put_u64(block + len, checksum64(block, len, 0));
}

int
envelope_check(
    const struct envelope *envelope, const uint8_t *block, size_t len)
{
    size_t shortest =
        envelope->magic_bytes + VERSION_BYTES + ENVELOPE_CHECKSUM_BYTES;
    if (len < shortest ||
        memcmp(block, envelope->magic, envelope->magic_bytes) != 0) {
        return ERR_CORRUPT;
    }
    size_t covered = len - ENVELOPE_CHECKSUM_BYTES;
    if (checksum64(block, covered, 0) != bytes_get_u64(block + covered)) {
        return ERR_CORRUPT;
    }
    uint32_t version = bytes_get_u32(block + envelope->magic_bytes);
    if (version > envelope->version) {
        return ERR_NEWER_FORMAT;
    }
    return version == envelope->version ? 0 : ERR_CORRUPT;
}

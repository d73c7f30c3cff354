/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* XXH3 with 64 bits (Yann Collet, libxxhash) of len bytes. seed: equal bytes
 * in two places that have different seeds have different checksums. Pure. */
uint64_t checksum64(const void *bytes, size_t len, uint64_t seed);

/* The same, with seed 0, of bytes that come piece by piece. One thread at a
 * time. */
struct checksum_stream;

/* The caller's; NULL: no memory. */
struct checksum_stream *checksum_stream_create(void);
/* From the beginning again. */
void checksum_stream_begin(struct checksum_stream *stream);
void checksum_stream_add(
    struct checksum_stream *stream, const void *bytes, size_t len);
/* Of all that was added. */
uint64_t checksum_stream_sum(const struct checksum_stream *stream);
/* NULL is fine. */
void checksum_stream_destroy(struct checksum_stream **stream);

#endif

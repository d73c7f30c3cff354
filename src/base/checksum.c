/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes checksums by libxxhash. */
#include "base/checksum.h"

#include <stdlib.h>
#include <xxhash.h>

struct checksum_stream {
    XXH3_state_t *state; /* owned */
};

uint64_t
checksum64(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

struct checksum_stream *
checksum_stream_create(void)
{
    struct checksum_stream *stream = malloc(sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    stream->state = XXH3_createState();
    if (stream->state == NULL) {
        free(stream);
        return NULL;
    }
    checksum_stream_begin(stream);
    return stream;
}

void
checksum_stream_begin(struct checksum_stream *stream)
{
    (void)XXH3_64bits_reset(stream->state);
}

void
checksum_stream_add(
    struct checksum_stream *stream, const void *bytes, size_t len)
{
    (void)XXH3_64bits_update(stream->state, bytes, len);
}

uint64_t
checksum_stream_sum(const struct checksum_stream *stream)
{
    return XXH3_64bits_digest(stream->state);
}

void
checksum_stream_destroy(struct checksum_stream **stream)
{
    if (*stream != NULL) {
        (void)XXH3_freeState((*stream)->state);
        free(*stream);
        *stream = NULL;
    }
}

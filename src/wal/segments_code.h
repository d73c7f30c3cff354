/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_SEGMENTS_CODE_H
#define WAL_SEGMENTS_CODE_H

#include "base/buf.h"
#include "wal/segments.h"

/* The segments of a manifest as bytes (doc/format-manifest.md). Pure; any
 * thread. */

/* Appends them; out->failed where memory is out. */
void segments_code_put(const struct segments *segments, struct buf *out);

/* Reads n at *in, which end before end, and moves *in behind them. out is empty
 * but for shards, a power of two; no file has a number above last_file. 0,
 * ERR_CORRUPT, ERR_NO_MEMORY; *out may have some of them then. No number is
 * believed beyond the bytes that are there. */
int segments_code_get(const uint8_t **in, const uint8_t *end, uint64_t n,
    uint64_t last_file, struct segments *out);

#endif

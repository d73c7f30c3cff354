/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_SEGMENTS_CODE_H
#define WAL_SEGMENTS_CODE_H

#include "base/buf.h"
#include "wal/histories.h"
#include "wal/segments.h"

/* The segments of a manifest as bytes (doc/format-manifest.md). Pure; any
 * thread. */

/* Appends them; out->failed where memory is out. set has their histories; NULL:
 * these are left out. */
void segments_code_put(const struct segments *segments,
    const struct histories_set *set, struct buf *out);

/* What is known of entries that are to be read. */
struct segments_code {
    uint64_t n;                      /* so many */
    uint64_t last_file;              /* no file has a number above */
    const struct histories_set *set; /* NULL: they have no histories */
};

/* Reads them at *in, which end before end, and moves *in behind them. out is
 * empty but for shards, a power of two. 0, ERR_CORRUPT, ERR_NO_MEMORY; *out may
 * have some of them then. No number is believed beyond the bytes that are
 * there. */
int segments_code_get(const uint8_t **in, const uint8_t *end,
    const struct segments_code *code, struct segments *out);

#endif

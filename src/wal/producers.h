/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_PRODUCERS_H
#define WAL_PRODUCERS_H

#include "base/buf.h"
#include "base/producer.h"
#include "base/seen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The producers as a manifest has them (doc/format-manifest.md): who they are,
 * and which of their numbers each shard has seen. One thread at a time. */

enum { PRODUCERS_MAX = 16384 };

struct producers_one {
    uint32_t serial; /* not 0; never given to another */
    struct producer_name name;
};

struct producers_window {
    uint32_t producer; /* its place in one[] */
    uint16_t shard;
    struct seen_window seen; /* not empty */
};

/* All zero is empty: a directory that never had a producer. */
struct producers_list {
    uint32_t last_serial; /* given out; 0: none ever was */
    uint32_t n;           /* up to PRODUCERS_MAX */
    uint32_t n_windows;
    struct producers_one *one;       /* n, owned; by serial ascending */
    struct producers_window *window; /* n_windows, owned; by producer and
                                      * shard ascending */
};

/* Frees what it owns and makes it empty. */
void producers__list_fini(struct producers_list *list);

/* Appends them; out->failed where memory is out. What producers__list_get would
 * refuse is asserted. */
void producers__list_put(const struct producers_list *list, struct buf *out);

/* Reads n producers at *in, which end before end, and moves *in behind them;
 * out is empty but for last_serial. 0, ERR_CORRUPT, ERR_NO_MEMORY; *out may
 * have some of them then, and is the caller's. No number is believed beyond the
 * bytes that are there. */
int producers__list_get(const uint8_t **in, const uint8_t *end, uint32_t n,
    uint32_t shards, struct producers_list *out);

#endif

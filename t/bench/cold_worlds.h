/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COLD_WORLDS_H
#define BENCH_COLD_WORLDS_H

#include "bench/posts.h"

#include <stddef.h>
#include <stdint.h>

/* The records that the cold tier is measured with. */

enum { COLD_WORLDS = 12 };

struct cold_world {
    const char *name;
    int ids, kind;
    unsigned columns;
    unsigned rare; /* so many columns are 0 but in one record in 50 */
};

extern const struct cold_world cold_worlds[COLD_WORLDS];

/* The records of one world, sorted. */
struct cold_records {
    size_t n;
    unsigned columns;
    uint64_t *id, *code[POSTS_COLUMNS_MAX]; /* owned */
    double bound_bytes; /* of a record's information; NAN: not known */
};

/* Zeroes; fails where memory is out. */
void *cold_take(size_t bytes);

struct cold_records cold_records_make(
    const struct cold_world *world, uint64_t n_posts, uint64_t seed);
void cold_records_drop(struct cold_records *records);

/* Bytes a record in blocks of rows as varints, each as many as zstd brings into
 * 4 KB. */
double cold_rows_bytes(const struct cold_records *records, int level);

#endif

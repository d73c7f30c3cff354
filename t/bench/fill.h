/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FILL_H
#define BENCH_FILL_H

#include "base/buf.h"
#include "bench/conn.h"
#include "bench/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What fill sends: the posts of --records that have a record, by record or by
 * number, in the protocol that the run speaks. */

/* Where a filling thread is: every threads-th post in the order is its own.
 */
struct fill_cursor {
    struct posts_order order;
    uint64_t first, step; /* of the thread */
    uint64_t at;          /* place in the order */
    uint64_t post;        /* the one there */
    size_t column;        /* the next one to look at */
    uint64_t value[POSTS_COLUMNS_MAX];
    bool is_loaded; /* post and value[] are those of at */
};

void fill_init(
    struct fill_cursor *cursor, const struct options *options, uint64_t index);

/* Goes on to the next thing to store; false at the end. */
bool fill_has_next(struct fill_cursor *cursor, const struct options *options);

/* Appends the command that stores it to out and notes in op what it is. */
void fill_ask(struct fill_cursor *cursor, const struct options *options,
    struct buf *out, struct conn_op *op);

#endif

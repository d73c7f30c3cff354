/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_STAYS_H
#define ENGINE_STAYS_H

#include "base/alloc.h"
#include "engine/carry.h"

/* Records that are gathered one by one into arrays, for build.h; and searches
 * in such arrays. One thread. */

struct stays {
    const struct alloc *alloc;
    struct carry_rows rows; /* its arrays lie in block */
    size_t capacity;
    uint64_t *block; /* owned: rows, then the codes of each column */
};

/* Empty, for the slots of a mask. */
void stays_init(
    struct stays *stays, const struct alloc *alloc, uint32_t columns);
void stays_fini(struct stays *stays);

/* 0 or ERR_NO_MEMORY. code is by slot. */
int stays_add(struct stays *stays, uint64_t row, const uint64_t *code);

/* The index of the first row >= row, from `first` on and below end; or end.
 * Rows ascend. */
size_t stays_from(
    const struct carry_rows *rows, uint64_t row, size_t first, size_t end);

/* The same for the first row > row, to the end. */
size_t stays_behind(const struct carry_rows *rows, uint64_t row, size_t first);

/* Records first..end-1. */
struct carry_rows stays_slice(
    const struct carry_rows *rows, size_t first, size_t end);

#endif

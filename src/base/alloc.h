/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>
#include <stdlib.h>

/* Where a module gets its memory from: a seam, so that tests can fail the
 * n-th allocation and count every byte. A NULL struct alloc stands for the C
 * library's heap. Any thread may call the functions at any time. */
struct alloc {
    /* A block of that many zero bytes (> 0), aligned for any scalar type, the
     * caller's; NULL when memory is out. */
    void *(*zeroed_fn)(void *context, size_t bytes);
    /* Takes a block back; bytes is what it was asked for with. */
    void (*free_fn)(void *context, void *block, size_t bytes);
    void *context; /* the implementation's */
};

static inline void *
alloc_zeroed(const struct alloc *alloc, size_t bytes)
{
    if (alloc == NULL) {
        return calloc(1, bytes);
    }
    return alloc->zeroed_fn(alloc->context, bytes);
}

/* A NULL block is fine. */
static inline void
alloc_free(const struct alloc *alloc, void *block, size_t bytes)
{
    if (block == NULL) {
        return;
    }
    if (alloc == NULL) {
        free(block);
        return;
    }
    alloc->free_fn(alloc->context, block, bytes);
}

#endif

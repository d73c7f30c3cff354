/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_FAULT_ALLOC_H
#define LIB_FAULT_ALLOC_H

#include "base/alloc.h"
#include "base/assert.h"

#include <stddef.h>
#include <string.h>

/* A struct alloc that counts what lives and fails the calls fail_from to
 * fail_to (counted from 1; 0 and 0: none). One thread at a time. */
struct fault_alloc {
    struct alloc alloc;
    size_t calls;
    size_t fail_from;
    size_t fail_to;
    size_t failures;
    size_t live_bytes;
};

/* In front of each block stands its size; keeps the block aligned. */
enum { FAULT_ALLOC_HEAD_BYTES = 16 };

static inline void *
fault_alloc__zeroed(void *context, size_t bytes)
{
    struct fault_alloc *fault = context;
    ASSERT(bytes > 0);
    fault->calls++;
    if (fault->calls >= fault->fail_from && fault->calls <= fault->fail_to) {
        fault->failures++;
        return NULL;
    }
    char *head = calloc(1, FAULT_ALLOC_HEAD_BYTES + bytes);
    ASSERT(head != NULL);
    memcpy(head, &bytes, sizeof(bytes));
    fault->live_bytes += bytes;
    return head + FAULT_ALLOC_HEAD_BYTES;
}

static inline void
fault_alloc__free(void *context, void *block, size_t bytes)
{
    struct fault_alloc *fault = context;
    char *head = (char *)block - FAULT_ALLOC_HEAD_BYTES;
    ASSERT(memcmp(head, &bytes, sizeof(bytes)) == 0);
    fault->live_bytes -= bytes;
    free(head);
}

/* The context points to *fault, so that must stay where it is. */
static inline void
fault_alloc_init(struct fault_alloc *fault)
{
    *fault = (struct fault_alloc){
        .alloc = {fault_alloc__zeroed, fault_alloc__free, fault}};
}

/* Makes the next n calls fail. */
static inline void
fault_alloc_arm(struct fault_alloc *fault, size_t n)
{
    fault->fail_from = fault->calls + 1;
    fault->fail_to = fault->calls + n;
}

#endif

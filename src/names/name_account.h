/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAME_ACCOUNT_H
#define NAMES_NAME_ACCOUNT_H

#include "base/alloc.h"

#include <stddef.h>
#include <stdint.h>

/* The memory of all dictionaries of a server: where it comes from, and how much
 * it may be. Any thread. */
struct name_account {
    const struct alloc *alloc; /* NULL: the heap */
    uint64_t limit_bytes;
    const _Atomic uint64_t
        *beside;                 /* bytes of others within the same limit, an
                                     * eighth of which is theirs alone; NULL:
                                     * there are none. Set while nothing is
                                     * under way */
    _Atomic uint64_t used_bytes; /* what waits for readers included */
};

/* What a block of so many bytes (> 0) is accounted with: as much as the C
 * library's heap takes for it. */
size_t name_account_bytes(size_t bytes);

/* *out is a block of zero bytes. 0; ERR_HOT_FULL at the limit; ERR_NO_MEMORY.
 */
int name_account_take(struct name_account *account, size_t bytes, void **out);

/* bytes is what it was asked for with; NULL is fine. */
void name_account_give(
    struct name_account *account, void *block, size_t bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The account of the dictionaries. The sum is raised before a block is asked
 * for, so that two threads do not pass the limit together. */
#include "names/name_account.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
    HEAP_HEAD_BYTES = 8,
    HEAP_STEP_BYTES = 16,
    HEAP_BLOCK_BYTES_MIN = 32,
    BESIDE_PART = 8
};

size_t
name_account_bytes(size_t bytes)
{
    size_t whole = (bytes + HEAP_HEAD_BYTES + HEAP_STEP_BYTES - 1) &
        ~(size_t)(HEAP_STEP_BYTES - 1);
    return whole < HEAP_BLOCK_BYTES_MIN ? HEAP_BLOCK_BYTES_MIN : whole;
}

/* relaxed, all of them: a number that orders nothing */

/* What shares the limit keeps a part of it: names stay in memory when records
 * go to disk, and without room for one of these no name could ever be taken out
 * again. */
static bool
has_room(const struct name_account *account, uint64_t used)
{
    if (account->beside != NULL) {
        if (used > account->limit_bytes - account->limit_bytes / BESIDE_PART) {
            return false;
        }
        used += atomic_load_explicit(account->beside, memory_order_relaxed);
    }
    return used <= account->limit_bytes;
}

int
name_account_take(struct name_account *account, size_t bytes, void **out)
{
    ASSERT(bytes > 0);
    size_t whole = name_account_bytes(bytes);
    uint64_t before = atomic_fetch_add_explicit(
        &account->used_bytes, whole, memory_order_relaxed);
    int err = ERR_HOT_FULL;
    if (has_room(account, before + whole)) {
        *out = alloc_zeroed(account->alloc, bytes);
        if (*out != NULL) {
            return 0;
        }
        err = ERR_NO_MEMORY;
    }
    atomic_fetch_sub_explicit(
        &account->used_bytes, whole, memory_order_relaxed);
    return err;
}

void
name_account_give(struct name_account *account, void *block, size_t bytes)
{
    if (block == NULL) {
        return;
    }
    size_t whole = name_account_bytes(bytes);
    uint64_t before = atomic_fetch_sub_explicit(
        &account->used_bytes, whole, memory_order_relaxed);
    ASSERT(before >= whole);
    alloc_free(account->alloc, block, bytes);
}

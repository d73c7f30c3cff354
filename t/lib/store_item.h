/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_STORE_ITEM_H
#define LIB_STORE_ITEM_H

#include "items/items.h"

#include <stddef.h>
#include <stdint.h>

/* items_store_and_report, for tests that want no more than the cas, or not
 * that; cas_out may be NULL. */
static inline int
store_item(struct items *items, const struct items_store *store,
    uint64_t now_s, uint64_t *cas_out)
{
    struct items_stored stored;
    int err = items_store_and_report(items, store, now_s, &stored);

    if (err == 0 && cas_out != NULL) {
        *cas_out = stored.cas;
    }
    return err;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_DUMP_H
#define STORE_STORE_DUMP_H

#include "store/store.h"

/* The store's calls for a dump of a counter; see struct store_dump. */

static inline enum store_answer
store_dump(struct store *store, struct store_dump *dump)
{
    return store->calls->dump(store, dump);
}

/* Gives back what a dump holds; does nothing where no call has been made. Any
 * thread; no call of it is under way. */
static inline void
store_end_dump(struct store *store, struct store_dump *dump)
{
    if (dump->work != NULL) {
        store->calls->end_dump(store, dump);
    }
}

#endif

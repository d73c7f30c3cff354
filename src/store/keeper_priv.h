/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_KEEPER_PRIV_H
#define STORE_KEEPER_PRIV_H

#include "store/keeper.h"
#include "wal/entry.h"

/* What keeper.c and keeper_apply.c share. Whoever edits calls it, with
 * edit_lock held where there is a data directory: the keeper's thread, or, on a
 * replica, the applier's. It is no online reader. */

/* The published schema. */
const struct schema *keeper__current(struct keeper *keeper);

/* Publishes next and frees the one before when nobody can see it any more. */
void keeper__publish(struct keeper *keeper, const struct schema *next);

/* The engine forgets the counters in n slots, and then nothing covers what they
 * had. */
void keeper__forget_all(
    struct keeper *keeper, const uint8_t *slot, unsigned n);

/* Makes an ENTRY_COUNTER or ENTRY_DROPPED of the primary's log take effect,
 * which may be so already. 0; ERR_NO_MEMORY or ERR_HOT_FULL, and it may be
 * tried again; ERR_CORRUPT where it does not fit the schema. Takes edit_lock,
 * and waits for readers. The applier's thread, of a replica. */
int keeper__apply(struct keeper *keeper, const struct entry *entry);

#endif

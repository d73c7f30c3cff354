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

/* Has the columns of members=about become those of schema: 0, or ERR_NO_MEMORY,
 * and they are what they were. Waits for readers. */
int keeper__follow_abouts(struct keeper *keeper, const struct schema *schema);

/* The engine forgets the counters in n slots, and then nothing covers what they
 * had. */
void keeper__forget_all(
    struct keeper *keeper, const uint8_t *slot, unsigned n);

/* Makes an ENTRY_COUNTER or ENTRY_DROPPED of the primary's log take effect,
 * which may be so already. 0; ERR_NO_MEMORY or ERR_HOT_FULL, and it may be
 * tried again; ERR_CORRUPT where it does not fit the schema. Takes edit_lock,
 * and waits for readers. The applier's thread, of a replica. */
int keeper__apply(struct keeper *keeper, const struct entry *entry);

/* True where some ids are handed over by a rule about numbers alone, which no
 * name goes by. Under edit_lock. */
bool keeper__has_numbers_only(const struct keeper *keeper);

/* Has the ids of the rule be at the address, or with "" here again. *seq is the
 * entry's batch; it stays as it is where none was needed. 0; ERR_NOT_PRIMARY,
 * ERR_MANY_HANDOVERS, ERR_NAMES_RULE where a counter's ids are names and the
 * rule is about numbers, ERR_NO_MEMORY, or what is wrong with the log: nothing
 * has changed. Takes edit_lock itself; waits for changes under way, a second
 * or so where they wait for room. The keeper's thread. */
int keeper__hand_over(
    struct keeper *keeper, const struct moved_one *one, uint64_t *seq);

/* As keeper__apply, for an ENTRY_MOVED. */
int keeper__apply_moved(struct keeper *keeper, const struct moved_one *one);

#endif

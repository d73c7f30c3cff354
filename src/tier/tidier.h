/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_TIDIER_H
#define TIER_TIDIER_H

#include "durable/checkpoint.h"
#include "tier/reheat.h"
#include "tier/seal_tidy.h"
#include "tier/states.h"

enum { TIDIER_MAGIC = 0x4d87b2e9 };

/* What the sealer does with cold ranges while nothing presses: joins, merges,
 * ranges that become hot. Part of the store; nobody else calls it. */
struct tidier {
    uint32_t magic; /* TIDIER_MAGIC */
    /* enum tidier_state: of the sealer's thread, but from SETTLING on, which
     * the checkpointer's ends; others read it for figures. */
    _Atomic unsigned state;
    struct seal *seal;
    struct checkpointer *checkpointer; /* the store's */
    uint64_t hot_bytes;                /* budget of the hot tables */
    struct seal_tidy_bounds bounds;
    /* The work under way, if any: the sealer's thread. */
    struct seal_range range;
    enum seal_tidy_kind kind;
    struct seal_work *work;
    struct reheat *reheat;
    uint64_t look_ns;   /* the next look */
    unsigned n_failed;  /* since something came through */
    unsigned next_slot; /* to be looked at */
    /* The manifest that is to have the last one. */
    struct store_checkpoint settle;
};

/* *tidier is all zero; its state may be read by any thread meanwhile. What
 * belongs to others outlives it. */
void tidier_init(struct tidier *tidier, struct seal *seal,
    struct checkpointer *checkpointer, uint64_t hot_bytes,
    const struct seal_tidy_bounds *bounds);

/* What it is at. Any thread; a figure, but for the sealer's. */
enum tidier_state tidier_state(const struct tidier *tidier);

/* Works for a slice, if there is something to do. used_bytes: of the hot
 * tables. The sealer's thread. */
void tidier_turn(struct tidier *tidier, uint64_t used_bytes);

/* Ids first_id..last_id of a counter have been sealed: what is under way with
 * some of them comes to nothing. The sealer's thread. */
void tidier_note(struct tidier *tidier, const struct seal_range *range);

/* Gives up what is under way. The sealer's thread, or nobody's any more. */
void tidier_stop(struct tidier *tidier);

#endif

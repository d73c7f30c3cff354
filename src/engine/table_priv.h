/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_PRIV_H
#define ENGINE_TABLE_PRIV_H

#include "engine/hook.h"
#include "engine/table.h"

/* How anything is stored that readers may look at, for table.c and
 * table_change.c. Under the shard's lock. */

/* The sequence counter of stashes, after those of lines. */
enum { TABLE__STRIPE_STASH = TABLE_STRIPES };

/* What readers look at goes under the stripes; a table without stripes has no
 * readers yet. */
static inline _Atomic uint32_t *
table__stripe(const struct table_owner *owner, unsigned stripe)
{
    return stripe == TABLE__STRIPE_STASH ? &owner->stripes->stash
                                         : &owner->stripes->line[stripe];
}

static inline void
table__begin(const struct table_owner *owner, unsigned stripe)
{
    if (owner->stripes != NULL) {
        _Atomic uint32_t *it = table__stripe(owner, stripe);
        /* relaxed, written under the lock only. It is seen before what it
         * guards: every store of that is a release. */
        uint32_t now = atomic_load_explicit(it, memory_order_relaxed);
        atomic_store_explicit(it, now + 1, memory_order_relaxed);
    }
}

static inline void
table__end(const struct table_owner *owner, unsigned stripe)
{
    if (owner->stripes != NULL) {
        _Atomic uint32_t *it = table__stripe(owner, stripe);
        /* relaxed: see table__begin */
        uint32_t now = atomic_load_explicit(it, memory_order_relaxed);
        /* release: who sees it even again sees all that was stored before */
        atomic_store_explicit(it, now + 1, memory_order_release);
    }
}

static inline void
table__store_line(const struct table_owner *owner, struct table *table,
    uint32_t line, const struct line_copy *copy)
{
    table__begin(owner, line % TABLE_STRIPES);
    ENGINE_HOOK("line store");
    line_store(table_line(table, line), copy);
    table__end(owner, line % TABLE_STRIPES);
}

/* Its records are not those any more that were copied, or looked at, last. The
 * line of the marks is written only where one says otherwise: one test for all
 * of them. */
static inline void
table__mark_changed(struct table *table)
{
    unsigned marks = (unsigned)table->is_clean | (unsigned)table->is_quiet;
    if ((marks | table->copied) != 0) {
        table->is_clean = false;
        table->is_quiet = false;
        table->copied = 0;
    }
}

/* A record stays in its line and keeps its shape, and nothing else changes.
 * columns: those that may differ. In table_change.c. */
void table__put_in_place(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code, uint32_t columns);

#endif

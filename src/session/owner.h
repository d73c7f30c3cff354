/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_OWNER_H
#define SESSION_OWNER_H

#include "base/log.h"
#include "base/owns.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Whose ids are whose, as sessions ask it: the rule of --owns, which may be
 * exchanged while they run. */
struct owner {
    /* Never NULL. Whoever exchanges it frees the old one when all readers of
     * the store's qsbr have been quiescent since. */
    const struct owns *_Atomic owns;
    bool misses; /* --owns-miss: another server's id is a miss, no error */
    struct logger *logger;
};

/* The rule now; until the calling thread, an online reader of the store's
 * qsbr, is quiescent. */
static inline const struct owns *
owner_rule(const struct owner *owner)
{
    /* acquire: with the release of owner_exchange, all of the rule */
    return atomic_load_explicit(&owner->owns, memory_order_acquire);
}

/* Makes owns the rule; the old one. One thread at a time. */
static inline const struct owns *
owner_exchange(struct owner *owner, const struct owns *owns)
{
    /* seq_cst: see store_schema */
    return atomic_exchange(&owner->owns, owns);
}

#endif

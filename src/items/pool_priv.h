/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_POOL_PRIV_H
#define ITEMS_POOL_PRIV_H

#include "items/pool.h"

/* What pool.c and loan.c share; for the tests too. */

void items__pool_lock(struct pool *pool);
void items__pool_unlock(struct pool *pool);

/* The others assert that the lock is held. */

/* Where the limit goes: to the wanted one, and what is lent above the bound
 * that follows from it. */
uint64_t items__pool_aim(const struct pool *pool);

/* The limit goes there, as far as what is held lets it. */
void items__pool_sink(struct pool *pool);

/* The segment goes to the queue where it now belongs, if it is in one. */
void items__pool_sort(struct pool *pool, struct segment *segment);

#endif

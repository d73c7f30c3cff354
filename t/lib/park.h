/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_PARK_H
#define LIB_PARK_H

#include "store/store.h"

/* A store in front of another one that answers about half of the calls later,
 * from a thread of its own and in an order of its own: what a cold read or a
 * log that is behind will do. Answers are the inner store's. Changes wait for
 * commits, half of which come later from another thread. */

/* inner must outlive it. seed chooses which calls are parked. 0 or
 * ERR_NO_MEMORY, ERR_SYSTEM. */
int park_create(struct store *inner, uint64_t seed, struct store **out);

/* From now on about one commit in so many fails, for the changes that wait for
 * it; 0: none. The store is well again at once. Any thread. */
void park_fail(struct store *outer, unsigned one_in);

/* Does what is still parked, then frees *outer and nulls it. */
void park_destroy(struct store **outer);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_PARK_H
#define LIB_PARK_H

#include "store/store.h"

/* A store in front of another one that answers about half of the calls later,
 * from a thread of its own and in an order of its own: what a cold read or a
 * log that is behind will do. Answers are the inner store's. */

/* inner must outlive it. seed chooses which calls are parked. 0 or
 * ERR_NO_MEMORY, ERR_SYSTEM. */
int park_create(struct store *inner, uint64_t seed, struct store **out);

/* Does what is still parked, then frees *outer and nulls it. */
void park_destroy(struct store **outer);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_NAMES_H
#define STORE_STORE_NAMES_H

#include "call/store_calls.h"

/* The names that ids of some counters are (primarykey=text), in a store of
 * store_create. */

struct real_store;
struct store_config;

/* Makes them, behind the engine, which asks them from then on. 0, ERR_HOT_FULL
 * or ERR_NO_MEMORY. */
int store_names__create(struct real_store *real,
    const struct store_config *config, unsigned shards, uint64_t seed);

/* See struct store_calls. */
void store_names__stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context);

#endif

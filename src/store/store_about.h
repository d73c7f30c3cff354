/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_ABOUT_H
#define STORE_STORE_ABOUT_H

#include "call/store_calls.h"

/* The calls of a store about members=about; see struct store_calls. */
void store_about__get(struct store *store, struct store_about *about);
void store_about__add(struct store *store, struct store_about *about);
bool store_about__stats(struct store *store, uint32_t *serial,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context);

#endif

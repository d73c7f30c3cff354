/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_HOLD_H
#define LIB_HOLD_H

#include "lib/outcomes.h"
#include "store/store.h"

#include <stdbool.h>

/* A store in front of another one that holds calls until it is told to let
 * them go, so that a test says what happens meanwhile. It can also play the
 * log: then a test says which changes are committed. */

/* Passes calls on at first. inner must outlive it. 0 or ERR_NO_MEMORY. */
int hold_create(struct store *inner, struct store **out);

/* Whether calls from now on are held: reads and changes, and schema edits
 * if edits is true. Any thread. */
void hold_begin(struct store *store, bool edits);
void hold_end(struct store *store);

/* Changes done from now on get numbers, and wait until the test has them
 * committed or fail through what is returned; or they get none any more. The
 * store's fault is that of the outcomes. Any thread. */
struct outcomes *hold_log(struct store *store, bool logs);

/* Returns when n calls are held. */
void hold_wait(struct store *store, unsigned n);

/* Does the calls held so far, in order, on the calling thread; returns how
 * many there were. */
unsigned hold_release(struct store *store);

/* Nothing may be held. Frees *outer and nulls it. */
void hold_destroy(struct store **outer);

#endif

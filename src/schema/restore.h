/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCHEMA_RESTORE_H
#define SCHEMA_RESTORE_H

#include "schema/schema.h"

#include <stdint.h>

/* A schema as it was, from what was stored of it: counters as they were, with
 * their slots and serial numbers, one after the other. Of counters of pairs
 * nothing is stored: each comes and goes with its column of members. A mark or
 * a list may be restored before what it is about, and that may go before it:
 * schema_check tells whether all is there in the end. */

/* The last serial number given out, to what lives or not. */
uint32_t schema_last_serial(const struct schema *schema);

/* *out is a new schema (the caller's) with that counter in its slot, where
 * old has none or one of the same serial, which it replaces; old is untouched.
 * last_serial: the last one given out by then; that of *out is this or old's,
 * whichever is higher. 0, ERR_NO_MEMORY, or ERR_CORRUPT where no schema that
 * was made by edits of old's counters could have such a counter: the slot, or
 * that of its pairs, is another's, a name or a serial is in use or impossible,
 * a number out of its range. */
int schema_restore(const struct schema *old,
    const struct schema_counter *counter, uint32_t last_serial,
    struct schema **out);

/* The same without the counter of that serial. 0, ERR_NO_MEMORY, or
 * ERR_CORRUPT where there is none, it is one of pairs, or last_serial is below
 * it. */
int schema_restore_drop(const struct schema *old, uint32_t counter_serial,
    uint32_t last_serial, struct schema **out);

/* True where what a column has beside its widths is of its kind, as far as it
 * alone can tell. */
bool schema_kind_is_sound(const struct schema_column *column);

/* True where columns of members fit their counter: each counts in a number of
 * it with default 0, no two in the same, and their pairs have slots of their
 * own. */
bool schema_members_are_sound(const struct schema_counter *counter);

/* 0, or ERR_CORRUPT where a mark or a list is about a column that there is not,
 * or that it cannot be about: then schema is no one that edits have made, and
 * only fit to be destroyed. */
int schema_check(const struct schema *schema);

/* The same counters, of a time when last_serial had been given out. 0 or
 * ERR_NO_MEMORY. */
int schema_restore_serial(
    const struct schema *old, uint32_t last_serial, struct schema **out);

#endif

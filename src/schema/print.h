/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCHEMA_PRINT_H
#define SCHEMA_PRINT_H

#include "base/buf.h"
#include "schema/schema.h"

/* Appends the lines of the schema language, each ended by CR LF, that would
 * make this counter of schema again, where the columns of others that its
 * marks and lists are about are there: "add counter" with the options that
 * differ from their defaults, then "add column" for the key, if there is one,
 * and for each column in order. 0 or ERR_NO_MEMORY (out then holds a part of
 * it). */
int schema_print(const struct schema *schema,
    const struct schema_counter *counter, struct buf *out);

/* The same of all counters, in an order that makes them again: by slot, but
 * what is about a column of a later one, and the columns behind that, stand
 * behind it. */
int schema_print_all(const struct schema *schema, struct buf *out);

/* Appends the first of these lines with "largest=" behind it, which has ids up
 * to largest let in, and those up to maxjump above it. As schema_print. */
int schema_print_largest(
    const struct schema_counter *counter, uint64_t largest, struct buf *out);

/* Appends the line of a CHANGE_COUNTER or CHANGE_COLUMN, without its end. */
void schema_print_change(const struct schema_edit *change, struct buf *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCHEMA_PRINT_H
#define SCHEMA_PRINT_H

#include "base/buf.h"
#include "schema/schema.h"

/* Appends the lines of the schema language, each ended by CR LF, that would
 * make this counter again: "add counter" with the options that differ from
 * their defaults, then "add column" for the key, if there is one, and for
 * each column in order. 0 or ERR_NO_MEMORY (out then holds a part of it). */
int schema_print(const struct schema_counter *counter, struct buf *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_SCHEMA_CODE_H
#define WAL_SCHEMA_CODE_H

#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A counter with its columns, serials and slots as bytes, in the log and in
 * the manifest (doc/format-log.md). Pure; any thread. */

enum { SCHEMA_CODE_BYTES_MAX = 4608 };

/* Returns the length. out: room for SCHEMA_CODE_BYTES_MAX. */
size_t schema_code_put(uint8_t *out, const struct schema_counter *counter);

/* True where the bytes have what tallyd did not know before there were marks,
 * lists and cold=never: a program of then takes them for no counter. */
bool schema_code_has_kinds(const struct schema_counter *counter);

/* The same of members=about. */
bool schema_code_has_about(const struct schema_counter *counter);

/* Reads one at *in and moves *in behind it; places of column that are not in
 * use become zero. False, with *in untouched, where bytes do not make one: cut
 * off, a number out of its range, a name that is none or stands twice, an
 * option that this version does not know. */
bool schema_code_get(
    const uint8_t **in, const uint8_t *end, struct schema_counter *out);

#endif

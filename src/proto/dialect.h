/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_DIALECT_H
#define PROTO_DIALECT_H

#include "base/buf.h"
#include "proto/request.h"
#include "proto/words.h"
#include "schema/schema.h"

/* The telnet dialect: the schema language and commands on whole records
 * (doc/protocol.md). */

/* Looks whether the line is dialect: command is its first word, words stands
 * behind it. If so, fills *out (op ERROR where the line is malformed) and
 * returns true. False, with *out untouched, where memcached's grammar
 * applies. */
bool dialect_parse(struct span command, struct words words,
    const struct schema *schema, struct request *out);

/* Looks whether a set, add or replace is about a counter that the schema does
 * not have (words as above): whoever typed it would wait for an answer, behind
 * which a data block is awaited. If so, fills *out and returns true. */
bool dialect__parse_unknown(
    struct span command, struct words words, struct request *out);

/* Makes the edit that a SCHEMA_EDIT request asks for; bytes[0] is its first
 * byte. 0 or an ERR_ of schema_edit_parse. */
int dialect_edit(
    const char *bytes, const struct request *request, struct schema_edit *out);

/* Appends the help text, one command a line, ended by END. */
void dialect_help(struct buf *out);

#endif

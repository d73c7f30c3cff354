/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_REPLY_H
#define PROTO_REPLY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replies of the text protocol, appended to a buffer. */

/* "line\r\n" */
void reply_line(struct buf *out, const char *line);

/* "CLIENT_ERROR <text of err>\r\n", or SERVER_ERROR where the fault is on our
 * side: memory, the disk, loading, a stop. */
void reply__error(struct buf *out, int err);

/* The same with "(<detail>)" behind the text; of NOT_PRIMARY without the
 * brackets: where the primary is. */
void reply__error_about(struct buf *out, int err, const char *detail);

/* True where reply__error says SERVER_ERROR. */
bool reply_is_server_error(int err);

/* "number\r\n" */
void reply_number(struct buf *out, uint64_t number);

/* "VALUE <key> <flags> <len>[ <cas>]\r\n<value>\r\n"; cas NULL: none. */
void reply_value(struct buf *out, const char *key, size_t key_len,
    uint32_t flags, const char *value, size_t value_len, const uint64_t *cas);

/* The same but for the bytes of the value: where they belong in out. */
size_t reply_value_around(struct buf *out, const char *key, size_t key_len,
    uint32_t flags, size_t value_len, const uint64_t *cas);

/* Numbers separated by one space to text (room for n * 21 bytes); returns the
 * bytes written. */
size_t reply_join_u64(const uint64_t *number, size_t n, char *text);

#endif

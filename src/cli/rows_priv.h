/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_ROWS_PRIV_H
#define CLI_ROWS_PRIV_H

#include "base/num.h"
#include "cli/rows.h"

#include <string.h>

/* Inside of rows*.c. */

struct rows_span {
    const char *at;
    size_t len;
};

static inline bool
rows__is_text(struct rows_span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.at, text, span.len) == 0;
}

static inline bool
rows__is_name(struct rows_span span, const struct schema_name *name)
{
    return span.len == name->len && memcmp(span.at, name->text, span.len) == 0;
}

static inline bool
rows__number(struct rows_span span, uint64_t *out)
{
    return num_parse_u64(span.at, span.len, out);
}

/* Bytes of the letter of UTF-8 that text begins with, 1..4; 0: it is none. */
size_t rows__utf8_len(const char *text, size_t len);

/* Writes the name that is a string of ndjson, without its quotes, and its
 * length; false: there is none, or it is too long. */
bool rows__unescape(
    struct rows_span text, char out[NAME_BYTES_MAX], size_t *len);

/* As rows_column_of and rows_members_of. */
int rows__column_of(const struct rows_columns *columns, struct rows_span name);
int rows__members_of(
    const struct rows_columns *columns, struct rows_span name);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_SCHEMA_TEXT_H
#define CLI_SCHEMA_TEXT_H

#include "base/buf.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>

/* Lines of the schema language: of a file, of a server's answers; and what
 * makes one schema of another. Pure. A line is "add counter ...", "add column
 * ...", and the same with "change" or "drop". */

enum { SCHEMA_TEXT_WHY_MAX = 400 };

/* Makes *schema, which is empty, of the lines of a file, in their order; of
 * comments (#) and empty lines nothing. False with why, which begins with the
 * number of the line and a colon. *n_largest: lines with largest=. */
bool schema_text_read(const struct buf *text, struct schema **schema,
    unsigned *n_largest, char why[SCHEMA_TEXT_WHY_MAX]);

/* Appends the lines that make it, each ended by a newline. False where memory
 * is out. */
bool schema_text_lines(const struct schema *schema, struct buf *out);

/* Applies all lines to *schema in an order in which it can be done, and appends
 * them to done in that order, each ended by a newline. False with why where
 * some are left that cannot; *schema then has those of done. */
bool schema_text_apply(const struct buf *lines, struct schema **schema,
    struct buf *done, char why[SCHEMA_TEXT_WHY_MAX]);

/* What makes `to` of `from`: lines in no order, each ended by a newline. */
struct schema_text_diff {
    struct buf drop, change, add;
    struct buf changed; /* for people: what both have, and differs in what no
                         * server changes */
    unsigned n_drop, n_change, n_add, n_changed;
    bool is_order_other; /* columns that both have stand in another order, or
                          * one that is new stands before one of these */
};

/* The bufs are the caller's in any case, by schema_text_diff_fini. False where
 * memory is out. */
bool schema_text_diff_make(const struct schema *from, const struct schema *to,
    struct schema_text_diff *diff);
void schema_text_diff_fini(struct schema_text_diff *diff);

#endif

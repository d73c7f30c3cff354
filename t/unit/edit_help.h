/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_EDIT_HELP_H
#define UNIT_EDIT_HELP_H

/* Schema edits made of the lines that a person types. */

#include "schema/schema.h"
#include "unit/check_help.h"

enum { EDIT_WORDS = 12 };

/* The op of the line's first two words; what is behind goes to *rest. */
static inline enum schema_edit_op
edit_op(const char *line, const char **rest)
{
    static const char *const starts[] = {[SCHEMA_ADD_COUNTER] = "add counter ",
        [SCHEMA_ADD_COLUMN] = "add column ",
        [SCHEMA_CHANGE_COUNTER] = "change counter ",
        [SCHEMA_CHANGE_COLUMN] = "change column ",
        [SCHEMA_DROP_COLUMN] = "drop column ",
        [SCHEMA_DROP_COUNTER] = "drop counter "};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        if (strncmp(line, starts[i], strlen(starts[i])) == 0) {
            *rest = line + strlen(starts[i]);
            return (enum schema_edit_op)i;
        }
    }
    ck_abort_msg("not an edit: %s", line);
}

/* The words of rest; returns how many. */
static inline size_t
edit_words(const char *rest, struct schema_word word[EDIT_WORDS])
{
    size_t n = 0;
    while (*rest != '\0') {
        size_t len = strcspn(rest, " ");
        ck_assert_uint_lt(n, EDIT_WORDS);
        word[n++] = (struct schema_word){rest, len};
        rest += len + strspn(rest + len, " ");
    }
    return n;
}

static inline struct schema_edit
edit_of(const char *line)
{
    const char *rest;
    struct schema_word word[EDIT_WORDS];
    struct schema_edit edit;
    enum schema_edit_op op = edit_op(line, &rest);
    size_t n = edit_words(rest, word);
    ck_assert_int_eq(schema_edit_parse(op, word, n, &edit), 0);
    return edit;
}

#endif

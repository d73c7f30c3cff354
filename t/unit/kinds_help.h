/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_KINDS_HELP_H
#define UNIT_KINDS_HELP_H

/* A schema with two marks and a list, made by lines. */

#include "base/err.h"
#include "schema/schema.h"
#include "unit/edit_help.h"

static inline int
try(struct schema **schema, const char *line)
{
    struct schema_edit edit = edit_of(line);
    struct schema *next = NULL;
    int err = schema_apply(*schema, &edit, &next);
    if (err == 0) {
        schema_destroy(schema);
        *schema = next;
    } else {
        ck_assert_ptr_null(next);
    }
    return err;
}

static inline void
apply(struct schema **schema, const char *line)
{
    int err = try(schema, line);
    ck_assert_msg(err == 0, "%s: %s", line, err_text(err));
}

/* A line, and what schema_edit_parse says to it. */
struct parsed {
    int err;
    const char *line;
};

static inline int
parse(const char *line)
{
    struct schema_edit edit;
    const char *rest;
    struct schema_word word[EDIT_WORDS];
    enum schema_edit_op op = edit_op(line, &rest);
    return schema_edit_parse(op, word, edit_words(rest, word), &edit);
}

static inline void
expect_parsed(const struct parsed *parsed, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int err = parse(parsed[i].line);
        ck_assert_msg(err == parsed[i].err, "%s: \"%s\" instead of \"%s\"",
            parsed[i].line, err_text(err), err_text(parsed[i].err));
    }
}

/* board with a dot, author whose posts are followed, user with numbers. */
static inline struct schema *
some_schema(void)
{
    static const char *const lines[] = {"add counter board", /* 1 */
        "add column board bid primarykey",
        "add column board dot hint=7 max=40 default=3 suffix=d",       /* 2 */
        "add counter author cold=never",                               /* 3 */
        "add column author aid primarykey", "add column author posts", /* 4 */
        "add counter user",                                            /* 5 */
        "add column user uid primarykey",
        "add column user at_num hint=9 max=48 suffix=at" /* 6 */};
    struct schema *schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&schema, lines[i]);
    }
    return schema;
}

#define SEEN                                                                  \
    "add column user at_seen suffix=atseen flags=5 marks=at_num unread=unat"
#define DOT                                                                   \
    "add column user dot_seen marks=1.dot unread=undot unmarked=none "        \
    "forget=2592000"
#define FEED "add column user feed suffix=f flags=6 follows=posts"

static inline struct schema *
full_schema(void)
{
    struct schema *schema = some_schema();
    apply(&schema, SEEN); /* 7 */
    apply(&schema, DOT);  /* 8 */
    apply(&schema, FEED); /* 9 */
    return schema;
}

static inline struct schema_target
found(const struct schema *schema, const char *name)
{
    struct schema_target target;
    ck_assert_msg(
        schema_find(schema, name, strlen(name), &target), "%s", name);
    return target;
}

static inline const struct schema_counter *
counter_of(const struct schema *schema, const char *name)
{
    const struct schema_counter *counter =
        schema_counter(schema, name, strlen(name));
    ck_assert_ptr_nonnull(counter);
    return counter;
}

#endif

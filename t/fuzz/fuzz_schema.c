/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the schema language: lines are applied one after the other; what is
 * refused changes nothing, what is accepted can be found, and a counter that
 * is printed and read again prints the same. */
#include "base/assert.h"
#include "base/buf.h"
#include "schema/print.h"
#include "schema/schema.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORDS_MAX = 12 };

static const char *const starts[] = {[SCHEMA_ADD_COUNTER] = "add counter",
    [SCHEMA_ADD_COLUMN] = "add column",
    [SCHEMA_CHANGE_COUNTER] = "change counter",
    [SCHEMA_CHANGE_COLUMN] = "change column",
    [SCHEMA_DROP_COLUMN] = "drop column",
    [SCHEMA_DROP_COUNTER] = "drop counter"};

/* The words of a line, at most WORDS_MAX. */
static size_t
split(const char *line, size_t len, struct schema_word *word)
{
    size_t n = 0;
    for (size_t at = 0; at < len && n < WORDS_MAX;) {
        const char *space = memchr(line + at, ' ', len - at);
        size_t end = space == NULL ? len : (size_t)(space - line);
        if (end > at) {
            word[n++] = (struct schema_word){line + at, end - at};
        }
        at = end + 1;
    }
    return n;
}

/* 0 and *edit, or an error; a line that is no edit at all is one too. */
static int
parse(const char *line, size_t len, struct schema_edit *edit)
{
    struct schema_word word[WORDS_MAX];
    for (size_t op = 0; op < sizeof starts / sizeof *starts; op++) {
        size_t n = strlen(starts[op]);
        if (len >= n && memcmp(line, starts[op], n) == 0) {
            return schema_edit_parse((enum schema_edit_op)op, word,
                split(line + n, len - n, word), edit);
        }
    }
    return -1;
}

static void
check_found(const struct schema *schema, const struct schema_edit *edit)
{
    const struct schema_name *name = &edit->counter.name;
    const struct schema_counter *counter =
        schema_counter(schema, name->text, name->len);
    switch (edit->op) {
    case SCHEMA_ADD_COUNTER:
    case SCHEMA_ADD_COLUMN:
    case SCHEMA_CHANGE_COUNTER:
    case SCHEMA_CHANGE_COLUMN:
        ASSERT(counter != NULL);
        /* a name that is left may be that of nothing */
        ASSERT(edit->new_name.len > 0 || schema_has_same(schema, edit));
        ASSERT(schema_counter_at(schema, counter->slot) == counter);
        break;
    case SCHEMA_DROP_COLUMN:
        ASSERT(counter != NULL);
        ASSERT(schema_counter_column(counter, edit->column.name.text,
                   edit->column.name.len) == NULL);
        break;
    case SCHEMA_DROP_COUNTER:
        ASSERT(counter == NULL);
        break;
    }
}

/* Applies a line to *schema. */
static void
apply(struct schema **schema, const char *line, size_t len)
{
    struct schema_edit edit;
    struct schema *next = NULL;
    uint64_t version = schema_version(*schema);
    if (parse(line, len, &edit) != 0) {
        return;
    }
    if (schema_apply(*schema, &edit, &next) != 0) {
        ASSERT(next == NULL && schema_version(*schema) == version);
        return;
    }
    ASSERT(schema_version(next) == version + 1);
    check_found(next, &edit);
    schema_destroy(schema);
    *schema = next;
}

static void
apply_lines(struct schema **schema, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t end = newline == NULL ? len : (size_t)(newline - text);
        size_t line_len = end - at;
        if (line_len > 0 && text[end - 1] == '\r') {
            line_len--;
        }
        apply(schema, text + at, line_len);
        at = end + 1;
    }
}

static void
print_all(const struct schema *schema, struct buf *out)
{
    int err = schema_print_all(schema, out);
    ASSERT(err == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct schema *schema = schema_create();
    struct schema *again = schema_create();
    struct buf printed = {0};
    struct buf reprinted = {0};
    ASSERT(schema != NULL && again != NULL);
    apply_lines(&schema, (const char *)bytes, len);
    print_all(schema, &printed);
    apply_lines(&again, printed.data, printed.len);
    print_all(again, &reprinted);
    ASSERT(printed.len == reprinted.len);
    ASSERT(printed.len == 0 ||
        memcmp(printed.data, reprinted.data, printed.len) == 0);
    buf_fini(&printed);
    buf_fini(&reprinted);
    schema_destroy(&schema);
    schema_destroy(&again);
    return 0;
}

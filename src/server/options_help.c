/* SPDX-License-Identifier: BSD-3-Clause */
/* What the option tables say to people: --help and the OPTIONS of tallyd(1).
 * Nothing here names an option; what can go wrong is only memory, which the
 * buffer's owner checks. */
#include "server/options.h"

#include <string.h>

enum {
    TEXT_COLUMN = 32, /* where the descriptions begin */
    LINE_COLUMNS = 79
};

static bool
has_optional_argument(const struct options_row *row)
{
    return row->type == OPTIONS_TYPE_HELP;
}

/* "  -p, --port=NUM" */
static void
add_names(const struct options_row *row, struct buf *out)
{
    if (row->letter != 0) {
        buf_addf(out, "  -%c, --%s", row->letter, row->name);
    } else {
        buf_addf(out, "      --%s", row->name);
    }
    if (row->argument != NULL) {
        bool optional = has_optional_argument(row);
        buf_addf(out, "%s=%s%s", optional ? "[" : "", row->argument,
            optional ? "]" : "");
    }
}

/* Appends the words of text, wrapped, indented by TEXT_COLUMN; column is
 * where the line stands. */
static void
add_wrapped(const char *text, size_t column, struct buf *out)
{
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        bool breaks = column >= TEXT_COLUMN && column + 1 + len > LINE_COLUMNS;
        if (breaks || column < TEXT_COLUMN) {
            size_t pad = breaks ? TEXT_COLUMN : TEXT_COLUMN - column;
            buf_addf(out, "%s%*s", breaks ? "\n" : "", (int)pad, "");
            column = TEXT_COLUMN;
        } else {
            buf_add(out, " ", 1);
            column++;
        }
        buf_add(out, text, len);
        column += len;
        text += len;
        text += *text == ' ';
    }
    buf_add(out, "\n", 1);
}

/* The description with its default. */
static void
add_description(const struct options_row *row, struct buf *out)
{
    buf_add_text(out, row->text);
    if (row->care == OPTIONS_CARE_IGNORED) {
        buf_add_text(out, "; taken and ignored");
    } else if (row->initial[0] != '\0' && row->type != OPTIONS_TYPE_COUNT) {
        buf_addf(out, " (default %s)", row->initial);
    }
}

/* The name of -o: "[no_]slab_automove[=0|1|2]". */
static void
add_extended_name(const struct options_row *row, struct buf *out)
{
    bool optional = row->form == OPTIONS_FORM_EITHER && row->argument != NULL;
    buf_addf(out, "%s%s",
        row->form == OPTIONS_FORM_EITHER        ? "[no_]"
            : row->form == OPTIONS_FORM_NEGATED ? "no_"
                                                : "",
        row->name);
    if (row->argument != NULL) {
        buf_addf(out, "%s=%s%s", optional ? "[" : "", row->argument,
            optional ? "]" : "");
    }
}

/* A row whose names have been appended, from before on. */
static void
add_text_column(const struct options_row *row, size_t before, struct buf *out)
{
    struct buf text = {0};
    size_t column = out->len - before;

    add_description(row, &text);
    buf_add(&text, "", 1);
    if (column + 1 >= TEXT_COLUMN) {
        buf_add(out, "\n", 1);
        column = 0;
    }
    if (!text.failed) {
        add_wrapped(text.data, column, out);
    }
    buf_fini(&text);
}

/* Programs, memcached's own tests among them, look into this text to know what
 * the server can do: what it cannot is only in the manual page. */
void
options_help(struct buf *out)
{
    buf_add_text(out,
        "usage: tallyd [OPTION]...\n"
        "A counter server that speaks the memcached protocol.\n\n");
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        if (options_row(i)->care == OPTIONS_CARE_REFUSED) {
            continue;
        }
        size_t before = out->len;
        add_names(options_row(i), out);
        add_text_column(options_row(i), before, out);
    }
    buf_add_text(out, "\nNames of -o, with commas between them:\n\n");
    for (enum options_extended_id i = 0; i < OPTIONS_EXTENDED_COUNT; i++) {
        if (options_extended_row(i)->care != OPTIONS_CARE_MET) {
            continue;
        }
        size_t before = out->len;
        buf_add_text(out, "  ");
        add_extended_name(options_extended_row(i), out);
        add_text_column(options_extended_row(i), before, out);
    }
    buf_add_text(out,
        "\nmemcached's other names are taken and ignored; tallyd(1) has them "
        "all.\n");
}

/* Appends text as roff: hyphens and backslashes escaped, and no control line
 * out of a line's first byte. */
static void
add_roff(const char *text, struct buf *out)
{
    if (*text == '.' || *text == '\'') {
        buf_add_text(out, "\\&");
    }
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '-':
            buf_add_text(out, "\\-");
            break;
        case '\\':
            buf_add_text(out, "\\e");
            break;
        default:
            buf_add(out, text, 1);
        }
    }
}

static void
add_man_text(const struct options_row *row, struct buf *out)
{
    struct buf text = {0};

    add_description(row, &text);
    buf_add(&text, "", 1);
    if (!text.failed) {
        add_roff(text.data, out);
    }
    buf_add(out, "\n", 1);
    buf_fini(&text);
}

static void
add_man_row(const struct options_row *row, struct buf *out)
{
    buf_add_text(out, ".TP\n");
    if (row->letter != 0) {
        buf_addf(out, "\\fB\\-%c\\fR, ", row->letter);
    }
    buf_add_text(out, "\\fB\\-\\-");
    add_roff(row->name, out);
    buf_add_text(out, "\\fR");
    if (row->argument != NULL) {
        bool optional = has_optional_argument(row);
        buf_add_text(out, optional ? "[=\\fI" : "=\\fI");
        add_roff(row->argument, out);
        buf_add_text(out, optional ? "\\fR]" : "\\fR");
    }
    buf_add(out, "\n", 1);
    add_man_text(row, out);
}

/* The names of -o, indented below it. */
static void
add_man_extended(struct buf *out)
{
    buf_add_text(out, ".RS\n");
    for (enum options_extended_id i = 0; i < OPTIONS_EXTENDED_COUNT; i++) {
        const struct options_row *row = options_extended_row(i);
        struct buf name = {0};
        add_extended_name(row, &name);
        buf_add(&name, "", 1);
        buf_add_text(out, ".TP\n");
        if (!name.failed) {
            add_roff(name.data, out);
        }
        buf_add(out, "\n", 1);
        add_man_text(row, out);
        buf_fini(&name);
    }
    buf_add_text(out, ".RE\n");
}

void
options_help_man(struct buf *out)
{
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        add_man_row(options_row(i), out);
        if (options_row(i)->type == OPTIONS_TYPE_EXTENDED) {
            add_man_extended(out);
        }
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the option table says to people: --help, the OPTIONS of tallyd(1), and
 * `stats settings`. Nothing here names an option; what can go wrong is only
 * memory, which the buffer's owner checks. */
#include "server/options.h"

#include <inttypes.h>
#include <string.h>

enum {
    TEXT_COLUMN = 32, /* where the descriptions begin */
    LINE_COLUMNS = 79
};

/* Settings of memcached that have one value here: there is no switch. */
#define FIXED_SETTINGS(X)                                                     \
    X("udpport", "0")                                                         \
    X("evictions", "on")                                                      \
    X("shutdown_command", "no")                                               \
    X("cas_enabled", "yes")                                                   \
    X("auth_enabled_sasl", "no")                                              \
    X("auth_enabled_ascii", "no")                                             \
    X("maxconns_fast", "yes")                                                 \
    X("flush_enabled", "yes")                                                 \
    X("client_flags_size", "4")

static bool
has_optional_argument(const struct options_row *row)
{
    return row->type == OPTIONS_TYPE_HELP;
}

/* "  -p, --port=NUM"; returns the columns used. */
static size_t
add_names(const struct options_row *row, struct buf *out)
{
    size_t before = out->len;
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
    return out->len - before;
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
    if (row->initial[0] != '\0' && row->type != OPTIONS_TYPE_COUNT) {
        buf_addf(out, " (default %s)", row->initial);
    }
}

void
options_help(struct buf *out)
{
    struct buf text = {0};

    buf_add_text(out,
        "usage: tallyd [OPTION]...\n"
        "A counter server that speaks the memcached protocol.\n\n");
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        const struct options_row *row = options_row(i);
        buf_clear(&text);
        add_description(row, &text);
        buf_add(&text, "", 1);
        size_t column = add_names(row, out);
        if (column + 1 >= TEXT_COLUMN) {
            buf_add(out, "\n", 1);
            column = 0;
        }
        if (!text.failed) {
            add_wrapped(text.data, column, out);
        }
    }
    buf_fini(&text);
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
add_man_row(const struct options_row *row, struct buf *out)
{
    struct buf text = {0};

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
    add_description(row, &text);
    buf_add(&text, "", 1);
    if (!text.failed) {
        add_roff(text.data, out);
    }
    buf_add(out, "\n", 1);
    buf_fini(&text);
}

void
options_help_man(struct buf *out)
{
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        add_man_row(options_row(i), out);
    }
}

static void
add_addresses(const struct options_addresses *addresses, struct buf *out)
{
    for (unsigned i = 0; i < addresses->n; i++) {
        const struct options_address *address = &addresses->address[i];
        bool has_port = address->port != OPTIONS_NO_PORT;
        bool brackets = has_port && strchr(address->host, ':') != NULL;
        buf_addf(out, "%s%s%s%s", i == 0 ? "" : ",", brackets ? "[" : "",
            address->host, brackets ? "]" : "");
        if (has_port) {
            buf_addf(out, ":%d", address->port);
        }
    }
}

/* The word at a place of "this|that". */
static void
add_choice(const struct options_row *row, int place, struct buf *out)
{
    const char *word = row->argument;
    for (; place > 0; place--) {
        word += strcspn(word, "|") + 1;
    }
    buf_add(out, word, strcspn(word, "|"));
}

/* Appends the value of an option as memcached would show it. */
static void
add_value(const struct options_row *row, const void *field, struct buf *out)
{
    const struct options_text *text;

    switch (row->type) {
    case OPTIONS_TYPE_NUMBER:
    case OPTIONS_TYPE_POWER_OF_TWO:
    case OPTIONS_TYPE_COUNT:
        buf_addf(out, "%d", *(const int *)field);
        break;
    case OPTIONS_TYPE_CHOICE:
        add_choice(row, *(const int *)field, out);
        break;
    case OPTIONS_TYPE_OCTAL:
        buf_addf(out, "%o", (unsigned)*(const int *)field);
        break;
    case OPTIONS_TYPE_BYTES:
    case OPTIONS_TYPE_BYTES_OR_AUTO:
    case OPTIONS_TYPE_MEGABYTES:
        buf_addf(out, "%" PRIu64, *(const uint64_t *)field);
        break;
    case OPTIONS_TYPE_FLAG:
    case OPTIONS_TYPE_HELP:
    case OPTIONS_TYPE_VERSION:
        buf_add_text(out, *(const bool *)field ? "yes" : "no");
        break;
    case OPTIONS_TYPE_TEXT:
    case OPTIONS_TYPE_PATH:
    case OPTIONS_TYPE_DIRECTORY:
        text = field;
        buf_add_text(out, text->text[0] == '\0' ? "NULL" : text->text);
        break;
    case OPTIONS_TYPE_LISTEN:
        add_addresses(field, out);
        break;
    }
}

void
options_each_setting(const struct options *options,
    void (*setting_fn)(void *context, const char *name, const char *value),
    void *context)
{
    struct buf value = {0};

    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        const struct options_row *row = options_row(i);
        if (row->setting == NULL) {
            continue;
        }
        buf_clear(&value);
        add_value(row, (const char *)options + row->offset, &value);
        buf_add(&value, "", 1);
        if (!value.failed) {
            setting_fn(context, row->setting, value.data);
        }
    }
    buf_fini(&value);
#define X(name, text) setting_fn(context, name, text);
    FIXED_SETTINGS(X)
#undef X
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line, option by option, and its explanations. What the options
 * mean is the caller's. */
#include "client/command_line.h"

#include "base/assert.h"
#include "base/num.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_COLUMN = 24, LINE_COLUMNS = 79 };

bool
command_line_fail(struct command_line *line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(line->why, sizeof line->why, format, list);
    va_end(list);
    return false;
}

bool
command_line_number(struct command_line *line, unsigned row, const char *text,
    uint64_t least, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    if (!num_parse_u64(text, strlen(text), &value) || value < least ||
        value > most) {
        return command_line_fail(line, "--%s is %" PRIu64 " to %" PRIu64,
            line->row[row].name, least, most);
    }
    *out = value;
    return true;
}

bool
command_line_login(struct command_line *line, unsigned row, const char *path,
    char login[COMMAND_LINE_LOGIN_MAX + 1])
{
    const char *name = line->row[row].name;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return command_line_fail(
            line, "--%s: %s: %s", name, path, strerror(errno));
    }
    bool is_read = fgets(login, COMMAND_LINE_LOGIN_MAX + 1, file) != NULL;
    (void)fclose(file);
    size_t len = is_read ? strcspn(login, "\r\n") : 0;
    char *colon = len == 0 ? NULL : memchr(login, ':', len);
    if (colon == NULL || colon == login || colon == login + len - 1 ||
        len == COMMAND_LINE_LOGIN_MAX) {
        return command_line_fail(
            line, "--%s: %s has no line USER:PASSWORD", name, path);
    }
    login[len] = '\0';
    *colon = ' ';
    return true;
}

static int
argument_of(const struct command_line_row *row)
{
    return strcmp(row->name, "help") == 0 ? optional_argument
        : row->argument[0] == '\0'        ? no_argument
                                          : required_argument;
}

/* What is left is no option; getopt_long has moved it behind the options. */
static bool
take_words(struct command_line *line, int argc, char *const argv[])
{
    for (; optind < argc; optind++) {
        if (line->n_words == line->n_words_max) {
            return command_line_fail(line, "%s: %s; see --help", argv[optind],
                line->n_words_max == 0 ? "not an option"
                                       : "one word too many");
        }
        line->word[line->n_words++] = argv[optind];
    }
    return true;
}

bool
command_line_read(struct command_line *line, int argc, char *const argv[])
{
    struct option options[COMMAND_LINE_ROWS_MAX + 1] = {{0}};
    ASSERT(line->n_rows > 0 && line->n_rows <= COMMAND_LINE_ROWS_MAX);
    ASSERT(line->n_words_max <= COMMAND_LINE_WORDS_MAX);
    for (unsigned i = 0; i < line->n_rows; i++) {
        options[i] = (struct option){.name = line->row[i].name,
            .has_arg = argument_of(&line->row[i]),
            .val = (int)i + 1};
    }
    optind = 0;
    opterr = 0;
    while (true) {
        int at = optind == 0 ? 1 : optind;
        int found = getopt_long(argc, argv, "", options, NULL);
        if (found == -1) {
            break;
        }
        if (found < 1 || (unsigned)found > line->n_rows) {
            return command_line_fail(line,
                "%s: unknown, or something is missing behind it; see --help",
                argv[at]);
        }
        if (!line->take_fn(line, (unsigned)found - 1, optarg)) {
            return false;
        }
    }
    return take_words(line, argc, argv);
}

static void
add_wrapped(const char *text, struct buf *out)
{
    size_t column = TEXT_COLUMN - 1;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (column + 1 + len > LINE_COLUMNS) {
            buf_addf(out, "\n%*s", TEXT_COLUMN - 1, "");
            column = TEXT_COLUMN - 1;
        }
        buf_add_text(out, " ");
        buf_add(out, text, len);
        column += len + 1;
        text += len;
        text += *text == ' ';
    }
    buf_add_text(out, "\n");
}

static void
add_roff(const char *text, struct buf *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '-' || *text == '\\') {
            buf_add_text(out, *text == '-' ? "\\-" : "\\e");
        } else {
            buf_add(out, text, 1);
        }
    }
}

static const char *
equals_of(const struct command_line_row *row)
{
    return row->argument[0] == '\0' ? "" : "=";
}

void
command_line_help(
    const struct command_line_row *row, unsigned n_rows, struct buf *out)
{
    for (unsigned i = 0; i < n_rows; i++) {
        size_t before = out->len;
        buf_addf(out, "  --%s%s%s", row[i].name, equals_of(&row[i]),
            row[i].argument);
        size_t width = out->len - before;
        if (width >= TEXT_COLUMN) {
            buf_addf(out, "\n%*s", TEXT_COLUMN - 1, "");
        } else {
            buf_addf(out, "%*s", (int)(TEXT_COLUMN - 1 - width), "");
        }
        add_wrapped(row[i].text, out);
    }
}

void
command_line_man(
    const struct command_line_row *row, unsigned n_rows, struct buf *out)
{
    for (unsigned i = 0; i < n_rows; i++) {
        buf_add_text(out, ".TP\n.B \\-\\-");
        add_roff(row[i].name, out);
        buf_add_text(out, equals_of(&row[i]));
        add_roff(row[i].argument, out);
        buf_add_text(out, "\n");
        add_roff(row[i].text, out);
        buf_add_text(out, "\n");
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file that a package installs: every option that may stand
 * in a file, with what it does and its default, as comments. It comes out of
 * the option table, so that a new option is in it.
 *
 * Nothing here can go wrong but memory, which the buffer's owner checks. */
#include "server/options.h"

#include <string.h>

enum { LINE_COLUMNS = 79 };

/* Those of which the file is no place: what ends the program again, what only
 * memcached would do something with, and what this build cannot do. */
static bool
belongs(enum options_id option)
{
    switch (option) {
    case OPTIONS_ID_config:
    case OPTIONS_ID_help:
    case OPTIONS_ID_version:
    case OPTIONS_ID_license:
    case OPTIONS_ID_check:
    case OPTIONS_ID_salvage:
    case OPTIONS_ID_dump:
    case OPTIONS_ID_dump_part:
    case OPTIONS_ID_hash_password:
        return false;
    default:
        return options_row(option)->care == OPTIONS_CARE_MET;
    }
}

/* Appends the words of text as comment lines. */
static void
add_comment(const char *text, struct buf *out)
{
    size_t column = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (column == 0 || column + 1 + len > LINE_COLUMNS) {
            buf_add_text(out, column == 0 ? "#" : "\n#");
            column = 1;
        }
        buf_add(out, " ", 1);
        buf_add(out, text, len);
        column += 1 + len;
        text += len;
        text += *text == ' ';
    }
    buf_add(out, "\n", 1);
}

void
options_help_conf(struct buf *out)
{
    buf_add_text(out,
        "# What tallyd reads with --config: an option a line, by its long "
        "name.\n"
        "# The command line wins. tallyd(1) explains the options, and -o.\n"
        "# A line that begins with #name shows a default, or what is to be "
        "given.\n");
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        const struct options_row *row = options_row(i);
        if (!belongs(i)) {
            continue;
        }
        buf_add(out, "\n", 1);
        add_comment(row->text, out);
        if (row->argument == NULL) {
            buf_addf(out, "#%s\n", row->name);
        } else {
            buf_addf(out, "#%s = %s\n", row->name,
                row->initial[0] != '\0' ? row->initial : row->argument);
        }
    }
}

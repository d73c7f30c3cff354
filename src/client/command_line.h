/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_COMMAND_LINE_H
#define CLIENT_COMMAND_LINE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Long options of a program, read and explained by one table of rows. One
 * thread. */

enum {
    COMMAND_LINE_ROWS_MAX = 32,
    COMMAND_LINE_WORDS_MAX = 2,
    COMMAND_LINE_WHY_MAX = 300,
    COMMAND_LINE_LOGIN_MAX = 255 /* bytes of "USER PASSWORD" */
};

struct command_line_row {
    const char *name;     /* without the hyphens; "help" takes "=man", too */
    const char *argument; /* what stands behind it; "": nothing */
    const char *text;
};

struct command_line {
    const struct command_line_row *row;
    unsigned n_rows; /* 1..COMMAND_LINE_ROWS_MAX */
    /* Takes one option; value is of argv, NULL where there is none. False with
     * why (command_line_fail) where it is wrong. */
    bool (*take_fn)(
        struct command_line *line, unsigned row, const char *value);
    void *context;
    unsigned n_words_max; /* words that are no options, 0..WORDS_MAX, */
    unsigned n_words;     /* and those that were given, of argv */
    const char *word[COMMAND_LINE_WORDS_MAX];
    char why[COMMAND_LINE_WHY_MAX]; /* where something is wrong */
};

/* Writes why. Always false. */
__attribute__((format(printf, 2, 3))) bool command_line_fail(
    struct command_line *line, const char *format, ...);

/* Reads argv[1..argc). False with why where something is wrong. */
bool command_line_read(
    struct command_line *line, int argc, char *const argv[]);

/* The number of an option, least to most. False with why. */
bool command_line_number(struct command_line *line, unsigned row,
    const char *text, uint64_t least, uint64_t most, uint64_t *out);

/* The line USER:PASSWORD that a file begins with, as "USER PASSWORD". False
 * with why. */
bool command_line_login(struct command_line *line, unsigned row,
    const char *path, char login[COMMAND_LINE_LOGIN_MAX + 1]);

/* Appends what --help says of the options, or the manual page. */
void command_line_help(
    const struct command_line_row *row, unsigned n_rows, struct buf *out);
void command_line_man(
    const struct command_line_row *row, unsigned n_rows, struct buf *out);

#endif

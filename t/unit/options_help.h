/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_OPTIONS_HELP_H
#define UNIT_OPTIONS_HELP_H

/* What the tests of options share: command lines that are taken and such that
 * are not. */

#include "server/options.h"
#include "unit/check_help.h"

#include <stdio.h>

enum { WORDS_MAX = 40, LINE_BYTES = 2048 };

/* Parses a line of words separated by single spaces ("~" stands for a space
 * in a word, "''" for an empty word). The message is ended by a NUL. */
static inline enum options_result
parse(const char *line, struct options *out, struct buf *message)
{
    char text[LINE_BYTES];
    char empty[] = "";
    char name[] = "tallyd";
    char *argv[WORDS_MAX + 1] = {name};
    int argc = 1;
    char *rest = text;
    char *word;

    ck_assert_uint_lt(strlen(line), sizeof text);
    memcpy(text, line, strlen(line) + 1);
    while (*rest != '\0' && (word = strsep(&rest, " ")) != NULL) {
        ck_assert_int_lt(argc, WORDS_MAX);
        argv[argc++] = strcmp(word, "''") == 0 ? empty : word;
        for (; *word != '\0'; word++) {
            *word = *word == '~' ? ' ' : *word;
        }
        if (rest == NULL) {
            break;
        }
    }
    enum options_result result = options_parse(argc, argv, out, message);
    buf_add(message, "", 1);
    ck_assert(!message->failed);
    return result;
}

static inline struct options
good(const char *line)
{
    struct options options;
    struct buf message = {0};

    enum options_result result = parse(line, &options, &message);
    ck_assert_msg(
        result == OPTIONS_RUN, "'%s' is refused: %s", line, message.data);
    ck_assert_str_eq(message.data, "");
    buf_fini(&message);
    return options;
}

/* Refused with one line that holds these words. */
static inline void
bad(const char *line, const char *words)
{
    struct options options;
    struct buf message = {0};

    enum options_result result = parse(line, &options, &message);
    ck_assert_msg(result == OPTIONS_EXIT_BAD, "'%s' is taken", line);
    ck_assert_msg(strstr(message.data, words) != NULL,
        "'%s' is refused with '%s', not '%s'", line, message.data, words);
    ck_assert_int_eq(strncmp(message.data, "tallyd: ", 8), 0);
    ck_assert_ptr_eq(
        strchr(message.data, '\n'), message.data + strlen(message.data) - 1);
    buf_fini(&message);
}

static inline void
note(void *context, const char *name, const char *value)
{
    buf_addf(context, "%s=%s;", name, value);
}

static inline void
has_setting(const char *line, const char *setting)
{
    struct options options = good(line);
    struct buf text = {0};
    char wanted[128];

    buf_add_text(&text, ";");
    options_each_setting(&options, note, &text);
    buf_add(&text, "", 1);
    ck_assert(!text.failed);
    snprintf(wanted, sizeof wanted, ";%s;", setting);
    ck_assert_msg(
        strstr(text.data, wanted) != NULL, "%s not in %s", setting, text.data);
    buf_fini(&text);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include "base/owns.h"
#include "cli/figures.h"
#include "cli/json.h"
#include "client/command_line.h"
#include "client/talk.h"

#include <stdbool.h>
#include <stddef.h>

/* What the commands share that ask one server: options, the connection, exit
 * statuses. One thread. */

/* 0 is EXIT_SUCCESS. */
enum { ASK_EXIT_BAD = 1, ASK_EXIT_USAGE = 2, ASK_GO_ON = -1 };

/* `stats conns` of 100,000 connections has half of that. */
enum { ASK_BYTES_MAX = 64 << 20 /* of an answer with figures */ };

/* Id, option, argument, explanation. */
#define ASK_ROWS(X)                                                           \
    X(server, "server", "ADDRESS",                                            \
        "HOST:PORT, or the path of a Unix socket; default: TALLYD_ADDR of "   \
        "the environment, else 127.0.0.1:11211")                              \
    X(user_file, "user-file", "FILE",                                         \
        "a file with a line USER:PASSWORD, for a server with logins")         \
    X(timeout, "timeout", "SECONDS",                                          \
        "how long the server may say nothing, and how long an answer with "   \
        "figures may take; default: 10")                                      \
    SECURE_ROWS(X)                                                            \
    X(json, "json", "", "writes JSON")                                        \
    X(help, "help", "", "says this")

enum ask_row {
#define X(id, name, argument, text) ASK_##id,
    ASK_ROWS(X)
#undef X
        ASK_ROWS_N
};

struct ask;

/* A command: all static. */
struct ask_command {
    const char *name;
    const char *usage; /* what --help begins with; ends with a newline */
    const struct command_line_row *row; /* its own options */
    unsigned n_rows;
    unsigned n_words_max;
    /* Takes one of its own options; NULL where there are none. False with
     * command_line_fail. */
    bool (*take_fn)(struct ask *ask, unsigned row, const char *value);
    bool has_no_server; /* it asks none: only --json and --help are left */
};

struct ask {
    const struct ask_command *command;
    void *context; /* the command's */
    bool is_json;
    struct talk talk;         /* its answers have limits only in ask_... */
    struct secure secure;     /* talk's */
    struct command_line line; /* n_words and word are the command's */
    struct command_line_row row[COMMAND_LINE_ROWS_MAX];
    char login[COMMAND_LINE_LOGIN_MAX + 1];
    enum { ASK_RUN, ASK_HELP, ASK_MAN } what;
};

/* Appends what the manual page says of the options that all commands have. */
void ask_man_shared(struct buf *out);

/* Reads the command line. ASK_GO_ON, or the exit status: --help was answered,
 * or something is wrong and has been said. In any case ask_fini is due. */
int ask_begin(struct ask *ask, const struct ask_command *command,
    void *context, int argc, char *const argv[]);
void ask_fini(struct ask *ask);

/* The server that is asked where --server is not given: TALLYD_ADDR of the
 * environment, or 127.0.0.1:11211. Of the environment, or static storage. */
const char *ask_address(void);

/* Takes the value of --ids, in its own form. False with command_line_fail. */
bool ask_take_rule(
    struct ask *ask, const char *value, char out[OWNS_RULE_BYTES]);

/* Writes "tallyctl: " and that, and a newline, to standard error; a control
 * character in it is shown as "?". */
__attribute__((format(printf, 1, 2))) void ask_say(const char *format, ...);

/* The same. ASK_EXIT_BAD. */
__attribute__((format(printf, 1, 2))) int ask_fail(const char *format, ...);

/* Likewise of a command line that is wrong: ASK_EXIT_USAGE. */
int ask_misused(const struct ask *ask, const char *what);

/* Connects and logs in, within twice --timeout. False: see ask->talk.why. */
bool ask_connect(struct ask *ask);

/* Sends a line, which has its end, over the connection and hands the lines of
 * the answer on, as talk_ask. False with talk.why where the connection is lost,
 * or the answer has more than ASK_BYTES_MAX or takes longer than --timeout. */
bool ask_talk(
    struct ask *ask, const char *line, talk_line_fn line_fn, void *context);

/* Asks for `stats WHAT` ("": the general ones) over the connection. What was in
 * figures is gone. True where it is answered, also with an error that is in
 * figures; false as of ask_talk. */
bool ask_stats(struct ask *ask, const char *what, struct figures *figures);

/* Sends a line, which has its end, and appends the lines of the answer, each
 * ended by a newline, up to one that is `last`. False with talk.why as
 * of ask_talk, or where another error is answered. */
bool ask_lines(
    struct ask *ask, const char *line, const char *last, struct buf *out);

/* Adds lines, each ended by a newline, as an array of texts. */
void ask_json_lines(
    struct json *json, const char *name, const struct buf *lines);

/* Writes it to standard output, and frees it. EXIT_SUCCESS or, where that
 * fails, ASK_EXIT_BAD. */
int ask_write(struct buf *out);

#endif

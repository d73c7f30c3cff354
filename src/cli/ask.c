/* SPDX-License-Identifier: BSD-3-Clause */
/* The command's own rows come first, as --help shows them, and those of all
 * commands behind them. */
#include "cli/ask.h"

#include "base/assert.h"
#include "cli/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_S = 10,
    TIMEOUT_S_MAX = 3600,
    MS_PER_S = 1000,
    SAY_BYTES = 4096
};

static const char address_default[] = "127.0.0.1:11211";
static const char address_variable[] = "TALLYD_ADDR";

static const struct command_line_row shared[ASK_ROWS_N] = {
#define X(id, name, argument, text) {name, argument, text},
    ASK_ROWS(X)
#undef X
};

static bool
take_server(struct ask *ask, const char *option, const char *text)
{
    const char *why = talk_take_server(&ask->talk, text);
    return why == NULL || command_line_fail(&ask->line, "%s %s", option, why);
}

static bool
take_secure(struct ask *ask, unsigned row, const char *value)
{
    const char *name = ask->row[row].name;
    const char *why = secure_take(&ask->secure, name, value);
    return why == NULL || command_line_fail(&ask->line, "--%s %s", name, why);
}

static bool
take(struct command_line *line, unsigned row, const char *value)
{
    struct ask *ask = line->context;
    uint64_t seconds = 0;
    if (row < ask->command->n_rows) {
        return ask->command->take_fn(ask, row, value);
    }
    switch ((enum ask_row)(row + ASK_ROWS_N - line->n_rows)) {
    case ASK_server:
        return take_server(ask, "--server", value);
    case ASK_user_file:
        return command_line_login(line, row, value, ask->login);
    case ASK_timeout:
        if (!command_line_number(
                line, row, value, 1, TIMEOUT_S_MAX, &seconds)) {
            return false;
        }
        ask->talk.timeout_ms = (uint32_t)seconds * MS_PER_S;
        return true;
    case ASK_tls:
    case ASK_tls_ca:
    case ASK_tls_name:
    case ASK_tls_cert:
    case ASK_tls_key:
        return take_secure(ask, row, value);
    case ASK_json:
        ask->is_json = true;
        return true;
    case ASK_help:
        ask->what =
            value != NULL && strcmp(value, "man") == 0 ? ASK_MAN : ASK_HELP;
        return true;
    case ASK_ROWS_N:
        break;
    }
    return false;
}

static void
add_rows(struct ask *ask)
{
    unsigned first = ask->command->has_no_server ? ASK_json : 0;
    unsigned n = 0;
    for (unsigned i = 0; i < ask->command->n_rows; i++) {
        ask->row[n++] = ask->command->row[i];
    }
    for (unsigned i = first; i < ASK_ROWS_N; i++) {
        ASSERT(n < COMMAND_LINE_ROWS_MAX);
        ask->row[n++] = shared[i];
    }
    ask->line.row = ask->row;
    ask->line.n_rows = n;
}

void
ask_man_shared(struct buf *out)
{
    command_line_man(shared, ASK_ROWS_N, out);
}

static int
say_help(const struct ask *ask)
{
    struct buf out = {0};
    if (ask->what == ASK_MAN) {
        command_line_man(ask->row, ask->command->n_rows, &out);
    } else {
        buf_addf(&out, "%s\n", ask->command->usage);
        command_line_help(ask->row, ask->line.n_rows, &out);
    }
    return ask_write(&out);
}

const char *
ask_address(void)
{
    const char *text = getenv(address_variable);
    return text != NULL && text[0] != '\0' ? text : address_default;
}

/* What is left to do once the options have been read. */
static bool
set_up(struct ask *ask)
{
    char why[SECURE_WHY_MAX + 1];
    if (ask->talk.n_servers == 0 &&
        !take_server(ask, address_variable, ask_address())) {
        return false;
    }
    ask->talk.secure = &ask->secure;
    return secure_begin(&ask->secure, why) ||
        command_line_fail(&ask->line, "%s", why);
}

int
ask_begin(struct ask *ask, const struct ask_command *command, void *context,
    int argc, char *const argv[])
{
    *ask = (struct ask){.command = command, .context = context};
    ask->talk.fd = -1;
    ask->talk.timeout_ms = TIMEOUT_S * MS_PER_S;
    ask->line.take_fn = take;
    ask->line.context = ask;
    ask->line.n_words_max = command->n_words_max;
    add_rows(ask);
    bool is_right = command_line_read(&ask->line, argc, argv);
    if (is_right && ask->what == ASK_RUN && !command->has_no_server) {
        is_right = set_up(ask);
    }
    if (!is_right) {
        return ask_misused(ask, ask->line.why);
    }
    return ask->what == ASK_RUN ? ASK_GO_ON : say_help(ask);
}

bool
ask_take_rule(struct ask *ask, const char *value, char out[OWNS_RULE_BYTES])
{
    struct owns *owns = NULL;
    if (owns_create_rule(value, strlen(value), &owns) != 0) {
        return command_line_fail(&ask->line,
            "--ids is a rule without a list of servers, as modulo:0/4");
    }
    (void)snprintf(out, OWNS_RULE_BYTES, "%s", owns_rule(owns));
    owns_destroy(&owns);
    return true;
}

void
ask_fini(struct ask *ask)
{
    talk_fini(&ask->talk);
    secure_fini(&ask->secure);
    explicit_bzero(ask->login, sizeof ask->login);
}

/* Part of it may be another's: a line of a file, or of a server, is not to
 * speak to the terminal. */
static void
say_plain(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        unsigned char next = (unsigned char)at[1];
        bool is_c1 = *at == '\xc2' && (next & 0xe0) == 0x80;
        if ((unsigned char)*at < ' ' || *at == 0x7f || is_c1) {
            *at = '?';
        }
    }
    (void)fprintf(stderr, "tallyctl: %s\n", text);
}

void
ask_say(const char *format, ...)
{
    char text[SAY_BYTES];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    say_plain(text);
}

int
ask_fail(const char *format, ...)
{
    char text[SAY_BYTES];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    say_plain(text);
    return ASK_EXIT_BAD;
}

int
ask_misused(const struct ask *ask, const char *what)
{
    (void)fprintf(stderr, "tallyctl %s: %s\n", ask->command->name, what);
    return ASK_EXIT_USAGE;
}

/* What comes next ends within limits, or without. */
static void
limit(struct ask *ask, bool is_limited)
{
    ask->talk.answer_ms_max = is_limited ? ask->talk.timeout_ms : 0;
    ask->talk.answer_bytes_max = is_limited ? ASK_BYTES_MAX : 0;
}

bool
ask_connect(struct ask *ask)
{
    talk_close(&ask->talk);
    limit(ask, true);
    bool is_in =
        talk_connect(&ask->talk) && talk_login(&ask->talk, ask->login);
    limit(ask, false);
    return is_in;
}

bool
ask_talk(
    struct ask *ask, const char *line, talk_line_fn line_fn, void *context)
{
    limit(ask, true);
    bool is_told = talk_ask(&ask->talk, line, strlen(line), line_fn, context);
    limit(ask, false);
    return is_told;
}

static enum talk_take
take_figure(void *context, const char *line, size_t len)
{
    struct figures *figures = context;
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    if (!figures_take(figures, line, len)) {
        return TALK_WRONG;
    }
    return figures->error[0] == '\0' ? TALK_MORE : TALK_END;
}

bool
ask_stats(struct ask *ask, const char *what, struct figures *figures)
{
    char text[64];
    figures_clear(figures);
    int len = snprintf(
        text, sizeof text, "stats%s%s\r\n", what[0] == '\0' ? "" : " ", what);
    ASSERT(len > 0 && (size_t)len < sizeof text);
    return ask_talk(ask, text, take_figure, figures);
}

struct lines {
    const char *last;
    struct buf *out;
};

static enum talk_take
take_line(void *context, const char *line, size_t len)
{
    struct lines *lines = context;
    if (talk_is(line, len, lines->last)) {
        return TALK_END;
    }
    if (talk_is(line, len, "ERROR") || talk_is(line, len, "NOT_FOUND") ||
        talk_begins(line, len, "CLIENT_ERROR") ||
        talk_begins(line, len, "SERVER_ERROR")) {
        return TALK_WRONG;
    }
    buf_add(lines->out, line, len);
    buf_add_text(lines->out, "\n");
    return TALK_MORE;
}

bool
ask_lines(struct ask *ask, const char *line, const char *last, struct buf *out)
{
    struct lines lines = {.last = last, .out = out};
    return ask_talk(ask, line, take_line, &lines);
}

void
ask_json_lines(struct json *json, const char *name, const struct buf *lines)
{
    char text[TALK_LINE_MAX + 1];
    json_open(json, name, '[');
    for (size_t at = 0; at < lines->len;) {
        const char *line = lines->data + at;
        const char *end = memchr(line, '\n', lines->len - at);
        size_t len = end == NULL ? lines->len - at : (size_t)(end - line);
        size_t n = len > TALK_LINE_MAX ? TALK_LINE_MAX : len;
        memcpy(text, line, n);
        text[n] = '\0';
        json_text(json, NULL, text);
        at += len + 1;
    }
    json_close(json);
}

int
ask_write(struct buf *out)
{
    bool is_written = !out->failed &&
        (out->len == 0 ||
            fwrite(out->data, 1, out->len, stdout) == out->len) &&
        fflush(stdout) == 0;
    if (!is_written) {
        (void)ask_fail("%s",
            out->failed ? "out of memory" : "standard output takes nothing");
    }
    buf_fini(out);
    return is_written ? EXIT_SUCCESS : ASK_EXIT_BAD;
}

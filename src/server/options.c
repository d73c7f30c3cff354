/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading options.
 *
 * Values have one way in, set_value: the defaults take it, the lines of the
 * configuration file and the command line.
 * The command line is read first, since it may name the file; then the file
 * goes into a copy of the defaults, and what the command line has not given is
 * taken from there.
 *
 * What can go wrong is always the user's input: one line says where, what
 * was given and what is wanted, and nothing is started. */
#include "server/options.h"

#include "base/assert.h"
#include "base/err.h"
#include "server/config.h"
#include "server/metrics.h"
#include "server/options_extended.h"
#include "server/options_repl_check.h"
#include "server/options_value.h"

#include <config.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LONG_FIRST = 256 /* what getopt_long returns for row 0's long name */
};

#define X(field, letter, name, argument, type, lowest, highest, initial,      \
    setting, text)                                                            \
    {CARE, OPTIONS_FORM_PLAIN, letter, name, argument, OPTIONS_TYPE_##type,   \
        lowest, highest, initial, setting, text,                              \
        offsetof(struct options, field),                                      \
        sizeof(((struct options *)0)->field)},
static const struct options_row rows[OPTIONS_COUNT] = {
#define CARE OPTIONS_CARE_MET
    OPTIONS_MET(X) OPTIONS_OF_OWNS(X) OPTIONS_OF_REPL(X)
#undef CARE
#define CARE OPTIONS_CARE_ETCD
        OPTIONS_OF_FAILOVER(X)
#undef CARE
#define CARE OPTIONS_CARE_HTTP
            OPTIONS_OF_HTTP(X)
#undef CARE
#define CARE OPTIONS_CARE_TLS
                OPTIONS_OF_TLS(X)
#undef CARE
#define CARE OPTIONS_CARE_IGNORED
                    OPTIONS_IGNORED(X)
#undef CARE
};
#undef X

const struct options_row *
options_row(enum options_id option)
{
    ASSERT(option < OPTIONS_COUNT);
    return &rows[option];
}

static void
set_defaults(struct options *options)
{
    memset(options, 0, sizeof *options);
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        if (rows[i].initial[0] != '\0' && rows[i].type != OPTIONS_TYPE_COUNT) {
            bool good =
                options__set_value(&rows[i], rows[i].initial, true, options);
            ASSERT(good);
        }
    }
    options__extended_defaults(options);
    options->listen.is_default = true;
    options->repl_listen.is_default = true;
}

/* Sets an option; where says which place gave it. */
static int
take(struct options *options, enum options_id option, const char *value,
    const char *where, struct buf *message)
{
    const struct options_row *row = &rows[option];
    bool first = !options->given[option];

    if (row->care == OPTIONS_CARE_REFUSED) {
        buf_addf(message, "tallyd: %s%s: %s\n", where, row->name, row->text);
        return ERR_BAD_OPTION;
    }
    options->given[option] = true;
    if (!options__set_value(row, value, first, options)) {
        options__add_refusal(row, value, where, message);
        return ERR_BAD_OPTION;
    }
    return 0;
}

/* The same for the command line and the file, where -o has words of its own. */
static int
take_any(struct options *options, enum options_id option, const char *value,
    const char *where, struct buf *message)
{
    char before[OPTIONS_TEXT_BYTES + 32];
    int err = take(options, option, value, where, message);

    if (err == 0 && option == OPTIONS_ID_extended) {
        snprintf(before, sizeof before, "%s%s: ", where, rows[option].name);
        err = options__take_extended(options, value, before, message);
    }
    return err;
}

/* One line of the configuration file, for config_read. */
static int
take_config_line(
    void *context, const struct config_line *line, struct buf *message)
{
    struct options *options = context;
    char where[OPTIONS_TEXT_BYTES + 16];
    const char *wrong = "no such option";

    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        const struct options_row *row = &rows[i];
        if (strcmp(row->name, line->name) != 0) {
            continue;
        }
        bool takes = row->argument != NULL;
        if (i == OPTIONS_ID_config || row->type == OPTIONS_TYPE_HELP ||
            row->type == OPTIONS_TYPE_VERSION ||
            row->type == OPTIONS_TYPE_LICENSE) {
            wrong = "this option belongs on the command line";
        } else if (takes != (line->value != NULL)) {
            wrong = takes ? "a value is missing" : "it takes no value";
        } else {
            snprintf(where, sizeof where, "%s:%u: ", line->file, line->line);
            return take_any(
                options, i, takes ? line->value : "", where, message);
        }
    }
    buf_addf(message, "tallyd: %s:%u: %s: %s\n", line->file, line->line,
        line->name, wrong);
    return ERR_BAD_OPTION;
}

/* Takes from the file what the command line has not given. */
static int
merge_config(struct options *options, struct buf *message)
{
    struct options from_file;

    set_defaults(&from_file);
    int err = config_read(
        options->config.text, take_config_line, &from_file, message);
    if (err != 0) {
        return err;
    }
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        if (from_file.given[i] && !options->given[i]) {
            memcpy((char *)options + rows[i].offset,
                (const char *)&from_file + rows[i].offset, rows[i].size);
            options->given[i] = true;
        }
    }
    options__merge_extended(options, &from_file);
    return 0;
}

/* Makes what getopt_long wants of the table. */
static void
fill_getopt(char *letters, struct option *long_options)
{
    *letters++ = ':'; /* a missing argument is told from a bad option */
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        /* memcached has --verbose=WORD and ignores the word */
        bool optional = rows[i].type == OPTIONS_TYPE_HELP ||
            rows[i].type == OPTIONS_TYPE_COUNT;
        bool takes = optional || rows[i].argument != NULL;
        if (rows[i].letter != 0) {
            *letters++ = rows[i].letter;
            if (takes && !optional) {
                *letters++ = ':';
            }
        }
        long_options[i] = (struct option){.name = rows[i].name,
            .has_arg = !takes ? no_argument
                : optional    ? optional_argument
                              : required_argument,
            .val = LONG_FIRST + (int)i};
    }
    *letters = '\0';
    long_options[OPTIONS_COUNT] = (struct option){0};
}

/* The row of what getopt_long returned or left in optopt; OPTIONS_COUNT where
 * there is none. */
static enum options_id
find_row(int value)
{
    if (value >= LONG_FIRST) {
        return (enum options_id)(value - LONG_FIRST);
    }
    for (enum options_id i = 0; i < OPTIONS_COUNT; i++) {
        if (value != 0 && rows[i].letter == value) {
            return i;
        }
    }
    return OPTIONS_COUNT;
}

/* Says what getopt_long has refused. */
static enum options_result
refuse(int returned, char **argv, struct buf *message)
{
    enum options_id option = find_row(optopt);
    const char *word = argv[optind - 1];

    if (returned == ':' && option != OPTIONS_COUNT) {
        buf_addf(
            message, "tallyd: --%s: a value is missing\n", rows[option].name);
    } else if (option != OPTIONS_COUNT) {
        buf_addf(
            message, "tallyd: --%s: it takes no value\n", rows[option].name);
    } else if (optopt != 0) {
        buf_addf(message, "tallyd: -%c: no such option; try --help\n", optopt);
    } else {
        buf_addf(message,
            "tallyd: %s: no such option, or short for several; try --help\n",
            word);
    }
    return OPTIONS_EXIT_BAD;
}

static enum options_result
print_help(const char *kind, struct buf *message)
{
    if (kind == NULL) {
        options_help(message);
    } else if (strcmp(kind, "man") == 0) {
        options_help_man(message);
    } else if (strcmp(kind, "conf") == 0) {
        options_help_conf(message);
    } else if (strcmp(kind, "metrics") == 0) {
        metrics_document(message);
    } else {
        buf_addf(message,
            "tallyd: --help: '%s' is refused; wanted is man, conf or "
            "metrics\n",
            kind);
        return OPTIONS_EXIT_BAD;
    }
    return OPTIONS_EXIT_OK;
}

static enum options_result
print_license(struct buf *message)
{
    buf_add_text(message,
        "tallyd " PACKAGE_VERSION "\n"
        "Copyright (c) 2026 the tallyd authors\n"
        "License: BSD-3-Clause (the 3-clause BSD license): use and "
        "redistribution, changed or\n"
        "not, are permitted with the copyright notice; there is no warranty. "
        "The whole text is\n"
        "in the file LICENSE of the source.\n");
    return OPTIONS_EXIT_OK;
}

/* What ends the parsing where it stands; OPTIONS_RUN: the option does not. */
static enum options_result
print_instead(enum options_type type, const char *value, struct buf *message)
{
    switch (type) {
    case OPTIONS_TYPE_HELP:
        return print_help(value, message);
    case OPTIONS_TYPE_LICENSE:
        return print_license(message);
    case OPTIONS_TYPE_VERSION:
        buf_addf(message, "tallyd %s\n", PACKAGE_VERSION);
        return OPTIONS_EXIT_OK;
    default:
        return OPTIONS_RUN;
    }
}

/* The value in an argument: memcached lets white space before it pass, as in
 * one argument "-m 64" of a program that starts it without a shell. */
static const char *
value_of(const char *argument)
{
    while (argument != NULL && isspace((unsigned char)*argument)) {
        argument++;
    }
    return argument;
}

static enum options_result
parse_command_line(
    int argc, char **argv, struct options *options, struct buf *message)
{
    char letters[2 * OPTIONS_COUNT + 2];
    struct option long_options[OPTIONS_COUNT + 1];
    int returned;

    fill_getopt(letters, long_options);
    optind = 0; /* glibc and musl: start anew */
    opterr = 0;
    while ((returned = getopt_long(argc, argv, letters, long_options, NULL)) !=
        -1) {
        enum options_id option = find_row(returned);
        if (option == OPTIONS_COUNT) {
            return refuse(returned, argv, message);
        }
        const char *value = value_of(optarg);
        enum options_result result =
            print_instead(rows[option].type, value, message);
        if (result != OPTIONS_RUN) {
            return result;
        }
        if (take_any(options, option, value == NULL ? "" : value, "--",
                message) != 0) {
            return OPTIONS_EXIT_BAD;
        }
    }
    if (optind < argc) {
        buf_addf(message, "tallyd: %s: only options are taken; try --help\n",
            argv[optind]);
        return OPTIONS_EXIT_BAD;
    }
    return OPTIONS_RUN;
}

static enum options_result
check_tls(const struct options *options, struct buf *message)
{
    if (options->tls && options->ssl_chain_cert.text[0] == '\0') {
        buf_add_text(message,
            "tallyd: --enable-ssl: a certificate is missing: give -o "
            "ssl_chain_cert and ssl_key\n");
        return OPTIONS_EXIT_BAD;
    }
    for (unsigned i = 0; !options->tls && i < options->listen.n; i++) {
        if (options->listen.address[i].tls != OPTIONS_TLS_DEFAULT) {
            buf_add_text(message,
                "tallyd: --listen: notls:, btls: and mtls: want "
                "--enable-ssl\n");
            return OPTIONS_EXIT_BAD;
        }
    }
    return OPTIONS_RUN;
}

/* Rules over several options. */
static enum options_result
check_together(const struct options *options, struct buf *message)
{
    if (!options_want_tcp(options) && options->unix_socket.text[0] == '\0') {
        buf_add_text(message,
            "tallyd: nothing to listen on: --port is 0 and there is no "
            "--unix-socket\n");
        return OPTIONS_EXIT_BAD;
    }
    if (options->memory_limit > 0 &&
        options->item_size_max > options->memory_limit / 2) {
        buf_add_text(message,
            "tallyd: --max-item-size is more than half of --memory-limit: "
            "lower the one or raise the other\n");
        return OPTIONS_EXIT_BAD;
    }
    if (options->reads == OPTIONS_READS_COMMITTED &&
        (options->sync == OPTIONS_SYNC_NONE ||
            strcmp(options->data.text, "none") == 0)) {
        buf_addf(message,
            "tallyd: --reads=committed with --%s=none: nothing is ever "
            "committed, leave one out\n",
            options->sync == OPTIONS_SYNC_NONE ? "sync" : "data");
        return OPTIONS_EXIT_BAD;
    }
    if (options->owns.text[0] != '\0' && options->owns_file.text[0] != '\0') {
        buf_add_text(
            message, "tallyd: --owns and --owns-file: leave one out\n");
        return OPTIONS_EXIT_BAD;
    }
    if (options->owns_miss && options->owns.text[0] == '\0' &&
        options->owns_file.text[0] == '\0') {
        buf_add_text(
            message, "tallyd: --owns-miss wants --owns or --owns-file\n");
        return OPTIONS_EXIT_BAD;
    }
    if (options->napi_ids > options->threads) {
        buf_add_text(message, "tallyd: --napi-ids is more than --threads\n");
        return OPTIONS_EXIT_BAD;
    }
    return check_tls(options, message);
}

/* One address of -l may speak one protocol: not binary, where binary clients
 * have no way to log in. */
static enum options_result
check_addresses(struct options *options, struct buf *message)
{
    for (unsigned i = 0; i < options->listen.n; i++) {
        if (options->listen.address[i].protocol == OPTIONS_PROTOCOL_BINARY) {
            buf_add_text(message,
                "tallyd: --listen: proto[binary] with --auth-file needs "
                "--enable-sasl\n");
            return OPTIONS_EXIT_BAD;
        }
    }
    return OPTIONS_RUN;
}

/* Which protocols there are where clients log in: as in memcached, but that
 * -B auto with -S means both. */
static enum options_result
settle_access(struct options *options, struct buf *message)
{
    bool is_given = options->given[OPTIONS_ID_protocol];
    const char *users = getenv("MEMCACHED_SASL_PWDB");
    if (options->sasl && options->auth_file.text[0] == '\0') {
        if (users == NULL || users[0] == '\0' ||
            strlen(users) >= sizeof options->auth_file.text) {
            buf_add_text(message,
                "tallyd: --enable-sasl: there are no users: give "
                "--auth-file=FILE with lines user:password\n");
            return OPTIONS_EXIT_BAD;
        }
        memcpy(options->auth_file.text, users, strlen(users) + 1);
    }
    if (options->auth_file.text[0] == '\0') {
        return OPTIONS_RUN;
    }
    if (options->sasl) {
        if (is_given && options->protocol == OPTIONS_PROTOCOL_ASCII) {
            buf_add_text(message,
                "tallyd: --enable-sasl is of the binary protocol, and "
                "--protocol=ascii allows none: leave one out\n");
            return OPTIONS_EXIT_BAD;
        }
        options->protocol =
            is_given ? options->protocol : OPTIONS_PROTOCOL_BINARY;
        return OPTIONS_RUN;
    }
    if (is_given && options->protocol != OPTIONS_PROTOCOL_ASCII) {
        buf_add_text(message,
            "tallyd: --auth-file alone is of the text protocol: give "
            "--protocol=ascii, or --enable-sasl, too\n");
        return OPTIONS_EXIT_BAD;
    }
    options->protocol = OPTIONS_PROTOCOL_ASCII;
    return check_addresses(options, message);
}

enum options_result
options_parse(int argc, char **argv, struct options *out, struct buf *message)
{
    set_defaults(out);
    enum options_result result = parse_command_line(argc, argv, out, message);
    if (result != OPTIONS_RUN) {
        return result;
    }
    if (out->given[OPTIONS_ID_config] && merge_config(out, message) != 0) {
        return OPTIONS_EXIT_BAD;
    }
    out->stats_detail = out->given[OPTIONS_ID_prefix_delimiter];
    result = check_together(out, message);
    if (result == OPTIONS_RUN && !options__settle_repl(out, message)) {
        result = OPTIONS_EXIT_BAD;
    }
    return result == OPTIONS_RUN ? settle_access(out, message) : result;
}

bool
options_want_tcp(const struct options *options)
{
    return options->port != 0 && options->unix_socket.text[0] == '\0';
}

/* Puts directory and a slash before a relative path. */
static int
resolve(const struct options_row *row, const char *directory,
    struct options_text *path, struct buf *message)
{
    char relative[OPTIONS_TEXT_BYTES];

    if (path->text[0] == '\0' || path->text[0] == '/' ||
        (row->type == OPTIONS_TYPE_DIRECTORY &&
            strcmp(path->text, "none") == 0)) {
        return 0;
    }
    memcpy(relative, path->text, sizeof relative);
    int len = snprintf(path->text, sizeof path->text, "%s/%s",
        strcmp(directory, "/") == 0 ? "" : directory, relative);
    if (len < 0 || len > row->highest) {
        buf_addf(message,
            "%s: the path is longer than %lld bytes with the working "
            "directory before it",
            row->name, (long long)row->highest);
        return ERR_TOO_LARGE;
    }
    return 0;
}

int
options_resolve_paths(struct options *options, struct buf *message)
{
    char directory[OPTIONS_TEXT_BYTES];
    int err = 0;

    if (getcwd(directory, sizeof directory) == NULL) {
        buf_addf(
            message, "cannot tell the working directory: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    for (int i = 0; err == 0 && i < OPTIONS_COUNT + OPTIONS_EXTENDED_COUNT;
         i++) {
        const struct options_row *row = i < OPTIONS_COUNT
            ? &rows[i]
            : options_extended_row(
                  (enum options_extended_id)(i - OPTIONS_COUNT));
        if (row->type == OPTIONS_TYPE_PATH ||
            row->type == OPTIONS_TYPE_DIRECTORY) {
            void *field = (char *)options + row->offset;
            err = resolve(row, directory, field, message);
        }
    }
    return err;
}

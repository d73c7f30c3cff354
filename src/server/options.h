/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include "base/buf.h"
#include "server/options_table.h"

#include <stdbool.h>
#include <stdint.h>

/* The options of tallyd. One table makes the fields of struct options, the
 * command line, the configuration file, --help, the OPTIONS of tallyd(1) and
 * `stats settings`. Letters, names and defaults are memcached's where it has
 * the option. */

enum options_id {
#define X(field, ...) OPTIONS_ID_##field,
    OPTIONS_TABLE(X)
#undef X
        OPTIONS_COUNT
};

enum {
    OPTIONS_TEXT_BYTES = 1024, /* with the NUL */
    OPTIONS_HOST_BYTES = 256,  /* with the NUL */
    OPTIONS_LISTEN_MAX = 16,
    OPTIONS_HOT_MEMORY_MIN = 16 << 20,
    OPTIONS_NO_PORT = 0 /* an address without port: that of --port */
};

/* The words of --loading. */
enum { OPTIONS_LOADING_ANSWER, OPTIONS_LOADING_REFUSE };

struct options_text {
    char text[OPTIONS_TEXT_BYTES]; /* "": not given */
};

struct options_address {
    char host[OPTIONS_HOST_BYTES]; /* "*": every address, of both families */
    int port;                      /* 1..65535 or OPTIONS_NO_PORT */
};

struct options_addresses {
    unsigned n;      /* 1..OPTIONS_LISTEN_MAX */
    bool is_default; /* nobody asked for these: one may be missing */
    struct options_address address[OPTIONS_LISTEN_MAX];
};

enum options_type {
    OPTIONS_TYPE_NUMBER,
    OPTIONS_TYPE_POWER_OF_TWO,
    OPTIONS_TYPE_COUNT, /* how often the option was given */
    OPTIONS_TYPE_OCTAL,
    OPTIONS_TYPE_BYTES,
    OPTIONS_TYPE_BYTES_OR_AUTO, /* "auto" is kept as what it stands for */
    OPTIONS_TYPE_MEGABYTES,     /* kept in bytes */
    OPTIONS_TYPE_CHOICE, /* one of the argument's words; kept as its place */
    OPTIONS_TYPE_FLAG,
    OPTIONS_TYPE_HELP,
    OPTIONS_TYPE_VERSION,
    OPTIONS_TYPE_TEXT,
    OPTIONS_TYPE_PATH,
    OPTIONS_TYPE_DIRECTORY, /* a path, or "none" */
    OPTIONS_TYPE_LISTEN
};

/* What each type is in struct options. */
#define OPTIONS_AS_NUMBER int
#define OPTIONS_AS_POWER_OF_TWO int
#define OPTIONS_AS_COUNT int
#define OPTIONS_AS_OCTAL int
#define OPTIONS_AS_BYTES uint64_t
#define OPTIONS_AS_BYTES_OR_AUTO uint64_t
#define OPTIONS_AS_MEGABYTES uint64_t
#define OPTIONS_AS_CHOICE int
#define OPTIONS_AS_FLAG bool
#define OPTIONS_AS_HELP bool
#define OPTIONS_AS_VERSION bool
#define OPTIONS_AS_TEXT struct options_text
#define OPTIONS_AS_PATH struct options_text
#define OPTIONS_AS_DIRECTORY struct options_text
#define OPTIONS_AS_LISTEN struct options_addresses

/* A plain value, some 10 KiB; nothing to free. */
struct options {
#define X(field, letter, name, argument, type, ...) OPTIONS_AS_##type field;
    OPTIONS_TABLE(X)
#undef X
};

/* One row of the table. */
struct options_row {
    char letter;          /* 0: none */
    const char *name;     /* the long option */
    const char *argument; /* NULL: it takes none */
    enum options_type type;
    int64_t lowest, highest;
    const char *initial; /* the default as it would be given; "": none */
    const char *setting; /* NULL: not in `stats settings` */
    const char *text;
    size_t offset, size; /* of the field in struct options */
};

enum options_result {
    OPTIONS_RUN,     /* *out is filled */
    OPTIONS_EXIT_OK, /* message is for stdout: the help or the version */
    OPTIONS_EXIT_BAD /* message is one line for stderr: what is wrong */
};

/* Static storage. */
const struct options_row *options_row(enum options_id option);

/* Reads the command line, and the file that --config names, into *out.
 * argv[argc] is NULL; getopt_long may permute argv, and its state is reset, so
 * any number of calls is fine, but one thread at a time. message is appended
 * to. */
enum options_result options_parse(
    int argc, char **argv, struct options *out, struct buf *message);

/* Makes every path of *options absolute, so that the working directory may
 * change (process_daemonize does). 0, ERR_SYSTEM, or ERR_TOO_LARGE where a
 * path is too long then; what went wrong is appended to message, without a
 * newline. */
int options_resolve_paths(struct options *options, struct buf *message);

/* False where only a Unix socket is listened on: with -s, as in memcached, and
 * with -p 0. */
bool options_want_tcp(const struct options *options);

/* Appends the help, or the OPTIONS of tallyd(1) as roff (.TP paragraphs). */
void options_help(struct buf *out);
void options_help_man(struct buf *out);

/* Calls setting_fn for each line of `stats settings`. value is "NULL" where
 * the option was not given, as in memcached; it is valid during the call. What
 * changes while the server runs (a bound port, the verbosity) is the
 * caller's to put into *options before. */
void options_each_setting(const struct options *options,
    void (*setting_fn)(void *context, const char *name, const char *value),
    void *context);

#endif

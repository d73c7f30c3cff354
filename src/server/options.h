/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* The options of tallyd. One table makes the fields of struct options, the
 * command line, the configuration file, --help, the OPTIONS of tallyd(1) and
 * `stats settings`. Letters, names and defaults are memcached's where it has
 * the option. */

/* field, letter (0: none), long name, name of the argument (NULL: none), type,
 * lowest, highest, default, name in `stats settings` (NULL: not shown), text.
 * lowest and highest bound a number, or the length of a text. */
#define OPTIONS_TABLE(X)                                                      \
    X(port, 'p', "port", "NUM", NUMBER, -1, 65535, "11211", "tcpport",        \
        "TCP port; 0 is no TCP, -1 any free port")                            \
    X(listen, 'l', "listen", "ADDR[,ADDR...]", LISTEN, 1, 65535,              \
        "127.0.0.1,::1", "inter",                                             \
        "address to listen on: HOST, HOST:PORT or [IPV6]:PORT; may be given " \
        "several times; HOST is a name, an address, or * for every address")  \
    X(unix_socket, 's', "unix-socket", "FILE", PATH, 1, 107, "",              \
        "domain_socket",                                                      \
        "Unix socket to listen on; then there is no TCP, as in memcached")    \
    X(unix_mask, 'a', "unix-mask", "MASK", OCTAL, 0, 0777, "0700", "umask",   \
        "access mode of the Unix socket, in octal")                           \
    X(threads, 't', "threads", "NUM", NUMBER, 1, 256, "4", "num_threads",     \
        "worker threads")                                                     \
    X(conn_limit, 'c', "conn-limit", "NUM", NUMBER, 1, 1000000, "1024",       \
        "maxconns", "connections at one time")                                \
    X(user, 'u', "user", "NAME", TEXT, 1, 255, "", NULL,                      \
        "user to become when started by root")                                \
    X(daemon, 'd', "daemon", NULL, FLAG, 0, 0, "", NULL,                      \
        "go to the background once the server is ready")                      \
    X(pidfile, 'P', "pidfile", "FILE", PATH, 1, 1023, "", NULL,               \
        "file to write the process id to")                                    \
    X(verbosity, 'v', "verbose", NULL, COUNT, 0, 3, "0", "verbosity",         \
        "write more to stderr: -v what happens, -vv details")                 \
    X(help, 'h', "help", "man", HELP, 0, 0, "", NULL,                         \
        "print this help; =man prints it for the manual page")                \
    X(version, 'V', "version", NULL, VERSION, 0, 0, "", NULL,                 \
        "print the version")                                                  \
    X(listen_backlog, 'b', "listen-backlog", "NUM", NUMBER, 1, 65535, "1024", \
        "tcp_backlog", "connections that may wait to be accepted")            \
    X(reqs_per_event, 'R', "max-reqs-per-event", "NUM", NUMBER, 1, 1000000,   \
        "20", "reqs_per_event",                                               \
        "requests of one connection in a turn, before others have theirs")    \
    X(item_size_max, 'I', "max-item-size", "SIZE", BYTES, 1024, 1 << 30,      \
        "1m", "item_size_max",                                                \
        "largest value of an item, in bytes, or with k or m behind; at most " \
        "half of --memory-limit")                                             \
    X(memory_limit, 'm', "memory-limit", "MB", MEGABYTES, 1, 1 << 24, "64",   \
        "maxbytes", "memory for items, in megabytes")                         \
    X(hot_memory, 0, "hot-memory", "SIZE", BYTES_OR_AUTO,                     \
        OPTIONS_HOT_MEMORY_MIN, INT64_C(1) << 46, "auto", "hot_memory",       \
        "memory for counters, in bytes, or with k, m or g behind; auto: "     \
        "half of the machine's memory, or of the cgroup's limit")             \
    X(schema, 0, "schema", "FILE", PATH, 1, 1023, "", "schema",               \
        "read counters and columns from FILE at start: lines as typed in "    \
        "telnet; what exists already is skipped")                             \
    X(data, 0, "data", "DIR|none", DIRECTORY, 1, 1023, "", NULL,              \
        "directory for what is to survive a restart; accepted, but counters " \
        "live in memory only in this version")                                \
    X(config, 0, "config", "FILE", PATH, 1, 1023, "", "config",               \
        "read options from FILE; those of the command line win")              \
    X(command_timeout_s, 0, "command-timeout", "SECONDS", NUMBER, 1, 86400,   \
        "60", "command_timeout",                                              \
        "close a connection whose command is not complete after so long")     \
    X(write_timeout_s, 0, "write-timeout", "SECONDS", NUMBER, 1, 86400, "30", \
        "write_timeout",                                                      \
        "close a connection that has not read its replies for so long")       \
    X(shards, 0, "shards", "NUM", POWER_OF_TWO, 1, 4096, "16", "shards",      \
        "partitions of the ids; more let more threads write at a time")

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

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include "base/buf.h"
#include "server/options_failover.h"
#include "server/options_http.h"
#include "server/options_memcached.h"
#include "server/options_owns.h"
#include "server/options_repl.h"
#include "server/options_table.h"
#include "server/options_type.h"

#include <stdbool.h>
#include <stdint.h>

/* The options of tallyd. One table makes the fields of struct options, the
 * command line, the configuration file, --help and the OPTIONS of tallyd(1).
 * Every option of memcached 1.6 is in it, with its letter, name and default,
 * so that what starts a memcached starts a tallyd; and so are the names of
 * memcached's -o, in a second table. */

#define OPTIONS_TABLE(X)                                                      \
    OPTIONS_MET(X)                                                            \
    OPTIONS_OF_OWNS(X)                                                        \
    OPTIONS_OF_REPL(X)                                                        \
    OPTIONS_OF_FAILOVER(X)                                                    \
    OPTIONS_OF_HTTP(X) OPTIONS_OF_TLS(X) OPTIONS_IGNORED(X)

enum options_id {
#define X(field, ...) OPTIONS_ID_##field,
    OPTIONS_TABLE(X)
#undef X
        OPTIONS_COUNT
};

enum options_extended_id {
#define X(field, ...) OPTIONS_EXTENDED_ID_##field,
    OPTIONS_EXTENDED(X)
#undef X
        OPTIONS_EXTENDED_COUNT
};

/* The words of --near-cells, --new-data, --loading, --seccomp, --landlock and
 * --protocol; of --sync, --reads, --replica-ack, --replica-votes
 * and --forward-writes. */
enum { OPTIONS_NEAR_CELLS_ITEM, OPTIONS_NEAR_CELLS_ERROR };
enum { OPTIONS_NEW_DATA_MAKE, OPTIONS_NEW_DATA_REFUSE };
enum { OPTIONS_SYNC_NONE, OPTIONS_SYNC_INTERVAL, OPTIONS_SYNC_ALWAYS };
enum { OPTIONS_READS_LATEST, OPTIONS_READS_COMMITTED };
enum { OPTIONS_ACK_WRITTEN, OPTIONS_ACK_SYNCED, OPTIONS_ACK_APPLIED };
enum { OPTIONS_VOTES_YES, OPTIONS_VOTES_NO };
enum { OPTIONS_FORWARD_YES, OPTIONS_FORWARD_NO };
enum { OPTIONS_LOADING_ANSWER, OPTIONS_LOADING_REFUSE };
enum { OPTIONS_SECCOMP_ON, OPTIONS_SECCOMP_LOG, OPTIONS_SECCOMP_OFF };
enum { OPTIONS_LANDLOCK_ON, OPTIONS_LANDLOCK_OFF };
enum {
    OPTIONS_PROTOCOL_AUTO,
    OPTIONS_PROTOCOL_ASCII,
    OPTIONS_PROTOCOL_BINARY
};

/* A plain value, some 30 KiB; nothing to free. */
struct options {
#define X(field, letter, name, argument, type, ...) OPTIONS_AS_##type field;
    OPTIONS_TABLE(X)
#undef X
#define X(field, form, name, argument, type, ...) OPTIONS_AS_##type field;
    OPTIONS_EXTENDED(X)
#undef X
    /* not options, but shown among the settings */
    bool stats_detail; /* at the start: -D was given */
    uint64_t oldest_s; /* what flush_all has put an end to; 0 at the start */

    bool given[OPTIONS_COUNT]; /* by the user, not by default */
    bool extended_given[OPTIONS_EXTENDED_COUNT];
};

/* One row of either table. */
struct options_row {
    enum options_care care;
    enum options_form form; /* of a name of -o */
    char letter;            /* 0: none */
    const char *name;       /* the long option */
    const char *argument;   /* NULL: it takes none */
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
const struct options_row *options_extended_row(enum options_extended_id name);

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

/* Appends a configuration file in which every option is commented out: its
 * text, then its default or the name of its argument. */
void options_help_conf(struct buf *out);

/* Calls setting_fn for each line of `stats settings`: memcached's in its order
 * and in its words, then tallyd's. value is valid during the call. What changes
 * while the server runs (the verbosity, stats_detail, oldest_s) is the caller's
 * to put into *options before. */
void options_each_setting(const struct options *options,
    void (*setting_fn)(void *context, const char *name, const char *value),
    void *context);

/* Calls ignored_fn for each option that was given and has no meaning here, as
 * the user would write it. option is valid during the call. */
void options_each_ignored(const struct options *options,
    void (*ignored_fn)(void *context, const char *option), void *context);

#endif

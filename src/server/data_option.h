/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_DATA_OPTION_H
#define SERVER_DATA_OPTION_H

#include "base/buf.h"
#include "base/log.h"
#include "durable/data.h"
#include "server/options.h"

#include <stdbool.h>

/* From options to the data directory that counters are kept in. */
struct data_option {
    bool is_wanted;  /* not --data=none */
    bool is_default; /* nobody named the directory */
    bool is_made;    /* by data_option_make, and nobody else has taken it */
    int dir_fd;      /* between make and take; -1: none */
    int archive_fd;  /* of --wal-archive; -1: none */
    struct data_config config; /* its archive is this one's */
};

/* Puts the default directory into options->data where none was given. Before
 * options_resolve_paths. */
void data_option_choose(
    struct data_option *data_option, struct options *options);

/* True where data_option_make would make the directory. */
bool data_option_is_new(
    const struct data_option *data_option, const struct options *options);

/* Makes and opens the directory, as root where the process is. 0, or
 * ERR_NO_DATA_DIR, ERR_SYSTEM; where the default one is not there and cannot
 * be made the server starts as a cache, which the logger is told. */
int data_option_make(struct data_option *data_option,
    const struct options *options, struct logger *logger, struct buf *why);

/* Locks it, as the user that stays, and fills config. 0, ERR_SYSTEM,
 * ERR_DIR_IN_USE. */
int data_option_take(struct data_option *data_option,
    const struct options *options, struct logger *logger, struct buf *why);

/* The start has failed, and no store has been made: removes the directory, if
 * data_option_make made it and no other process has locked it, as far as the
 * user that stays may do that. */
void data_option_undo(
    struct data_option *data_option, const struct options *options);

/* The store is gone: closes the archive, if there is one. */
void data_option_fini(struct data_option *data_option);

/* What --check does, as the user that stays: prints what is in the directory,
 * and changes nothing there. 0 or ERR_. */
int data_option_check(
    const struct options *options, struct logger *logger, struct buf *why);

#endif

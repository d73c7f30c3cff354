/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_TRUTH_H
#define CLI_TRUTH_H

#include "cli/rows.h"
#include "client/stop.h"

#include <stdbool.h>
#include <stdint.h>

/* A command that knows what numbers should be. It is run by /bin/sh for each
 * batch: ids come to its standard input, one a line; it answers a line for
 * each, in the same order: the id, digits or a name, and its numbers, or
 * "ID -" where it knows nothing of that one; and ends with status 0. It has a
 * group of processes of its own: where it answers wrongly, or takes too long,
 * all of that is ended, first by SIGTERM. One thread. */

enum { TRUTH_BATCH_MAX = 1000, TRUTH_COLUMNS_MAX = 16, TRUTH_WHY_MAX = 200 };

struct truth {
    const char *command;
    uint32_t timeout_s; /* for a batch, from 1: then it is ended, */
    struct stop *stop;  /* or when a signal asks for that; NULL: none */
    unsigned n_columns; /* numbers a line, 1..TRUTH_COLUMNS_MAX */
    char why[TRUTH_WHY_MAX];
};

/* Numbers of id[0..n), n_columns each, to out; is_known[i] is false where it
 * knows nothing. False with why: whatever was answered counts for nothing. */
bool truth_ask(struct truth *truth, const struct rows_id *id, unsigned n,
    uint64_t *out, bool *is_known);

#endif

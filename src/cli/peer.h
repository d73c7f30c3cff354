/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_PEER_H
#define CLI_PEER_H

#include "cli/rows.h"
#include "client/talk.h"

#include <stdbool.h>
#include <stdint.h>

/* A server, and what commands that carry records ask it first. */

/* The columns of a counter, and how many records it has. False, with
 * talk->why, also where there is no such counter. */
bool peer_columns(struct talk *talk, const char *counter,
    struct rows_columns *out, uint64_t *n_records);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_REMARKS_H
#define SERVER_REMARKS_H

#include "base/log.h"
#include "server/options.h"

#include <stdint.h>

struct store;

/* Logs what the operator ought to know of the options that were given: those
 * without a meaning here, and those that ask for less than it seems. */
void remarks_on_options(const struct options *options, struct logger *logger);

/* Who starts, with what data directory and which way to write it. */
void remarks_on_start(const struct options *options, struct logger *logger);

/* What the store has, which serves from now on, after so long. The caller is no
 * reader of the store's qsbr. */
void remarks_on_ready(
    struct store *store, uint64_t took_ms, struct logger *logger);

#endif

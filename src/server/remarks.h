/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_REMARKS_H
#define SERVER_REMARKS_H

#include "base/log.h"
#include "server/options.h"

/* Logs what the operator ought to know of the options that were given: those
 * without a meaning here, and those that ask for less than it seems. */
void remarks_on_options(const struct options *options, struct logger *logger);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_REPL_CHECK_H
#define SERVER_OPTIONS_REPL_CHECK_H

#include "base/buf.h"
#include "server/options.h"

#include <stdbool.h>
#include <stdint.h>

/* True where the server is one of several with copies of a directory. */
bool options_replicate(const struct options *options);

/* --replica-serve-stale-data in milliseconds; 0: yes. */
uint64_t options_stale_ms(const struct options *options);

/* For options.c: fills in what is not given. False where the options do not go
 * together; then message has the line for stderr. */
bool options__settle_repl(struct options *options, struct buf *message);

#endif

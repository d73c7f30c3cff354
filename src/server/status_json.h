/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_STATUS_JSON_H
#define SERVER_STATUS_JSON_H

#include "base/buf.h"
#include "server/figures.h"
#include "server/health.h"

/* Appends /status.json: an object with
 *   version   tallyd's
 *   unix_ms   the server's clock
 *   state     as of `stats health`
 *   percent   only while loading
 *   problems  an array, the worst first: what is wrong, and "do", what to do
 *   stats     an object a group (figures.h), each with the pairs of its reply;
 *             a value that is a decimal number is one, all else a text
 * Pure. */
void status_json_put(const struct figures *figures,
    const struct health *health, int64_t unix_ms, struct buf *out);

#endif

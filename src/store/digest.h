/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_DIGEST_H
#define STORE_DIGEST_H

#include "call/call.h"
#include "durable/durable.h"
#include "store/dump_work.h"

/* The sum over a counter's records by which two servers are compared (struct
 * store_digest). The dumper's thread. */

/* Before the work's first piece; the durable has loaded all. */
void digest_begin(struct store_digest *digest, struct durable *durable);

/* Adds the records and members of the piece that the work has just read. */
void digest_add(struct store_digest *digest, const struct dump_work *work);

/* Behind its last one. */
void digest_end(struct store_digest *digest, struct durable *durable);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_BACKUP_H
#define STORE_BACKUP_H

#include "call/call.h"

/* What store_backup and store_end_backup do: a snapshot that keeps names
 * (durable/snapshot.h), as a list of files. */

struct store;

/* path: of the data directory; outlives the store. */
enum store_answer backup_begin(
    struct store *store, const char *path, struct store_backup *backup);

/* As store_end_backup, of one that keeps something. Any thread. */
int backup_end(struct store_backup *backup);

#endif

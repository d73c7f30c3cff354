/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_SNAPSHOT_FOLDER_H
#define DURABLE_SNAPSHOT_FOLDER_H

#include "base/disk.h"

#include <stdbool.h>

/* Where a snapshot is put together: in the data directory itself, as files
 * whose names have a prefix before the names that they are to get. So there is
 * one directory to sync, and taking a file's place is a rename in it. */

#define SNAPSHOT_PREFIX "sync-"

enum { SNAPSHOT_NAME_BYTES = 48 };

/* In the folder: what is copied and how far (snapshot_plan.h); the same once
 * the exchange is under way (snapshot_exchange.h). */
#define SNAPSHOT_PLAN "plan"
#define SNAPSHOT_EXCHANGE "exchange"

/* True of a name in a data directory that is one of the folder's. Pure. */
bool snapshot_folder__has(const char *name);

/* A disk that has just the files of the folder, without the prefix: it can be
 * read like a data directory. *out is the caller's, freed by
 * snapshot_folder__destroy; under must outlive it. 0 or ENOMEM. */
int snapshot_folder__create(struct disk *under, struct disk **out);
void snapshot_folder__destroy(struct disk **folder);

/* Moves a file out of the folder: it has that name in the data directory then,
 * whatever had it before. Not yet durably. 0 or an errno value. */
int snapshot_folder__give(struct disk *folder, const char *name);

#endif

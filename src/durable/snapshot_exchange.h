/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_SNAPSHOT_EXCHANGE_H
#define DURABLE_SNAPSHOT_EXCHANGE_H

#include "base/disk.h"
#include "base/log.h"

/* Makes a snapshot that was put together and checked (snapshot_put.h) the data
 * directory. One thread, before anything is read of the directory. */

/* Finishes an exchange that is under way, from whatever point. 0, also where
 * there is none; ERR_DISK, ERR_DISK_FULL, ERR_NO_MEMORY, ERR_NEWER_FORMAT,
 * ERR_CORRUPT, and the logger is told: nothing may be loaded then, the next
 * start goes on. */
int snapshot_exchange__finish(struct disk *disk, struct logger *logger);

/* For those who only look at a directory or mend it: 0, or ERR_CORRUPT, and
 * told, where an exchange is under way; ERR_DISK. */
int snapshot_exchange_refuse(struct disk *disk, struct logger *logger);

#endif

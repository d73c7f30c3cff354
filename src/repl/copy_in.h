/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_COPY_IN_H
#define REPL_COPY_IN_H

#include "base/disk.h"
#include "base/log.h"
#include "repl/copy.h"

#include <stdbool.h>
#include <stdint.h>

/* Takes in a snapshot from a primary (repl/copy.h), beside the directory that
 * is here (durable/snapshot_put.h):
 *
 *   OPENING -> GREETED -> LISTING -> TELLING -> FILLING -> CHECKING -> OVER
 *
 * Broken off, another one goes on where it was, in another process too: files
 * that are whole stay, while the source, kind, number, length and bytes are the
 * same. One for a directory at a time, and nobody else makes a snapshot's
 * files in it. One thread for all calls. */

struct copy_in_config {
    struct disk *disk; /* the data directory's; outlives the copy */
    struct logger *logger;
    uint64_t epoch; /* that the snapshot must be of; 0: any */
    copy_wake_fn *wake_fn;
    void *context;
};

struct copy_in;

/* Begins. *in is the caller's. 0, ERR_NO_MEMORY, ERR_NO_THREAD. */
int copy_in_start(const struct copy_in_config *config, struct copy_in **in);

/* False: no frame of the snapshot is to be read from the stream yet; wake_fn
 * will tell. */
bool copy_in_may_put(struct copy_in *copy);

/* A SNAPSHOT, FILE, DATA or END has come, and may be put; it is copied.
 * Whatever is wrong with it fails the copy. */
void copy_in_put(struct copy_in *copy, const struct stream_frame *frame);

/* What is next. COPY_FRAME: HAVE, for link_replica_have. COPY_DONE: the
 * exchange is ordered, durably. The directory is to be loaded anew by the
 * process: nothing that it still does in it lasts, so no change may be
 * acknowledged, and another copy_in says COPY_DONE at once. */
enum copy_next copy_in_next(struct copy_in *copy, struct copy_piece *piece);

void copy_in_figures(struct copy_in *copy, struct copy_figures *figures);

/* As of copy_out.h. At a stop that comes late the exchange may be ordered all
 * the same: copy_in_next says so when it is over. */
void copy_in_stop(struct copy_in *copy);
bool copy_in_is_over(struct copy_in *copy);
void copy_in_destroy(struct copy_in **copy);

#endif

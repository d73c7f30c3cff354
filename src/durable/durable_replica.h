/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_REPLICA_H
#define DURABLE_DURABLE_REPLICA_H

#include "durable/durable.h"
#include "wal/replay.h"

/* What a start does about REPLICA (wal/replica_file.h): a directory that is one
 * of several copies is not opened as if it were alone; an exchange or a cut
 * that was ordered is carried out, and then the order is gone. The loader's;
 * once all is loaded the file is the one's who follows others. */

/* Reads it, before anything else is read: 0, ERR_REPLICATED (it is there, and
 * config says nothing of others), or what replica_file_read says; told. Where a
 * snapshot is about to take the directory's place what was noted of the old
 * one is given up, for that step cannot be taken back. */
int durable_replica__begin(struct durable *durable);

/* Behind the manifest: it must be of this directory, and the log is cut where
 * that is ordered (durable->cut_seq, until durable_replica__end). Where it
 * cannot be, the directory is loaded as it is, and REPLICA has is_salvaged: a
 * snapshot comes first. 0 or ERR_, told. */
int durable_replica__cut(struct durable *durable);

/* What the log has to be opened as: a replica's, without a gap. */
bool durable_replica__keeps_numbers(
    const struct durable *durable, const struct replay_end *end);

/* Behind the log, of which nothing else has been made yet: a cut is through;
 * who leaves the others begins a term of his own, and then REPLICA and what was
 * received of a snapshot go. 0 or ERR_, told: the next start does it again. */
int durable_replica__end(struct durable *durable);

/* The log has been closed with all of it synced: the file says that the stop
 * was a clean one, if durable->ends_clean, and unless a snapshot is about to
 * take the directory's place. A failure is only told: the file then says less
 * than could be said. */
void durable_replica__close(struct durable *durable);

#endif

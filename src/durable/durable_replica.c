/* SPDX-License-Identifier: BSD-3-Clause */
/* What a start does about REPLICA.
 *
 *   begin   an exchange is under way: REPLICA without epoch, cut, salvage
 *   ----    the exchange, the manifest
 *   cut     REPLICA gets the manifest's epoch; files behind the cut go
 *   ----    images, the log up to the cut
 *   ----    the log is open: its next file says where the one before ends
 *   end     REPLICA without cut; or without anything, of who leaves
 *
 * A cut is done when the next file exists (wal/log_cut.h). Until then each
 * start does it again; from then on none may, for what comes behind it is what
 * the others have. So the order goes before anybody can put a batch, and a
 * start that cannot take it away fails.
 *
 * Who leaves goes on with numbers of his own: a term begins, with a branch that
 * nobody else has. Should the directory be one of the others' again, the
 * histories part there. The same where a directory that has left has been
 * started so often that the next gap does not fit into its term.
 *
 * What can go wrong: the disk. */
#include "durable/durable_replica.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "durable/durable_position.h"
#include "durable/recover.h"
#include "durable/snapshot_folder.h"
#include "wal/log_cut.h"
#include "wal/wal_refuse.h"
#include "wal/wal_replica.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Whose a term is that no node has begun. */
#define ALONE "alone"

static int
told(const struct durable *durable, const char *what, int err)
{
    if (err != 0) {
        log_line(durable->config.logger, LOG_ERROR,
            "cannot %s " REPLICA_NAME ": %s", what, err_file_text(err));
    }
    return err;
}

static int
write_file(struct durable *durable)
{
    return told(durable, "write",
        replica_file_write(durable->disk, &durable->replica));
}

static int
refuse(const struct durable *durable)
{
    const struct replica_file *file = &durable->replica;
    log_line(durable->config.logger, LOG_ERROR,
        "the data directory is one of several copies, that of node %.*s%s%.*s: "
        "start the server as one of them, or with --leave-group to take the "
        "directory out of the group for good",
        (int)file->node.len, file->node.text,
        file->group.len > 0 ? " of group " : "", (int)file->group.len,
        file->group.text);
    return ERR_REPLICATED;
}

int
durable_replica__begin(struct durable *durable)
{
    struct disk *disk = durable->disk;
    struct replica_file *file = &durable->replica;
    struct disk_file is;
    int err = replica_file_read(disk, file);
    if (err == ERR_NOT_FOUND) {
        return 0;
    }
    if (err != 0) {
        return told(durable, "read", err);
    }
    durable->has_replica_file = true;
    durable->is_leaving =
        durable->config.leaves_group && !durable->config.is_replicated;
    if (!durable->config.is_replicated && !durable->is_leaving) {
        return refuse(durable);
    }
    int error =
        disk->calls->look(disk, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE, -1, &is);
    if (error == 0) {
        file->epoch = 0;
        file->cut_seq = 0;
        file->is_salvaged = false;
        file->is_exchanging = false;
        return write_file(durable);
    }
    if (error != ENOENT) {
        return told(durable, "look for a snapshot beside", disk_err(error));
    }
    if (file->is_exchanging) { /* it has not begun, or it is through */
        file->is_exchanging = false;
        return write_file(durable);
    }
    return 0;
}

/* The directory stays as it is, and is none that goes on. */
static int
give_up_cut(struct durable *durable)
{
    struct replica_file *file = &durable->replica;
    log_line(durable->config.logger, LOG_WARNING,
        "the log cannot be cut behind batch %" PRIu64
        ": it has no such batch, or what is behind it is in a checkpoint; "
        "this replica takes a snapshot",
        file->cut_seq);
    file->cut_seq = 0;
    file->is_salvaged = true;
    return write_file(durable);
}

static int
cut(struct durable *durable)
{
    const struct manifest *manifest = &durable->manifest;
    const struct data_config *config = &durable->config;
    struct replay_end end;
    uint64_t newest = recover_newest(manifest);
    const struct log_cut order = {.disk = durable->disk,
        .logger = config->logger,
        .epoch = manifest->epoch,
        .histories = &manifest->histories,
        .number = manifest->log_number,
        .manifest_seq = newest > manifest->committed_seq
            ? newest
            : manifest->committed_seq,
        .seq = durable->replica.cut_seq,
        .keep_bytes = config->keep_cut_bytes};
    int err = log_cut_run(&order, &end);
    if (err == ERR_LOG_GONE) {
        return give_up_cut(durable);
    }
    durable->cut_seq = err == 0 ? order.seq : 0;
    return told(durable, "cut the log as is said in", err);
}

int
durable_replica__cut(struct durable *durable)
{
    struct replica_file *file = &durable->replica;
    if (!durable->has_replica_file || durable->is_leaving) {
        return 0;
    }
    if (file->epoch != durable->epoch) {
        if (file->epoch != 0) {
            log_line(durable->config.logger, LOG_ERROR,
                REPLICA_NAME " is of another directory: remove it to have "
                             "this one join the others anew");
            return ERR_CORRUPT;
        }
        file->epoch = durable->epoch;
        int err = write_file(durable);
        if (err != 0) {
            return err;
        }
    }
    return file->cut_seq == 0 ? 0 : cut(durable);
}

bool
durable_replica__keeps_numbers(
    const struct durable *durable, const struct replay_end *end)
{
    if (durable->config.is_replicated || durable->terms.n == 0) {
        return durable->config.is_replicated;
    }
    return durable->is_leaving ||
        !history_is_end(&durable->terms, recover__next_seq(end) + SEQ_GAP);
}

static void
note_leftover(void *context, const char *name)
{
    if (snapshot_folder__has(name)) {
        buf_add(context, name, strlen(name) + 1);
    }
}

/* What was received of a snapshot, and REPLICA. */
static int
remove_files(struct durable *durable)
{
    struct disk *disk = durable->disk;
    struct buf names = {0};
    int error = disk->calls->list(disk, note_leftover, &names);
    error = error == 0 && names.failed ? ENOMEM : error;
    for (size_t at = 0; error == 0 && at < names.len;
         at += strlen(names.data + at) + 1) {
        error = disk->calls->unlink(disk, names.data + at);
    }
    buf_fini(&names);
    if (error == 0) {
        error = disk->calls->unlink(disk, REPLICA_NAME);
    }
    if (error == 0) {
        error = disk->calls->sync_names(disk);
    }
    return error == 0 ? 0 : told(durable, "remove", disk_err(error));
}

/* Numbers that are this directory's alone. */
static int
begin_own_term(struct durable *durable)
{
    const struct node_name *node = &durable->replica.node;
    bool has_name = durable->has_replica_file;
    uint64_t seq;
    int err = durable_begin_term(durable, has_name ? node->text : ALONE,
        has_name ? node->len : strlen(ALONE), 1, &seq);
    return err == 0 ? wal_sync_up_to(durable->wal, seq) : err;
}

int
durable_replica__end(struct durable *durable)
{
    int err = 0;
    if (durable->cut_seq != 0) {
        err = wal_write_fault(durable->wal);
        if (err == 0) {
            durable->replica.cut_seq = 0;
            err = write_file(durable);
        }
    }
    durable->cut_seq = 0;
    if (err == 0 && wal_is_replica(durable->wal) &&
        !durable->config.is_replicated) {
        err = begin_own_term(durable);
    }
    if (err == 0 && durable->is_leaving) {
        err = remove_files(durable);
        log_line(durable->config.logger, LOG_WARNING,
            "the data directory has left the group: it is no copy any more");
    }
    return err;
}

void
durable_replica__close(struct durable *durable)
{
    struct disk *disk = durable->disk;
    struct replica_file *file = &durable->replica;
    struct disk_file is;
    /* what the server has noted since the start is in it */
    if (!durable->ends_clean || replica_file_read(disk, file) != 0 ||
        disk->calls->look(disk, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE, -1, &is) !=
            ENOENT) {
        return;
    }
    file->is_clean = true;
    (void)write_file(durable);
}

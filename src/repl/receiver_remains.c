/* SPDX-License-Identifier: BSD-3-Clause */
/* What a broken off snapshot has left beside the directory of a node that leads
 * now: it may be as large as the directory, and nobody goes on with it. It is
 * removed on a thread of libuv's pool, since large files take their time;
 * meanwhile no other one begins, for this node connects to nobody then.
 *
 * What can go wrong: the disk; what is left stays, and the log says so. */
#include "base/assert.h"
#include "base/err.h"
#include "durable/snapshot_folder.h"
#include "durable/snapshot_put.h"
#include "repl/node_priv.h"

/* The pool's thread. */
static void
clear(uv_work_t *work)
{
    struct receiver *receiver = work->data;
    const struct node_config *config = &receiver->node->config;
    struct disk *disk = store_disk(config->store);
    struct snapshot_put put;
    struct disk_file is;

    if (disk->calls->look(disk, SNAPSHOT_PREFIX SNAPSHOT_PLAN, -1, &is) != 0 ||
        snapshot_put_open(&put, disk, config->logger) != 0) {
        return;
    }
    if (snapshot_put_drop(&put) == 0) {
        log_event(config->logger, "repl_snapshot", LOG_WARNING,
            "what was left of a snapshot that had not come whole is removed");
    }
    snapshot_put_close(&put);
}

static void
on_cleared(uv_work_t *work, int status)
{
    struct receiver *receiver = work->data;

    (void)status;
    ASSERT(receiver->magic == RECEIVER_MAGIC && receiver->is_clearing);
    receiver->is_clearing = false;
}

void
receiver_clear_remains(struct node *node)
{
    struct receiver *receiver = &node->receiver;

    if (receiver->is_clearing || receiver->copy != NULL) {
        return;
    }
    receiver->is_clearing = true;
    receiver->work.data = receiver;
    uv_queue_work(&node->loop, &receiver->work, clear, on_cleared);
}

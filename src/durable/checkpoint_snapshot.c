/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands a snapshot over behind a step: the manifest is on the disk then, all
 * that it names is there, and this thread is the only one that removes any of
 * it. A step is asked for, so that nobody waits for a pass. Before a step that
 * waits for others it is the same with the manifest of the step before, or
 * with the one that was loaded.
 *
 *   nobody -> want: is_snapshot_due -> hand over: open -> end: nobody
 *                                          \-> err: nobody             */
#include "durable/checkpoint_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/snapshot.h"

static void
answer(struct snapshot *snapshot, int err)
{
    ASSERT(snapshot->call.done_fn != NULL);
    snapshot->err = err;
    snapshot->call.done_fn(&snapshot->call);
}

void
checkpointer_want_snapshot(
    struct checkpointer *checkpointer, struct snapshot *snapshot)
{
    *snapshot = (struct snapshot){
        .call = snapshot->call, .pin_bytes_max = snapshot->pin_bytes_max};
    mutex_lock(&checkpointer->lock);
    ASSERT(checkpointer->magic == CHECKPOINTER_MAGIC);
    ASSERT(checkpointer->snapshot == NULL); /* one at a time */
    bool is_taken = !checkpointer->stopping;
    if (is_taken) {
        checkpointer->snapshot = snapshot;
        checkpointer->is_snapshot_due = true;
        checkpointer->is_publish_wanted = true;
        pthread_cond_signal(&checkpointer->changed);
    }
    mutex_unlock(&checkpointer->lock);
    if (!is_taken) {
        answer(snapshot, ERR_CLOSED);
    }
}

/* Who waits for one; NULL: nobody. *is_stopping: too late. */
static struct snapshot *
take_due(struct checkpointer *owner, bool *is_stopping)
{
    mutex_lock(&owner->lock);
    struct snapshot *due = owner->is_snapshot_due ? owner->snapshot : NULL;
    ASSERT(due != NULL || !owner->is_snapshot_due);
    owner->is_snapshot_due = false;
    *is_stopping = owner->stopping;
    mutex_unlock(&owner->lock);
    return due;
}

void
checkpoint__hand_over(struct checkpointer *owner, int err)
{
    bool is_stopping;
    struct snapshot *due = take_due(owner, &is_stopping);
    if (due == NULL) {
        return;
    }
    if (is_stopping) {
        err = ERR_CLOSED;
    }
    if (err == 0) {
        err = snapshot__open(due, owner);
    }
    if (err != 0) {
        checkpointer__end_snapshot(owner, due);
    }
    answer(due, err);
}

/* A manifest of which it is in doubt whether it lasts is as good here: either
 * one is whole, and its files stay. One that somebody else has put there is
 * not. */
void
checkpoint__hand_over_early(struct checkpointer *owner)
{
    if (!owner->is_foreign && owner->n_missing == 0) {
        checkpoint__hand_over(owner, 0);
    }
}

void
checkpointer__end_snapshot(
    struct checkpointer *checkpointer, const struct snapshot *snapshot)
{
    mutex_lock(&checkpointer->lock);
    ASSERT(checkpointer->snapshot == snapshot);
    ASSERT(!checkpointer->is_snapshot_due);
    checkpointer->snapshot = NULL;
    mutex_unlock(&checkpointer->lock);
}

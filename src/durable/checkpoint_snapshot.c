/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands a snapshot over behind a step: the manifest is on the disk then, all
 * that it names is there, and this thread is the only one that removes any of
 * it. A step is asked for, so that nobody waits for a pass. Before a step that
 * waits for others it is the same with the manifest of the step before, or
 * with the one that was loaded.
 *
 *   nobody -> want: is_snapshot_due -> hand over: open -> end: nobody
 *                                          \-> err: nobody
 *
 * While one is open that keeps names, no file of a manifest is removed: neither
 * those that newer manifests do not name, nor log files that a pass has made
 * needless. The first pass or look behind its end removes them. Where the disk
 * is full, and a pass is to make room, what it keeps is let go. */
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
    *snapshot = (struct snapshot){.call = snapshot->call,
        .pin_bytes_max = snapshot->pin_bytes_max,
        .keeps_names = snapshot->keeps_names};
    unsigned slot = snapshot->keeps_names;
    mutex_lock(&checkpointer->lock);
    ASSERT(checkpointer->magic == CHECKPOINTER_MAGIC);
    bool has_one = checkpointer->snapshot[slot] != NULL;
    ASSERT(!has_one || snapshot->keeps_names); /* one at a time */
    bool is_taken = !checkpointer->stopping && !has_one;
    if (is_taken) {
        checkpointer->snapshot[slot] = snapshot;
        checkpointer->is_snapshot_due[slot] = true;
        checkpointer->is_publish_wanted = true;
        pthread_cond_signal(&checkpointer->changed);
    }
    mutex_unlock(&checkpointer->lock);
    if (!is_taken) {
        answer(snapshot, has_one ? ERR_BACKUP_BUSY : ERR_CLOSED);
    }
}

/* Who waits for one of that kind; NULL: nobody. *is_stopping: too late. */
static struct snapshot *
take_due(struct checkpointer *owner, unsigned slot, bool *is_stopping)
{
    mutex_lock(&owner->lock);
    bool is_due = owner->is_snapshot_due[slot];
    struct snapshot *due = is_due ? owner->snapshot[slot] : NULL;
    ASSERT(due != NULL || !is_due);
    owner->is_snapshot_due[slot] = false;
    *is_stopping = owner->stopping;
    mutex_unlock(&owner->lock);
    return due;
}

static void
hand_over(struct checkpointer *owner, unsigned slot, int err)
{
    bool is_stopping;
    struct snapshot *due = take_due(owner, slot, &is_stopping);
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

void
checkpoint__hand_over(struct checkpointer *owner, int err)
{
    for (unsigned slot = 0; slot < CHECKPOINTER_SNAPSHOTS; slot++) {
        hand_over(owner, slot, err);
    }
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
    unsigned slot = snapshot->keeps_names;
    mutex_lock(&checkpointer->lock);
    ASSERT(checkpointer->snapshot[slot] == snapshot);
    ASSERT(!checkpointer->is_snapshot_due[slot]);
    checkpointer->snapshot[slot] = NULL;
    mutex_unlock(&checkpointer->lock);
}

/* Only this thread hands one over, so what it says holds until it does. */
bool
checkpoint__keeps_names(struct checkpointer *owner)
{
    enum { SLOT = 1 };
    mutex_lock(&owner->lock);
    const struct snapshot *snapshot = owner->snapshot[SLOT];
    bool keeps = snapshot != NULL && !owner->is_snapshot_due[SLOT] &&
        !snapshot->has_let_go;
    mutex_unlock(&owner->lock);
    return keeps;
}

void
checkpoint__let_names_go(struct checkpointer *owner)
{
    bool keeps = checkpoint__keeps_names(owner);
    if (keeps) {
        mutex_lock(&owner->lock);
        if (owner->snapshot[1] != NULL) {
            owner->snapshot[1]->has_let_go = true;
        }
        mutex_unlock(&owner->lock);
        log_line(owner->durable->config.logger, LOG_WARNING,
            "the disk is full: files that were kept for a backup are let go, "
            "and it is to be begun anew");
    }
}

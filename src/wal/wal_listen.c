/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells listeners that outcomes may have changed. The list has a lock of its
 * own, which is read under during the calls, of several threads at once: so
 * wal_unlisten returns when none is under way. That is safe because a listener
 * must not call the log, but for wal_outcome, which does not need it. */
#include "wal/wal_priv.h"

#include "base/assert.h"

void
wal_listen(struct wal *wal, struct wal_listener *listener)
{
    ASSERT(wal->magic == WAL_MAGIC && listener->moved_fn != NULL);
    rwlock_write(&wal->listen_lock);
    listener->next = wal->listeners;
    wal->listeners = listener;
    rwlock_leave(&wal->listen_lock);
}

void
wal_unlisten(struct wal *wal, struct wal_listener *listener)
{
    rwlock_write(&wal->listen_lock);
    struct wal_listener **at = &wal->listeners;
    while (*at != listener) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = listener->next;
    listener->next = NULL;
    rwlock_leave(&wal->listen_lock);
}

void
wal_tell(struct wal *wal)
{
    ASSERT(wal->magic == WAL_MAGIC);
    wal__notify(wal);
}

void
wal__notify(struct wal *wal)
{
    rwlock_read(&wal->listen_lock);
    for (struct wal_listener *listener = wal->listeners; listener != NULL;
         listener = listener->next) {
        listener->moved_fn(listener);
    }
    rwlock_leave(&wal->listen_lock);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The checkpointer looks whether another server has the directory
 * (durable_owner.c), says so, and has the log see it. */
#include "durable/checkpoint_priv.h"
#include "durable/durable_owner.h"
#include "wal/wal_place.h"

#include "base/assert.h"

enum { LOOK_MS = 1000, SAY_AGAIN_S = 300 };

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static void
log_owner(struct checkpointer *owner, uint64_t now_ns)
{
    struct logger *logger = owner->durable->config.logger;
    if (!owner->is_foreign || now_ns >= owner->say_foreign_ns) {
        owner->say_foreign_ns = now_ns + SAY_AGAIN_S * NS_PER_S;
        log_line(logger, LOG_ERROR,
            "%s is not this server's: another server has the data directory, "
            "or that of another one was put in its place. Changes are refused "
            "and nothing more is written here, so that the other one's files "
            "stay as they are. Stop one of both: what this server has taken "
            "since the other one began is in its memory only, and can be read "
            "out of it (dump counter)",
            MANIFEST_NAME);
    }
}

int
checkpoint__look_at_owner(struct checkpointer *owner)
{
    uint64_t now_ns = checkpointer_now_ns(owner);
    struct durable *durable = owner->durable;
    ASSERT(owner->magic == CHECKPOINTER_MAGIC);
    enum durable_manifest found = durable__look_at_manifest(durable);
    bool is_foreign = found == MANIFEST_FOREIGN;
    owner->owner_ns = now_ns + LOOK_MS * NS_PER_MS;
    if (is_foreign) {
        log_owner(owner, now_ns);
        wal_ask(durable->wal);
    } else if (owner->is_foreign) {
        log_line(durable->config.logger, LOG_WARNING,
            "%s is not another server's any more: this one goes on",
            MANIFEST_NAME);
    }
    owner->is_foreign = is_foreign;
    durable_note(&durable->stats.foreign_manifest, is_foreign);
    return (int)found;
}

void
checkpoint__look_at_owner_soon(struct checkpointer *owner)
{
    if (checkpointer_now_ns(owner) >= owner->owner_ns) {
        (void)checkpoint__look_at_owner(owner);
    }
}

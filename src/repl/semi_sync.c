/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a replica counts, by its own level. */
#include "repl/semi_sync.h"

uint64_t
semi_sync_position(const struct link_primary *link)
{
    if ((link->ack.flags & ACK_DOUBTFUL) != 0 ||
        (link->hello_flags & HELLO_NEVER_VOTES) != 0) {
        return 0;
    }
    switch (link->level) {
    case MESSAGE_WRITTEN:
        return link->ack.written;
    case MESSAGE_SYNCED:
        return link->ack.synced;
    case MESSAGE_APPLIED:
        return link->ack.applied;
    }
    return 0;
}

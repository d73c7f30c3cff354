/* SPDX-License-Identifier: BSD-3-Clause */
/* What is committed: what so many replicas have, each by its own level. */
#include "repl/semi_sync.h"

#include "base/assert.h"

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

uint64_t
semi_sync_nth(uint64_t *position, unsigned n, unsigned nth)
{
    ASSERT(nth > 0);
    if (n < nth) {
        return 0;
    }
    for (unsigned i = 0; i < nth; i++) { /* the largest ones come first */
        for (unsigned k = i + 1; k < n; k++) {
            if (position[k] > position[i]) {
                uint64_t larger = position[k];

                position[k] = position[i];
                position[i] = larger;
            }
        }
    }
    return position[nth - 1];
}

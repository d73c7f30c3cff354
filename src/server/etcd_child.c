/* SPDX-License-Identifier: BSD-3-Clause */
/* It outlives the server: the end of the pair is how it learns that the server
 * has died, and then it ends the leases, so that another node need not wait for
 * them to run out. */
#include "server/etcd_child.h"

#include "server/child.h"

static void
live(const void *context, int pair_fd)
{
    const struct run_config *config = context;
    (void)run_until_gone(pair_fd, config);
}

int
etcd_child_start(const struct run_config *config, const char *user,
    bool holds_files, int *pair_fd, struct buf *message)
{
    const struct child_config child = {.name = "tallyd-etcd",
        .what = "speaks with etcd",
        .user = user,
        .holds_files = holds_files,
        .holds_calls = config->holds_calls,
        .outlives = true,
        .live_fn = live,
        .context = config};
    return child_start(&child, pair_fd, message);
}

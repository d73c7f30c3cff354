/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a ring for a worker: an io_uring that reads cold blocks for it. */
#include "base/err.h"
#include "tier/tier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct store_ring_calls ring_calls;

static void
ring_close(struct store_ring *ring)
{
    struct cold_ring *own = (struct cold_ring *)ring;
    ASSERT(own->magic == COLD_RING_MAGIC && own->ring.calls == &ring_calls);
    own->magic = 0;
    fetch_ring_destroy(&own->fetch);
    free(own);
}

static int
ring_poll(const struct store_ring *ring)
{
    return fetch_ring_fd(cold_ring_fetch(ring));
}

static bool
ring_submit(struct store_ring *ring)
{
    return fetch_ring_submit(cold_ring_fetch(ring));
}

static void
ring_reap(struct store_ring *ring)
{
    fetch_ring_reap(cold_ring_fetch(ring));
}

static const struct store_ring_calls ring_calls = {
    .close = ring_close,
    .poll = ring_poll,
    .submit = ring_submit,
    .reap = ring_reap,
};

/* 0, or why there is none: an errno value. */
static int
open_ring(struct tier *tier, struct fetch_ring **out)
{
    struct disk *disk = tier->durable->disk;
    struct disk_ring *ring = NULL;
    if (disk->calls->ring == NULL) {
        return ENOSYS;
    }
    int error = disk->calls->ring(disk, FETCH_RING_READS, &ring);
    if (error == 0 &&
        fetch_ring_create(tier->cold.fetch, ring, out) == ERR_NO_MEMORY) {
        disk_ring_destroy(&ring);
        error = ENOMEM;
    }
    return error;
}

int
tier_open_ring(struct tier *tier, struct store_ring **out)
{
    const struct data_config *config = &tier->durable->config;
    if (config->cold_io == COLD_IO_POOL) {
        return ERR_NOT_FOUND;
    }
    struct cold_ring *own = calloc(1, sizeof *own);
    int error = own == NULL ? ENOMEM : open_ring(tier, &own->fetch);
    if (error == 0) {
        ASSERT(own->fetch != NULL);
        own->magic = COLD_RING_MAGIC;
        own->ring.calls = &ring_calls;
        *out = &own->ring;
        return 0;
    }
    free(own);
    if (config->cold_io != COLD_IO_AUTO) {
        log_line(config->logger, LOG_WARNING,
            "--cold-io=%s: no io_uring, threads read instead: %s",
            config->cold_io == COLD_IO_RING ? "ring" : "direct",
            strerror(error));
    }
    return ERR_NOT_FOUND;
}

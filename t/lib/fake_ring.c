/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/fake_ring.h"

#include "base/assert.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct fake_ring *
fake_of(struct disk_ring *ring)
{
    return (struct fake_ring *)ring;
}

static struct disk_read *
fake_submit(struct disk_ring *ring, struct disk_read *reads)
{
    struct fake_ring *fake = fake_of(ring);
    struct disk_read *refused = NULL;

    fake->n_submits++;
    while (reads != NULL) {
        struct disk_read *next = reads->next;

        ASSERT((uintptr_t)reads->bytes % DISK_DIRECT_BYTES == 0);
        if (fake->refuse > 0) {
            fake->refuse--;
            reads->next = refused;
            refused = reads;
        } else {
            fake->n_reads++;
            reads->next = fake->begun;
            fake->begun = reads;
        }
        reads = next;
    }
    if (fake->begun != NULL) {
        ASSERT(eventfd_write(ring->fd, 1) == 0);
    }
    return refused;
}

static void
make_read(struct fake_ring *fake, struct disk_read *read)
{
    read->error = fake->disk->calls->read(
        fake->disk, read->fd, read->bytes, read->len, read->at, &read->n_read);
    if (read->error == 0 && fake->cut > 0) {
        fake->cut--;
        read->n_read /= 2;
    }
}

static struct disk_read *
fake_reap(struct disk_ring *ring, unsigned n_max)
{
    struct fake_ring *fake = fake_of(ring);
    struct disk_read *first = NULL, **end = &first;
    eventfd_t count;

    ASSERT(n_max > 0);
    for (; n_max > 0 && fake->begun != NULL && !fake->is_held; n_max--) {
        struct disk_read *read = fake->begun;

        fake->begun = read->next;
        make_read(fake, read);
        read->next = NULL;
        *end = read;
        end = &read->next;
    }
    if (fake->begun == NULL) {
        (void)eventfd_read(ring->fd, &count);
    }
    return first;
}

static void
fake_destroy(struct disk_ring **ring)
{
    struct fake_ring *fake = fake_of(*ring);

    ASSERT(fake->begun == NULL);
    close(fake->ring.fd);
    free(fake);
    *ring = NULL;
}

struct fake_ring *
fake_ring_create(struct disk *disk)
{
    static const struct disk_ring_calls calls = {
        fake_submit, fake_reap, fake_destroy};
    struct fake_ring *fake = malloc(sizeof *fake);

    ASSERT(fake != NULL);
    *fake = (struct fake_ring){.ring = {.calls = &calls}, .disk = disk};
    fake->ring.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ASSERT(fake->ring.fd >= 0);
    return fake;
}

int
fake_ring_open(struct disk *disk, unsigned n_reads, struct disk_ring **out)
{
    (void)n_reads;
    *out = &fake_ring_create(disk)->ring;
    return 0;
}

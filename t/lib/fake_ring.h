/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_FAKE_RING_H
#define LIB_FAKE_RING_H

#include "base/disk.h"
#include "base/disk_ring.h"

#include <stdbool.h>

/* A ring over any disk, whose reads are made when they are reaped, the last one
 * begun first: so faults of the disk are those of the ring. One thread. */
struct fake_ring {
    struct disk_ring ring; /* first: hand on its address */
    struct disk *disk;
    struct disk_read *begun; /* the last one first */
    unsigned n_submits;      /* calls of submit so far */
    unsigned n_reads;        /* reads that were begun */
    unsigned refuse;         /* the next so many are not begun */
    unsigned cut;            /* the next so many end too soon */
    bool is_held;            /* none ends */
};

/* Never fails (aborts where there is no memory, or no descriptor). Freed by
 * disk_ring_destroy. */
struct fake_ring *fake_ring_create(struct disk *disk);

/* For struct disk_calls. */
int fake_ring_open(
    struct disk *disk, unsigned n_reads, struct disk_ring **out);

#endif

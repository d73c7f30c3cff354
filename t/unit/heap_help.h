/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_HEAP_HELP_H
#define UNIT_HEAP_HELP_H

/* All that the program takes from the heap is counted, and fails on demand: for
 * the program that is linked with heap.c and --wrap (heap_ldflags). Any
 * thread. */

#include "base/alloc.h"
#include "base/disk.h"

/* What the calling thread asks for between the two is neither counted nor
 * refused; they nest. */
void heap_spare(void);
void heap_unspare(void);

/* Counts the calls from here on, from 1; those from number `from` to `to` fail,
 * and none where `to` is 0. */
void heap_fail(unsigned from, unsigned to);

/* No call fails any more; how many did since heap_fail. */
unsigned heap_heal(void);

/* Blocks that are not given back. */
int heap_live(void);

/* Of pieces of an engine, from the heap. */
extern const struct alloc heap_alloc;

/* A disk whose calls go to another one, and are spared: its memory stands for
 * the machine's. */
struct spared_disk {
    struct disk disk; /* first */
    struct disk *inner;
};

void spared_disk_init(struct spared_disk *disk, struct disk *inner);

#endif

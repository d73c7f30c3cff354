/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_FAKE_DISK_H
#define LIB_FAKE_DISK_H

#include "base/disk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A disk in memory that keeps what a real one promises and nothing more: what
 * was not synced is lost at a crash or not, sector by sector, and a name that
 * was made, moved or removed counts only after sync_names. Any thread. */

enum fake_call {
    FAKE_OPEN,
    FAKE_READ,
    FAKE_WRITE,
    FAKE_ALLOCATE,
    FAKE_TRUNCATE,
    FAKE_PUNCH,
    FAKE_SIZE,
    FAKE_SYNC,
    FAKE_RENAME,
    FAKE_UNLINK,
    FAKE_SYNC_NAMES,
    FAKE_LIST,
    FAKE_LOOK,
    FAKE_NEXT_DATA,
    FAKE_CALLS
};

enum {
    FAKE_SECTOR_BYTES = 512,
    FAKE_NAME_BYTES = 64,
    FAKE_ALL = (1 << FAKE_CALLS) - 1, /* masks of calls: 1 << FAKE_WRITE */
    /* those that change something */
    FAKE_CHANGES = FAKE_ALL &
        ~(1 << FAKE_READ | 1 << FAKE_SIZE | 1 << FAKE_LIST | 1 << FAKE_LOOK |
            1 << FAKE_OPEN | 1 << FAKE_NEXT_DATA)
};

/* One call, in the order in which they were made; begin and end of a sync are
 * one event, at its end. */
struct fake_event {
    enum fake_call call;
    unsigned file; /* which inode, where it is about one; never used twice */
    char
        name[FAKE_NAME_BYTES]; /* first name of the file, or the one asked for;
                                 * of a rename the new one */
    uint64_t at, len;
    int err;
};

struct fake_disk;

/* Never fails (aborts where memory is out). seed: of what gets lost. */
struct fake_disk *fake_disk_create(uint64_t seed);
void fake_disk_destroy(struct fake_disk **fake);
struct disk *fake_disk_as_disk(struct fake_disk *fake);

/* The n-th call (from 1 on) of those in mask from now on fails with err, and
 * where forever is true all of them after it do. A failed write may have
 * written some, a failed rename may have been done; a failed sync has saved
 * some sectors, drops the others at the next crash, and later syncs of that
 * file know nothing of it. */
void fake_disk_fail(
    struct fake_disk *fake, unsigned mask, unsigned n, int err, bool forever);
/* The next call of that kind about a file whose first name begins so fails,
 * once; start must stay. */
void fake_disk_fail_name(
    struct fake_disk *fake, enum fake_call call, int err, const char *start);
/* From now on nothing fails; returns how many calls did since
 * fake_disk_fail. */
unsigned fake_disk_heal(struct fake_disk *fake);

/* Room for that many bytes in files, of which holes take none; more is ENOSPC.
 * 0: no limit. */
void fake_disk_limit(struct fake_disk *fake, uint64_t bytes);

/* The machine stops at the n-th call of FAKE_CHANGES from now on: that call
 * is done in part, or wholly, or not, and it and all others say EIO, until
 * fake_disk_crash or fake_disk_revive. */
void fake_disk_die(struct fake_disk *fake, unsigned n);
bool fake_disk_is_dead(struct fake_disk *fake);

/* Power was cut: loses what may be lost. No file is open any more. */
void fake_disk_crash(struct fake_disk *fake);
/* The same on a file system that keeps no order among changes of names: each
 * that was not synced is lost or not by itself. */
void fake_disk_crash_unordered(struct fake_disk *fake);
/* Only the process was killed: loses nothing. No file is open any more. */
void fake_disk_revive(struct fake_disk *fake);

/* Calls of that kind wait from now on, until fake_disk_let_go. */
void fake_disk_hold(struct fake_disk *fake, enum fake_call call);
/* The same for those that are told a name, if it begins so; start must stay. */
void fake_disk_hold_name(
    struct fake_disk *fake, enum fake_call call, const char *start);
/* Returns when a call waits, or so many do at the same time. */
void fake_disk_wait_held(struct fake_disk *fake);
void fake_disk_wait_held_many(struct fake_disk *fake, unsigned n);
void fake_disk_let_go(struct fake_disk *fake);

/* Changes one byte of a file, durably: bit rot. */
void fake_disk_flip(
    struct fake_disk *fake, const char *name, uint64_t at, uint8_t bits);

/* How often a call was made so far. */
unsigned fake_disk_count(struct fake_disk *fake, enum fake_call call);

/* All calls so far. Valid until the next call; no other thread may be at
 * it. */
const struct fake_event *fake_disk_events(struct fake_disk *fake, size_t *n);

/* How many of the calls so far, from number from on, match_fn says yes to;
 * NULL: all of them. It must not call the disk. */
size_t fake_disk_count_events(struct fake_disk *fake, size_t from,
    bool (*match_fn)(const struct fake_event *event));

/* What is in a file of an event now, also where no name leads to it any more;
 * likewise. */
const uint8_t *fake_disk_bytes(
    const struct fake_disk *fake, unsigned file, uint64_t *len);

#endif

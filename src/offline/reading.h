/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_READING_H
#define OFFLINE_READING_H

#include "base/clock.h"
#include "base/disk.h"
#include "base/disk_counted.h"
#include "base/log.h"
#include "base/progress.h"

#include <stdint.h>

/* How far the reading of a whole data directory is, by the bytes that are read
 * of its files. What is read twice counts twice: then it is at its end for a
 * while before it ends. One thread. */
struct reading {
    struct progress progress;
    struct disk_counted counted;
};

/* Where the data of a file ends, behind which there is only a hole; 0 where it
 * cannot be read. */
uint64_t reading__data_end(struct disk *disk, const char *name);

/* Begins: *out is the same disk, for who reads; freed by reading_end. under and
 * reading must outlive it; clock, what: as of progress_begin. 0, ERR_NO_MEMORY,
 * ERR_DISK (the directory cannot be read). */
int reading_begin(struct reading *reading, struct disk *under,
    struct logger *logger, const struct clock *clock, const char *what,
    struct disk **out);
void reading_end(struct reading *reading, struct disk **disk);

#endif

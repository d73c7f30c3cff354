/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_DATA_CHECK_H
#define OFFLINE_DATA_CHECK_H

#include "durable/data.h"

/* Verifies all files of a directory without changing any, and appends what it
 * found to out, line by line: counters, records, images, batches, changes. 0,
 * or the first ERR_ (the logger has been told which file and where). Tells how
 * far it is. */
int data_check(
    const struct data_dir *dir, struct logger *logger, struct buf *out);

/* The same of a disk, without telling how far it is. */
int data_check_disk(struct disk *disk, struct logger *logger, struct buf *out);

#endif

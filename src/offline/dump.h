/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_DUMP_H
#define OFFLINE_DUMP_H

#include "base/clock.h"
#include "base/disk.h"
#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* tallyd --dump: a data directory as text, for people and for tests. The lines
 * are described in doc/backup.md. Nothing is changed. */

enum dump_part {
    DUMP_ALL,
    DUMP_RECORDS, /* of segments and images */
    DUMP_SCHEMA,
    DUMP_LOG,
    DUMP_PRODUCERS /* of the manifest, and what the log says of them */
};

struct dump_config {
    struct disk *disk;
    struct logger *logger;     /* of progress, and of what cannot be read */
    const struct clock *clock; /* of progress; NULL: the system's */
    enum dump_part part;
    /* Takes the text, piece by piece. 0, or an ERR_ that ends the dump. */
    int (*write_fn)(void *context, const char *text, size_t len);
    void *context;
};

/* Memory is that of one image and one block, and that of names, whatever else
 * there is on the disk. 0;
 * ERR_CORRUPT: what is damaged is said where it is, all else is there;
 * ERR_NEWER_FORMAT, ERR_NO_MEMORY, ERR_DISK, or what write_fn returned. */
int dump_run(const struct dump_config *config);

#endif

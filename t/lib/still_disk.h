/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_STILL_DISK_H
#define LIB_STILL_DISK_H

#include "base/disk.h"

#include <stdint.h>

/* A directory of files that lie still: what readers of files see in tests and
 * fuzz targets. Bytes are the caller's and may be changed between reads. Calls
 * that write must not come. One thread. */

enum { STILL_FILES_MAX = 8 };

struct still_file {
    const char *name; /* NULL: no file */
    const uint8_t *bytes;
    uint64_t len;
};

struct still_disk {
    struct disk disk; /* hand on its address */
    struct still_file file[STILL_FILES_MAX];
    unsigned n_open;  /* files open now */
    uint64_t n_calls; /* so far */
    uint64_t fail_at; /* the call with this number fails with EIO; 0: none */
};

/* An empty directory. */
void still_disk_init(struct still_disk *still);

/* Puts a file into it; name and bytes must stay. */
void still_disk_add(struct still_disk *still, const char *name,
    const uint8_t *bytes, uint64_t len);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ITEM_HELP_H
#define UNIT_ITEM_HELP_H

/* Items for the tests of workers. */

#include "unit/worker_help.h"

#include <stdlib.h>
#include <string.h>

/* Stores an item of len bytes. */
static inline void
set_item(int fd, const char *key, size_t len)
{
    char *bytes = malloc(len);
    struct buf line = {0};
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'v', len);
    buf_addf(&line, "set %s 0 0 %zu\r\n", key, len);
    send_bytes(fd, line.data, line.len);
    send_bytes(fd, bytes, len);
    talk(fd, "\r\n", "STORED\r\n");
    buf_fini(&line);
    free(bytes);
}

#endif

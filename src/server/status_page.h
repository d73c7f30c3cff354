/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_STATUS_PAGE_H
#define SERVER_STATUS_PAGE_H

#include <stddef.h>

/* The status page, status.html with its style and script beside it: bytes that
 * contrib/bytes-to-c has made of these files for the build. */

struct status_page {
    const char *path; /* "/status.js" */
    const char *type; /* Content-Type */
    const unsigned char *bytes;
    size_t len;
};

/* All of them, and how many; static storage. */
const struct status_page *status_pages(size_t *n);

#endif

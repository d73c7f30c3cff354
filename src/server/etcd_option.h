/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_ETCD_OPTION_H
#define SERVER_ETCD_OPTION_H

#include "base/buf.h"
#include "server/options.h"

#include <stdbool.h>

/* From the options about etcd to the process that speaks with it. A build
 * without etcd refuses these options: it knows no address, and starts nothing.
 */

/* True for what is an address of etcd (http_is_endpoint). */
bool etcd_option_is_endpoint(const char *url);

/* Reads the files that they name, and forks it (server/etcd_child.h); the files
 * are in its memory then, and in the caller's no more. By a process with one
 * thread, before anything else that is secret is read, as root where it is.
 * *pair_fd is the caller's. 0, or an ERR_ with a line in *why. */
int etcd_option_start(
    const struct options *options, int *pair_fd, struct buf *why);

#endif

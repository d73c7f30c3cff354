/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_ETCD_CHILD_H
#define SERVER_ETCD_CHILD_H

#include "base/buf.h"
#include "etcd/run.h"

#include <stdbool.h>

/* The process that speaks with etcd (etcd/run.h): a child that has nothing of
 * the server's but the pair and its config. */

/* Forks it, as child_start. What config names, certificates among it, is read
 * before, since it has no right to files. *pair_fd is for control_pair__init. 0
 * or ERR_SYSTEM, and message says why. */
int etcd_child_start(const struct run_config *config, const char *user,
    bool holds_files, int *pair_fd, struct buf *message);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETCD_RUN_H
#define ETCD_RUN_H

#include "etcd/agent.h"
#include "etcd/http.h"
#include "etcd/login.h"

/* The whole life of the process that speaks with etcd (etcd/agent.h). */

enum { RUN_END_MS = 2000 /* for the end of leases, when the node is gone */ };

struct run_config {
    struct agent_config agent;
    struct http_config http;
    struct login_user user; /* of etcd's; name "": none */
    bool holds_calls;       /* seccomp takes what the process never calls */
};

/* Serves the node at the other end of that pair (repl/control_pair.h), which
 * never blocks, until it is gone; then ends its leases. 0 or an ERR_ where it
 * could not begin. The process's only thread. */
int run_until_gone(int pair_fd, const struct run_config *config);

#endif

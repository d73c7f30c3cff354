/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_FAILOVER_CHECK_H
#define SERVER_OPTIONS_FAILOVER_CHECK_H

#include "base/buf.h"
#include "base/node.h"
#include "server/options.h"

#include <stdbool.h>

/* True where etcd says who is primary; all below is of such options that have
 * been taken. */
bool options_is_automatic(const struct options *options);

/* --replicate taken apart. False where it is no CLUSTER/GROUP; pure. */
bool options_split_group(
    const char *text, struct node_name *cluster, struct node_name *group);

/* --etcd taken apart: text of its own, as endpoint points into it. */
enum { OPTIONS_ENDPOINTS_MAX = 8 };
struct options_endpoints {
    char text[OPTIONS_TEXT_BYTES];
    unsigned n; /* 1..OPTIONS_ENDPOINTS_MAX */
    const char *endpoint[OPTIONS_ENDPOINTS_MAX];
};
bool options_split_endpoints(
    const char *text, struct options_endpoints *endpoints);

/* For options_repl.c: fills in what is not given. False where the options do
 * not go together; then message has the line for stderr. */
bool options__settle_failover(struct options *options, struct buf *message);

#endif

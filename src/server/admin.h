/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "net/session.h"
#include "net/worker.h"
#include "server/options.h"

#include <pthread.h>

/* What the server tells of itself: stats, stats settings, stats counters,
 * stats reset. Any thread; the figures are summed when they are asked for. */
struct server_admin {
    struct admin admin;            /* first: the seam of net/session.h */
    const struct options *options; /* read-only */
    struct logger *logger;
    struct store *store;
    struct conn_gauge *gauge;
    struct worker **workers; /* n_workers; fixed before the first request */
    unsigned n_workers;
    uint64_t started_s; /* clock_monotonic_s */
    pthread_mutex_t lock;
    uint64_t forgotten[METRIC_COUNT]; /* sums at the last reset; under lock */
};

/* The caller fills the fields from options to n_workers afterwards. */
void admin_init(struct server_admin *admin);
void admin_fini(struct server_admin *admin);

#endif

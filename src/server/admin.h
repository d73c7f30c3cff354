/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "base/clock.h"
#include "base/mutex.h"
#include "net/listener.h"
#include "net/worker.h"
#include "server/options.h"
#include "server/replication.h"
#include "session/session.h"
#include "stats/prefix.h"

#include <stdatomic.h>

/* What the server tells of itself (stats and its sub-commands), and its
 * commands of administration. Any thread; the figures are summed when they are
 * asked for. */

enum { ADMIN_CHANGED_MAX = 32 /* settings that commands can change */ };

/* What stats reset has made old: sums at that moment. */
struct admin_forgotten {
    uint64_t metric[METRIC_COUNT];
    uint64_t connections;
    uint64_t rejected;
};

enum { ADMIN_MAGIC = 0x61646d69 };

struct server_admin {
    struct admin admin;            /* first: the seam of session/admin.h */
    uint32_t magic;                /* ADMIN_MAGIC */
    const struct options *options; /* read-only */
    struct logger *logger;
    struct store *store;
    struct conn_gauge *gauge;
    struct worker **workers; /* n_workers; fixed while there are requests */
    unsigned n_workers;
    struct access *access;   /* NULL: there are no users; fixed likewise */
    struct owner *owner;     /* NULL: every id is this server's; likewise */
    struct tls *tls;         /* NULL: there is no TLS; fixed likewise */
    struct watch_hub *watch; /* NULL: nobody can watch */
    struct replication *replication; /* its node, if there is one */
    const struct listener *listener; /* its sockets: fixed likewise */
    uint64_t started_s;              /* clock_monotonic_s */
    struct prefixes prefixes;
    struct clock_shift clock;
    _Atomic uint64_t memory_limit; /* -m, or of cache_memlimit; bytes */
    _Atomic bool crawler_is_on;    /* lru_crawler enable, disable */
    _Atomic uint64_t crawls;       /* asked for */
    struct mutex lock;
    /* under lock: */
    uint64_t kept[METRIC_COUNT]; /* of workers that are no more */
    struct admin_forgotten forgotten;
    struct text_admin_setting changed[ADMIN_CHANGED_MAX];
    unsigned n_changed;
};

/* The caller fills the fields from store to listener afterwards. options are
 * read, and kept. */
void admin_init(struct server_admin *admin, const struct options *options);
void admin_fini(struct server_admin *admin);

/* The workers have been joined, and are about to be destroyed: what they have
 * counted is kept, and there are none any more. */
void admin_keep_metrics(struct server_admin *admin);

#endif

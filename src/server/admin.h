/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "base/clock.h"
#include "base/mutex.h"
#include "net/listener.h"
#include "net/worker.h"
#include "server/figures.h"
#include "server/health.h"
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
    const struct conn_rooms *rooms;  /* the workers' */
    uint64_t started_s;              /* clock_monotonic_s */
    struct prefixes prefixes;
    struct clock_shift clock;
    _Atomic uint64_t memory_limit; /* -m, or of cache_memlimit; bytes */
    _Atomic uint32_t slow_ms;      /* --slow, or of slow */
    _Atomic bool crawler_is_on;    /* lru_crawler enable, disable */
    _Atomic uint64_t crawls;       /* asked for */
    struct mutex lock;
    /* under lock: */
    uint64_t kept[METRIC_COUNT]; /* of workers that are no more */
    struct admin_forgotten forgotten;
    struct text_admin_setting changed[ADMIN_CHANGED_MAX];
    unsigned n_changed;
    struct latency_sums *kept_latency; /* as kept; NULL: nothing. Owned, as */
    struct latency_sums *old_latency;  /* as forgotten; NULL: nothing */
    /* Who asks and is no worker keeps the store and the workers where they are
     * by it. Before lock. */
    struct mutex gate;
    /* under gate: */
    bool is_open; /* they are there */
    bool is_over; /* they have been */
    struct health_past past;
};

/* The caller fills the fields from store to listener afterwards. options are
 * read, and kept. */
void admin_init(struct server_admin *admin, const struct options *options);
void admin_fini(struct server_admin *admin);

/* The workers have been joined, and are about to be destroyed: what they have
 * counted is kept, and there are none any more. */
void admin_keep_metrics(struct server_admin *admin);

/* The store is there, and the workers are or come under the gate; from
 * admin_shut on they go. The main thread. */
void admin_open(struct server_admin *admin);
void admin_shut(struct server_admin *admin);

/* Asks for those groups (bits by enum figures_group), and judges by them
 * unless health is NULL. The groups that are not asked for, and all where the
 * store is not there (false), are empty. Takes a millisecond; any thread that
 * holds no lock. */
bool admin_gather(struct server_admin *admin, struct figures *figures,
    unsigned groups, struct health *health);

/* Notes what is counted, for what health says of the last minute; every
 * HEALTH_SAMPLE_S. */
void admin_sample(struct server_admin *admin);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers `stats` itself. Names and order are memcached's, all of them, so
 * that whoever reads them finds each; what has no meaning here is 0. Figures
 * that memcached does not have are in sub-commands. */
#include "server/admin_priv.h"

#include "items/items.h"
#include "proto/reply_stats.h"
#include "server/process.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* What the lines are made of. */
struct general {
    const struct server_admin *admin;
    uint64_t metric[METRIC_COUNT]; /* since the last reset, as items is */
    struct items_stats items;
    struct watch_stats watch;
    uint64_t connections;
    uint64_t rejected;
    uint64_t current; /* connections now */
    uint64_t listen_pauses;
    uint64_t listen_pause_us;
    bool is_accepting;
    uint64_t memory_limit;
    uint64_t crawls;
};

#define NONE UINT64_C(0)

/* name, number. What a connection holds beyond its buffers is one structure;
 * a worker has one buffer to read into, which is free between turns. */
#define CONNECTION_FIGURES(X)                                                 \
    X(max_connections, (uint64_t)f->admin->options->conn_limit)               \
    X(curr_connections, f->current)                                           \
    X(total_connections, f->connections)                                      \
    X(rejected_connections, f->rejected)                                      \
    X(connection_structures, f->current)                                      \
    X(response_obj_oom, NONE)                                                 \
    X(response_obj_count, NONE)                                               \
    X(response_obj_bytes, NONE)                                               \
    X(read_buf_count, f->admin->n_workers)                                    \
    X(read_buf_bytes, (uint64_t)f->admin->n_workers *WORKER_READ_BYTES)       \
    X(read_buf_bytes_free,                                                    \
        (uint64_t)(f->admin->n_workers - 1) * WORKER_READ_BYTES)              \
    X(read_buf_oom, NONE)                                                     \
    X(reserved_fds, (uint64_t)PROCESS_FDS_RESERVED)

#define COMMAND_FIGURES(X)                                                    \
    X(cmd_get, f->metric[METRIC_cmd_get])                                     \
    X(cmd_set, f->metric[METRIC_cmd_set])                                     \
    X(cmd_flush, f->metric[METRIC_cmd_flush])                                 \
    X(cmd_touch, f->metric[METRIC_cmd_touch])                                 \
    X(cmd_meta, f->metric[METRIC_cmd_meta])                                   \
    X(get_hits, f->metric[METRIC_get_hits])                                   \
    X(get_misses, f->metric[METRIC_get_misses])                               \
    X(get_expired, f->items.get_expired)                                      \
    X(get_flushed, f->items.get_flushed)                                      \
    X(delete_misses, f->metric[METRIC_delete_misses])                         \
    X(delete_hits, f->metric[METRIC_delete_hits])                             \
    X(incr_misses, f->metric[METRIC_incr_misses])                             \
    X(incr_hits, f->metric[METRIC_incr_hits])                                 \
    X(decr_misses, f->metric[METRIC_decr_misses])                             \
    X(decr_hits, f->metric[METRIC_decr_hits])                                 \
    X(cas_misses, f->metric[METRIC_cas_misses])                               \
    X(cas_hits, f->metric[METRIC_cas_hits])                                   \
    X(cas_badval, f->metric[METRIC_cas_badval])                               \
    X(touch_hits, f->metric[METRIC_touch_hits])                               \
    X(touch_misses, f->metric[METRIC_touch_misses])                           \
    X(store_too_large, f->metric[METRIC_store_too_large])                     \
    X(store_no_memory, f->metric[METRIC_store_no_memory])                     \
    X(auth_cmds, f->metric[METRIC_auth_cmds])                                 \
    X(auth_errors, f->metric[METRIC_auth_errors])

/* Shown with -o idle_timeout, as in memcached. */
#define IDLE_FIGURES(X) X(idle_kicks, f->metric[METRIC_idle_kicks])

#define TRAFFIC_FIGURES(X)                                                    \
    X(bytes_read, f->metric[METRIC_bytes_read])                               \
    X(bytes_written, f->metric[METRIC_bytes_written])

#define MEMORY_FIGURES(X)                                                     \
    X(limit_maxbytes, f->memory_limit)                                        \
    X(accepting_conns, (uint64_t)f->is_accepting)                             \
    X(listen_disabled_num, f->listen_pauses)                                  \
    X(time_in_listen_disabled_us, f->listen_pause_us)                         \
    X(threads, f->admin->n_workers)                                           \
    X(conn_yields, f->metric[METRIC_conn_yields])                             \
    X(hash_power_level, f->items.hash_power_level)                            \
    X(hash_bytes, f->items.hash_bytes)                                        \
    X(hash_is_expanding, NONE)                                                \
    X(slab_reassign_rescues, NONE)                                            \
    X(slab_reassign_chunk_rescues, NONE)                                      \
    X(slab_reassign_inline_reclaim, NONE)                                     \
    X(slab_reassign_busy_items, NONE)                                         \
    X(slab_reassign_busy_deletes, NONE)                                       \
    X(slab_reassign_busy_nomem, NONE)

#define SLAB_FIGURES(X)                                                       \
    X(slab_reassign_running, NONE)                                            \
    X(slabs_moved, NONE)

/* Shown unless -o no_lru_crawler, and no_lru_maintainer. */
#define CRAWLER_FIGURES(X)                                                    \
    X(lru_crawler_running, NONE)                                              \
    X(lru_crawler_starts, f->crawls)

#define MAINTAINER_FIGURES(X) X(lru_maintainer_juggles, NONE)

#define LOG_FIGURES(X)                                                        \
    X(malloc_fails, NONE)                                                     \
    X(log_worker_dropped, f->watch.dropped)                                   \
    X(log_worker_written, f->watch.written)                                   \
    X(log_watcher_skipped, f->watch.skipped)                                  \
    X(log_watcher_sent, f->watch.sent)                                        \
    X(log_watchers, f->watch.watchers)

/* Shown with -o ssl_session_cache, and with -Z. */
#define SESSION_FIGURES(X)                                                    \
    X(ssl_new_sessions, f->metric[METRIC_ssl_new_sessions])
#define TLS_FIGURES(X)                                                        \
    X(ssl_handshake_errors, f->metric[METRIC_ssl_handshake_errors])           \
    X(ssl_proto_errors, f->metric[METRIC_ssl_proto_errors])                   \
    X(time_since_server_cert_refresh,                                         \
        clock_monotonic_s() - tls_loaded_s(f->admin->tls))

#define NETWORK_FIGURES(X)                                                    \
    X(unexpected_napi_ids, NONE)                                              \
    X(round_robin_fallback, NONE)

#define ITEM_FIGURES(X)                                                       \
    X(bytes, f->items.bytes)                                                  \
    X(curr_items, f->items.curr_items)                                        \
    X(total_items, f->items.total_items)                                      \
    X(slab_global_page_pool, NONE)                                            \
    X(expired_unfetched, f->items.expired_unfetched)                          \
    X(evicted_unfetched, f->items.evicted_unfetched)

#define ACTIVE_FIGURES(X) X(evicted_active, f->items.evicted_active)

#define EVICTION_FIGURES(X)                                                   \
    X(evictions, f->items.evictions)                                          \
    X(reclaimed, f->items.reclaimed)                                          \
    X(crawler_reclaimed, f->items.crawler_reclaimed)                          \
    X(crawler_items_checked, f->items.crawler_items_checked)                  \
    X(lrutail_reflocked, NONE)

#define LRU_FIGURES(X)                                                        \
    X(moves_to_cold, NONE)                                                    \
    X(moves_to_warm, f->items.moves_to_warm)                                  \
    X(moves_within_lru, f->items.moves_within_lru)                            \
    X(direct_reclaims, f->items.direct_reclaims)                              \
    X(lru_bumps_dropped, NONE)

#define PUT(name, number) reply_stats_u64(out, #name, number);

static void
put_seconds(
    struct reply_stats *out, const char *name, const struct timeval *time)
{
    char text[48];
    snprintf(text, sizeof text, "%lld.%06ld", (long long)time->tv_sec,
        (long)time->tv_usec);
    reply_stats_text(out, name, text);
}

static void
put_process(struct server_admin *admin, struct reply_stats *out)
{
    struct rusage usage;
    char loop[32];
    uint64_t up_s = clock_monotonic_s() - admin->started_s;
    getrusage(RUSAGE_SELF, &usage);
    snprintf(loop, sizeof loop, "libuv-%s", uv_version_string());
    reply_stats_u64(out, "pid", (uint64_t)getpid());
    reply_stats_u64(out, "uptime", up_s);
    reply_stats_u64(out, "time", (uint64_t)clock_unix_s());
    reply_stats_text(out, "version", ADMIN__MEMCACHED_VERSION);
    reply_stats_text(out, "libevent", loop);
    reply_stats_u64(out, "pointer_size", 8 * sizeof(void *));
    put_seconds(out, "rusage_user", &usage.ru_utime);
    put_seconds(out, "rusage_system", &usage.ru_stime);
}

/* Sums since the last reset, never below what is forgotten. */
static void
collect_sums(struct server_admin *admin, struct general *f)
{
    const struct admin_forgotten *forgotten = &admin->forgotten;
    mutex_lock(&admin->lock);
    items_stats(admin->store->items, &f->items);
    uint64_t total = atomic_load(&admin->gauge->total);
    uint64_t rejected = atomic_load(&admin->gauge->rejected);
    ASSERT(total >= forgotten->connections && rejected >= forgotten->rejected);
    f->connections = total - forgotten->connections;
    f->rejected = rejected - forgotten->rejected;
    mutex_unlock(&admin->lock);
    admin__sum(admin, f->metric);
}

static void
collect(struct server_admin *admin, struct general *f)
{
    struct conn_gauge *gauge = admin->gauge;
    *f = (struct general){.admin = admin,
        .current = atomic_load(&gauge->current),
        .listen_pauses = atomic_load(&gauge->pauses),
        .listen_pause_us = atomic_load(&gauge->pause_us),
        .is_accepting = atomic_load(&gauge->is_accepting),
        .memory_limit = atomic_load(&admin->memory_limit),
        .crawls = atomic_load(&admin->crawls)};
    if (admin->watch != NULL) {
        watch_stats(admin->watch, &f->watch);
    }
    collect_sums(admin, f);
}

void
admin__general(struct server_admin *admin, struct reply_stats *out)
{
    const struct options *options = admin->options;
    struct general figures;
    const struct general *f = &figures;
    collect(admin, &figures);
    put_process(admin, out);
    CONNECTION_FIGURES(PUT)
    COMMAND_FIGURES(PUT)
    if (options->idle_timeout_s != 0) {
        IDLE_FIGURES(PUT)
    }
    TRAFFIC_FIGURES(PUT)
    MEMORY_FIGURES(PUT)
    reply_stats_text(out, "slab_reassign_last_busy_status", "none");
    SLAB_FIGURES(PUT)
    if (options->lru_crawler) {
        CRAWLER_FIGURES(PUT)
    }
    if (options->lru_maintainer) {
        MAINTAINER_FIGURES(PUT)
    }
    LOG_FIGURES(PUT)
    if (f->admin->tls != NULL && options->ssl_session_cache) {
        SESSION_FIGURES(PUT)
    }
    if (f->admin->tls != NULL) {
        TLS_FIGURES(PUT)
    }
    NETWORK_FIGURES(PUT)
    ITEM_FIGURES(PUT)
    if (options->lru_maintainer) {
        ACTIVE_FIGURES(PUT)
    }
    EVICTION_FIGURES(PUT)
    if (options->lru_maintainer) {
        LRU_FIGURES(PUT)
    }
    reply_stats_end(out);
}

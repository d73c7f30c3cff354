/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of `stats wal`. */
#include "durable/durable.h"

#include <inttypes.h>
#include <stdio.h>

enum { VALUE_BYTES = 32, NAME_BYTES = 48 };

struct lines {
    void (*stat_fn)(void *context, const char *name, const char *value);
    void *context;
};

static void
put(const struct lines *lines, const char *name, uint64_t number)
{
    char value[VALUE_BYTES];
    (void)snprintf(value, sizeof value, "%" PRIu64, number);
    lines->stat_fn(lines->context, name, value);
}

static const char *
sync_text(enum wal_sync sync)
{
    switch (sync) {
    case WAL_SYNC_NONE:
        return "none";
    case WAL_SYNC_INTERVAL:
        return "interval";
    case WAL_SYNC_ALWAYS:
        break;
    }
    return "always";
}

/* Of a histogram by powers of two. */
static void
put_buckets(const struct lines *lines, const char *begin,
    const uint64_t bucket[WAL_LATENCIES])
{
    char name[NAME_BYTES];
    for (unsigned i = 0; i < WAL_LATENCIES; i++) {
        if (bucket[i] > 0) {
            (void)snprintf(
                name, sizeof name, "%s%" PRIu64, begin, UINT64_C(1) << i);
            put(lines, name, bucket[i]);
        }
    }
}

static void
put_log(struct durable *durable, const struct lines *lines)
{
    struct wal_stats stats;
    wal_stats(durable->wal, &stats);
#define X(field, text) put(lines, #field, stats.field);
    WAL_STATS(X)
#undef X
    put(lines, "commits", stats.writes);
    put_buckets(lines, "sync_us_below_", stats.sync_us);
    put_buckets(lines, "synced_us_below_", stats.synced_us);
    put_buckets(lines, "batch_bytes_below_", stats.batch_bytes);
    put_buckets(lines, "batch_appends_below_", stats.batch_appends);
}

/* Bytes written to disk for one byte of log: log, images and manifests. */
static void
put_amplification(struct durable *durable, const struct lines *lines)
{
    struct wal_stats stats;
    char value[VALUE_BYTES];
    wal_stats(durable->wal, &stats);
    /* relaxed: figures */
    uint64_t others = atomic_load_explicit(&durable->stats.checkpoint_bytes,
                          memory_order_relaxed) +
        atomic_load_explicit(
            &durable->stats.manifest_bytes, memory_order_relaxed);
    (void)snprintf(value, sizeof value, "%.2f",
        stats.bytes == 0 ? 0.0 : 1.0 + (double)others / (double)stats.bytes);
    lines->stat_fn(lines->context, "write_amplification", value);
}

void
durable_each_stat(struct durable *durable, bool is_open,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    const struct lines lines = {.stat_fn = stat_fn, .context = context};
    stat_fn(context, "sync", sync_text(durable->config.sync));
    if (is_open) {
        put_log(durable, &lines);
        put_amplification(durable, &lines);
    }
    /* relaxed: figures */
#define X(field, text)                                                        \
    put(&lines, #field,                                                       \
        atomic_load_explicit(&durable->stats.field, memory_order_relaxed));
    DURABLE_STATS(X)
#undef X
}

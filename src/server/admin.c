/* SPDX-License-Identifier: BSD-3-Clause */
/* The stats commands. Names and order of the general ones are memcached's
 * (protocol.txt, "General-purpose statistics"), as far as they have a meaning
 * here; our own are in "stats counters" and "stats tables". Reset remembers
 * the sums of that moment and subtracts them from then on: the workers' cells
 * have one writer each and are never written from here. */
#include "server/admin.h"

#include "base/clock.h"
#include "base/err.h"
#include "proto/reply.h"
#include "proto/words.h"

#include <config.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* What clients are told: the memcached whose text protocol this is, then
 * ourselves (doc/adr/0004). */
#define MEMCACHED_VERSION "1.6.45"
static const char version[] = MEMCACHED_VERSION " tallyd " PACKAGE_VERSION;

enum {
    NAME_BYTES = 96, /* "<counter>:<column>:<figure>" */
    PART_BYTES = 48, /* "<counter>:<shard>" */
    RATIO_BYTES = 32,
    ALL_SHARDS = -1
};

/* Figures made of a struct engine_sum: name, what it is. A record in its
 * second line costs a look at that one, a record in a stash both lines and the
 * stash; a miss goes on where its bit of the 16 in the line's mask is set. */
#define TABLE_RATIOS(X)                                                       \
    X(load, ratio(sum->used_bits, sum->usable_bits))                          \
    X(bytes_per_record,                                                       \
        ratio(sum->line_bytes + sum->stash_bytes + sum->other_bytes,          \
            sum->records))                                                    \
    X(stash_share, ratio(sum->stash_records, sum->records))                   \
    X(lines_per_hit,                                                          \
        1.0 + ratio(sum->far_records + 2 * sum->stash_records, sum->records)) \
    X(lines_per_miss, 1.0 + ratio(sum->mask_bits, 16 * sum->lines))

static void
sum_metrics(struct server_admin *admin, uint64_t sum[METRIC_COUNT])
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        sum[i] = 0;
    }
    for (unsigned i = 0; i < admin->n_workers; i++) {
        metric_sum(&admin->workers[i]->metrics, sum);
    }
}

static void
sum_since_reset(struct server_admin *admin, uint64_t sum[METRIC_COUNT])
{
    /* summed under the lock, so never below what is forgotten */
    pthread_mutex_lock(&admin->lock);
    sum_metrics(admin, sum);
    for (int i = 0; i < METRIC_COUNT; i++) {
        sum[i] -= admin->forgotten[i];
    }
    pthread_mutex_unlock(&admin->lock);
}

static void
put_seconds(struct buf *out, const char *name, const struct timeval *time)
{
    char text[48];
    snprintf(text, sizeof text, "%lld.%06ld", (long long)time->tv_sec,
        (long)time->tv_usec);
    reply_stat_text(out, name, text);
}

static void
put_process(struct server_admin *admin, struct buf *out)
{
    struct rusage usage;
    uint64_t up_s = clock_monotonic_s() - admin->started_s;
    getrusage(RUSAGE_SELF, &usage);
    reply_stat_u64(out, "pid", (uint64_t)getpid());
    reply_stat_u64(out, "uptime", up_s);
    reply_stat_u64(out, "time", (uint64_t)clock_unix_s());
    reply_stat_text(out, "version", MEMCACHED_VERSION);
    reply_stat_text(out, "libuv", uv_version_string());
    reply_stat_u64(out, "pointer_size", 8 * sizeof(void *));
    put_seconds(out, "rusage_user", &usage.ru_utime);
    put_seconds(out, "rusage_system", &usage.ru_stime);
}

static void
put_connections(struct server_admin *admin, struct buf *out)
{
    struct conn_gauge *gauge = admin->gauge;
    reply_stat_u64(
        out, "max_connections", (uint64_t)admin->options->conn_limit);
    reply_stat_u64(out, "curr_connections", atomic_load(&gauge->current));
    reply_stat_u64(out, "total_connections", atomic_load(&gauge->total));
    reply_stat_u64(out, "rejected_connections", atomic_load(&gauge->rejected));
}

static void
put_general(struct server_admin *admin, struct buf *out)
{
    uint64_t sum[METRIC_COUNT];
    struct items_stats items;
    sum_since_reset(admin, sum);
    items_stats(admin->store->items, &items);
    put_process(admin, out);
    put_connections(admin, out);
#define X(name, text) reply_stat_u64(out, #name, sum[METRIC_##name]);
    METRIC_GENERAL(X)
#undef X
    reply_stat_u64(out, "limit_maxbytes", admin->options->memory_limit);
    reply_stat_u64(out, "accepting_conns", 1);
    reply_stat_u64(out, "threads", admin->n_workers);
#define X(name, text) reply_stat_u64(out, #name, items.name);
    ITEMS_STATS(X)
#undef X
    reply_line(out, "END");
}

static void
put_counter(struct server_admin *admin, const struct schema_counter *counter,
    struct buf *out)
{
    char name[NAME_BYTES];
    char value[32];
    struct store_sum sum = store_sum(admin->store, counter->slot);
    snprintf(name, sizeof name, "%s:columns", counter->name.text);
    reply_stat_u64(out, name, counter->n_columns);
    snprintf(name, sizeof name, "%s:records", counter->name.text);
    reply_stat_u64(out, name, sum.records);
    snprintf(name, sizeof name, "%s:bytes", counter->name.text);
    reply_stat_u64(out, name, sum.bytes);
    snprintf(name, sizeof name, "%s:bytes_per_record", counter->name.text);
    snprintf(value, sizeof value, "%.2f",
        sum.records == 0 ? 0.0 : (double)sum.bytes / (double)sum.records);
    reply_stat_text(out, name, value);
}

static void
put_counters(struct server_admin *admin, struct buf *out)
{
    uint64_t sum[METRIC_COUNT];
    const struct schema *schema = store_schema(admin->store);
    sum_since_reset(admin, sum);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL) {
            put_counter(admin, counter, out);
        }
    }
    reply_stat_text(out, "tallyd_version", PACKAGE_VERSION);
#define X(name, text) reply_stat_u64(out, #name, sum[METRIC_##name]);
    METRIC_COUNTERS(X)
#undef X
    reply_line(out, "END");
}

static double
ratio(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : (double)part / (double)whole;
}

/* of: "<counter>" or "<counter>:<shard>" */
static void
put_sum(struct buf *out, const char *of, const struct engine_sum *sum)
{
    char name[NAME_BYTES];
    char value[RATIO_BYTES];
#define X(field, text)                                                        \
    snprintf(name, sizeof name, "%s:" #field, of);                            \
    reply_stat_u64(out, name, sum->field);
    ENGINE_SUMS(X)
#undef X
#define X(figure, number)                                                     \
    snprintf(name, sizeof name, "%s:" #figure, of);                           \
    snprintf(value, sizeof value, "%.4f", number);                            \
    reply_stat_text(out, name, value);
    TABLE_RATIOS(X)
#undef X
}

/* "<bits>:<values>" for each width that occurs; no line where none does. */
static void
put_widths(struct buf *out, const struct schema_counter *counter,
    const struct schema_column *column, const uint64_t width[ENGINE_WIDTHS])
{
    bool any = false;
    for (unsigned bits = 0; bits < ENGINE_WIDTHS; bits++) {
        if (width[bits] > 0 && !any) {
            buf_addf(out, "STAT %s:%s:widths", counter->name.text,
                column->name.text);
            any = true;
        }
        if (width[bits] > 0) {
            buf_addf(out, " %u:%" PRIu64, bits, width[bits]);
        }
    }
    if (any) {
        reply_line(out, "");
    }
}

static void
put_counter_tables(struct server_admin *admin,
    const struct schema_counter *counter, struct buf *out)
{
    char part[PART_BYTES];
    uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS] = {{0}};
    struct engine_sum sum = {0};
    store_tables(admin->store, counter->slot, ALL_SHARDS, &sum);
    put_sum(out, counter->name.text, &sum);
    store_widths(admin->store, counter->slot, width);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        put_widths(out, counter, column, width[column->slot]);
    }
    for (int shard = 0; shard < admin->options->shards; shard++) {
        sum = (struct engine_sum){0};
        store_tables(admin->store, counter->slot, shard, &sum);
        if (sum.tables > 0) {
            snprintf(part, sizeof part, "%s:%d", counter->name.text, shard);
            put_sum(out, part, &sum);
        }
    }
}

/* Of all counters, or of the one that is named. */
static void
put_tables(
    struct server_admin *admin, const char *name, size_t len, struct buf *out)
{
    const struct schema *schema = store_schema(admin->store);
    uint64_t garbage_bytes = 0;
    uint64_t used_bytes = store_hot_bytes(admin->store, &garbage_bytes);
    const struct schema_counter *only =
        len == 0 ? NULL : schema_counter(schema, name, len);
    if (len > 0 && only == NULL) {
        reply_error(out, ERR_NO_COUNTER);
        return;
    }
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && (only == NULL || only == counter)) {
            put_counter_tables(admin, counter, out);
        }
    }
    reply_stat_u64(out, "hot_memory_used", used_bytes);
    reply_stat_u64(out, "hot_memory_garbage", garbage_bytes);
    reply_stat_u64(out, "hot_memory_limit", admin->options->hot_memory);
    reply_line(out, "END");
}

static void
put_setting(void *context, const char *name, const char *value)
{
    reply_stat_text(context, name, value);
}

static void
put_settings(struct server_admin *admin, struct buf *out)
{
    struct options now = *admin->options;
    /* relaxed: a figure */
    now.verbosity =
        atomic_load_explicit(&admin->logger->verbosity, memory_order_relaxed);
    options_each_setting(&now, put_setting, out);
    reply_line(out, "END");
}

static void
put_wal(struct server_admin *admin, struct buf *out)
{
    uint64_t sum[METRIC_COUNT];
    store_data_stats(admin->store, put_setting, out);
    sum_since_reset(admin, sum);
    reply_stat_u64(
        out, metric_name(METRIC_changes_unsure), sum[METRIC_changes_unsure]);
    reply_stat_u64(
        out, metric_name(METRIC_changes_late), sum[METRIC_changes_late]);
    reply_line(out, "END");
}

static void
reset(struct server_admin *admin, struct buf *out)
{
    uint64_t sum[METRIC_COUNT];
    pthread_mutex_lock(&admin->lock);
    sum_metrics(admin, sum);
    for (int i = 0; i < METRIC_COUNT; i++) {
        admin->forgotten[i] = sum[i];
    }
    pthread_mutex_unlock(&admin->lock);
    reply_line(out, "RESET");
}

static void
stats(struct admin *seam, const char *args, size_t len, struct buf *out)
{
    struct server_admin *admin = (struct server_admin *)seam;
    struct words words = words_of(args, (struct span){0, (uint32_t)len});
    struct span word;
    if (!words_next(&words, &word)) {
        put_general(admin, out);
    } else if (span_is(args, word, "settings")) {
        put_settings(admin, out);
    } else if (span_is(args, word, "counters")) {
        put_counters(admin, out);
    } else if (span_is(args, word, "tables")) {
        bool named = words_next(&words, &word);
        put_tables(admin, args + word.at, named ? word.len : 0, out);
    } else if (span_is(args, word, "wal")) {
        put_wal(admin, out);
    } else if (span_is(args, word, "cold")) {
        store_cold_stats(admin->store, put_setting, out);
        reply_line(out, "END");
    } else if (span_is(args, word, "reset")) {
        reset(admin, out);
    } else {
        reply_line(out, "ERROR");
    }
}

static void
set_verbosity(struct admin *seam, unsigned level)
{
    struct server_admin *admin = (struct server_admin *)seam;
    /* relaxed: a new verbosity may take effect a line later */
    atomic_store_explicit(
        &admin->logger->verbosity, (int)level, memory_order_relaxed);
}

void
admin_init(struct server_admin *admin)
{
    *admin = (struct server_admin){.admin = {.stats_fn = stats,
                                       .verbosity_fn = set_verbosity,
                                       .version = version},
        .started_s = clock_monotonic_s()};
    pthread_mutex_init(&admin->lock, NULL);
}

void
admin_fini(struct server_admin *admin)
{
    pthread_mutex_destroy(&admin->lock);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers stats: finds the sub-command and does reset.
 *
 * memcached takes any beginning of most names, in an order of its own ("stats
 * c" is cachedump), and only the whole of others; tallyd's own follow them.
 * Reset remembers the workers' sums of that moment and subtracts them from
 * then on: their cells have one writer each and are never written from
 * here. */
#include "server/admin_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "call/store_calls.h"
#include "items/items.h"
#include "proto/reply_stats.h"

#include <config.h>
#include <stdlib.h>
#include <string.h>

/* What clients are told: the memcached, then ourselves. */
static const char version[] =
    ADMIN__MEMCACHED_VERSION " tallyd " PACKAGE_VERSION;

static void
sum_metrics(struct server_admin *admin, uint64_t sum[METRIC_COUNT])
{
    mutex_assert_held(&admin->lock);
    for (int i = 0; i < METRIC_COUNT; i++) {
        sum[i] = admin->kept[i];
    }
    for (unsigned i = 0; i < admin->n_workers; i++) {
        metric_sum(&admin->workers[i]->metrics, sum);
    }
}

void
admin__sum(struct server_admin *admin, uint64_t sum[METRIC_COUNT])
{
    /* summed under the lock, so never below what is forgotten */
    mutex_lock(&admin->lock);
    sum_metrics(admin, sum);
    for (int i = 0; i < METRIC_COUNT; i++) {
        ASSERT(sum[i] >= admin->forgotten.metric[i]);
        sum[i] -= admin->forgotten.metric[i];
    }
    mutex_unlock(&admin->lock);
}

/* Makes all figures begin anew, but for those of what there is now. */
static void
reset(struct server_admin *admin)
{
    struct admin_forgotten *forgotten = &admin->forgotten;
    mutex_lock(&admin->lock);
    sum_metrics(admin, forgotten->metric);
    forgotten->connections = atomic_load(&admin->gauge->total);
    forgotten->rejected = atomic_load(&admin->gauge->rejected);
    admin__reset_latency(admin);
    mutex_unlock(&admin->lock);
    items_stats_reset(admin->store->items);
    prefixes_clear(&admin->prefixes);
}

void
admin__put_stat(void *context, const char *name, const char *value)
{
    reply_stats_text(context, name, value);
}

/* tallyd's own, by their whole names. */
static bool
own_stats(struct server_admin *admin, const char *args, struct span word,
    struct words words, struct admin_reply *reply, struct reply_stats *out)
{
    if (span_is(args, word, "counters")) {
        admin__counters(admin, out);
    } else if (span_is(args, word, "members")) {
        return admin__members(admin, reply, out);
    } else if (span_is(args, word, "names")) {
        store_names_stats(admin->store, admin__put_stat, out);
        reply_stats_end(out);
    } else if (span_is(args, word, "producers")) {
        store_producer_stats(admin->store, admin__put_stat, out);
        reply_stats_end(out);
    } else if (span_is(args, word, "tables")) {
        struct span name = {0, 0};
        words_next(&words, &name);
        return admin__tables(admin, args + name.at, name.len, reply, out);
    } else if (span_is(args, word, "replication") ||
        span_is(args, word, "replicas")) {
        replication_each_stat(admin->replication,
            span_is(args, word, "replicas"), admin__put_stat, out);
        reply_stats_end(out);
    } else if (span_is(args, word, "wal")) {
        admin__wal(admin, out);
    } else if (span_is(args, word, "cold")) {
        admin__cold(admin, out);
    } else if (span_is(args, word, "memory")) {
        admin__memory(admin, out);
    } else if (span_is(args, word, "health")) {
        admin__health(admin, out);
    } else if (span_is(args, word, "latency")) {
        bool has_word = words_next(&words, &word);
        if (has_word && span_is(args, word, "buckets")) {
            admin__latency_buckets(admin, out);
        } else {
            admin__latency(admin, out);
        }
    } else if (span_is(args, word, "loop")) {
        admin__loop(admin, out);
    } else if (span_is(args, word, "slow")) {
        admin__slow(admin, out);
    } else if (span_is(args, word, "hot")) {
        admin__hot(admin, out);
    } else if (span_is(args, word, "forget")) {
        store_forget_stats(admin->store, admin__put_stat, out);
        reply_stats_end(out);
    } else {
        reply_stats_refuse(out, "ERROR");
    }
    return false;
}

static bool
stats(struct admin *seam, const char *args, size_t len,
    struct admin_reply *reply, struct reply_stats *out)
{
    struct server_admin *admin = admin__of(seam);
    struct words words = words_of(args, (struct span){0, (uint32_t)len});
    struct span word;
    if (!words_next(&words, &word)) {
        admin__general(admin, out);
    } else if (span_begins(args, word, "reset")) {
        reset(admin);
        reply_stats_done(out, "RESET");
    } else if (span_begins(args, word, "detail")) {
        admin__detail(admin, args, words, out);
    } else if (span_begins(args, word, "settings")) {
        admin__settings(admin, out);
    } else if (span_begins(args, word, "cachedump")) {
        admin__cachedump(admin, args, words, out);
    } else if (span_begins(args, word, "conns")) {
        admin__conns(admin, out);
    } else if (span_begins(args, word, "extstore")) { /* there is none */
        reply_stats_end(out);
    } else if (span_is(args, word, "items")) {
        admin__items(admin, out);
    } else if (span_is(args, word, "slabs")) {
        admin__slabs(admin, out);
    } else if (span_is(args, word, "sizes")) {
        reply_stats_text(out, "sizes_status", "disabled");
        reply_stats_end(out);
    } else {
        return own_stats(admin, args, word, words, reply, out);
    }
    return false;
}

static void
set_verbosity(struct admin *seam, unsigned level)
{
    struct server_admin *admin = admin__of(seam);
    /* relaxed: a new verbosity may take effect a line later */
    atomic_store_explicit(
        &admin->logger->verbosity, (int)level, memory_order_relaxed);
}

void
admin_init(struct server_admin *admin, const struct options *options)
{
    *admin = (struct server_admin){.magic = ADMIN_MAGIC,
        .admin = {.stats_fn = stats,
            .verbosity_fn = set_verbosity,
            .version = version,
            .command_fn = admin__command,
            .audit_fn = admin__audit,
            .near_fn = admin__near},
        .options = options,
        .started_s = clock_monotonic_s()};
    admin->admin.started_unix_s = clock_unix_s();
    admin->admin.prefixes = &admin->prefixes;
    clock_shift_anchor(&admin->clock);
    admin->admin.clock = &admin->clock;
    atomic_init(&admin->memory_limit, options->memory_limit);
    atomic_init(&admin->slow_ms, (uint32_t)options->slow_ms);
    atomic_init(&admin->crawler_is_on, options->lru_crawler);
    mutex_init(&admin->lock);
    mutex_init(&admin->gate);
    prefixes_init(&admin->prefixes, (char)options->prefix_delimiter,
        options->stats_detail);
}

void
admin_keep_metrics(struct server_admin *admin)
{
    mutex_lock(&admin->lock);
    sum_metrics(admin, admin->kept);
    admin__keep_latency(admin);
    admin->n_workers = 0;
    mutex_unlock(&admin->lock);
}

void
admin_fini(struct server_admin *admin)
{
    prefixes_fini(&admin->prefixes);
    mutex_fini(&admin->gate);
    free(admin->kept_latency);
    free(admin->old_latency);
    mutex_fini(&admin->lock);
    admin->magic = 0;
}

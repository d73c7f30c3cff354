/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers what stats tells, for the server's own use; answers stats memory and
 * stats health.
 *
 * Who gathers may be no worker: the gate keeps the store and the workers where
 * they are meanwhile. The main thread takes it to open and to shut it, to start
 * workers, and to gather itself; who has it waits for no other thread's work,
 * so the main thread has it soon. */
#include "server/admin_priv.h"

#include "call/store_calls.h"
#include "items/items.h"
#include "proto/reply_stats.h"
#include "server/options_repl_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 32 };

void
admin_open(struct server_admin *admin)
{
    mutex_lock(&admin->gate);
    admin->is_open = true;
    mutex_unlock(&admin->gate);
}

void
admin_shut(struct server_admin *admin)
{
    mutex_lock(&admin->gate);
    admin->is_over = admin->is_over || admin->is_open;
    admin->is_open = false;
    mutex_unlock(&admin->gate);
}

/* One group, as a client of the text protocol would be told. */
static void
gather_group(struct server_admin *admin, const char *words, struct buf *text)
{
    const struct echo echo = {.proto = PROTO_TEXT};
    struct reply_stats out = {.out = text, .echo = &echo};
    struct admin_reply reply = {.step = 0};
    bool goes_on = true;
    buf_clear(text);
    while (goes_on) {
        goes_on = admin->admin.stats_fn(
            &admin->admin, words, strlen(words), &reply, &out);
    }
}

/* Notes what is so for now, and since when. */
static struct health_stands
look(struct server_admin *admin, struct health_facts *facts)
{
    mutex_assert_held(&admin->gate);
    facts->now_s =
        clock_monotonic_s(); /* under the gate: it does not go back */
    facts->cold_threads = (uint64_t)admin->options->cold_threads;
    health_look(facts, &admin->past.stands);
    return admin->past.stands;
}

/* Judges by what has been gathered. */
static void
judge(
    struct server_admin *admin, struct health_facts *facts, struct health *out)
{
    const struct options *options = admin->options;
    struct health_growing now, oldest;
    struct health_stands stands;
    health_count(facts->now, &now);
    mutex_lock(&admin->gate);
    oldest = health_past_oldest(&admin->past);
    stands = look(admin, facts);
    mutex_unlock(&admin->gate);
    facts->stands = &stands;
    health_grown(&now, &oldest, &facts->grown);
    facts->has_groups = admin->replication->is_wanted;
    facts->stale_ms = options_stale_ms(options);
    facts->max_lag_ms = (uint64_t)options->max_lag_ms;
    facts->interval_ms = options->sync == OPTIONS_SYNC_INTERVAL
        ? (uint64_t)options->sync_interval_ms
        : 0;
    health_judge(facts, out);
}

bool
admin_gather(struct server_admin *admin, struct figures *figures,
    unsigned groups, struct health *health)
{
    static const char *const words[] = {
#define X(name, words) (words),
        FIGURES_GROUPS(X)
#undef X
    };
    struct qsbr_reader reader;
    struct health_facts facts = {.now = figures};
    mutex_lock(&admin->gate);
    facts.is_open = admin->is_open;
    facts.is_over = admin->is_over;
    for (unsigned i = 0; i < FIGURES_GROUPS_COUNT; i++) {
        buf_clear(&figures->text[i]);
    }
    if (admin->is_open) {
        qsbr_register(admin->store->qsbr, &reader);
        qsbr_online(admin->store->qsbr, &reader);
        facts.fault = store_fault(admin->store);
        for (unsigned i = 0; i < FIGURES_GROUPS_COUNT; i++) {
            if ((groups & 1U << i) != 0) {
                gather_group(admin, words[i], &figures->text[i]);
            }
        }
        qsbr_offline(&reader);
        qsbr_unregister(admin->store->qsbr, &reader);
    }
    mutex_unlock(&admin->gate);
    if (health != NULL) {
        judge(admin, &facts, health);
    }
    return facts.is_open;
}

void
admin_sample(struct server_admin *admin)
{
    struct figures figures = {0};
    struct health_growing now;
    if (admin_gather(admin, &figures, FIGURES_GROUPS_HEALTH, NULL)) {
        struct health_facts facts = {.now = &figures};
        health_count(&figures, &now);
        mutex_lock(&admin->gate);
        health_past_add(&admin->past, &now);
        (void)look(admin, &facts);
        mutex_unlock(&admin->gate);
    }
    figures_fini(&figures);
}

void
admin__health(struct server_admin *admin, struct reply_stats *out)
{
    struct figures figures = {0};
    struct health health;
    char name[NAME_BYTES];
    (void)admin_gather(admin, &figures, FIGURES_GROUPS_HEALTH, &health);
    uint64_t sealing = figures_u64(&figures, FIGURES_cold, "seal_all_records");
    uint64_t sealed = figures_u64(&figures, FIGURES_cold, "seal_percent");
    figures_fini(&figures);
    reply_stats_text(out, "state", health_word(health.state));
    if (health.state == HEALTH_LOADING) {
        reply_stats_u64(out, "percent", health.percent);
    }
    if (sealing > 0) { /* of `seal NAME all` */
        reply_stats_u64(out, "seal_percent", sealed);
    }
    reply_stats_u64(out, "problems", health.n);
    for (unsigned i = 0; i < health.n; i++) {
        (void)snprintf(name, sizeof name, "problem:%u", i + 1);
        reply_stats_text(out, name, health.problem[i]);
    }
    reply_stats_end(out);
}

/* One figure out of those of the log, or of the cold tier. */
struct wanted {
    struct reply_stats *out;
    const char *name, *shown_as;
};

static void
put_wanted(void *context, const char *name, const char *value)
{
    const struct wanted *wanted = context;
    if (strcmp(name, wanted->name) == 0) {
        reply_stats_text(wanted->out, wanted->shown_as, value);
    }
}

static void
put_cache(struct server_admin *admin, struct reply_stats *out)
{
    struct wanted used = {out, "cache_bytes", "cold_cache_used"};
    struct wanted limit = {out, "cache_budget_bytes", "cold_cache_limit"};
    store_cold_stats(admin->store, put_wanted, &used);
    store_cold_stats(admin->store, put_wanted, &limit);
}

void
admin__memory(struct server_admin *admin, struct reply_stats *out)
{
    struct wanted log = {out, "unsynced_bytes", "log_used"};
    struct wanted maps = {out, "memory", "cold_maps"};
    struct items_stats items;
    struct sorted_figures sorted;
    uint64_t garbage;
    uint64_t hot = store_hot_bytes(admin->store, &garbage);
    size_t resident = 0;
    (void)uv_resident_set_memory(&resident);
    items_stats(admin->store->items, &items);
    store_sorted_figures(admin->store, &sorted);
    reply_stats_u64(out, "resident", resident);
    reply_stats_u64(out, "hot_used", hot);
    reply_stats_u64(out, "hot_garbage", garbage);
    reply_stats_u64(out, "hot_limit", admin->options->hot_memory);
    reply_stats_u64(out, "items_used", items.bytes);
    reply_stats_u64(out, "items_limit", atomic_load(&admin->memory_limit));
    /* relaxed: a figure */
    reply_stats_u64(out, "requests_used",
        atomic_load_explicit(&admin->rooms->total, memory_order_relaxed));
    reply_stats_u64(out, "requests_limit", admin->options->request_memory);
    store_data_stats(admin->store, put_wanted, &log);
    reply_stats_u64(out, "log_limit", admin->options->log_memory);
    put_cache(admin, out);
    store_cold_stats(admin->store, put_wanted, &maps);
    reply_stats_u64(out, "sorted_used", sorted.bytes);
    reply_stats_u64(out, "sorted_limit", sorted.limit_bytes);
    reply_stats_end(out);
}

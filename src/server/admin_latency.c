/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers stats latency and stats loop. */
#include "server/admin_priv.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    NAME_BYTES = 48,
    NS_PER_US = 1000,
    BOUND_LAST = 25 /* of buckets, 2^25 us: 34 s */
};

static const struct {
    const char *name;
    unsigned permille;
} quantiles[] = {
    {"p50_us", 500}, {"p90_us", 900}, {"p99_us", 990}, {"p999_us", 999}};

static void
put_figure(struct reply_stats *out, const char *what, const char *figure,
    uint64_t value)
{
    char name[2 * NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s:%s", what, figure);
    reply_stats_u64(out, name, value);
}

/* The figures of a histogram; of an empty one none but that. */
static void
put_hist(struct reply_stats *out, const char *what, const struct hist_sum *sum)
{
    put_figure(out, what, "count", sum->count);
    if (sum->count == 0) {
        return;
    }
    put_figure(out, what, "sum_us", sum->sum_ns / NS_PER_US);
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        put_figure(out, what, quantiles[i].name,
            hist_sum_quantile(sum, quantiles[i].permille) / NS_PER_US);
    }
    put_figure(out, what, "max_us", sum->max_ns / NS_PER_US);
}

void
admin__latency(struct server_admin *admin, struct reply_stats *out)
{
    char what[NAME_BYTES];
    for (unsigned verb = 0; verb < LATENCY_VERB_COUNT; verb++) {
        struct hist_sum all = {.count = 0}, one[LATENCY_PATH_COUNT];
        const char *name = latency_verb_name((enum latency_verb)verb);
        for (unsigned path = 0; path < LATENCY_PATH_COUNT; path++) {
            one[path] = (struct hist_sum){.count = 0};
            admin__latency_sum(admin, (enum latency_verb)verb,
                (enum latency_path)path, &one[path]);
            hist_sum_add(&all, &one[path]);
        }
        (void)snprintf(what, sizeof what, "%s:all", name);
        put_hist(out, what, &all);
        for (unsigned path = 0; path < LATENCY_PATH_COUNT; path++) {
            (void)snprintf(what, sizeof what, "%s:%s", name,
                latency_path_name((enum latency_path)path));
            put_hist(out, what, &one[path]);
        }
    }
    reply_stats_end(out);
}

static void
put_buckets(struct reply_stats *out, const char *what,
    const uint64_t below[BOUND_LAST + 1], uint64_t count)
{
    char figure[NAME_BYTES];
    for (unsigned i = 0; i <= BOUND_LAST + 1; i++) {
        uint64_t before = i == 0 ? 0 : below[i - 1];
        uint64_t n = (i > BOUND_LAST ? count : below[i]) - before;
        if (n > 0) {
            (void)snprintf(
                figure, sizeof figure, "us_below_%" PRIu64, UINT64_C(1) << i);
            put_figure(out, what, figure, n);
        }
    }
}

void
admin__latency_buckets(struct server_admin *admin, struct reply_stats *out)
{
    char what[NAME_BYTES];
    uint64_t bound_us[BOUND_LAST + 1], below[BOUND_LAST + 1];
    for (unsigned i = 0; i <= BOUND_LAST; i++) {
        bound_us[i] = UINT64_C(1) << i;
    }
    for (unsigned verb = 0; verb < LATENCY_VERB_COUNT; verb++) {
        for (unsigned path = 0; path < LATENCY_PATH_COUNT; path++) {
            struct hist_sum sum = {.count = 0};
            admin__latency_sum(
                admin, (enum latency_verb)verb, (enum latency_path)path, &sum);
            hist_sum_below(&sum, bound_us, BOUND_LAST + 1, below);
            (void)snprintf(what, sizeof what, "%s:%s",
                latency_verb_name((enum latency_verb)verb),
                latency_path_name((enum latency_path)path));
            put_buckets(out, what, below, sum.count);
        }
    }
    reply_stats_end(out);
}

void
admin__loop(struct server_admin *admin, struct reply_stats *out)
{
    char what[NAME_BYTES];
    static const char *const names[LATENCY_LOOP_COUNT] = {
#define X(name, text) #name,
        LATENCY_LOOPS(X)
#undef X
    };
    for (unsigned i = 0; i < admin->n_workers; i++) {
        const struct latency_set *set = admin->workers[i]->latency;
        for (unsigned k = 0; k < LATENCY_LOOP_COUNT; k++) {
            struct hist_sum sum = {.count = 0};
            hist_read(&set->loop[k], &sum);
            (void)snprintf(what, sizeof what, "%u:%s", i, names[k]);
            put_hist(out, what, &sum);
        }
    }
    reply_stats_end(out);
}

/* SPDX-License-Identifier: BSD-3-Clause */

/* The result of a run, for people and for programs. The client's own CPU
 * share is part of it: near 100 % the figures are those of the client. */

#include "bench/report.h"

#include "bench/bound.h"
#include "bench/wire.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_PER_S 1e9
#define NS_PER_US 1e3
#define US_PER_S 1e6

/* Above this share of its cores a side has no time to be slow in. */
#define FULL_SHARE 0.95

struct figures {
    double seconds;
    uint64_t ops, keys, hits;
    double server_us_op, server_us_key, server_share;
    double client_us_op, client_share;
    double p50_us, p90_us, p99_us, p999_us, p9999_us, max_us;
    bool is_client_bound;
};

static double
ratio(uint64_t over, uint64_t under)
{
    return under == 0 ? 0.0 : (double)over / (double)under;
}

static double
quantile_us(const struct hist *hist, double share)
{
    return (double)hist_quantile(hist, share) / NS_PER_US;
}

static struct figures
compute(const struct options *options, const struct sample *begin,
    const struct sample *end, const struct hist *hist)
{
    struct figures f = {.ops = end->ops - begin->ops,
        .keys = end->keys - begin->keys,
        .hits = end->hits - begin->hits};
    uint64_t server_us = end->server_cpu_us - begin->server_cpu_us;
    uint64_t client_us = end->own_cpu_us - begin->own_cpu_us;
    f.seconds = (double)(end->at_ns - begin->at_ns) / NS_PER_S;
    f.server_us_op = ratio(server_us, f.ops);
    f.server_us_key = ratio(server_us, f.keys);
    f.server_share = (double)server_us / US_PER_S / f.seconds;
    f.client_us_op = ratio(client_us, f.ops);
    f.client_share = (double)client_us / US_PER_S / f.seconds;
    f.p50_us = quantile_us(hist, 0.5);
    f.p90_us = quantile_us(hist, 0.9);
    f.p99_us = quantile_us(hist, 0.99);
    f.p999_us = quantile_us(hist, 0.999);
    f.p9999_us = quantile_us(hist, 0.9999);
    f.max_us = (double)hist->max_ns / NS_PER_US;
    f.is_client_bound =
        f.client_share >= FULL_SHARE * (double)options->threads &&
        (options->pid == 0 || f.server_share < FULL_SHARE);
    return f;
}

/* Of the commands of an open loop, those that waited for a connection. */
static double
late_share(const struct pace_tally *paced)
{
    return ratio(paced->late + paced->unsent, paced->sent + paced->unsent);
}

/* Of an open loop. */
static void
paced_json(const struct options *options, const struct figures *f,
    const struct pace_tally *paced)
{
    printf(", \"rate\": %" PRIu64 ", \"answered_share\": %.4f"
           ", \"late_share\": %.6f, \"unsent\": %" PRIu64
           ", \"lag_p50_us\": %.1f, \"lag_p99_us\": %.1f"
           ", \"lag_max_us\": %.1f",
        options->rate, (double)f->ops / f->seconds / (double)options->rate,
        late_share(paced), paced->unsent, quantile_us(&paced->lag, 0.5),
        quantile_us(&paced->lag, 0.99), (double)paced->lag.max_ns / NS_PER_US);
}

static void
report_json(const struct options *options, const struct sample *begin,
    const struct sample *end, const struct figures *f,
    const struct pace_tally *paced)
{
    printf("{\"mode\": \"%s\", \"protocol\": \"%s\", \"connections\": %" PRIu64
           ", \"depth\": %" PRIu64 ", \"threads\": %" PRIu64
           ", \"records\": %" PRIu64 ", \"seed\": %" PRIu64,
        options_mode_name(options->mode),
        wire_protocol_words[options->protocol], options->connections,
        options->depth, options->threads, options->records, options->seed);
    printf(", \"seconds\": %.3f, \"ops\": %" PRIu64 ", \"keys\": %" PRIu64
           ", \"hits\": %" PRIu64 ", \"ops_per_s\": %.0f"
           ", \"keys_per_s\": %.0f",
        f->seconds, f->ops, f->keys, f->hits, (double)f->ops / f->seconds,
        (double)f->keys / f->seconds);
    if (options->rate != 0) {
        paced_json(options, f, paced);
    }
    if (options->mode == MODE_FILL) {
        struct bound bound = bound_of(&options->posts);
        printf(", \"stored\": %" PRIu64 ", \"bound_bytes\": %.3f",
            end->records - begin->records, bound_bytes(&bound));
    }
    printf(", \"client_us_per_op\": %.4f, \"client_cpu\": %.3f"
           ", \"client_bound\": %s",
        f->client_us_op, f->client_share,
        f->is_client_bound ? "true" : "false");
    if (options->pid != 0) {
        printf(", \"server_us_per_op\": %.4f, \"server_us_per_key\": %.4f"
               ", \"server_cpu\": %.3f, \"rss_before\": %" PRIu64
               ", \"rss_after\": %" PRIu64,
            f->server_us_op, f->server_us_key, f->server_share,
            begin->memory.rss_bytes, end->memory.rss_bytes);
    }
    printf(", \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f"
           ", \"p999_us\": %.1f"
           ", \"p9999_us\": %.1f, \"max_us\": %.1f, \"verified\": %s}\n",
        f->p50_us, f->p90_us, f->p99_us, f->p999_us, f->p9999_us, f->max_us,
        options->verify ? "true" : "false");
}

static void
report_table(const struct options *options, const struct figures *f,
    const struct pace_tally *paced)
{
    printf("%-6s %9s %9s %5s %8s %8s %6s %6s %8s %8s %8s %8s\n", "mode",
        "ops/s", "keys/s", "hit%", "us/op", "us/key", "srv%", "cli%", "p50us",
        "p99us", "p99.9us", "p99.99us");
    printf("%-6s %9.0f %9.0f %5.1f ", options_mode_name(options->mode),
        (double)f->ops / f->seconds, (double)f->keys / f->seconds,
        100.0 * ratio(f->hits, f->keys));
    if (options->pid != 0) {
        printf("%8.3f %8.4f %6.1f ", f->server_us_op, f->server_us_key,
            100.0 * f->server_share);
    } else {
        printf("%8s %8s %6s ", "-", "-", "-");
    }
    printf("%6.1f %8.1f %8.1f %8.1f %8.1f\n", 100.0 * f->client_share,
        f->p50_us, f->p99_us, f->p999_us, f->p9999_us);
    if (options->rate != 0) {
        printf("open loop of %" PRIu64 " commands/s: %.2f %% waited for a "
               "connection, %" PRIu64 " unsent; the generator itself was late "
               "by %.1f us (p50), %.1f us (p99), %.1f us at most\n",
            options->rate, 100.0 * late_share(paced), paced->unsent,
            quantile_us(&paced->lag, 0.5), quantile_us(&paced->lag, 0.99),
            (double)paced->lag.max_ns / NS_PER_US);
    }
    if (f->is_client_bound) {
        printf("the client had no time left: rates and latency are its own\n");
    }
}

void
report(const struct options *options, const struct sample *begin,
    const struct sample *end, const struct hist *hist,
    const struct pace_tally *paced)
{
    struct figures f = compute(options, begin, end, hist);
    if (options->json) {
        report_json(options, begin, end, &f, paced);
    } else {
        report_table(options, &f, paced);
    }
}

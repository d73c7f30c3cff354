/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs first, then ids, then clients: of these as many as there is room for.
 * Rates are of the time since the look before; percentiles are the server's,
 * since its start or the last `stats reset`. */
#include "cli/amount.h"
#include "cli/listing.h"
#include "cli/table.h"
#include "cli/top.h"

#include "base/assert.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64, PERCENT = 100, VERBS_LINES = 8 };

static const double ns_per_s = 1e9;

static const char *const verbs[] = {
    "get", "set", "incr", "decr", "delete", "touch", "other"};
static const char *const paths[] = {"hot", "cold", "commit", "room"};

enum {
    VERBS_N = sizeof verbs / sizeof verbs[0],
    PATHS_N = sizeof paths / sizeof paths[0]
};

static uint64_t
number(const struct figures *figures, const char *name)
{
    uint64_t value = 0;
    (void)figures_u64(figures, name, &value);
    return value;
}

/* How often a verb went that way since the look before. */
static uint64_t
grown(const struct top *top, const char *verb, const char *path)
{
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s:%s:count", verb, path);
    uint64_t now = number(&top->now[TOP_LATENCY], name);
    uint64_t then = number(&top->before[TOP_LATENCY], name);
    return now > then ? now - then : 0;
}

static void
rate_text(const struct top *top, uint64_t n, char out[AMOUNT_BYTES])
{
    if (top->between_ns == 0) {
        (void)snprintf(out, AMOUNT_BYTES, "-");
    } else {
        amount_number((double)n * ns_per_s / (double)top->between_ns, out);
    }
}

static void
add_percentile(const struct top *top, const char *verb, const char *which,
    struct table *table)
{
    char name[NAME_BYTES], text[AMOUNT_BYTES] = "-";
    uint64_t us = 0;
    (void)snprintf(name, sizeof name, "%s:all:%s", verb, which);
    if (figures_u64(&top->now[TOP_LATENCY], name, &us)) {
        amount_us(us, text);
    }
    table_cell(table, text);
}

static void
add_verbs(const struct top *top, struct table *table, struct buf *out)
{
    static const char *const head[] = {"verb", "a second", "hot", "cold",
        "commit", "room", "p50", "p99", "max"};
    char text[AMOUNT_BYTES];
    if (top->now[TOP_LATENCY].error[0] != '\0') {
        buf_addf(
            out, "verbs are not known: %s\n", top->now[TOP_LATENCY].error);
        return;
    }
    table_begin(table, head, sizeof head / sizeof head[0]);
    for (size_t i = 0; i < VERBS_N; i++) {
        uint64_t all = grown(top, verbs[i], "all");
        table_cell(table, verbs[i]);
        rate_text(top, all, text);
        table_cell(table, text);
        for (size_t j = 0; j < PATHS_N; j++) {
            uint64_t n = grown(top, verbs[i], paths[j]);
            (void)snprintf(text, sizeof text, "%" PRIu64 " %%",
                all == 0 ? 0 : n * PERCENT / all);
            table_cell(table, all == 0 ? "-" : text);
        }
        add_percentile(top, verbs[i], "p50_us", table);
        add_percentile(top, verbs[i], "p99_us", table);
        add_percentile(top, verbs[i], "max_us", table);
    }
    table_print(table, VERBS_N, out);
}

/* ---- clients ---- */

struct client {
    const char *name, *value; /* of the joined figures */
    uint64_t bytes;           /* since the look before, or ever */
};

static uint64_t
word_number(const char *value, const char *key)
{
    char text[AMOUNT_BYTES];
    return figures_word(value, key, text, sizeof text)
        ? strtoull(text, NULL, 10)
        : 0;
}

static uint64_t
bytes_of(const char *value)
{
    return word_number(value, "bytes_in") + word_number(value, "bytes_out");
}

/* The busiest first; who is as busy stays in the server's order. */
static int
compare(const void *one, const void *other)
{
    const struct client *a = one, *b = other;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    return a->name < b->name ? -1 : a->name > b->name;
}

/* Fills client; returns how many. A connection of the same number with another
 * address is another one. */
static unsigned
take_clients(const struct figures *now, const struct figures *then,
    struct client client[TOP_CONNS_MAX])
{
    char here[NAME_BYTES], there[NAME_BYTES];
    unsigned n = 0;
    size_t at = 0;
    const char *name = NULL, *value = NULL;
    while (n < TOP_CONNS_MAX && figures_next(now, &at, &name, &value)) {
        const char *old = figures_text(then, name);
        uint64_t bytes = bytes_of(value);
        (void)figures_word(value, "addr", here, sizeof here);
        if (old != NULL) {
            (void)figures_word(old, "addr", there, sizeof there);
            uint64_t before = strcmp(here, there) == 0 ? bytes_of(old) : 0;
            bytes -= before <= bytes ? before : 0;
        }
        client[n++] = (struct client){name, value, bytes};
    }
    qsort(client, n, sizeof client[0], compare);
    return n;
}

static void
add_clients(const struct top *top, struct table *table, unsigned lines,
    struct buf *out)
{
    static const char *const head[] = {
        "conn", "client", "user", "last", "idle", "bytes a second"};
    static const char *const key[] = {"addr", "user", "last_cmd"};
    static struct client client[TOP_CONNS_MAX];
    struct figures now = {.error = ""}, then = {.error = ""};
    char text[NAME_BYTES];
    listing_join(&top->now[TOP_CONNS], &now);
    listing_join(&top->before[TOP_CONNS], &then);
    unsigned n = take_clients(&now, &then, client);
    table_begin(table, head, sizeof head / sizeof head[0]);
    for (unsigned i = 0; i < n && i < lines; i++) {
        table_cell(table, client[i].name);
        for (size_t j = 0; j < sizeof key / sizeof key[0]; j++) {
            (void)figures_word(client[i].value, key[j], text, sizeof text);
            table_cell(table, text[0] == '\0' ? "-" : text);
        }
        amount_seconds(
            (double)word_number(client[i].value, "secs_since_last_cmd"), text);
        table_cell(table, text);
        rate_text(top, client[i].bytes, text);
        table_cell(table, text);
    }
    table_print(table, lines, out);
    figures_fini(&now);
    figures_fini(&then);
}

/* ---- the frame ---- */

static void
add_head(const struct top *top, struct buf *out)
{
    char up[AMOUNT_BYTES], used[AMOUNT_BYTES], bound[AMOUNT_BYTES];
    amount_seconds((double)number(&top->now[TOP_GENERAL], "uptime"), up);
    amount_bytes((double)number(&top->now[TOP_MEMORY], "hot_used"), used);
    amount_bytes((double)number(&top->now[TOP_MEMORY], "hot_limit"), bound);
    uint64_t connections = number(&top->now[TOP_GENERAL], "curr_connections");
    uint64_t sealed = 0;
    buf_addf(out, "%s: ", top->server);
    health_line(&top->health, out);
    if (figures_u64(&top->health.figures, "seal_percent", &sealed)) {
        buf_addf(out, "; seal all: %" PRIu64 " %%", sealed);
    }
    buf_addf(out,
        "\nup %s, %" PRIu64 " connection%s of %" PRIu64
        ", counters %s of %s; every %" PRIu64 " ms, q ends\n\n",
        up, connections, num_plural(connections),
        number(&top->now[TOP_GENERAL], "max_connections"), used, bound,
        top->interval_ms);
}

static void
add_hot(const struct top *top, struct table *table, unsigned lines,
    struct buf *out)
{
    buf_add_text(out, "\n");
    listing_table(listing_hot, &top->now[TOP_HOT], table);
    table_print(table, lines, out);
}

/* Cuts text to so many lines of so many columns. */
static void
cut(const struct buf *text, unsigned lines, unsigned columns, struct buf *out)
{
    for (size_t at = 0; at < text->len && lines > 0; lines--) {
        const char *line = text->data + at;
        const char *end = memchr(line, '\n', text->len - at);
        size_t len = end == NULL ? text->len - at : (size_t)(end - line);
        buf_add(out, line, len > columns ? columns : len);
        buf_add_text(out, "\n");
        at += len + 1;
    }
    out->failed = out->failed || text->failed;
}

void
top_frame(
    const struct top *top, unsigned lines, unsigned columns, struct buf *out)
{
    enum { HEAD_LINES = 3, EMPTY_AND_HEADS = 4, LEAST = 2 };
    unsigned taken = HEAD_LINES + VERBS_LINES + EMPTY_AND_HEADS;
    unsigned left = lines > taken + LEAST ? lines - taken : LEAST;
    struct table table = {.n_columns = 0};
    struct buf text = {0};
    ASSERT(lines > 0 && columns > 0);
    add_head(top, &text);
    add_verbs(top, &table, &text);
    add_hot(top, &table, left / 2, &text);
    buf_add_text(&text, "\n");
    if (top->has_many_conns) {
        buf_addf(&text, "more than %d clients: see tallyctl clients\n",
            TOP_CONNS_MAX);
    } else {
        add_clients(top, &table, left - left / 2, &text);
    }
    cut(&text, lines, columns, out);
    table_fini(&table);
    buf_fini(&text);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The page: a line a subject, its name in the first column. Nothing is shown
 * that the server has not told. */
#include "cli/amount.h"
#include "cli/json.h"
#include "cli/status.h"

#include "base/assert.h"
#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 64, SLOW_SHOWN = 3, PERCENT = 100 };

static const double ns_per_s = 1e9;

static const struct {
    const char *name;
    enum status_part part;
    const char *figure[2];
} rates[] = {
#define X(name, part, figure, other) {name, STATUS_##part, {figure, other}},
    STATUS_RATES(X)
#undef X
};

enum { RATES_N = sizeof rates / sizeof rates[0] };

static uint64_t
number(const struct status *status, enum status_part part, const char *name)
{
    uint64_t value = 0;
    (void)figures_u64(&status->part[part], name, &value);
    return value;
}

static const char *
word(const struct status *status, enum status_part part, const char *name)
{
    const char *value = figures_text(&status->part[part], name);
    return value == NULL ? "" : value;
}

/* A second, between the two looks; false: it is not known, as behind a `stats
 * reset`. */
static bool
rate(const struct status *status, unsigned i, double *out)
{
    uint64_t then = 0, now = 0;
    for (unsigned j = 0; j < 2 && rates[i].figure[j] != NULL; j++) {
        uint64_t value = 0;
        if (!figures_u64(
                &status->before[rates[i].part], rates[i].figure[j], &value)) {
            return false;
        }
        then += value;
        now += number(status, rates[i].part, rates[i].figure[j]);
    }
    if (status->between_ns == 0 || now < then) {
        return false;
    }
    *out = (double)(now - then) * ns_per_s / (double)status->between_ns;
    return true;
}

/* The sum of the figures COUNTER:name; how many there are. */
static unsigned
sum_of(const struct figures *figures, const char *name, uint64_t *sum)
{
    const char *found = NULL, *value = NULL;
    unsigned n = 0;
    *sum = 0;
    for (size_t at = 0; figures_next(figures, &at, &found, &value);) {
        const char *colon = strrchr(found, ':');
        uint64_t one = 0;
        if (colon != NULL && strcmp(colon + 1, name) == 0 &&
            figures_u64(figures, found, &one)) {
            *sum += one;
            n++;
        }
    }
    return n;
}

static void
subject(struct buf *out, const char *name)
{
    buf_addf(out, "%-12s ", name);
}

/* What the server has not told is not made up. */
static bool
is_told(const struct status *status, enum status_part part, const char *name,
    struct buf *out)
{
    const struct figures *figures = &status->part[part];
    if (figures->error[0] != '\0') {
        subject(out, name);
        buf_addf(out, "not known: %s\n", figures->error);
    }
    return figures->error[0] == '\0';
}

static void
add_of(struct buf *out, const char *name, uint64_t used, uint64_t bound)
{
    char a[AMOUNT_BYTES], b[AMOUNT_BYTES];
    amount_bytes((double)used, a);
    amount_bytes((double)bound, b);
    if (bound == 0) {
        buf_addf(out, "%s %s", name, a);
    } else {
        buf_addf(out, "%s %s of %s (%.0f %%)", name, a, b,
            (double)used * PERCENT / (double)bound);
    }
}

static void
add_head(const struct status *status, struct buf *out)
{
    const char *problem = NULL;
    buf_addf(out, "%s: ", status->server);
    health_line(&status->health, out);
    buf_add_text(out, "\n");
    for (unsigned i = 1;
         (problem = health_problem(&status->health, i)) != NULL; i++) {
        buf_addf(out, "also: %s\n", problem);
    }
    buf_add_text(out, "\n");
}

static void
add_server(const struct status *status, struct buf *out)
{
    char up[AMOUNT_BYTES];
    if (!is_told(status, STATUS_GENERAL, "server", out)) {
        return;
    }
    const char *role = word(status, STATUS_REPLICATION, "role");
    amount_seconds((double)number(status, STATUS_GENERAL, "uptime"), up);
    subject(out, "server");
    buf_addf(out, "tallyd %s, process %s, up %s, %s threads\n",
        word(status, STATUS_COUNTERS, "tallyd_version"),
        word(status, STATUS_GENERAL, "pid"), up,
        word(status, STATUS_GENERAL, "threads"));
    if (!is_told(status, STATUS_REPLICATION, "role", out)) {
        return;
    }
    subject(out, "role");
    if (role[0] == '\0') {
        buf_add_text(out, "alone: no copies on other servers\n");
    } else {
        buf_addf(out, "%s, node %s of group %s, term %s\n", role,
            word(status, STATUS_REPLICATION, "node"),
            word(status, STATUS_REPLICATION, "group"),
            word(status, STATUS_REPLICATION, "term"));
    }
    if (!is_told(status, STATUS_SETTINGS, "data", out)) {
        return;
    }
    subject(out, "data");
    buf_addf(out, "%s, sync %s\n", word(status, STATUS_SETTINGS, "data"),
        word(status, STATUS_SETTINGS, "sync"));
}

static void
add_records(const struct status *status, struct buf *out)
{
    uint64_t records = 0, members = 0;
    char amount[AMOUNT_BYTES];
    if (!is_told(status, STATUS_COUNTERS, "records", out)) {
        return;
    }
    unsigned n = sum_of(&status->part[STATUS_COUNTERS], "records", &records);
    unsigned n_members =
        sum_of(&status->part[STATUS_MEMBERS], "members", &members);
    subject(out, "records");
    buf_addf(out, "%" PRIu64 " in %u counter%s", records, n, num_plural(n));
    if (n_members > 0) {
        amount_number((double)members, amount);
        buf_addf(out, ", %s members", amount);
    }
    buf_add_text(out, "\n");
}

static void
add_memory(const struct status *status, struct buf *out)
{
    static const char *const kind[][3] = {
        {"counters", "hot_used", "hot_limit"},
        {"items", "items_used", "items_limit"},
        {"log", "log_used", "log_limit"},
        {"requests", "requests_used", "requests_limit"},
        {"cold cache", "cold_cache_used", "cold_cache_limit"}};
    char resident[AMOUNT_BYTES];
    if (!is_told(status, STATUS_MEMORY, "memory", out)) {
        return;
    }
    amount_bytes((double)number(status, STATUS_MEMORY, "resident"), resident);
    subject(out, "memory");
    buf_addf(out, "%s resident", resident);
    for (size_t i = 0; i < sizeof kind / sizeof kind[0]; i++) {
        if (figures_text(&status->part[STATUS_MEMORY], kind[i][1]) != NULL) {
            buf_addf(out, "%s", i % 2 == 0 ? ",\n             " : ", ");
            add_of(out, kind[i][0], number(status, STATUS_MEMORY, kind[i][1]),
                number(status, STATUS_MEMORY, kind[i][2]));
        }
    }
    buf_add_text(out, "\n");
}

/* Of `seal NAME all`, while there is one. */
static void
add_sealing(const struct status *status, struct buf *out)
{
    char done[AMOUNT_BYTES], all[AMOUNT_BYTES], left[AMOUNT_BYTES];
    uint64_t n = number(status, STATUS_COLD, "seal_all_records");
    uint64_t left_ms = number(status, STATUS_COLD, "seal_left_ms");
    if (n == 0) {
        return;
    }
    amount_number(
        (double)number(status, STATUS_COLD, "seal_done_records"), done);
    amount_number((double)n, all);
    amount_seconds((double)left_ms / 1000, left);
    subject(out, "seal all");
    buf_addf(out, "%" PRIu64 " %%, %s of %s records, %s left\n",
        number(status, STATUS_COLD, "seal_percent"), done, all,
        left_ms == 0 ? "?" : left);
}

/* Of a checkpoint, while there is one. */
static void
add_checkpoint(const struct status *status, struct buf *out)
{
    char all[AMOUNT_BYTES], left[AMOUNT_BYTES];
    uint64_t n = number(status, STATUS_WAL, "checkpoint_all_records");
    uint64_t left_ms = number(status, STATUS_WAL, "checkpoint_left_ms");
    if (n == 0) {
        return;
    }
    amount_number((double)n, all);
    amount_seconds((double)left_ms / 1000, left);
    subject(out, "checkpoint");
    buf_addf(out, "%" PRIu64 " %% of %s records, %s left\n",
        number(status, STATUS_WAL, "checkpoint_percent"), all,
        left_ms == 0 ? "?" : left);
}

static void
add_disk(const struct status *status, struct buf *out)
{
    char bytes[AMOUNT_BYTES], records[AMOUNT_BYTES];
    amount_bytes((double)number(status, STATUS_COLD, "bytes"), bytes);
    amount_number((double)number(status, STATUS_COLD, "records"), records);
    if (figures_text(&status->part[STATUS_COLD], "segments") != NULL) {
        subject(out, "cold");
        buf_addf(out,
            "%" PRIu64 " segments, %s, %s records, %" PRIu64
            " reads failed, %" PRIu64 " damaged\n",
            number(status, STATUS_COLD, "segments"), bytes, records,
            number(status, STATUS_COLD, "read_failures"),
            number(status, STATUS_COLD, "damaged"));
        add_sealing(status, out);
    }
    if (figures_text(&status->part[STATUS_WAL], "state") != NULL) {
        char unsynced[AMOUNT_BYTES];
        amount_bytes((double)number(status, STATUS_WAL, "live_bytes"), bytes);
        amount_bytes(
            (double)number(status, STATUS_WAL, "unsynced_bytes"), unsynced);
        subject(out, "log");
        buf_addf(out,
            "%s, %s, not synced %s for %" PRIu64 " ms, %" PRIu64
            " syncs failed\n",
            word(status, STATUS_WAL, "state"), bytes, unsynced,
            number(status, STATUS_WAL, "unsynced_ms"),
            number(status, STATUS_WAL, "sync_failures"));
        add_checkpoint(status, out);
    }
}

static void
add_replica(const char *name, const char *value, struct buf *out)
{
    static const char *const key[] = {
        "state", "address", "lag_ms", "lag_bytes", "silent_ms"};
    char text[WORD_BYTES];
    subject(out, "replica");
    buf_add_text(out, name);
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++) {
        if (figures_word(value, key[i], text, sizeof text)) {
            buf_addf(out, ", %s %s", key[i], text);
        }
    }
    buf_add_text(out, "\n");
}

static void
add_replication(const struct status *status, struct buf *out)
{
    const char *name = NULL, *value = NULL;
    const char *primary = word(status, STATUS_REPLICATION, "primary_address");
    if (primary[0] != '\0') {
        subject(out, "primary");
        buf_addf(out, "%s, link %s, lag %s ms\n", primary,
            word(status, STATUS_REPLICATION, "link_status"),
            word(status, STATUS_REPLICATION, "lag_ms"));
    }
    for (size_t at = 0;
         figures_next(&status->part[STATUS_REPLICAS], &at, &name, &value);) {
        add_replica(name, value, out);
    }
}

static void
add_clients(const struct status *status, struct buf *out)
{
    if (!is_told(status, STATUS_GENERAL, "connections", out)) {
        return;
    }
    subject(out, "connections");
    buf_addf(out,
        "%" PRIu64 " of %" PRIu64 ", %" PRIu64 " refused, %" PRIu64
        " without the right\n",
        number(status, STATUS_GENERAL, "curr_connections"),
        number(status, STATUS_GENERAL, "max_connections"),
        number(status, STATUS_GENERAL, "rejected_connections"),
        number(status, STATUS_COUNTERS, "access_refused"));
    if (status->between_ns == 0) {
        return;
    }
    subject(out, "a second");
    for (unsigned i = 0; i < RATES_N; i++) {
        char amount[AMOUNT_BYTES] = "?";
        double value = 0;
        if (rate(status, i, &value)) {
            amount_number(value, amount);
        }
        buf_addf(out, "%s%s %s", i == 0 ? "" : ", ", rates[i].name, amount);
    }
    buf_add_text(out, "\n");
}

static void
add_slow(const struct status *status, struct buf *out)
{
    static const char *const key[] = {"verb", "key", "client", "why"};
    const char *name = NULL, *value = NULL;
    char text[WORD_BYTES], us[AMOUNT_BYTES];
    unsigned n = 0;
    for (size_t at = 0; n < SLOW_SHOWN &&
         figures_next(&status->part[STATUS_SLOW], &at, &name, &value);) {
        uint64_t took = 0;
        if (!figures_word(value, "us", text, sizeof text) ||
            sscanf(text, "%" SCNu64, &took) != 1) {
            continue;
        }
        amount_us(took, us);
        subject(out, n == 0 ? "slow" : "");
        buf_add_text(out, us);
        for (size_t i = 0; i < sizeof key / sizeof key[0]; i++) {
            if (figures_word(value, key[i], text, sizeof text)) {
                buf_addf(out, ", %s %s", key[i], text);
            }
        }
        buf_add_text(out, "\n");
        n++;
    }
}

void
status_page(const struct status *status, struct buf *out)
{
    add_head(status, out);
    add_server(status, out);
    add_records(status, out);
    add_memory(status, out);
    add_disk(status, out);
    add_replication(status, out);
    add_clients(status, out);
    add_slow(status, out);
}

static void
add_part(struct json *json, const char *name, const struct figures *figures)
{
    const char *figure = NULL, *value = NULL;
    if (figures->is_name_unknown) {
        return;
    }
    json_open(json, name, '{');
    if (figures->error[0] != '\0') {
        json_text(json, "error", figures->error);
    }
    for (size_t at = 0; figures_next(figures, &at, &figure, &value);) {
        json_figure(json, figure, value);
    }
    json_close(json);
}

void
status_json(const struct status *status, struct buf *out)
{
    struct json json = {.out = out};
    json_open(&json, NULL, '{');
    json_text(&json, "server", status->server);
    health_json(&status->health, &json);
    json_open(&json, "rates", '{');
    for (unsigned i = 0; i < RATES_N; i++) {
        double value = 0;
        if (rate(status, i, &value)) {
            ASSERT(value >= 0);
            json_u64(&json, rates[i].name, (uint64_t)value);
        }
    }
    json_close(&json);
    json_open(&json, "stats", '{');
#define X(id, stats, name) add_part(&json, name, &status->part[STATUS_##id]);
    STATUS_PARTS(X)
#undef X
    json_close(&json);
    json_close(&json);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes metrics of figures, row by row of the table. A family is said with its
 * type and help before its first sample; one that has no figure, such as those
 * of replication on a server without, is not said at all. */
#include "server/metrics.h"

#include "base/num.h"
#include "server/admin_priv.h"
#include "server/metrics_table.h"
#include "stats/latency.h"

#include <config.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIGURE_BYTES = 64,
    LABEL_BYTES = 512,
    /* Histograms have bounds of 64 us to 8 s; what is above is in +Inf. */
    BOUND_FIRST = 6,
    BOUND_LAST = 23
};

enum type { GAUGE, COUNTER, HISTOGRAM };

/* Of a figure: TEXT is said as it stands. */
enum unit { ONE, MS, US, TEXT };

struct row {
    const char *family;
    enum type type;
    const char *labels;
    enum figures_group group;
    const char *figure;
    enum unit unit;
    const char *help;
};

#define ROW(family, type, labels, group, figure, unit, help)                  \
    {family, type, labels, FIGURES_##group, figure, unit, help},
#define COUNTED(name, text)                                                   \
    ROW("tallyd_" #name, COUNTER, "", counters, #name, ONE, text)
#define OF_NODE(name, text)                                                   \
    ROW("tallyd_replication_" #name, COUNTER, "", replication, #name, ONE,    \
        text)

static const struct row rows[] = {METRICS_OF_MEMCACHED(ROW)
        METRICS_OF_LOGINS(ROW) METRIC_COUNTERS(COUNTED) METRICS_OF_MEMORY(ROW)
            METRICS_OF_LOG(ROW) METRICS_OF_COLD(ROW) METRICS_OF_NAMES(ROW)
                METRICS_OF_REPLICATION(ROW) NODE_FIGURES(OF_NODE)};

static const struct {
    const char *family;
    enum figures_group group;
    const char *begin;
    enum unit unit;
    const char *help;
} histograms[] = {
#define X(family, group, begin, unit, help)                                   \
    {family, FIGURES_##group, begin, unit, help},
    METRICS_HISTOGRAMS(X)
#undef X
};

static const struct {
    const char *family;
    enum type type;
    const char *help;
} others[] = {
#define X(family, type, help) {family, type, help},
    METRICS_OTHERS(X)
#undef X
};

static const char *const type_words[] = {
    [GAUGE] = "gauge", [COUNTER] = "counter", [HISTOGRAM] = "histogram"};

/* What is being put. */
struct put {
    enum metrics_form form;
    const struct figures *figures;
    struct buf *out;
    const char *said; /* the last family that was said */
};

const char *
metrics_content_type(enum metrics_form form)
{
    return form == METRICS_OPEN
        ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
        : "text/plain; version=0.0.4; charset=utf-8";
}

/* How a sample of the family is called. */
static const char *
suffix_of(enum type type)
{
    return type == COUNTER ? "_total" : "";
}

static void
say_family(
    struct put *put, const char *family, enum type type, const char *help)
{
    /* OpenMetrics names the family, the older form the sample */
    const char *suffix = put->form == METRICS_OPEN ? "" : suffix_of(type);
    if (put->said != NULL && strcmp(put->said, family) == 0) {
        return;
    }
    put->said = family;
    buf_addf(put->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family, suffix,
        help, family, suffix, type_words[type]);
}

static void
put_value(struct put *put, const char *family, enum type type,
    const char *labels, const char *value)
{
    buf_addf(put->out, "%s%s%s%s%s %s\n", family, suffix_of(type),
        labels[0] == '\0' ? "" : "{", labels, labels[0] == '\0' ? "" : "}",
        value);
}

/* A number of milliseconds or microseconds as seconds. */
static void
scale(enum unit unit, const char *value, char out[FIGURE_BYTES])
{
    uint64_t n = strtoull(value, NULL, 10);
    switch (unit) {
    case MS:
        (void)snprintf(out, FIGURE_BYTES, "%" PRIu64 ".%03u", n / 1000,
            (unsigned)(n % 1000));
        break;
    case US:
        (void)snprintf(out, FIGURE_BYTES, "%" PRIu64 ".%06u", n / 1000000,
            (unsigned)(n % 1000000));
        break;
    case ONE:
    case TEXT:
        (void)snprintf(out, FIGURE_BYTES, "%s", value);
        break;
    }
}

static bool
is_number(const char *text)
{
    return text[0] >= '0' && text[0] <= '9';
}

static void
put_row(struct put *put, const struct row *row)
{
    char value[FIGURE_BYTES], scaled[FIGURE_BYTES];
    if (!figures_text(
            put->figures, row->group, row->figure, value, sizeof value) ||
        !is_number(value)) { /* "unknown" */
        return;
    }
    scale(row->unit, value, scaled);
    say_family(put, row->family, row->type, row->help);
    put_value(put, row->family, row->type, row->labels, scaled);
}

/* Counts what the figures say to be below each power of two. An integer below
 * N is at most N - 1, so that is the bound. sum: in seconds; "": nobody sums
 * them. labels: with a comma behind, or "". */
static void
put_buckets(struct put *put, const char *family, const char *labels,
    enum figures_group group, const char *begin, enum unit unit,
    const char *sum)
{
    uint64_t below[BOUND_LAST + 2] = {0}, n = 0;
    const unsigned first = unit == US ? BOUND_FIRST : 0;
    const uint64_t whole = unit == US ? 1000000 : 1;
    struct figures_pair pair;
    size_t at = 0, len = strlen(begin);
    int labels_len = (int)strlen(labels) - (labels[0] != '\0');
    while (figures_next(put->figures, group, &at, &pair)) {
        if (pair.name_len > len && memcmp(pair.name, begin, len) == 0) {
            uint64_t bound = strtoull(pair.name + len, NULL, 10);
            unsigned i = first;
            while (i <= BOUND_LAST && UINT64_C(1) << i < bound) {
                i++;
            }
            below[i] += strtoull(pair.value, NULL, 10);
        }
    }
    for (unsigned i = first; i <= BOUND_LAST; i++) {
        uint64_t most = (UINT64_C(1) << i) - 1;
        n += below[i];
        buf_addf(put->out,
            "%s_bucket{%sle=\"%" PRIu64 ".%06u\"} %" PRIu64 "\n", family,
            labels, most / whole, (unsigned)(most % whole), n);
    }
    n += below[BOUND_LAST + 1];
    buf_addf(
        put->out, "%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", family, labels, n);
    const char *open = labels_len > 0 ? "{" : "";
    const char *close = labels_len > 0 ? "}" : "";
    if (put->form == METRICS_TEXT || sum[0] != '\0') {
        /* OpenMetrics has a count with a sum only */
        buf_addf(put->out, "%s_count%s%.*s%s %" PRIu64 "\n", family, open,
            labels_len, labels, close, n);
    }
    if (sum[0] != '\0') {
        buf_addf(put->out, "%s_sum%s%.*s%s %s\n", family, open, labels_len,
            labels, close, sum);
    }
}

static void
put_histogram(struct put *put, const char *family, enum figures_group group,
    const char *begin, enum unit unit, const char *help)
{
    struct figures_pair pair;
    size_t at = 0;
    if (figures_next(put->figures, group, &at, &pair)) {
        say_family(put, family, HISTOGRAM, help);
        put_buckets(put, family, "", group, begin, unit, "");
    }
}

/* ---- the others ---- */

/* family: of METRICS_OTHERS. */
static void
say_other(struct put *put, const char *family)
{
    size_t i = 0;
    while (strcmp(others[i].family, family) != 0) {
        i++;
        ASSERT(i < sizeof others / sizeof others[0]);
    }
    say_family(put, family, others[i].type, others[i].help);
}

static void
put_other(
    struct put *put, const char *family, const char *labels, const char *value)
{
    say_other(put, family);
    put_value(put, family, GAUGE, labels, value);
}

static void
put_states(struct put *put, const struct health *health)
{
    static const char *const words[] = {
#define X(name, word, text) word,
        HEALTH_STATES(X)
#undef X
    };
    char labels[LABEL_BYTES], value[FIGURE_BYTES];
    put_other(put, "memcached_up", "", "1");
    put_other(put, "memcached_version",
        "version=\"" ADMIN__MEMCACHED_VERSION "\"", "1");
    put_other(put, "tallyd_version", "version=\"" PACKAGE_VERSION "\"", "1");
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        (void)snprintf(labels, sizeof labels, "state=\"%s\"", words[i]);
        put_other(put, "tallyd_state", labels, i == health->state ? "1" : "0");
    }
    (void)snprintf(value, sizeof value, "%u", health->n);
    put_other(put, "tallyd_problems", "", value);
    if (health->state == HEALTH_LOADING) {
        (void)snprintf(value, sizeof value, "%u.%02u", health->percent / 100,
            health->percent % 100);
        put_other(put, "tallyd_loading_ratio", "", value);
    }
    if (figures_text(
            put->figures, FIGURES_replication, "role", value, sizeof value)) {
        (void)snprintf(labels, sizeof labels, "role=\"%s\"", value);
        put_other(put, "tallyd_replication_role", labels, "1");
    }
}

/* Of `<counter>:<figure>`; names of counters need no escape. */
static void
put_counters(struct put *put, const char *family, const char *figure)
{
    struct figures_pair pair;
    size_t at = 0, len = strlen(figure);
    char labels[LABEL_BYTES], value[FIGURE_BYTES];
    while (figures_next(put->figures, FIGURES_counters, &at, &pair)) {
        if (pair.name_len > len && pair.value_len < sizeof value &&
            memcmp(pair.name + pair.name_len - len, figure, len) == 0) {
            (void)snprintf(labels, sizeof labels, "counter=\"%.*s\"",
                (int)(pair.name_len - len), pair.name);
            (void)snprintf(
                value, sizeof value, "%.*s", (int)pair.value_len, pair.value);
            put_other(put, family, labels, value);
        }
    }
}

/* How many digits there are before end, behind which there may be nothing. */
static size_t
digits_at(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    return (size_t)(at - text);
}

/* Of `NAME key=value ...`; what is not known is left out. Names are of letters,
 * digits, _ . and - (--node). */
static void
put_replicas(
    struct put *put, const char *family, const char *key, enum unit unit)
{
    struct figures_pair pair;
    size_t at = 0, len = strlen(key);
    char labels[LABEL_BYTES], value[FIGURE_BYTES], scaled[FIGURE_BYTES];
    while (figures_next(put->figures, FIGURES_replicas, &at, &pair)) {
        const char *end = pair.value + pair.value_len;
        const char *found = memmem(pair.value, pair.value_len, key, len);
        size_t n = found == NULL ? 0 : digits_at(found + len, end);
        if (n > 0 && n < sizeof value) {
            (void)snprintf(value, sizeof value, "%.*s", (int)n, found + len);
            scale(unit, value, scaled);
            (void)snprintf(labels, sizeof labels, "replica=\"%.*s\"",
                (int)pair.name_len, pair.name);
            put_other(put, family, labels, scaled);
        }
    }
}

/* Of a verb and a path on which there were requests. */
static void
put_requests_of(
    struct put *put, const char *family, const char *verb, const char *path)
{
    char name[LABEL_BYTES], labels[LABEL_BYTES];
    char value[FIGURE_BYTES], sum[FIGURE_BYTES];
    (void)snprintf(name, sizeof name, "%s:%s:sum_us", verb, path);
    if (!figures_text(
            put->figures, FIGURES_latency, name, value, sizeof value)) {
        return;
    }
    scale(US, value, sum);
    (void)snprintf(
        labels, sizeof labels, "verb=\"%s\",path=\"%s\",", verb, path);
    (void)snprintf(name, sizeof name, "%s:%s:us_below_", verb, path);
    say_other(put, family);
    put_buckets(put, family, labels, FIGURES_buckets, name, US, sum);
}

static void
put_requests(struct put *put, const char *family)
{
    for (unsigned verb = 0; verb < LATENCY_VERB_COUNT; verb++) {
        for (unsigned path = 0; path < LATENCY_PATH_COUNT; path++) {
            put_requests_of(put, family,
                latency_verb_name((enum latency_verb)verb),
                latency_path_name((enum latency_path)path));
        }
    }
}

/* Of `<worker>:<what>:p99_us`. */
static void
put_loops(struct put *put, const char *family, const char *figure)
{
    struct figures_pair pair;
    size_t at = 0, len = strlen(figure);
    char labels[LABEL_BYTES], value[FIGURE_BYTES], scaled[FIGURE_BYTES];
    while (figures_next(put->figures, FIGURES_loop, &at, &pair)) {
        if (pair.name_len > len && pair.value_len < sizeof value &&
            memcmp(pair.name + pair.name_len - len, figure, len) == 0) {
            (void)snprintf(labels, sizeof labels, "worker=\"%.*s\"",
                (int)(pair.name_len - len), pair.name);
            (void)snprintf(
                value, sizeof value, "%.*s", (int)pair.value_len, pair.value);
            scale(US, value, scaled);
            put_other(put, family, labels, scaled);
        }
    }
}

void
metrics_put(enum metrics_form form, const struct figures *figures,
    const struct health *health, struct buf *out)
{
    struct put put = {.form = form, .figures = figures, .out = out};
    put_states(&put, health);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put_row(&put, &rows[i]);
    }
    for (size_t i = 0; i < sizeof histograms / sizeof histograms[0]; i++) {
        put_histogram(&put, histograms[i].family, histograms[i].group,
            histograms[i].begin, histograms[i].unit, histograms[i].help);
    }
    put_requests(&put, "tallyd_request_seconds");
    put_loops(&put, "tallyd_loop_lag_p99_seconds", ":lag:p99_us");
    put_loops(&put, "tallyd_loop_queue_p99_seconds", ":queue:p99_us");
    put_counters(&put, "tallyd_records", ":records");
    put_counters(&put, "tallyd_table_bytes", ":bytes");
    put_replicas(&put, "tallyd_replica_lag_seconds", " lag_ms=", MS);
    put_replicas(&put, "tallyd_replica_lag_bytes", " lag_bytes=", ONE);
    if (form == METRICS_OPEN) {
        buf_add_text(out, "# EOF\n");
    }
}

/* ---- the documentation ---- */

static void
document(const char *family, enum type type, const char *source,
    const char *figure, const char *help, struct buf *out)
{
    buf_addf(out, "| `%s%s` | %s | %s%s%s%s%s | %s |\n", family,
        suffix_of(type), type_words[type], source[0] == '\0' ? "" : "`stats",
        source[0] == '\0' || strcmp(source, "general") == 0 ? "" : " ",
        strcmp(source, "general") == 0 ? "" : source,
        source[0] == '\0' ? "" : "` ", figure, help);
}

void
metrics_document(struct buf *out)
{
    const char *last = "";
    char figure[LABEL_BYTES];
    buf_add_text(out, "| metric | type | of | means |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        document(
            others[i].family, others[i].type, "", "", others[i].help, out);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        bool is_several = row->labels[0] != '\0';
        if (strcmp(last, row->family) != 0) {
            (void)snprintf(figure, sizeof figure, "`%s`%s", row->figure,
                is_several ? " and others" : "");
            document(row->family, row->type, figures_group_name(row->group),
                figure, row->help, out);
        }
        last = row->family;
    }
    for (size_t i = 0; i < sizeof histograms / sizeof histograms[0]; i++) {
        (void)snprintf(figure, sizeof figure, "`%sN`", histograms[i].begin);
        document(histograms[i].family, HISTOGRAM,
            figures_group_name(histograms[i].group), figure,
            histograms[i].help, out);
    }
}

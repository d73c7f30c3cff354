/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers stats counters, tables, wal and cold: figures that memcached does
 * not have. */
#include "server/admin_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "items/items.h"
#include "proto/reply_stats.h"

#include <config.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 96, /* "<counter>:<column>:<figure>" */
    PART_BYTES = 48, /* "<counter>:<shard>" */
    RATIO_BYTES = 32,
    WIDTH_BYTES = 24, /* " <bits>:<values>" */
    PIECE_TABLES = 32 /* of a reply to stats tables: looked at */
};

/* What a reply to stats tables is at: of each counter first the sums of the
 * whole, then those of each shard. */
enum { TABLES_BEGIN, TABLES_WHOLE, TABLES_SHARDS };

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
put_counter(struct server_admin *admin, const struct schema_counter *counter,
    struct reply_stats *out)
{
    char name[NAME_BYTES];
    char value[32];
    struct store_sum sum = store_sum(admin->store, counter->slot);
    snprintf(name, sizeof name, "%s:columns", counter->name.text);
    reply_stats_u64(out, name, counter->n_columns);
    snprintf(name, sizeof name, "%s:records", counter->name.text);
    reply_stats_u64(out, name, sum.records);
    snprintf(name, sizeof name, "%s:bytes", counter->name.text);
    reply_stats_u64(out, name, sum.bytes);
    snprintf(name, sizeof name, "%s:bytes_per_record", counter->name.text);
    snprintf(value, sizeof value, "%.2f",
        sum.records == 0 ? 0.0 : (double)sum.bytes / (double)sum.records);
    reply_stats_text(out, name, value);
}

void
admin__counters(struct server_admin *admin, struct reply_stats *out)
{
    uint64_t sum[METRIC_COUNT];
    const struct schema *schema = store_schema(admin->store);
    admin__sum(admin, sum);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && counter->members_of == 0) {
            put_counter(admin, counter, out);
        }
    }
    reply_stats_text(out, "tallyd_version", PACKAGE_VERSION);
    if (admin->owner != NULL) {
        reply_stats_text(
            out, "owns_rule", owns_rule(owner_rule(admin->owner)));
    }
#define X(name, text) reply_stats_u64(out, #name, sum[METRIC_##name]);
    METRIC_COUNTERS(X)
    METRIC_TIMES(X)
#undef X
    struct items_lent lent;
    items_lent(admin->store->items, &lent);
#define X(name, text) reply_stats_u64(out, #name, lent.name);
    ITEMS_LENT(X)
#undef X
    reply_stats_end(out);
}

static double
ratio(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : (double)part / (double)whole;
}

/* of: "<counter>" or "<counter>:<shard>" */
static void
put_sum(struct reply_stats *out, const char *of, const struct engine_sum *sum)
{
    char name[NAME_BYTES];
    char value[RATIO_BYTES];
#define X(field, text)                                                        \
    snprintf(name, sizeof name, "%s:" #field, of);                            \
    reply_stats_u64(out, name, sum->field);
    ENGINE_SUMS(X)
#undef X
#define X(figure, number)                                                     \
    snprintf(name, sizeof name, "%s:" #figure, of);                           \
    snprintf(value, sizeof value, "%.4f", number);                            \
    reply_stats_text(out, name, value);
    TABLE_RATIOS(X)
#undef X
}

/* "<bits>:<values>" for each width that occurs; no pair where none does. */
static void
put_widths(struct reply_stats *out, const struct schema_counter *counter,
    const struct schema_column *column, const uint64_t width[ENGINE_WIDTHS])
{
    char name[NAME_BYTES];
    char value[ENGINE_WIDTHS * WIDTH_BYTES];
    size_t len = 0;
    for (unsigned bits = 0; bits < ENGINE_WIDTHS; bits++) {
        if (width[bits] > 0) {
            len += (size_t)snprintf(value + len, sizeof value - len,
                "%s%u:%" PRIu64, len == 0 ? "" : " ", bits, width[bits]);
            ASSERT(len < sizeof value);
        }
    }
    if (len > 0) {
        snprintf(name, sizeof name, "%s:%s:widths", counter->name.text,
            column->name.text);
        reply_stats_text(out, name, value);
    }
}

/* The first counter from reply->slot on that is wanted; NULL: there is none. */
static const struct schema_counter *
next_counter(const struct schema *schema, struct admin_reply *reply)
{
    for (; reply->slot < SCHEMA_COUNTERS_MAX; reply->slot++) {
        const struct schema_counter *counter =
            schema_counter_at(schema, reply->slot);
        if (counter != NULL && counter->members_of == 0 &&
            (reply->only == 0 || reply->only == counter->serial)) {
            return counter;
        }
    }
    return NULL;
}

/* Goes on with all shards of a counter for the sums of the whole, and says
 * these in the end. */
static void
go_on_whole(struct server_admin *admin, const struct schema_counter *counter,
    struct admin_reply *reply, unsigned *n_left, struct reply_stats *out)
{
    while (reply->shard < (unsigned)admin->options->shards) {
        if (!store_survey(admin->store, counter->slot, reply->shard,
                &reply->at, n_left, &reply->sum, reply->width)) {
            return;
        }
        reply->shard++;
    }
    put_sum(out, counter->name.text, &reply->sum);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        put_widths(out, counter, column, reply->width[column->slot]);
    }
    reply->step = TABLES_SHARDS;
    reply->shard = 0;
    reply->sum = (struct engine_sum){0};
}

/* Goes on with what is said of each shard. */
static void
go_on_shards(struct server_admin *admin, const struct schema_counter *counter,
    struct admin_reply *reply, unsigned *n_left, struct reply_stats *out)
{
    char part[PART_BYTES];
    while (reply->shard < (unsigned)admin->options->shards) {
        if (!store_survey(admin->store, counter->slot, reply->shard,
                &reply->at, n_left, &reply->sum, NULL)) {
            return;
        }
        if (reply->sum.tables > 0) {
            snprintf(
                part, sizeof part, "%s:%u", counter->name.text, reply->shard);
            put_sum(out, part, &reply->sum);
        }
        reply->sum = (struct engine_sum){0};
        reply->shard++;
    }
    reply->slot++;
    reply->serial = 0;
}

/* Begins a counter, and begins it anew where its columns have become others
 * before the whole was said. */
static void
begin_counter(const struct schema *schema,
    const struct schema_counter *counter, struct admin_reply *reply)
{
    bool is_same = reply->serial == counter->serial;
    if (is_same &&
        (reply->step == TABLES_SHARDS ||
            reply->schema_version == schema_version(schema))) {
        return;
    }
    reply->step = TABLES_WHOLE;
    reply->serial = counter->serial;
    reply->schema_version = schema_version(schema);
    reply->shard = 0;
    reply->at = 0;
    reply->sum = (struct engine_sum){0};
    memset(reply->width, 0, sizeof reply->width);
}

static void
end_tables(struct server_admin *admin, struct reply_stats *out)
{
    uint64_t garbage_bytes = 0;
    uint64_t used_bytes = store_hot_bytes(admin->store, &garbage_bytes);
    reply_stats_u64(out, "hot_memory_used", used_bytes);
    reply_stats_u64(out, "hot_memory_garbage", garbage_bytes);
    reply_stats_u64(out, "hot_memory_limit", admin->options->hot_memory);
    reply_stats_end(out);
}

bool
admin__tables(struct server_admin *admin, const char *name, size_t len,
    struct admin_reply *reply, struct reply_stats *out)
{
    const struct schema *schema = store_schema(admin->store);
    unsigned n_left = PIECE_TABLES;
    if (reply->step == TABLES_BEGIN) {
        const struct schema_counter *only =
            len == 0 ? NULL : schema_counter(schema, name, len);
        if (len > 0 && only == NULL) {
            reply_stats_error(out, ERR_NO_COUNTER);
            return false;
        }
        reply->step = TABLES_WHOLE;
        reply->only = only == NULL ? 0 : only->serial;
        reply->slot = 0;
        reply->serial = 0;
    }
    while (n_left > 0) {
        const struct schema_counter *counter = next_counter(schema, reply);
        if (counter == NULL) {
            end_tables(admin, out);
            return false;
        }
        begin_counter(schema, counter, reply);
        if (reply->step == TABLES_WHOLE) {
            go_on_whole(admin, counter, reply, &n_left, out);
        } else {
            go_on_shards(admin, counter, reply, &n_left, out);
        }
    }
    return true;
}

void
admin__wal(struct server_admin *admin, struct reply_stats *out)
{
    uint64_t sum[METRIC_COUNT];
    store_data_stats(admin->store, admin__put_stat, out);
    admin__sum(admin, sum);
    reply_stats_u64(
        out, metric_name(METRIC_changes_unsure), sum[METRIC_changes_unsure]);
    reply_stats_u64(
        out, metric_name(METRIC_changes_late), sum[METRIC_changes_late]);
    reply_stats_u64(
        out, metric_name(METRIC_reads_held), sum[METRIC_reads_held]);
    reply_stats_u64(
        out, metric_name(METRIC_reads_unsure), sum[METRIC_reads_unsure]);
    reply_stats_end(out);
}

void
admin__cold(struct server_admin *admin, struct reply_stats *out)
{
    store_cold_stats(admin->store, admin__put_stat, out);
    reply_stats_end(out);
}

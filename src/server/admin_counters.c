/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of our own: stats counters, tables, wal, cold. */
#include "server/admin_priv.h"

#include "base/err.h"
#include "proto/reply.h"

#include <config.h>
#include <inttypes.h>
#include <stdio.h>

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

void
admin__counters(struct server_admin *admin, struct buf *out)
{
    uint64_t sum[METRIC_COUNT];
    const struct schema *schema = store_schema(admin->store);
    admin__sum(admin, sum);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL) {
            put_counter(admin, counter, out);
        }
    }
    reply_stat_text(out, "tallyd_version", PACKAGE_VERSION);
    if (admin->owner != NULL) {
        reply_stat_text(out, "owns_rule", owns_rule(owner_rule(admin->owner)));
    }
#define X(name, text) reply_stat_u64(out, #name, sum[METRIC_##name]);
    METRIC_COUNTERS(X)
#undef X
    struct items_lent lent;
    items_lent(admin->store->items, &lent);
#define X(name, text) reply_stat_u64(out, #name, lent.name);
    ITEMS_LENT(X)
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

void
admin__tables(
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

void
admin__wal(struct server_admin *admin, struct buf *out)
{
    uint64_t sum[METRIC_COUNT];
    store_data_stats(admin->store, admin__put_stat, out);
    admin__sum(admin, sum);
    reply_stat_u64(
        out, metric_name(METRIC_changes_unsure), sum[METRIC_changes_unsure]);
    reply_stat_u64(
        out, metric_name(METRIC_changes_late), sum[METRIC_changes_late]);
    reply_line(out, "END");
}

void
admin__cold(struct server_admin *admin, struct buf *out)
{
    store_cold_stats(admin->store, admin__put_stat, out);
    reply_line(out, "END");
}

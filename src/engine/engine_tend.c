/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks over all tables, one after the other: background work, figures and
 * checks. It holds a shard's lock for one table's work at most. */
#include "engine/engine_priv.h"
#include "engine/members.h"
#include "engine/members_priv.h"
#include "engine/ranges_priv.h"

enum {
    TEND_TABLES = 64,  /* looked at under one hold of the lock */
    TAKE_OUTS = 128,   /* pieces of members a round */
    FIND_TABLES = 16,  /* looked through for others, a round */
    SAMPLE_LINES = 64, /* of each table, for mask bits */
    WIDTH_LINES = 8    /* of each table, for widths */
};

/* One counter in one shard; true where there was work. */
static bool
tend_ranges(
    struct engine *engine, unsigned i, struct ranges *ranges, uint64_t now_ms)
{
    bool any = false;
    ptrdiff_t at = 0;
    while (at >= 0) {
        bool worked = false;
        shard__lock(&engine->shard[i]);
        for (int n = 0; n < TEND_TABLES && at >= 0 && !worked; n++) {
            at = ranges_tend(ranges, at, now_ms, &worked);
        }
        shard__unlock(&engine->shard[i]);
        if (worked) {
            pool_reclaim(&engine->pool);
        }
        any = any || worked;
    }
    return any;
}

void
engine_follow(struct engine *engine, bool follows)
{
    if (engine->follows && !follows) { /* nobody has noted what was given up */
        members__find_begin(engine);
    }
    engine->follows = follows;
}

bool
engine_tend(struct engine *engine, uint64_t now_ms)
{
    bool any = false;
    pool_reclaim(&engine->pool);
    for (int n = 0;
         n < TAKE_OUTS && !engine->follows && engine_take_out(engine); n++) {
        any = true;
    }
    for (int n = 0;
         n < FIND_TABLES && !engine->follows && members__find(engine); n++) {
        any = true;
    }
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct counter *counter = engine__counter(engine, slot);
        for (unsigned i = 0; counter != NULL && i < engine->n_shards; i++) {
            any |= tend_ranges(engine, i, &counter->ranges[i], now_ms);
        }
    }
    sorted__tend(engine);
    pool_trim(&engine->pool);
    return any;
}

/* The entry at an index, or NULL behind the last. */
static const struct directory_entry *
entry_at(const struct ranges *ranges, size_t i)
{
    table_owner_assert_held(ranges->owner);
    const struct directory *directory = ranges__directory(ranges);
    if (directory == NULL || i >= directory_count(directory)) {
        return NULL;
    }
    return &directory_entries(directory)[i];
}

/* A holder's share of the memory of a set; NULL: none. */
static size_t
set_share(const struct pool *pool, const struct shapes_set *set)
{
    ASSERT(set == NULL || set->refs > 0);
    return set == NULL ? 0 : pool_block_bytes(pool, sizeof *set) / set->refs;
}

static void
add_table(
    struct engine_sum *sum, const struct pool *pool, const struct table *table)
{
    const struct stash *stash = table_stash(table);
    sum->tables++;
    sum->records += table->n_records;
    sum->lines += table->n_lines;
    sum->used_bits += table->used_bits;
    sum->usable_bits += (uint64_t)table->n_lines * LINE_USABLE_BITS;
    sum->line_bytes += table_line_bytes(table);
    sum->stash_records += stash_count(stash);
    sum->stash_wide +=
        table->n_stash[TABLE_WIDE] + table->n_stash[TABLE_MISFIT];
    sum->stash_bytes +=
        stash == NULL ? 0 : pool_block_bytes(pool, stash_bytes(stash));
    sum->other_bytes += pool_block_bytes(pool, table_other_bytes(table)) +
        set_share(pool, table->set);
    sum->far_records += table->n_far;
}

/* From a sample of the lines. */
static void
add_mask_bits(struct engine_sum *sum, const struct table *table)
{
    struct line_copy copy;
    uint64_t bits = 0;
    uint32_t n = 0;
    uint32_t stride = table->n_lines / SAMPLE_LINES + 1;
    for (uint32_t i = 0; i < table->n_lines; i += stride) {
        line_load(table_line(table, i), &copy);
        bits += (unsigned)__builtin_popcountll(copy.word[0] & UINT16_MAX);
        n++;
    }
    sum->mask_bits += bits * table->n_lines / n;
}

static void
add_ends(
    struct engine *engine, const struct ranges *ranges, struct engine_sum *sum)
{
    table_owner_assert_held(ranges->owner);
    const struct directory *directory = ranges__directory(ranges);
    sum->other_bytes += directory == NULL
        ? 0
        : pool_block_bytes(&engine->pool, directory_bytes(directory));
    sum->other_bytes += sizeof *ranges + set_share(&engine->pool, ranges->set);
    sum->moves += ranges->owner->moves;
    sum->rebuilds += ranges->n_rebuilds;
    sum->splits += ranges->n_splits;
    sum->merges += ranges->n_merges;
    sum->tightened += ranges->n_tightened;
}

static void
add_ranges(struct engine *engine, unsigned i, const struct ranges *ranges,
    bool with_masks, struct engine_sum *sum)
{
    const struct directory_entry *entry;
    size_t at = 0;
    do {
        shard__lock(&engine->shard[i]);
        entry = entry_at(ranges, at++);
        if (entry == NULL) {
            add_ends(engine, ranges, sum);
        } else {
            add_table(sum, &engine->pool, entry->table);
            if (with_masks) {
                add_mask_bits(sum, entry->table);
            }
        }
        shard__unlock(&engine->shard[i]);
    } while (entry != NULL);
}

static void
add_counter(struct engine *engine, unsigned slot, int shard, bool with_masks,
    struct engine_sum *sum)
{
    const struct counter *counter = engine__counter(engine, slot);
    if (counter == NULL) {
        return;
    }
    for (unsigned i = 0; i < engine->n_shards; i++) {
        if (shard < 0 || (unsigned)shard == i) {
            add_ranges(engine, i, &counter->ranges[i], with_masks, sum);
        }
    }
}

void
engine_sum(
    struct engine *engine, unsigned slot, int shard, struct engine_sum *sum)
{
    add_counter(engine, slot, shard, true, sum);
}

void
engine_size(
    struct engine *engine, unsigned slot, uint64_t *records, uint64_t *bytes)
{
    const struct counter *counter = engine__counter(engine, slot);
    struct engine_sum sum = {0};
    int64_t n_live = 0;
    for (unsigned i = 0; counter != NULL && i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        n_live += counter->ranges[i].n_live;
        shard__unlock(&engine->shard[i]);
    }
    add_counter(engine, slot, -1, false, &sum);
    *records = n_live < 0 ? 0 : (uint64_t)n_live;
    *bytes = sum.line_bytes + sum.stash_bytes + sum.other_bytes;
}

static void
add_widths(const struct table *table, uint32_t columns,
    uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS])
{
    struct line_copy copy;
    struct line_record record;
    uint32_t stride = table->n_lines / WIDTH_LINES + 1;
    for (uint32_t i = 0; i < table->n_lines; i += stride) {
        line_load(table_line(table, i), &copy);
        for (unsigned j = 0; j < line_count(&copy); j++) {
            line_get(&copy, &table->form, j, &record);
            for (unsigned k = 0; k < SCHEMA_COLUMNS_MAX; k++) {
                if ((columns >> k & 1) != 0) {
                    width[k][shapes_bits(record.code[k])]++;
                }
            }
        }
    }
}

/* The table at an index, or what there is of ranges beside them. */
static bool
survey_one(struct engine *engine, const struct ranges *ranges, size_t at,
    struct engine_sum *sum, uint64_t (*width)[ENGINE_WIDTHS])
{
    const struct directory_entry *entry = entry_at(ranges, at);
    if (entry == NULL) {
        add_ends(engine, ranges, sum);
        return false;
    }
    add_table(sum, &engine->pool, entry->table);
    add_mask_bits(sum, entry->table);
    if (width != NULL) {
        add_widths(entry->table, ranges->columns, width);
    }
    return true;
}

bool
engine_survey(struct engine *engine, unsigned slot, unsigned shard, size_t *at,
    unsigned *n_left, struct engine_sum *sum, uint64_t (*width)[ENGINE_WIDTHS])
{
    const struct counter *counter = engine__counter(engine, slot);
    ASSERT(shard < engine->n_shards);
    while (counter != NULL && *n_left > 0) {
        (*n_left)--;
        shard__lock(&engine->shard[shard]);
        bool was_table =
            survey_one(engine, &counter->ranges[shard], *at, sum, width);
        shard__unlock(&engine->shard[shard]);
        if (!was_table) {
            *at = 0;
            return true;
        }
        (*at)++;
    }
    return counter == NULL;
}

void
engine_verify(struct engine *engine)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct counter *counter = engine__counter(engine, slot);
        for (unsigned i = 0; counter != NULL && i < engine->n_shards; i++) {
            shard__lock(&engine->shard[i]);
            ranges_verify(&counter->ranges[i]);
            members__verify(engine, slot, i);
            sorted__verify(engine, i);
            ASSERT(engine->cover != NULL ||
                counter->ranges[i].n_live ==
                    (int64_t)counter->ranges[i].n_records);
            shard__unlock(&engine->shard[i]);
        }
    }
}

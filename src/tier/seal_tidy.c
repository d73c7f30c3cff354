/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the cold range that wants work first.
 *
 * It lists a counter's ranges from the maps and from the tables over them. The
 * choice follows from that list alone, so that a test needs no store.
 *
 * Joins go size by size: of neighbours below a bound, as many as together reach
 * it. So a joined record comes into the next size, and is written once for each
 * bound: join_blocks / 8, / 64 and so on (fan_in is 8). A range that has
 * reached join_blocks / 8 is left alone. 64 small ranges side by side are
 * joined whatever their sizes.
 *
 * A range with a large overlay is written anew where the overlay is quiet, and
 * becomes hot where the overlay has over half of the range. The parts of a file
 * that have been written anew are dead; the rest is moved out of a file that is
 * dead by more than half. */
#include "tier/seal_tidy.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/engine_extents.h"

#include <stdlib.h>

enum {
    LOOK_MS = 1000,
    SLICE_MS = 20,
    STEP_RECORDS = 1024,
    JOIN_BLOCKS = 1 << 15, /* 128 MB */
    LEAST_RECORDS = 4096,
    FAN_IN = 8,       /* ranges, and the step from a bound to the next */
    LEAST_BOUND = 2,  /* blocks: a range of one is below all bounds */
    MERGE_SHARE = 4,  /* one record in memory for so many in the file */
    TABLES_MAX = 4096 /* looked at; other shards have as many */
};

struct seal_tidy_bounds
seal_tidy_usual(void)
{
    return (struct seal_tidy_bounds){.look_ms = LOOK_MS,
        .slice_ms = SLICE_MS,
        .step_records = STEP_RECORDS,
        .fan_in = FAN_IN,
        .join_blocks = JOIN_BLOCKS,
        .least_records = LEAST_RECORDS};
}

/* ---- the choice ---- */

static bool
is_warm(const struct seal_tidy_range *it)
{
    return it->n_hot > it->records / 2;
}

static bool
may_heat(const struct seal_tidy_room *room, const struct seal_tidy_range *it)
{
    return is_warm(it) && it->records <= room->heat_records;
}

static bool
may_merge(
    const struct seal_tidy_bounds *bounds, const struct seal_tidy_range *it)
{
    return it->is_quiet && it->n_hot >= bounds->least_records &&
        it->n_hot >= it->records / MERGE_SHARE;
}

static bool
may_save(const struct seal_tidy_room *room, const struct seal_tidy_range *it)
{
    return it->file_live < it->file_blocks / 2 &&
        it->n_hot <= room->copy_records && !is_warm(it);
}

/* True where a range is below the bound, and joining it would not take from
 * memory what is in use there. */
static bool
may_join(uint64_t bound, const struct seal_tidy_range *it)
{
    return it->blocks < bound &&
        (it->is_quiet || it->n_hot <= it->records / MERGE_SHARE) &&
        !is_warm(it);
}

/* Ranges side by side, as they grow. */
struct run {
    size_t first, last;
    uint64_t blocks, n_hot;
};

static struct run
longest_run(const struct seal_tidy_bounds *bounds,
    const struct seal_tidy_room *room, const struct seal_tidy_range *range,
    size_t n, size_t first, uint64_t bound)
{
    struct run run = {first, first, range[first].blocks, range[first].n_hot};
    ASSERT(first < n);
    for (size_t i = first + 1; i < n; i++) {
        uint64_t blocks = run.blocks + range[i].blocks;
        uint64_t n_hot = run.n_hot + range[i].n_hot + range[i].n_gap;
        if (!may_join(bound, &range[i]) ||
            range[i].n_gap > bounds->least_records ||
            blocks > bounds->join_blocks || n_hot > room->copy_records) {
            break;
        }
        run = (struct run){first, i, blocks, n_hot};
    }
    return run;
}

static bool
choose_join(const struct seal_tidy_bounds *bounds,
    const struct seal_tidy_room *room, const struct seal_tidy_range *range,
    size_t n, struct seal_tidy_choice *out)
{
    size_t fan_in = bounds->fan_in;
    ASSERT(fan_in >= 2);
    uint64_t largest = bounds->join_blocks / fan_in, bound = largest;
    while (bound / fan_in >= LEAST_BOUND) {
        bound /= fan_in;
    }
    for (; bound <= largest; bound *= fan_in) {
        for (size_t i = 0; i < n; i++) {
            if (!may_join(bound, &range[i])) {
                continue;
            }
            struct run run = longest_run(bounds, room, range, n, i, bound);
            size_t count = run.last - run.first + 1;
            if ((count >= fan_in && run.blocks >= bound) ||
                count >= fan_in * fan_in) {
                *out = (struct seal_tidy_choice){
                    SEAL_TIDY_JOIN, run.first, run.last};
                return true;
            }
            i = run.last;
        }
    }
    return false;
}

struct seal_tidy_choice
seal_tidy_choose(const struct seal_tidy_bounds *bounds,
    const struct seal_tidy_room *room, const struct seal_tidy_range *range,
    size_t n)
{
    struct seal_tidy_choice out = {SEAL_TIDY_NOTHING, 0, 0};
    for (size_t i = 0; i < n; i++) {
        const struct seal_tidy_range *it = &range[i];
        enum seal_tidy_kind kind = may_heat(room, it) ? SEAL_TIDY_HEAT
            : may_merge(bounds, it)                   ? SEAL_TIDY_MERGE
            : may_save(room, it)                      ? SEAL_TIDY_SAVE
                                                      : SEAL_TIDY_NOTHING;
        if (kind != SEAL_TIDY_NOTHING) {
            return (struct seal_tidy_choice){kind, i, i};
        }
    }
    (void)choose_join(bounds, room, range, n, &out);
    return out;
}

/* ---- the list ---- */

/* Blocks of the file that have ids of an entry. */
static uint64_t
count_blocks(const struct segment_map_entry *entry)
{
    const struct segment *segment = entry->file->segment;
    const struct segment_head *head = segment_head(segment);
    uint32_t first = 0, last = head->n_blocks - 1;
    if (entry->last_id < head->first_id || entry->first_id > head->last_id) {
        return 0;
    }
    if (entry->first_id > head->first_id) {
        (void)segment_find(segment, entry->first_id, &first);
    }
    if (entry->last_id < head->last_id) {
        (void)segment_find(segment, entry->last_id, &last);
    }
    ASSERT(first <= last && last < head->n_blocks);
    return last - first + UINT64_C(1);
}

static struct seal_tidy_range
range_of(const struct segment_map_entry *entry)
{
    const struct segment_head *head = segment_head(entry->file->segment);
    uint64_t blocks = count_blocks(entry);
    ASSERT(head->n_blocks > 0 && blocks <= head->n_blocks);
    return (struct seal_tidy_range){.first_id = entry->first_id,
        .last_id = entry->last_id,
        .blocks = blocks,
        .records = (uint64_t)((double)head->records * (double)blocks /
            (double)head->n_blocks),
        .file = head->number,
        .file_blocks = head->n_blocks,
        .is_quiet = true};
}

static int
by_file(const void *a, const void *b)
{
    const struct seal_tidy_range *x = *(struct seal_tidy_range *const *)a;
    const struct seal_tidy_range *y = *(struct seal_tidy_range *const *)b;
    return x->file < y->file ? -1 : x->file > y->file;
}

/* How much of each file is in the list. */
static int
sum_files(struct seal_tidy_range *range, size_t n)
{
    struct seal_tidy_range **sorted = malloc(n * sizeof(*sorted));
    if (sorted == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &range[i];
    }
    qsort(sorted, n, sizeof(*sorted), by_file);
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t live = 0;
        for (end = i; end < n && sorted[end]->file == sorted[i]->file; end++) {
            live += sorted[end]->blocks;
        }
        /* two ranges may share a block of their file, no more */
        ASSERT(live <= sorted[i]->file_blocks + (end - i - 1));
        for (size_t k = i; k < end; k++) {
            sorted[k]->file_live = live;
        }
    }
    free(sorted);
    return 0;
}

/* The first range that ends at id or behind. */
static size_t
place_of(const struct seal_tidy_range *range, size_t n, uint64_t id)
{
    size_t low = 0;
    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (range[middle].last_id < id) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }
    return low;
}

/* Records that a range has in its file between two ids, about. */
static double
weight_of(const struct seal_tidy_range *it, uint64_t first, uint64_t last)
{
    uint64_t from = first > it->first_id ? first : it->first_id;
    uint64_t to = last < it->last_id ? last : it->last_id;
    ASSERT(from <= to);
    return ((double)it->records + 1) * ((double)(to - from) + 1) /
        ((double)(it->last_id - it->first_id) + 1);
}

/* Divides the records of a table among the ranges that it lies over, as their
 * files have records there: most of an overlay is of these. One that is over
 * none lies in a gap. scale: for so many like it. */
static void
add_table(struct seal_tidy_range *range, size_t n, unsigned n_shards,
    const struct engine_extent *table, double scale)
{
    uint64_t first = table->first_row * n_shards;
    uint64_t last = table->last_row * n_shards + (n_shards - 1);
    double n_records = scale * (double)table->n_records, sum = 0;
    ASSERT(first <= last);
    size_t from = place_of(range, n, first), end = from;
    for (; end < n && range[end].first_id <= last; end++) {
        sum += weight_of(&range[end], first, last);
    }
    ASSERT(from == n || range[from].last_id >= first);
    if (end == from && end < n) {
        range[end].n_gap += (uint64_t)(n_records + 0.5);
    }
    for (size_t i = from; i < end; i++) {
        double share = weight_of(&range[i], first, last) / sum;
        range[i].n_hot += (uint64_t)(n_records * share + 0.5);
        range[i].is_quiet = range[i].is_quiet && table->is_clean;
    }
}

/* The tables of a shard over the ranges; scale 0: only counts them. */
static unsigned
add_shard(const struct seal *seal, unsigned slot, unsigned shard,
    struct seal_tidy_range *range, size_t n, double scale)
{
    uint64_t row = range[0].first_id / seal->n_shards;
    uint64_t last_row = range[n - 1].last_id / seal->n_shards;
    struct engine_extent table;
    unsigned n_tables = 0;
    while (engine_extent(seal->engine, slot, shard, row, &table) &&
        table.first_row <= last_row) {
        n_tables++;
        if (scale > 0) {
            add_table(range, n, seal->n_shards, &table, scale);
        }
        if (table.last_row >= last_row) {
            break;
        }
        ASSERT(table.last_row >= row); /* the next one is behind it */
        row = table.last_row + 1;
    }
    return n_tables;
}

/* What is over the ranges, by the tables of so many shards that it takes no
 * long time: shards are hash partitions of the ids, what one has all have,
 * about. */
static void
add_tables(const struct seal *seal, unsigned slot,
    struct seal_tidy_range *range, size_t n)
{
    unsigned each = add_shard(seal, slot, 0, range, n, 0);
    unsigned n_shards = seal->n_shards;
    if ((uint64_t)each * n_shards > TABLES_MAX) {
        n_shards = each < TABLES_MAX ? TABLES_MAX / each : 1;
    }
    for (unsigned shard = 0; shard < n_shards; shard++) {
        (void)add_shard(
            seal, slot, shard, range, n, (double)seal->n_shards / n_shards);
    }
}

int
seal_tidy_list(const struct seal *seal, unsigned slot,
    struct seal_tidy_range **out, size_t *n)
{
    struct segment_map_list *map;
    *out = NULL;
    *n = 0;
    int err = segment_map_list(seal->segment_map, slot, 0, UINT64_MAX, &map);
    if (err != 0 || map == NULL || map->n == 0) {
        segment_map_list_destroy(map);
        return err;
    }
    struct seal_tidy_range *range = malloc(map->n * sizeof *range);
    for (size_t i = 0; range != NULL && i < map->n; i++) {
        range[i] = range_of(&map->entry[i]);
        ASSERT(i == 0 || range[i - 1].last_id < range[i].first_id);
    }
    err = range == NULL ? ERR_NO_MEMORY : sum_files(range, map->n);
    if (err == 0) {
        add_tables(seal, slot, range, map->n);
        *out = range;
        *n = map->n;
    } else {
        free(range);
    }
    segment_map_list_destroy(map);
    return err;
}

void
seal_tidy_measure(
    const struct seal *seal, unsigned slot, struct seal_tidy_range *range)
{
    ASSERT(range->first_id <= range->last_id);
    range->n_hot = 0;
    for (unsigned shard = 0; shard < seal->n_shards; shard++) {
        range->n_hot += engine_count(seal->engine, slot, shard,
            range->first_id / seal->n_shards, range->last_id / seal->n_shards);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A candidate is cut along the tables of one shard, of that which has the first
 * row, for another one may have none: shards are hash partitions of the ids, so
 * what one has of a range all have, about. A candidate has so many records that
 * their copy takes seal->copy_bytes, about; it ends where the next one begins,
 * so that records of other shards between tables of this one are in one of
 * both.
 *
 * The oldest candidate is taken of which not too much is cold already: to seal
 * what covers a segment rewrites it, which pays where much goes out of memory
 * for it. Where there is none, that with the largest share of hot records. The
 * newest range of a counter is where new ids go, and is left alone; but where
 * there is nothing else its older half is taken. */
#include "store/seal_pick.h"

#include "engine/engine_extents.h"

enum {
    CHUNK_MIN = 1 << 16, /* records of a candidate, of all shards */
    CHUNK_MAX = 1 << 22,
    COLD_SHARE_MAX = 8,  /* rewritten for one that goes out of memory */
    LEAST_RECORDS = 4096 /* that are worth a file */
};

uint64_t
seal_pick_chunk(const struct seal *seal, unsigned n_columns)
{
    /* a copy has their rows, and a code a column */
    uint64_t n = seal->copy_bytes / (8 * (UINT64_C(1) + n_columns));
    if (seal->chunk != 0) {
        return seal->chunk;
    }
    return n < CHUNK_MIN ? CHUNK_MIN : n > CHUNK_MAX ? CHUNK_MAX : n;
}

/* Ids of a row begin at row x n_shards. */
static uint64_t
first_id_of(const struct seal *seal, uint64_t row)
{
    return row * seal->n_shards;
}

static uint64_t
last_id_of(const struct seal *seal, uint64_t row)
{
    return row * seal->n_shards + (seal->n_shards - 1);
}

/* A table that alone has too many: its first part, in proportion. */
static uint64_t
cut(const struct engine_extent *extent, uint64_t n, uint64_t chunk)
{
    uint64_t rows = extent->last_row - extent->first_row;
    uint64_t parts = (n + chunk - 1) / chunk;
    return extent->first_row + rows / parts;
}

/* The first row from `row` on that a table of any shard has, and which shard
 * that is; false where there is none. */
static bool
first_row(const struct seal *seal, unsigned slot, uint64_t row, uint64_t *out,
    unsigned *lead)
{
    struct engine_extent extent;
    bool found = false;
    for (unsigned shard = 0; shard < seal->n_shards; shard++) {
        if (engine_extent(seal->engine, slot, shard, row, &extent)) {
            uint64_t first = extent.first_row < row ? row : extent.first_row;
            if (!found || first < *out) {
                *out = first;
                *lead = shard;
            }
            found = true;
        }
    }
    return found;
}

bool
seal_pick_next(const struct seal *seal, unsigned slot, uint64_t from,
    struct seal_candidate *out)
{
    uint64_t row = from / seal->n_shards;
    unsigned lead;
    struct engine_extent extent;
    *out = (struct seal_candidate){.range = {.slot = slot}};
    if (!first_row(seal, slot, row, &row, &lead)) {
        return false;
    }
    out->range.first_id = first_id_of(seal, row);
    while (engine_extent(seal->engine, slot, lead, row, &extent)) {
        uint64_t n = (extent.n_records + 1) * seal->n_shards;
        uint64_t chunk = seal_pick_chunk(seal, extent.n_columns);
        if (extent.first_row < row) { /* the rest of one that was cut */
            uint64_t rows = extent.last_row - extent.first_row;
            n = (uint64_t)((double)n * (double)(extent.last_row - row + 1) /
                ((double)rows + 1));
            extent.first_row = row;
        }
        if (out->n_hot > 0 && out->n_hot + n > chunk) {
            out->range.last_id = first_id_of(seal, extent.first_row) - 1;
            return true;
        }
        out->n_hot += n;
        if (n > chunk) {
            uint64_t last = cut(&extent, n, chunk);
            out->n_hot = chunk;
            out->range.last_id = last_id_of(seal, last);
            return true;
        }
        row = extent.last_row + 1;
        out->range.last_id = last_id_of(seal, extent.last_row);
        if (out->range.last_id == UINT64_MAX) {
            break;
        }
    }
    out->is_last = out->range.last_id == UINT64_MAX ||
        !first_row(seal, slot, row, &row, &lead);
    return out->n_hot > 0;
}

/* Records that segments have in a range, by their blocks. */
static uint64_t
count_cold(const struct seal *seal, const struct seal_range *range)
{
    struct covers_map *list;
    uint64_t n = 0;
    if (covers_list(seal->covers, range->slot, range->first_id, range->last_id,
            &list) != 0 ||
        list == NULL) {
        return 0;
    }
    for (size_t i = 0; i < list->n; i++) {
        const struct covers_entry *entry = &list->entry[i];
        const struct segment *segment = entry->file->segment;
        const struct segment_head *head = segment_head(segment);
        uint32_t first = 0, last = 0;
        if (segment_find(segment, entry->last_id, &last) ||
            entry->last_id > head->last_id) {
            last = entry->last_id > head->last_id ? head->n_blocks - 1 : last;
            (void)segment_find(segment, entry->first_id, &first);
            n += (last - first + UINT64_C(1)) * head->records / head->n_blocks;
        }
    }
    covers_map_destroy(list);
    return n;
}

/* The older half of a counter's last candidate. */
static bool
pick_half(const struct seal *seal, const struct seal_candidate *last,
    struct seal_range *out)
{
    struct seal half = {.engine = seal->engine,
        .n_shards = seal->n_shards,
        .chunk = last->n_hot / 2 + 1};
    struct seal_candidate it;
    if (last->n_hot < LEAST_RECORDS ||
        !seal_pick_next(&half, last->range.slot, last->range.first_id, &it)) {
        return false;
    }
    *out = it.range;
    return true;
}

bool
seal_pick_best(const struct seal *seal, const struct seal_range *tried,
    struct seal_range *out)
{
    struct seal_candidate largest = {0}; /* of the last ones */
    double best_share = 0;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct seal_candidate it = {0};
        uint64_t from =
            slot == tried->slot && tried->last_id > 0 ? tried->last_id + 1 : 0;
        while (seal_pick_next(seal, slot, from, &it) && !it.is_last) {
            it.n_cold = count_cold(seal, &it.range);
            double share =
                (double)it.n_hot / ((double)it.n_hot + (double)it.n_cold);
            if (it.n_hot >= LEAST_RECORDS && share > best_share) {
                best_share = share;
                *out = it.range;
                if (it.n_cold <= it.n_hot * COLD_SHARE_MAX) {
                    return true;
                }
            }
            from = it.range.last_id + 1;
        }
        if (it.is_last && it.n_hot > largest.n_hot) {
            largest = it;
        }
    }
    return best_share > 0 || pick_half(seal, &largest, out);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes out of a manifest what does not count any more: segments of counters
 * that are gone, and rows of images that newer segments cover.
 *
 * What can go wrong: memory. */
#include "wal/manifest.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* Rows of an image that go. */
struct cut {
    uint8_t counter;
    uint16_t shard;
    uint64_t first_row, last_row;
};

struct cuts {
    unsigned shard_bits;
    struct {
        const struct manifest_segment *segment;
        size_t n;
    } slot[SCHEMA_COUNTERS_MAX]; /* what covers the counter there */
    struct cut *cut;             /* owned; n of capacity */
    size_t n, capacity;
    size_t n_images;
    bool is_short; /* of memory */
};

static bool
is_gone(const void *context, const struct manifest_segment *segment)
{
    return !manifest_has_counter(context, segment->counter_serial);
}

/* Drops the images of tables in the place of a counter's column, or of all its
 * columns, which has none. */
static int
drop_tables(struct manifest *manifest, unsigned counter, unsigned column)
{
    struct images_entry place = {.counter = (uint8_t)counter,
        .shard = (uint16_t)manifest->shards,
        .first_row = (uint64_t)column << MANIFEST_TABLES_SLOT_SHIFT};

    return manifest__has_column(manifest, &place)
        ? 0
        : images_drop(&manifest->images, place.counter, place.shard,
              place.first_row,
              place.first_row |
                  ((UINT64_C(1) << MANIFEST_TABLES_SLOT_SHIFT) - 1));
}

int
manifest_drop_gone(struct manifest *manifest)
{
    int err = 0;

    segments_drop(&manifest->segments, is_gone, manifest);
    for (unsigned counter = 0; counter < SCHEMA_COUNTERS_MAX; counter++) {
        for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX && err == 0; i++) {
            err = drop_tables(manifest, counter, i);
        }
    }
    return err;
}

static void
add_cut(struct cuts *cuts, const struct cut *cut)
{
    if (cuts->n == cuts->capacity) {
        size_t n = cuts->capacity == 0 ? 16 : 2 * cuts->capacity;
        struct cut *more = realloc(cuts->cut, n * sizeof *more);

        if (more == NULL) {
            cuts->is_short = true;
            return;
        }
        cuts->cut = more;
        cuts->capacity = n;
    }
    cuts->cut[cuts->n++] = *cut;
}

/* Notes the rows of an entry that newer segments cover. */
static void
note_cuts(void *context, const struct images_entry *entry)
{
    struct cuts *cuts = context;
    const struct manifest_segment *segment =
        cuts->slot[entry->counter].segment;
    size_t n = cuts->slot[entry->counter].n, before = cuts->n;
    unsigned bits = cuts->shard_bits;

    /* beyond the last row, and in tables of members=about, there is nothing
     * to cover */
    if (n == 0 || entry->shard >> bits != 0 ||
        entry->first_row > UINT64_MAX >> bits) {
        return;
    }
    for (size_t i = segments_place(segment, n, entry->first_row << bits);
         i < n && segment[i].first_id >> bits <= entry->last_row; i++) {
        struct cut cut = {.counter = entry->counter,
            .shard = entry->shard,
            .first_row = segment[i].first_id >> bits,
            .last_row = segment[i].last_id >> bits};

        if (cut.first_row < entry->first_row) {
            cut.first_row = entry->first_row;
        }
        if (cut.last_row > entry->last_row) {
            cut.last_row = entry->last_row;
        }
        ASSERT(cut.first_row <= cut.last_row);
        if (entry->seq < segment[i].seq[entry->shard]) {
            add_cut(cuts, &cut);
        }
    }
    cuts->n_images += cuts->n > before;
}

int
manifest_cut_images(struct manifest *manifest, size_t *n_cut)
{
    struct cuts cuts = {
        .shard_bits = (unsigned)__builtin_ctz(manifest->shards)};
    int err;

    *n_cut = 0;
    if (manifest->segments.n == 0) {
        return 0;
    }
    ASSERT(manifest->segments.shards == manifest->shards);
    struct manifest_counters at = {0};
    struct manifest_counter one;

    while (manifest__next_counter(manifest, &at, &one)) {
        cuts.slot[one.slot].segment = segments_of(
            &manifest->segments, one.serial, &cuts.slot[one.slot].n);
    }
    images_each(&manifest->images, note_cuts, &cuts);
    err = cuts.is_short ? ERR_NO_MEMORY : 0;
    for (size_t i = 0; i < cuts.n && err == 0; i++) {
        const struct cut *cut = &cuts.cut[i];

        err = images_drop(&manifest->images, cut->counter, cut->shard,
            cut->first_row, cut->last_row);
    }
    *n_cut = cuts.n_images;
    free(cuts.cut);
    return err;
}

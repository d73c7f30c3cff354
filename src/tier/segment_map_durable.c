/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes maps of the manifest at the start, and lists them for each new one.
 *
 * What the manifest and the files say has been checked against each other by
 * then (durable/recover_segments.c). What goes into a manifest is asserted. */
#include "base/assert.h"
#include "base/err.h"
#include "durable/durable.h"
#include "tier/segment_map.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct segment_map *
segment_map_of(struct durable_segments *seam)
{
    struct segment_map *segment_map = (struct segment_map *)((char *)seam -
        offsetof(struct segment_map, durable));
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC);
    return segment_map;
}

/* One range of a file, in all shards. */
static int
take_part(struct segment_map *segment_map, struct segment_map_file *file,
    const struct manifest_segment *part)
{
    const struct segment_map_entry entry = {
        part->first_id, part->last_id, file};
    struct segment_map_change change;
    int err = segment_map__begin(segment_map, part->counter, part->first_id,
        part->last_id, &entry, 1, &change);
    if (err == 0) {
        segment_map__publish_all(&change);
        engine_add_covered(segment_map->engine, part->counter,
            segment_map__entry_records(&entry));
    }
    return err;
}

static int
take(struct durable_segments *seam, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct segment_map *segment_map = segment_map_of(seam);
    size_t bytes = segment_map->n_shards * sizeof(uint64_t);
    uint64_t *seq = malloc(bytes);
    int err = 0;
    ASSERT(n > 0 && part[0]->number == segment_head(segment)->number);
    if (seq == NULL) {
        return ERR_NO_MEMORY;
    }
    memcpy(seq, part[0]->seq, bytes);
    struct segment_map_file *file =
        segment_map__file_create(segment, seq, segment_map->fetch);
    if (file == NULL) {
        free(seq);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; err == 0 && i < n; i++) {
        err = take_part(segment_map, file, part[i]);
    }
    if (err != 0) { /* the segment stays the caller's */
        segment_map__file_disown(file);
    }
    segment_map_file_release(file);
    return err;
}

static void
drop(struct durable_segments *seam, unsigned slot)
{
    segment_map_clear(segment_map_of(seam), slot);
}

static int
add_map(
    const struct segment_map_list *map, unsigned slot, struct segments *out)
{
    int err = 0;
    for (size_t i = 0; map != NULL && err == 0 && i < map->n; i++) {
        const struct segment_map_entry *entry = &map->entry[i];
        const struct segment_head *head = segment_head(entry->file->segment);
        ASSERT(entry->file->seq != NULL && head->records > 0);
        const struct manifest_segment segment = {.number = head->number,
            .history = head->epoch,
            .counter_serial = head->counter_serial,
            .counter = (uint8_t)slot,
            .first_id = entry->first_id,
            .last_id = entry->last_id,
            .records = head->records,
            .seq = entry->file->seq};
        err = segments_add(out, &segment);
    }
    return err;
}

static int
list(struct durable_segments *seam, struct segments *out)
{
    struct segment_map *segment_map = segment_map_of(seam);
    int err = 0;
    segment_map_verify(segment_map);
    for (unsigned slot = 0; err == 0 && slot < SCHEMA_COUNTERS_MAX; slot++) {
        err = add_map(segment_map__settled(segment_map, slot), slot, out);
    }
    return err;
}

struct durable_segments *
segment_map__as_durable(struct segment_map *segment_map)
{
    segment_map->durable = (struct durable_segments){
        .take_fn = take, .drop_fn = drop, .list_fn = list};
    return &segment_map->durable;
}

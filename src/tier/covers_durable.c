/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes maps of the manifest at the start, and lists them for each new one.
 *
 * What the manifest and the files say has been checked against each other by
 * then (durable/recover_segments.c). What goes into a manifest is asserted. */
#include "base/assert.h"
#include "base/err.h"
#include "durable/durable.h"
#include "tier/covers.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct covers *
covers_of(struct durable_covers *seam)
{
    struct covers *covers =
        (struct covers *)((char *)seam - offsetof(struct covers, durable));
    ASSERT(covers->magic == COVERS_MAGIC);
    return covers;
}

/* One range of a file, in all shards. */
static int
take_part(struct covers *covers, struct covers_file *file,
    const struct manifest_segment *part)
{
    const struct covers_entry entry = {part->first_id, part->last_id, file};
    struct covers_change change;
    int err = covers__begin(covers, part->counter, part->first_id,
        part->last_id, &entry, 1, &change);
    if (err == 0) {
        covers__publish_all(&change);
        engine_add_covered(
            covers->engine, part->counter, covers__entry_records(&entry));
    }
    return err;
}

static int
take(struct durable_covers *seam, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct covers *covers = covers_of(seam);
    size_t bytes = covers->n_shards * sizeof(uint64_t);
    uint64_t *seq = malloc(bytes);
    int err = 0;
    ASSERT(n > 0 && part[0]->number == segment_head(segment)->number);
    if (seq == NULL) {
        return ERR_NO_MEMORY;
    }
    memcpy(seq, part[0]->seq, bytes);
    struct covers_file *file =
        covers__file_create(segment, seq, covers->fetch);
    if (file == NULL) {
        free(seq);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; err == 0 && i < n; i++) {
        err = take_part(covers, file, part[i]);
    }
    if (err != 0) { /* the segment stays the caller's */
        covers__file_disown(file);
    }
    covers_file_release(file);
    return err;
}

static void
drop(struct durable_covers *seam, unsigned slot)
{
    covers_clear(covers_of(seam), slot);
}

static int
add_map(const struct covers_map *map, unsigned slot, struct segments *out)
{
    int err = 0;
    for (size_t i = 0; map != NULL && err == 0 && i < map->n; i++) {
        const struct covers_entry *entry = &map->entry[i];
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
list(struct durable_covers *seam, struct segments *out)
{
    struct covers *covers = covers_of(seam);
    int err = 0;
    covers_verify(covers);
    for (unsigned slot = 0; err == 0 && slot < SCHEMA_COUNTERS_MAX; slot++) {
        err = add_map(covers__settled(covers, slot), slot, out);
    }
    return err;
}

struct durable_covers *
covers__as_durable(struct covers *covers)
{
    covers->durable = (struct durable_covers){
        .take_fn = take, .drop_fn = drop, .list_fn = list};
    return &covers->durable;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a cold range hot again (tier/states.h).
 *
 *   COLD --- each record that the engine does not have: into the overlay,
 *    |       and whole into the log ---> FULL --- readers awaited
 *    |                                    |            |
 *    +-- given up: an overlay, as before -+            v
 *                   HOT: shard by shard, no cover any more
 *
 * Until the cover goes, the range is cold, and its overlay has more and more of
 * it: right at every moment, also for a start. A record of a covered row leaves
 * the engine only by an eviction, which is this thread's, and a record that is
 * deleted leaves a tombstone. So at FULL the engine has all of the range.
 *
 * A start with a manifest that still has the segment finds whole records in the
 * log (or in images) behind those that it leaves out. A start with the next
 * one reads them too, and what the log has of the rows from before the segment
 * is older. The next manifest is written only with the log synced up to the
 * last of them, and lets the file go.
 *
 * What can go wrong: a reader misses a record in the engine, then the record
 * comes in and the cover goes, and then the reader asks whether the id is
 * covered. So all readers are awaited between the last record and the first
 * map: a reader that has missed it asks for the cover before that. */
#include "tier/reheat.h"

#include "base/assert.h"
#include "base/err.h"
#include "cold/segment_scan.h"
#include "durable/durable_position.h"
#include "engine/cover.h"
#include "tier/states.h"

#include <stdlib.h>

enum { REHEAT_MAGIC = 0x71c4e09a };

struct reheat {
    uint32_t magic; /* REHEAT_MAGIC */
    enum reheat_state state;
    struct seal *seal;
    struct seal_range range;
    struct segment_map_list *list; /* owned; the one entry */
    struct segment_scan *scan;
    struct segment_records records; /* of scan */
    size_t at;                      /* the next of them */
    struct change change;           /* that changes nothing */
    struct engine_base base;
    struct segment_map_change exchange;
    unsigned shard; /* that is being published */
};

static int
take_list(struct seal *seal, const struct seal_range *range,
    struct segment_map_list **out)
{
    int err = segment_map_list(
        seal->segment_map, range->slot, range->first_id, range->last_id, out);
    if (err == 0 &&
        (*out == NULL || (*out)->n != 1 ||
            (*out)->entry[0].first_id != range->first_id ||
            (*out)->entry[0].last_id != range->last_id)) {
        segment_map_list_destroy(*out);
        *out = NULL;
        err = ERR_GONE;
    }
    return err;
}

/* A change of the counter's first column that leaves it as it is, with the
 * record as base. */
static int
take_change(struct reheat *it)
{
    struct durable *durable = it->seal->durable;
    int err = ERR_GONE;
    ASSERT(it->range.slot < SCHEMA_COUNTERS_MAX);
    mutex_lock(&durable->edit_lock);
    /* relaxed: under edit_lock, like all who store it */
    const struct schema_counter *counter = schema_counter_at(
        atomic_load_explicit(it->seal->schema, memory_order_relaxed),
        it->range.slot);
    if (counter != NULL && counter->n_columns > 0) {
        it->change = (struct change){.op = CHANGE_DECR,
            .counter = (uint8_t)it->range.slot,
            .n_columns = 1,
            .column = {counter->column[0].slot},
            .serial = {counter->column[0].serial},
            .base = &it->base};
        err = 0;
    }
    mutex_unlock(&durable->edit_lock);
    return err;
}

/* What all records have in common. */
static void
begin_base(struct reheat *it)
{
    const struct segment_head *head =
        segment_head(it->list->entry[0].file->segment);
    ASSERT(it->list->entry[0].file->number == head->number);
    ASSERT(head->counter == it->range.slot);
    it->base = (struct engine_base){.version = head->number,
        .is_there = true,
        .is_to_stay = true,
        .n_columns = head->n_columns};
    for (unsigned c = 0; c < head->n_columns; c++) {
        it->base.serial[c] = head->column[c].serial;
    }
}

int
reheat_begin(
    struct seal *seal, const struct seal_range *range, struct reheat **out)
{
    struct reheat *it = calloc(1, sizeof *it);
    *out = NULL;
    if (it == NULL) {
        return ERR_NO_MEMORY;
    }
    ASSERT(range->first_id <= range->last_id);
    it->magic = REHEAT_MAGIC;
    it->seal = seal;
    it->range = *range;
    int err = take_list(seal, range, &it->list);
    if (err == 0) {
        err = take_change(it);
    }
    if (err == 0) {
        const struct segment *segment = it->list->entry[0].file->segment;
        begin_base(it);
        err = segment_scan_create(
            segment, segment_from(segment, range->first_id), NULL, &it->scan);
    }
    if (err == 0) {
        segment_scan_until(it->scan, range->last_id);
    }
    if (err != 0) {
        reheat_abort(&it);
    }
    *out = it;
    return err;
}

void
reheat_abort(struct reheat **out)
{
    struct reheat *it = *out;
    *out = NULL;
    if (it != NULL) {
        ASSERT(it->magic == REHEAT_MAGIC);
        it->magic = 0;
        segment_scan_destroy(&it->scan);
        segment_map_list_destroy(it->list);
        free(it);
    }
}

/* Sees to it that records[at] is the next one; false at their end. */
static bool
has_next(struct reheat *it, int *err)
{
    for (;; it->at++) {
        if (it->at == it->records.n) {
            it->at = 0;
            *err = segment_scan_next(it->scan, &it->records);
            if (*err != 0 || it->records.n == 0) {
                return false;
            }
        }
        uint64_t id = it->records.id[it->at];
        if (id >= it->range.first_id) {
            return id <= it->range.last_id;
        }
    }
}

/* Brings one record in, unless it is there. */
static int
bring(struct reheat *it)
{
    ASSERT(it->at < it->records.n);
    it->change.id = it->base.id = it->records.id[it->at];
    for (unsigned c = 0; c < it->base.n_columns; c++) {
        it->base.code[c] = it->records.code[c][it->at];
    }
    (void)engine_change(it->seal->engine, &it->change, 1);
    /* another version covers it */
    return it->change.err == ERR_COLD ? ERR_GONE : it->change.err;
}

int
reheat_step(struct reheat *it, uint64_t n, bool *is_end)
{
    /* a change would only wait in memory */
    int err = wal_fault(it->seal->durable->wal);
    ASSERT(it->magic == REHEAT_MAGIC && it->state == REHEAT_COLD);
    *is_end = false;
    for (uint64_t i = 0; err == 0 && i < n; i++) {
        if (!has_next(it, &err)) {
            *is_end = err == 0;
            if (*is_end) {
                it->state = reheat__step(it->state, REHEAT_FULL);
            }
            return err;
        }
        err = bring(it);
        it->at++;
        durable_count(&it->seal->stats.reheat_records, err == 0);
    }
    /* relaxed: it only has to be seen some time */
    if (atomic_load_explicit(it->seal->is_stopping, memory_order_relaxed)) {
        return ERR_CLOSED;
    }
    return err;
}

/* The engine's callback. */
static void
publish_shard(void *context)
{
    struct reheat *it = context;
    ASSERT(it->magic == REHEAT_MAGIC && it->state == REHEAT_FULL);
    engine_assert_held(it->seal->engine, it->shard);
    segment_map__publish(&it->exchange, it->shard);
}

static int
publish(struct reheat *it)
{
    struct seal *seal = it->seal;
    const struct seal_range *range = &it->range;
    struct segment_map_list *now;
    mutex_assert_held(&seal->durable->edit_lock);
    int err = take_list(seal, range, &now);
    if (err != 0) {
        return err;
    }
    bool is_same = segment_map__map_is_same(it->list, now);
    segment_map_list_destroy(now);
    if (!is_same || durable_is_replica(seal->durable)) {
        return ERR_GONE;
    }
    err = segment_map__begin(seal->segment_map, range->slot, range->first_id,
        range->last_id, NULL, 0, &it->exchange);
    if (err != 0) {
        return err;
    }
    for (it->shard = 0; it->shard < seal->n_shards; it->shard++) {
        engine_uncover(seal->engine, it->shard, publish_shard, it);
    }
    it->state = reheat__step(it->state, REHEAT_HOT);
    return 0;
}

int
reheat_end(struct reheat **out)
{
    struct reheat *it = *out;
    struct seal *seal = it->seal;
    ASSERT(it->magic == REHEAT_MAGIC && it->state == REHEAT_FULL);
    qsbr_wait(seal->segment_map->qsbr);
    mutex_lock(&seal->durable->edit_lock);
    int err = publish(it);
    mutex_unlock(&seal->durable->edit_lock);
    if (err == 0) {
        segment_map__end(&it->exchange);
        durable_count(&seal->stats.reheats, 1);
    }
    reheat_abort(out);
    return err;
}

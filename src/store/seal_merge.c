/* SPDX-License-Identifier: BSD-3-Clause */
/* Each shard's rows ascend, and so do a segment's records: a heap of shards
 * gives the lowest id of the engine, and where a segment has the same one it is
 * passed over. Rows of all zeroes are in the engine to say that there is no
 * record: they hide the segment's, and are left out. */
#include "store/seal_merge.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

static void
sift_down(struct seal_merge *merge, size_t at)
{
    struct seal_merge_shard it = merge->heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= merge->n_heap) {
            break;
        }
        if (child + 1 < merge->n_heap &&
            merge->heap[child + 1].id < merge->heap[child].id) {
            child++;
        }
        if (it.id <= merge->heap[child].id) {
            break;
        }
        merge->heap[at] = merge->heap[child];
        at = child;
    }
    merge->heap[at] = it;
}

int
seal_merge_init(struct seal_merge *merge, unsigned n_shards)
{
    merge->heap = calloc(n_shards, sizeof *merge->heap);
    if (merge->heap == NULL) {
        return ERR_NO_MEMORY;
    }
    for (unsigned shard = 0; shard < n_shards; shard++) {
        if (merge->rows[shard].n > 0) {
            merge->heap[merge->n_heap++] = (struct seal_merge_shard){shard, 0,
                engine_id(merge->engine, shard, merge->rows[shard].row[0])};
        }
    }
    for (size_t i = merge->n_heap / 2; i-- > 0;) {
        sift_down(merge, i);
    }
    return 0;
}

void
seal_merge_fini(struct seal_merge *merge)
{
    free(merge->heap);
    merge->heap = NULL;
    segment_scan_destroy(&merge->scan);
}

/* Begins reading the entry that it is at, near its first id. */
static int
open_entry(struct seal_merge *merge)
{
    const struct covers_entry *entry = &merge->list->entry[merge->at_entry];
    const struct segment *segment = entry->file->segment;
    uint32_t block = 0;
    (void)segment_find(segment, entry->first_id, &block);
    merge->records.n = 0;
    merge->at_record = 0;
    return segment_scan_create(segment, block, NULL, &merge->scan);
}

static void
close_entry(struct seal_merge *merge)
{
    segment_scan_destroy(&merge->scan);
    merge->at_entry++;
}

/* Sees to it that records[at_record] is the next one of the segments; false at
 * their end. */
static bool
has_cold(struct seal_merge *merge, int *err)
{
    while (merge->list != NULL && merge->at_entry < merge->list->n) {
        const struct covers_entry *entry =
            &merge->list->entry[merge->at_entry];
        if (merge->scan == NULL && (*err = open_entry(merge)) != 0) {
            return false;
        }
        if (merge->at_record == merge->records.n) {
            merge->at_record = 0;
            *err = segment_scan_next(merge->scan, &merge->records);
            if (*err != 0) {
                return false;
            }
        }
        if (merge->records.n == 0 ||
            merge->records.id[merge->at_record] > entry->last_id) {
            close_entry(merge);
            merge->at_record = merge->records.n = 0;
        } else if (merge->records.id[merge->at_record] < entry->first_id) {
            merge->at_record++;
        } else {
            return true;
        }
    }
    return false;
}

static void
take_cold(struct seal_merge *merge, uint64_t *code)
{
    const struct segment_head *from =
        segment_head(merge->list->entry[merge->at_entry].file->segment);
    const struct segment_head *to = merge->head;
    for (unsigned i = 0; i < to->n_columns; i++) {
        for (unsigned c = 0; c < from->n_columns; c++) {
            if (from->column[c].serial == to->column[i].serial) {
                code[i] = merge->records.code[c][merge->at_record];
            }
        }
    }
}

static void
take_hot(struct seal_merge *merge, uint64_t *code)
{
    struct seal_merge_shard *first = &merge->heap[0];
    const struct engine_rows *rows = &merge->rows[first->shard];
    const struct segment_head *to = merge->head;
    for (unsigned i = 0; i < to->n_columns; i++) {
        for (unsigned c = 0; c < rows->n_columns; c++) {
            if (rows->serial[c] == to->column[i].serial) {
                code[i] = rows->code[c][first->at];
            }
        }
    }
    if (++first->at < rows->n) {
        first->id =
            engine_id(merge->engine, first->shard, rows->row[first->at]);
    } else {
        *first = merge->heap[--merge->n_heap];
    }
    if (merge->n_heap > 0) {
        sift_down(merge, 0);
    }
}

static bool
is_empty(const uint64_t *code, unsigned n)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < n; i++) {
        any |= code[i];
    }
    return any == 0;
}

int
seal_merge_next(struct seal_merge *merge, uint64_t *id,
    uint64_t code[SCHEMA_COLUMNS_MAX], bool *is_end)
{
    for (;;) {
        int err = 0;
        bool is_cold = has_cold(merge, &err);
        uint64_t cold = is_cold ? merge->records.id[merge->at_record] : 0;
        bool is_hot =
            merge->n_heap > 0 && (!is_cold || merge->heap[0].id <= cold);
        if (err != 0) {
            return err;
        }
        *is_end = !is_cold && !is_hot;
        if (*is_end) {
            return 0;
        }
        *id = is_hot ? merge->heap[0].id : cold;
        memset(code, 0, SCHEMA_COLUMNS_MAX * sizeof *code);
        if (is_cold && cold == *id) { /* hidden, where the engine has it */
            if (!is_hot) {
                take_cold(merge, code);
            }
            merge->at_record++;
        }
        if (is_hot) {
            take_hot(merge, code);
        }
        if (!is_empty(code, merge->head->n_columns)) {
            merge->n_hot += is_hot;
            return 0;
        }
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Deletes the marks of a range that are forgotten, before the range is copied
 * for a segment.
 *
 * The records of the range are merged once without a file: each mark that seems
 * forgotten is deleted as a client's delete would be, in memory or, with the
 * segment's record as a base, over the segment. So the log and the replicas are
 * told, and what the seal copies then has no such marks. A record that has
 * nothing else has become a tombstone, and is not in the new segment.
 *
 * Nothing hangs on it: what cannot be deleted now is written as it is. Each
 * batch is under the lock of edits, with which a primary becomes a replica: so
 * none is made that its log is not told. */
#include "tier/seal_forget.h"

#include "base/assert.h"
#include "durable/durable_position.h"

#include <stdlib.h>

/* The head's column with that serial; n_columns: it has none. */
static uint8_t
column_of(const struct segment_head *head, uint32_t serial)
{
    unsigned c = 0;
    while (c < head->n_columns && head->column[c].serial != serial) {
        c++;
    }
    return (uint8_t)c;
}

/* The counter's marks, if it is still that of the head. */
static void
take_marks(struct seal_forget *it, const struct segment_head *head)
{
    struct seal *seal = it->seal;
    mutex_lock(&seal->durable->edit_lock);
    /* relaxed: under edit_lock, like all who store it */
    const struct schema *schema =
        atomic_load_explicit(seal->schema, memory_order_relaxed);
    const struct schema_counter *counter =
        schema_counter_at(schema, head->counter);
    bool is_same = counter != NULL && counter->serial == head->counter_serial;
    forgotten_take(&it->marks, seal->engine, schema, is_same ? counter : NULL);
    if (durable_is_replica(seal->durable) ||
        wal_fault(seal->durable->wal) != 0) {
        it->marks.n = 0;
    }
    mutex_unlock(&seal->durable->edit_lock);
}

static void
look_at_sources(struct seal_forget *it)
{
    struct qsbr *qsbr = it->seal->segment_map->qsbr;
    qsbr_online(qsbr, &it->reader);
    forgotten_look(&it->marks);
    qsbr_offline(&it->reader);
}

void
seal_forget_begin(struct seal *seal, const struct segment_head *head,
    struct seal_forget **out)
{
    struct seal_forget *it = calloc(1, sizeof *it);
    *out = NULL;
    if (it == NULL) {
        return;
    }
    it->seal = seal;
    take_marks(it, head);
    if (it->marks.n == 0) {
        free(it);
        return;
    }
    for (unsigned k = 0; k < it->marks.n; k++) {
        it->at[k] = column_of(head, it->marks.mark[k].serial);
        it->own[k] = column_of(head, it->marks.mark[k].source.serial);
    }
    qsbr_register(seal->segment_map->qsbr, &it->reader);
    look_at_sources(it);
    *out = it;
}

/* The record as the segment that merge is at has it. */
static void
take_base(struct engine_base *base, const struct seal_merge *merge,
    uint64_t id, const uint64_t *code)
{
    const struct segment_head *head = merge->head;
    ASSERT(merge->at_entry < merge->list->n);
    *base = (struct engine_base){.id = id,
        .version = merge->list->entry[merge->at_entry].file->number,
        .is_there = true,
        .n_columns = head->n_columns};
    for (unsigned c = 0; c < head->n_columns; c++) {
        base->serial[c] = head->column[c].serial;
        base->code[c] = code[c];
    }
}

void
seal_forget_look(struct seal_forget *it, const struct seal_merge *merge,
    uint64_t id, const uint64_t code[SCHEMA_COLUMNS_MAX], bool is_hot)
{
    unsigned n_columns = merge->head->n_columns;
    for (unsigned k = 0; k < it->marks.n; k++) {
        unsigned at = it->at[k], own = it->own[k];
        uint64_t stored = at < n_columns ? code[at] : 0;
        if (!forgotten_is(
                &it->marks.mark[k], stored, own < n_columns ? code[own] : 0)) {
            continue;
        }
        if (it->n == SEAL_FORGET_BATCH) {
            seal_forget_flush(it);
        }
        struct seal_forget_one *one = &it->found[it->n++];
        one->mark = k;
        one->stored = stored;
        one->is_cold = !is_hot;
        one->base.id = id;
        if (!is_hot) {
            take_base(&one->base, merge, id, code);
        }
    }
}

void
seal_forget_flush(struct seal_forget *it)
{
    struct durable *durable = it->seal->durable;
    if (it->n == 0) {
        return;
    }
    look_at_sources(it);
    mutex_lock(&durable->edit_lock);
    bool may_change =
        !durable_is_replica(durable) && wal_fault(durable->wal) == 0;
    for (unsigned i = 0; may_change && i < it->n; i++) {
        const struct seal_forget_one *one = &it->found[i];
        it->n_forgotten +=
            forgotten_delete(&it->marks, &it->marks.mark[one->mark],
                one->base.id, one->stored, one->is_cold ? &one->base : NULL);
    }
    mutex_unlock(&durable->edit_lock);
    it->n = 0;
}

void
seal_forget_end(struct seal_forget **out)
{
    struct seal_forget *it = *out;
    *out = NULL;
    if (it != NULL) {
        qsbr_unregister(it->seal->segment_map->qsbr, &it->reader);
        free(it);
    }
}

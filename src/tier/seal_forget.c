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
 * Nothing hangs on it: what cannot be deleted now is written as it is, and so
 * is what would bring too many records of segments into memory (may_take). Each
 * batch is under the lock of edits, with which a primary becomes a replica: so
 * none is made that its log is not told. Sources of fixed ids are read under
 * that lock, right before the batch, and members of the own id right before
 * each change (tier/forgotten.h). */
#include "tier/seal_forget.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/durable_position.h"
#include "tier/seal_pick.h"

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
    forgotten_take(&it->marks, schema, is_same ? counter : NULL);
    if (durable_is_replica(seal->durable) ||
        wal_fault(seal->durable->wal) != 0) {
        it->marks.n = 0;
    }
    mutex_unlock(&seal->durable->edit_lock);
}

/* Leaves out the marks that none is forgotten of, by their fixed source. */
static void
drop_idle(struct forgotten *marks)
{
    unsigned n = 0;
    for (unsigned k = 0; k < marks->n; k++) {
        const struct forgotten_mark *mark = &marks->mark[k];
        if (!mark->is_fixed || mark->fixed > mark->forget) {
            marks->mark[n++] = *mark;
        }
    }
    marks->n = n;
}

void
seal_forget_begin(struct seal *seal, const struct segment_head *head,
    uint64_t n_rows, struct seal_forget **out)
{
    uint64_t chunk = seal_pick__chunk(seal, head->n_columns);
    struct seal_forget *it = calloc(1, sizeof *it);
    *out = NULL;
    if (it == NULL) {
        return;
    }
    it->seal = seal;
    it->n_may_take = n_rows < chunk ? chunk - n_rows : 0;
    it->marks = (struct forgotten){.engine = seal->engine,
        .qsbr = seal->segment_map->qsbr,
        .reader = &it->reader};
    qsbr_register(it->marks.qsbr, &it->reader);
    take_marks(it, head);
    forgotten_look(&it->marks);
    drop_idle(&it->marks);
    if (it->marks.n == 0) {
        seal_forget_end(&it);
        return;
    }
    for (unsigned k = 0; k < it->marks.n; k++) {
        it->at[k] = column_of(head, it->marks.mark[k].serial);
        it->own[k] = column_of(head, it->marks.mark[k].source.serial);
    }
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
        const struct forgotten_found as = {.id = id,
            .stored = at < n_columns ? code[at] : 0,
            .own = own < n_columns ? code[own] : 0};
        if (!forgotten_is(&it->marks, &it->marks.mark[k], &as)) {
            continue;
        }
        if (it->n == SEAL_FORGET_BATCH) {
            seal_forget_flush(it);
        }
        struct seal_forget_one *one = &it->found[it->n++];
        one->mark = k;
        one->as = as;
        one->is_cold = !is_hot;
        if (!is_hot) {
            take_base(&one->base, merge, id, code);
        }
    }
}

/* Whether the record may come into memory, where it is in a segment alone. */
static bool
may_take(const struct seal_forget *it, const struct seal_forget_one *one)
{
    bool has_come = it->any_taken && it->taken_id == one->as.id;
    return !one->is_cold || has_come || it->n_may_take > 0;
}

static void
forget_one(struct seal_forget *it, const struct seal_forget_one *one)
{
    int err = forgotten_delete(&it->marks, &it->marks.mark[one->mark],
        &one->as, one->is_cold ? &one->base : NULL);
    it->n_forgotten += err == 0;
    durable_count(&it->seal->stats.seal_forgotten, err == 0);
    if (one->is_cold && err == 0 &&
        !(it->any_taken && it->taken_id == one->as.id)) {
        ASSERT(it->n_may_take > 0);
        it->n_may_take--;
        it->taken_id = one->as.id;
        it->any_taken = true;
    }
    if (err == ERR_HOT_FULL) { /* the next one would be in vain, too */
        it->n_may_take = 0;
    }
}

/* Above that, what comes in would only have others go. */
static bool
is_full(const struct seal *seal)
{
    uint64_t garbage = 0;
    uint64_t used = engine_hot_bytes(seal->engine, &garbage);
    return used > garbage && used - garbage > seal->room_bytes;
}

void
seal_forget_flush(struct seal_forget *it)
{
    struct durable *durable = it->seal->durable;
    if (it->n == 0) {
        return;
    }
    if (it->n_may_take > 0 && is_full(it->seal)) {
        it->n_may_take = 0;
    }
    mutex_lock(&durable->edit_lock);
    forgotten_look(&it->marks);
    bool may_change =
        !durable_is_replica(durable) && wal_fault(durable->wal) == 0;
    for (unsigned i = 0; may_change && i < it->n; i++) {
        if (may_take(it, &it->found[i])) {
            forget_one(it, &it->found[i]);
        }
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

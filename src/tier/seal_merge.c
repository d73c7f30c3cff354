/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges what the engine has of a range with the segments that cover it.
 *
 * Each shard's rows ascend, and so do a segment's records: the shards compete
 * for the lowest id of the engine, and a segment's record of the same id is
 * passed over. A row of all zeroes says that there is no record: it hides the
 * segment's, and is left out. So at the end
 *
 *   given out = rows of the engine + records of segments - hidden - empty
 *
 * and no id came twice or out of order.
 *
 * The competition is a tree of losers (Knuth, TAOCP 3, 5.4.1): node i, from 1
 * on, has the one that lost there against the other half of those below, and
 * node 0 the one that lost nowhere. When that one has come, its next row
 * competes with the losers on its way up, which nobody can foretell; so there
 * is no branch in it. A shard without further rows leaves, and the tree is made
 * anew.
 *
 * There are as many streams as shards times columns, more than processors look
 * after, so memory is asked for some time ahead. */
#include "tier/seal_merge.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>

enum {
    AHEAD = 32,   /* rows whose memory is asked for before they are read, */
    LINE_ROWS = 8 /* a cache line at a time */
};

/* Who comes out of node i, or who starts there, while the tree is made. */
static struct seal_merge_node
winner_at(const struct seal_merge *merge, size_t i)
{
    size_t n = merge->n_live;
    if (i < n) {
        return merge->node[n + i];
    }
    return (struct seal_merge_node){merge->live[i - n].id, i - n};
}

/* Has all compete. The nodes have room for twice as many: winners for now. */
static void
make_tree(struct seal_merge *merge)
{
    size_t n = merge->n_live;
    for (size_t i = n; i-- > 1;) {
        struct seal_merge_node left = winner_at(merge, 2 * i);
        struct seal_merge_node right = winner_at(merge, 2 * i + 1);
        bool is_left = left.id < right.id;
        merge->node[n + i] = is_left ? left : right;
        merge->node[i] = is_left ? right : left;
    }
    if (n > 0) {
        merge->node[0] = winner_at(merge, 1);
    }
}

/* Has the next row of who won compete in its place. */
static void
compete(struct seal_merge *merge, struct seal_merge_node it)
{
    for (size_t i = (it.live + merge->n_live) / 2; i > 0; i /= 2) {
        struct seal_merge_node *node = &merge->node[i];
        uint64_t lost = -(uint64_t)(node->id < it.id);
        uint64_t id = (node->id ^ it.id) & lost;
        uint64_t live = (node->live ^ it.live) & lost;
        node->id ^= id;
        it.id ^= id;
        node->live ^= live;
        it.live ^= live;
    }
    merge->node[0] = it;
}

static uint64_t
id_at(const struct seal_merge *merge, const struct seal_merge_shard *it,
    uint32_t at)
{
    return engine_id(merge->engine, it->shard, it->row[at]);
}

static void
add_shard(struct seal_merge *merge, unsigned shard)
{
    const struct engine_rows *rows = &merge->rows[shard];
    const struct segment_head *to = merge->head;
    struct seal_merge_shard *it = &merge->live[merge->n_live++];
    ASSERT(rows->row != NULL && to->n_columns <= SCHEMA_COLUMNS_MAX);
    ASSERT(rows->n_columns <= SCHEMA_COLUMNS_MAX &&
        rows->row[0] <= rows->row[rows->n - 1]);
    *it = (struct seal_merge_shard){
        .shard = shard, .n = rows->n, .row = rows->row};
    it->id = id_at(merge, it, 0);
    it->next_id = id_at(merge, it, rows->n > 1);
    for (unsigned i = 0; i < to->n_columns; i++) {
        for (unsigned c = 0; c < rows->n_columns; c++) {
            if (rows->serial[c] == to->column[i].serial) {
                it->code[i] = rows->code[c];
            }
        }
    }
}

int
seal_merge_init(struct seal_merge *merge, unsigned n_shards)
{
    ASSERT(n_shards > 0 && merge->live == NULL && merge->n_live == 0);
    merge->live = calloc(n_shards, sizeof *merge->live);
    merge->node = calloc(2 * (size_t)n_shards, sizeof *merge->node);
    if (merge->live == NULL || merge->node == NULL) {
        return ERR_NO_MEMORY;
    }
    for (unsigned shard = 0; shard < n_shards; shard++) {
        if (merge->rows[shard].n > 0) {
            add_shard(merge, shard);
        }
    }
    make_tree(merge);
    return 0;
}

void
seal_merge_fini(struct seal_merge *merge)
{
    free(merge->live);
    free(merge->node);
    merge->live = NULL;
    merge->node = NULL;
    segment_scan_destroy(&merge->scan);
}

/* Finds the head's columns in the segment's. */
static void
find_columns(struct seal_merge *merge, const struct segment_head *from)
{
    const struct segment_head *to = merge->head;
    for (unsigned i = 0; i < to->n_columns; i++) {
        unsigned c = 0;
        while (c < from->n_columns &&
            from->column[c].serial != to->column[i].serial) {
            c++;
        }
        merge->from[i] = (uint8_t)c;
    }
}

/* Begins reading the entry that it is at, near its first id. */
static int
open_entry(struct seal_merge *merge)
{
    const struct segment_map_entry *entry =
        &merge->list->entry[merge->at_entry];
    const struct segment *segment = entry->file->segment;
    ASSERT(entry->file->magic == SEGMENT_MAP_FILE_MAGIC);
    ASSERT(merge->at_entry == 0 || entry[-1].last_id < entry->first_id);
    merge->records.n = 0;
    merge->at_record = 0;
    find_columns(merge, segment_head(segment));
    int err = segment_scan_create(
        segment, segment_from(segment, entry->first_id), NULL, &merge->scan);
    if (err == 0) {
        segment_scan_until(merge->scan, entry->last_id);
    }
    if (err == 0 && merge->is_narrow) {
        segment_scan_narrow(merge->scan);
    }
    return err;
}

static void
close_entry(struct seal_merge *merge)
{
    ASSERT(merge->scan != NULL && merge->at_entry < merge->list->n);
    segment_scan_destroy(&merge->scan);
    merge->at_entry++;
}

/* Sees to it that records[at_record] is the next one of the segments; false at
 * their end. */
static bool
has_cold(struct seal_merge *merge, int *err)
{
    while (merge->list != NULL && merge->at_entry < merge->list->n) {
        const struct segment_map_entry *entry =
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

/* The codes of the segment's record; their or. */
static uint64_t
take_cold(struct seal_merge *merge, uint64_t *code)
{
    const struct segment_head *from =
        segment_head(merge->list->entry[merge->at_entry].file->segment);
    uint64_t any = 0;
    for (unsigned i = 0; i < merge->head->n_columns; i++) {
        unsigned c = merge->from[i];
        code[i] =
            c < from->n_columns ? merge->records.code[c][merge->at_record] : 0;
        any |= code[i];
    }
    return any;
}

/* Asks for the memory of rows to come. */
static void
ask_ahead(const struct seal_merge_shard *it, unsigned n_columns)
{
    uint32_t left = it->n - it->at;
    uint32_t at = it->at + (left > AHEAD ? AHEAD : left - 1);
    __builtin_prefetch(&it->row[at]);
    for (unsigned i = 0; i < n_columns; i++) {
        if (it->code[i] != NULL) {
            __builtin_prefetch(&it->code[i][at]);
        }
    }
}

/* The shard of the lowest id goes to its next row, or leaves. */
static void
pass_row(struct seal_merge *merge, struct seal_merge_shard *it)
{
    ASSERT(merge->n_live > 0 && it->at < it->n);
    if (++it->at == it->n) {
        *it = merge->live[--merge->n_live];
        make_tree(merge);
        return;
    }
    if (it->at % LINE_ROWS == 0) {
        ask_ahead(it, merge->head->n_columns);
    }
    ASSERT(it->next_id > it->id);
    it->id = it->next_id;
    compete(merge, (struct seal_merge_node){it->id, merge->node[0].live});
    if (it->at + 1 < it->n) {
        it->next_id = id_at(merge, it, it->at + 1);
    }
}

/* The codes of the engine's record; their or. */
static uint64_t
take_hot(struct seal_merge *merge, uint64_t *code)
{
    struct seal_merge_shard *it = &merge->live[merge->node[0].live];
    uint64_t any = 0;
    for (unsigned i = 0; i < merge->head->n_columns; i++) {
        code[i] = it->code[i] == NULL ? 0 : it->code[i][it->at];
        any |= code[i];
    }
    pass_row(merge, it);
    return any;
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
            merge->n_live > 0 && (!is_cold || merge->node[0].id <= cold);
        uint64_t any = 0;
        if (err != 0) {
            return err;
        }
        *is_end = !is_cold && !is_hot;
        if (*is_end) {
            return 0;
        }
        *id = is_hot ? merge->node[0].id : cold;
        if (is_cold && cold == *id) { /* hidden, where the engine has it */
            if (!is_hot) {
                any = take_cold(merge, code);
            }
            merge->at_record++;
            merge->n_cold++;
            merge->n_hidden += is_hot;
        }
        if (is_hot) {
            any = take_hot(merge, code);
        }
        if (any != 0) {
            merge->n_hot += is_hot;
            merge->n_out++;
            return 0;
        }
        merge->n_empty++;
    }
}

void
seal_merge__check(const struct seal_merge *merge, uint64_t n_rows)
{
    ASSERT(merge->n_live == 0 && merge->scan == NULL);
    ASSERT(merge->list == NULL || merge->at_entry == merge->list->n);
    ASSERT(merge->n_hot <= n_rows && merge->n_hidden <= merge->n_cold);
    ASSERT(merge->n_out ==
        n_rows + merge->n_cold - merge->n_hidden - merge->n_empty);
}

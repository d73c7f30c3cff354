/* SPDX-License-Identifier: BSD-3-Clause */
/* Goes through the entries of a list, and in each through the blocks of its
 * file, one block a read: who asks wants some pairs of some records, and where
 * a block cannot be read it must be known which one. */
#include "tier/cold_pairs.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/members.h"

enum { PASS_BLOCKS = 2 /* these are read on rather than begun anew behind */ };

int
cold_pairs_init(struct cold_pairs *it, struct segment_map *segment_map,
    unsigned slot, uint32_t serial, uint64_t first_id, uint64_t last_id)
{
    int err = 0;
    ASSERT(first_id <= last_id);
    *it = (struct cold_pairs){.from_id = first_id};
    if (segment_map_any(segment_map)) {
        err =
            segment_map_list(segment_map, slot, first_id, last_id, &it->list);
    }
    /* asked behind the list: so that is of this counter */
    if (err == 0 && !engine_has_pairs(segment_map->engine, slot, serial)) {
        err = ERR_GONE;
    }
    return err;
}

/* The file under way is done with, or begun anew later. */
static void
leave_file(struct cold_pairs *it)
{
    segment_scan_destroy(&it->scan);
    it->records.n = 0;
    it->at = 0;
}

void
cold_pairs_fini(struct cold_pairs *it)
{
    leave_file(it);
    segment_map_list_destroy(it->list);
    it->list = NULL;
}

/* Nothing up to that id is wanted any more. */
static void
pass(struct cold_pairs *it, uint64_t id)
{
    ASSERT(id >= it->from_id || it->is_over);
    it->is_over = it->is_over || id == UINT64_MAX;
    it->from_id = id + 1;
}

static const struct segment_map_entry *
entry_of(const struct cold_pairs *it)
{
    ASSERT(it->at_entry < it->list->n);
    return &it->list->entry[it->at_entry];
}

void
cold_pairs_seek(struct cold_pairs *it, uint64_t id)
{
    ASSERT(it->is_over || id >= it->from_id);
    it->from_id = id;
    if (it->scan != NULL && entry_of(it)->last_id >= id &&
        segment_from(entry_of(it)->file->segment, id) >
            it->next_block + PASS_BLOCKS) {
        leave_file(it);
    }
}

static int
open_file(struct cold_pairs *it)
{
    const struct segment_map_entry *entry = entry_of(it);
    const struct segment *segment = entry->file->segment;
    uint64_t first =
        it->from_id > entry->first_id ? it->from_id : entry->first_id;
    ASSERT(entry->file->magic == SEGMENT_MAP_FILE_MAGIC);
    ASSERT(segment_head(segment)->n_columns == 1);
    ASSERT(first <= entry->last_id);
    it->next_block = segment_from(segment, first);
    int err = segment_scan_create(segment, it->next_block, NULL, &it->scan);
    if (err == 0) {
        segment_scan_until(it->scan, entry->last_id);
        segment_scan_narrow(it->scan);
    }
    return err;
}

/* A block has not been read: all that it may have is passed over. 0 where
 * nothing of it was wanted. */
static int
pass_block(struct cold_pairs *it, int err)
{
    const struct segment_map_entry *entry = entry_of(it);
    const struct segment *segment = entry->file->segment;
    uint32_t behind = segment_scan_failed(it->scan) + 1;
    uint64_t last = entry->last_id;
    leave_file(it);
    if (err == ERR_NO_MEMORY) {
        return err;
    }
    if (behind < segment_head(segment)->n_blocks &&
        segment_first_id(segment, behind) - 1 < last) {
        last = segment_first_id(segment, behind) - 1;
    }
    if (last < it->from_id) { /* it was read over on the way */
        return 0;
    }
    it->bad_last_id = last;
    pass(it, last);
    return err;
}

/* Reads the next block of the entry, into records. */
static int
read_block(struct cold_pairs *it)
{
    int err = it->scan == NULL ? open_file(it) : 0;
    if (err != 0) {
        return err;
    }
    it->at = 0;
    err = segment_scan_next(it->scan, &it->records);
    if (err != 0) {
        return pass_block(it, err);
    }
    it->next_block++;
    if (it->records.n == 0) {
        pass(it, entry_of(it)->last_id);
    }
    return 0;
}

/* Sees to it that records[at] is the next one there may be, in an entry that
 * reaches to from_id or beyond; *is_end where there is none. The block may
 * reach beyond the entry, which need not have all of its file. */
static int
find_block(struct cold_pairs *it, bool *is_end)
{
    int err = 0;
    while (err == 0) {
        *is_end =
            it->is_over || it->list == NULL || it->at_entry == it->list->n;
        if (*is_end) {
            break;
        }
        if (entry_of(it)->last_id < it->from_id) {
            leave_file(it);
            it->at_entry++;
        } else if (it->at == it->records.n) {
            err = read_block(it);
        } else {
            break;
        }
    }
    return err;
}

int
cold_pairs_next(struct cold_pairs *it, struct cold_pair *out, bool *is_end)
{
    *is_end = false;
    for (;;) {
        int err = find_block(it, is_end);
        if (err != 0 || *is_end) {
            return err;
        }
        const struct segment_map_entry *entry = entry_of(it);
        uint64_t id = it->records.id[it->at];
        uint64_t code = it->records.code[0][it->at];
        if (id > entry->last_id) {
            it->at = it->records.n = 0;
            pass(it, entry->last_id);
            continue;
        }
        it->at++;
        if (id >= it->from_id && id >= entry->first_id && code != 0) {
            pass(it, id);
            *out = (struct cold_pair){id, code, entry->file->number};
            return 0;
        }
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The maps of what is covered.
 *
 *   segment_map__begin: old map + new entries -> next map, verified
 *   segment_map__publish: shard by shard, next map for old map
 *   segment_map__end: readers awaited, old map freed
 *
 * All shards of a counter have the same map, but during an exchange: then some
 * have the next one. A map is freed when the last shard has left it and every
 * reader that may have seen it is quiescent. A file stays as long as a map or a
 * lookup holds it.
 *
 * Of a map must hold: entries are whole rows, ascend, and do not overlap; the
 * file of each is open and of that counter. segment_map__begin asserts that of
 * every map that it makes, segment_map_verify of all that there are: at the end
 * of loading and before a manifest is made of them.
 *
 * What can go wrong: a lookup takes a file from a map while that is exchanged.
 * So segment_map__hold looks under a lock of its own, which
 * segment_map__publish takes too; it is a leaf, taken under a shard's lock. The
 * same for segment_map_list: another thread than the one that seals may drop it
 * at that moment. */
#include "tier/segment_map.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* Exchanges come one at a time: one thread loads, later edit_lock sees to it.
 */
static void
assert_may_exchange(const struct segment_map *segment_map)
{
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC);
    /* relaxed: set while no change is under way */
    ASSERT(atomic_load_explicit(&segment_map->loading, memory_order_relaxed) ||
        segment_map->edit_lock == NULL ||
        mutex_is_held(segment_map->edit_lock));
}

static size_t
counter_bytes(const struct segment_map *segment_map)
{
    return offsetof(struct segment_map_counter, map) +
        segment_map->n_shards * sizeof(_Atomic(struct segment_map_list *));
}

/* The first entry that ends at id or behind. */
static size_t
place_of(const struct segment_map_list *map, uint64_t id)
{
    size_t low = 0, high = map->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->entry[middle].last_id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const struct segment_map_entry *
entry_of(const struct segment_map_list *map, uint64_t id)
{
    size_t at = map == NULL ? 0 : place_of(map, id);
    return map != NULL && at < map->n && map->entry[at].first_id <= id
        ? &map->entry[at]
        : NULL;
}

static struct segment_map_list *
map_of(const struct segment_map *segment_map, unsigned slot, unsigned shard)
{
    /* acquire: whole maps are seen behind it */
    struct segment_map_counter *counter = atomic_load_explicit(
        &segment_map->counter[slot], memory_order_acquire);
    return counter == NULL
        ? NULL
        /* acquire: a whole map is seen */
        : atomic_load_explicit(&counter->map[shard], memory_order_acquire);
}

static bool
is_loading(const struct segment_map *segment_map)
{
    /* relaxed: set while no change is under way */
    return atomic_load_explicit(&segment_map->loading, memory_order_relaxed);
}

static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    const struct segment_map *segment_map = (const struct segment_map *)cover;
    const struct segment_map_entry *entry;
    if (!segment_map_any(segment_map)) {
        return 0;
    }
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC);
    entry = entry_of(map_of(segment_map, slot, shard),
        engine_id(segment_map->engine, shard, row));
    if (entry == NULL) {
        return 0;
    }
    return is_loading(segment_map) ? ENGINE_COVER_LOADING
                                   : entry->file->number;
}

static bool
any_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    const struct segment_map *segment_map = (const struct segment_map *)cover;
    const struct segment_map_list *map;
    size_t at;
    if (!segment_map_any(segment_map) ||
        (map = map_of(segment_map, slot, shard)) == NULL) {
        return false;
    }
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC && first_row <= last_row);
    /* whole rows are covered, so any id of the row will do */
    at = place_of(map, engine_id(segment_map->engine, shard, first_row));
    return at < map->n &&
        map->entry[at].first_id <=
        engine_id(segment_map->engine, shard, last_row);
}

/* The largest row that a record of an entry's file may have; false where the
 * entry has another part of the file. */
static bool
last_row_of_entry(const struct segment_map *segment_map,
    const struct segment_map_entry *entry, uint64_t *row)
{
    const struct segment_head *head = segment_head(entry->file->segment);
    uint64_t last_id =
        entry->last_id < head->last_id ? entry->last_id : head->last_id;
    *row = last_id / segment_map->n_shards;
    return last_id >= entry->first_id;
}

static bool
last_row_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t *row)
{
    const struct segment_map *segment_map = (const struct segment_map *)cover;
    const struct segment_map_list *map = map_of(segment_map, slot, shard);
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC);
    for (size_t i = map == NULL ? 0 : map->n; i-- > 0;) {
        if (last_row_of_entry(segment_map, &map->entry[i], row)) {
            return true;
        }
    }
    return false;
}

static bool
column_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint32_t serial)
{
    const struct segment_map *segment_map = (const struct segment_map *)cover;
    const struct segment_map_list *map = map_of(segment_map, slot, shard);
    bool any = false;
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC && serial != 0);
    for (size_t i = 0; map != NULL && !any && i < map->n; i++) {
        const struct segment_head *head =
            segment_head(map->entry[i].file->segment);
        for (unsigned c = 0; c < head->n_columns; c++) {
            any = any || head->column[c].serial == serial;
        }
    }
    return any;
}

void
segment_map__init(struct segment_map *segment_map, struct engine *engine,
    unsigned n_shards, struct qsbr *qsbr, struct fetch *fetch)
{
    *segment_map = (struct segment_map){.cover = {.version_fn = version_of,
                                            .any_fn = any_of,
                                            .last_row_fn = last_row_of,
                                            .column_fn = column_of},
        .magic = SEGMENT_MAP_MAGIC,
        .fetch = fetch,
        .engine = engine,
        .qsbr = qsbr,
        .n_shards = n_shards};
    ASSERT(n_shards > 0 && (n_shards & (n_shards - 1)) == 0);
    atomic_init(&segment_map->any, false);
    atomic_init(&segment_map->loading, true);
    mutex_init(&segment_map->lock);
}

/* Of an entry of that counter's map. */
static void
verify_entry(const struct segment_map *segment_map, unsigned slot,
    const struct segment_map_entry *entry)
{
    const struct segment_map_file *file = entry->file;
    ASSERT(entry->first_id <= entry->last_id);
    ASSERT(entry->first_id % segment_map->n_shards == 0 &&
        (entry->last_id + 1) % segment_map->n_shards == 0);
    ASSERT(file->magic == SEGMENT_MAP_FILE_MAGIC && file->segment != NULL);
    /* relaxed: the map has one of them */
    ASSERT(atomic_load_explicit(&file->n_refs, memory_order_relaxed) > 0);
    ASSERT(segment_head(file->segment)->number == file->number &&
        segment_head(file->segment)->counter == slot);
}

static void
verify_map(const struct segment_map *segment_map, unsigned slot,
    const struct segment_map_list *map)
{
    for (size_t i = 0; map != NULL && i < map->n; i++) {
        verify_entry(segment_map, slot, &map->entry[i]);
        ASSERT(i == 0 || map->entry[i - 1].last_id < map->entry[i].first_id);
    }
}

void
segment_map_verify(const struct segment_map *segment_map)
{
    assert_may_exchange(segment_map);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct segment_map_list *map = map_of(segment_map, slot, 0);
        /* relaxed: only whether there is one */
        if (atomic_load_explicit(
                &segment_map->counter[slot], memory_order_relaxed) == NULL) {
            continue;
        }
        verify_map(segment_map, slot, map);
        ASSERT(map == NULL || segment_map_any(segment_map));
        for (unsigned shard = 1; shard < segment_map->n_shards; shard++) {
            ASSERT(map_of(segment_map, slot, shard) == map);
        }
    }
}

void
segment_map__end_loading(struct segment_map *segment_map)
{
    segment_map_verify(segment_map);
    /* relaxed: no change is under way; who begins one later has been told by
     * somebody that loading is over */
    atomic_store_explicit(&segment_map->loading, false, memory_order_relaxed);
}

struct segment_map_file *
segment_map__file_create(
    struct segment *segment, uint64_t *seq, struct fetch *fetch)
{
    struct segment_map_file *file = calloc(1, sizeof *file);
    if (file != NULL) {
        file->magic = SEGMENT_MAP_FILE_MAGIC;
        atomic_init(&file->n_refs, 1);
        file->segment = segment;
        file->seq = seq;
        file->fetch = fetch;
        file->number = segment_head(segment)->number;
    }
    return file;
}

void
segment_map__file_disown(struct segment_map_file *file)
{
    ASSERT(file->magic == SEGMENT_MAP_FILE_MAGIC);
    /* relaxed: the caller has the only one */
    ASSERT(atomic_load_explicit(&file->n_refs, memory_order_relaxed) == 1);
    file->segment = NULL;
}

static struct segment_map_file *
hold(struct segment_map_file *file)
{
    ASSERT(file->magic == SEGMENT_MAP_FILE_MAGIC);
    /* relaxed: the caller has a reference, or the map's under the lock */
    atomic_fetch_add_explicit(&file->n_refs, 1, memory_order_relaxed);
    return file;
}

void
segment_map_file_release(struct segment_map_file *file)
{
    ASSERT(file->magic == SEGMENT_MAP_FILE_MAGIC);
    /* acq_rel: what others did with it comes before it is freed */
    uint32_t n_refs =
        atomic_fetch_sub_explicit(&file->n_refs, 1, memory_order_acq_rel);
    ASSERT(n_refs > 0);
    if (n_refs == 1) {
        file->magic = 0;
        if (file->fetch != NULL && file->segment != NULL) {
            fetch_forget(file->fetch, file->segment);
        }
        segment_close(&file->segment);
        free(file->seq);
        free(file);
    }
}

void
segment_map_list_destroy(struct segment_map_list *map)
{
    if (map != NULL) {
        for (size_t i = 0; i < map->n; i++) {
            segment_map_file_release(map->entry[i].file);
        }
        free(map);
    }
}

void
segment_map__fini(struct segment_map *segment_map)
{
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        /* relaxed: the last thread that uses it */
        struct segment_map_counter *counter = atomic_load_explicit(
            &segment_map->counter[slot], memory_order_relaxed);
        segment_map_list_destroy(map_of(segment_map, slot, 0));
        free(counter);
    }
    mutex_fini(&segment_map->lock);
    segment_map->magic = 0;
}

bool
segment_map__has(
    const struct segment_map *segment_map, unsigned slot, uint64_t id)
{
    unsigned shard;
    uint64_t row;
    engine_row(segment_map->engine, id, &shard, &row);
    return entry_of(map_of(segment_map, slot, shard), id) != NULL;
}

struct segment_map_file *
segment_map__hold(struct segment_map *segment_map, unsigned slot, uint64_t id,
    uint64_t version)
{
    struct segment_map_file *file = NULL;
    const struct segment_map_entry *entry;
    unsigned shard;
    uint64_t row;
    engine_row(segment_map->engine, id, &shard, &row);
    mutex_lock(&segment_map->lock);
    entry = entry_of(map_of(segment_map, slot, shard), id);
    if (entry != NULL && entry->file->number == version) {
        file = hold(entry->file);
    }
    mutex_unlock(&segment_map->lock);
    return file;
}

static struct segment_map_list *
make_map(size_t capacity)
{
    return calloc(1,
        sizeof(struct segment_map_list) +
            capacity * sizeof(struct segment_map_entry));
}

/* Adds what entry has of ids first..last. */
static void
add_part(struct segment_map_list *map, const struct segment_map_entry *entry,
    uint64_t first_id, uint64_t last_id)
{
    struct segment_map_entry part = *entry;
    if (part.first_id < first_id) {
        part.first_id = first_id;
    }
    if (part.last_id > last_id) {
        part.last_id = last_id;
    }
    if (part.first_id <= part.last_id) {
        ASSERT(map->n == 0 || map->entry[map->n - 1].last_id < part.first_id);
        part.file = hold(entry->file);
        map->entry[map->n++] = part;
    }
}

int
segment_map_list(struct segment_map *segment_map, unsigned slot,
    uint64_t first_id, uint64_t last_id, struct segment_map_list **out)
{
    int err = 0;
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC && first_id <= last_id);
    *out = NULL;
    mutex_lock(&segment_map->lock);
    const struct segment_map_list *map = map_of(segment_map, slot, 0);
    if (map != NULL) {
        *out = make_map(map->n);
        err = *out == NULL ? ERR_NO_MEMORY : 0;
    }
    for (size_t i = 0; *out != NULL && i < map->n; i++) {
        add_part(*out, &map->entry[i], first_id, last_id);
    }
    mutex_unlock(&segment_map->lock);
    return err;
}

bool
segment_map__map_is_same(
    const struct segment_map_list *a, const struct segment_map_list *b)
{
    size_t n = a == NULL ? 0 : a->n;
    bool is_same = n == (b == NULL ? 0 : b->n);
    for (size_t i = 0; is_same && i < n; i++) {
        is_same = a->entry[i].first_id == b->entry[i].first_id &&
            a->entry[i].last_id == b->entry[i].last_id &&
            a->entry[i].file == b->entry[i].file;
    }
    return is_same;
}

/* The counter's place in the maps, made where there is none. */
static struct segment_map_counter *
need_counter(struct segment_map *segment_map, unsigned slot)
{
    /* relaxed: only the thread that exchanges stores it */
    struct segment_map_counter *counter = atomic_load_explicit(
        &segment_map->counter[slot], memory_order_relaxed);
    if (counter == NULL) {
        counter = calloc(1, counter_bytes(segment_map));
        if (counter != NULL) {
            /* release: empty maps are seen behind it */
            atomic_store_explicit(
                &segment_map->counter[slot], counter, memory_order_release);
        }
    }
    return counter;
}

int
segment_map__begin(struct segment_map *segment_map, unsigned slot,
    uint64_t first_id, uint64_t last_id, const struct segment_map_entry *entry,
    size_t n, struct segment_map_change *change)
{
    assert_may_exchange(segment_map);
    ASSERT(slot < SCHEMA_COUNTERS_MAX && first_id <= last_id);
    ASSERT(first_id % segment_map->n_shards == 0 &&
        (last_id + 1) % segment_map->n_shards == 0);
    if (need_counter(segment_map, slot) == NULL) {
        return ERR_NO_MEMORY;
    }
    struct segment_map_list *old = map_of(segment_map, slot, 0);
    size_t n_old = old == NULL ? 0 : old->n, i = 0;
    struct segment_map_list *next =
        make_map(n_old + n + 1); /* a cut makes two */
    if (next == NULL) {
        return ERR_NO_MEMORY;
    }
    for (; i < n_old && old->entry[i].first_id < first_id; i++) {
        add_part(next, &old->entry[i], 0, first_id - 1);
    }
    for (size_t j = 0; j < n; j++) {
        add_part(next, &entry[j], first_id, last_id);
    }
    /* one may reach over both ends */
    i -= i > 0 && old->entry[i - 1].last_id > last_id;
    for (; i < n_old && last_id < UINT64_MAX; i++) {
        add_part(next, &old->entry[i], last_id + 1, UINT64_MAX);
    }
    ASSERT(next->n <= n_old + n + 1); /* it had room */
    if (!is_loading(segment_map)) {   /* then once, at its end */
        verify_map(segment_map, slot, next);
    }
    *change = (struct segment_map_change){segment_map, slot, old, next};
    return 0;
}

void
segment_map__publish(struct segment_map_change *change, unsigned shard)
{
    struct segment_map *segment_map = change->segment_map;
    /* relaxed: only this thread stores it */
    struct segment_map_counter *counter = atomic_load_explicit(
        &segment_map->counter[change->slot], memory_order_relaxed);
    assert_may_exchange(segment_map);
    ASSERT(counter != NULL && shard < segment_map->n_shards);
    mutex_lock(&segment_map->lock);
    /* relaxed: each shard leaves the old one, and once */
    ASSERT(atomic_load_explicit(&counter->map[shard], memory_order_relaxed) ==
        change->old);
    /* relaxed: see segment_map_any; the table's pointer is stored after it */
    atomic_store_explicit(&segment_map->any, true, memory_order_relaxed);
    /* release: a whole map is seen behind it */
    atomic_store_explicit(
        &counter->map[shard], change->next, memory_order_release);
    mutex_unlock(&segment_map->lock);
}

void
segment_map__end(struct segment_map_change *change)
{
    if (change->old != NULL) {
        for (unsigned i = 0; i < change->segment_map->n_shards; i++) {
            ASSERT(
                map_of(change->segment_map, change->slot, i) != change->old);
        }
        qsbr_wait(change->segment_map->qsbr);
    }
    segment_map_list_destroy(change->old);
    *change = (struct segment_map_change){0};
}

void
segment_map__publish_all(struct segment_map_change *change)
{
    for (unsigned shard = 0; shard < change->segment_map->n_shards; shard++) {
        segment_map__publish(change, shard);
    }
    segment_map__end(change);
}

const struct segment_map_list *
segment_map__settled(const struct segment_map *segment_map, unsigned slot)
{
    assert_may_exchange(segment_map);
    return map_of(segment_map, slot, 0);
}

void
segment_map_clear(struct segment_map *segment_map, unsigned slot)
{
    assert_may_exchange(segment_map);
    struct segment_map_change change = {
        segment_map, slot, map_of(segment_map, slot, 0), NULL};
    if (change.old != NULL) {
        segment_map__publish_all(&change);
    }
}

/* Of a block that is cut all counts to the later part, so that the parts of a
 * file have its records together. */
uint64_t
segment_map__entry_records(const struct segment_map_entry *entry)
{
    const struct segment *segment = entry->file->segment;
    const struct segment_head *head = segment_head(segment);
    uint32_t first = 0, end = head->n_blocks;
    if (entry->first_id > head->last_id || entry->last_id < head->first_id) {
        return 0;
    }
    (void)segment_find(segment, entry->first_id, &first);
    if (entry->last_id < head->last_id) {
        (void)segment_find(segment, entry->last_id, &end);
    }
    ASSERT(first <= end && end <= head->n_blocks);
    return (end - first) * head->records / head->n_blocks;
}

static void
add_entry(
    struct segment_map_sum *sum, const struct segment_map_list *map, size_t i)
{
    const struct segment *segment = map->entry[i].file->segment;
    const struct segment_head *head = segment_head(segment);
    sum->entries++;
    sum->records += segment_map__entry_records(&map->entry[i]);
    for (size_t j = 0; j < i; j++) {
        if (map->entry[j].file == map->entry[i].file) {
            return;
        }
    }
    sum->files++;
    sum->blocks += head->n_blocks;
    sum->bytes += segment_file_bytes(head);
    sum->memory += segment_memory(segment);
}

static void
add_counter(struct segment_map *segment_map, unsigned slot,
    struct segment_map_sum *sum)
{
    mutex_lock(&segment_map->lock);
    const struct segment_map_list *map = map_of(segment_map, slot, 0);
    for (size_t i = 0; map != NULL && i < map->n; i++) {
        add_entry(sum, map, i);
    }
    if (map != NULL) {
        sum->memory += sizeof *map + map->n * sizeof map->entry[0];
    }
    mutex_unlock(&segment_map->lock);
}

void
segment_map__sum(struct segment_map *segment_map, struct segment_map_sum *sum)
{
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC);
    *sum = (struct segment_map_sum){0};
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        add_counter(segment_map, slot, sum);
    }
}

void
segment_map__sum_of(struct segment_map *segment_map, unsigned slot,
    struct segment_map_sum *sum)
{
    ASSERT(segment_map->magic == SEGMENT_MAP_MAGIC);
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    *sum = (struct segment_map_sum){0};
    add_counter(segment_map, slot, sum);
}

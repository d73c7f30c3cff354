/* SPDX-License-Identifier: BSD-3-Clause */
/* The maps of what is covered.
 *
 *   covers__begin: old map + new entries -> next map, verified
 *   covers__publish: shard by shard, next map for old map
 *   covers__end: readers awaited, old map freed
 *
 * All shards of a counter have the same map, but during an exchange: then some
 * have the next one. A map is freed when the last shard has left it and every
 * reader that may have seen it is quiescent. A file stays as long as a map or a
 * lookup holds it.
 *
 * Of a map must hold: entries are whole rows, ascend, and do not overlap; the
 * file of each is open and of that counter. covers__begin asserts that of every
 * map that it makes, covers_verify of all that there are: at the end of loading
 * and before a manifest is made of them.
 *
 * What can go wrong: a lookup takes a file from a map while that is exchanged.
 * So covers__hold looks under a lock of its own, which covers__publish takes
 * too; it is a leaf, taken under a shard's lock. The same for covers_list:
 * another thread than the one that seals may drop it at that moment. */
#include "tier/covers.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

/* Exchanges come one at a time: one thread loads, later edit_lock sees to it.
 */
static void
assert_may_exchange(const struct covers *covers)
{
    ASSERT(covers->magic == COVERS_MAGIC);
    /* relaxed: set while no change is under way */
    ASSERT(atomic_load_explicit(&covers->loading, memory_order_relaxed) ||
        covers->edit_lock == NULL || mutex_is_held(covers->edit_lock));
}

static size_t
counter_bytes(const struct covers *covers)
{
    return offsetof(struct covers_counter, map) +
        covers->n_shards * sizeof(_Atomic(struct covers_map *));
}

/* The first entry that ends at id or behind. */
static size_t
place_of(const struct covers_map *map, uint64_t id)
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

static const struct covers_entry *
entry_of(const struct covers_map *map, uint64_t id)
{
    size_t at = map == NULL ? 0 : place_of(map, id);
    return map != NULL && at < map->n && map->entry[at].first_id <= id
        ? &map->entry[at]
        : NULL;
}

static struct covers_map *
map_of(const struct covers *covers, unsigned slot, unsigned shard)
{
    /* acquire: whole maps are seen behind it */
    struct covers_counter *counter =
        atomic_load_explicit(&covers->counter[slot], memory_order_acquire);
    return counter == NULL
        ? NULL
        /* acquire: a whole map is seen */
        : atomic_load_explicit(&counter->map[shard], memory_order_acquire);
}

static bool
is_loading(const struct covers *covers)
{
    /* relaxed: set while no change is under way */
    return atomic_load_explicit(&covers->loading, memory_order_relaxed);
}

static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    const struct covers *covers = (const struct covers *)cover;
    const struct covers_entry *entry;
    if (!covers_any(covers)) {
        return 0;
    }
    ASSERT(covers->magic == COVERS_MAGIC);
    entry = entry_of(
        map_of(covers, slot, shard), engine_id(covers->engine, shard, row));
    if (entry == NULL) {
        return 0;
    }
    return is_loading(covers) ? ENGINE_COVER_LOADING : entry->file->number;
}

static bool
any_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    const struct covers *covers = (const struct covers *)cover;
    const struct covers_map *map;
    size_t at;
    if (!covers_any(covers) || (map = map_of(covers, slot, shard)) == NULL) {
        return false;
    }
    ASSERT(covers->magic == COVERS_MAGIC && first_row <= last_row);
    /* whole rows are covered, so any id of the row will do */
    at = place_of(map, engine_id(covers->engine, shard, first_row));
    return at < map->n &&
        map->entry[at].first_id <= engine_id(covers->engine, shard, last_row);
}

void
covers__init(struct covers *covers, struct engine *engine, unsigned n_shards,
    struct qsbr *qsbr, struct fetch *fetch)
{
    *covers =
        (struct covers){.cover = {.version_fn = version_of, .any_fn = any_of},
            .magic = COVERS_MAGIC,
            .fetch = fetch,
            .engine = engine,
            .qsbr = qsbr,
            .n_shards = n_shards};
    ASSERT(n_shards > 0 && (n_shards & (n_shards - 1)) == 0);
    atomic_init(&covers->any, false);
    atomic_init(&covers->loading, true);
    mutex_init(&covers->lock);
}

/* Of an entry of that counter's map. */
static void
verify_entry(const struct covers *covers, unsigned slot,
    const struct covers_entry *entry)
{
    const struct covers_file *file = entry->file;
    ASSERT(entry->first_id <= entry->last_id);
    ASSERT(entry->first_id % covers->n_shards == 0 &&
        (entry->last_id + 1) % covers->n_shards == 0);
    ASSERT(file->magic == COVERS_FILE_MAGIC && file->segment != NULL);
    /* relaxed: the map has one of them */
    ASSERT(atomic_load_explicit(&file->n_refs, memory_order_relaxed) > 0);
    ASSERT(segment_head(file->segment)->number == file->number &&
        segment_head(file->segment)->counter == slot);
}

static void
verify_map(
    const struct covers *covers, unsigned slot, const struct covers_map *map)
{
    for (size_t i = 0; map != NULL && i < map->n; i++) {
        verify_entry(covers, slot, &map->entry[i]);
        ASSERT(i == 0 || map->entry[i - 1].last_id < map->entry[i].first_id);
    }
}

void
covers_verify(const struct covers *covers)
{
    assert_may_exchange(covers);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct covers_map *map = map_of(covers, slot, 0);
        /* relaxed: only whether there is one */
        if (atomic_load_explicit(
                &covers->counter[slot], memory_order_relaxed) == NULL) {
            continue;
        }
        verify_map(covers, slot, map);
        ASSERT(map == NULL || covers_any(covers));
        for (unsigned shard = 1; shard < covers->n_shards; shard++) {
            ASSERT(map_of(covers, slot, shard) == map);
        }
    }
}

void
covers__end_loading(struct covers *covers)
{
    covers_verify(covers);
    /* relaxed: no change is under way; who begins one later has been told by
     * somebody that loading is over */
    atomic_store_explicit(&covers->loading, false, memory_order_relaxed);
}

struct covers_file *
covers__file_create(
    struct segment *segment, uint64_t *seq, struct fetch *fetch)
{
    struct covers_file *file = calloc(1, sizeof *file);
    if (file != NULL) {
        file->magic = COVERS_FILE_MAGIC;
        atomic_init(&file->n_refs, 1);
        file->segment = segment;
        file->seq = seq;
        file->fetch = fetch;
        file->number = segment_head(segment)->number;
    }
    return file;
}

void
covers__file_disown(struct covers_file *file)
{
    ASSERT(file->magic == COVERS_FILE_MAGIC);
    /* relaxed: the caller has the only one */
    ASSERT(atomic_load_explicit(&file->n_refs, memory_order_relaxed) == 1);
    file->segment = NULL;
}

static struct covers_file *
hold(struct covers_file *file)
{
    ASSERT(file->magic == COVERS_FILE_MAGIC);
    /* relaxed: the caller has a reference, or the map's under the lock */
    atomic_fetch_add_explicit(&file->n_refs, 1, memory_order_relaxed);
    return file;
}

void
covers_file_release(struct covers_file *file)
{
    ASSERT(file->magic == COVERS_FILE_MAGIC);
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
covers_map_destroy(struct covers_map *map)
{
    if (map != NULL) {
        for (size_t i = 0; i < map->n; i++) {
            covers_file_release(map->entry[i].file);
        }
        free(map);
    }
}

void
covers__fini(struct covers *covers)
{
    ASSERT(covers->magic == COVERS_MAGIC);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        /* relaxed: the last thread that uses it */
        struct covers_counter *counter =
            atomic_load_explicit(&covers->counter[slot], memory_order_relaxed);
        covers_map_destroy(map_of(covers, slot, 0));
        free(counter);
    }
    mutex_fini(&covers->lock);
    covers->magic = 0;
}

bool
covers__has(const struct covers *covers, unsigned slot, uint64_t id)
{
    unsigned shard;
    uint64_t row;
    engine_row(covers->engine, id, &shard, &row);
    return entry_of(map_of(covers, slot, shard), id) != NULL;
}

struct covers_file *
covers__hold(
    struct covers *covers, unsigned slot, uint64_t id, uint64_t version)
{
    struct covers_file *file = NULL;
    const struct covers_entry *entry;
    unsigned shard;
    uint64_t row;
    engine_row(covers->engine, id, &shard, &row);
    mutex_lock(&covers->lock);
    entry = entry_of(map_of(covers, slot, shard), id);
    if (entry != NULL && entry->file->number == version) {
        file = hold(entry->file);
    }
    mutex_unlock(&covers->lock);
    return file;
}

static struct covers_map *
make_map(size_t capacity)
{
    return calloc(
        1, sizeof(struct covers_map) + capacity * sizeof(struct covers_entry));
}

/* Adds what entry has of ids first..last. */
static void
add_part(struct covers_map *map, const struct covers_entry *entry,
    uint64_t first_id, uint64_t last_id)
{
    struct covers_entry part = *entry;
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
covers_list(struct covers *covers, unsigned slot, uint64_t first_id,
    uint64_t last_id, struct covers_map **out)
{
    int err = 0;
    ASSERT(covers->magic == COVERS_MAGIC && first_id <= last_id);
    *out = NULL;
    mutex_lock(&covers->lock);
    const struct covers_map *map = map_of(covers, slot, 0);
    if (map != NULL) {
        *out = make_map(map->n);
        err = *out == NULL ? ERR_NO_MEMORY : 0;
    }
    for (size_t i = 0; *out != NULL && i < map->n; i++) {
        add_part(*out, &map->entry[i], first_id, last_id);
    }
    mutex_unlock(&covers->lock);
    return err;
}

bool
covers__map_is_same(const struct covers_map *a, const struct covers_map *b)
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
static struct covers_counter *
need_counter(struct covers *covers, unsigned slot)
{
    /* relaxed: only the thread that exchanges stores it */
    struct covers_counter *counter =
        atomic_load_explicit(&covers->counter[slot], memory_order_relaxed);
    if (counter == NULL) {
        counter = calloc(1, counter_bytes(covers));
        if (counter != NULL) {
            /* release: empty maps are seen behind it */
            atomic_store_explicit(
                &covers->counter[slot], counter, memory_order_release);
        }
    }
    return counter;
}

int
covers__begin(struct covers *covers, unsigned slot, uint64_t first_id,
    uint64_t last_id, const struct covers_entry *entry, size_t n,
    struct covers_change *change)
{
    assert_may_exchange(covers);
    ASSERT(slot < SCHEMA_COUNTERS_MAX && first_id <= last_id);
    ASSERT(first_id % covers->n_shards == 0 &&
        (last_id + 1) % covers->n_shards == 0);
    if (need_counter(covers, slot) == NULL) {
        return ERR_NO_MEMORY;
    }
    struct covers_map *old = map_of(covers, slot, 0);
    size_t n_old = old == NULL ? 0 : old->n, i = 0;
    struct covers_map *next = make_map(n_old + n + 1); /* a cut makes two */
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
    if (!is_loading(covers)) {        /* then once, at its end */
        verify_map(covers, slot, next);
    }
    *change = (struct covers_change){covers, slot, old, next};
    return 0;
}

void
covers__publish(struct covers_change *change, unsigned shard)
{
    struct covers *covers = change->covers;
    /* relaxed: only this thread stores it */
    struct covers_counter *counter = atomic_load_explicit(
        &covers->counter[change->slot], memory_order_relaxed);
    assert_may_exchange(covers);
    ASSERT(counter != NULL && shard < covers->n_shards);
    mutex_lock(&covers->lock);
    /* relaxed: each shard leaves the old one, and once */
    ASSERT(atomic_load_explicit(&counter->map[shard], memory_order_relaxed) ==
        change->old);
    /* relaxed: see covers_any; the table's pointer is stored after it */
    atomic_store_explicit(&covers->any, true, memory_order_relaxed);
    /* release: a whole map is seen behind it */
    atomic_store_explicit(
        &counter->map[shard], change->next, memory_order_release);
    mutex_unlock(&covers->lock);
}

void
covers__end(struct covers_change *change)
{
    if (change->old != NULL) {
        for (unsigned i = 0; i < change->covers->n_shards; i++) {
            ASSERT(map_of(change->covers, change->slot, i) != change->old);
        }
        qsbr_wait(change->covers->qsbr);
    }
    covers_map_destroy(change->old);
    *change = (struct covers_change){0};
}

void
covers__publish_all(struct covers_change *change)
{
    for (unsigned shard = 0; shard < change->covers->n_shards; shard++) {
        covers__publish(change, shard);
    }
    covers__end(change);
}

const struct covers_map *
covers__settled(const struct covers *covers, unsigned slot)
{
    assert_may_exchange(covers);
    return map_of(covers, slot, 0);
}

void
covers_clear(struct covers *covers, unsigned slot)
{
    assert_may_exchange(covers);
    struct covers_change change = {
        covers, slot, map_of(covers, slot, 0), NULL};
    if (change.old != NULL) {
        covers__publish_all(&change);
    }
}

/* Of a block that is cut all counts to the later part, so that the parts of a
 * file have its records together. */
uint64_t
covers__entry_records(const struct covers_entry *entry)
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
add_entry(struct covers_sum *sum, const struct covers_map *map, size_t i)
{
    const struct segment *segment = map->entry[i].file->segment;
    const struct segment_head *head = segment_head(segment);
    sum->entries++;
    sum->records += covers__entry_records(&map->entry[i]);
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
add_counter(struct covers *covers, unsigned slot, struct covers_sum *sum)
{
    mutex_lock(&covers->lock);
    const struct covers_map *map = map_of(covers, slot, 0);
    for (size_t i = 0; map != NULL && i < map->n; i++) {
        add_entry(sum, map, i);
    }
    if (map != NULL) {
        sum->memory += sizeof *map + map->n * sizeof map->entry[0];
    }
    mutex_unlock(&covers->lock);
}

void
covers__sum(struct covers *covers, struct covers_sum *sum)
{
    ASSERT(covers->magic == COVERS_MAGIC);
    *sum = (struct covers_sum){0};
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        add_counter(covers, slot, sum);
    }
}

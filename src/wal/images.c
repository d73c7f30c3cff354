/* SPDX-License-Identifier: BSD-3-Clause */
/* The live images: for each counter and shard a sorted array of entries whose
 * rows do not overlap, and the lists themselves sorted by counter and shard.
 *
 * Every change of a list is one splice: the entries that touch the rows in
 * question, which stand side by side, are replaced by at most three: what is
 * left of the first of them, the new entry, what is left of the last. An image
 * that is written over and over again has the same rows mostly, so an entry is
 * replaced in place; those read from a manifest come in order and are appended.
 * Only an insertion amid a list moves the rest of it.
 *
 * A block whose rows were cut has the mark `part`, in each of its entries: only
 * of these may there be two of one block, and then they are in one list.
 *
 * What can go wrong: memory. Room for a splice is made before anything is
 * changed; a list without entries is as good as none. */
#include "wal/images.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

#include <string.h>

enum {
    LIST_START = 4,
    PIECES_MAX = 3, /* what a splice puts in */
    SPLICE_MORE = 2 /* entries more than before, at most */
};

struct images_list {
    uint8_t counter;
    uint16_t shard;
    size_t n, capacity;
    struct images_entry *entry; /* owned */
};

static uint32_t
list_key(unsigned counter, unsigned shard)
{
    return (uint32_t)counter << 16 | shard;
}

/* The first list that is not before the one of key. */
static size_t
list_place(const struct images *images, uint32_t key)
{
    size_t low = 0, high = images->n_lists;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct images_list *list = &images->list[mid];

        if (list_key(list->counter, list->shard) < key) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static struct images_list *
list_at(const struct images *images, uint32_t key)
{
    size_t place = list_place(images, key);

    if (place < images->n_lists) {
        struct images_list *list = &images->list[place];

        if (list_key(list->counter, list->shard) == key) {
            return list;
        }
    }
    return NULL;
}

static void
list_fini(const struct images *images, struct images_list *list)
{
    alloc_free(
        images->alloc, list->entry, list->capacity * sizeof *list->entry);
}

/* Twice the room, SPLICE_MORE at least; the first n_used elements are kept. */
static void *
grown(const struct images *images, void *old, size_t n_used, size_t *capacity,
    size_t size)
{
    size_t more = *capacity < LIST_START / 2 ? LIST_START : *capacity * 2;
    void *made = alloc_zeroed(images->alloc, more * size);

    if (made == NULL) {
        return NULL;
    }
    if (n_used > 0) {
        memcpy(made, old, n_used * size);
    }
    alloc_free(images->alloc, old, *capacity * size);
    *capacity = more;
    return made;
}

/* The list of key, made where there is none; NULL when memory is out. */
static struct images_list *
list_need(struct images *images, uint32_t key)
{
    size_t place = list_place(images, key);
    struct images_list *list = list_at(images, key);

    if (list != NULL) {
        return list;
    }
    if (images->n_lists == images->lists_capacity) {
        list = grown(images, images->list, images->n_lists,
            &images->lists_capacity, sizeof *list);
        if (list == NULL) {
            return NULL;
        }
        images->list = list;
    }
    ASSERT(images->n_lists < images->lists_capacity);
    list = &images->list[place];
    memmove(list + 1, list, (images->n_lists - place) * sizeof *list);
    *list = (struct images_list){
        .counter = (uint8_t)(key >> 16), .shard = (uint16_t)key};
    images->n_lists++;
    return list;
}

/* Room for one more splice. */
static bool
list_reserve(const struct images *images, struct images_list *list)
{
    struct images_entry *entry;

    if (list->capacity - list->n >= SPLICE_MORE) {
        return true;
    }
    entry = grown(
        images, list->entry, list->n, &list->capacity, sizeof *list->entry);
    if (entry == NULL) {
        return false;
    }
    list->entry = entry;
    return true;
}

/* The first entry that has rows from row on. */
static size_t
entry_place(const struct images_list *list, uint64_t row)
{
    size_t low = 0, high = list->n;

    if (high > 0 && list->entry[high - 1].last_row < row) {
        return high; /* appended in order */
    }
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (list->entry[mid].last_row < row) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* Replaces entries low..high-1 by n pieces; there is room. */
static void
splice(struct images *images, struct images_list *list, size_t low,
    size_t high, const struct images_entry *piece, size_t n)
{
    struct images_entry *at = list->entry + low;

    ASSERT(low <= high && high <= list->n);
    ASSERT(list->n - (high - low) + n <= list->capacity);
    memmove(at + n, list->entry + high, (list->n - high) * sizeof *at);
    memcpy(at, piece, n * sizeof *at);
    list->n = list->n - (high - low) + n;
    images->n = images->n - (high - low) + n;
}

/* Takes rows first..last from all entries, and puts entry (unless it is NULL)
 * in their place. There is room for a splice. */
static void
replace(struct images *images, struct images_list *list, uint64_t first,
    uint64_t last, const struct images_entry *entry)
{
    struct images_entry piece[PIECES_MAX];
    size_t n = 0;
    size_t low = entry_place(list, first);
    size_t high = low;

    while (high < list->n && list->entry[high].first_row <= last) {
        high++;
    }
    if (high > low && list->entry[low].first_row < first) {
        piece[n] = list->entry[low];
        piece[n].last_row = first - 1;
        piece[n++].part = true;
    }
    if (entry != NULL) {
        piece[n++] = *entry;
    }
    if (high > low && list->entry[high - 1].last_row > last) {
        piece[n] = list->entry[high - 1];
        piece[n].first_row = last + 1;
        piece[n++].part = true;
    }
    splice(images, list, low, high, piece, n);
    /* disjoint, and in order, also with those on either side */
    for (size_t i = low; i <= low + n && i < list->n; i++) {
        ASSERT(list->entry[i].first_row <= list->entry[i].last_row);
        ASSERT(
            i == 0 || list->entry[i - 1].last_row < list->entry[i].first_row);
    }
}

void
images_fini(struct images *images)
{
    for (size_t i = 0; i < images->n_lists; i++) {
        list_fini(images, &images->list[i]);
    }
    alloc_free(images->alloc, images->list,
        images->lists_capacity * sizeof *images->list);
    *images = (struct images){.alloc = images->alloc};
}

int
images_add(struct images *images, const struct images_entry *entry)
{
    struct images_list *list;

    ASSERT(entry->first_row <= entry->last_row);
    list = list_need(images, list_key(entry->counter, entry->shard));
    if (list == NULL || !list_reserve(images, list)) {
        return ERR_NO_MEMORY;
    }
    replace(images, list, entry->first_row, entry->last_row, entry);
    return 0;
}

int
images_drop(struct images *images, uint8_t counter, uint16_t shard,
    uint64_t first_row, uint64_t last_row)
{
    struct images_list *list = list_at(images, list_key(counter, shard));

    ASSERT(first_row <= last_row);
    if (list == NULL) {
        return 0;
    }
    if (!list_reserve(images, list)) {
        return ERR_NO_MEMORY;
    }
    replace(images, list, first_row, last_row, NULL);
    return 0;
}

const struct images_entry *
images_find(
    const struct images *images, uint8_t counter, uint16_t shard, uint64_t row)
{
    const struct images_list *list = list_at(images, list_key(counter, shard));
    size_t place;

    if (list == NULL) {
        return NULL;
    }
    place = entry_place(list, row);
    if (place == list->n || list->entry[place].first_row > row) {
        return NULL;
    }
    return &list->entry[place];
}

void
images_each(const struct images *images,
    void (*entry_fn)(void *context, const struct images_entry *entry),
    void *context)
{
    for (size_t i = 0; i < images->n_lists; i++) {
        for (size_t k = 0; k < images->list[i].n; k++) {
            entry_fn(context, &images->list[i].entry[k]);
        }
    }
}

/* True where an entry before that one is of the same block. */
static bool
is_counted(const struct images_list *list, size_t place)
{
    const struct images_entry *entry = &list->entry[place];

    for (size_t i = place; entry->part && i-- > 0;) {
        if (list->entry[i].file == entry->file &&
            list->entry[i].offset == entry->offset) {
            return true;
        }
    }
    return false;
}

uint64_t
images_file_bytes(const struct images *images, uint64_t file)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < images->n_lists; i++) {
        const struct images_list *list = &images->list[i];

        for (size_t k = 0; k < list->n; k++) {
            if (list->entry[k].file == file && !is_counted(list, k)) {
                bytes += list->entry[k].len;
            }
        }
    }
    return bytes;
}

/* A copy of list's entries in *out; false when memory is out. */
static bool
list_copy(const struct images *images, const struct images_list *list,
    struct images_list *out)
{
    size_t bytes = list->n * sizeof *list->entry;

    *out = (struct images_list){.counter = list->counter,
        .shard = list->shard,
        .n = list->n,
        .capacity = list->n};
    if (bytes == 0) {
        return true;
    }
    out->entry = alloc_zeroed(images->alloc, bytes);
    if (out->entry == NULL) {
        return false;
    }
    memcpy(out->entry, list->entry, bytes);
    return true;
}

int
images_copy(const struct images *from, struct images *out)
{
    struct images copy = {.alloc = from->alloc, .n = from->n};

    if (from->n_lists > 0) {
        copy.list =
            alloc_zeroed(from->alloc, from->n_lists * sizeof *copy.list);
        if (copy.list == NULL) {
            return ERR_NO_MEMORY;
        }
        copy.lists_capacity = from->n_lists;
    }
    for (; copy.n_lists < from->n_lists; copy.n_lists++) {
        if (!list_copy(
                from, &from->list[copy.n_lists], &copy.list[copy.n_lists])) {
            images_fini(&copy);
            return ERR_NO_MEMORY;
        }
    }
    ASSERT(copy.n_lists == from->n_lists);
    *out = copy;
    return 0;
}

static void
list_verify(const struct images_list *list)
{
    ASSERT(list->n <= list->capacity);
    for (size_t i = 0; i < list->n; i++) {
        const struct images_entry *entry = &list->entry[i];

        ASSERT(entry->counter == list->counter);
        ASSERT(entry->shard == list->shard);
        ASSERT(entry->first_row <= entry->last_row);
        ASSERT(i == 0 || list->entry[i - 1].last_row < entry->first_row);
    }
}

void
images_verify(const struct images *images)
{
    size_t n = 0;

    ASSERT(images->n_lists <= images->lists_capacity);
    for (size_t i = 0; i < images->n_lists; i++) {
        const struct images_list *list = &images->list[i];

        ASSERT(i == 0 ||
            list_key(list[-1].counter, list[-1].shard) <
                list_key(list->counter, list->shard));
        list_verify(list);
        n += list->n;
    }
    ASSERT(n == images->n);
}

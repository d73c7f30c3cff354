/* SPDX-License-Identifier: BSD-3-Clause */
/* Enumerations of items, a stripe at a time. */
#include "items/figures.h"

#include "items/core.h"

#include <stdatomic.h>

enum { CHUNK_LEAST = 96, CHUNK_STEP = 8, CLASS_FULL = ITEMS_CLASSES - 1 };

/* Bytes of a chunk of the class that follows one of bytes. */
static uint64_t
next_chunk(uint64_t bytes)
{
    bytes += bytes / 4;
    return (bytes + CHUNK_STEP - 1) / CHUNK_STEP * CHUNK_STEP;
}

static unsigned
class_of(uint64_t bytes)
{
    unsigned n = 1;
    for (uint64_t chunk = CHUNK_LEAST; chunk < bytes && n < CLASS_FULL;
         chunk = next_chunk(chunk)) {
        n++;
    }
    return n;
}

static struct items_seen
seen_of(const struct entry *entry)
{
    uint64_t bytes =
        entry->item.value_len + entry->key_len + ITEMS_HEADER_BYTES;
    return (struct items_seen){.key = entry->bytes,
        .key_len = entry->key_len,
        .value_len = entry->item.value_len,
        .flags = entry->item.flags,
        .cas = entry->item.cas,
        .expiry_s = entry->expiry_s,
        .used_s = entry->used_s,
        .bytes = bytes,
        .size_class = class_of(bytes),
        .was_fetched = entry->fetched};
}

static bool
is_live(struct items *items, const struct entry *entry, uint64_t now_s)
{
    /* relaxed: whoever asks does not wait for a flush */
    uint64_t mark =
        atomic_load_explicit(&items->flush_mark, memory_order_relaxed);
    return entry->born > mark &&
        (entry->expiry_s == ITEMS_NEVER || entry->expiry_s > now_s);
}

void
items_each(struct items *items, struct items_cursor *cursor, unsigned n_max,
    uint64_t now_s,
    void (*each_fn)(void *context, const struct items_seen *seen),
    void *context)
{
    unsigned n = 0;
    while (cursor->at < ITEMS__STRIPES && n < n_max) {
        struct stripe *stripe = &items->stripe[cursor->at++];
        items__stripe_lock(stripe);
        for (struct entry *entry = stripe->oldest; entry != NULL;
             entry = entry->newer) {
            if (is_live(items, entry, now_s)) {
                struct items_seen seen = seen_of(entry);
                each_fn(context, &seen);
                n++;
            }
        }
        items__stripe_unlock(stripe);
    }
    cursor->has_ended = cursor->at == ITEMS__STRIPES;
}

struct sum {
    struct items_class *classes;
    uint64_t now_s;
};

static void
add(void *context, const struct items_seen *seen)
{
    struct sum *sum = context;
    struct items_class *of = &sum->classes[seen->size_class];
    uint64_t age_s = sum->now_s - seen->used_s;
    of->number++;
    of->mem_requested += seen->bytes;
    of->age = age_s > of->age ? age_s : of->age;
}

void
items_classes(
    struct items *items, uint64_t now_s, struct items_class out[ITEMS_CLASSES])
{
    struct sum sum = {.classes = out, .now_s = now_s};
    struct items_cursor cursor = {0};
    uint64_t chunk = CHUNK_LEAST;
    for (unsigned i = 0; i < ITEMS_CLASSES; i++) {
        out[i] = (struct items_class){.chunk_size = i == 0 ? 0 : chunk};
        chunk = i == 0 ? chunk : next_chunk(chunk);
    }
    while (!cursor.has_ended) {
        items_each(items, &cursor, UINT32_MAX, now_s, add, &sum);
    }
}

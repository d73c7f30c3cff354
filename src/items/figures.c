/* SPDX-License-Identifier: BSD-3-Clause */
/* Enumerations of items, a stripe at a time. */
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
        .item = &entry->item,
        .expiry_s = entry->expiry_s,
        .used_s = entry->used_s,
        .bytes = bytes,
        .class_ = class_of(bytes),
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

uint64_t
items_each(struct items *items, uint64_t cursor, unsigned n_max,
    uint64_t now_s, items_each_fn *fn, void *context)
{
    unsigned n = 0;
    while (cursor < ITEMS__STRIPES && n < n_max) {
        struct stripe *stripe = &items->stripe[cursor++];
        items__stripe_lock(stripe);
        for (struct entry *entry = stripe->oldest; entry != NULL;
             entry = entry->newer) {
            if (is_live(items, entry, now_s)) {
                struct items_seen seen = seen_of(entry);
                fn(context, &seen);
                n++;
            }
        }
        items__stripe_unlock(stripe);
    }
    return cursor == ITEMS__STRIPES ? 0 : cursor;
}

static void
add(void *context, const struct items_seen *seen)
{
    struct items_class *of = (struct items_class *)context + seen->class_;
    of->number++;
    of->mem_requested += seen->bytes;
    if (of->oldest_s == 0 || seen->used_s < of->oldest_s) {
        of->oldest_s = seen->used_s;
    }
}

void
items_classes(struct items *items, struct items_class out[ITEMS_CLASSES])
{
    uint64_t chunk = CHUNK_LEAST;
    out[0] = (struct items_class){0};
    for (unsigned i = 1; i < ITEMS_CLASSES; i++) {
        out[i] = (struct items_class){.chunk_bytes = chunk};
        chunk = next_chunk(chunk);
    }
    items_each(items, 0, UINT32_MAX, 1, add, out);
}

void
items_stats_reset(struct items *items)
{
    for (unsigned i = 0; i < ITEMS__STRIPES; i++) {
        struct stripe *stripe = &items->stripe[i];
        items__stripe_lock(stripe);
#define X(name, text) stripe->sums.name = 0;
        ITEMS_STATS_SUMS(X)
#undef X
        items__stripe_unlock(stripe);
    }
}

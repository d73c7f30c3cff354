/* SPDX-License-Identifier: BSD-3-Clause */
/* memcached's slab classes, which tools expect to see: chunks from 96 bytes on,
 * each class 1.25 times the one before, aligned to 8; the last class takes all
 * that is larger. A counter has several shards; the item's stripe chooses one,
 * so threads seldom write the same line. */
#include "items/classes.h"

#include "base/assert.h"

#include <stdatomic.h>

enum {
    CHUNK_FIRST = 96,
    CHUNK_ALIGN = ITEMS__CLASS_ALIGN,
    CHUNK_MOST = 512 * 1024, /* larger items are several chunks there */
    HEAD_BYTES = 48,         /* memcached's item header */
    CAS_BYTES = 8,
    KEY_END_BYTES = 1,
    VALUE_END_BYTES = 2
};

/* The first class whose chunks hold so many bytes. */
static unsigned
search(const struct classes *classes, uint64_t bytes)
{
    unsigned low = 1, high = classes->last;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (bytes <= classes->chunk_bytes[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

void
items__classes_init(struct classes *classes, uint64_t item_bytes_max)
{
    uint64_t most = item_bytes_max < CHUNK_MOST ? item_bytes_max : CHUNK_MOST;
    uint64_t size = CHUNK_FIRST;
    unsigned i = 1;

    for (; i < ITEMS_CLASSES - 1 && size <= most * 4 / 5; i++) {
        classes->chunk_bytes[i] = (uint32_t)size;
        size = size * 5 / 4;
        size = (size + CHUNK_ALIGN - 1) / CHUNK_ALIGN * CHUNK_ALIGN;
    }
    ASSERT(i < ITEMS_CLASSES && classes->chunk_bytes[i - 1] < most);
    classes->chunk_bytes[i] = (uint32_t)most;
    classes->last = i;
    ASSERT(most >= ITEMS__CLASS_SMALL_BYTES);
    for (i = 0; i <= ITEMS__CLASS_SMALL_BYTES / CHUNK_ALIGN; i++) {
        classes->of_small[i] = (uint8_t)search(classes, CHUNK_ALIGN * i);
    }
}

uint64_t
items__classes_bytes(size_t key_len, size_t value_len)
{
    return HEAD_BYTES + CAS_BYTES + key_len + KEY_END_BYTES + value_len +
        VALUE_END_BYTES;
}

unsigned
items__classes_of(
    const struct classes *classes, size_t key_len, size_t value_len)
{
    uint64_t bytes = items__classes_bytes(key_len, value_len);

    /* chunks are aligned, so all that is rounded up to one is of its class */
    return bytes <= ITEMS__CLASS_SMALL_BYTES
        ? classes->of_small[(bytes + CHUNK_ALIGN - 1) / CHUNK_ALIGN]
        : search(classes, bytes);
}

void
items__classes_sum(
    struct classes *classes, struct items_class out[ITEMS_CLASSES])
{
    for (unsigned c = 0; c < ITEMS_CLASSES; c++) {
        out[c].chunk_bytes = classes->chunk_bytes[c];
        for (unsigned s = 0; s < ITEMS__CLASS_SHARDS; s++) {
            struct class_sums *sums = &classes->sums[s][c];
            /* relaxed: figures, each for itself */
#define X(name, text)                                                         \
    out[c].name += atomic_load_explicit(&sums->name, memory_order_relaxed);
            ITEMS_CLASS_HELD(X)
            ITEMS_CLASS_SUMS(X)
#undef X
        }
    }
}

void
items__classes_reset(struct classes *classes)
{
    for (unsigned c = 0; c < ITEMS_CLASSES; c++) {
        for (unsigned s = 0; s < ITEMS__CLASS_SHARDS; s++) {
            struct class_sums *sums = &classes->sums[s][c];
            /* relaxed: figures, each for itself */
#define X(name, text)                                                         \
    atomic_store_explicit(&sums->name, 0, memory_order_relaxed);
            ITEMS_CLASS_SUMS(X)
#undef X
        }
    }
}

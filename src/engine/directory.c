/* SPDX-License-Identifier: BSD-3-Clause */
/* The range directory: from a row number to the table that covers it.
 *
 * One block:
 *
 *   struct directory | root node, its slots | node, slots | ... | entries
 *
 * A node cuts a stretch of rows into steps of 2^shift. A step that one entry
 * covers, or that holds one entry and no more, has that table in its slot; one
 * that holds several has a node of its own; an empty one has 0. So it is a
 * trie whose fan-out is chosen node by node, as in Nilsson and Karlsson,
 * "IP-address lookup using LC-tries" (1999): the finest step that needs at
 * most max(8, 4 x entries) slots, but none finer than the narrowest entry.
 *
 * Tables of one width side by side, as time-ordered ids make them, need one
 * node with one slot each. A stray table far away makes the root's steps wide,
 * and all others share one of its slots and a node: one step more. Depth is at
 * most 22: the entries below one slot of a node span less than 2^shift rows,
 * which a step of 2^(shift - 3) cuts into 8 slots.
 *
 * Invariants:
 * - entries ascend, are aligned to their width and do not overlap;
 * - base of a node is a multiple of its step, and base + n_slots steps is at
 *   most 2^64, so that directory_find needs no check for rows below base;
 * - an entry is found in one node only, in one slot or in several side by
 *   side; all of these and the entry name the same table.
 *
 * Readers hold the directory itself by an acquire load of the pointer to it
 * (the shard's), so nothing in it but the slots needs to be atomic. A changed
 * set of ranges is a new directory; the old one is retired to the pool.
 *
 * What can go wrong: memory, when one is made. */
#include "engine/directory.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdbool.h>
#include <string.h>

enum {
    SLOTS_MIN = 8,
    SLOTS_AN_ENTRY = 4,
    ROW_BITS = 64,
    SHIFT_MAX = 63,
    ENTRIES_MAX = 1 << 28 /* so that n_slots is well within 32 bits */
};

_Static_assert(
    sizeof(struct directory) % _Alignof(struct directory__node) == 0 &&
        sizeof(struct directory__node) % sizeof(uintptr_t) == 0 &&
        _Alignof(struct directory_entry) <= sizeof(uint64_t),
    "the parts of the block follow each other without gaps");

static struct directory__node *
root_of(const struct directory *directory)
{
    return (struct directory__node *)(directory + 1);
}

static uint64_t
last_of(const struct directory_entry *entry)
{
    return entry->base | UINT64_MAX >> (ROW_BITS - entry->width);
}

static size_t
node_bytes(uint32_t n_slots)
{
    return sizeof(struct directory__node) + n_slots * sizeof(uintptr_t);
}

/* The slot of a row that lies in the node. */
static uint64_t
slot_of(const struct directory__node *node, uint64_t row)
{
    return (row - node->base) >> node->shift;
}

/* Fills in the head of the node for n entries. */
static void
plan(const struct directory_entry *entry, size_t n,
    struct directory__node *head)
{
    uint64_t limit = n < SLOTS_MIN / SLOTS_AN_ENTRY
        ? SLOTS_MIN
        : (uint64_t)n * SLOTS_AN_ENTRY;
    uint32_t shift = SHIFT_MAX;

    *head = (struct directory__node){0};
    if (n == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        shift = entry[i].width < shift ? entry[i].width : shift;
    }
    uint64_t first = entry[0].base;
    uint64_t last = last_of(&entry[n - 1]);
    while ((last >> shift) - (first >> shift) >= limit) {
        shift++;
    }
    ASSERT(shift <= SHIFT_MAX);
    head->shift = shift;
    head->base = first >> shift << shift;
    head->n_slots = (uint32_t)((last >> shift) - (first >> shift)) + 1;
}

/* Puts a table into every slot of the node that the entry covers. */
static void
fill(struct directory__node *node, const struct directory_entry *entry,
    struct table *table, memory_order order)
{
    uint64_t end = slot_of(node, last_of(entry)) + 1;
    ASSERT(end <= node->n_slots);
    for (uint64_t at = slot_of(node, entry->base); at < end; at++) {
        /* order: see the callers */
        atomic_store_explicit(&node->slot[at], (uintptr_t)table, order);
    }
}

/* Lays out the node for n entries at `at`, and its children behind it; with
 * NULL only counts. Returns the bytes of all of them. */
static size_t
lay(const struct directory_entry *entry, size_t n, char *at)
{
    struct directory__node *node = (struct directory__node *)(void *)at;
    struct directory__node head;
    size_t end;

    plan(entry, n, &head);
    size_t bytes = node_bytes(head.n_slots);
    if (at != NULL) {
        node->base = head.base;
        node->n_slots = head.n_slots;
        node->shift = head.shift;
    }
    for (size_t i = 0; i < n; i = end) {
        uint64_t slot = slot_of(&head, entry[i].base);
        char *child = at == NULL ? NULL : at + bytes;
        end = i + 1;
        while (end < n && slot_of(&head, entry[end].base) == slot) {
            end++;
        }
        if (end - i > 1) {
            bytes += lay(entry + i, end - i, child);
        }
        /* relaxed: nobody sees it before it is published as a whole */
        if (at != NULL && end - i == 1) {
            fill(node, &entry[i], entry[i].table, memory_order_relaxed);
        } else if (at != NULL) {
            atomic_store_explicit(&node->slot[slot],
                (uintptr_t)child + DIRECTORY__NODE, memory_order_relaxed);
        }
    }
    return bytes;
}

static void
check_entries(const struct directory_entry *entry, size_t n)
{
    ASSERT(n <= ENTRIES_MAX);
    for (size_t i = 0; i < n; i++) {
        ASSERT(entry[i].width >= 1 && entry[i].width <= ROW_BITS);
        uint64_t last = last_of(&entry[i]);
        ASSERT((entry[i].base & (last - entry[i].base)) == 0);
        ASSERT(i == 0 || last_of(&entry[i - 1]) < entry[i].base);
        ASSERT(entry[i].table != NULL);
        ASSERT(((uintptr_t)entry[i].table & DIRECTORY__NODE) == 0);
    }
}

int
directory_create(struct pool *pool, const struct directory_entry *entry,
    size_t n, enum pool_purpose purpose, struct directory **out)
{
    void *block;

    check_entries(entry, n);
    size_t node_sum = lay(entry, n, NULL);
    size_t bytes = sizeof(struct directory) + node_sum +
        n * sizeof(struct directory_entry);
    int err = pool_take_block(pool, bytes, purpose, &block);
    if (err != 0) {
        return err;
    }
    struct directory *directory = block;
    char *nodes = (char *)root_of(directory);
    directory->bytes = bytes;
    directory->n = n;
    directory->entry = (struct directory_entry *)(void *)(nodes + node_sum);
    if (n > 0) {
        memcpy(directory->entry, entry, n * sizeof *entry);
    }
    size_t laid = lay(entry, n, nodes);
    ASSERT(laid == node_sum);
    *out = directory;
    return 0;
}

void
directory_destroy(struct pool *pool, struct directory **directory)
{
    if (*directory != NULL) {
        pool_give_block(pool, *directory, (*directory)->bytes);
        *directory = NULL;
    }
}

static void
free_garbage(struct pool *pool, struct pool_garbage *garbage)
{
    struct directory *directory = (struct directory *)garbage;
    directory_destroy(pool, &directory);
}

void
directory_retire(struct pool *pool, struct directory *directory)
{
    if (directory != NULL) {
        pool_retire(pool, &directory->garbage, directory->bytes, free_garbage);
    }
}

void
directory_replace(struct directory *directory, size_t i, struct table *table)
{
    struct directory__node *node = root_of(directory);

    ASSERT(i < directory->n);
    ASSERT(table != NULL && ((uintptr_t)table & DIRECTORY__NODE) == 0);
    struct directory_entry *entry = &directory->entry[i];
    for (;;) {
        uint64_t at = slot_of(node, entry->base);
        ASSERT(at < node->n_slots);
        /* relaxed: only the holder of the lock stores */
        uintptr_t slot =
            atomic_load_explicit(&node->slot[at], memory_order_relaxed);
        if ((slot & DIRECTORY__NODE) == 0) {
            ASSERT(slot == (uintptr_t)entry->table);
            break;
        }
        node = (struct directory__node *)(slot - DIRECTORY__NODE);
    }
    /* release: what was written to the table comes before it */
    fill(node, entry, table, memory_order_release);
    entry->table = table;
}

size_t
directory_count(const struct directory *directory)
{
    return directory->n;
}

const struct directory_entry *
directory_entries(const struct directory *directory)
{
    return directory->entry;
}

ptrdiff_t
directory_before(const struct directory *directory, uint64_t row)
{
    size_t begin = 0; /* the first entry above row lies in begin..end */
    size_t end = directory->n;

    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (directory->entry[middle].base > row) {
            end = middle;
        } else {
            begin = middle + 1;
        }
    }
    return (ptrdiff_t)begin - 1;
}

size_t
directory_bytes(const struct directory *directory)
{
    return directory == NULL ? 0 : directory->bytes;
}

/* Asserts that each slot says what the entries say; returns the bytes of the
 * node and all below it. */
static size_t
verify_node(const struct directory__node *node,
    const struct directory_entry *entry, size_t n)
{
    uint64_t step = UINT64_C(1) << node->shift;
    size_t bytes = node_bytes(node->n_slots);
    size_t i = 0;

    ASSERT(node->shift <= SHIFT_MAX && node->base % step == 0);
    ASSERT(slot_of(node, entry[0].base) == 0);
    ASSERT(slot_of(node, last_of(&entry[n - 1])) + 1 == node->n_slots);
    for (uint32_t at = 0; at < node->n_slots; at++) {
        uint64_t first = node->base + at * step;
        uint64_t last = first + (step - 1);
        ASSERT(last > first && first >= node->base);
        while (i < n && last_of(&entry[i]) < first) {
            i++;
        }
        size_t end = i;
        while (end < n && entry[end].base <= last) {
            end++;
        }
        /* relaxed: under the lock of those who store */
        uintptr_t slot =
            atomic_load_explicit(&node->slot[at], memory_order_relaxed);
        if (end - i > 1) {
            ASSERT((slot & DIRECTORY__NODE) != 0);
            const struct directory__node *child =
                (const struct directory__node *)(slot - DIRECTORY__NODE);
            ASSERT((const char *)child > (const char *)node);
            ASSERT(child->shift < node->shift);
            bytes += verify_node(child, entry + i, end - i);
        } else {
            ASSERT(slot == (end == i ? 0 : (uintptr_t)entry[i].table));
        }
    }
    return bytes;
}

void
directory_verify(const struct directory *directory)
{
    const struct directory__node *root = root_of(directory);
    size_t n = directory->n;

    check_entries(directory->entry, n);
    ASSERT(n > 0 || root->n_slots == 0);
    size_t bytes =
        n == 0 ? node_bytes(0) : verify_node(root, directory->entry, n);
    ASSERT((const char *)directory->entry == (const char *)root + bytes);
    ASSERT(directory->bytes ==
        sizeof *directory + bytes + n * sizeof *directory->entry);
}

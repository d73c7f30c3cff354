/* SPDX-License-Identifier: BSD-3-Clause */

/* The classic layout: double hashing, h1 + s * h2 modulo a prime (Knuth, The
 * Art of Computer Programming 6.4, algorithm D), in one block of items. A
 * record has a number that is not 0, so an item whose numbers are all 0 is
 * free. At 95 % load a record takes about 3.2 probes, an absent one 20. */

#include "bench/rival.h"

#include "base/assert.h"
#include "bench/fail.h"
#include "bench/rounds.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LOAD 0.95

enum { RANGE_SHIFT = 32, GET_MAX = 100, COLUMNS = 3 };

/* The numbers of an item as one word: where each begins and its bits. */
struct field {
    unsigned shift, bits;
};

static const struct field large[COLUMNS] = {{0, 16}, {16, 16}, {32, 16}};
static const struct field small[COLUMNS] = {{0, 12}, {12, 10}, {22, 10}};

struct probe {
    uint32_t at, step;
};

static bool
is_prime(uint32_t n)
{
    for (uint32_t i = 2; i <= n / i; i++) {
        if (n % i == 0) {
            return false;
        }
    }
    return n >= 2;
}

static inline struct probe
first_probe(const struct classic_table *table, uint32_t low)
{
    uint64_t hash = low * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    return (struct probe){.at = (uint32_t)((hash >> 32) * table->slots >> 32),
        .step =
            1 + (uint32_t)((hash & UINT32_MAX) * (table->slots - 1) >> 32)};
}

static inline unsigned char *
item_at(const struct classic *classic, const struct classic_table *table,
    uint32_t at)
{
    return classic->item + (table->first + at) * classic->item_bytes;
}

static inline uint64_t
item_numbers(const struct classic *classic, const unsigned char *item)
{
    uint64_t numbers = 0;
    memcpy(&numbers, item + 4, classic->item_bytes == 12 ? 8 : 4);
    return numbers;
}

/* The item of low, or the free one where it would be. */
static inline unsigned char *
find(const struct classic *classic, const struct classic_table *table,
    uint32_t low, struct probe probe)
{
    for (;;) {
        unsigned char *item = item_at(classic, table, probe.at);
        uint32_t other;
        memcpy(&other, item, sizeof(other));
        if (other == low || item_numbers(classic, item) == 0) {
            return item;
        }
        probe.at += probe.step;
        probe.at -= probe.at >= table->slots ? table->slots : 0;
    }
}

static const struct classic_table *
table_of(const struct classic *classic, uint64_t id)
{
    uint64_t range = (id >> RANGE_SHIFT) - classic->first_range;
    return range < classic->n_tables ? &classic->table[range] : NULL;
}

static void
insert(struct classic *classic, uint64_t id, const uint64_t *value)
{
    const struct field *field =
        classic->item_bytes == CLASSIC_ITEM_LARGE ? large : small;
    uint64_t numbers = 0;
    bool is_wide = false;
    for (unsigned i = 0; i < COLUMNS; i++) {
        uint64_t most = (UINT64_C(1) << field[i].bits) - 1;
        is_wide = is_wide || value[i] > most;
        numbers |= (value[i] < most ? value[i] : most) << field[i].shift;
    }
    const struct classic_table *table = table_of(classic, id);
    uint32_t low = (uint32_t)id;
    unsigned char *item = find(classic, table, low, first_probe(table, low));
    memcpy(item, &low, sizeof(low));
    memcpy(item + sizeof(low), &numbers, classic->item_bytes - sizeof(low));
    classic->records++;
    classic->wide += is_wide;
}

static bool
has_record(const uint64_t *mask, uint64_t post)
{
    return mask[post / 64] >> post % 64 & 1;
}

/* Sizes the tables by what will be in them. */
static void
make_tables(
    struct classic *classic, const struct posts *posts, const uint64_t *mask)
{
    classic->first_range = posts_id(posts, 0) >> RANGE_SHIFT;
    classic->n_tables = (posts_id(posts, posts->n - 1) >> RANGE_SHIFT) -
        classic->first_range + 1;
    classic->table = calloc(classic->n_tables, sizeof(classic->table[0]));
    if (classic->table == NULL) {
        fail("out of memory for the classic layout");
    }
    for (uint64_t post = 0; post < posts->n; post++) {
        if (has_record(mask, post)) {
            classic
                ->table[(posts_id(posts, post) >> RANGE_SHIFT) -
                    classic->first_range]
                .slots++;
        }
    }
    for (size_t i = 0; i < classic->n_tables; i++) {
        struct classic_table *table = &classic->table[i];
        table->first = classic->items;
        table->slots = (uint32_t)((double)table->slots / LOAD) + 2;
        while (!is_prime(table->slots)) {
            table->slots++;
        }
        classic->items += table->slots;
    }
    classic->item = rounds_map(classic->items * classic->item_bytes);
}

void
classic_init(struct classic *classic, unsigned item_bytes,
    const struct posts *posts, const uint64_t *mask)
{
    *classic = (struct classic){.item_bytes = item_bytes};
    ASSERT(posts->ids == POSTS_MAIN && posts->columns == COLUMNS);
    make_tables(classic, posts, mask);
    for (uint64_t post = 0; post < posts->n; post++) {
        uint64_t value[COLUMNS];
        if (has_record(mask, post)) {
            posts_values(posts, post, value);
            insert(classic, posts_id(posts, post), value);
        }
    }
}

void
classic_fini(struct classic *classic)
{
    rounds_unmap(classic->item, classic->items * classic->item_bytes);
    free(classic->table);
    *classic = (struct classic){0};
}

/* Inlined, so that item_bytes and field are constants. */
static inline __attribute__((always_inline)) void
get_sized(const struct classic *classic, const struct cell_key *key, size_t n,
    const struct field *field, uint64_t *value)
{
    struct probe probe[GET_MAX];
    for (size_t i = 0; i < n; i++) {
        const struct classic_table *table = table_of(classic, key[i].id);
        if (table != NULL) {
            probe[i] = first_probe(table, (uint32_t)key[i].id);
            __builtin_prefetch(item_at(classic, table, probe[i].at));
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct classic_table *table = table_of(classic, key[i].id);
        value[i] = 0;
        if (table != NULL) {
            const unsigned char *item =
                find(classic, table, (uint32_t)key[i].id, probe[i]);
            const struct field *at = &field[key[i].column];
            value[i] = item_numbers(classic, item) >> at->shift &
                ((UINT64_C(1) << at->bits) - 1);
        }
    }
}

void
classic_get(const struct classic *classic, const struct cell_key *key,
    size_t n, uint64_t *value)
{
    ASSERT(n <= GET_MAX);
    struct classic sized = *classic;
    if (classic->item_bytes == CLASSIC_ITEM_LARGE) {
        sized.item_bytes = CLASSIC_ITEM_LARGE;
        get_sized(&sized, key, n, large, value);
    } else {
        sized.item_bytes = CLASSIC_ITEM_SMALL;
        get_sized(&sized, key, n, small, value);
    }
}

double
classic_bytes(const struct classic *classic)
{
    uint64_t bytes = classic->items * classic->item_bytes +
        classic->wide * CLASSIC_SIDE_BYTES +
        classic->n_tables * sizeof(classic->table[0]);
    return (double)bytes / (double)classic->records;
}

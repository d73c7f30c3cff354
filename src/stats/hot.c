/* SPDX-License-Identifier: BSD-3-Clause */
/* The sketch: sets of a few places each, as in a cache of a processor.
 *
 *   (id, counter) --hash--> set: [id n weight] [id n weight] ...
 *
 * An id that is not in its set takes the place of the least one there, and its
 * weight with it: so who comes often stays. Shown is what was counted of the id
 * itself, so that who has only taken a place does not pass for one that came
 * often.
 *
 * A set has a version, which is odd while its thread changes it; who reads
 * copies the set, and does so again where the version is another one then. */
#include "stats/hot.h"

#include "base/assert.h"

#include <stdlib.h>

enum { READ_TRIES = 64 };

/* Knuth's multiplier of a linear congruential generator. */
#define RANDOM_FACTOR UINT64_C(6364136223846793005)
#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio */

uint32_t
hot_gap(struct hot *hot)
{
    hot->random = hot->random * RANDOM_FACTOR + 1;
    return 1 + (uint32_t)((hot->random >> 32) * (2 * HOT_EVERY - 1) >> 32);
}

/* acquire, both, with the release of put: who reads what has been put, and then
 * the version, sees that this was odd */
static uint32_t
get(const _Atomic uint32_t *at)
{
    return atomic_load_explicit(at, memory_order_acquire);
}

static uint64_t
id_of(const struct hot_cell *cell)
{
    return atomic_load_explicit(&cell->id, memory_order_acquire);
}

/* release, both: see get */
static void
put(_Atomic uint32_t *at, uint32_t value)
{
    atomic_store_explicit(at, value, memory_order_release);
}

static void
put_id(struct hot_cell *cell, uint64_t id)
{
    atomic_store_explicit(&cell->id, id, memory_order_release);
}

static void
begin_change(struct hot_set *set)
{
    put(&set->version, get(&set->version) + 1);
}

static void
end_change(struct hot_set *set)
{
    uint32_t version = get(&set->version);
    ASSERT(version % 2 == 1);
    put(&set->version, version + 1); /* who sees it even sees all of it */
}

/* True where the place is that of the id, under that name. */
static bool
is_of(
    const struct hot_cell *cell, uint64_t id, uint32_t name, uint32_t counter)
{
    return id_of(cell) == id && get(&cell->name) == name &&
        get(&cell->counter) == counter;
}

/* The place of an id, which may be another one's: the least then. */
static struct hot_cell *
find(struct hot_set *set, uint64_t id, uint32_t name, uint32_t counter)
{
    struct hot_cell *least = &set->cell[0];
    uint32_t least_weight = UINT32_MAX;
    for (unsigned i = 0; i < HOT_WAYS; i++) {
        struct hot_cell *cell = &set->cell[i];
        uint32_t weight = get(&cell->weight);
        if (weight > 0 && is_of(cell, id, name, counter)) {
            return cell;
        }
        if (weight < least_weight) {
            least_weight = weight;
            least = cell;
        }
    }
    return least;
}

void
hot_count(struct hot *hot, uint64_t id, uint32_t name, uint32_t counter,
    uint32_t serial, enum hot_use use)
{
    uint64_t hash = (id + counter * RANDOM_FACTOR) * HASH_FACTOR;
    struct hot_set *set = &hot->set[(hash >> 32) % HOT_SETS];
    struct hot_cell *cell = find(set, id, name, counter);
    uint32_t weight = get(&cell->weight);
    begin_change(set);
    if (weight == 0 || !is_of(cell, id, name, counter)) {
        put(&cell->n[HOT_GET], 0);
        put(&cell->n[HOT_CHANGE], 0);
        put(&cell->name, name);
        put(&cell->counter, counter);
        put_id(cell, id);
    }
    put(&cell->serial, serial);
    if (weight < UINT32_MAX - HOT_UNIT) { /* else it is halved soon */
        put(&cell->n[use], get(&cell->n[use]) + HOT_UNIT);
        put(&cell->weight, weight + HOT_UNIT);
    }
    end_change(set);
    /* relaxed: a figure */
    atomic_store_explicit(&hot->total[use],
        atomic_load_explicit(&hot->total[use], memory_order_relaxed) +
            HOT_UNIT,
        memory_order_relaxed);
}

static void
halve(struct hot_set *set)
{
    begin_change(set);
    for (unsigned i = 0; i < HOT_WAYS; i++) {
        struct hot_cell *cell = &set->cell[i];
        put(&cell->weight, get(&cell->weight) / 2);
        for (unsigned use = 0; use < HOT_USES; use++) {
            put(&cell->n[use], get(&cell->n[use]) / 2);
        }
    }
    end_change(set);
}

void
hot_tick(struct hot *hot)
{
    if (++hot->ticks % HOT_HALF_LIFE != 0) {
        return;
    }
    for (unsigned i = 0; i < HOT_SETS; i++) {
        halve(&hot->set[i]);
    }
    for (unsigned use = 0; use < HOT_USES; use++) {
        /* relaxed: figures */
        atomic_store_explicit(&hot->total[use],
            atomic_load_explicit(&hot->total[use], memory_order_relaxed) / 2,
            memory_order_relaxed);
    }
}

/* Units as keys. */
static uint64_t
keys_of(uint64_t units)
{
    return units * HOT_EVERY / HOT_UNIT;
}

/* Copies a set as it was at some moment: how many ids; 0 also where it changed
 * each time. */
static unsigned
copy(const struct hot_set *set, struct hot_one one[HOT_WAYS])
{
    for (unsigned i = 0; i < READ_TRIES; i++) {
        unsigned n = 0;
        uint32_t version = get(&set->version);
        for (unsigned k = 0; k < HOT_WAYS; k++) {
            const struct hot_cell *cell = &set->cell[k];
            one[n] = (struct hot_one){.id = id_of(cell),
                .name = get(&cell->name),
                .counter = get(&cell->counter),
                .serial = get(&cell->serial),
                .n = {keys_of(get(&cell->n[HOT_GET])),
                    keys_of(get(&cell->n[HOT_CHANGE]))}};
            n += one[n].n[HOT_GET] + one[n].n[HOT_CHANGE] > 0;
        }
        if (version % 2 == 0 && get(&set->version) == version) {
            return n;
        }
    }
    return 0;
}

static int
compare(const void *a, const void *b)
{
    const struct hot_one *left = a, *right = b;
    uint64_t n = left->n[HOT_GET] + left->n[HOT_CHANGE];
    uint64_t m = right->n[HOT_GET] + right->n[HOT_CHANGE];
    if (n != m) {
        return n > m ? -1 : 1;
    }
    return (left->id > right->id) - (left->id < right->id);
}

void
hot_sort(struct hot_list *list)
{
    ASSERT(list->n <= HOT_LIST_MAX);
    qsort(list->one, list->n, sizeof list->one[0], compare);
}

/* Where the list is full, the lesser half of it goes: what is hot in several
 * threads is far from there in each. */
static void
add(struct hot_list *list, const struct hot_one *one)
{
    unsigned i = 0;
    while (i < list->n &&
        (list->one[i].id != one->id || list->one[i].name != one->name ||
            list->one[i].counter != one->counter)) {
        i++;
    }
    if (i == HOT_LIST_MAX) {
        hot_sort(list);
        list->n = HOT_LIST_MAX / 2;
        i = list->n;
    }
    if (i == list->n) {
        list->one[list->n++] = *one;
        return;
    }
    list->one[i].n[HOT_GET] += one->n[HOT_GET];
    list->one[i].n[HOT_CHANGE] += one->n[HOT_CHANGE];
}

void
hot_read(const struct hot *hot, struct hot_list *list)
{
    struct hot_one one[HOT_WAYS];
    for (unsigned i = 0; i < HOT_SETS; i++) {
        unsigned n = copy(&hot->set[i], one);
        for (unsigned k = 0; k < n; k++) {
            add(list, &one[k]);
        }
    }
    for (unsigned use = 0; use < HOT_USES; use++) {
        list->total[use] += keys_of(
            atomic_load_explicit(&hot->total[use], memory_order_relaxed));
    }
}

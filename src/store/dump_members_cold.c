/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of dump_members.c that is about segments. What is wanted of a column
 * is sorted by number: in a segment the pairs of all shards that have one
 * number are side by side. Numbers that nobody wants are passed over, as far as
 * they are whole blocks. */
#include "store/dump_members.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "tier/cold_pairs.h"

#include <stdlib.h>

static uint64_t
first_id(const struct dump_members *it, const struct dump_members_want *want)
{
    return (want->number << it->column[want->column].bits) *
        it->segment_map->n_shards;
}

/* The last id that a pair of the number may have. */
static uint64_t
last_id(const struct dump_members *it, const struct dump_members_want *want)
{
    uint64_t rows = UINT64_C(1) << it->column[want->column].bits;
    return first_id(it, want) + (rows * it->segment_map->n_shards - 1);
}

static int
by_number(const void *a, const void *b)
{
    const struct dump_members_want *x = a, *y = b;
    if (x->column != y->column) {
        return x->column < y->column ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* How many of the n wants are of the same column as the first one. */
static uint32_t
count_column(const struct dump_members_want *want, uint32_t n)
{
    uint32_t k = 1;
    while (k < n && want[k].column == want->column) {
        k++;
    }
    return k;
}

int
dump_members__list_cold(
    struct dump_members *it, uint32_t n_wants, struct cold_pairs *cold)
{
    uint32_t n;
    int err = 0;
    ASSERT(it->segment_map->edit_lock == NULL ||
        mutex_is_held(it->segment_map->edit_lock));
    qsort(it->want, n_wants, sizeof it->want[0], by_number);
    for (uint32_t i = 0; i < n_wants && err == 0; i += n) {
        const struct dump_members_want *want = &it->want[i];
        n = count_column(want, n_wants - i);
        const struct dump_members_column *column = &it->column[want->column];
        err = cold_pairs_init(&cold[want->column], it->segment_map,
            column->pairs, column->pairs_serial, first_id(it, want),
            last_id(it, &want[n - 1]));
    }
    return err == ERR_GONE ? ERR_OTHER_COLUMNS : err;
}

/* The one of n wants, all of one number, that has pairs in that shard; NULL:
 * none. */
static const struct dump_members_want *
of_shard(const struct dump_members_want *want, uint32_t n, unsigned shard)
{
    for (uint32_t i = 0; i < n && want[i].number == want->number; i++) {
        if (want[i].shard == shard) {
            return &want[i];
        }
    }
    return NULL;
}

/* Adds a pair, unless the engine has what counts in its place; false where
 * there is no room. */
static bool
add(struct dump_members *it, const struct dump_members_want *want,
    uint64_t member, uint64_t code, uint32_t n_here)
{
    const struct dump_members_one one = {
        want->record, want->column, (uint8_t)code, member};
    ASSERT(code <= UINT8_MAX);
    if (bsearch(&one, it->found, n_here, sizeof it->found[0],
            dump_members__by_record) != NULL) {
        return true;
    }
    if (it->n_found == it->found_max) {
        return false;
    }
    it->found[it->n_found++] = one;
    return true;
}

/* Those of n wants of one column. */
static int
add_column(struct dump_members *it, const struct dump_members_want *want,
    uint32_t n, uint32_t n_here, struct cold_pairs *cold, bool *is_full)
{
    unsigned bits = it->column[want->column].bits;
    uint32_t w = 0;
    bool is_end = false;
    while (!*is_full) {
        struct cold_pair pair;
        unsigned shard;
        uint64_t row;
        int err = cold_pairs_next(cold, &pair, &is_end);
        if (err != 0 || is_end) {
            return err;
        }
        engine_row(it->engine, pair.id, &shard, &row);
        while (w < n && want[w].number < row >> bits) {
            w++;
        }
        if (w == n) {
            return 0;
        }
        if (want[w].number > row >> bits) {
            cold_pairs_seek(cold, first_id(it, &want[w]));
            continue;
        }
        const struct dump_members_want *one = of_shard(&want[w], n - w, shard);
        *is_full = one != NULL &&
            !add(it, one, row & ~(~UINT64_C(0) << bits), pair.code, n_here);
    }
    return 0;
}

/* Leaves out what the engine says is gone. */
static void
drop_empty(struct dump_members *it)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < it->n_found; i++) {
        if (it->found[i].value != 0) {
            it->found[n++] = it->found[i];
        }
    }
    it->n_found = n;
}

int
dump_members__add_cold(struct dump_members *it, uint32_t n_wants,
    struct cold_pairs *cold, bool *is_full)
{
    uint32_t n_here = it->n_found, n;
    int err = 0;
    qsort(it->found, n_here, sizeof it->found[0], dump_members__by_record);
    for (uint32_t i = 0; i < n_wants && err == 0 && !*is_full; i += n) {
        const struct dump_members_want *want = &it->want[i];
        n = count_column(want, n_wants - i);
        err = add_column(it, want, n, n_here, &cold[want->column], is_full);
    }
    drop_empty(it);
    return err;
}

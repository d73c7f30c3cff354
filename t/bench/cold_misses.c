/* SPDX-License-Identifier: BSD-3-Clause */

/* What is in memory of a segment is the first id of each block. An id below the
 * first one or above the last one of the file needs no block; one between two
 * blocks would need none if the last id of each were known, too. Beside that, a
 * filter over all ids, of so many bits a record: Bloom's ("Space/time
 * trade-offs in hash coding with allowable errors", 1970); and what no filter
 * can do better: with b bits a record, 2^-b of the misses pass. */
#include "bench/cold_misses.h"

#include "base/fold.h"

#include <math.h>
#include <stdlib.h>

enum { ASKED = 100000, FILTERS = 5 };

const struct sheet_column cold_misses_columns[COLD_MISSES_COLUMNS] = {
    {"now", "now", 1},
    {"last", "last ids", 1},
    {"b016", "0.02 B a record", 1},
    {"b1", "1/8 B", 1},
    {"b2", "1/4 B", 1},
    {"b4", "1/2 B", 1},
    {"b8", "1 B", 1},
    {"bound016", "0.02 B, bound", 1},
    {"records", "records a block", 0},
};

static const double filter_bits[FILTERS] = {0.16, 1, 2, 4, 8};

struct filter {
    uint8_t *byte; /* owned */
    uint64_t bits;
    unsigned hashes;
};

/* Bit number i of an id. */
static uint64_t
bit_of(const struct filter *filter, uint64_t id, unsigned i)
{
    uint64_t a = fold_id(id);
    uint64_t b = fold_id(a ^ UINT64_C(0x9e3779b97f4a7c15)) | 1;

    return (a + i * b) % filter->bits;
}

static struct filter
make_filter(const struct cold_records *records, double bits)
{
    double hashes = round(bits * log(2));
    struct filter filter = {.bits = (uint64_t)(bits * (double)records->n) + 1,
        .hashes = hashes < 1 ? 1 : (unsigned)hashes};

    filter.byte = cold_take(filter.bits / 8 + 1);
    for (size_t i = 0; i < records->n; i++) {
        for (unsigned h = 0; h < filter.hashes; h++) {
            uint64_t bit = bit_of(&filter, records->id[i], h);

            filter.byte[bit / 8] |= (uint8_t)(1 << bit % 8);
        }
    }
    return filter;
}

static bool
passes(const struct filter *filter, uint64_t id)
{
    for (unsigned h = 0; h < filter->hashes; h++) {
        uint64_t bit = bit_of(filter, id, h);

        if ((filter->byte[bit / 8] >> bit % 8 & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* What becomes of the ids that are asked for. */
struct shares {
    uint64_t asked, now, last, filter[FILTERS];
};

/* Whether the id lies between the first and the last record of its block. */
static bool
is_inside(const struct cold_records *records, const struct segment *segment,
    uint64_t id, uint32_t block)
{
    uint64_t end = block + 1 < segment_head(segment)->n_blocks
        ? segment_first_id(segment, block + 1)
        : UINT64_MAX;
    size_t from = 0;

    /* the last record before the next block */
    for (size_t n = records->n; n > 1;) {
        size_t half = n / 2;

        from += records->id[from + half] < end ? half : 0;
        n -= half;
    }
    return id < records->id[from];
}

static void
ask(const struct cold_records *records, const struct segment *segment,
    const struct filter *filter, uint64_t id, struct shares *shares)
{
    uint32_t block;

    shares->asked++;
    if (!segment_find(segment, id, &block)) {
        return;
    }
    shares->now++;
    shares->last += is_inside(records, segment, id, block);
    for (size_t f = 0; f < FILTERS; f++) {
        shares->filter[f] += passes(&filter[f], id);
    }
}

void
cold_misses(const struct cold_world *world, const struct cold_choice *choice,
    const struct cold_records *records, const struct segment *segment,
    struct sheet *sheet)
{
    struct posts posts = {.dist = {choice->seed, (enum dist_kind)world->kind},
        .ids = world->ids,
        .columns = world->columns,
        .n = choice->posts};
    double *cell = sheet_add(sheet, "%s", world->name);
    struct filter filter[FILTERS];
    struct shares shares = {0};
    uint64_t value[POSTS_COLUMNS_MAX];
    struct dist_rng rng;

    for (size_t f = 0; f < FILTERS; f++) {
        filter[f] = make_filter(records, filter_bits[f]);
    }
    dist_rng_init(&rng, choice->seed, 2);
    for (size_t i = 0; i < ASKED; i++) {
        uint64_t post = dist_rng_u64(&rng) % posts.n;

        if (!posts_values(&posts, post, value)) {
            ask(records, segment, filter, posts_id(&posts, post), &shares);
        }
    }
    double percent = 100.0 / (double)shares.asked; /* of none: no figures */
    cell[0] = percent * (double)shares.now;
    cell[1] = percent * (double)shares.last;
    for (size_t f = 0; f < FILTERS; f++) {
        cell[2 + f] = percent * (double)shares.filter[f];
        free(filter[f].byte);
    }
    cell[2 + FILTERS] = cell[0] * pow(2, -filter_bits[0]);
    cell[3 + FILTERS] = (double)records->n / segment_head(segment)->n_blocks;
}

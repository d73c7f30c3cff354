/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/cold_worlds.h"

#include "base/bytes.h"
#include "bench/bound.h"
#include "bench/fail.h"
#include "bench/number.h"
#include "bench/rounds.h"
#include "cold/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    ONE_VALUE = 1000,
    FIRST_TIME = 1700000000, /* seconds since 1970 */
    HOUR = 3600
};

enum { ROW_BYTES_MAX = (1 + POSTS_COLUMNS_MAX) * BYTES_VARINT_MAX };

const struct cold_world cold_worlds[COLD_WORLDS] = {
    {"main, 3 columns", POSTS_MAIN, DIST_MAIN, 3, 0, COLD_COUNTS},
    {"heavy, 3 columns", POSTS_MAIN, DIST_HEAVY, 3, 0, COLD_COUNTS},
    {"lognormal, 3 columns", POSTS_MAIN, DIST_LOGNORMAL, 3, 0, COLD_COUNTS},
    {"main and views, 4 columns", POSTS_MAIN, DIST_MAIN, 4, 0, COLD_COUNTS},
    {"main, 16 columns", POSTS_MAIN, DIST_MAIN, 16, 0, COLD_COUNTS},
    {"main, 2 of 3 columns rare", POSTS_MAIN, DIST_MAIN, 3, 2, COLD_COUNTS},
    {"dense in each second", POSTS_DENSE, DIST_MAIN, 3, 0, COLD_COUNTS},
    {"sequential", POSTS_SEQUENTIAL, DIST_MAIN, 3, 0, COLD_COUNTS},
    {"milliseconds, 32 workers", POSTS_MILLISECOND, DIST_MAIN, 3, 0,
        COLD_COUNTS},
    {"milliseconds, 64 workers", POSTS_SNOWFLAKE, DIST_MAIN, 3, 0,
        COLD_COUNTS},
    {"multiples of 2^22", POSTS_MULTIPLE, DIST_MAIN, 3, 0, COLD_COUNTS},
    {"random 64 bits", POSTS_RANDOM, DIST_MAIN, 3, 0, COLD_COUNTS},
    {"wide values", POSTS_MAIN, DIST_MAIN, 3, 0, COLD_WIDE},
    {"one value", POSTS_MAIN, DIST_MAIN, 3, 0, COLD_ONE},
    {"times", POSTS_MAIN, DIST_MAIN, 3, 0, COLD_TIMES},
};

void *
cold_take(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        fail("out of memory");
    }
    return memory;
}

struct keyed {
    uint64_t id;
    size_t at;
};

static int
compare(const void *a, const void *b)
{
    const struct keyed *left = a;
    const struct keyed *right = b;
    return (left->id > right->id) - (left->id < right->id);
}

/* Leaves most of the columns from the second on empty. */
static bool
thin(const struct cold_world *world, uint64_t post, uint64_t *value)
{
    uint64_t any = value[0];
    if (world->rare == 0) {
        return true;
    }
    for (unsigned c = 1; c <= world->rare; c++) {
        value[c] = (post + 7 * c) * UINT64_C(0x9e3779b97f4a7c15) >> 32 <
                (UINT64_C(1) << 32) / 50
            ? value[c]
            : 0;
        any |= value[c];
    }
    return any != 0;
}

/* Puts numbers of the world's kind in the place of those drawn. */
static void
exchange(const struct cold_world *world, uint64_t post, uint64_t *value)
{
    struct dist_rng rng;
    dist_rng_init(&rng, post, COLD_WIDE);
    for (unsigned c = 0; c < world->columns; c++) {
        uint64_t drawn = dist_rng_u64(&rng);
        switch ((enum cold_values)world->values) {
        case COLD_WIDE:
            value[c] = drawn;
            break;
        case COLD_ONE:
            value[c] = ONE_VALUE;
            break;
        case COLD_TIMES:
            value[c] = FIRST_TIME + post / DIST_POSTS_A_SECOND + drawn % HOUR;
            break;
        case COLD_COUNTS:
            break;
        }
    }
}

struct cold_records
cold_records_make(
    const struct cold_world *world, uint64_t n_posts, uint64_t seed)
{
    struct posts posts = {.dist = {seed, (enum dist_kind)world->kind},
        .ids = world->ids,
        .columns = world->columns,
        .n = n_posts};
    struct cold_records records = {.columns = world->columns};
    struct bound bound = bound_of(&posts);
    uint64_t value[POSTS_COLUMNS_MAX];
    uint64_t *made[POSTS_COLUMNS_MAX];
    struct keyed *key = cold_take(n_posts * sizeof(*key));
    records.id = cold_take(n_posts * sizeof(*records.id));
    records.bound_bytes = world->rare > 0 || world->values != COLD_COUNTS
        ? (double)NAN
        : bound_bytes(&bound);
    for (unsigned c = 0; c < world->columns; c++) {
        made[c] = cold_take(n_posts * sizeof(*made[c]));
        records.code[c] = cold_take(n_posts * sizeof(*made[c]));
    }
    for (uint64_t post = 0; post < n_posts; post++) {
        if (!posts_values(&posts, post, value) || !thin(world, post, value)) {
            continue;
        }
        exchange(world, post, value);
        key[records.n] = (struct keyed){posts_id(&posts, post), records.n};
        for (unsigned c = 0; c < world->columns; c++) {
            made[c][records.n] = value[c];
        }
        records.n++;
    }
    qsort(key, records.n, sizeof(*key), compare);
    for (size_t i = 0; i < records.n; i++) {
        records.id[i] = key[i].id;
        for (unsigned c = 0; c < world->columns; c++) {
            records.code[c][i] = made[c][key[i].at];
        }
    }
    for (unsigned c = 0; c < world->columns; c++) {
        free(made[c]);
    }
    free(key);
    return records;
}

void
cold_records_drop(struct cold_records *records)
{
    free(records->id);
    for (unsigned c = 0; c < records->columns; c++) {
        free(records->code[c]);
    }
}

static size_t
put_rows(
    const struct cold_records *records, size_t from, size_t n, uint8_t *out)
{
    uint8_t *at = out;
    for (size_t i = from; i < from + n; i++) {
        at += bytes_put_varint(
            at, records->id[i] - (i == from ? 0 : records->id[i - 1]));
        for (unsigned c = 0; c < records->columns; c++) {
            at += bytes_put_varint(at, records->code[c][i]);
        }
    }
    return (size_t)(at - out);
}

double
cold_rows_bytes(const struct cold_records *records, int level)
{
    enum { ROWS_MAX = 1 << 14, SAMPLES = 40 };
    uint8_t *raw = cold_take((size_t)ROWS_MAX * ROW_BYTES_MAX);
    size_t room = ZSTD_compressBound((size_t)ROWS_MAX * ROW_BYTES_MAX);
    uint8_t *out = cold_take(room);
    size_t taken = 0;
    for (size_t s = 0; s < SAMPLES; s++) {
        size_t from = records->n / (SAMPLES + 1) * s;
        size_t fits = 1;
        size_t too_many =
            records->n - from < ROWS_MAX ? records->n - from : ROWS_MAX;
        while (fits + 1 < too_many) {
            size_t n = fits + (too_many - fits) / 2;
            size_t len = ZSTD_compress(
                out, room, raw, put_rows(records, from, n, raw), level);
            if (len + BLOCK_HEAD_BYTES + BLOCK_SUM_BYTES <= BLOCK_BYTES_MAX) {
                fits = n;
            } else {
                too_many = n;
            }
        }
        taken += fits;
    }
    free(out);
    free(raw);
    return (double)SAMPLES * BLOCK_BYTES_MAX / (double)taken;
}

bool
cold_choose(struct cold_choice *choice, int letter)
{
    switch (letter) {
    case 'n':
        choice->posts =
            number_within("records", optarg, 10000, UINT64_C(100000000));
        return true;
    case 'r':
        choice->rounds = number_within("rounds", optarg, 1, ROUNDS_MAX);
        return true;
    case 'l':
        choice->level = number_within("level", optarg, 1, 22);
        return true;
    case 'S':
        choice->seed = number_within("seed", optarg, 0, UINT64_MAX);
        return true;
    case 'c':
        choice->only = optarg;
        return true;
    case 'C':
        choice->codec = optarg;
        return true;
    case 's':
        choice->is_sizes_only = true;
        return true;
    case 'q':
        choice->posts = COLD_RECORDS_QUICK;
        choice->rounds = 1;
        return true;
    default:
        return false;
    }
}

bool
cold_is_wanted(
    const struct cold_choice *choice, const struct cold_world *world)
{
    return choice->only == NULL || strstr(world->name, choice->only) != NULL;
}

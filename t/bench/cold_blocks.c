/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures the blocks of the cold tier: bytes a record for each distribution
 * with each codec forced, slack and heads included, beside rows compressed by
 * zstd and what the information in the numbers asks for; CPU time for encoding,
 * decoding and looking for one id. All blocks are decoded and compared; a
 * number that reads back wrong ends it with status 1. See
 * doc/measurements.md. */

#include "bench/cold_worlds.h"
#include "bench/fail.h"
#include "bench/rounds.h"
#include "bench/sheet.h"
#include "cold/block_build.h"
#include "cold/warm.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_USAGE = 2,
    ROUNDS = 5,
    FINDS = 200000, /* a round */
    CODECS = BLOCK_AUTO + 1,
    BLOCK_SEED = 7
};

/* Blocks one behind the other. */
struct blocks {
    size_t n, room;
    uint8_t (*bytes)[BLOCK_BYTES_MAX]; /* owned */
    size_t *first;                     /* owned: number of the first record */
    size_t by_codec[BLOCK_CODEC_COUNT];
};

struct lab {
    struct cold_choice choice;
    struct sheet sizes, times;
};

static const struct sheet_column size_columns[] = {
    {"bound", "bound", 2},
    {"rows", "rows + zstd", 2},
    {"plain", "plain", 2},
    {"zstd", "zstd", 2},
    {"packed", "packed", 2},
    {"auto", "auto", 2},
    {"records", "records a block", 0},
    {"packed_share", "packed, % of blocks", 0},
};

static const struct sheet_column time_columns[] = {
    {"encode_ns", "encode, ns a record", 1},
    {"millions", "10^6 records a second", 1},
    {"decode_us", "decode, us a block", 2},
    {"find_ns", "find, ns", 0},
    {"open_ns", "check, ns", 0},
    {"warm_ns", "make warm, ns", 0},
    {"warm_find_ns", "find warm, ns", 0},
    {"warm_bytes", "warm, bytes a block", 0},
};

enum { TIME_FIND = 3, TIME_OPEN, TIME_WARM, TIME_WARM_FIND, TIME_WARM_BYTES };

static void
cut(struct block_builder *builder, struct blocks *blocks, bool is_end)
{
    size_t len, n;
    if (blocks->n + 1 >= blocks->room) {
        blocks->room = 2 * blocks->room + 64;
        blocks->bytes =
            realloc(blocks->bytes, blocks->room * sizeof(*blocks->bytes));
        blocks->first =
            realloc(blocks->first, blocks->room * sizeof(*blocks->first));
        if (blocks->bytes == NULL || blocks->first == NULL) {
            fail("out of memory");
        }
        blocks->first[0] = 0;
    }
    if (block_builder_cut(builder, is_end, BLOCK_SEED,
            blocks->bytes[blocks->n], &len, &n) != 0) {
        fail("out of memory");
    }
    if (len > 0) {
        blocks->first[blocks->n + 1] = blocks->first[blocks->n] + n;
        blocks->by_codec[blocks->bytes[blocks->n][1]]++;
        blocks->n++;
    }
}

static void
encode(const struct cold_records *records, struct block_builder *builder,
    struct blocks *blocks)
{
    uint64_t code[POSTS_COLUMNS_MAX];
    blocks->n = 0;
    memset(blocks->by_codec, 0, sizeof(blocks->by_codec));
    for (size_t i = 0; i < records->n; i++) {
        for (unsigned c = 0; c < records->columns; c++) {
            code[c] = records->code[c][i];
        }
        block_builder_add(builder, records->id[i], code);
        while (block_builder_is_full(builder)) {
            cut(builder, blocks, false);
        }
    }
    while (block_builder_count(builder) > 0) {
        cut(builder, blocks, true);
    }
}

static void
open_block(const struct blocks *blocks, size_t i, struct block *block)
{
    if (block_open(blocks->bytes[i], BLOCK_BYTES_MAX, BLOCK_SEED, block) !=
        0) {
        fail("block %zu is damaged", i);
    }
}

/* Decodes all; compares where records are given. */
static void
decode(const struct blocks *blocks, const struct cold_records *records,
    struct block_room *room, uint64_t **array)
{
    for (size_t i = 0; i < blocks->n; i++) {
        struct block block;
        size_t at = blocks->first[i];
        open_block(blocks, i, &block);
        if (block_decode(&block, room, array[0], array + 1) != 0) {
            fail("block %zu does not decode", i);
        }
        if (records == NULL) {
            continue;
        }
        size_t bytes = block.n * sizeof(**array);
        bool same = block.n == blocks->first[i + 1] - at &&
            memcmp(array[0], records->id + at, bytes) == 0;
        for (unsigned c = 0; c < records->columns; c++) {
            same = same &&
                memcmp(array[1 + c], records->code[c] + at, bytes) == 0;
        }
        if (!same) {
            fail("block %zu reads back wrong", i);
        }
    }
}

static void
keep_least(double *least, double value)
{
    if (isnan(*least) || value < *least) {
        *least = value;
    }
}

/* A block that is asked: as it was read, and as a cache keeps it. */
struct opened {
    struct block block;
    struct warm *warm; /* owned */
    size_t bytes;      /* of it */
};

static void *
take_warm(void *context, size_t bytes)
{
    struct opened *opened = context;
    opened->bytes = bytes;
    return cold_take(bytes);
}

/* Opens the first n blocks and makes them warm; returns ns for one. */
static double
warm_up(const struct blocks *blocks, size_t n, struct block_room *room,
    struct opened *opened)
{
    for (size_t i = 0; i < n; i++) {
        open_block(blocks, i, &opened[i].block);
    }
    uint64_t start = rounds_cpu_ns();
    for (size_t i = 0; i < n; i++) {
        if (warm_make(&opened[i].block, room, take_warm, &opened[i],
                &opened[i].warm) != 0) {
            fail("block %zu is not made warm", i);
        }
    }
    return (double)(rounds_cpu_ns() - start) / (double)n;
}

/* Looks for ids that are there, each in its block; returns ns for one. */
static double
find_in(const struct blocks *blocks, const struct cold_records *records,
    const struct opened *opened, size_t n_open, struct block_room *room,
    const uint64_t *drawn)
{
    uint64_t code[SCHEMA_COLUMNS_MAX];
    uint64_t wrong = 0;
    uint64_t ns = 0;
    for (size_t b = 0; b < n_open; b++) {
        size_t n = blocks->first[b + 1] - blocks->first[b];
        uint64_t start = rounds_cpu_ns();
        for (size_t i = b; i < FINDS; i += n_open) {
            size_t at = blocks->first[b] + drawn[i] % n;
            uint64_t id = records->id[at];
            bool found = false;
            int err = room == NULL
                ? warm_find(
                      opened[b].warm, id, BLOCK_COLUMNS_ALL, code, &found)
                : block_find(&opened[b].block, room, id, code, &found);
            if (err != 0 || !found) {
                fail("id %" PRIu64 " is not found", id);
            }
            for (unsigned c = 0; c < records->columns; c++) {
                wrong += code[c] != records->code[c][at];
            }
        }
        ns += rounds_cpu_ns() - start;
    }
    if (wrong > 0) {
        fail("%" PRIu64 " numbers are found wrong", wrong);
    }
    return (double)ns / FINDS;
}

static void
find(const struct blocks *blocks, const struct cold_records *records,
    struct block_room *room, uint64_t seed, double *times)
{
    enum { OPEN_MAX = 64 };
    size_t n_open = blocks->n < OPEN_MAX ? blocks->n : OPEN_MAX;
    struct opened *opened = cold_take(n_open * sizeof(*opened));
    uint64_t *drawn = cold_take(FINDS * sizeof(*drawn));
    double bytes = 0;
    struct dist_rng rng;
    dist_rng_init(&rng, seed, 1);
    for (size_t i = 0; i < FINDS; i++) {
        drawn[i] = dist_rng_u64(&rng) % blocks->first[n_open];
    }
    keep_least(&times[TIME_WARM], warm_up(blocks, n_open, room, opened));
    keep_least(&times[TIME_FIND],
        find_in(blocks, records, opened, n_open, room, drawn));
    keep_least(&times[TIME_WARM_FIND],
        find_in(blocks, records, opened, n_open, NULL, drawn));
    for (size_t i = 0; i < n_open; i++) {
        bytes += (double)opened[i].bytes;
        free(opened[i].warm);
    }
    times[TIME_WARM_BYTES] = bytes / (double)n_open;
    free(opened);
    free(drawn);
}

/* Encodes with one codec, checks, and measures if there is a row for it;
 * returns bytes a record. */
static double
run_codec(struct lab *lab, const struct cold_records *records,
    enum block_codec codec, double *times, double *packed_percent)
{
    struct block_options options = {
        codec, (int)lab->choice.level, records->columns};
    struct block_builder *builder;
    struct blocks blocks = {0};
    struct block_room room = {0};
    uint64_t *array[1 + SCHEMA_COLUMNS_MAX];
    if (block_builder_create(&options, NULL, &builder) != 0) {
        fail("out of memory");
    }
    for (unsigned c = 0; c <= records->columns; c++) {
        array[c] = cold_take(BLOCK_RECORDS_MAX * sizeof(**array));
    }
    encode(records, builder, &blocks);
    decode(&blocks, records, &room, array);
    for (uint64_t r = 0; times != NULL && r < lab->choice.rounds; r++) {
        uint64_t start = rounds_cpu_ns();
        encode(records, builder, &blocks);
        uint64_t encoded = rounds_cpu_ns();
        decode(&blocks, NULL, &room, array);
        uint64_t decoded = rounds_cpu_ns();
        for (size_t i = 0; i < blocks.n; i++) {
            struct block block;
            open_block(&blocks, i, &block);
        }
        uint64_t opened = rounds_cpu_ns();
        double n = (double)records->n;
        keep_least(&times[0], (double)(encoded - start) / n);
        times[1] = 1e3 / times[0];
        keep_least(
            &times[2], (double)(decoded - encoded) / 1e3 / (double)blocks.n);
        find(&blocks, records, &room, lab->choice.seed + r, times);
        keep_least(
            &times[TIME_OPEN], (double)(opened - decoded) / (double)blocks.n);
    }
    double bytes = (double)blocks.n * BLOCK_BYTES_MAX / (double)records->n;
    *packed_percent =
        100.0 * (double)blocks.by_codec[BLOCK_PACKED] / (double)blocks.n;
    block_builder_destroy(&builder);
    block_room_fini(&room);
    for (unsigned c = 0; c <= records->columns; c++) {
        free(array[c]);
    }
    free(blocks.bytes);
    free(blocks.first);
    return bytes;
}

static void
run_world(struct lab *lab, const struct cold_world *world)
{
    rounds_progress("%s", world->name);
    struct cold_records records =
        cold_records_make(world, lab->choice.posts, lab->choice.seed);
    double *sizes = sheet_add(&lab->sizes, "%s", world->name);
    sizes[0] = records.bound_bytes;
    sizes[1] = cold_rows_bytes(&records, (int)lab->choice.level);
    for (int codec = 0; codec < CODECS; codec++) {
        double *times = NULL;
        if (lab->choice.codec != NULL &&
            strcmp(lab->choice.codec,
                block_codec_name((enum block_codec)codec)) != 0) {
            continue;
        }
        if (!lab->choice.is_sizes_only) {
            times = sheet_add(&lab->times, "%s: %s", world->name,
                block_codec_name((enum block_codec)codec));
        }
        sizes[2 + codec] = run_codec(
            lab, &records, (enum block_codec)codec, times, &sizes[3 + CODECS]);
    }
    sizes[2 + CODECS] = BLOCK_BYTES_MAX / sizes[1 + CODECS];
    cold_records_drop(&records);
    rounds_progress(NULL);
}

static const struct option options[] = {
    COLD_OPTIONS,
    {NULL, 0, NULL, 0},
};

static void
help(void)
{
    printf("Usage: cold_blocks [OPTION]...\n"
           "Measures the blocks of tallyd's cold tier: bytes a record and CPU "
           "time.\n\n"
           "  --records=N      posts in each distribution [%d]\n"
           "  --rounds=N       rounds of timing; the least counts [%d]\n"
           "  --level=N        of zstd [%d]\n"
           "  --seed=N         of posts and numbers [1]\n"
           "  --case=TEXT      only distributions whose name has TEXT in it\n"
           "  --codec=NAME     only plain, zstd, packed or auto\n"
           "  --sizes          bytes only\n"
           "  --quick          few records: to see that it works\n"
           "  --help           this text\n",
        COLD_RECORDS, ROUNDS, BLOCK_LEVEL_DEFAULT);
}

int
main(int argc, char **argv)
{
    static struct lab lab = {.choice = {.posts = COLD_RECORDS,
                                 .rounds = ROUNDS,
                                 .seed = 1,
                                 .level = BLOCK_LEVEL_DEFAULT},
        .sizes = {.key = "sizes",
            .head = "bytes a record",
            .column = size_columns,
            .n_columns = sizeof(size_columns) / sizeof(size_columns[0])},
        .times = {.key = "times",
            .head = "CPU time",
            .column = time_columns,
            .n_columns = sizeof(time_columns) / sizeof(time_columns[0])}};
    int letter;
    while ((letter = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (letter == 'h') {
            help();
            return EXIT_SUCCESS;
        }
        if (!cold_choose(&lab.choice, letter)) {
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(
            stderr, "cold_blocks: no option %s; see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < COLD_WORLDS; i++) {
        if (cold_is_wanted(&lab.choice, &cold_worlds[i])) {
            run_world(&lab, &cold_worlds[i]);
        }
    }
    sheet_print(&lab.sizes, stdout);
    sheet_print(&lab.times, stdout);
    return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures segment files of the cold tier: bytes a record of the whole file on
 * disk and of memory for its index, with each codec forced; CPU time of sealing
 * (encoding, writing and syncing), of reading all records in order, of a lookup
 * whose block is in the page cache, and of opening a file. All files are read
 * back and compared; a number that is wrong ends it with status 1. See
 * doc/measurements.md. */

#include "bench/cold_file.h"
#include "bench/fail.h"
#include "bench/rounds.h"
#include "bench/sheet.h"
#include "cold/block_build.h"
#include "cold/segment_scan.h"
#include "lib/segment_get.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    ROUNDS = 3,
    GETS = 20000,      /* a round */
    OPENS = 20,        /* a round */
    PAGE_BYTES = 4096, /* what a file system gives out */
    CODECS = BLOCK_AUTO + 1
};

struct lab {
    struct cold_choice choice;
    const char *directory;
    const char *json;  /* a file, or NULL */
    struct disk *disk; /* of directory */
    struct sheet sizes, times;
};

static const struct sheet_column size_columns[] = {
    {"bound", "bound", 2},
    {"rows", "rows + zstd", 2},
    {"plain", "plain", 2},
    {"zstd", "zstd", 2},
    {"packed", "packed", 2},
    {"auto", "auto", 2},
    {"memory", "memory", 4},
    {"blocks", "blocks", 0},
    {"around", "head and index, % of the file", 2},
};

static const struct sheet_column time_columns[] = {
    {"seal", "seal, 10^6 records a second", 1},
    {"scan", "read in order, 10^6 records a second", 1},
    {"get_us", "get, us", 2},
    {"open_us", "open, us", 0},
};

enum { SIZE_MEMORY = 2 + CODECS, SIZE_BLOCKS, SIZE_AROUND };
enum { TIME_SEAL, TIME_SCAN, TIME_GET, TIME_OPEN };

/* Whether these are the records from number `at` on. */
static bool
is_same(const struct segment_records *batch,
    const struct cold_records *records, size_t at)
{
    size_t bytes = batch->n * sizeof(*batch->id);
    bool same = batch->n <= records->n - at &&
        memcmp(batch->id, records->id + at, bytes) == 0;
    for (unsigned c = 0; same && c < records->columns; c++) {
        same = memcmp(batch->code[c], records->code[c] + at, bytes) == 0;
    }
    return same;
}

/* Reads all in order; compares where records are given. */
static void
scan(const struct segment *segment, const struct cold_records *records)
{
    struct segment_scan *scan;
    struct segment_records batch;
    size_t n = 0;
    int err = segment_scan_create(segment, 0, NULL, &scan);
    while (err == 0) {
        err = segment_scan_next(scan, &batch);
        if (err == 0 && batch.n == 0) {
            break;
        }
        if (err != 0 || (records != NULL && !is_same(&batch, records, n))) {
            fail("a segment reads back wrong");
        }
        n += batch.n;
    }
    segment_scan_destroy(&scan);
    if (err != 0 || n != segment_head(segment)->records) {
        fail("a segment does not read back");
    }
}

/* Looks for ids that are there, one by one; returns ns for one. */
static double
get(const struct segment *segment, const struct cold_records *records,
    struct segment_room *room, uint64_t seed)
{
    size_t *drawn = cold_take(GETS * sizeof(*drawn));
    uint64_t wrong = 0;
    struct dist_rng rng;
    dist_rng_init(&rng, seed, 1);
    for (size_t i = 0; i < GETS; i++) {
        drawn[i] = dist_rng_u64(&rng) % records->n;
    }
    uint64_t start = rounds_cpu_ns();
    for (size_t i = 0; i < GETS; i++) {
        uint64_t code[1][SCHEMA_COLUMNS_MAX];
        bool found = false;
        if (segment_get(
                segment, room, &records->id[drawn[i]], 1, code, &found) != 0 ||
            !found) {
            fail("id %" PRIu64 " is not found", records->id[drawn[i]]);
        }
        for (unsigned c = 0; c < records->columns; c++) {
            wrong += code[0][c] != records->code[c][drawn[i]];
        }
    }
    uint64_t ns = rounds_cpu_ns() - start;
    free(drawn);
    if (wrong > 0) {
        fail("%" PRIu64 " numbers are found wrong", wrong);
    }
    return (double)ns / GETS;
}

static double
more_of(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

static double
less_of(double a, double b)
{
    return isnan(a) || b < a ? b : a;
}

static void
time_codec(const struct lab *lab, const struct cold_records *records,
    enum block_codec codec, double *times)
{
    static struct segment_room room;
    for (uint64_t r = 0; r < lab->choice.rounds; r++) {
        uint64_t start = rounds_cpu_ns();
        cold_file_write(lab->disk, records, codec, (int)lab->choice.level);
        uint64_t sealed = rounds_cpu_ns();
        for (int i = 0; i < OPENS; i++) {
            struct segment *segment = cold_file_open(lab->disk);
            segment_close(&segment);
        }
        uint64_t opened = rounds_cpu_ns();
        struct segment *segment = cold_file_open(lab->disk);
        uint64_t begun = rounds_cpu_ns();
        scan(segment, NULL);
        uint64_t read = rounds_cpu_ns();
        double n = (double)records->n;
        times[TIME_SEAL] =
            more_of(times[TIME_SEAL], 1e3 * n / (double)(sealed - start));
        times[TIME_SCAN] =
            more_of(times[TIME_SCAN], 1e3 * n / (double)(read - begun));
        times[TIME_OPEN] =
            less_of(times[TIME_OPEN], (double)(opened - sealed) / 1e3 / OPENS);
        times[TIME_GET] = less_of(times[TIME_GET],
            get(segment, records, &room, lab->choice.seed + r) / 1e3);
        segment_close(&segment);
    }
    block_room_fini(&room.room);
}

/* What the file takes on disk. */
static double
disk_bytes(const struct segment_head *head)
{
    uint64_t pages = (segment_file_bytes(head) + PAGE_BYTES - 1) / PAGE_BYTES;
    return (double)(pages * PAGE_BYTES);
}

static void
run_codec(struct lab *lab, const struct cold_records *records,
    enum block_codec codec, double *sizes, double *times)
{
    cold_file_write(lab->disk, records, codec, (int)lab->choice.level);
    struct segment *segment = cold_file_open(lab->disk);
    const struct segment_head *head = segment_head(segment);
    double bytes = disk_bytes(head);
    double n = (double)records->n;
    scan(segment, records);
    sizes[2 + codec] = bytes / n;
    if (codec == BLOCK_AUTO) {
        sizes[SIZE_MEMORY] = (double)segment_memory(segment) / n;
        sizes[SIZE_BLOCKS] = head->n_blocks;
        sizes[SIZE_AROUND] =
            100.0 * (bytes - (double)head->n_blocks * BLOCK_BYTES_MAX) / bytes;
    }
    segment_close(&segment);
    if (times != NULL) {
        time_codec(lab, records, codec, times);
    }
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
        const char *word = block_codec_name((enum block_codec)codec);
        double *times = NULL;
        if (lab->choice.codec != NULL &&
            strcmp(lab->choice.codec, word) != 0) {
            continue;
        }
        if (!lab->choice.is_sizes_only) {
            times = sheet_add(&lab->times, "%s: %s", world->name, word);
        }
        run_codec(lab, &records, (enum block_codec)codec, sizes, times);
    }
    cold_records_drop(&records);
    rounds_progress(NULL);
}

static const struct option options[] = {
    {"directory", required_argument, NULL, 'd'},
    {"json", required_argument, NULL, 'j'},
    COLD_OPTIONS,
    {NULL, 0, NULL, 0},
};

static void
help(void)
{
    printf("Usage: segments [OPTION]...\n"
           "Measures segment files of tallyd's cold tier: bytes a record and "
           "CPU time.\n\n"
           "  --records=N      posts in each distribution [%d]\n"
           "  --rounds=N       rounds of timing; the best counts [%d]\n"
           "  --level=N        of zstd [%d]\n"
           "  --seed=N         of posts and numbers [1]\n"
           "  --case=TEXT      only distributions whose name has TEXT in it\n"
           "  --codec=NAME     only plain, zstd, packed or auto\n"
           "  --directory=DIR  where the file is made and removed [.]\n"
           "  --sizes          bytes only\n"
           "  --json=FILE      write all figures there too\n"
           "  --quick          few records: to see that it works\n"
           "  --help           this text\n",
        COLD_RECORDS, ROUNDS, BLOCK_LEVEL_DEFAULT);
}

/* Takes one option. False for one that does not exist. */
static bool
take_option(struct lab *lab, int letter)
{
    if (letter == 'd') {
        lab->directory = optarg;
        return true;
    }
    if (letter == 'j') {
        lab->json = optarg;
        return true;
    }
    return cold_choose(&lab->choice, letter);
}

static void
run(struct lab *lab)
{
    int fd;
    lab->disk = cold_file_disk(lab->directory, &fd);
    for (size_t i = 0; i < COLD_WORLDS; i++) {
        if (cold_is_wanted(&lab->choice, &cold_worlds[i])) {
            run_world(lab, &cold_worlds[i]);
        }
    }
    cold_file_remove(lab->disk);
    disk_real_destroy(&lab->disk);
    (void)close(fd);
    sheet_print(&lab->sizes, stdout);
    sheet_print(&lab->times, stdout);
    if (lab->json != NULL) {
        const struct sheet *sheet[] = {&lab->sizes, &lab->times};
        sheet_write_json(sheet, 2, lab->json);
    }
}

int
main(int argc, char **argv)
{
    static struct lab lab = {.choice = {.posts = COLD_RECORDS,
                                 .rounds = ROUNDS,
                                 .seed = 1,
                                 .level = BLOCK_LEVEL_DEFAULT},
        .directory = ".",
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
        if (!take_option(&lab, letter)) {
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "segments: no option %s; see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    run(&lab);
    return EXIT_SUCCESS;
}

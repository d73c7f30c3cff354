/* SPDX-License-Identifier: BSD-3-Clause */

/* The records of the cold tier in RocksDB, beside t/bench/segments: bytes a
 * record of its table files and of what it keeps in memory to find a block in
 * them. A key is the id, big-endian, so that keys are in the order of the ids;
 * a value the columns as varints. Everything is compressed by zstd and
 * compacted into the last level, where records have lost their sequence
 * numbers; there is no Bloom filter. All records are read back and compared; a
 * number that is wrong ends it with status 1. See doc/measurements.md. */

#include "base/bytes.h"
#include "bench/cold_worlds.h"
#include "bench/fail.h"
#include "bench/rounds.h"
#include "bench/sheet.h"
#include "cold/block_build.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    PAGE_BYTES = 4096,
    KEY_BYTES = 8,
    VALUE_BYTES_MAX = POSTS_COLUMNS_MAX * BYTES_VARINT_MAX,
    FORCE = 2, /* kForce of its BottommostLevelCompaction */
    PATH_BYTES_MAX = 4096
};

struct lab {
    struct cold_choice choice;
    const char *directory, *json;
    struct sheet sizes;
};

/* Bytes of its blocks: its default, and as many as make fewer of them. */
static const size_t block_bytes[] = {4096, 16384};
enum { SIZES = sizeof(block_bytes) / sizeof(block_bytes[0]) };

static const struct sheet_column size_columns[] = {
    {"disk_4k", "RocksDB, blocks of 4 KB", 2},
    {"memory_4k", "its memory", 4},
    {"disk_16k", "RocksDB, blocks of 16 KB", 2},
    {"memory_16k", "its memory", 4},
};

static void
check(char *error, const char *what)
{
    if (error != NULL) {
        fail("rocksdb, %s: %s", what, error);
    }
}

static rocksdb_options_t *
make_options(size_t block, int level)
{
    enum { WINDOW_DEFAULT = -14 };
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_block_based_table_options_t *table =
        rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_size(table, block);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_error_if_exists(options, 1);
    rocksdb_options_set_compression(options, rocksdb_zstd_compression);
    rocksdb_options_set_compression_options(
        options, WINDOW_DEFAULT, level, 0, 0);
    return options;
}

static void
put_key(uint8_t *key, uint64_t id)
{
    for (unsigned i = 0; i < KEY_BYTES; i++) {
        key[i] = (uint8_t)(id >> (8 * (KEY_BYTES - 1 - i)));
    }
}

static size_t
put_value(uint8_t *out, const struct cold_records *records, size_t i)
{
    uint8_t *at = out;
    for (unsigned c = 0; c < records->columns; c++) {
        at += bytes_put_varint(at, records->code[c][i]);
    }
    return (size_t)(at - out);
}

static void
store(rocksdb_t *db, const struct cold_records *records)
{
    uint8_t key[KEY_BYTES], value[VALUE_BYTES_MAX];
    char *error = NULL;
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    rocksdb_compactoptions_t *compact = rocksdb_compactoptions_create();
    rocksdb_writeoptions_disable_WAL(write, 1);
    for (size_t i = 0; i < records->n; i++) {
        put_key(key, records->id[i]);
        size_t len = put_value(value, records, i);
        rocksdb_put(db, write, (const char *)key, sizeof(key),
            (const char *)value, len, &error);
        check(error, "put");
    }
    rocksdb_compactoptions_set_bottommost_level_compaction(compact, FORCE);
    rocksdb_compact_range_opt(db, compact, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(compact);
    rocksdb_writeoptions_destroy(write);
}

/* Reads all in order and compares. */
static void
verify(rocksdb_t *db, const struct cold_records *records)
{
    uint8_t key[KEY_BYTES], value[VALUE_BYTES_MAX];
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_iterator_t *it = rocksdb_create_iterator(db, read);
    size_t i = 0;
    for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it);
         rocksdb_iter_next(it), i++) {
        size_t key_len, value_len;
        const char *its_key = rocksdb_iter_key(it, &key_len);
        const char *its_value = rocksdb_iter_value(it, &value_len);
        if (i == records->n) {
            break;
        }
        put_key(key, records->id[i]);
        if (key_len != sizeof(key) || memcmp(its_key, key, key_len) != 0 ||
            value_len != put_value(value, records, i) ||
            memcmp(its_value, value, value_len) != 0) {
            fail("rocksdb reads back wrong");
        }
    }
    if (rocksdb_iter_valid(it) || i != records->n) {
        fail("rocksdb does not read back");
    }
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(read);
}

/* What its table files take on disk. */
static double
disk_bytes(const char *path)
{
    double sum = 0;
    struct dirent *entry;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        fail_errno(path);
    }
    while ((entry = readdir(directory)) != NULL) {
        const char *end = strrchr(entry->d_name, '.');
        struct stat status;
        if (end == NULL || strcmp(end, ".sst") != 0) {
            continue;
        }
        if (fstatat(dirfd(directory), entry->d_name, &status, 0) != 0) {
            fail_errno(entry->d_name);
        }
        sum += (double)((status.st_size + PAGE_BYTES - 1) / PAGE_BYTES *
            PAGE_BYTES);
    }
    (void)closedir(directory);
    return sum;
}

static double
memory_bytes(rocksdb_t *db)
{
    char *text =
        rocksdb_property_value(db, "rocksdb.estimate-table-readers-mem");
    if (text == NULL) {
        fail("rocksdb does not know its memory");
    }
    double bytes = strtod(text, NULL);
    rocksdb_free(text);
    return bytes;
}

static void
run_size(const struct lab *lab, const struct cold_records *records,
    size_t block, double *cells)
{
    char path[PATH_BYTES_MAX];
    char *error = NULL;
    snprintf(
        path, sizeof(path), "%s/rocks-%ld", lab->directory, (long)getpid());
    rocksdb_options_t *options = make_options(block, (int)lab->choice.level);
    rocksdb_t *db = rocksdb_open(options, path, &error);
    check(error, "open");
    store(db, records);
    verify(db, records);
    cells[0] = disk_bytes(path) / (double)records->n;
    cells[1] = memory_bytes(db) / (double)records->n;
    rocksdb_close(db);
    rocksdb_destroy_db(options, path, &error);
    check(error, "remove");
    rocksdb_options_destroy(options);
}

static void
run_world(struct lab *lab, const struct cold_world *world)
{
    rounds_progress("RocksDB: %s", world->name);
    struct cold_records records =
        cold_records_make(world, lab->choice.posts, lab->choice.seed);
    double *cells = sheet_add(&lab->sizes, "%s", world->name);
    for (size_t i = 0; i < SIZES; i++) {
        run_size(lab, &records, block_bytes[i], cells + 2 * i);
    }
    cold_records_drop(&records);
    rounds_progress(NULL);
}

static const struct option options_known[] = {
    {"directory", required_argument, NULL, 'd'},
    {"json", required_argument, NULL, 'j'},
    COLD_OPTIONS,
    {NULL, 0, NULL, 0},
};

static void
help(void)
{
    printf("Usage: rocks [OPTION]...\n"
           "Measures RocksDB with the records that segments measures tallyd "
           "with: bytes a\nrecord.\n\n"
           "  --records=N      posts in each distribution [%d]\n"
           "  --level=N        of zstd [%d]\n"
           "  --seed=N         of posts and numbers [1]\n"
           "  --case=TEXT      only distributions whose name has TEXT in it\n"
           "  --directory=DIR  where its directory is made and removed [.]\n"
           "  --json=FILE      write all figures there too\n"
           "  --quick          few records: to see that it works\n"
           "  --help           this text\n",
        COLD_RECORDS, BLOCK_LEVEL_DEFAULT);
}

/* Takes one option. False for one that does not exist. */
static bool
take_option(struct lab *lab, int letter)
{
    switch (letter) {
    case 'd':
        lab->directory = optarg;
        return true;
    case 'j':
        lab->json = optarg;
        return true;
    default:
        return cold_choose(&lab->choice, letter);
    }
}

int
main(int argc, char **argv)
{
    static struct lab lab = {.choice = {.posts = COLD_RECORDS,
                                 .seed = 1,
                                 .level = BLOCK_LEVEL_DEFAULT},
        .directory = ".",
        .sizes = {.key = "rocksdb",
            .head = "bytes a record",
            .column = size_columns,
            .n_columns = sizeof(size_columns) / sizeof(size_columns[0])}};
    int letter;
    while (
        (letter = getopt_long(argc, argv, "h", options_known, NULL)) != -1) {
        if (letter == 'h') {
            help();
            return EXIT_SUCCESS;
        }
        if (!take_option(&lab, letter)) {
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "rocks: no option %s; see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < COLD_WORLDS; i++) {
        if (cold_is_wanted(&lab.choice, &cold_worlds[i])) {
            run_world(&lab, &cold_worlds[i]);
        }
    }
    sheet_print(&lab.sizes, stdout);
    if (lab.json != NULL) {
        const struct sheet *sheet[] = {&lab.sizes};
        sheet_write_json(sheet, 1, lab.json);
    }
    return EXIT_SUCCESS;
}

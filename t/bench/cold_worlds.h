/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COLD_WORLDS_H
#define BENCH_COLD_WORLDS_H

#include "bench/posts.h"

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The records that the cold tier is measured with. */

enum { COLD_WORLDS = 15 };

struct cold_world {
    const char *name;
    int ids, kind;
    unsigned columns;
    unsigned rare; /* so many columns are 0 but in one record in 50 */
    int values;    /* enum cold_values */
};

/* What numbers the columns have. */
enum cold_values {
    COLD_COUNTS, /* of the distribution */
    COLD_WIDE,   /* any of 64 bits, as hashes are */
    COLD_ONE,    /* one and the same in all records */
    COLD_TIMES   /* seconds since 1970 that grow with the post, as of a change
                  * in the hour behind it */
};

extern const struct cold_world cold_worlds[COLD_WORLDS];

/* The records of one world, sorted. */
struct cold_records {
    size_t n;
    unsigned columns;
    uint64_t *id, *code[POSTS_COLUMNS_MAX]; /* owned */
    double bound_bytes; /* of a record's information; NAN: not known */
};

/* What is measured, and how: the options that the programs share. */
struct cold_choice {
    uint64_t posts, rounds, seed, level;
    const char *only, *codec; /* NULL: all */
    bool is_sizes_only;
};

enum { COLD_RECORDS = 1000000, COLD_RECORDS_QUICK = 100000 };

/* For the table of getopt_long. */
#define COLD_OPTIONS                                                          \
    {"records", required_argument, NULL, 'n'},                                \
        {"rounds", required_argument, NULL, 'r'},                             \
        {"level", required_argument, NULL, 'l'},                              \
        {"seed", required_argument, NULL, 'S'},                               \
        {"case", required_argument, NULL, 'c'},                               \
        {"codec", required_argument, NULL, 'C'},                              \
        {"sizes", no_argument, NULL, 's'}, {"quick", no_argument, NULL, 'q'}, \
    {                                                                         \
        "help", no_argument, NULL, 'h'                                        \
    }

/* Takes one of these, but help. False for one that does not exist. */
bool cold_choose(struct cold_choice *choice, int letter);

bool cold_is_wanted(
    const struct cold_choice *choice, const struct cold_world *world);

/* Zeroes; fails where memory is out. */
void *cold_take(size_t bytes);

struct cold_records cold_records_make(
    const struct cold_world *world, uint64_t n_posts, uint64_t seed);
void cold_records_drop(struct cold_records *records);

/* Bytes a record in blocks of rows as varints, each as many as zstd brings into
 * 4 KB. */
double cold_rows_bytes(const struct cold_records *records, int level);

#endif

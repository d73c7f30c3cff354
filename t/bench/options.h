/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "bench/posts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the load generator was asked to do. Immutable after options_parse. */

enum mode { MODE_FILL, MODE_GET, MODE_MULTI, MODE_INCR, MODE_MIXED };

enum fill_with { FILL_RECORD, FILL_CELL, FILL_INCR };

/* --age: those of lib/dist.h, then this one. */
enum { AGE_ZIPF = DIST_AGE_ONE + 1 };

enum fill_order { ORDER_ID, ORDER_RANDOM };

enum {
    OPTIONS_KEYS_MAX = 1000,
    OPTIONS_CONNECTIONS_MAX = 10000,
    OPTIONS_THREADS_MAX = 64,
    OPTIONS_DEPTH_MAX = 100000,
    OPTIONS_RATE_MAX = 100000000,
    OPTIONS_ZIPF_MAX = 10,
    OPTIONS_SUFFIX_MAX = 32
};

struct options {
    int mode;      /* enum mode */
    int fill_with; /* enum fill_with */
    int order;     /* enum fill_order */
    int ids;       /* enum posts_ids */
    int kind;      /* enum dist_kind */
    int age;       /* enum dist_age, or AGE_ZIPF */
    int protocol;  /* enum wire_protocol */
    const char *host;
    const char *counter;
    const char *suffixes; /* as given; split into suffix[] */
    uint64_t port;
    uint64_t connections, depth, threads;
    uint64_t keys, columns; /* of one multi-get */
    uint64_t records;       /* posts, with and without numbers */
    uint64_t seed;
    uint64_t draws; /* questions prepared, then asked in a ring */
    uint64_t ops;   /* 0: by time */
    uint64_t rate;  /* commands a second of an open loop; 0: closed */
    double seconds, warmup_s;
    double miss;     /* share of ids without record; negative: as it comes */
    double mix;      /* share of gets in mixed */
    double zipf;     /* exponent of AGE_ZIPF */
    double from, to; /* shares of the posts, by age: only those between */
    uint64_t pid;
    const char *samples; /* file for the memory while filling, or NULL */
    bool items, by_column, nonzero, verify, json;
    /* derived: */
    bool has_absent; /* numbers that are 0 are not there, as items and
                      * strings */
    struct posts posts;
    size_t n_suffixes;
    char suffix[DIST_COLUMNS_MAX][OPTIONS_SUFFIX_MAX + 1];
    size_t suffix_len[DIST_COLUMNS_MAX];
};

enum options_result { OPTIONS_RUN, OPTIONS_HELPED, OPTIONS_BAD };

/* Reads the command line. --help is written to stdout, what is wrong to
 * stderr. *out points into argv. */
enum options_result options_parse(struct options *out, int argc, char **argv);

/* The word of the command line for a mode. Static storage. */
const char *options_mode_name(int mode);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_BUILD_H
#define ENGINE_BUILD_H

#include "engine/carry.h"

/* Makes a table out of the records of others, or of arrays. The sources stay
 * as they are. */

enum { BUILD_SOURCES_MAX = 2 };

/* A load (used bits / usable bits) in 1/1024. */
enum {
    BUILD_LOAD_LOADING = 420, /* 41 %: while a log is replayed */
    BUILD_LOAD_NEWEST = 640,  /* 62 %: the one that ids in order fill */
    BUILD_LOAD_GROW = 840,    /* 82 %: grows again after some 18 % more */
    BUILD_LOAD_STEADY = 940,  /* 92 %: where as much goes as comes */
    BUILD_LOAD_TIGHT = 1000,  /* 97.7 %: for what has stopped growing */
    BUILD_LOAD_FULL = 1024
};

/* What a counter's set was when it was last weighed against a fresh one. */
struct build_trained {
    uint32_t n;                 /* records of the table; 0: never weighed */
    uint32_t ratio;             /* bits of records to what they need, 1/1024 */
    uint64_t n_fills, n_builds; /* tables filled and made, ever */
};

struct build {
    struct table_owner *owner;
    const struct table *source[BUILD_SOURCES_MAX]; /* NULL: none */
    /* Records that are in no table, instead of sources; their rows are all in
     * the range. NULL: none. */
    const struct carry_rows *rows;
    /* A record that is about to be added or to change; its need and its row
     * are taken into account, but it is not put in. NULL: none. */
    const uint64_t *code;
    uint64_t row;
    bool is_new;
    const struct cover_at *cover; /* which tombstones of the sources stay;
                                    * NULL: none */
    uint32_t columns;             /* slots in use */
    struct shapes_set **set; /* the counter's own set: used where it suits,
                               * exchanged where another is better */
    struct build_trained *trained; /* of *set; NULL: it is weighed each time */
    enum pool_purpose purpose;
    uint32_t n_lines_min; /* for what was TABLE_FULL at one less, or for what
                           * is to come; else 0 */
    uint32_t n_lines_max; /* of no use where it takes more; 0: in any case */
    int load;             /* BUILD_LOAD_ */
};

/* *out has the records of the sources, but for tombstones that need not stay,
 * that lie in the aligned range base, width; it is the caller's. 0,
 * ERR_HOT_FULL, ERR_NO_MEMORY, TABLE_FULL where n_lines_max are too few. */
int build_table(const struct build *build, uint64_t base, unsigned width,
    struct table **out);

#endif

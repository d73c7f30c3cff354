/* SPDX-License-Identifier: BSD-3-Clause */

/* Bytes a record, by the engine's own sums, for each distribution: after the
 * fill, once the background has packed what no longer grows, and at the worst
 * moment of the fill; beside what the information in ids and numbers takes at
 * least. A second sheet says where the bytes of the packed ones are. Every
 * table is read back before it counts. */

#include "bench/bound.h"
#include "bench/lab.h"
#include "bench/rounds.h"

#include <string.h>

enum {
    RECORDS = 10000000,
    RECORDS_QUICK = 100000,
    WIDE_RECORDS = 1000000 /* of many columns */
};

struct memory_case {
    const char *name;
    int ids; /* enum posts_ids */
    enum dist_kind kind;
    unsigned columns;
    bool is_random, by_column; /* the order */
};

static const struct memory_case cases[] = {
    {"main, in id order", POSTS_MAIN, DIST_MAIN, 3, false, false},
    {"main, in random order", POSTS_MAIN, DIST_MAIN, 3, true, false},
    {"main, one column at a time", POSTS_MAIN, DIST_MAIN, 3, false, true},
    {"main, one column at a time, random order", POSTS_MAIN, DIST_MAIN, 3,
        true, true},
    {"random 64-bit ids", POSTS_RANDOM, DIST_MAIN, 3, false, false},
    {"sequential ids", POSTS_SEQUENTIAL, DIST_MAIN, 3, false, false},
    {"sequential ids, random order", POSTS_SEQUENTIAL, DIST_MAIN, 3, true,
        false},
    {"millisecond ids", POSTS_MILLISECOND, DIST_MAIN, 3, false, false},
    {"millisecond ids, random order", POSTS_MILLISECOND, DIST_MAIN, 3, true,
        false},
    {"multiples of 2^22", POSTS_MULTIPLE, DIST_MAIN, 3, false, false},
    {"heavier numbers", POSTS_MAIN, DIST_HEAVY, 3, false, false},
    {"lognormal numbers", POSTS_MAIN, DIST_LOGNORMAL, 3, false, false},
    {"1 column", POSTS_MAIN, DIST_MAIN, 1, false, false},
    {"2 columns", POSTS_MAIN, DIST_MAIN, 2, false, false},
    {"4 columns, with views", POSTS_MAIN, DIST_MAIN, 4, false, false},
    {"16 columns", POSTS_MAIN, DIST_MAIN, 16, false, false},
};

#define MEMORY_COLUMNS(X)                                                     \
    X(RECORDS, "records", "records", 0)                                       \
    X(BYTES, "bytes", "bytes a record, packed", 2)                            \
    X(BOUND, "bound_bytes", "bound", 2)                                       \
    X(BITS, "width_bytes", "numbers in binary", 2)                            \
    X(FILLED, "filled_bytes", "after the fill", 2)                            \
    X(WORST, "worst_bytes", "worst in the fill", 2)                           \
    X(LOAD_MIN, "load_min", "least load in the fill", 3)                      \
    X(LOAD_MEAN, "load_mean", "mean load", 3)                                 \
    X(LOAD, "load", "load, packed", 3)                                        \
    X(STASH, "stash_percent", "in stash, %", 2)                               \
    X(HIT, "lines_hit", "lines a hit", 3)                                     \
    X(MISS, "lines_miss", "lines a miss", 3)

enum {
#define X(name, key, head, decimals) MEMORY_##name,
    MEMORY_COLUMNS(X)
#undef X
};

static const struct sheet_column columns[] = {
#define X(name, key, head, decimals) {key, head, decimals},
    MEMORY_COLUMNS(X)
#undef X
};

/* Where the bytes of a record are, packed: they add up to BYTES. */
#define ACCOUNT_COLUMNS(X)                                                    \
    X(ALL, "bytes", "bytes a record, packed", 3)                              \
    X(RECORDS, "record_bytes", "records in lines", 3)                         \
    X(FREE, "free_bytes", "free in lines", 3)                                 \
    X(MARKS, "mark_bytes", "masks and counts of lines", 3)                    \
    X(STASH, "stash_bytes", "stashes", 3)                                     \
    X(OTHER, "other_bytes", "heads, shapes, directories", 3)                  \
    X(TABLE, "table_records", "records a table", 0)

enum {
#define X(name, key, head, decimals) ACCOUNT_##name,
    ACCOUNT_COLUMNS(X)
#undef X
};

static const struct sheet_column account_columns[] = {
#define X(name, key, head, decimals) {key, head, decimals},
    ACCOUNT_COLUMNS(X)
#undef X
};

static void
report_account(
    struct lab *lab, const char *name, const struct hot_state *packed)
{
    const struct engine_sum *sum = &packed->sum;
    double n = (double)sum->records;
    double *cell = sheet_add(&lab->bytes, "%s", name);
    cell[ACCOUNT_ALL] = packed->bytes;
    cell[ACCOUNT_RECORDS] = (double)sum->used_bits / 8 / n;
    cell[ACCOUNT_FREE] = (double)(sum->usable_bits - sum->used_bits) / 8 / n;
    cell[ACCOUNT_MARKS] =
        ((double)sum->line_bytes - (double)sum->usable_bits / 8) / n;
    cell[ACCOUNT_STASH] = (double)sum->stash_bytes / n;
    cell[ACCOUNT_OTHER] = (double)sum->other_bytes / n;
    cell[ACCOUNT_TABLE] = n / (double)sum->tables;
}

static void
report(struct lab *lab, const char *name, const struct posts *posts,
    const struct hot_fill *fill, const struct hot_state *filled,
    const struct hot_state *packed)
{
    struct bound bound = bound_of(posts);
    double *cell = sheet_add(&lab->memory, "%s", name);
    cell[MEMORY_RECORDS] = packed->records;
    cell[MEMORY_BYTES] = packed->bytes;
    cell[MEMORY_BOUND] = bound_bytes(&bound);
    cell[MEMORY_BITS] = bound.width_bits / 8.0;
    cell[MEMORY_FILLED] = filled->bytes;
    cell[MEMORY_WORST] = fill->bytes_worst;
    cell[MEMORY_LOAD_MIN] = fill->load_min;
    cell[MEMORY_LOAD_MEAN] = fill->load_mean;
    cell[MEMORY_LOAD] = packed->load;
    cell[MEMORY_STASH] = 100.0 * packed->stash;
    cell[MEMORY_HIT] = packed->lines_hit;
    cell[MEMORY_MISS] = packed->lines_miss;
    report_account(lab, name, packed);
}

/* Fills an engine of its own, and looks at it. */
static void
measure(struct lab *lab, const char *name, const struct posts *posts,
    bool is_random, bool by_column)
{
    struct hot hot;
    struct posts_order order;
    posts_order_init(&order, posts->n, lab->seed);
    struct hot_fill fill = {.posts = posts,
        .order = is_random ? &order : NULL,
        .by_column = by_column};
    lab_start(lab, posts, &hot);
    hot_fill(&hot, &fill);
    struct hot_state filled = hot_look(&hot);
    rounds_progress("%s: letting it rest", name);
    hot_settle(&hot);
    struct hot_state packed = hot_look(&hot);
    lab_check(&hot, posts);
    hot_stop(&hot);
    report(lab, name, posts, &fill, &filled, &packed);
}

static bool
is_wanted(const struct lab *lab, const char *name)
{
    return lab->only == NULL || strstr(name, lab->only) != NULL;
}

static void
measure_case(struct lab *lab, const struct memory_case *one)
{
    uint64_t records = lab_records(lab, RECORDS, RECORDS_QUICK);
    if (one->columns > DIST_COLUMNS_MAX && records > WIDE_RECORDS) {
        records = WIDE_RECORDS;
    }
    struct posts posts = {.dist = {.seed = lab->seed, .kind = one->kind},
        .ids = one->ids,
        .columns = one->columns};
    lab_size(&posts, records);
    measure(lab, one->name, &posts, one->is_random, one->by_column);
}

void
lab_memory(struct lab *lab)
{
    lab->memory.key = "memory";
    lab->memory.head = "engine memory";
    lab->memory.column = columns;
    lab->memory.n_columns = sizeof(columns) / sizeof(columns[0]);
    lab->bytes.key = "memory_account";
    lab->bytes.head = "engine memory, where it is";
    lab->bytes.column = account_columns;
    lab->bytes.n_columns =
        sizeof(account_columns) / sizeof(account_columns[0]);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (is_wanted(lab, cases[i].name)) {
            measure_case(lab, &cases[i]);
        }
    }
    if (lab->tsv != NULL && is_wanted(lab, "file")) {
        struct posts posts = {.columns = DIST_COLUMNS};
        posts_read(&posts, lab->tsv);
        measure(lab, "file", &posts, false, false);
        posts_fini(&posts);
    }
    rounds_progress(NULL);
    sheet_print(&lab->memory, stdout);
    sheet_print(&lab->bytes, stdout);
}

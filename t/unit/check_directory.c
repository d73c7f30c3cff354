/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/directory: sets of ranges of every kind against the plain array of
 * entries, at every boundary row; both ends of the space; depth, by the size
 * of the block; tables exchanged alone and under readers; retirement; memory
 * that is out. */
#include "engine/directory.h"

#include "base/err.h"
#include "lib/fault_alloc.h"
#include "unit/check_help.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    TABLES_MAX = 4096,
    ROUNDS = 60,
    ROWS_TRIED = 150,
    POOL_BYTES = 64 << 20,
    RANGES = 24, /* of the test with readers */
    READERS = 2,
    EXCHANGES = 20000
};

/* What directory.c never looks into. */
struct table {
    uint64_t base;
    unsigned width;
    unsigned number; /* grows with each exchange */
};

/* A set of ranges; entry[i].table is &table[i]. */
struct set {
    size_t n;
    struct directory_entry entry[TABLES_MAX];
    struct table table[TABLES_MAX];
};

static uint64_t
last_of(uint64_t base, unsigned width)
{
    return width == 64 ? UINT64_MAX : base + (UINT64_C(1) << width) - 1;
}

static bool
segment_map(const struct table *table, uint64_t row)
{
    return row >= table->base && row <= last_of(table->base, table->width);
}

static void
add(struct set *set, uint64_t base, unsigned width)
{
    ck_assert_uint_lt(set->n, TABLES_MAX);
    struct table *table = &set->table[set->n];
    *table = (struct table){.base = base, .width = width};
    set->entry[set->n++] = (struct directory_entry){base, width, table};
}

/* Cuts an aligned stretch into tables and gaps at random, in order. more:
 * the share in 64 that is cut further. */
static void
add_mixed(
    struct set *set, uint64_t base, unsigned width, unsigned more, uint64_t *r)
{
    bool full = set->n + 64 >= TABLES_MAX;
    if (!full && width > 1 && random_below(r, 64) < more) {
        add_mixed(set, base, width - 1, more, r);
        add_mixed(
            set, base + (UINT64_C(1) << (width - 1)), width - 1, more, r);
    } else if (!full && random_below(r, 3) > 0) {
        add(set, base, width);
    }
}

static void
add_run(struct set *set, uint64_t base, unsigned width, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add(set, base, width);
        base = last_of(base, width) + 1;
    }
}

static struct directory *
make(struct pool *pool, const struct set *set)
{
    struct directory *directory;
    int err = directory_create(pool, set->entry, set->n, POOL_NEW, &directory);
    ck_assert_int_eq(err, 0);
    directory_verify(directory);
    ck_assert_uint_eq(directory_count(directory), set->n);
    if (set->n > 0) {
        ck_assert_mem_eq(directory_entries(directory), set->entry,
            set->n * sizeof *set->entry);
    }
    return directory;
}

/* What the array says of row, beside what the directory says. */
static void
try_row(const struct directory *directory, const struct set *set, uint64_t row)
{
    ptrdiff_t before = -1;
    while (
        (size_t)(before + 1) < set->n && set->entry[before + 1].base <= row) {
        before++;
    }
    ck_assert_int_eq(directory_before(directory, row), before);
    const struct table *found = directory_find(directory, row);
    if (before >= 0 && segment_map(&set->table[before], row)) {
        ck_assert_ptr_eq(found, set->entry[before].table);
    } else if (found != NULL) {
        ck_assert(!segment_map(found, row));
    }
}

static void
try_boundaries(const struct directory *directory, const struct set *set)
{
    size_t step = 1 + set->n / ROWS_TRIED;
    try_row(directory, set, 0);
    try_row(directory, set, UINT64_MAX);
    for (size_t i = 0; i < set->n; i += step) {
        uint64_t base = set->entry[i].base;
        uint64_t last = last_of(base, set->entry[i].width);
        try_row(directory, set, base);
        try_row(directory, set, base - 1); /* 0: from the other end */
        try_row(directory, set, base + 1);
        try_row(directory, set, base + (last - base) / 2);
        try_row(directory, set, last - 1);
        try_row(directory, set, last);
        try_row(directory, set, last + 1);
    }
}

static void
try_random(
    const struct directory *directory, const struct set *set, uint64_t *r)
{
    for (int i = 0; i < ROWS_TRIED; i++) {
        unsigned shift = (unsigned)random_below(r, 64);
        uint64_t row = random_below(r, UINT64_MAX) >> shift;
        try_row(directory, set, row);
        try_row(directory, set, ~row);
    }
}

/* Everything that can be asked of one set. */
static void
try_set(const struct set *set, uint64_t seed)
{
    struct pool pool;
    uint64_t r = seed;
    ck_assert_int_eq(pool_init(&pool, NULL, NULL, POOL_BYTES), 0);
    struct directory *directory = make(&pool, set);
    ck_assert_uint_ge(
        atomic_load(&pool.used_bytes), directory_bytes(directory));
    try_boundaries(directory, set);
    try_random(directory, set, &r);
    directory_destroy(&pool, &directory);
    ck_assert_ptr_null(directory);
    directory_destroy(&pool, &directory);
    ck_assert_uint_eq(atomic_load(&pool.used_bytes), 0);
    pool_fini(&pool);
}

START_TEST(test_ends)
{
    static struct set set;
    ck_assert_uint_eq(directory_bytes(NULL), 0);
    try_set(&set, 1); /* no entry at all */
    for (unsigned width = 1; width <= 64; width++) {
        uint64_t top = last_of(0, width);
        set.n = 0;
        add(&set, 0, width);
        try_set(&set, width);
        if (width < 64) {
            add(&set, ~top, width);
            try_set(&set, width);
        }
        set.n = 0;
        add(&set, ~top, width);
        try_set(&set, width);
    }
}
END_TEST

/* A narrow table at each end, and a wide one between. */
START_TEST(test_ends_and_middle)
{
    static struct set set;
    for (unsigned width = 2; width < 63; width++) {
        set.n = 0;
        add(&set, 0, 1);
        add(&set, UINT64_C(1) << 63, width);
        add(&set, UINT64_MAX - 1, 1);
        try_set(&set, width);
        set.n = 0;
        add(&set, (UINT64_C(1) << 63) - 2, 1);
        add(&set, UINT64_C(1) << 63, width);
        try_set(&set, width);
    }
}
END_TEST

START_TEST(test_mixed)
{
    static struct set set;
    uint64_t r = 7;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned width = 1 + (unsigned)random_below(&r, 64);
        uint64_t base = random_below(&r, UINT64_MAX) & ~last_of(0, width);
        set.n = 0;
        add_mixed(&set, base, width, 20 + (unsigned)random_below(&r, 32), &r);
        try_set(&set, r);
    }
}
END_TEST

START_TEST(test_uniform)
{
    static struct set set;
    for (unsigned log = 0; log <= 10; log++) {
        set.n = 0;
        add_run(&set, 0, 64 - log, (size_t)1 << log);
        try_set(&set, log);
    }
}
END_TEST

START_TEST(test_dense)
{
    static struct set set;
    for (unsigned width = 1; width <= 50; width += 7) {
        set.n = 0;
        add_run(&set, UINT64_C(400000000) << width, width, 1000);
        try_set(&set, width);
        /* and a stray one near the upper end */
        add(&set, UINT64_MAX - 1, 1);
        try_set(&set, width);
    }
}
END_TEST

/* Each range twice as wide as the one before, from either end. */
START_TEST(test_geometric)
{
    static struct set set;
    add(&set, 0, 1);
    for (unsigned width = 1; width < 64; width++) {
        add(&set, UINT64_C(1) << width, width);
    }
    try_set(&set, 1);
    set.n = 0;
    for (unsigned width = 63; width >= 1; width--) {
        add(&set, ~last_of(0, width) << 1, width);
    }
    add(&set, UINT64_MAX - 1, 1);
    try_set(&set, 2);
    /* pairs of narrow ones at growing distances */
    set.n = 0;
    for (unsigned log = 3; log < 64; log++) {
        add(&set, UINT64_C(1) << log, 1);
        add(&set, (UINT64_C(1) << log) + 2, 1);
    }
    try_set(&set, 3);
}
END_TEST

/* Slots beside the entries: few for ranges side by side, and no more than
 * eight an entry however they lie. */
START_TEST(test_size)
{
    static struct set set;
    struct pool pool;
    ck_assert_int_eq(pool_init(&pool, NULL, NULL, POOL_BYTES), 0);
    add_run(&set, UINT64_C(5) << 40, 20, 1000);
    struct directory *directory = make(&pool, &set);
    size_t entries = set.n * sizeof *set.entry;
    ck_assert_uint_lt(
        directory_bytes(directory), entries + 1001 * sizeof(void *) + 128);
    directory_destroy(&pool, &directory);
    add(&set, UINT64_MAX - 1, 1);
    directory = make(&pool, &set);
    ck_assert_uint_lt(
        directory_bytes(directory), entries + 5 * 1010 * sizeof(void *));
    directory_destroy(&pool, &directory);
    pool_fini(&pool);
}
END_TEST

START_TEST(test_replace)
{
    static struct set set;
    struct pool pool;
    uint64_t r = 11;
    ck_assert_int_eq(pool_init(&pool, NULL, NULL, POOL_BYTES), 0);
    for (int round = 0; round < ROUNDS / 6; round++) {
        static struct table other[TABLES_MAX];
        set.n = 0;
        add_mixed(&set, 0, 64, 40, &r);
        struct directory *directory = make(&pool, &set);
        for (size_t i = 0; i < set.n; i++) {
            size_t at = random_below(&r, set.n);
            other[at] = set.table[at];
            set.entry[at].table = &other[at];
            directory_replace(directory, at, &other[at]);
            ck_assert_ptr_eq(
                directory_entries(directory)[at].table, &other[at]);
            try_row(directory, &set, set.entry[at].base);
            try_row(directory, &set,
                last_of(set.entry[at].base, set.entry[at].width));
        }
        directory_verify(directory);
        try_boundaries(directory, &set);
        directory_destroy(&pool, &directory);
    }
    pool_fini(&pool);
}
END_TEST

/* What the readers and the writer of test_readers share. */
struct exchange {
    struct directory *directory;
    struct set set;
    struct table spare[RANGES][2];
    pthread_barrier_t start;
    atomic_bool stop;
    atomic_ulong wrong;
};

static void *
read_rows(void *arg)
{
    struct exchange *exchange = arg;
    const struct set *set = &exchange->set;
    unsigned seen[RANGES] = {0};
    uint64_t r = 5;
    unsigned long wrong = 0;
    pthread_barrier_wait(&exchange->start);
    /* relaxed: nothing is read by it */
    while (!atomic_load_explicit(&exchange->stop, memory_order_relaxed)) {
        size_t i = random_below(&r, RANGES);
        const struct directory_entry *entry = &set->entry[i];
        uint64_t last = last_of(entry->base, entry->width);
        uint64_t row = random_below(&r, 2) != 0
            ? entry->base
            : entry->base + random_below(&r, last - entry->base + 1);
        const struct table *table = directory_find(exchange->directory, row);
        /* plain reads: a race where find does not acquire */
        bool good = table != NULL && segment_map(table, row) &&
            (row != entry->base || table->number >= seen[i]);
        wrong += !good;
        if (good && row == entry->base) {
            seen[i] = table->number;
        }
    }
    atomic_fetch_add(&exchange->wrong, wrong);
    return NULL;
}

/* Tables are never written to once they have been published, so a new one
 * each time. */
START_TEST(test_readers)
{
    static struct exchange exchange;
    struct set *set = &exchange.set;
    struct pool pool;
    pthread_t reader[READERS];
    static struct table fresh[EXCHANGES];
    uint64_t r = 3;
    ck_assert_int_eq(pool_init(&pool, NULL, NULL, POOL_BYTES), 0);
    add_run(set, 0, 20, RANGES - 4); /* a node below the root */
    add(set, UINT64_C(1) << 62, 62); /* several slots each */
    add(set, UINT64_C(2) << 62, 61);
    add(set, UINT64_C(3) << 62, 61);
    add(set, UINT64_MAX - 1, 1);
    exchange.directory = make(&pool, set);
    ck_assert_int_eq(
        pthread_barrier_init(&exchange.start, NULL, READERS + 1), 0);
    for (int i = 0; i < READERS; i++) {
        ck_assert_int_eq(
            pthread_create(&reader[i], NULL, read_rows, &exchange), 0);
    }
    pthread_barrier_wait(&exchange.start);
    for (unsigned n = 0; n < EXCHANGES; n++) {
        size_t i = random_below(&r, RANGES);
        fresh[n] = (struct table){
            .base = set->entry[i].base,
            .width = set->entry[i].width,
            .number = n + 1,
        };
        directory_replace(exchange.directory, i, &fresh[n]);
    }
    atomic_store(&exchange.stop, true);
    for (int i = 0; i < READERS; i++) {
        ck_assert_int_eq(pthread_join(reader[i], NULL), 0);
    }
    pthread_barrier_destroy(&exchange.start);
    ck_assert_uint_eq(atomic_load(&exchange.wrong), 0);
    directory_verify(exchange.directory);
    directory_destroy(&pool, &exchange.directory);
    pool_fini(&pool);
}
END_TEST

START_TEST(test_retire)
{
    static struct set set;
    struct pool pool;
    struct qsbr qsbr;
    struct qsbr_reader reader;
    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    ck_assert_int_eq(pool_init(&pool, NULL, &qsbr, POOL_BYTES), 0);
    add_run(&set, 0, 10, 100);
    struct directory *directory = make(&pool, &set);
    qsbr_online(&qsbr, &reader);
    directory_retire(&pool, NULL);
    ck_assert_uint_eq(pool_garbage_bytes(&pool), 0);
    directory_retire(&pool, directory);
    ck_assert_uint_eq(pool_garbage_bytes(&pool), directory_bytes(directory));
    pool_reclaim(&pool);
    try_boundaries(directory, &set); /* still there */
    qsbr_offline(&reader);
    pool_drain(&pool);
    ck_assert_uint_eq(atomic_load(&pool.used_bytes), 0);
    pool_fini(&pool);
    qsbr_unregister(&qsbr, &reader);
    qsbr_fini(&qsbr);
}
END_TEST

START_TEST(test_no_memory)
{
    static struct set set;
    struct fault_alloc fault;
    struct pool pool;
    struct directory *directory = NULL;
    fault_alloc_init(&fault);
    ck_assert_int_eq(pool_init(&pool, &fault.alloc, NULL, POOL_BYTES), 0);
    add_run(&set, 0, 20, 300);
    uint64_t used = atomic_load(&pool.used_bytes);
    size_t live = fault.live_bytes;
    for (size_t n = 1;; n++) {
        fault.fail_from = fault.fail_to = fault.calls + n;
        size_t failures = fault.failures;
        int err =
            directory_create(&pool, set.entry, set.n, POOL_NEW, &directory);
        if (fault.failures == failures) {
            ck_assert_int_eq(err, 0);
            ck_assert_uint_gt(n, 1);
            break;
        }
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        ck_assert_ptr_null(directory);
        ck_assert_uint_eq(atomic_load(&pool.used_bytes), used);
        ck_assert_uint_eq(fault.live_bytes, live);
    }
    directory_destroy(&pool, &directory);
    ck_assert_uint_eq(fault.live_bytes, live);
    pool_fini(&pool);
}
END_TEST

/* The budget is asked with the caller's purpose. */
START_TEST(test_full)
{
    static struct set set;
    struct pool pool;
    struct directory *first, *directory = NULL;
    add_run(&set, 0, 20, 2000);
    ck_assert_int_eq(pool_init(&pool, NULL, NULL, POOL_BYTES), 0);
    first = make(&pool, &set);
    uint64_t bytes = atomic_load(&pool.used_bytes);
    directory_destroy(&pool, &first);
    pool_fini(&pool);

    ck_assert_int_eq(pool_init(&pool, NULL, NULL, bytes - bytes / 40), 0);
    ck_assert_int_eq(
        directory_create(&pool, set.entry, set.n, POOL_NEW, &directory),
        ERR_HOT_FULL);
    ck_assert_ptr_null(directory);
    ck_assert_uint_eq(atomic_load(&pool.used_bytes), 0);
    ck_assert_int_eq(
        directory_create(&pool, set.entry, set.n, POOL_UPDATE, &directory), 0);
    directory_destroy(&pool, &directory);
    pool_fini(&pool);
}
END_TEST

int
main(void)
{
    const TTest *const test[] = {test_ends, test_ends_and_middle, test_mixed,
        test_uniform, test_dense, test_geometric, test_size, test_replace,
        test_readers, test_retire, test_no_memory, test_full};
    return run_tests("directory", test, COUNT_OF(test));
}

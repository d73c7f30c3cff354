/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/cache: what is kept is found until it is dropped, what is pinned stays;
 * the budget holds to the byte; a scan does not push out what is asked for
 * often, counted beside a plain FIFO. */
#include "cold/cache.h"

#include "base/err.h"
#include "lib/dist.h"
#include "lib/fault_alloc.h"
#include "unit/survives.h"

#include <math.h>
#include <stdio.h>

enum { BLOCK_LEN = 4600, MB = 1 << 20 };

struct rig {
    struct fault_alloc fault;
    struct cache *cache;
};

static struct rig *rig;

static void
setup(void)
{
    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    fault_alloc_init(&rig->fault);
}

static void
teardown(void)
{
    cache_destroy(&rig->cache);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
    free(rig);
}

static void
make_cache(uint64_t budget)
{
    ck_assert_int_eq(cache_create(budget, &rig->fault.alloc, &rig->cache), 0);
}

static struct cache_stats
stats_of(void)
{
    struct cache_stats stats;

    cache_stats(rig->cache, &stats);
    ck_assert_uint_eq(stats.bytes, rig->fault.live_bytes);
    ck_assert(stats.budget_bytes < CACHE_BYTES_MIN ||
        stats.bytes <= stats.budget_bytes);
    return stats;
}

static struct cache_key
key_of(uint64_t segment, uint32_t block)
{
    return (struct cache_key){segment, block};
}

/* What the block of a key has at its front, and its length at its end. */
static uint64_t
content(struct cache_key key)
{
    return key.segment * 1000003 + key.block;
}

/* Brings a block in; NULL where it was refused, else it is pinned. */
static uint8_t *
bring(struct cache_key key, size_t len)
{
    uint64_t word = content(key);
    uint8_t *bytes = cache_take(rig->cache, key, len);

    if (bytes != NULL) {
        memcpy(bytes, &word, sizeof word);
        memcpy(bytes + len - sizeof word, &word, sizeof word);
        cache_keep(rig->cache, bytes);
    }
    return bytes;
}

static void
check_content(const uint8_t *bytes, struct cache_key key)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    ck_assert_uint_eq(word, content(key));
}

/* Whether it is there, without bringing it in. */
static bool
is_there(struct cache_key key)
{
    uint8_t *bytes = cache_pin(rig->cache, key);

    if (bytes == NULL) {
        return false;
    }
    check_content(bytes, key);
    cache_unpin(rig->cache, bytes);
    return true;
}

/* What a reader does: true where the block was there. */
static bool
ask(struct cache_key key)
{
    uint8_t *bytes;

    if (is_there(key)) {
        return true;
    }
    bytes = bring(key, BLOCK_LEN);
    if (bytes != NULL) {
        cache_unpin(rig->cache, bytes);
    }
    return false;
}

START_TEST(test_what_is_kept_is_found)
{
    make_cache(MB);
    ck_assert(!is_there(key_of(1, 2)));
    uint8_t *bytes = cache_take(rig->cache, key_of(1, 2), BLOCK_LEN);
    ck_assert(!is_there(key_of(1, 2))); /* nobody has kept it yet */
    uint64_t word = content(key_of(1, 2));
    memcpy(bytes, &word, sizeof word);
    cache_keep(rig->cache, bytes);
    ck_assert(is_there(key_of(1, 2)));
    ck_assert(!is_there(key_of(2, 1)) && !is_there(key_of(1, 3)));

    /* another one under the same key is not found, and does no harm */
    uint8_t *other = bring(key_of(1, 2), BLOCK_LEN);
    ck_assert_ptr_eq(cache_pin(rig->cache, key_of(1, 2)), bytes);
    cache_unpin(rig->cache, bytes);
    ck_assert_uint_eq(stats_of().blocks, 1);
    cache_unpin(rig->cache, other);
    cache_unpin(rig->cache, bytes);
    ck_assert(is_there(key_of(1, 2)));
    cache_verify(rig->cache);
    (void)stats_of();
}
END_TEST

START_TEST(test_pinned_blocks_stay)
{
    enum { PINNED = 5, OTHERS = 5000 };
    uint8_t *pinned[PINNED];

    make_cache(MB);
    for (uint32_t i = 0; i < PINNED; i++) {
        pinned[i] = bring(key_of(7, i), BLOCK_LEN);
        ck_assert_ptr_nonnull(pinned[i]);
    }
    for (uint32_t i = 0; i < OTHERS; i++) {
        (void)ask(key_of(8, i));
    }
    ck_assert_uint_gt(stats_of().evicted, OTHERS - 300);
    for (uint32_t i = 0; i < PINNED; i++) {
        check_content(pinned[i], key_of(7, i));
        ck_assert(is_there(key_of(7, i)));
    }
    cache_forget(rig->cache, 7);
    for (uint32_t i = 0; i < PINNED; i++) {
        ck_assert(!is_there(key_of(7, i)));
        check_content(pinned[i], key_of(7, i));
        (void)stats_of();
        cache_unpin(rig->cache, pinned[i]);
    }
    ck_assert_uint_eq(stats_of().forgotten, PINNED);
    cache_verify(rig->cache);
}
END_TEST

START_TEST(test_a_dead_segment_goes)
{
    enum { SEGMENTS = 3, BLOCKS = 300 };

    make_cache(16 * MB);
    for (uint32_t i = 0; i < SEGMENTS * BLOCKS; i++) {
        ck_assert(!ask(key_of(1 + i % SEGMENTS, i / SEGMENTS)));
    }
    ck_assert_uint_eq(stats_of().blocks, SEGMENTS * BLOCKS);
    cache_forget(rig->cache, 2);
    for (uint32_t i = 0; i < SEGMENTS * BLOCKS; i++) {
        uint64_t segment = 1 + i % SEGMENTS;

        ck_assert_int_eq(
            is_there(key_of(segment, i / SEGMENTS)), segment != 2);
    }
    ck_assert_uint_eq(stats_of().blocks, (SEGMENTS - 1) * BLOCKS);
    cache_verify(rig->cache);
}
END_TEST

START_TEST(test_all_pinned_or_too_large)
{
    enum { MANY = 1000 };
    uint8_t *pinned[MANY];
    size_t n = 0;

    make_cache(CACHE_BYTES_MIN);
    ck_assert_ptr_null(bring(key_of(1, 0), CACHE_BYTES_MIN / 4));
    for (uint32_t i = 0; i < MANY; i++) {
        pinned[n] = bring(key_of(1, i), BLOCK_LEN);
        n += pinned[n] != NULL;
        (void)stats_of();
    }
    ck_assert_uint_ge(n, 10);
    ck_assert_uint_lt(n, CACHE_BYTES_MIN / BLOCK_LEN + 1);
    ck_assert_uint_eq(stats_of().refused, MANY - n + 1);
    while (n > 0) {
        cache_unpin(rig->cache, pinned[--n]);
    }
    ck_assert(!ask(key_of(2, 1)));
    ck_assert(ask(key_of(2, 1)));
    cache_destroy(&rig->cache);

    make_cache(CACHE_BYTES_MIN - 1);
    ck_assert(!ask(key_of(2, 1)));
    ck_assert(!ask(key_of(2, 1)));
    cache_forget(rig->cache, 2);
}
END_TEST

/* Random calls, with sizes of all kinds, and some blocks pinned for long. */
START_TEST(test_random_calls)
{
    enum { STEPS = 60000, HELD = 12, SEGMENTS = 4, BLOCKS = 200 };
    struct {
        uint8_t *bytes;
        struct cache_key key;
    } held[HELD] = {{NULL, {0, 0}}};
    uint64_t found = 0;
    struct dist_rng rng;

    dist_rng_init(&rng, 5, (uint64_t)_i);
    make_cache((uint64_t)(MB << _i));
    for (int step = 0; step < STEPS; step++) {
        uint64_t bits = dist_rng_u64(&rng);
        size_t h = bits % HELD;
        struct cache_key key =
            key_of((bits >> 8) % SEGMENTS, (uint32_t)((bits >> 16) % BLOCKS));

        if (held[h].bytes != NULL) {
            check_content(held[h].bytes, held[h].key);
            cache_unpin(rig->cache, held[h].bytes);
        }
        held[h].key = key;
        held[h].bytes = cache_pin(rig->cache, key);
        found += held[h].bytes != NULL;
        if (held[h].bytes == NULL || bits >> 32 < UINT32_MAX / 50) {
            if (held[h].bytes != NULL) {
                cache_unpin(rig->cache, held[h].bytes);
            }
            held[h].bytes = bring(key, 16 + (bits >> 24) % (3 * BLOCK_LEN));
        }
        if (bits >> 52 == 0) {
            cache_forget(rig->cache, key.segment);
        }
        if (step % 500 == 0) {
            cache_verify(rig->cache);
        }
        (void)stats_of();
    }
    ck_assert_uint_gt(found, STEPS / 20);
    for (size_t h = 0; h < HELD; h++) {
        if (held[h].bytes != NULL) {
            cache_unpin(rig->cache, held[h].bytes);
        }
    }
    cache_verify(rig->cache);
}
END_TEST

/* The rival: what is oldest goes. */
enum { FIFO_KEYS = 1 << 20 };

struct fifo {
    uint32_t ring[4096];
    size_t capacity, next;
    bool is_there[FIFO_KEYS];
};

static bool
fifo_ask(struct fifo *fifo, uint32_t key)
{
    size_t at = fifo->next % fifo->capacity;

    if (fifo->is_there[key]) {
        return true;
    }
    if (fifo->next >= fifo->capacity) {
        fifo->is_there[fifo->ring[at]] = false;
    }
    fifo->ring[at] = key;
    fifo->is_there[key] = true;
    fifo->next++;
    return false;
}

/* How many asked blocks of a Zipf law were there, among them scans that ask for
 * each block as often in a row as a reader of ids would. */
START_TEST(test_more_hits_than_a_fifo)
{
    enum { BUDGET = 4 * MB, HOT = 5000, ROUNDS = 4000, ASKS = 20 };
    enum { SCANNED = 10, TIMES = 15 };
    uint64_t hits = 0, fifo_hits = 0;
    uint32_t scan = HOT;
    struct dist_rng rng;
    struct fifo *fifo = calloc(1, sizeof *fifo);

    ck_assert_ptr_nonnull(fifo);
    fifo->capacity = BUDGET / BLOCK_LEN;
    dist_rng_init(&rng, 6, 0);
    make_cache(BUDGET);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ASKS; i++) {
            uint32_t key = (uint32_t)exp(log(HOT) * dist_rng_unit(&rng));

            hits += ask(key_of(1, key));
            fifo_hits += fifo_ask(fifo, key);
        }
        for (int i = 0; i < SCANNED * TIMES; i++) {
            (void)ask(key_of(1, scan + (uint32_t)i / TIMES));
            (void)fifo_ask(fifo, scan + (uint32_t)i / TIMES);
        }
        scan += SCANNED;
    }
    free(fifo);
    double all = (double)ROUNDS * ASKS;
    printf("# of %.0f asks among scans %.1f %% hit, with a FIFO %.1f %%\n",
        all, 100.0 * (double)hits / all, 100.0 * (double)fifo_hits / all);
    /* a third of the misses are gone, and more */
    ck_assert_uint_lt(
        (uint64_t)all - hits, ((uint64_t)all - fifo_hits) * 2 / 3);
    ck_assert_uint_gt(stats_of().main_blocks, stats_of().blocks * 3 / 4);
}
END_TEST

/* What is asked for now and then outlives a scan of ten times the cache. */
START_TEST(test_a_scan_passes_through)
{
    enum { BUDGET = 8 * MB, HOT = 800, SCANNED = 20000, TIMES = 15 };
    uint32_t there = 0;

    make_cache(BUDGET);
    for (uint32_t i = 0; i < 10 * HOT; i++) {
        (void)ask(key_of(1, i % HOT));
    }
    for (uint32_t i = 0; i < SCANNED * TIMES; i++) {
        (void)ask(key_of(2, i / TIMES));
    }
    for (uint32_t i = 0; i < HOT; i++) {
        there += is_there(key_of(1, i));
    }
    printf("# %u of %d hot blocks outlived the scan\n", there, HOT);
    ck_assert_uint_gt(there, HOT * 9 / 10);
}
END_TEST

START_TEST(test_memory_that_runs_out)
{
    struct fault_alloc *fault = &rig->fault;
    int err = ERR_NO_MEMORY;

    for (size_t n = 1; err != 0; n++) {
        fault->calls = 0;
        fault->fail_from = fault->fail_to = n;
        err = cache_create(8 * MB, &fault->alloc, &rig->cache);
        ck_assert(err == 0 || err == ERR_NO_MEMORY);
        ck_assert(err == 0 || fault->live_bytes == 0);
    }
    fault_alloc_arm(fault, 1);
    ck_assert_ptr_null(bring(key_of(1, 1), BLOCK_LEN));
    ck_assert_uint_eq(stats_of().refused, 1);
    ck_assert(!ask(key_of(1, 1)));
    ck_assert(ask(key_of(1, 1)));
    cache_verify(rig->cache);
}
END_TEST

static void
unpin_twice(void *bytes)
{
    cache_unpin(rig->cache, bytes);
    cache_unpin(rig->cache, bytes);
}

static void
keep_twice(void *bytes)
{
    cache_keep(rig->cache, bytes);
    cache_keep(rig->cache, bytes);
}

START_TEST(test_misuse)
{
    make_cache(8 * MB);
    ck_assert(!ask(key_of(1, 1)));
    void *bytes = cache_pin(rig->cache, key_of(1, 1));
    ck_assert_ptr_nonnull(bytes);
    ck_assert(!survives(unpin_twice, bytes));
    cache_unpin(rig->cache, bytes);
    bytes = cache_take(rig->cache, key_of(1, 2), BLOCK_LEN);
    ck_assert_ptr_nonnull(bytes);
    ck_assert(!survives(keep_twice, bytes));
    cache_unpin(rig->cache, bytes);
    cache_verify(rig->cache);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("cache");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_what_is_kept_is_found);
    tcase_add_test(tcase, test_pinned_blocks_stay);
    tcase_add_test(tcase, test_a_dead_segment_goes);
    tcase_add_test(tcase, test_all_pinned_or_too_large);
    tcase_add_loop_test(tcase, test_random_calls, 0, 4);
    tcase_add_test(tcase, test_more_hits_than_a_fifo);
    tcase_add_test(tcase, test_a_scan_passes_through);
    tcase_add_test(tcase, test_memory_that_runs_out);
    tcase_add_test(tcase, test_misuse);
    return run_case("cache", tcase);
}
